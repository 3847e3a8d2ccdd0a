/* Exporters lift the changes of a buffer out of a method: an operator makes its new contents, and
 * `aten::copy_` writes them back at the end. Where nobody needs the old ones any more the operator
 * can write them into the buffer, and no copy is left. */
#ifndef RUN_LIFTED_H
#define RUN_LIFTED_H

#include "graph/op.h"

/* Lets the node that makes `made` write `buffer` instead; all who read `made` then read `buffer`.
 * false: it cannot, and nothing changed. */
bool lifted_write_through(struct graph *g, uint32_t buffer, uint32_t made);

#endif
