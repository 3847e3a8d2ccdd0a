/* Means and variances over any set of dims: what the operators of this family and norms of batches
 * are made of. */
#ifndef OPS_MOMENTS_H
#define OPS_MOMENTS_H

#include "graph/op.h"

/* An operator that uses them lists the first three; one that uses moments_norm, all. */
extern const struct kernel moments_kernels[], moments_join_kernels[], moments_out_kernels[],
    moments_norm_kernels[];

/* How many results there are, and how many elements each is of; bit i of `reduced`: dim i. */
uint64_t moments_results(const uint32_t *dims, uint32_t rank, uint32_t reduced);
uint64_t moments_count(const uint32_t *dims, uint32_t rank, uint32_t reduced);

/* From op->prepare, with what the two above say of the largest dims: makes n->extra[first] for
 * moments_emit, and the next one for itself. */
SCONCE_CHECK sconce_status moments_prepare(struct plan *p, struct node *n, uint32_t first,
                                           uint64_t results, uint64_t count);
/* Puts the mean and the sum of squared deviations of each result into n->extra[first], 2 float32
 * each. */
SCONCE_CHECK sconce_status moments_emit(struct plan *p, const struct node *n, uint32_t x,
                                        uint32_t reduced, uint32_t first);
/* The same of a tensor as rows. */
SCONCE_CHECK sconce_status moments_rows(struct plan *p, const struct node *n, uint32_t x,
                                        uint32_t rows, uint32_t cols, uint32_t first);

/* `divisor` is what the squares are divided by; 0 makes the variance infinite or NaN, and the mean
 * of nothing NaN. */
enum moment { MOMENT_MEAN, MOMENT_VARIANCE, MOMENT_FACTOR }; /* FACTOR: 1 / sqrt(variance + eps) */
SCONCE_CHECK sconce_status moments_out(struct plan *p, const struct node *n, uint32_t first,
                                       enum moment moment, double divisor, double eps, uint32_t y);

/* Rows of x normalised by their own moments, for norms of rows too long for one workgroup: row r
 * has `depth` channels of `inner` elements, the first of them channel r % groups * depth. */
struct moments_norm {
  uint32_t x, y, mean, rstd;   /* values; the last two get a number for each row */
  const struct operand *w, *b; /* by channel; NULL: none */
  uint32_t cols, groups, depth, inner;
  double eps;
};
SCONCE_CHECK sconce_status moments_norm(struct plan *p, const struct node *n, uint32_t first,
                                        const struct moments_norm *m);

#endif
