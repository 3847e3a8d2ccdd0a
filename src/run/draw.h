/* The choice of the next token as the last node of a language model's graph: it reads the logits,
 * and puts the token where the next call finds its ids. */
#ifndef RUN_DRAW_H
#define RUN_DRAW_H

#include "graph/graph.h"
#include "sconce.h"

struct draw {
  uint32_t token;  /* int32 [1, 1], or NO_VALUE: the graph has no such node */
  uint32_t how[7]; /* SymInts: seed (low, high), position, top_k, temperature, top_p, min_p */
};

/* Adds the node to a graph that looks like a language model's: ids [1, n] first among one or two
 * inputs, one output of logits, and state; if the device can run it. Before graph_finish. */
SCONCE_CHECK sconce_status draw_add(struct graph *g, struct draw *d, sconce_error *err);
/* Within a call; NULL: nothing is chosen, and the node costs nothing. */
SCONCE_CHECK sconce_status draw_set(struct graph *g, const struct draw *d, const sconce_draw *how,
                                    sconce_error *err);

#endif
