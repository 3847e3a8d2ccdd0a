/* Tensors as planes: how pooling, resampling and norms of channels see them.
 *
 * The last dims, at most three, are a plane's depth, height and width; those in front of them count
 * planes, which lie one behind the other. A tensor that is larger than a binding is split between
 * planes. */
#ifndef OPS_PLANES_H
#define OPS_PLANES_H

#include "graph/op.h"

enum { PLANE_DIMS = 3 };

struct planes {
  uint64_t n;                /* planes */
  uint64_t numel;            /* elements of one */
  uint32_t size[PLANE_DIMS]; /* depth, height, width; 1 for dims that it lacks */
};

/* The last `dims` of x's live dims as a plane. */
SCONCE_CHECK sconce_status planes_of(struct plan *p, const struct tensor *x, uint32_t dims,
                                     struct planes *out);

/* How many of n planes one dispatch may take, if bytes[i] are a plane's bytes in operand i: all of
 * them, or as many as keep each binding within the device's limit and each offset aligned. 0 if not
 * even one plane fits. */
uint64_t planes_part(const struct plan *p, uint64_t n, const uint64_t *bytes, uint32_t operands);

/* `count` planes of `numel` elements each, from plane `first` on, as a binding. */
struct operand planes_operand(struct plan *p, uint32_t id, uint64_t numel, uint64_t first,
                              uint64_t count);

#endif
