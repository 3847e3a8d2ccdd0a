/* Linear with 4-bit weights in groups, for the operators that end in one. */
#ifndef OPS_LINEAR_Q4_H
#define OPS_LINEAR_Q4_H

#include "ops/linear/rows.h"

/* How scales lie on the device: by row of the weight. */
extern const struct packing q4_scales;
/* A weight with even k in the high nibbles as one with even k in the low ones. */
extern const struct packing q4_turned;

/* y = x · Wᵀ + bias. x is (m, k) in a tensor of any shape, float32 or of y's dtype. */
struct q4_linear {
  uint32_t x, w, scales, y; /* value ids; scales packed as q4_scales */
  uint32_t bias, bias_kind; /* bias_kind: see rows_bias */
  uint32_t m, k, n;
  uint32_t group, groups; /* codes that share a scale; scales of a row */
};

/* Do the weight, its scales and the size of its groups fit each other, and rows of k? */
bool q4_fits(const struct tensor *w, const struct tensor *scales, int64_t group, uint32_t k);
/* From a node whose scales are laid out in extra[0], checked; `at`: which argument is which. */
struct q4_args {
  uint32_t x, w, scales, group, bias;
};
SCONCE_CHECK sconce_status q4_linear_of(struct plan *p, const struct node *n, struct q4_args at,
                                        struct q4_linear *out);
/* n's operator lists both tables. */
SCONCE_CHECK sconce_status q4_emit(struct plan *p, const struct node *n, const struct q4_linear *l);
extern const struct kernel q4_kernels[], q4_kernels_f32_f16[];

/* What the predicates of all 4-bit tables look at. */
struct q4_problem {
  uint32_t m, k, rows; /* rows: of the weight, or of all weights of a fused node */
  bool vector;         /* kernels that read units of 32 codes can do it */
  bool tile;           /* and those of 64 by 64 results */
};
bool q4_few_rows(const void *problem);
bool q4_long_rows(const void *problem);
bool q4_vector(const void *problem);
bool q4_vector64(const void *problem);

/* For kernels that read units of 32 codes: unit >> *shift is a unit's group. false: groups are no
 * 32 · 2^i, nor all of k. */
bool q4_shift(uint32_t group, uint32_t k, uint32_t *shift);
/* Workgroups for m rows of x and so many of the weight; each stages x once for several blocks where
 * there are more than fill a large device. */
uint64_t q4_workgroups(uint32_t m, uint64_t rows, const struct kernel *row, uint32_t *blocks);

/* Rows of the kernels that use q4_rows.wgsl: `rows` rows for `threads` threads, which take `units`
 * units of them at a time. Bytes: x, sums, squares. */
#define Q4_WIDE(name, wgsl, set, dtype, fits, rows, units, threads)                                \
  {name,                                                                                           \
   wgsl,                                                                                           \
   "T=" #threads "u U=" #units "u use=q4_i24 use=q4_four use=q4_r" #rows " use=shuffle_r" #rows    \
   " use=sums_shuffle " set,                                                                       \
   dtype,                                                                                          \
   NEEDS_SUBGROUPS | NEEDS_WIDE,                                                                   \
   fits,                                                                                           \
   {256 / threads * rows, rows},                                                                   \
   256,                                                                                            \
   threads * units * 112 + 32 * rows + 32}
#define Q4_MEMORY(name, wgsl, set, dtype, fits, threads)                                           \
  {name,                                                                                           \
   wgsl,                                                                                           \
   "T=" #threads "u use=q4_f32 use=q4_four use=q4_r4 use=sums_memory " set,                        \
   dtype,                                                                                          \
   0,                                                                                              \
   fits,                                                                                           \
   {256 / threads * 4, 4},                                                                         \
   256,                                                                                            \
   threads * 128 + 5120}

#endif
