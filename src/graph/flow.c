/* Labels, jumps and segments: see flow.h. */
#include "graph/flow.h"

/* ---- operators ------------------------------------------------------------------------------- */

static sconce_status label_shape(struct plan *p, const struct node *n) {
  (void)p, (void)n;
  return SCONCE_OK;
}

/* A tensor is true if all of its elements are. */
static bool all_true(const struct tensor *t) {
  const uint8_t *bytes = t->host;
  const uint32_t size = vk_dtype_size(t->dtype);
  for (uint64_t i = 0; i < tensor_numel(t); i++) {
    bool any = false;
    for (uint32_t k = 0; k < size; k++) any |= bytes[i * size + k] != 0;
    if (!any) return false;
  }
  return true;
}

static sconce_status jump_shape(struct plan *p, const struct node *n) {
  const struct tensor *t = tensor_at(p, arg_id(n, 0));
  bool condition = true;
  if (t && tensor_is_float(t))
    return fail(p->err, SCONCE_BAD_GRAPH, "a condition of %s", vk_dtype_name(t->dtype));
  if (t && tensor_numel(t) && !t->host) return want_elements(p, n);
  if (!t)
    TRY(arg_bool(p, n, 0, &condition));
  else if (tensor_numel(t))
    condition = all_true(t);
  if (!condition) p->g->jump = flow_target(p->g, n);
  return SCONCE_OK;
}

static sconce_status move_shape(struct plan *p, const struct node *n) {
  struct number number;
  TRY(arg_number(p, n, 0, &number));
  return set_number(p, out_id(n), number);
}

const struct op flow_label = {"label", label_shape, .n_args = 1, .flags = OP_HOST | OP_FLOW};
const struct op flow_jump = {"jump_false", jump_shape, .n_args = 2,
                             .flags = OP_HOST | OP_FLOW | OP_READS};
const struct op flow_move = {"move", move_shape, .n_args = 2, .flags = OP_HOST};

/* A label's value holds the index of its node. */
uint32_t flow_add_label(struct graph *g, sconce_error *err) {
  const uint32_t id = graph_add_value(g, VK_INT, err);
  if (id != NO_VALUE) g->values[id].i = -1;
  return id;
}

uint32_t flow_target(const struct graph *g, const struct node *jump) {
  return (uint32_t)g->values[jump->args[1]].i;
}

/* ---- segments -------------------------------------------------------------------------------- */

static sconce_status place_labels(struct graph *g, sconce_error *err) {
  for (uint32_t i = 0; i < g->n_nodes; i++)
    if (g->nodes[i].op == &flow_label) g->values[g->nodes[i].args[0]].i = i;
  for (uint32_t i = 0; i < g->n_nodes; i++)
    if (flow_is_jump(&g->nodes[i]) && g->values[g->nodes[i].args[1]].i < 0)
      return fail(err, SCONCE_BAD_GRAPH, "node %u jumps to a label that is nowhere",
                  g->nodes[i].index);
  return SCONCE_OK;
}

/* What the segment has read or given so far. */
struct seen {
  const struct graph *g;
  uint32_t *in; /* by value: the last segment that met it */
  uint32_t segment;
};

static void meet(struct seen *s, uint32_t id) {
  if (id == NO_VALUE) return;
  const struct value *v = &s->g->values[id];
  s->in[id] = s->segment;
  for (uint32_t i = 0; v->kind == VK_VALUE_LIST && i < v->list.n; i++)
    if (v->list.ids[i] != NO_VALUE) s->in[v->list.ids[i]] = s->segment;
}

static void meet_all(struct seen *s, const struct node *n) {
  for (uint32_t i = 0; i < n->n_args; i++) meet(s, n->args[i]);
  for (uint32_t i = 0; i < n->n_parts; i++)
    for (uint32_t k = 0; k < n->parts[i].n_args; k++) meet(s, n->parts[i].args[k]);
}

static bool begins_segment(const struct seen *s, const struct node *n, const struct node *before) {
  if (n->op == &flow_label || (before && flow_is_jump(before))) return true;
  const uint32_t result = n->n_args ? out_id(n) : NO_VALUE;
  if (result == NO_VALUE || s->in[result] != s->segment) return false;
  const struct value *v = &s->g->values[result];
  return v->kind == VK_SYMINT || (v->kind == VK_TENSOR && v->tensor.written && !v->tensor.constant);
}

static bool counts_in_place(const struct graph *g, const struct node *n) {
  const uint32_t result = n->n_args ? out_id(n) : NO_VALUE;
  if (result == NO_VALUE || g->values[result].kind != VK_SYMINT) return false;
  for (uint32_t i = 0; i + 1 < n->n_args; i++)
    if (n->args[i] == result) return true;
  return false;
}

sconce_status flow_finish(struct graph *g, sconce_error *err) {
  TRY(place_labels(g, err));
  struct seen s = {.g = g, .in = arena_new(&g->arena, uint32_t, g->n_values), .segment = 1};
  if (!s.in) return fail(err, SCONCE_NO_MEMORY, "no memory for %u values", g->n_values);
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    struct node *n = &g->nodes[i];
    n->counts = counts_in_place(g, n);
    n->begins = begins_segment(&s, n, i ? &g->nodes[i - 1] : NULL);
    s.segment += n->begins;
    meet_all(&s, n);
  }
  return SCONCE_OK;
}

/* ---- loops ----------------------------------------------------------------------------------- */

static bool is_backward(const struct graph *g, uint32_t i) {
  return flow_is_jump(&g->nodes[i]) && flow_target(g, &g->nodes[i]) <= i;
}

bool flow_has_loops(const struct graph *g) {
  for (uint32_t i = 0; i < g->n_nodes; i++)
    if (is_backward(g, i)) return true;
  return false;
}

static void number_blocks(const struct graph *g, uint32_t *block) {
  for (uint32_t i = 0, at = 0; i < g->n_nodes; i++) {
    at += g->nodes[i].op == &flow_label || (i && flow_is_jump(&g->nodes[i - 1]));
    block[i] = at;
  }
}

/* From behind: a loop reaches from the smallest target to the last jump that leads into it. */
static void mark_loops(const struct graph *g, struct flow_loops *out) {
  for (uint32_t end = g->n_nodes; end > 0; end--) {
    if (!is_backward(g, end - 1)) continue;
    uint32_t first = end;
    for (uint32_t i = end; i > 0 && (i == end || i > first); i--)
      if (is_backward(g, i - 1) && flow_target(g, &g->nodes[i - 1]) < first)
        first = flow_target(g, &g->nodes[i - 1]);
    for (uint32_t i = first; i < end; i++) out->first[i] = first, out->end[i] = end;
    end = first + 1;
  }
}

sconce_status flow_find_loops(struct graph *g, struct flow_loops *out, sconce_error *err) {
  *out = (struct flow_loops){0};
  uint32_t n = 0;
  for (uint32_t i = 0; i < g->n_nodes; i++) n += is_backward(g, i);
  if (n == 0) return SCONCE_OK;
  out->block = arena_new(&g->arena, uint32_t, g->n_nodes);
  out->first = arena_new(&g->arena, uint32_t, g->n_nodes);
  out->end = arena_new(&g->arena, uint32_t, g->n_nodes);
  if (!out->block || !out->first || !out->end)
    return fail(err, SCONCE_NO_MEMORY, "no memory for the loops of %u nodes", g->n_nodes);
  number_blocks(g, out->block);
  mark_loops(g, out);
  return SCONCE_OK;
}
