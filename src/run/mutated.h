/* Buffers whose new contents come as extra outputs of a delegate. */
#ifndef RUN_MUTATED_H
#define RUN_MUTATED_H

#include "graph/graph.h"

/* Some exports give a delegate more outputs than its call has arguments: those in front are the
 * next contents of buffers inside it, which nobody takes. Each belongs to the nearest constant that
 * it is computed from and that has its dims and dtype; a copy into that one is added behind the
 * chain. An error if there is none, or if two are equally near. */
SCONCE_CHECK sconce_status mutated_write_back(struct graph *g, const uint32_t *values, uint32_t n,
                                              sconce_error *err);

#endif
