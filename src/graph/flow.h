/* Jumps in a chain, and the segments between the decisions that the host makes.
 *
 * A label is a node that jumps name; a jump is a node that looks at a condition. Both dispatch
 * nothing, and no pass moves anything across them. A segment is a run of nodes without a label or
 * a jump inside in which nothing is given once more after it was read: so all its shapes can come
 * before all its records. A chain without jumps is one segment, unless it counts in place. */
#ifndef GRAPH_FLOW_H
#define GRAPH_FLOW_H

#include "graph/op.h"

extern const struct op flow_label; /* [label] */
extern const struct op flow_jump;  /* [condition, label]: goes there if the condition is false */
extern const struct op flow_move;  /* [from, to]: of scalars */

/* A label to be placed once and jumped to from anywhere; NO_VALUE with an error without memory. */
uint32_t flow_add_label(struct graph *g, sconce_error *err);
static inline bool flow_is_jump(const struct node *n) { return n->op == &flow_jump; }
/* The node that a jump leads to; known from flow_finish on. */
uint32_t flow_target(const struct graph *g, const struct node *jump);

/* After the passes: finds where labels lie, and where segments begin. */
SCONCE_CHECK sconce_status flow_finish(struct graph *g, sconce_error *err);

/* Is there a jump backwards? From flow_finish on. */
bool flow_has_loops(const struct graph *g);

/* Which nodes may run again after one another: see flow_loops. */
struct flow_loops {
  uint32_t *block;       /* by node: nodes of one block run in their order, with nothing between */
  uint32_t *first, *end; /* by node: the loop around it, or an empty range */
};
/* Loops that overlap count as one. NULL arrays: there is no backward jump. */
SCONCE_CHECK sconce_status flow_find_loops(struct graph *g, struct flow_loops *out,
                                           sconce_error *err);

#endif
