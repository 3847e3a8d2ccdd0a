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
/* From a node whose scales are laid out in extra[0], checked; `at`: which argument is which. */
struct q4_args {
  uint32_t x, w, scales, group, bias;
};
SCONCE_CHECK sconce_status q4_linear_of(struct plan *p, const struct node *n, struct q4_args at,
                                        struct q4_linear *out);
SCONCE_CHECK sconce_status q4_emit(struct plan *p, const struct q4_linear *l);

/* For kernels that read units of 32 codes: unit >> *shift is a unit's group. false: groups are no
 * 32 · 2^i, nor all of k. */
bool q4_shift(uint32_t group, uint32_t k, uint32_t *shift);
/* Workgroups for m rows of x and so many of the weight; each stages x once for several blocks where
 * there are more than fill a large device. */
uint64_t q4_workgroups(uint32_t m, uint64_t rows, const struct kernel *row, uint32_t *blocks);

/* Rows of the kernels that use q4_rows.wgsl: `rows` rows for `threads` threads, which take `units`
 * units of them at a time. Bytes: x, sums, squares. */
#define Q4_WIDE(name, wgsl, set, fits, rows, units, threads)                                       \
  {name,                                                                                           \
   wgsl,                                                                                           \
   "T=" #threads "u U=" #units "u use=q4_i24 use=q4_four use=q4_r" #rows " use=shuffle_r" #rows    \
   " use=sums_shuffle " set,                                                                       \
   NEEDS_SUBGROUPS | NEEDS_WIDE,                                                                   \
   fits,                                                                                           \
   {256 / threads * rows, rows},                                                                   \
   256,                                                                                            \
   threads * units * 112 + 32 * rows + 32}
#define Q4_MEMORY(name, wgsl, set, fits, threads)                                                  \
  {name,                                                                                           \
   wgsl,                                                                                           \
   "T=" #threads "u use=q4_f32 use=q4_four use=q4_r4 use=sums_memory " set,                        \
   0,                                                                                              \
   fits,                                                                                           \
   {256 / threads * 4, 4},                                                                         \
   256,                                                                                            \
   threads * 128 + 5120}

#endif
