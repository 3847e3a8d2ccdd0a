/* A pass: what is computed once more from the same arguments becomes a view of the first result.
 * Exporters write a layer's mask, or a number as a tensor, anew for each layer. */
#include "graph/rewrite.h"

#include <string.h>

extern const struct op ops_copy[];

/* What an earlier result may take, since it lives longer then: elements. */
enum { SAME_MOST = 1 << 20 };

static const struct value *value_at(const struct rewrite *r, uint32_t id) {
  return id < r->g->n_values ? &r->g->values[id] : NULL;
}

/* Nobody writes it but the node that makes it. */
static bool is_plain(const struct value *v) {
  return v->kind == VK_TENSOR && !v->tensor.written && tensor_numel_max(&v->tensor) <= SAME_MOST;
}

/* Does no node from `first` on count it? */
static bool is_settled(const struct rewrite *r, uint32_t scalar, uint32_t first) {
  return r->maker[scalar] == NO_NODE || r->maker[scalar] < first;
}

/* For nodes from `first` on. */
static bool same_argument(const struct rewrite *r, uint32_t a, uint32_t b, uint32_t first) {
  const struct value *x = value_at(r, a), *y = value_at(r, b);
  if (!x || !y || x->kind != y->kind) return a == b;
  if (x->kind == VK_TENSOR)
    return viewed(r, a) == viewed(r, b) && is_plain(x) && is_plain(y) && same_dims(r, a, b);
  if (a == b) return x->kind != VK_VALUE_LIST && is_settled(r, a, first);
  if (r->maker[a] != NO_NODE || r->maker[b] != NO_NODE) return false; /* not known yet */
  switch (x->kind) {
  case VK_INT:
    return x->i == y->i;
  case VK_DOUBLE:
    return memcmp(&x->d, &y->d, sizeof x->d) == 0;
  case VK_BOOLEAN:
    return x->b == y->b;
  case VK_NULL:
    return true;
  default:
    return false;
  }
}

static bool may_be_same(const struct rewrite *r, const struct node *n) {
  const uint32_t never = OP_VIEW | OP_HOST | OP_READS | OP_LIST | OP_OWN | OP_FLOW | OP_IN_PLACE |
                         OP_APPENDS | OP_SELF | OP_SELF_WORDS;
  const struct value *y = n->n_args ? value_at(r, out_id(n)) : NULL;
  return y && !(n->op->flags & never) && !n->op->writes && n->n_parts == 0 && is_plain(y) &&
         !y->tensor.constant && !y->tensor.input;
}

/* b: one that may be. */
static bool are_same(const struct rewrite *r, uint32_t first, const struct node *b) {
  const struct node *a = &r->g->nodes[first];
  if (a->op != b->op || a->n_args != b->n_args) return false;
  for (uint32_t i = 0; i + 1 < a->n_args; i++)
    if (!same_argument(r, a->args[i], b->args[i], first)) return false;
  return same_dims(r, out_id(a), out_id(b));
}

static const struct op *alias(void) {
  const struct op *op = ops_copy;
  while (strcmp(op->name, "aten.alias_copy.default") != 0) op++;
  return op;
}

/* Node i reads nothing any more but what node `first` makes. */
static void note_view(struct rewrite *r, uint32_t i, uint32_t first) {
  const struct node *n = &r->g->nodes[i], *other = &r->g->nodes[first];
  for (uint32_t a = 0; a + 1 < n->n_args; a++) {
    const uint32_t id = n->args[a];
    uint32_t before = 0;
    while (n->args[before] != id) before++;
    if (before < a || id >= r->g->n_values) continue; /* it reads the value twice */
    r->readers[id]--;
    if (r->reader[id] == i) r->reader[id] = other->args[a] == id ? first : NO_NODE;
  }
  r->readers[out_id(other)]++;
  r->reader[out_id(other)] = i;
}

static sconce_status same_at(struct rewrite *r, uint32_t i) {
  struct node *n = &r->g->nodes[i];
  if (!may_be_same(r, n)) return SCONCE_OK;
  for (uint32_t k = i; k > 0 && i - k < FUSION_REACH; k--) {
    const struct node *first = &r->g->nodes[k - 1];
    if (!first->op) continue;
    if (first->op->flags & OP_FLOW) return SCONCE_OK; /* it may be passed by */
    if (!graph_look(r->g, 1)) return SCONCE_OK;
    if (!are_same(r, k - 1, n)) continue;
    uint32_t *args = arena_new(&r->g->arena, uint32_t, 2);
    if (!args) return fail(r->err, SCONCE_NO_MEMORY, "no memory for a node's arguments");
    note_view(r, i, k - 1);
    args[0] = out_id(first);
    args[1] = out_id(n);
    n->op = alias();
    n->args = args;
    n->n_args = 2;
    return SCONCE_OK;
  }
  return SCONCE_OK;
}

const struct pass passes_copy[] = {{"same", same_at}, {0}};
