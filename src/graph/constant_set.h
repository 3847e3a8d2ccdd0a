/* Constants by what they hold: an open hash table of value ids in the graph's arena. */
#ifndef GRAPH_CONSTANT_SET_H
#define GRAPH_CONSTANT_SET_H

#include "graph/graph.h"

/* The constant in the set that has t's bytes in this layout, or NO_VALUE. */
uint32_t constant_find(const struct graph *g, const struct constant_set *set,
                       const struct tensor *t, const struct packing *packing);
/* Adds one that is not in it yet; false: no memory. */
SCONCE_CHECK bool constant_add(struct graph *g, struct constant_set *set, uint32_t id);

#endif
