/* Planes: see planes.h. */
#include "ops/planes/planes.h"

sconce_status planes_of(struct plan *p, const struct tensor *x, uint32_t dims, struct planes *out) {
  char text[120];
  if (x->rank < dims)
    return fail(p->err, SCONCE_BAD_GRAPH, "%s has no %u dims of a plane", tensor_text(x, text),
                dims);
  *out = (struct planes){.n = 1, .numel = 1, .size = {1, 1, 1}};
  for (uint32_t i = 0; i < x->rank; i++) {
    uint32_t from_end = x->rank - i;
    if (from_end > dims) {
      out->n *= x->dim_live[i];
      continue;
    }
    out->numel *= x->dim_live[i];
    out->size[PLANE_DIMS - from_end] = x->dim_live[i];
  }
  return SCONCE_OK;
}

uint64_t planes_part(const struct plan *p, uint64_t n, const uint64_t *bytes, uint32_t operands) {
  const struct caps *caps = &p->g->caps;
  uint64_t largest = 1, bits = caps->storage_alignment; /* lowest bit: what divides all of them */
  for (uint32_t i = 0; i < operands; i++) {
    bits |= bytes[i];
    if (bytes[i] > largest) largest = bytes[i];
  }
  /* Kernels count elements in 32 bits. */
  const uint64_t most =
      caps->max_storage_binding < UINT32_MAX ? caps->max_storage_binding : UINT32_MAX;
  if (n <= most / largest) return n;
  const uint64_t step = caps->storage_alignment / (bits & (~bits + 1));
  return most / largest / step * step;
}

struct operand planes_operand(struct plan *p, uint32_t id, uint64_t numel, uint64_t first,
                              uint64_t count) {
  const struct tensor *t = tensor_at(p, id);
  if (!t || (first == 0 && tensor_nbytes_max(t) <= p->g->caps.max_storage_binding))
    return (struct operand){id, 0, 0};
  const uint64_t bytes = numel * vk_dtype_size(t->dtype);
  return (struct operand){id, first * bytes, count * bytes};
}
