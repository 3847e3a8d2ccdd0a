/* Windows: see window.h. */
#include "ops/pool/window.h"

#include <inttypes.h>
#include <string.h>

sconce_status window_sizes(struct plan *p, const struct node *n, uint32_t i, uint32_t dims,
                           uint32_t least, const uint32_t *absent, uint32_t out[PLANE_DIMS]) {
  int64_t list[PLANE_DIMS];
  uint32_t count;
  TRY(arg_ints(p, n, i, list, PLANE_DIMS, &count));
  if (count == 0 && absent) {
    memcpy(out, absent, PLANE_DIMS * sizeof *out);
    return SCONCE_OK;
  }
  if (count != 1 && count != dims)
    return fail(p->err, SCONCE_BAD_GRAPH, "argument %u has %u integers for %u dims", i, count,
                dims);
  for (uint32_t d = 0; d < dims; d++) {
    int64_t size = list[count == 1 ? 0 : d];
    if (size < least || size > INT32_MAX / 4)
      return fail(p->err, SCONCE_BAD_GRAPH, "argument %u has %" PRId64 ", expected %u to %d", i,
                  size, least, INT32_MAX / 4);
    out[PLANE_DIMS - dims + d] = (uint32_t)size;
  }
  return SCONCE_OK;
}

static sconce_status check_pads(struct plan *p, const struct window *w) {
  for (uint32_t d = 0; d < PLANE_DIMS; d++) {
    uint64_t span = (uint64_t)w->dilation[d] * (w->kernel[d] - 1) + 1;
    if (2 * (uint64_t)w->pad[d] > span)
      return fail(p->err, SCONCE_BAD_GRAPH,
                  "a padding of %u is more than half of a window of %" PRIu64, w->pad[d], span);
  }
  return SCONCE_OK;
}

sconce_status window_of(struct plan *p, const struct node *n, uint32_t i, uint32_t dims,
                        bool dilated, struct window *out) {
  *out = (struct window){.kernel = {1, 1, 1}, .stride = {1, 1, 1}, .dilation = {1, 1, 1}};
  TRY(window_sizes(p, n, i, dims, 1, NULL, out->kernel));
  TRY(window_sizes(p, n, i + 1, dims, 1, out->kernel, out->stride));
  TRY(window_sizes(p, n, i + 2, dims, 0, NULL, out->pad));
  if (dilated) TRY(window_sizes(p, n, i + 3, dims, 1, NULL, out->dilation));
  TRY(arg_bool(p, n, i + (dilated ? 4 : 3), &out->ceil));
  return check_pads(p, out);
}

/* With `ceil` the last one may reach over the padding's end, but not begin there. */
sconce_status window_count(struct plan *p, const struct window *w, uint32_t d, uint32_t size,
                           uint32_t *out) {
  int64_t span = (int64_t)w->dilation[d] * (w->kernel[d] - 1) + 1;
  int64_t room = (int64_t)size + 2 * (int64_t)w->pad[d] - span, step = w->stride[d];
  if (room < 0)
    return fail(p->err, SCONCE_BAD_ARGUMENT,
                "a window of %" PRId64 " in a dim of %u with a padding of %u", span, size,
                w->pad[d]);
  int64_t count = (room + (w->ceil ? step - 1 : 0)) / step + 1;
  if (w->ceil && (count - 1) * step >= (int64_t)size + w->pad[d]) count--;
  *out = (uint32_t)count;
  return SCONCE_OK;
}
