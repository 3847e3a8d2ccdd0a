/* One delegate alone as a method: what it takes and gives is what its caller gives and takes. */
#ifndef RUN_DELEGATE_H
#define RUN_DELEGATE_H

#include "graph/graph.h"
#include "sconce.h"

/* Its chain, inputs and outputs; not yet finished. */
SCONCE_CHECK sconce_status delegate_build(struct graph *g, const struct vkgraph *vk,
                                          sconce_error *err);
/* What value `id`, an input or output, is for a caller; data is NULL. */
void delegate_border(const struct vkgraph *vk, uint32_t id, sconce_tensor *out);

#endif
