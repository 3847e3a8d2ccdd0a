#include "try_plan.h"

#include "run/model.h"
#include "run/rehearse.h"

#include <stdlib.h>

static size_t live; /* bytes not yet given back */
static void *resize(void *user, void *block, size_t old_size, size_t size) {
  (void)user;
  if ((live += size - old_size) > (size_t)256 << 20) abort();
  return size ? realloc(block, size) : (free(block), NULL);
}
static const sconce_allocator allocator = {.resize = resize};
static const struct caps caps = {.max_storage_binding = 128 << 20,
                                 .max_buffer = 256 << 20,
                                 .max_storage_buffers = 8,
                                 .max_workgroup_bytes = 16384,
                                 .max_invocations = 256,
                                 .max_workgroups = 65535,
                                 .storage_alignment = 256};

static sconce_status call(struct graph *g, uint32_t thirds, sconce_error *err) {
  static const uint8_t zeros[HOST_READ_MAX];
  graph_begin(g);
  for (uint32_t i = 0; i < g->n_inputs; i++) {
    struct value *v = &g->values[g->inputs[i]];
    if (v->kind == VK_SYMINT) TRY(graph_set_symint(g, g->inputs[i], thirds, err));
    if (v->kind != VK_TENSOR) continue;
    uint32_t dims[RANK_MAX];
    for (uint32_t d = 0; d < v->tensor.rank; d++)
      dims[d] = (uint32_t)(((uint64_t)v->tensor.dim_max[d] * thirds + 2) / 3);
    if (tensor_nbytes_max(&v->tensor) <= sizeof zeros) v->tensor.host = zeros;
    TRY(graph_set_dims(g, g->inputs[i], dims, v->tensor.rank, err));
  }
  TRY(graph_plan_unseen(g, err));
  return graph_check(g, err);
}

/* Which inputs may have smaller dims than they were exported with. */
static bool *find_dynamic(struct graph *g, const struct pte_method *m) {
  bool *dynamic = arena_new(&g->arena, bool, m->n_inputs + 1);
  for (uint32_t i = 0; dynamic && i < m->n_inputs; i++) {
    struct pte_value v = pte_value(m, (uint32_t)fb_i32_at(m->inputs, i));
    dynamic[i] = v.kind == PTE_TENSOR && v.tensor.dynamism != PTE_STATIC;
  }
  return dynamic;
}

void try_plan(const uint8_t *data, size_t size) { try_plan_with(data, size, NULL, 0); }

void try_plan_with(const uint8_t *data, size_t size, const uint8_t *ptd, size_t ptd_size) {
  sconce_error err;
  sconce_model *m;
  const sconce_file file = {.data = ptd, .size = ptd_size};
  if (model_open(&m, &allocator,
                 &(sconce_model_desc){.program = {.data = data, .size = size},
                                      .data_files = &file,
                                      .n_data_files = ptd_size > 0},
                 &err))
    return;
  struct graph g;
  graph_init(&g, &allocator, &caps);
  struct pte_method method = pte_method(&m->pte, data[size - 1] % m->pte.n_methods);
  struct draw draw;
  struct rehearsal calls;
  if (!ptd_set_match(&m->data, &m->pte, &err) && !program_graph(&g, m, &method, &draw, &err) &&
      !rehearse(&g, &draw, find_dynamic(&g, &method), false, &calls, &err))
    for (uint32_t k = 1; k <= 2; k++)
      if (call(&g, k, &err) != SCONCE_OK) graph_rollback(&g);
  graph_free(&g);
  sconce_model_close(m);
  if (live) abort();
}
