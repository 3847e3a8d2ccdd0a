/* A fused node of 4-bit projections: what the passes say of it to the kernels. */
#ifndef OPS_LINEAR_Q4_FUSED_H
#define OPS_LINEAR_Q4_FUSED_H

#include "graph/rewrite.h"

enum { Q4_MOST = 3 };                              /* projections of one node */
enum { Q4_X, Q4_W, Q4_SCALES, Q4_GROUP, Q4_BIAS }; /* arguments of a projection */

/* Parts by their order in the chain. */
struct q4_fusion {
  uint32_t n, linear[Q4_MOST];
  uint32_t norm, add, glu; /* NO_NODE: none; glu is the last product, linear[0] the gate */
};

extern const struct op ops_linear_q4_fused[];

#endif
