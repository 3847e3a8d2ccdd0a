/* Arguments as an operator's kernels take them: what a file may leave to be converted becomes
 * nodes of its own in front of a node, or behind it. */
#ifndef GRAPH_ADAPT_H
#define GRAPH_ADAPT_H

#include "graph/op.h"

enum { ADAPTED_MAX = 64 }; /* arguments of a node */

/* What comes behind a node: its result goes to `temporary` and from there to where it belongs. */
struct adapted {
  uint32_t args[ADAPTED_MAX];
  uint32_t temporary; /* NO_VALUE: nothing comes behind it */
};

/* Puts into out->args what the node is to be given instead of args:
 *   a number where the operator wants a tensor (OP_NUMBERS) is a tensor of rank 0;
 *   operands of different dtypes (OP_PROMOTES) are cast to the one that PyTorch computes in;
 *   tensors that are joined (OP_JOINS) are cast to the dtype of the result;
 *   one operand (OP_FOLLOWS) is cast to the dtype of the result, or to one that kernels have;
 *   one that the result says nothing about (OP_WIDENS) to one that kernels have;
 *   a result of another dtype than that, or one that the node reads as well, is made beside. */
SCONCE_CHECK sconce_status adapt(struct graph *g, const struct op *op, const uint32_t *args,
                                 uint32_t n_args, struct adapted *out, sconce_error *err);
/* After the node was added. */
SCONCE_CHECK sconce_status adapt_result(struct graph *g, const struct adapted *a, uint32_t result,
                                        sconce_error *err);

#endif
