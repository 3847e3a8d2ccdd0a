/* Dispatches of a convolution, alone or with what a pass found behind it. */
#ifndef OPS_CONV_EMIT_H
#define OPS_CONV_EMIT_H

#include "ops/conv/conv.h"

/* What becomes of the sums: y = end(sum + bias + rest). */
enum conv_end_bits { END_LOW = 1, END_HIGH = 2, END_HARDSWISH = 4, END_SILU = 8 };
struct conv_end {
  uint32_t y;
  uint32_t rest; /* of y's shape; NO_VALUE: nothing is added */
  uint32_t bits; /* enum conv_end_bits; low and high count where they say so */
  float low, high;
};
/* Bounds from two arguments. Where there is none, exporters write Null, an infinity or the largest
 * double. */
SCONCE_CHECK sconce_status conv_bounds(struct plan *p, const struct node *n, uint32_t low,
                                       uint32_t high, struct conv_end *end);

extern const struct kernel conv_kernels[];
extern const struct op ops_conv[]; /* the first is a convolution without bounds */

/* n: the convolution. */
SCONCE_CHECK sconce_status conv_emit(struct plan *p, const struct node *n,
                                     const struct conv_end *end);
SCONCE_CHECK sconce_status conv_prepare(struct plan *p, struct node *n);

#endif
