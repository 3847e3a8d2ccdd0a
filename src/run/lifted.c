/* See lifted.h. */
#include "run/lifted.h"

#include <string.h>

static bool is_in(const struct graph *g, uint32_t arg, uint32_t id) {
  if (arg == NO_VALUE) return false;
  const struct value *v = &g->values[arg];
  for (uint32_t i = 0; v->kind == VK_VALUE_LIST && i < v->list.n; i++)
    if (v->list.ids[i] == id) return true;
  return arg == id;
}

static bool uses(const struct graph *g, const struct node *n, uint32_t from, uint32_t id) {
  for (uint32_t i = from; i < n->n_args; i++)
    if (is_in(g, n->args[i], id)) return true;
  return false;
}

static bool could_be_one(const struct graph *g, uint32_t buffer, uint32_t made) {
  if (g->values[buffer].kind != VK_TENSOR || g->values[made].kind != VK_TENSOR) return false;
  const struct tensor *a = &g->values[buffer].tensor, *b = &g->values[made].tensor;
  const bool alike = a->dtype == b->dtype && a->rank == b->rank &&
                     memcmp(a->dim_max, b->dim_max, a->rank * sizeof *a->dim_max) == 0;
  return alike && a->constant && !a->defined && !a->input && b->defined && !b->written &&
         !b->constant && !b->input;
}

/* The node that makes `made`, if nothing behind it uses the buffer. */
static struct node *maker_of(struct graph *g, uint32_t buffer, uint32_t made) {
  for (uint32_t i = g->n_nodes; i-- > 0;) {
    struct node *n = &g->nodes[i];
    if (n->op->flags & OP_FLOW) return NULL;
    if (out_id(n) == made) return n;
    if (uses(g, n, 0, buffer)) return NULL;
  }
  return NULL;
}

/* May it write what it reads? */
static bool can_write(const struct graph *g, const struct node *n, uint32_t buffer) {
  if (!uses(g, n, 0, buffer)) return true;
  return n->args[0] == buffer && !uses(g, n, 1, buffer) && op_writes_self(g, n->op, buffer);
}

bool lifted_write_through(struct graph *g, uint32_t buffer, uint32_t made) {
  if (!could_be_one(g, buffer, made) || !graph_look(g, g->n_values + g->n_items)) return false;
  struct node *maker = maker_of(g, buffer, made);
  if (!maker || !can_write(g, maker, buffer)) return false;
  for (struct node *n = maker; n < g->nodes + g->n_nodes; n++)
    for (uint32_t i = 0; i < n->n_args; i++)
      if (n->args[i] == made) n->args[i] = buffer;
  for (uint32_t i = 0; i < g->n_values; i++)
    for (uint32_t k = 0; g->values[i].kind == VK_VALUE_LIST && k < g->values[i].list.n; k++)
      if (g->values[i].list.ids[k] == made) g->values[i].list.ids[k] = buffer;
  g->values[buffer].tensor.written = g->values[buffer].tensor.defined = true;
  return true;
}
