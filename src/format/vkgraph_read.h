/* Between vkgraph.c (header and accessors) and vkgraph_verify.c (what a graph means). */
#ifndef FORMAT_VKGRAPH_READ_H
#define FORMAT_VKGRAPH_READ_H

#include "format/vkgraph.h"

/* A graph whose structure is verified. */
sconce_status vkgraph_verify(const struct vkgraph *g, sconce_error *err);

/* A VkTensor as a view. After vkgraph_verify it cannot fail. */
sconce_status vkgraph_read_tensor(struct fb_table t, struct vk_tensor *out, sconce_error *err);
/* The content of value i: the union's table. */
struct fb_table vkgraph_value_table(const struct vkgraph *g, uint32_t i);
/* Bytes of a constant tensor; OK with an empty extent for a named one when there is no lookup. */
sconce_status vkgraph_read_bytes(const struct vkgraph *g, const struct vk_tensor *t,
                                 struct extent *out, sconce_error *err);

#endif
