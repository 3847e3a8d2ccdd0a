/* Means and variances over any set of dims: what the operators of this family and norms of batches
 * are made of. */
#ifndef OPS_MOMENTS_H
#define OPS_MOMENTS_H

#include "graph/op.h"

/* An operator that uses them lists both. */
extern const struct kernel moments_kernels[], moments_out_kernels[];

/* How many results there are, and how many elements each is of; bit i of `reduced`: dim i. */
uint64_t moments_results(const uint32_t *dims, uint32_t rank, uint32_t reduced);
uint64_t moments_count(const uint32_t *dims, uint32_t rank, uint32_t reduced);

/* Puts the mean and the sum of squared deviations of each result into `stats`, 2 float32 each. */
SCONCE_CHECK sconce_status moments_emit(struct plan *p, const struct node *n, uint32_t x,
                                        uint32_t reduced, uint32_t stats);

/* `divisor` is what the squares are divided by; 0 makes the variance infinite or NaN, and the mean
 * of nothing NaN. */
enum moment { MOMENT_MEAN, MOMENT_VARIANCE, MOMENT_FACTOR }; /* FACTOR: 1 / sqrt(variance + eps) */
SCONCE_CHECK sconce_status moments_out(struct plan *p, const struct node *n, uint32_t stats,
                                       enum moment moment, double divisor, double eps, uint32_t y);

#endif
