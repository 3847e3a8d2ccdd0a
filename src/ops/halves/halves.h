/* Sums of floats of 2 bytes are made in 4 and rounded at the end: the last step of such operators.
 */
#ifndef OPS_HALVES_H
#define OPS_HALVES_H

#include "graph/op.h"

extern const struct kernel halves_kernels[]; /* an operator that uses it lists it */

/* y, float16, takes the elements of `from`, float32, which lie there in the same order. */
SCONCE_CHECK sconce_status halves_emit(struct plan *p, const struct node *n, uint32_t from,
                                       uint32_t y);

#endif
