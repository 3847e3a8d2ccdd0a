/* What .pte and .ptd files share: segments behind the flatbuffer, keys that name them, and the
 * ScalarType numbers of tensors. */
#ifndef FORMAT_DATA_H
#define FORMAT_DATA_H

#include "format/flatbuf.h"

/* ---- segments and named data ----------------------------------------------------------------- */

struct data {
  struct extent file;     /* at least its flatbuffer is held */
  uint64_t base;          /* file offset that segment offsets are relative to */
  uint64_t end;           /* file offset that no segment reaches past */
  struct fb_vec segments; /* of DataSegment */
  struct fb_vec named;    /* of NamedData */
  const uint32_t *index;  /* optional, see data_index */
  uint32_t n_index;
};

#define DATA_MAX_NAMED 65536u /* keys of one file or of one set of files */
#define DATA_MAX_KEY 1023u    /* bytes */

/* Every segment inside [base, end), every key non-empty, unique and naming an existing segment. */
SCONCE_CHECK sconce_status data_verify(const struct data *data, sconce_error *err);
/* No key occurs twice in all these files together. */
SCONCE_CHECK sconce_status data_verify_unique(const struct data *const *files, uint32_t n_files,
                                              sconce_error *err);

struct extent data_segment(const struct data *data, uint32_t i); /* empty if there is none */

struct text data_key(const struct data *data, uint32_t i);
struct extent data_named(const struct data *data, uint32_t i);
bool data_find(const struct data *data, struct text key, uint32_t *out);

/* Without an index data_find compares key by key. `slots` is the caller's memory, borrowed: at
 * least 2 * named.n + 1 of them. */
void data_index(struct data *data, uint32_t *slots, uint32_t n_slots);

/* How a reader asks for named data that may lie in another file. `user` is the caller's. */
struct data_lookup {
  bool (*find)(void *user, struct text key,
               struct extent *out); /* NULL: nothing can be looked up */
  void *user;
};

/* ---- tensors --------------------------------------------------------------------------------- */

#define DATA_MAX_RANK 16

/* ScalarType of the format; the numbers in between are accepted and have a size. */
enum scalar_type {
  SCALAR_BYTE = 0,
  SCALAR_CHAR = 1,
  SCALAR_SHORT = 2,
  SCALAR_INT = 3,
  SCALAR_LONG = 4,
  SCALAR_HALF = 5,
  SCALAR_FLOAT = 6,
  SCALAR_DOUBLE = 7,
  SCALAR_BOOL = 11,
  SCALAR_BFLOAT16 = 15,
  SCALAR_UINT16 = 27,
  SCALAR_UINT32 = 28,
  SCALAR_UINT64 = 29,
};
uint32_t scalar_size(int type);    /* bytes of an element; 0: no such type */
const char *scalar_name(int type); /* "float"; "unknown" */

/* The shape of a tensor: exact or an upper bound. */
struct data_shape {
  int scalar_type;
  uint32_t rank;
  int32_t sizes[DATA_MAX_RANK];     /* not negative */
  uint8_t dim_order[DATA_MAX_RANK]; /* a permutation, outermost first */
  uint64_t numel, nbytes;
};

/* Reads and checks: rank, no negative size, a known type, a permutation, no overflow. */
SCONCE_CHECK sconce_status data_shape_read(int scalar_type, struct fb_vec sizes,
                                           struct fb_vec dim_order, struct data_shape *out,
                                           sconce_error *err);
/* Same type, sizes and dim_order? The sentence says which differs, "this" against "that". */
SCONCE_CHECK sconce_status data_shape_compare(const struct data_shape *a, const char *a_name,
                                              const struct data_shape *b, const char *b_name,
                                              sconce_error *err);

#endif
