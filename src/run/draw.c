/* See draw.h. */
#include "run/draw.h"

#include "graph/op.h"
#include "run/head.h"

#include <string.h>

enum { SEED_LOW, SEED_HIGH, POSITION, TOP_K, TEMPERATURE, TOP_P, MIN_P, HOW };

static bool has_state(const struct graph *g) {
  for (uint32_t i = 0; i < g->n_values; i++) {
    const struct value *v = &g->values[i];
    if (v->kind == VK_TENSOR && v->tensor.constant && v->tensor.written) return true;
  }
  return false;
}

static bool is_state(const struct graph *g, uint32_t id) {
  const struct value *v = id == NO_VALUE ? NULL : &g->values[id];
  for (uint32_t i = 0; v && v->kind == VK_VALUE_LIST && i < v->list.n; i++)
    if (v->list.ids[i] != NO_VALUE && g->values[v->list.ids[i]].tensor.constant) return true;
  return v && v->kind == VK_TENSOR && v->tensor.constant && v->tensor.written;
}

/* Are all buffers that calls change caches, whose rows have positions? Then a call may have rows
 * that turn out not to count: the next call overwrites them. */
static bool only_appends(const struct graph *g) {
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    const struct node *n = &g->nodes[i];
    for (uint32_t a = 0; a < n->n_args; a++) {
      const bool writes = a + 1 == n->n_args || (a < 32 && n->op->writes >> a & 1);
      if (writes && is_state(g, n->args[a]) && !(n->op->flags & OP_APPENDS)) return false;
    }
  }
  return true;
}

static bool is_language_model(const struct graph *g) {
  if (g->n_inputs < 1 || g->n_inputs > 2 || g->n_outputs != 1 || g->n_nodes == 0) return false;
  const struct value *ids = &g->values[g->inputs[0]], *logits = &g->values[g->outputs[0]];
  return ids->kind == VK_TENSOR && ids->tensor.dtype == VK_INT32 && ids->tensor.rank == 2 &&
         ids->tensor.dim_max[0] == 1 && ids->tensor.dim_max[1] > 0 && !ids->tensor.constant &&
         !ids->tensor.output && logits->kind == VK_TENSOR && !logits->tensor.constant &&
         (logits->tensor.dtype == VK_FLOAT32 || logits->tensor.dtype == VK_FLOAT16) &&
         (logits->tensor.rank == 2 || logits->tensor.rank == 3) &&
         tensor_numel_max(&logits->tensor) > 0 && has_state(g);
}

sconce_status draw_add(struct graph *g, struct draw *d, sconce_error *err) {
  *d = (struct draw){.token = NO_VALUE, .rows = NO_VALUE, .rows_max = 1};
  const struct op *sample = op_find(text_of("sconce.sample.default"));
  if (!sample || !is_language_model(g)) return SCONCE_OK;
  d->rows = graph_add_value(g, VK_SYMINT, err);
  if (d->rows == NO_VALUE) return SCONCE_NO_MEMORY;
  if (only_appends(g)) TRY(head_add(g, d, err));
  const enum vk_dtype logits = g->values[g->outputs[0]].tensor.dtype;
  if (!kernel_tables_run(sample, logits, &g->caps)) return SCONCE_OK;
  uint32_t args[HOW + 4] = {g->outputs[0], g->inputs[0]};
  for (int i = 0; i < HOW; i++) {
    args[2 + i] = d->how[i] = graph_add_value(g, VK_SYMINT, err);
    if (d->how[i] == NO_VALUE) return SCONCE_NO_MEMORY;
  }
  g->values[d->how[TOP_K]].i = -1; /* off */
  const uint32_t dims[] = {1, DRAW_ROWS_MAX};
  uint32_t token = graph_add_tensor(g, VK_INT32, 2, dims, err);
  if (token == NO_VALUE) return SCONCE_NO_MEMORY;
  g->values[token].tensor.output = true; /* memory of its own */
  args[HOW + 2] = d->rows;
  args[HOW + 3] = token;
  TRY(graph_add_own(g, sample, args, HOW + 4, err));
  d->token = token;
  return SCONCE_OK;
}

static int32_t bits_of(float f) {
  int32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}

sconce_status draw_set(struct graph *g, const struct draw *d, const sconce_draw *how, uint32_t rows,
                       sconce_error *err) {
  if (d->rows != NO_VALUE) TRY(graph_set_symint(g, d->rows, rows < INT32_MAX ? rows : 0, err));
  if (d->token == NO_VALUE) return SCONCE_OK;
  if (!how) return graph_set_symint(g, d->how[TOP_K], -1, err);
  const int32_t numbers[HOW] = {[SEED_LOW] = (int32_t)(uint32_t)how->seed,
                                [SEED_HIGH] = (int32_t)(uint32_t)(how->seed >> 32),
                                [POSITION] = (int32_t)how->position,
                                [TOP_K] = (int32_t)how->top_k,
                                [TEMPERATURE] = bits_of(how->temperature),
                                [TOP_P] = bits_of(how->top_p),
                                [MIN_P] = bits_of(how->min_p)};
  for (int i = 0; i < HOW; i++) TRY(graph_set_symint(g, d->how[i], numbers[i], err));
  return SCONCE_OK;
}
