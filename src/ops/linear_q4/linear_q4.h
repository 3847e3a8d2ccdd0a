/* Linear with 4-bit weights in groups, for the operators that end in one. */
#ifndef OPS_LINEAR_Q4_H
#define OPS_LINEAR_Q4_H

#include "ops/linear/rows.h"

/* y = x · Wᵀ + bias. x is (m, k) in a tensor of any shape, float32 or of y's dtype. */
struct q4_linear {
  uint32_t x, w, scales, y; /* value ids; scales as q4_prepare laid them out */
  uint32_t bias, bias_kind; /* bias_kind: see rows_bias */
  uint32_t m, k, n;
  uint32_t group;
};

/* Checks the weight, scales and group of a node against each other, and against k. */
SCONCE_CHECK sconce_status q4_check(struct plan *p, const struct tensor *w,
                                    const struct tensor *scales, int64_t group, uint32_t k);
SCONCE_CHECK sconce_status q4_emit(struct plan *p, const struct q4_linear *l);

#endif
