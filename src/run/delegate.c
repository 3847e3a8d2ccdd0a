/* See delegate.h. */
#include "run/delegate.h"

#include <string.h>

static sconce_status set_border(struct graph *g, struct fb_vec ids, const uint32_t *map, bool input,
                                uint32_t **out, sconce_error *err) {
  *out = arena_new(&g->arena, uint32_t, ids.n);
  if (!*out) return fail(err, SCONCE_NO_MEMORY, "no memory for %u values", ids.n);
  for (uint32_t i = 0; i < ids.n; i++) {
    struct value *v = &g->values[(*out)[i] = map[fb_u32_at(ids, i)]];
    if (v->kind != VK_TENSOR) continue;
    struct tensor *t = &v->tensor;
    if (input && t->input)
      return fail(err, SCONCE_UNSUPPORTED, "input %u is an earlier input again", i);
    t->input |= input;
    t->output |= !input;
    t->written |= input && t->defined;
  }
  return SCONCE_OK;
}

sconce_status delegate_build(struct graph *g, const struct vkgraph *vk, sconce_error *err) {
  uint32_t *map = arena_new(&g->arena, uint32_t, vk->n_values);
  const void **lists = arena_new(&g->arena, const void *, vk->n_values);
  if (!map || !lists) return fail(err, SCONCE_NO_MEMORY, "no memory for %u values", vk->n_values);
  for (uint32_t i = 0; i < vk->n_values; i++) map[i] = NO_VALUE;
  TRY(graph_add_delegate(g, vk, map, lists, err));
  TRY(set_border(g, vk->inputs, map, true, &g->inputs, err));
  TRY(set_border(g, vk->outputs, map, false, &g->outputs, err));
  g->n_inputs = vk->n_inputs;
  g->n_outputs = vk->n_outputs;
  return SCONCE_OK;
}

/* A graph of 16-bit floats may still have 32-bit ones outside: its staging says so. */
static sconce_dtype dtype_outside(const struct vk_tensor *t) {
  switch (t->staging == VK_UNSET ? t->dtype : t->staging) {
  case VK_BOOL:
    return SCONCE_BOOL;
  case VK_UINT8:
    return SCONCE_UINT8;
  case VK_INT8:
    return SCONCE_INT8;
  case VK_INT32:
    return SCONCE_INT32;
  case VK_INT64:
    return SCONCE_INT64;
  case VK_FLOAT16:
    return SCONCE_FLOAT16;
  case VK_FLOAT64:
    return SCONCE_FLOAT64;
  default:
    return SCONCE_FLOAT32;
  }
}

void delegate_border(const struct vkgraph *vk, uint32_t id, sconce_tensor *out) {
  const struct vk_value v = vkgraph_value(vk, id);
  *out = (sconce_tensor){.dtype = SCONCE_INT64}; /* a live scalar */
  if (v.kind != VK_TENSOR) return;
  out->dtype = dtype_outside(&v.tensor);
  out->rank = v.tensor.rank;
  memcpy(out->dims, v.tensor.dims, v.tensor.rank * sizeof *out->dims);
}
