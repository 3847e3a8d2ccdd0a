/* Data files (.ptd, FlatTensor): named bytes outside the program, with or without a tensor layout.
 * ptd_open verifies one file; several files form a set in which no key may occur twice. */
#ifndef FORMAT_PTD_H
#define FORMAT_PTD_H

#include "format/pte.h"

struct ptd {
  struct data data; /* keys and segments: data_key, data_named, data_find */
  struct fb_table root;
};

/* How many of a file's first bytes ptd_open must find in memory: its flatbuffer. Needs
 * PTD_HEAD_SIZE of them, or all if there are fewer. */
enum { PTD_HEAD_SIZE = 64 };
SCONCE_CHECK sconce_status ptd_front(struct extent file, uint64_t *size, sconce_error *err);
/* A zeroed *out on failure. The bytes are borrowed. */
SCONCE_CHECK sconce_status ptd_open(struct ptd *out, struct extent file, sconce_error *err);
bool ptd_probe(struct span file);

struct ptd_entry {
  struct text key;
  struct extent bytes;
  bool has_layout;         /* without one the bytes belong to a delegate and are opaque */
  struct data_shape shape; /* its nbytes equal the bytes' size */
};
struct ptd_entry ptd_entry(const struct ptd *ptd, uint32_t i); /* i < data.named.n */

#define PTD_MAX_FILES 256

/* Files are borrowed, and so is the array. */
struct ptd_set {
  const struct ptd *files;
  uint32_t n_files;
};

/* The error names the key and the indices of the two files. */
SCONCE_CHECK sconce_status ptd_set_verify(const struct ptd_set *set, sconce_error *err);
bool ptd_find(const struct ptd_set *set, struct text key, struct ptd_entry *out);

/* Every external tensor of the program is in the set, with its type, sizes and dim_order. */
SCONCE_CHECK sconce_status ptd_set_match(const struct ptd_set *set, const struct pte *pte,
                                         sconce_error *err);

/* Named data for a delegate: the set first, then the program's own (either may be NULL). Pass
 * ptd_lookup with a pointer to this struct as a struct data_lookup. */
struct ptd_source {
  const struct ptd_set *set;
  const struct pte *pte;
};
bool ptd_lookup(void *source, struct text key, struct extent *out);

#endif
