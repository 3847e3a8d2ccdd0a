/* What graphs, programs and data files have in common, for the writers themselves. */
#ifndef WRITE_PARTS_H
#define WRITE_PARTS_H

#include "write/flatbuf.h"
#include "write/write.h"

enum {
  HEADER_AT = 8, /* where a header is inserted into its flatbuffer */
  SEGMENT_ALIGN = 128,
  DATA_ALIGN = 16, /* constants, inline delegates, parts of a delegate's blob */
};

/* Makes what a literal points at the arena's own. */
void literal_keep(struct write_state *s, struct literal *v);
/* The member of a value's union: all but tensors are a table of one field, in both schemas. */
void literal_write(struct fbw *w, uint32_t slot, const struct literal *v);

/* The id that the next row of a list gets; -1 with a failure when ids are used up. */
int32_t write_next_id(struct write_state *s, const struct write_list *list);
void write_add_ids(struct write_state *s, struct write_list *list, const int32_t *ids, uint32_t n);

/* sizes and dim_order of a Tensor or a TensorLayout. */
struct write_shape {
  const int32_t *sizes;
  const uint8_t *dim_order;
  uint32_t rank;
};
/* dim_order NULL becomes 0, 1, 2, … */
struct write_shape write_shape_keep(struct write_state *s, const int32_t *sizes,
                                    const uint8_t *dim_order, uint32_t rank);

struct write_segment {
  struct write_blob bytes;
  uint64_t align;
  uint64_t offset; /* in the segment data, once laid out */
};
int32_t write_segment_add(struct write_state *s, struct write_list *segments,
                          const struct write_blob *bytes, uint64_t align);
/* Puts the segments one after the other; `out` starts empty. */
void write_segments_lay_out(struct write_state *s, struct write_list *segments,
                            struct write_blob *out);
void write_segments(struct fbw *w, uint32_t slot, const struct write_list *segments);

/* A finished flatbuffer and what follows it (NULL: nothing) at a multiple of align, as one blob. */
sconce_status write_finish(struct fbw *w, const struct write_blob *rest, uint64_t align,
                           struct write_blob *out, sconce_error *err);

#endif
