/* See rehearse.h. */
#include "run/rehearse.h"

#include "graph/op.h"

#include <string.h>

enum { SCENES_MAX = 64 }; /* a context of 8,192 takes 28 */

/* One call to be planned. */
struct scene {
  uint32_t axis, dim; /* of dynamic inputs; dim 0: the maximum */
  uint64_t scalar;    /* every element of inputs that scalars are read from */
  const sconce_draw *how;
  uint32_t rows; /* of logits */
};

struct stage {
  struct graph *g;
  const struct draw *draw;
  struct rehearsal *out;
  const bool *dynamic; /* by input */
  uint8_t **elements;  /* by input; NULL where no scalar is read from it */
  uint64_t scalar;     /* in elements now */
  uint64_t limit;      /* the largest that their dtypes hold; 0: none is read */
  bool few;
  uint32_t played;
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

/* ---- one call -------------------------------------------------------------------------------- */

static void fill(struct stage *s, uint64_t scalar) {
  for (uint32_t i = 0; i < s->g->n_inputs && scalar != s->scalar; i++) {
    const struct tensor *t = &s->g->values[s->g->inputs[i]].tensor;
    const uint32_t size = s->elements[i] ? vk_dtype_size(t->dtype) : 0;
    for (uint64_t at = 0; size && at < tensor_nbytes_max(t); at++)
      s->elements[i][at] = (uint8_t)(scalar >> (8 * (at % size)) & 255);
  }
  s->scalar = scalar;
}

static sconce_status set_input(struct stage *s, uint32_t i, const struct scene *scene,
                               sconce_error *err) {
  struct graph *g = s->g;
  struct tensor *t = &g->values[g->inputs[i]].tensor;
  uint32_t dims[RANK_MAX];
  memcpy(dims, t->dim_max, sizeof dims);
  if (s->dynamic[i] && scene->dim && scene->axis < t->rank && dims[scene->axis] > scene->dim)
    dims[scene->axis] = scene->dim;
  TRY(graph_set_dims(g, g->inputs[i], dims, t->rank, err));
  if (!s->elements[i]) return SCONCE_OK;
  t->host = s->elements[i];
  return graph_touch(g, g->inputs[i], err);
}

static sconce_status plan(struct stage *s, const struct scene *scene, sconce_error *err) {
  fill(s, scene->scalar);
  for (uint32_t i = 0; i < s->g->n_inputs; i++)
    if (s->g->values[s->g->inputs[i]].kind == VK_TENSOR) TRY(set_input(s, i, scene, err));
  TRY(draw_set(s->g, s->draw, scene->how, scene->rows, err));
  return graph_plan_unseen(s->g, err);
}

/* *ok: the call could be planned. */
static sconce_status play(struct stage *s, struct scene scene, bool *ok, sconce_error *err) {
  sconce_error why = {0};
  *ok = s->played++ < SCENES_MAX;
  if (!*ok) return SCONCE_OK;
  graph_begin(s->g);
  sconce_status status = plan(s, &scene, &why);
  *ok = status == SCONCE_OK;
  if (*ok) note_planned(s->g, s->out);
  graph_rollback(s->g);
  return status == SCONCE_NO_MEMORY ? fail(err, status, "%s", why.text) : SCONCE_OK;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static sconce_status play_scalars(struct stage *s, struct scene scene, sconce_error *err) {
  bool ok = true;
  const uint64_t largest = s->few && s->limit > FEW ? FEW : s->limit;
  for (scene.scalar = 1; ok && scene.scalar <= largest; scene.scalar = 2 * scene.scalar + 1)
    TRY(play(s, scene, &ok, err));
  return SCONCE_OK;
}

static uint32_t most(const struct stage *s, uint32_t axis) {
  uint32_t dim = 0;
  for (uint32_t i = 0; i < s->g->n_inputs; i++) {
    const struct value *v = &s->g->values[s->g->inputs[i]];
    if (v->kind == VK_TENSOR && s->dynamic[i] && axis < v->tensor.rank &&
        v->tensor.dim_max[axis] > dim)
      dim = v->tensor.dim_max[axis];
  }
  return dim;
}

static bool any_changes(const struct stage *s) {
  for (uint32_t axis = 0; axis < RANK_MAX; axis++)
    if (most(s, axis) > 1) return true;
  return false;
}

static sconce_status play_all(struct stage *s, sconce_error *err) {
  static const sconce_draw greedy = {0}, drawn = {.temperature = 1, .top_k = 2, .top_p = 0.5f};
  bool ok, any = false;
  if (!s->few || !any_changes(s)) {
    TRY(play(s, (struct scene){.how = &drawn}, &ok, err));
    TRY(play(s, (struct scene){.how = &greedy, .rows = 1}, &ok, err));
  }
  for (uint32_t axis = 0; axis < RANK_MAX; axis++) {
    struct scene scene = {.axis = axis, .how = &greedy, .rows = 1};
    const uint32_t dim = most(s, axis);
    for (uint64_t d = 1; d < dim && !(s->few && d > FEW); d *= 2) {
      scene.dim = (uint32_t)d;
      scene.rows = d <= DRAW_ROWS_MAX ? scene.dim : 1;
      TRY(play(s, scene, &ok, err));
      if (!ok) break; /* no dim that changes */
    }
    if (scene.dim == 0 || !ok) continue;
    scene.dim = scene.rows = 1;
    any = true;
    TRY(play_scalars(s, scene, err));
  }
  return any ? SCONCE_OK : play_scalars(s, (struct scene){.how = &greedy}, err);
}

static void limit(struct stage *s, enum vk_dtype dtype) {
  const uint32_t bits = 8 * vk_dtype_size(dtype) - 1;
  const uint64_t largest = bits < 31 ? (UINT64_C(1) << bits) - 1 : INT32_MAX;
  if (!s->limit || largest < s->limit) s->limit = largest;
}

static sconce_status stage_init(struct stage *s, struct arena *scratch, sconce_error *err) {
  const struct graph *g = s->g;
  bool *read = arena_new(scratch, bool, g->n_values);
  s->elements = arena_new(scratch, uint8_t *, g->n_inputs);
  if (!read || !s->elements)
    return fail(err, SCONCE_NO_MEMORY, "no memory for %u inputs", g->n_inputs);
  for (uint32_t i = 0; i < g->n_nodes; i++)
    if (g->nodes[i].op->flags & OP_READS && g->nodes[i].args[0] != NO_VALUE)
      read[g->nodes[i].args[0]] = true;
  for (uint32_t i = 0; i < g->n_inputs; i++) {
    const struct value *v = &g->values[g->inputs[i]];
    if (v->kind != VK_TENSOR) continue;
    const uint64_t nbytes = tensor_nbytes_max(&v->tensor);
    if (!read[g->inputs[i]] || nbytes == 0 || nbytes > HOST_READ_MAX) continue;
    s->elements[i] = arena_alloc(scratch, (size_t)nbytes, 1, 8);
    if (!s->elements[i]) return fail(err, SCONCE_NO_MEMORY, "no memory for input %u", i);
    limit(s, v->tensor.dtype);
  }
  return SCONCE_OK;
}

sconce_status rehearse(struct graph *g, const struct draw *draw, const bool *dynamic, bool few,
                       struct rehearsal *out, sconce_error *err) {
  struct arena scratch;
  arena_init(&scratch, &g->arena.allocator);
  if (g->arena.most) /* at least one: none would be any number */
    scratch.most = g->arena.most > g->arena.held ? g->arena.most - g->arena.held : 1;
  out->n = 0;
  struct stage stage = {.g = g, .draw = draw, .out = out, .dynamic = dynamic, .few = few};
  sconce_status status = stage_init(&stage, &scratch, err);
  if (status == SCONCE_OK) status = play_all(&stage, err);
  for (uint32_t i = 0; stage.elements && i < g->n_inputs; i++)
    if (stage.elements[i]) g->values[g->inputs[i]].tensor.host = NULL;
  g->planned = g->nodes_planned = 0;
  g->wanted = NO_VALUE;
  if (scratch.over) g->arena.over = g->arena.held + scratch.over;
  arena_free(&scratch);
  return status;
}
