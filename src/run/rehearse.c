/* See rehearse.h. */
#include "run/rehearse.h"

#include "graph/op.h"

#include <string.h>

/* One call to be planned. */
struct scene {
  uint32_t dims;   /* of live inputs; 0: the maximum */
  uint64_t scalar; /* every element of inputs that scalars are read from */
  const sconce_draw *draw;
};

struct stage {
  struct graph *g;
  const struct draw *draw;
  const bool *live;
  uint8_t **elements; /* by input, NULL where no scalar is read from it */
  struct rehearsal *out;
};

static void note(struct rehearsal *r, const struct kernel *row) {
  for (uint32_t i = 0; i < r->n; i++)
    if (r->rows[i] == row) return;
  if (r->n < REHEARSED_MAX) r->rows[r->n++] = row;
}

static void note_planned(const struct graph *g, struct rehearsal *r) {
  for (uint32_t i = 0; i < g->planned; i++)
    for (uint32_t k = 0; k < g->nodes[i].n_records; k++) note(r, g->nodes[i].records[k].row);
}

static sconce_status set_input(struct stage *s, uint32_t i, const struct scene *scene,
                               sconce_error *err) {
  struct graph *g = s->g;
  struct tensor *t = &g->values[g->inputs[i]].tensor;
  uint32_t dims[RANK_MAX];
  memcpy(dims, t->dim_max, sizeof dims);
  for (uint32_t d = 0; s->live[i] && scene->dims && d < t->rank; d++)
    if (dims[d] > scene->dims) dims[d] = scene->dims;
  TRY(graph_set_dims(g, g->inputs[i], dims, t->rank, err));
  if (!s->elements[i]) return SCONCE_OK;
  const uint32_t size = vk_dtype_size(t->dtype);
  for (uint64_t e = 0; e < tensor_numel_max(t); e++)
    for (uint32_t b = 0; b < size; b++)
      s->elements[i][e * size + b] = (uint8_t)(b < 8 ? scene->scalar >> (8 * b) & 255 : 0);
  t->host = s->elements[i];
  return graph_touch(g, g->inputs[i], err);
}

static sconce_status plan(struct stage *s, const struct scene *scene, sconce_error *err) {
  for (uint32_t i = 0; i < s->g->n_inputs; i++)
    if (s->g->values[s->g->inputs[i]].kind == VK_TENSOR) TRY(set_input(s, i, scene, err));
  TRY(draw_set(s->g, s->draw, scene->draw, err));
  return graph_plan(s->g, err);
}

/* *ok: the call could be planned. */
static sconce_status play(struct stage *s, struct scene scene, bool *ok, sconce_error *err) {
  graph_begin(s->g);
  sconce_status status = plan(s, &scene, err);
  if (status == SCONCE_OK) note_planned(s->g, s->out);
  graph_rollback(s->g);
  *ok = status == SCONCE_OK;
  return status == SCONCE_NO_MEMORY ? status : SCONCE_OK;
}

static bool is_read(const struct graph *g, uint32_t id) {
  for (uint32_t i = 0; i < g->n_nodes; i++)
    if (g->nodes[i].op->flags & OP_READS && g->nodes[i].args[0] == id) return true;
  return false;
}

static sconce_status open_stage(struct stage *s, struct arena *scratch, sconce_error *err) {
  const struct graph *g = s->g;
  s->elements = arena_new(scratch, uint8_t *, g->n_inputs);
  for (uint32_t i = 0; s->elements && i < g->n_inputs; i++) {
    const struct value *v = &g->values[g->inputs[i]];
    if (v->kind != VK_TENSOR || !is_read(g, g->inputs[i])) continue;
    s->elements[i] = arena_alloc(scratch, (size_t)tensor_nbytes_max(&v->tensor), 1, 8);
    if (!s->elements[i]) return fail(err, SCONCE_NO_MEMORY, "no memory for input %u", i);
  }
  return s->elements ? SCONCE_OK : fail(err, SCONCE_NO_MEMORY, "no memory for inputs");
}

static void close_stage(struct stage *s) {
  for (uint32_t i = 0; s->elements && i < s->g->n_inputs; i++)
    if (s->elements[i]) s->g->values[s->g->inputs[i]].tensor.host = NULL;
}

/* The largest dim of a live input; 0: none is. */
static uint32_t most_dims(const struct stage *s) {
  uint32_t most = 0;
  for (uint32_t i = 0; i < s->g->n_inputs; i++) {
    const struct value *v = &s->g->values[s->g->inputs[i]];
    for (uint32_t d = 0; v->kind == VK_TENSOR && s->live[i] && d < v->tensor.rank; d++)
      if (v->tensor.dim_max[d] > most) most = v->tensor.dim_max[d];
  }
  return most;
}

static sconce_status play_all(struct stage *s, sconce_error *err) {
  static const sconce_draw greedy = {0}, draw = {.temperature = 1, .top_k = 2, .top_p = 0.5f};
  const uint32_t most = most_dims(s);
  bool ok;
  TRY(play(s, (struct scene){.draw = &greedy}, &ok, err));
  TRY(play(s, (struct scene){.draw = &draw}, &ok, err));
  for (uint64_t dims = 1; dims < most; dims *= 2)
    TRY(play(s, (struct scene){.dims = (uint32_t)dims, .draw = &greedy}, &ok, err));
  ok = true;
  for (uint64_t at = 1; ok && at <= INT32_MAX; at = 2 * at + 1)
    TRY(play(s, (struct scene){.dims = 1, .scalar = at, .draw = &greedy}, &ok, err));
  return SCONCE_OK;
}

sconce_status rehearse(struct graph *g, const struct draw *draw, const bool *live,
                       struct rehearsal *out, sconce_error *err) {
  struct arena scratch;
  arena_init(&scratch, &g->arena.allocator);
  out->n = 0;
  struct stage stage = {.g = g, .draw = draw, .live = live, .out = out};
  sconce_status status = open_stage(&stage, &scratch, err);
  if (status == SCONCE_OK) status = play_all(&stage, err);
  close_stage(&stage);
  arena_free(&scratch);
  return status;
}
