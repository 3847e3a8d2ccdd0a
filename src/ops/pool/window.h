/* Windows of planes: their arguments and how many there are. */
#ifndef OPS_POOL_WINDOW_H
#define OPS_POOL_WINDOW_H

#include "ops/planes/planes.h"

struct window {
  uint32_t kernel[PLANE_DIMS], stride[PLANE_DIMS], pad[PLANE_DIMS], dilation[PLANE_DIMS];
  bool ceil; /* a last window may reach over the padding's end */
};

/* A list with a number for each dim, or one for all; an empty one means `absent`. Dims that planes
 * lack are left alone. */
SCONCE_CHECK sconce_status window_sizes(struct plan *p, const struct node *n, uint32_t i,
                                        uint32_t dims, uint32_t least, const uint32_t *absent,
                                        uint32_t out[PLANE_DIMS]);
/* Arguments from `i` on: kernel, stride, padding, dilation (if there is one), ceil. */
SCONCE_CHECK sconce_status window_of(struct plan *p, const struct node *n, uint32_t i,
                                     uint32_t dims, bool dilated, struct window *out);
/* Windows along dim d of an x of that size. */
SCONCE_CHECK sconce_status window_count(struct plan *p, const struct window *w, uint32_t d,
                                        uint32_t size, uint32_t *out);

#endif
