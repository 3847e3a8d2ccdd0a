/* The choice of the next token as the last node of a language model's graph: it reads the logits,
 * and puts the token where the next call finds its ids. */
#ifndef RUN_DRAW_H
#define RUN_DRAW_H

#include "graph/graph.h"
#include "sconce.h"

enum { DRAW_ROWS_MAX = 8 }; /* tokens of one call: products of more rows are no vectors */

struct draw {
  uint32_t token;  /* int32 [1, DRAW_ROWS_MAX], or NO_VALUE: the graph has no such node */
  uint32_t how[7]; /* SymInts: seed (low, high), position, top_k, temperature, top_p, min_p */
  uint32_t rows;   /* SymInt: rows of logits that a call wants, 0: those of the file; or NO_VALUE */
  uint32_t rows_max; /* …and that it can have */
  bool widened;      /* the file's logits are one row, the graph's may be rows_max */
};

/* Adds the node to a graph that looks like a language model's: ids [1, n] first among one or two
 * inputs, one output of logits, and state; if the device can run it. Before graph_finish. */
SCONCE_CHECK sconce_status draw_add(struct graph *g, struct draw *d, sconce_error *err);
/* Within a call. NULL: nothing is chosen, and the node costs nothing. Else a token is chosen from
 * each of the last `rows` rows (0: from the last), where how->position is the last one's. */
SCONCE_CHECK sconce_status draw_set(struct graph *g, const struct draw *d, const sconce_draw *how,
                                    uint32_t rows, sconce_error *err);

#endif
