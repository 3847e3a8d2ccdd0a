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

/* What all kernels of a fused node want to know. */
struct q4_call {
  const struct q4_fusion *fusion;
  const struct node *linear[Q4_MOST], *norm;
  uint32_t x, norm_w;
  uint32_t m, k, groups, shift;
  uint32_t rows; /* of all weights */
  bool half;
  double eps;
};
extern const struct kernel q4_glu_kernels[];
/* How far `id` lies behind the first of the constants joined to that one, in units of so many
 * bytes. */
uint64_t q4_joined_to(struct plan *p, uint32_t first, uint32_t id, uint32_t unit);
/* All that was joined to the first one. */
struct operand q4_joined(struct plan *p, uint32_t first);
uint32_t q4_rows_of_weight(struct plan *p, const struct node *linear);

/* ---- fused_many.c: more rows of x than q4_vector_rows ---------------------------------------- */

SCONCE_CHECK sconce_status q4_emit_join_many(struct plan *p, const struct node *n,
                                             const struct q4_call *c);
SCONCE_CHECK sconce_status q4_emit_glu_many(struct plan *p, const struct node *n,
                                            const struct q4_call *c);
/* For preparing a node: one x in f16 for all products, and room for the sums of all as one. */
void q4_share_halves(struct node *n);
SCONCE_CHECK sconce_status q4_joined_parts(struct plan *p, struct node *n);
extern const struct kernel q4_whole_join[], q4_scaled_join[], q4_sums_join[];
#define Q4_JOINT_TABLES q4_whole_join, q4_scaled_join, q4_sums_join

#endif
