/* Touches everything that the readers' accessors offer, so that a sanitizer sees every access that
 * an accepted file can cause. The results are sums of what was read: only good for comparing. */
#ifndef WALK_H
#define WALK_H

#include "format/ptd.h"
#include "format/vkgraph.h"

uint64_t walk_pte(const struct pte *pte); /* delegates of the VulkanBackend included */
uint64_t walk_ptd(const struct ptd *ptd);
uint64_t walk_vkgraph(const struct vkgraph *g);

/* Opens by its first bytes and walks what is accepted. */
sconce_status walk_file(struct span file, sconce_error *err);
sconce_status walk_blob(struct span blob, struct data_lookup named, sconce_error *err);

#endif
