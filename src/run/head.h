/* The head of a language model: the nodes behind the last layer, which make logits of each row
 * alone. A node in front of it lets only the rows through that a call wants. */
#ifndef RUN_HEAD_H
#define RUN_HEAD_H

#include "run/draw.h"

/* Finds the head of a graph that draw_add accepts and puts sconce.last_rows in front of it. Where
 * the file takes the last row there, that becomes its usual, and a call may have up to
 * DRAW_ROWS_MAX. Does nothing where the graph is of another form. Sets rows_max and widened. */
SCONCE_CHECK sconce_status head_add(struct graph *g, struct draw *d, sconce_error *err);

#endif
