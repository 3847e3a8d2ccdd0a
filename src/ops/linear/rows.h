/* What the linear operators share: x of any rank as rows, and operands that exceed a binding. */
#ifndef OPS_LINEAR_ROWS_H
#define OPS_LINEAR_ROWS_H

#include "graph/op.h"

/* Live dims of the output: those of x with the last one replaced by `cols`. The exporter may have
 * absorbed a view, so ranks may differ: leading dims are flattened, or 1 is put in front. */
SCONCE_CHECK sconce_status rows_shape(struct plan *p, uint32_t out, const struct tensor *x,
                                      uint32_t cols);
/* Product of all live dims but the last; 1 for a vector. */
uint32_t rows_of(const struct tensor *t);

/* How many of `rows` rows one dispatch takes, of two operands with rows of a and b bytes: all, or a
 * multiple of 4 whose byte sizes are aligned. `rows` if not even one such step fits: dispatch then
 * says which binding is too large. */
uint64_t rows_split(const struct plan *p, uint64_t rows, uint64_t a, uint64_t b);
/* Rows [first, first + count) of an operand; the whole tensor where that may be bound. */
struct operand rows_part(struct plan *p, uint32_t id, uint64_t row_bytes, uint64_t first,
                         uint64_t count);

/* 0 without a bias, else 1 + (its elements have 2 bytes): how shaders are told. */
SCONCE_CHECK sconce_status rows_bias(struct plan *p, const struct node *n, uint32_t arg,
                                     uint32_t cols, uint32_t *kind);

/* FLOAT32 or FLOAT16, else an error about `what`. */
SCONCE_CHECK sconce_status float_check(struct plan *p, const struct tensor *t, const char *what);
static inline bool is_half(const struct tensor *t) { return t->dtype == VK_FLOAT16; }

#endif
