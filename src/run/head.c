/* See head.h. */
#include "run/head.h"

#include "graph/op.h"

#include <string.h>

enum { HEAD_MAX = 8 }; /* nodes: a norm, a projection, and some room */

struct head {
  struct graph *g;
  uint32_t nodes[HEAD_MAX], n; /* from the logits back */
  uint32_t x;                  /* what the first of them reads */
};

/* ---- asking ---------------------------------------------------------------------------------- */

static uint32_t maker_of(const struct graph *g, uint32_t value, uint32_t before) {
  while (before-- > 0)
    if (g->nodes[before].n_args && out_id(&g->nodes[before]) == value) return before;
  return NO_NODE;
}

static uint32_t uses_in(const struct graph *g, uint32_t arg, uint32_t value) {
  if (arg == value) return 1;
  const struct value *v = arg == NO_VALUE ? NULL : &g->values[arg];
  uint32_t n = 0;
  if (v && v->kind == VK_VALUE_LIST)
    for (uint32_t i = 0; i < v->list.n; i++) n += v->list.ids[i] == value;
  return n;
}

static uint32_t uses(const struct graph *g, uint32_t value) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < g->n_nodes; i++)
    for (uint32_t k = 0; k < g->nodes[i].n_args; k++) n += uses_in(g, g->nodes[i].args[k], value);
  return n;
}

/* Rows of its last dim but one, all others being 1; 0: it is no such tensor. */
static uint32_t rows_max(const struct graph *g, uint32_t value) {
  if (value == NO_VALUE || g->values[value].kind != VK_TENSOR) return 0;
  const struct tensor *t = &g->values[value].tensor;
  if (t->rank < 2) return 0;
  for (uint32_t i = 0; i + 2 < t->rank; i++)
    if (t->dim_max[i] != 1) return 0;
  return t->dim_max[t->rank - 2];
}

/* A node makes it, another reads it, and that is all. */
static bool is_inner(const struct graph *g, uint32_t value) {
  const struct tensor *t = &g->values[value].tensor;
  return rows_max(g, value) && !t->input && !t->output && !t->constant && uses(g, value) == 2;
}

static bool is_constant(const struct graph *g, uint32_t arg) {
  const struct value *v = arg == NO_VALUE ? NULL : &g->values[arg];
  if (!v) return true;
  if (v->kind == VK_TENSOR) return v->tensor.constant && !v->tensor.written;
  return v->kind != VK_SYMINT && v->kind != VK_VALUE_LIST;
}

/* Does each row of its result come of the same row of its first argument? A weight that is no
 * vector could be one for each row. */
static bool is_row_wise(const struct graph *g, const struct node *n) {
  if (!(n->op->flags & OP_ROWS) || n->op->n_args < 2 || n->op->n_args != n->n_args) return false;
  const uint32_t rows = rows_max(g, n->args[0]);
  if (rows == 0 || rows_max(g, out_id(n)) != rows) return false;
  for (uint32_t i = 1; i + 1 < n->n_args; i++)
    if (!is_constant(g, n->args[i])) return false;
  const bool norm = strcmp(n->op->name, "et_vk.rms_norm.default") == 0;
  return !norm || g->values[n->args[1]].tensor.rank == 1;
}

/* Rows must start on words, and x lie in memory that is nobody else's. */
static bool may_shrink(const struct graph *g, uint32_t x) {
  if (!is_inner(g, x)) return false;
  const struct tensor *t = &g->values[x].tensor;
  const uint32_t maker = maker_of(g, x, g->n_nodes);
  return maker != NO_NODE && !(g->nodes[maker].op->flags & OP_VIEW) &&
         (uint64_t)t->dim_max[t->rank - 1] * vk_dtype_size(t->dtype) % 4 == 0;
}

static bool has_flow(const struct graph *g) {
  for (uint32_t i = 0; i < g->n_nodes; i++)
    if (g->nodes[i].op->flags & OP_FLOW) return true;
  return false;
}

static void find(struct head *h) {
  const struct graph *g = h->g;
  h->x = g->outputs[0];
  for (uint32_t at = g->n_nodes; h->n < HEAD_MAX; h->n++) {
    at = maker_of(g, h->x, at);
    if (at == NO_NODE || !is_row_wise(g, &g->nodes[at]) || !is_inner(g, g->nodes[at].args[0]))
      return;
    h->nodes[h->n] = at;
    h->x = g->nodes[at].args[0];
  }
}

/* ---- changing -------------------------------------------------------------------------------- */

static sconce_status set_args(struct graph *g, struct node *n, const uint32_t *args,
                              uint32_t n_args, sconce_error *err) {
  uint32_t *own = arena_new(&g->arena, uint32_t, n_args);
  if (!own) return fail(err, SCONCE_NO_MEMORY, "no memory for a node");
  memcpy(own, args, n_args * sizeof *own);
  n->args = own;
  n->n_args = n_args;
  return SCONCE_OK;
}

static uint32_t add_int(struct graph *g, int64_t number, sconce_error *err) {
  const uint32_t id = graph_add_value(g, VK_INT, err);
  if (id != NO_VALUE) g->values[id].i = number;
  return id;
}

/* A select of the last row: of [1, T, n] it makes [1, n]. */
static bool takes_last(const struct graph *g, const struct node *n) {
  if (strcmp(n->op->name, "aten.select_copy.int") != 0 || n->n_args != 4) return false;
  const uint32_t x = n->args[0];
  const struct value *dim = &g->values[n->args[1]], *index = &g->values[n->args[2]];
  return rows_max(g, x) && g->values[x].tensor.rank == 3 && rows_max(g, out_id(n)) == 1 &&
         dim->kind == VK_INT && (dim->i == 1 || dim->i == -2) && index->kind == VK_INT &&
         index->i == -1;
}

static void widen(struct graph *g, uint32_t value, uint32_t rows) {
  struct tensor *t = &g->values[value].tensor;
  t->dim_max[t->rank - 2] = t->dim_live[t->rank - 2] = rows;
}

/* The select becomes the node, and what lies behind it has room for more rows. */
static sconce_status replace_select(const struct head *h, struct draw *d, uint32_t at,
                                    const struct op *op, sconce_error *err) {
  struct graph *g = h->g;
  struct node *n = &g->nodes[at];
  const uint32_t x = n->args[0], all = rows_max(g, x);
  if (!may_shrink(g, x) || all < 2) return SCONCE_OK;
  const uint32_t one = add_int(g, 1, err);
  if (one == NO_VALUE) return SCONCE_NO_MEMORY;
  TRY(set_args(g, n, (const uint32_t[]){x, d->rows, one, h->x}, 4, err));
  n->op = op;
  n->name = op->name;
  d->rows_max = all < DRAW_ROWS_MAX ? all : DRAW_ROWS_MAX;
  d->widened = true;
  widen(g, h->x, d->rows_max);
  for (uint32_t i = 0; i < h->n; i++) widen(g, out_id(&g->nodes[h->nodes[i]]), d->rows_max);
  return SCONCE_OK;
}

/* The node comes between x and the head. */
static sconce_status insert(const struct head *h, struct draw *d, const struct op *op,
                            sconce_error *err) {
  struct graph *g = h->g;
  const uint32_t at = h->nodes[h->n - 1], rows = rows_max(g, h->x);
  if (!may_shrink(g, h->x) || rows < 2) return SCONCE_OK;
  const struct tensor x = g->values[h->x].tensor;
  const uint32_t zero = add_int(g, 0, err);
  if (zero == NO_VALUE) return SCONCE_NO_MEMORY;
  const uint32_t y = graph_add_tensor(g, x.dtype, x.rank, x.dim_max, err);
  if (y == NO_VALUE) return SCONCE_NO_MEMORY;
  uint32_t args[32];
  if (g->nodes[at].n_args > 32) return SCONCE_OK;
  memcpy(args, g->nodes[at].args, g->nodes[at].n_args * sizeof *args);
  args[0] = y;
  TRY(graph_add_own(g, op, (const uint32_t[]){h->x, d->rows, zero, y}, 4, err));
  TRY(set_args(g, &g->nodes[at], args, g->nodes[at].n_args, err));
  const struct node own = g->nodes[g->n_nodes - 1];
  memmove(g->nodes + at + 1, g->nodes + at, (g->n_nodes - 1 - at) * sizeof *g->nodes);
  g->nodes[at] = own;
  g->nodes[at].index = g->nodes[at + 1].index;
  d->rows_max = rows;
  return SCONCE_OK;
}

sconce_status head_add(struct graph *g, struct draw *d, sconce_error *err) {
  struct head h = {.g = g};
  const struct op *op = op_find(text_of("sconce.last_rows.default"));
  if (!op || has_flow(g) || uses(g, g->outputs[0]) != 1) return SCONCE_OK;
  find(&h);
  if (h.n == 0) return SCONCE_OK;
  const uint32_t at = maker_of(g, h.x, h.nodes[h.n - 1]);
  if (at != NO_NODE && takes_last(g, &g->nodes[at])) return replace_select(&h, d, at, op, err);
  return insert(&h, d, op, err);
}
