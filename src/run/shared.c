/* See shared.h. */
#include "run/shared.h"

#include "graph/flow.h"

/* Does the host look at what the device computes before it can go on, or is it sent as it loops? */
static bool is_split(const struct graph *g) {
  if (flow_has_loops(g)) return true;
  for (uint32_t i = 0; i < g->n_nodes; i++)
    if (node_reads_device(g, &g->nodes[i])) return true;
  return false;
}

static sconce_status open_buffers(struct shared *h, struct weight **todo, uint32_t *n,
                                  sconce_error *err) {
  const struct graph *g = h->graph;
  const bool split = is_split(g);
  for (uint32_t i = 0; i < g->n_buffers; i++) {
    const struct buffer *b = &g->buffers[i];
    if (b->kind == BUFFER_CONSTANT || b->kind == BUFFER_STATE) {
      TRY(weights_take(h->weights, g, i, &h->held[i], err));
      if (!h->held[i]->there) todo[(*n)++] = h->held[i];
    }
    if (b->kind == BUFFER_CONSTANT) h->buffers[i] = h->held[i]->buffer;
    if (b->kind == BUFFER_TRANSIENT && !split)
      TRY(gpu_buffer_open(h->gpu, GPU_TRANSIENT, b->size, "transient", &h->buffers[i], err));
  }
  return SCONCE_OK;
}

sconce_status shared_begin(struct shared *h, struct gpu *gpu, struct weights *weights,
                           struct graph *graph, sconce_error *err) {
  *h = (struct shared){.gpu = gpu, .weights = weights, .graph = graph};
  h->held = arena_new(&graph->arena, struct weight *, graph->n_buffers);
  h->buffers = arena_new(&graph->arena, struct gpu_buffer *, graph->n_buffers);
  struct weight **todo = arena_new(&graph->arena, struct weight *, graph->n_buffers);
  if (!h->held || !h->buffers || !todo)
    return fail(err, SCONCE_NO_MEMORY, "no memory for %u buffers", graph->n_buffers);
  uint32_t n = 0;
  TRY(open_buffers(h, todo, &n, err));
  load_init(&h->load, weights, todo, n);
  return SCONCE_OK;
}

sconce_status shared_poll(struct shared *h, bool *done, sconce_error *err) {
  *done = h->ready;
  if (h->ready) return SCONCE_OK;
  TRY(load_poll(&h->load, done, err));
  h->ready = *done;
  return SCONCE_OK;
}

sconce_status shared_finish(struct shared *h, sconce_error *err) {
  for (bool done = false; !done;) TRY(shared_poll(h, &done, err));
  return gpu_settle(h->gpu, err);
}

void shared_free(struct shared *h) {
  load_free(&h->load);
  for (uint32_t i = 0; h->buffers && h->held && i < h->graph->n_buffers; i++) {
    if (h->graph->buffers[i].kind == BUFFER_TRANSIENT) gpu_buffer_close(h->buffers[i]);
    weights_give_back(h->weights, h->held[i]);
  }
  *h = (struct shared){0};
}
