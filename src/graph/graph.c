/* Values, nodes and constants of a graph: see graph.h. */
#include "graph/graph.h"

#include "base/checked.h"
#include "base/os.h"
#include "graph/adapt.h"
#include "graph/constant_set.h"
#include "graph/op.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ARGS_MAX = 32 }; /* of a node */

void graph_init(struct graph *g, const sconce_allocator *allocator, const struct caps *caps) {
  *g = (struct graph){.caps = *caps, .max_nodes = NODES_MAX, .max_steps = STEPS_MAX};
  arena_init(&g->arena, allocator);
}

void graph_free(struct graph *g) {
  arena_free(&g->arena);
  *g = (struct graph){0};
}

sconce_status graph_copy(struct graph *to, const struct graph *from, sconce_error *err) {
  *to = *from;
  to->ends_ns = 0;
  arena_init(&to->arena, &from->arena.allocator);
  to->undo = to->undo_free = NULL;
  to->values = arena_new(&to->arena, struct value, from->n_values);
  to->nodes = arena_new(&to->arena, struct node, from->n_nodes);
  if (!to->values || !to->nodes)
    return fail(err, SCONCE_NO_MEMORY, "no memory for %u values and %u nodes", from->n_values,
                from->n_nodes);
  if (from->n_values) memcpy(to->values, from->values, from->n_values * sizeof *to->values);
  if (from->n_nodes) memcpy(to->nodes, from->nodes, from->n_nodes * sizeof *to->nodes);
  to->cap_values = to->n_values;
  to->cap_nodes = to->n_nodes;
  for (uint32_t i = 0; i < to->n_nodes; i++) {
    to->nodes[i].records = NULL;
    to->nodes[i].n_records = to->nodes[i].cap_records = 0;
    to->nodes[i].stale = true;
  }
  return SCONCE_OK;
}

/* Doubles an array in the arena; the old one stays there until the graph is freed. */
static void *grow(struct arena *arena, void *old, uint32_t n, uint32_t *cap, size_t size) {
  uint32_t bigger = *cap ? *cap * 2 : 64;
  void *p = arena_alloc(arena, bigger, size, 16);
  if (!p) return NULL;
  if (n) memcpy(p, old, n * size);
  *cap = bigger;
  return p;
}

uint32_t graph_add_value(struct graph *g, enum vk_kind kind, sconce_error *err) {
  if (g->n_values == g->cap_values) {
    void *values = grow(&g->arena, g->values, g->n_values, &g->cap_values, sizeof *g->values);
    if (!values) {
      fail(err, SCONCE_NO_MEMORY, "no memory for value %u", g->n_values);
      return NO_VALUE;
    }
    g->values = values;
  }
  struct value *v = &g->values[g->n_values];
  *v = (struct value){.kind = kind};
  if (kind == VK_TENSOR) {
    v->tensor.root = g->n_values;
    v->tensor.joined = NO_VALUE;
  }
  return g->n_values++;
}

uint32_t graph_add_tensor(struct graph *g, enum vk_dtype dtype, uint32_t rank, const uint32_t *dims,
                          sconce_error *err) {
  uint32_t id = graph_add_value(g, VK_TENSOR, err);
  if (id == NO_VALUE) return id;
  struct tensor *t = &g->values[id].tensor;
  t->dtype = dtype;
  t->rank = rank;
  for (uint32_t i = 0; i < rank; i++) t->dim_max[i] = t->dim_live[i] = dims[i];
  return id;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* The next of an operator's names: its own, then those of `also`. *at is NULL at first. */
static bool next_name(const struct op *op, const char **at, struct text *name) {
  if (!*at) {
    *name = text_of(op->name);
    *at = op->also ? op->also : "";
    return true;
  }
  *name = (struct text){*at, strcspn(*at, " ")};
  *at += name->size;
  while (**at == ' ') ++*at;
  return name->size > 0;
}

const struct op *op_find(struct text name) {
  for (const struct op *const *family = op_families; *family; family++)
    for (const struct op *op = *family; op->name; op++) {
      struct text own;
      for (const char *at = NULL; next_name(op, &at, &own);)
        if (text_equal(own, name)) return op;
    }
  return NULL;
}

static const char *refusal_of(const struct op *op, struct text name) {
  if (op && op->refused) return op->refused;
  if (op && !op_is_ours(op)) return NULL;
  const bool portable = name.size && memchr(name.data, ':', name.size);
  return portable ? "this build has no such operator, and the exporter left it outside the "
                    "delegate: change the model so that the partitioner takes it"
                  : "this build has no such operator: replace it in the model before the export, "
                    "or use a build that has it";
}

const char *op_refusal(struct text name) {
  if (text_is(name, "et_vk.prepack.default")) return NULL; /* graph_add_node's own */
  return refusal_of(op_find(name), name);
}

/* Operators by name: an open hash table, built with the first node. At least half of it is free. */
struct op_names {
  uint32_t cap; /* a power of two */
  struct op_name {
    struct text name;
    const struct op *op; /* NULL: free */
  } slots[];
};

static uint32_t hash_of(struct text name) {
  uint32_t h = 2166136261u;
  for (size_t i = 0; i < name.size; i++) h = (h ^ (uint8_t)name.data[i]) * 16777619u;
  return h ^ h >> 15;
}

static struct op_name *slot_of(struct op_names *names, struct text name) {
  uint32_t at = hash_of(name) & (names->cap - 1);
  while (names->slots[at].op && !text_equal(names->slots[at].name, name))
    at = (at + 1) & (names->cap - 1);
  return &names->slots[at];
}

static bool build_names(struct graph *g) {
  uint32_t n = 0, cap = 64;
  struct text name;
  for (const struct op *const *family = op_families; *family; family++)
    for (const struct op *op = *family; op->name; op++)
      for (const char *at = NULL; next_name(op, &at, &name);) n++;
  while (cap < 2 * n) cap *= 2;
  size_t size = sizeof(struct op_names) + cap * sizeof(struct op_name);
  g->op_names = arena_alloc(&g->arena, 1, size, _Alignof(struct op_names));
  if (!g->op_names) return false;
  g->op_names->cap = cap;
  for (const struct op *const *family = op_families; *family; family++)
    for (const struct op *op = *family; op->name; op++)
      for (const char *at = NULL; next_name(op, &at, &name);) {
        struct op_name *slot = slot_of(g->op_names, name);
        if (!slot->op) *slot = (struct op_name){name, op};
      }
  return true;
}

/* ---- bounds ---------------------------------------------------------------------------------- */

bool graph_look(struct graph *g, uint64_t steps) {
  enum { LOOKS_MAX = 100000000 }; /* some tenths of a second */
  if (!add_u64(g->n_looks, steps, &g->n_looks)) g->n_looks = UINT64_MAX;
  return g->n_looks <= LOOKS_MAX;
}

sconce_status graph_check_time(const struct graph *g, sconce_error *err) {
  if (!g->ends_ns || os_clock_ns() < g->ends_ns) return SCONCE_OK;
  return fail(err, SCONCE_UNSUPPORTED,
              "%u nodes and %u values took longer than %u ms, which is max_load_ms", g->n_nodes,
              g->n_values, g->max_load_ms);
}

/* A long list may be an argument of many nodes, each of which looks through it. */
static sconce_status count_items(struct graph *g, const uint32_t *args, uint32_t n_args,
                                 sconce_error *err) {
  enum { ITEMS_A_NODE = 64 };
  const uint64_t most = ITEMS_A_NODE * (uint64_t)g->max_nodes;
  g->n_items += n_args;
  for (uint32_t i = 0; i < n_args; i++) {
    const struct value *v = args[i] == NO_VALUE ? NULL : &g->values[args[i]];
    if (v && v->kind == VK_VALUE_LIST) g->n_items += v->list.n;
  }
  if (g->n_items <= most) return SCONCE_OK;
  return fail(err, SCONCE_UNSUPPORTED,
              "more than %" PRIu64 " arguments and items of lists, %d for each of max_nodes", most,
              ITEMS_A_NODE);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static sconce_status no_memory(sconce_error *err, uint32_t index) {
  return fail(err, SCONCE_NO_MEMORY, "no memory for node %u", index);
}

/* What is defined more than once, and state, is written in place: nothing may be its view. */
static void mark_result(struct graph *g, uint32_t id) {
  if (id == NO_VALUE || g->values[id].kind != VK_TENSOR) return;
  struct tensor *t = &g->values[id].tensor;
  t->written |= t->constant || t->defined;
  t->defined = true;
}

/* Marks what the operator writes besides its output, and an output that is state: exporters give a
 * buffer's new contents the buffer's own id. */
static sconce_status mark_writes(struct graph *g, const struct node *n, sconce_error *err) {
  const uint32_t result = n->args[n->n_args - 1];
  mark_result(g, result);
  const struct value *list = result == NO_VALUE ? NULL : &g->values[result];
  for (uint32_t i = 0; list && list->kind == VK_VALUE_LIST && i < list->list.n; i++)
    mark_result(g, list->list.ids[i]);
  for (uint32_t i = 0; i < n->n_args && i < 32; i++) {
    if (!(n->op->writes >> i & 1)) continue;
    struct value *v = n->args[i] == NO_VALUE ? NULL : &g->values[n->args[i]];
    if (!v || v->kind != VK_TENSOR)
      return fail(err, SCONCE_BAD_GRAPH, "argument %u is written but is no tensor", i);
    v->tensor.written = true;
  }
  return SCONCE_OK;
}

/* A prepacked value is a constant with the bytes of its source; there is nothing left to run. */
static sconce_status prepack(struct graph *g, const uint32_t *args, uint32_t n_args,
                             sconce_error *err) {
  if (n_args != 2) return fail(err, SCONCE_BAD_GRAPH, "%u arguments, expected 2", n_args);
  if (args[0] == NO_VALUE || args[1] == NO_VALUE)
    return fail(err, SCONCE_BAD_GRAPH, "the source is no constant tensor");
  struct value *from = &g->values[args[0]], *to = &g->values[args[1]];
  if (from->kind != VK_TENSOR || to->kind != VK_TENSOR || !from->tensor.constant)
    return fail(err, SCONCE_BAD_GRAPH, "the source is no constant tensor");
  char a[120], b[120];
  if (from->tensor.dtype != to->tensor.dtype || from->tensor.rank != to->tensor.rank ||
      memcmp(from->tensor.dim_max, to->tensor.dim_max, sizeof from->tensor.dim_max) != 0)
    return fail(err, SCONCE_BAD_GRAPH, "the source is %s, the result %s",
                tensor_text(&from->tensor, a), tensor_text(&to->tensor, b));
  to->tensor.constant = true;
  to->tensor.bytes = from->tensor.bytes;
  return SCONCE_OK;
}

/* Operators rely on it: the result is a tensor, or with OP_LIST a list of tensors. */
static sconce_status check_result(const struct graph *g, const struct op *op, uint32_t id,
                                  sconce_error *err) {
  const struct value *v = id == NO_VALUE ? NULL : &g->values[id];
  const bool list = op->flags & OP_LIST;
  if (!v || v->kind != (list ? VK_VALUE_LIST : VK_TENSOR))
    return fail(err, SCONCE_BAD_GRAPH, "the result is %s, expected a %s",
                v ? vk_kind_name(v->kind) : "missing", list ? "list" : "tensor");
  for (uint32_t i = 0; list && i < v->list.n; i++) {
    const struct value *item = v->list.ids[i] == NO_VALUE ? NULL : &g->values[v->list.ids[i]];
    if (!item || item->kind != VK_TENSOR)
      return fail(err, SCONCE_BAD_GRAPH, "result %u is %s, expected a tensor", i,
                  item ? vk_kind_name(item->kind) : "missing");
  }
  return SCONCE_OK;
}

static sconce_status check_args(const struct graph *g, const uint32_t *args, uint32_t n_args,
                                sconce_error *err) {
  for (uint32_t i = 0; i < n_args; i++)
    if (args[i] != NO_VALUE && args[i] >= g->n_values)
      return fail(err, SCONCE_BAD_GRAPH, "argument %u is value %u of %u", i, args[i], g->n_values);
  return SCONCE_OK;
}

static sconce_status append_node(struct graph *g, const struct op *op, struct text name,
                                 uint32_t index, const uint32_t *args, uint32_t n_args,
                                 sconce_error *err) {
  if (g->n_nodes >= g->max_nodes)
    return fail(err, SCONCE_UNSUPPORTED, "more than %u nodes, which is max_nodes", g->max_nodes);
  if (g->n_nodes == g->cap_nodes) {
    void *nodes = grow(&g->arena, g->nodes, g->n_nodes, &g->cap_nodes, sizeof *g->nodes);
    if (!nodes) return no_memory(err, index);
    g->nodes = nodes;
  }
  uint32_t *copy = arena_new(&g->arena, uint32_t, n_args);
  char *text = arena_copy_text(&g->arena, name.data, name.size);
  if (!copy || !text) return no_memory(err, index);
  memcpy(copy, args, n_args * sizeof *copy);
  struct node *n = &g->nodes[g->n_nodes++];
  *n = (struct node){
      .op = op, .name = text, .index = index, .n_args = n_args, .args = copy, .stale = true};
  for (int i = 0; i < NODE_EXTRAS; i++) n->extra[i] = NO_VALUE;
  return mark_writes(g, n, err);
}

static sconce_status add_node(struct graph *g, const struct op *op, struct text name,
                              uint32_t index, const uint32_t *args, uint32_t n_args,
                              sconce_error *err) {
  if (n_args == 0 || (op->n_args && op->n_args != n_args))
    return fail(err, SCONCE_BAD_GRAPH, "%u arguments, expected %u", n_args, op->n_args);
  if (!(op->flags & OP_HOST)) TRY(check_result(g, op, args[n_args - 1], err));
  const struct expansion x = {g, index, args, n_args, err};
  if (op->expand && (!op->expands || op->expands(&x))) return op->expand(&x);
  struct adapted adapted;
  TRY(adapt(g, op, args, n_args, &adapted, err));
  TRY(append_node(g, op, name, index, adapted.args, n_args, err));
  return adapt_result(g, &adapted, args[n_args - 1], err);
}

static bool same_ids(const struct value *a, const struct value *b) {
  return a->kind == VK_VALUE_LIST && b->kind == VK_VALUE_LIST && a->list.n == b->list.n &&
         (a->list.n == 0 || memcmp(a->list.ids, b->list.ids, a->list.n * sizeof *a->list.ids) == 0);
}

/* A portable call has its results one by one and then as a list, or the list twice; a delegate's
 * has the list alone. How many arguments before the last say what the list says? */
static uint32_t repeated_results(const struct graph *g, const uint32_t *args, uint32_t n_args) {
  const uint32_t last = n_args - 1;
  const struct value *list = args[last] == NO_VALUE ? NULL : &g->values[args[last]];
  if (!list || list->kind != VK_VALUE_LIST || list->list.n == 0) return 0;
  if (last > 0 && args[last - 1] != NO_VALUE && same_ids(&g->values[args[last - 1]], list))
    return 1;
  const uint32_t n = list->list.n;
  return n <= last && memcmp(args + last - n, list->list.ids, n * sizeof *args) == 0 ? n : 0;
}

sconce_status graph_add_node(struct graph *g, struct text name, uint32_t index,
                             const uint32_t *args, uint32_t n_args, sconce_error *err) {
  TRY(check_args(g, args, n_args, err));
  TRY(count_items(g, args, n_args, err));
  TRY(graph_check_time(g, err));
  if (text_is(name, "et_vk.prepack.default")) return prepack(g, args, n_args, err);
  if (!g->op_names && !build_names(g)) return no_memory(err, index);
  const struct op *op = slot_of(g->op_names, name)->op;
  const char *refusal = refusal_of(op, name);
  if (refusal) return fail(err, SCONCE_UNSUPPORTED, "%s", refusal);
  uint32_t fewer[ARGS_MAX];
  if (op->flags & OP_LIST && n_args > op->n_args && n_args <= ARGS_MAX &&
      n_args - repeated_results(g, args, n_args) == op->n_args) {
    memcpy(fewer, args, (op->n_args - 1) * sizeof *fewer);
    fewer[op->n_args - 1] = args[n_args - 1];
    return add_node(g, op, name, index, fewer, op->n_args, err);
  }
  return add_node(g, op, name, index, args, n_args, err);
}

sconce_status graph_add_own(struct graph *g, const struct op *op, const uint32_t *args,
                            uint32_t n_args, sconce_error *err) {
  TRY(check_args(g, args, n_args, err));
  return add_node(g, op, text_of(op->name), g->n_nodes, args, n_args, err);
}

/* ---- delegates ------------------------------------------------------------------------------- */

/* Numbers are the same at each call of a delegate: *shared has them after the first. */
static sconce_status copy_list(struct graph *g, struct value *v, const struct vk_value *from,
                               const uint32_t *map, const void **shared, sconce_error *err) {
  const uint32_t n = from->items.n;
  v->list.n = n;
  v->list.doubles = *shared;
  if (*shared) return SCONCE_OK;
  size_t size = from->kind == VK_VALUE_LIST ? 4 : from->kind == VK_BOOL_LIST ? sizeof(bool) : 8;
  void *items = arena_alloc(&g->arena, n, size, 8);
  if (!items) return fail(err, SCONCE_NO_MEMORY, "no memory for a list of %u", n);
  for (uint32_t i = 0; i < n; i++) {
    if (from->kind == VK_INT_LIST)
      ((int64_t *)items)[i] = fb_i64_at(from->items, i);
    else if (from->kind == VK_DOUBLE_LIST)
      ((double *)items)[i] = fb_f64_at(from->items, i);
    else if (from->kind == VK_BOOL_LIST)
      ((bool *)items)[i] = fb_bool_at(from->items, i);
    else {
      int32_t id = fb_i32_at(from->items, i);
      ((uint32_t *)items)[i] = id < 0 ? NO_VALUE : map[id];
    }
  }
  v->list.ids = items;
  if (from->kind == VK_VALUE_LIST)
    g->n_items += n;
  else
    *shared = items;
  return SCONCE_OK;
}

static sconce_status copy_tensor(struct graph *g, const struct vkgraph *vk, uint32_t id,
                                 const struct vk_tensor *from, sconce_error *err) {
  struct tensor *t = &g->values[id].tensor;
  if (from->dtype == VK_INT64 || from->dtype == VK_FLOAT64)
    return fail(err, SCONCE_UNSUPPORTED,
                "a %s tensor inside a delegate: export with downcast_64_bit (the default)",
                vk_dtype_name(from->dtype));
  t->dtype = from->dtype;
  t->rank = from->rank;
  memcpy(t->dim_max, from->dims, from->rank * sizeof *t->dim_max);
  memcpy(t->dim_live, from->dims, from->rank * sizeof *t->dim_live);
  if (from->constant_id < 0) return SCONCE_OK;
  if (!vkgraph_tensor_bytes(vk, from, &t->bytes))
    return fail(err, SCONCE_BAD_FILE, "constant %d was not found", from->constant_id);
  t->constant = true;
  return SCONCE_OK;
}

/* A constant that is an output of the delegate: the program's value gets the bytes. */
static sconce_status add_border_bytes(struct graph *g, const struct vkgraph *vk, uint32_t id,
                                      const struct vk_value *from, sconce_error *err) {
  if (from->kind != VK_TENSOR || from->tensor.constant_id < 0) return SCONCE_OK;
  struct tensor *t = &g->values[id].tensor;
  if (t->constant)
    return fail(err, SCONCE_UNSUPPORTED, "a constant inside and outside of the delegate");
  return copy_tensor(g, vk, id, &from->tensor, err);
}

static sconce_status add_delegate_value(struct graph *g, const struct vkgraph *vk, uint32_t i,
                                        uint32_t *map, sconce_error *err) {
  struct vk_value from = vkgraph_value(vk, i);
  if (map[i] != NO_VALUE) return add_border_bytes(g, vk, map[i], &from, err);
  uint32_t id = graph_add_value(g, from.kind, err);
  if (id == NO_VALUE) return SCONCE_NO_MEMORY;
  map[i] = id;
  struct value *v = &g->values[id];
  switch (from.kind) {
  case VK_INT:
    v->i = from.i;
    break;
  case VK_DOUBLE:
    v->d = from.d;
    break;
  case VK_BOOLEAN:
    v->b = from.b;
    break;
  case VK_STRING:
    v->text = from.text;
    break;
  case VK_TENSOR:
    return copy_tensor(g, vk, id, &from.tensor, err);
  default:
    break;
  }
  return SCONCE_OK;
}

static bool is_list(enum vk_kind kind) {
  return kind == VK_INT_LIST || kind == VK_DOUBLE_LIST || kind == VK_BOOL_LIST ||
         kind == VK_VALUE_LIST;
}

static sconce_status add_delegate_call(struct graph *g, const struct vk_call *call, uint32_t index,
                                       const uint32_t *map, sconce_error *err) {
  uint32_t args[ARGS_MAX];
  if (call->args.n > ARGS_MAX)
    return fail(err, SCONCE_UNSUPPORTED, "%u arguments, at most %d", call->args.n, ARGS_MAX);
  for (uint32_t i = 0; i < call->args.n; i++) {
    int32_t id = fb_i32_at(call->args, i);
    args[i] = id < 0 ? NO_VALUE : map[id];
  }
  return graph_add_node(g, call->name, index, args, call->args.n, err);
}

enum { VALUES_A_NODE = 16 };

sconce_status graph_add_delegate(struct graph *g, const struct vkgraph *vk, uint32_t *map,
                                 const void **lists, sconce_error *err) {
  const uint64_t most = VALUES_A_NODE * (uint64_t)g->max_nodes;
  if (g->n_values + (uint64_t)vk->n_values > most)
    return fail(err, SCONCE_UNSUPPORTED, "more than %" PRIu64 " values, %d for each of max_nodes",
                most, VALUES_A_NODE);
  /* Values first, lists after them: a list may name values behind it. */
  for (uint32_t i = 0; i < vk->n_values; i++) {
    sconce_status status = add_delegate_value(g, vk, i, map, err);
    if (status != SCONCE_OK) {
      error_prefix(err, "value %u: ", i);
      return status;
    }
  }
  for (uint32_t i = 0; i < vk->n_values; i++) {
    struct vk_value from = vkgraph_value(vk, i);
    if (is_list(from.kind)) TRY(copy_list(g, &g->values[map[i]], &from, map, &lists[i], err));
  }
  for (uint32_t i = 0; i < vk->n_calls; i++) {
    struct vk_call call = vkgraph_call(vk, i);
    sconce_status status = add_delegate_call(g, &call, i, map, err);
    if (status != SCONCE_OK) {
      error_prefix(err, "node %u (%.*s): ", i, TEXT(call.name));
      return status;
    }
  }
  return SCONCE_OK;
}

/* ---- constants and scratch ------------------------------------------------------------------- */

sconce_status graph_packed(struct graph *g, uint32_t value, const struct packing *packing,
                           uint32_t *out, sconce_error *err) {
  if (value >= g->n_values) return fail(err, SCONCE_BAD_GRAPH, "a weight is missing");
  const struct tensor *from = &g->values[value].tensor;
  if (g->values[value].kind != VK_TENSOR || !from->constant || from->written)
    return fail(err, SCONCE_UNSUPPORTED, "a weight that is no constant cannot be laid out");
  *out = packing == from->packing ? value : constant_find(g, &g->packed, from, packing);
  if (*out != NO_VALUE) return SCONCE_OK;
  *out = graph_add_tensor(g, from->dtype, from->rank, from->dim_max, err);
  if (*out == NO_VALUE) return SCONCE_NO_MEMORY;
  from = &g->values[value].tensor; /* the array may have moved */
  struct tensor *t = &g->values[*out].tensor;
  t->constant = true;
  t->bytes = from->bytes;
  t->packing = packing;
  return constant_add(g, &g->packed, *out)
             ? SCONCE_OK
             : fail(err, SCONCE_NO_MEMORY, "no memory for a constant");
}

bool graph_join(struct graph *g, const uint32_t *values, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    const struct value *v = values[i] < g->n_values ? &g->values[values[i]] : NULL;
    if (!v || v->kind != VK_TENSOR || !v->tensor.constant || v->tensor.written ||
        v->tensor.output || v->tensor.behind || v->tensor.joined != NO_VALUE)
      return false;
    for (uint32_t k = 0; k < i; k++)
      if (values[k] == values[i]) return false;
  }
  for (uint32_t i = 0; i + 1 < n; i++) {
    g->values[values[i]].tensor.joined = values[i + 1];
    g->values[values[i + 1]].tensor.behind = true;
  }
  return true;
}

uint64_t graph_joined_size(const struct graph *g, uint32_t first) {
  const struct tensor *t = &g->values[first].tensor;
  const uint64_t from = t->base;
  while (t->joined != NO_VALUE) t = &g->values[t->joined].tensor;
  return t->base - from + tensor_nbytes_max(t);
}

sconce_status graph_scratch(struct graph *g, enum vk_dtype dtype, uint64_t numel, uint32_t *out,
                            sconce_error *err) {
  if (numel > UINT32_MAX)
    return fail(err, SCONCE_UNSUPPORTED, "%" PRIu64 " elements of scratch memory", numel);
  uint32_t dim = (uint32_t)numel;
  *out = graph_add_tensor(g, dtype, 1, &dim, err);
  if (*out == NO_VALUE) return SCONCE_NO_MEMORY;
  g->values[*out].tensor.scratch = true;
  return SCONCE_OK;
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* Products of upper bounds were checked for overflow when the file was verified. */
static uint64_t product(const uint32_t *dims, uint32_t rank) {
  uint64_t n = 1;
  for (uint32_t i = 0; i < rank; i++) n *= dims[i];
  return n;
}

uint64_t tensor_numel(const struct tensor *t) { return product(t->dim_live, t->rank); }
uint64_t tensor_numel_max(const struct tensor *t) { return product(t->dim_max, t->rank); }
uint64_t tensor_nbytes(const struct tensor *t) { return tensor_numel(t) * vk_dtype_size(t->dtype); }
uint64_t tensor_nbytes_max(const struct tensor *t) {
  if (t->packing)
    return t->packing->size(
        &(struct unpacked){.dtype = t->dtype, .rank = t->rank, .dims = t->dim_max});
  return tensor_numel_max(t) * vk_dtype_size(t->dtype);
}
uint64_t buffer_size(uint64_t nbytes) {
  return nbytes ? round_up(nbytes, BUFFER_UNIT) : BUFFER_UNIT;
}

const char *tensor_text(const struct tensor *t, char out[120]) {
  int at = snprintf(out, 120, "%s [", vk_dtype_name(t->dtype));
  for (uint32_t i = 0; i < t->rank && at < 100; i++)
    at += snprintf(out + at, 120 - (size_t)at, "%s%u", i ? ", " : "", t->dim_live[i]);
  snprintf(out + at, 120 - (size_t)at, "]");
  return out;
}
