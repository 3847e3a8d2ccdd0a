/* Calls: live dims and scalars change, dirty nodes plan again in chain order. */
#include "graph/flow.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What one value was before this call. */
struct undo {
  struct undo *next;
  uint32_t value;
  uint64_t stamp;
  struct number number;
  uint32_t dims[RANK_MAX];
};

/* Each change is a moment of its own; a value is remembered the first time it changes in a call. */
static sconce_status remember(struct graph *g, uint32_t id, sconce_error *err) {
  struct value *v = &g->values[id];
  if (v->stamp > g->began) {
    v->stamp = ++g->clock;
    return SCONCE_OK;
  }
  struct undo *u = g->undo_free;
  if (u)
    g->undo_free = u->next;
  else
    u = arena_new(&g->arena, struct undo, 1);
  if (!u) return fail(err, SCONCE_NO_MEMORY, "no memory to remember value %u", id);
  *u = (struct undo){.next = g->undo, .value = id, .stamp = v->stamp};
  if (v->kind == VK_TENSOR)
    memcpy(u->dims, v->tensor.dim_live, sizeof u->dims);
  else
    u->number = (struct number){.kind = v->number, .i = v->i};
  g->undo = u;
  v->stamp = ++g->clock;
  return SCONCE_OK;
}

static void forget(struct graph *g) {
  while (g->undo) {
    struct undo *u = g->undo;
    g->undo = u->next;
    u->next = g->undo_free;
    g->undo_free = u;
  }
}

/* Elements that the host has: of inputs until the next call, of constants always. */
static bool host_elements_stay(const struct tensor *t) {
  return t->input || (t->constant && !t->written);
}

void graph_begin(struct graph *g) {
  forget(g);
  g->began = g->clock;
  g->from = g->planned = g->next = 0;
  g->steps = 0;
  g->nodes_planned = 0;
  g->wanted = NO_VALUE;
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    struct value *v = g->nodes[i].op->flags & OP_READS ? &g->values[g->nodes[i].args[0]] : NULL;
    if (v && v->kind == VK_TENSOR && !host_elements_stay(&v->tensor)) v->tensor.host = NULL;
  }
}

sconce_status graph_set_dims(struct graph *g, uint32_t id, const uint32_t *dims, uint32_t rank,
                             sconce_error *err) {
  if (id >= g->n_values || g->values[id].kind != VK_TENSOR)
    return fail(err, SCONCE_BAD_GRAPH, "the result is no tensor");
  struct tensor *t = &g->values[id].tensor;
  if (rank != t->rank)
    return fail(err, SCONCE_BAD_GRAPH, "rank %u, the graph says %u", rank, t->rank);
  for (uint32_t i = 0; i < rank; i++)
    if (dims[i] > t->dim_max[i])
      return fail(err, SCONCE_BAD_ARGUMENT, "dim %u is %u, at most %u", i, dims[i], t->dim_max[i]);
  if (memcmp(t->dim_live, dims, rank * sizeof *dims) == 0) return SCONCE_OK;
  TRY(remember(g, id, err));
  memcpy(t->dim_live, dims, rank * sizeof *dims);
  return SCONCE_OK;
}

sconce_status graph_set_symint(struct graph *g, uint32_t id, int64_t number, sconce_error *err) {
  if (id >= g->n_values || (g->values[id].kind != VK_SYMINT && g->values[id].kind != VK_INT))
    return fail(err, SCONCE_BAD_GRAPH, "the result is no SymInt");
  struct value *v = &g->values[id];
  if (number < INT32_MIN || number > INT32_MAX)
    return fail(err, SCONCE_BAD_ARGUMENT, "%" PRId64 " does not fit 32 bits", number);
  if (v->kind == VK_INT && v->i != number) /* the exporter folded it; then it cannot change */
    return fail(err, SCONCE_BAD_ARGUMENT, "%" PRId64 ", but the file fixed it at %" PRId64, number,
                v->i);
  if (v->kind == VK_INT) return SCONCE_OK;
  return graph_set_number(g, id, (struct number){.kind = NUMBER_INT, .i = number}, err);
}

sconce_status graph_set_number(struct graph *g, uint32_t id, struct number number,
                               sconce_error *err) {
  if (number.kind == NUMBER_INT && (id >= g->n_values || g->values[id].kind != VK_SYMINT))
    return graph_set_symint(g, id, number.i, err);
  if (id >= g->n_values || g->values[id].kind != VK_SYMINT)
    return fail(err, SCONCE_BAD_GRAPH, "the result is no live scalar");
  struct value *v = &g->values[id];
  if (v->number == number.kind && v->i == number.i) return SCONCE_OK; /* bits, for a double too */
  TRY(remember(g, id, err));
  v->number = number.kind;
  v->i = number.i;
  return SCONCE_OK;
}

sconce_status graph_touch(struct graph *g, uint32_t id, sconce_error *err) {
  return remember(g, id, err);
}

/* ---- dirty nodes ----------------------------------------------------------------------------- */

static bool changed(const struct graph *g, uint32_t id, uint64_t since) {
  if (id == NO_VALUE) return false;
  const struct value *v = &g->values[id];
  if (v->stamp > since) return true;
  if (v->kind != VK_VALUE_LIST) return false;
  for (uint32_t i = 0; i < v->list.n; i++)
    if (v->list.ids[i] != NO_VALUE && g->values[v->list.ids[i]].stamp > since) return true;
  return false;
}

/* Elements that only the device has may differ in every call. */
bool node_reads_device(const struct graph *g, const struct node *n) {
  if (!(n->op->flags & OP_READS) || g->values[n->args[0]].kind != VK_TENSOR) return false;
  return !host_elements_stay(&g->values[n->args[0]].tensor);
}

static bool dirty(const struct graph *g, const struct node *n) {
  if (n->stale || n->counts || n->op->flags & OP_FLOW || node_reads_device(g, n)) return true;
  for (uint32_t i = 0; i < n->n_args; i++)
    if (changed(g, n->args[i], n->stamp)) return true;
  for (uint32_t i = 0; i < n->n_parts; i++)
    for (uint32_t k = 0; k < n->parts[i].n_args; k++)
      if (changed(g, n->parts[i].args[k], n->stamp)) return true;
  return false;
}

static void put_back(struct graph *g) {
  for (struct undo *u = g->undo; u; u = u->next) {
    struct value *v = &g->values[u->value];
    v->stamp = u->stamp;
    if (v->kind == VK_TENSOR)
      memcpy(v->tensor.dim_live, u->dims, sizeof u->dims);
    else
      v->number = u->number.kind, v->i = u->number.i;
  }
  forget(g);
}

/* Records that this call made are for dims and scalars that are gone again. */
void graph_rollback(struct graph *g) {
  for (uint32_t i = 0; i < g->n_nodes; i++)
    if (g->nodes[i].stamp > g->began) g->nodes[i].stale = true;
  put_back(g);
}

/* Of a fused node, the part that fails says so itself. */
static sconce_status at_node(struct plan *p, sconce_status status) {
  if (status != SCONCE_OK && p->node->n_parts == 0)
    error_prefix(p->err, "node %u (%s): ", p->node->index, p->node->name);
  return status;
}

/* An output without elements needs no work, whatever the operator would do. */
static bool is_empty(const struct graph *g, uint32_t id) {
  const struct value *v = id == NO_VALUE ? NULL : &g->values[id];
  if (!v) return false;
  if (v->kind == VK_TENSOR) return tensor_numel(&v->tensor) == 0;
  if (v->kind != VK_VALUE_LIST || v->list.n == 0) return false;
  for (uint32_t i = 0; i < v->list.n; i++)
    if (!is_empty(g, v->list.ids[i])) return false;
  return true;
}

/* A view that got its source's buffer needs no dispatch. */
static bool is_free_view(const struct graph *g, const struct node *n) {
  if (!(n->op->flags & OP_VIEW)) return false;
  const struct value *x = &g->values[n->args[0]], *y = &g->values[out_id(n)];
  return x->kind == VK_TENSOR && y->kind == VK_TENSOR && x->tensor.root == y->tensor.root;
}

static sconce_status at_part(struct plan *p, const struct node *part, sconce_status status) {
  if (status != SCONCE_OK && part != p->node)
    error_prefix(p->err, "node %u (%s): ", part->index, part->name);
  return status;
}

static sconce_status emit_one(struct plan *p, const struct node *n) {
  if (n->op->flags & OP_HOST || is_empty(p->g, out_id(n)) || is_free_view(p->g, n))
    return SCONCE_OK;
  return at_part(p, n, n->op->emit(p, n));
}

sconce_status emit_parts(struct plan *p, const struct node *n) {
  for (uint32_t i = 0; i < n->n_parts; i++) TRY(emit_one(p, &n->parts[i]));
  return SCONCE_OK;
}

/* Fused kernels know nothing of views that must be copied. */
static bool views_are_free(const struct graph *g, const struct node *n) {
  if (n->op->flags & OP_SEES) return true;
  for (uint32_t i = 0; i < n->n_parts; i++)
    if (n->parts[i].op->flags & OP_VIEW && !is_free_view(g, &n->parts[i])) return false;
  return true;
}

static sconce_status emit_node(struct plan *p) {
  struct node *n = p->node;
  n->n_records = 0;
  n->stale = true; /* until its records are whole */
  if (n->n_parts == 0)
    TRY(emit_one(p, n));
  else
    TRY(views_are_free(p->g, n) ? n->op->emit(p, n) : emit_parts(p, n));
  n->stale = false;
  n->stamp = ++p->g->clock;
  p->g->nodes_planned++;
  return SCONCE_OK;
}

/* What a node writes in place after this one must be read again. */
static void forget_elements(struct graph *g, const struct node *n) {
  struct value *v = &g->values[n->args[0]];
  if (v->kind == VK_TENSOR && v->tensor.written && !host_elements_stay(&v->tensor))
    v->tensor.host = NULL;
}

static sconce_status shape_node(struct plan *p) {
  const struct node *n = p->node;
  if (n->n_parts == 0) return n->op->shape(p, n);
  for (uint32_t i = 0; i < n->n_parts; i++)
    TRY(at_part(p, &n->parts[i], n->parts[i].op->shape(p, &n->parts[i])));
  return SCONCE_OK;
}

/* The inputs whose dims a call chose, as far as there is room. */
static void say_inputs(const struct graph *g, char *out, size_t room) {
  size_t at = 0;
  for (uint32_t i = 0; i < g->n_inputs && at < room; i++) {
    const struct value *v = &g->values[g->inputs[i]];
    const size_t size = v->kind == VK_TENSOR ? v->tensor.rank * sizeof *v->tensor.dim_live : 0;
    if (size == 0 || memcmp(v->tensor.dim_live, v->tensor.dim_max, size) == 0) continue;
    char text[120];
    const int n = snprintf(out + at, room - at, "%sinput %u is %s",
                           at ? ", " : "with these inputs (", i, tensor_text(&v->tensor, text));
    at += n > 0 ? (size_t)n : 0;
  }
  if (at < room) snprintf(out + at, room - at, at ? "): " : "with these numbers: ");
}

/* What fitted at load is no bad graph: the dims or numbers of this call do not fit it. */
static sconce_status shape_in_call(struct plan *p) {
  const sconce_status status = shape_node(p);
  if (status != SCONCE_BAD_GRAPH || !p->node->fits) return at_node(p, status);
  char inputs[400];
  say_inputs(p->g, inputs, sizeof inputs);
  if (p->err) p->err->status = SCONCE_BAD_ARGUMENT;
  at_node(p, SCONCE_BAD_ARGUMENT);
  error_prefix(p->err, "%s", inputs);
  return SCONCE_BAD_ARGUMENT;
}

/* All shapes first, then all records: a shape that fails leaves every record as it was. */
static sconce_status plan_segment(struct plan *p) {
  struct graph *g = p->g;
  const uint32_t from = g->planned;
  uint32_t to = from;
  for (; to < g->n_nodes && (to == from || !g->nodes[to].begins); to++) {
    p->node = &g->nodes[to];
    if (to % 64 == 0) TRY(graph_check_time(g, p->err)); /* while loading only */
    if (dirty(g, p->node)) TRY(shape_in_call(p));
    if (g->wanted != NO_VALUE) break;
    if (p->node->op->flags & OP_READS) forget_elements(g, p->node);
  }
  for (uint32_t i = from; i < to; i++) {
    p->node = &g->nodes[i];
    if (dirty(g, p->node)) TRY(at_node(p, emit_node(p)));
  }
  g->planned = to;
  g->steps += to - from;
  if (g->steps <= g->max_steps) return SCONCE_OK;
  return fail(p->err, SCONCE_UNSUPPORTED,
              "the call takes more than %" PRIu64 " steps: set max_steps if that is meant",
              g->max_steps);
}

sconce_status graph_plan(struct graph *g, sconce_error *err) {
  struct plan p = {.g = g, .err = err};
  g->from = g->planned = g->next;
  g->jump = NO_NODE;
  g->wanted = NO_VALUE;
  while (g->planned < g->n_nodes && g->wanted == NO_VALUE && g->jump == NO_NODE)
    TRY(plan_segment(&p));
  g->next = g->jump == NO_NODE ? g->planned : g->jump;
  return SCONCE_OK;
}

/* What stands for elements that nobody has; written by nobody. */
static uint8_t zeros[HOST_READ_MAX];

static sconce_status plan_unseen(struct graph *g, sconce_error *err) {
  do {
    TRY(graph_plan(g, err));
    g->next = g->planned; /* whether a jump was taken or not */
    struct tensor *t = g->wanted == NO_VALUE ? NULL : &g->values[g->wanted].tensor;
    if (t && tensor_nbytes(t) > HOST_READ_MAX)
      return fail(err, SCONCE_UNSUPPORTED, "a scalar from a tensor of %" PRIu64 " bytes",
                  tensor_nbytes(t));
    if (t) t->host = zeros;
  } while (!graph_is_whole(g));
  g->from = 0;
  return SCONCE_OK;
}

/* The zeros are for the dims of this call: a larger tensor must not find them. */
sconce_status graph_plan_unseen(struct graph *g, sconce_error *err) {
  sconce_status status = plan_unseen(g, err);
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    const struct node *n = &g->nodes[i];
    struct value *v = n->op->flags & OP_READS ? &g->values[n->args[0]] : NULL;
    if (v && v->kind == VK_TENSOR && v->tensor.host == zeros) v->tensor.host = NULL;
  }
  return status;
}

/* ---- loading --------------------------------------------------------------------------------- */

static sconce_status prepare_nodes(struct graph *g, sconce_error *err) {
  struct plan p = {.g = g, .err = err};
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    struct node *n = &g->nodes[i];
    for (uint32_t k = 0; k <= n->n_parts; k++) { /* parts first: a fused node uses what they made */
      p.node = k < n->n_parts ? &n->parts[k] : n;
      if (p.node->op->prepare) TRY(at_node(&p, p.node->op->prepare(&p, p.node)));
    }
  }
  return SCONCE_OK;
}

/* Does its shape depend on a scalar that nobody has set yet? */
static bool has_scalar(const struct graph *g, const struct node *n) {
  if (n->op->flags & OP_READS) return true;
  for (uint32_t i = 0; i < n->n_args; i++) {
    const struct value *v = n->args[i] == NO_VALUE ? NULL : &g->values[n->args[i]];
    if (v && v->kind == VK_SYMINT) return true;
    for (uint32_t k = 0; v && v->kind == VK_VALUE_LIST && k < v->list.n; k++)
      if (v->list.ids[k] != NO_VALUE && g->values[v->list.ids[k]].kind == VK_SYMINT) return true;
  }
  for (uint32_t i = 0; i < n->n_parts; i++)
    if (has_scalar(g, &n->parts[i])) return true;
  return false;
}

/* Do the dims that its shape just gave leave it without work? Its emit is not made for that. */
static bool has_no_work(const struct graph *g, const struct node *n) {
  if (n->op->flags & OP_HOST) return false;
  if (n->n_parts == 0) return is_empty(g, out_id(n));
  for (uint32_t i = 0; i < n->n_parts; i++)
    if (has_no_work(g, &n->parts[i])) return true;
  return false;
}

/* *fits: its arguments passed the checks of its shape at the maximum dims, which emit relies on.
 * What a call could still put right, dims and scalars, is no error yet. */
static sconce_status shape_first(struct plan *p, bool *fits, bool *works) {
  sconce_error why = {0};
  struct plan trial = {.g = p->g, .node = p->node, .err = &why};
  sconce_status status = shape_node(&trial);
  *works = status == SCONCE_OK && !has_no_work(p->g, p->node);
  p->g->wanted = NO_VALUE;
  put_back(p->g);
  *fits = status == SCONCE_OK;
  if (*fits || status == SCONCE_BAD_ARGUMENT) return SCONCE_OK;
  if (status != SCONCE_NO_MEMORY && has_scalar(p->g, p->node)) return SCONCE_OK;
  return fail(p->err, status, "%s", why.text);
}

/* A first plan at the maximum dims: it shows what loads, and its errors are a device's or a file's.
 * No record is made for arguments that a shape has not accepted, or from which it made a result
 * without elements. Dims stay at the maximum. */
static sconce_status plan_first(struct graph *g, sconce_error *err) {
  struct plan p = {.g = g, .err = err};
  graph_begin(g);
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    bool fits, works;
    if (i % 64 == 0) TRY(graph_check_time(g, err));
    p.node = &g->nodes[i];
    TRY(at_node(&p, shape_first(&p, &fits, &works)));
    p.node->fits = fits;
    if (works) TRY(at_node(&p, emit_node(&p)));
    p.node->stale = true; /* the first call shapes everything */
  }
  return SCONCE_OK;
}

/* What callers write must not be what the file fixed, which others may share. What nodes write is
 * not known to the host, and may have no bytes at all: a buffer that begins with zeros. */
static sconce_status read_constants(struct graph *g, sconce_error *err) {
  for (uint32_t i = 0; i < g->n_values; i++) {
    if (g->values[i].kind != VK_TENSOR || !g->values[i].tensor.constant) continue;
    if (g->values[i].tensor.input)
      return fail(err, SCONCE_BAD_GRAPH, "value %u is an input and a constant", i);
    struct tensor *t = &g->values[i].tensor;
    if (host_elements_stay(t) && t->bytes.held == t->bytes.size) t->host = t->bytes.data;
  }
  return SCONCE_OK;
}

sconce_status graph_finish(struct graph *g, sconce_error *err) {
  TRY(read_constants(g, err));
  TRY(rewrite_all(g, err));
  TRY(flow_finish(g, err));
  TRY(prepare_nodes(g, err));
  TRY(memory_plan(g, err));
  TRY(plan_first(g, err));
  return graph_check(g, err);
}
