/* GPU memory: the graph is built and planned as a load would, with WebGPU's default limits in place
 * of a device, and its buffers are added up. */
#include "inspect/inspect.h"

#include "run/delegate.h"

#include <inttypes.h>

static sconce_status build(struct inspect *x, struct inspect_method *m, struct graph *g,
                           sconce_error *err) {
  struct draw draw;
  if (x->kind == INSPECT_PROGRAM) return program_graph(g, x->model, &m->m, &draw, err);
  TRY(delegate_build(g, &m->delegates->vk, err));
  return graph_finish(g, err);
}

sconce_status inspect_build(struct inspect *x, struct inspect_method *m, struct graph *g,
                            sconce_error *err) {
  g->arena.most = x->model ? model_host_bytes(x->model) : host_bytes(x->file.size);
  return arena_tell(&g->arena, build(x, m, g, err), err);
}

/* Of a call of the largest dims; nodes that follow from its inputs are planned with it alone. Where
 * that call cannot be planned, those that do not. */
static sconce_status count_dispatches(struct inspect *x, struct graph *g, uint32_t *n,
                                      sconce_error *err) {
  static const sconce_inspect_desc largest = {0};
  const struct arena_mark start = arena_mark(&x->arena);
  *n = inspect_dispatches(g);
  sconce_status status = inspect_call(x, g, &largest, err);
  if (status == SCONCE_OK) *n = inspect_dispatches(g);
  arena_rewind(&x->arena, start);
  return status == SCONCE_NO_MEMORY ? status : SCONCE_OK;
}

static sconce_status plan(struct inspect *x, struct inspect_method *m, const struct caps *caps,
                          sconce_error *err) {
  struct graph g;
  graph_init(&g, &x->arena.allocator, caps);
  sconce_status status = inspect_build(x, m, &g, err);
  if (status == SCONCE_OK) {
    for (uint32_t i = 0; i < g.n_buffers; i++)
      m->memory.bytes[g.buffers[i].kind] += g.buffers[i].size;
    m->memory.nodes = g.n_nodes;
    status = count_dispatches(x, &g, &m->memory.dispatches, err);
  }
  graph_free(&g);
  return status;
}

static sconce_status keep(struct inspect *x, const char *sentence, const char **out,
                          sconce_error *err) {
  *out = arena_copy_text(&x->arena, sentence, strlen(sentence));
  return *out ? SCONCE_OK : fail(err, SCONCE_NO_MEMORY, "no memory for a sentence");
}

static sconce_status find_missing(struct inspect *x, const struct inspect_method *m,
                                  sconce_error *err) {
  for (uint32_t i = 0; i < m->n_delegates; i++) {
    const uint32_t n = m->delegates[i].n_missing;
    if (n)
      return fail(err, SCONCE_BAD_FILE, "%u constant%s in other files: name the .ptd files too", n,
                  n == 1 ? " is" : "s are");
  }
  return x->kind == INSPECT_PROGRAM ? ptd_set_match(&x->model->data, &x->model->pte, err)
                                    : SCONCE_OK;
}

sconce_status inspect_ready(struct inspect *x, const struct inspect_method *m, sconce_error *err) {
  char blocked[200];
  if (method_blocked(m, blocked)) return fail(err, SCONCE_UNSUPPORTED, "%s", blocked);
  return find_missing(x, m, err);
}

static sconce_status not_planned(struct inspect *x, struct inspect_method *m,
                                 const sconce_error *why, sconce_error *err) {
  if (why->status == SCONCE_NO_MEMORY) return fail(err, why->status, "%s", why->text);
  return keep(x, why->text, &m->memory.unknown, err);
}

/* Fails only for want of memory: what stands in the way of a plan is part of the report. */
sconce_status inspect_memory(struct inspect *x, struct inspect_method *m, sconce_error *err) {
  struct caps caps;
  sconce_error why = {0};
  sconce_status status = inspect_caps("default", &caps, &why);
  if (status == SCONCE_OK) status = inspect_ready(x, m, &why);
  if (status != SCONCE_OK) return not_planned(x, m, &why, err);
  status = plan(x, m, &caps, &why);
  if (status == SCONCE_UNSUPPORTED || status == SCONCE_NO_GPU_MEMORY) {
    TRY(keep(x, why.text, &m->memory.raised, err));
    caps.max_buffer = caps.max_storage_binding = UINT64_MAX / 2;
    status = plan(x, m, &caps, &why);
  }
  if (status == SCONCE_OK) return SCONCE_OK;
  m->memory.raised = NULL;
  return not_planned(x, m, &why, err);
}
