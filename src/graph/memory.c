/* Buffers: liveness is ours, the file's mem_obj_id a hint that we ignore.
 *
 * Constants and state persist and share memory with nothing transient. Inputs and outputs have
 * buffers of their own. Views take the buffer of what they view. The rest is packed greedily by
 * lifetime, oldest free buffer first: the GPU tracks hazards per buffer, and one that was idle for
 * long holds nobody up.
 *
 * Time counts nodes, and inside a fused node its parts. What a fused node's parts pass among
 * themselves lives from part to part; what it shares with others lives during the whole node, since
 * its kernel reads and writes that at once. */
#include "graph/flow.h"

#include "base/checked.h"
#include "graph/constant_set.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct life {
  uint32_t first, last; /* times; first > last: never used */
  uint32_t node;        /* that uses it, if it is only one; else NO_VALUE */
  uint64_t size;        /* bytes of the largest that lives in its buffer */
};

struct planner {
  struct graph *g;
  struct life *lives;   /* by value; of roots only */
  uint32_t *last_write; /* by value: the last node that writes it */
  uint32_t *sharer;     /* by value: the next one with its root, in a ring */
  bool jumps;           /* then nobody knows which is the last */
  uint32_t n_times;
  uint32_t *ending; /* by time: the first buffer in use up to then, or NO_VALUE */
  uint32_t *after;  /* by buffer: the next of such a chain, or the next that is free */
  uint32_t *freed;  /* room to sort a chain */
  uint32_t first_free, last_free;
  struct constant_set constants; /* that have buffers */
  sconce_error *err;
};

static struct tensor *root_of(struct graph *g, uint32_t id) {
  return &g->values[g->values[id].tensor.root].tensor;
}

static bool is_tensor(const struct graph *g, uint32_t id) {
  return id != NO_VALUE && g->values[id].kind == VK_TENSOR;
}

/* ---- views ----------------------------------------------------------------------------------- */

static bool owned(const struct tensor *t) { return t->input || t->output || t->constant; }

/* Node i writes this value, or all of this list. */
static void note_write(struct planner *p, uint32_t id, uint32_t i) {
  if (id == NO_VALUE) return;
  const struct value *v = &p->g->values[id];
  p->last_write[id] = i;
  for (uint32_t k = 0; v->kind == VK_VALUE_LIST && k < v->list.n; k++)
    if (v->list.ids[k] != NO_VALUE) p->last_write[v->list.ids[k]] = i;
}

static sconce_status find_writes(struct planner *p) {
  const struct graph *g = p->g;
  p->last_write = arena_new(&p->g->arena, uint32_t, g->n_values);
  p->sharer = arena_new(&p->g->arena, uint32_t, g->n_values);
  if (!p->last_write || !p->sharer)
    return fail(p->err, SCONCE_NO_MEMORY, "no memory to look at %u values", g->n_values);
  for (uint32_t i = 0; i < g->n_values; i++) p->sharer[i] = i;
  for (uint32_t i = 0; i < g->n_nodes; i++) p->jumps |= (g->nodes[i].op->flags & OP_FLOW) != 0;
  for (uint32_t i = 0; i < g->n_nodes && !p->jumps; i++)
    for (uint32_t k = 0; k <= g->nodes[i].n_parts; k++) {
      const struct node *n = k ? &g->nodes[i].parts[k - 1] : &g->nodes[i];
      for (uint32_t a = 0; a < n->n_args; a++)
        if (a + 1 == n->n_args || (a < 32 && n->op->writes >> a & 1)) note_write(p, n->args[a], i);
    }
  return SCONCE_OK;
}

/* Does nothing write x in place from node i on? Of state that is known where nothing jumps. */
static bool is_settled(const struct planner *p, uint32_t x, uint32_t i) {
  const struct tensor *t = &p->g->values[x].tensor;
  return !t->written || (t->constant && !p->jumps && p->last_write[x] < i);
}

/* May y, which node i makes, live in x's buffer? Only one of several views may be seen from
 * outside, and what is written in place later must not be anybody's view. */
static bool may_share(const struct planner *p, uint32_t x, uint32_t y, uint32_t i) {
  struct graph *g = p->g;
  const struct tensor *a = root_of(g, x), *b = &g->values[y].tensor;
  if (g->values[y].tensor.root != y || g->values[x].tensor.dtype != b->dtype) return false;
  if (b->written || b->constant) return false;
  if (!is_settled(p, g->values[x].tensor.root, i) || !is_settled(p, x, i)) return false;
  if (owned(a) && owned(b)) return false;
  return tensor_nbytes_max(a) >= tensor_nbytes_max(b) || !owned(a);
}

/* All that has the root `from`, itself too, has the root `to` from now on. An output takes others
 * once, and a view moves once, so all of this is linear. */
static void move_sharers(const struct planner *p, uint32_t from, uint32_t to) {
  uint32_t v = from;
  do {
    p->g->values[v].tensor.root = to;
    v = p->sharer[v];
  } while (v != from);
  const uint32_t next = p->sharer[from];
  p->sharer[from] = p->sharer[to];
  p->sharer[to] = next;
}

/* n: node i or a part of it. */
static void join_view(const struct planner *p, const struct node *n, uint32_t i) {
  struct graph *g = p->g;
  if (!(n->op->flags & (OP_VIEW | OP_IN_PLACE))) return;
  uint32_t x = n->args[0], y = out_id(n);
  if (!is_tensor(g, x) || !is_tensor(g, y) || !may_share(p, x, y, i)) return;
  if (n->op->flags & OP_IN_PLACE && (root_of(g, x)->constant || root_of(g, x)->input)) return;
  const uint32_t root = g->values[x].tensor.root;
  if (owned(&g->values[y].tensor))
    move_sharers(p, root, y); /* an output: all that shared with x now lives in its buffer */
  else
    move_sharers(p, y, root);
}

static sconce_status join_views(struct planner *p) {
  TRY(find_writes(p));
  for (uint32_t i = 0; i < p->g->n_nodes; i++) {
    const struct node *n = &p->g->nodes[i];
    for (uint32_t k = 0; k < n->n_parts; k++) join_view(p, &n->parts[k], i);
    if (n->n_parts == 0) join_view(p, n, i);
  }
  return SCONCE_OK;
}

/* ---- lifetimes ------------------------------------------------------------------------------- */

/* When a node or a part runs, and what it is part of. */
struct moment {
  uint32_t node;
  uint32_t time, from, to; /* from … to: of the whole fused node */
  bool host;               /* it dispatches nothing */
};

/* First all nodes say what they use, then how long that lives is known. */
static void use(struct planner *p, uint32_t id, const struct moment *at, bool counting) {
  if (id == NO_VALUE) return;
  struct value *v = &p->g->values[id];
  if (v->kind == VK_VALUE_LIST)
    for (uint32_t i = 0; i < v->list.n; i++) use(p, v->list.ids[i], at, counting);
  if (v->kind != VK_TENSOR) return;
  struct life *life = &p->lives[v->tensor.root];
  if (counting) {
    v->tensor.bound |= !at->host;
    if (life->first > life->last) life->first = life->last = 0, life->node = at->node;
    if (life->node != at->node) life->node = NO_VALUE;
    return;
  }
  bool inside = life->node == at->node;
  uint32_t first = inside ? at->time : at->from, last = inside ? at->time : at->to;
  if (first < life->first) life->first = first;
  if (last > life->last) life->last = last;
}

static void use_node(struct planner *p, const struct node *n, struct moment *at, bool counting) {
  at->host = n->op->flags & OP_HOST;
  for (uint32_t k = 0; k < n->n_args; k++)
    if (k >= 32 || !(n->op->unbound >> k & 1)) use(p, n->args[k], at, counting);
  for (uint32_t k = 0; k < NODE_EXTRAS; k++) use(p, n->extra[k], at, counting);
}

static void use_all(struct planner *p, bool counting) {
  p->n_times = 0;
  for (uint32_t i = 0; i < p->g->n_nodes; i++) {
    const struct node *n = &p->g->nodes[i];
    struct moment at = {i, p->n_times, p->n_times, p->n_times + n->n_parts, false};
    for (uint32_t k = 0; k < n->n_parts; k++, at.time++) use_node(p, &n->parts[k], &at, counting);
    use_node(p, n, &at, counting);
    p->n_times = at.to + 1;
  }
}

/* In a loop the next round reads what the last one left. What one block of it makes and reads is
 * over with the block; all else that a loop has a part in lives as long as the loop. */
static void stretch(const struct flow_loops *loops, const struct graph *g, uint32_t id,
                    const uint32_t *node_at, const uint32_t *from, struct life *life) {
  const uint32_t first = node_at[life->first], last = node_at[life->last];
  if (loops->block[first] == loops->block[last] && !g->values[id].tensor.written) return;
  if (loops->first[first] < loops->end[first]) life->first = from[loops->first[first]];
  if (loops->first[last] < loops->end[last]) life->last = from[loops->end[last]] - 1;
}

static sconce_status stretch_lives(struct planner *p) {
  struct graph *g = p->g;
  struct flow_loops loops;
  TRY(flow_find_loops(g, &loops, p->err));
  if (!loops.block) return SCONCE_OK;
  uint32_t *node_at = arena_new(&g->arena, uint32_t, p->n_times);
  uint32_t *from = arena_new(&g->arena, uint32_t, g->n_nodes + 1);
  if (!node_at || !from)
    return fail(p->err, SCONCE_NO_MEMORY, "no memory for %u times", p->n_times);
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    from[i + 1] = from[i] + g->nodes[i].n_parts + 1;
    for (uint32_t time = from[i]; time < from[i + 1]; time++) node_at[time] = i;
  }
  for (uint32_t i = 0; i < g->n_values; i++)
    if (g->values[i].kind == VK_TENSOR && p->lives[i].first <= p->lives[i].last)
      stretch(&loops, g, i, node_at, from, &p->lives[i]);
  return SCONCE_OK;
}

static sconce_status find_lives(struct planner *p) {
  struct graph *g = p->g;
  p->lives = arena_new(&g->arena, struct life, g->n_values);
  if (!p->lives) return fail(p->err, SCONCE_NO_MEMORY, "no memory for %u lifetimes", g->n_values);
  for (uint32_t i = 0; i < g->n_values; i++) p->lives[i].first = UINT32_MAX;
  for (uint32_t i = 0; i < g->n_values; i++) {
    if (g->values[i].kind != VK_TENSOR) continue;
    struct life *life = &p->lives[g->values[i].tensor.root];
    uint64_t size = tensor_nbytes_max(&g->values[i].tensor);
    if (size > life->size) life->size = size;
  }
  use_all(p, true);
  for (uint32_t i = 0; i < g->n_values; i++) p->lives[i].first = UINT32_MAX, p->lives[i].last = 0;
  use_all(p, false);
  return stretch_lives(p);
}

/* ---- buffers --------------------------------------------------------------------------------- */

static uint32_t add_buffer(struct planner *p, enum buffer_kind kind, uint64_t size,
                           uint32_t value) {
  struct graph *g = p->g;
  g->buffers[g->n_buffers] =
      (struct buffer){.kind = kind, .size = buffer_size(size), .value = value};
  return g->n_buffers++;
}

/* Two constants with the same bytes and layout share a buffer while neither is written. */
static sconce_status place_constant(struct planner *p, uint32_t id) {
  struct graph *g = p->g;
  struct tensor *t = &g->values[id].tensor;
  uint32_t other = constant_find(g, &p->constants, t, t->packing);
  if (other != NO_VALUE) {
    t->buffer = g->values[other].tensor.buffer;
    return SCONCE_OK;
  }
  t->buffer = add_buffer(p, BUFFER_CONSTANT, p->lives[id].size, id);
  if (!constant_add(g, &p->constants, id))
    return fail(p->err, SCONCE_NO_MEMORY, "no memory for a constant");
  return SCONCE_OK;
}

/* Constants that were joined: one buffer, each at an aligned place. */
static void place_joined(struct planner *p, uint32_t first) {
  struct graph *g = p->g;
  uint64_t size = 0;
  for (uint32_t id = first; id != NO_VALUE; id = g->values[id].tensor.joined) {
    struct tensor *t = &g->values[id].tensor;
    t->base = round_up(size, g->caps.storage_alignment ? g->caps.storage_alignment : 256);
    t->buffer = g->n_buffers;
    size = t->base + buffer_size(tensor_nbytes_max(t));
  }
  add_buffer(p, BUFFER_CONSTANT, size, first);
}

static sconce_status place_owned(struct planner *p, uint32_t id) {
  struct tensor *t = &p->g->values[id].tensor;
  if (t->joined != NO_VALUE || t->behind) {
    if (!t->behind) place_joined(p, id);
    return SCONCE_OK;
  }
  if (t->constant && !t->written) return place_constant(p, id);
  enum buffer_kind kind = t->constant ? BUFFER_STATE : t->output ? BUFFER_OUTPUT : BUFFER_INPUT;
  t->buffer = add_buffer(p, kind, p->lives[id].size, id);
  return SCONCE_OK;
}

/* ---- transients ------------------------------------------------------------------------------ */

static int by_number(const void *a, const void *b) {
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

/* What was in use up to `time` is free: behind those that are free for longer, in their order. */
static void set_free(struct planner *p, uint32_t time) {
  uint32_t n = 0;
  for (uint32_t b = p->ending[time]; b != NO_VALUE; b = p->after[b]) p->freed[n++] = b;
  if (n > 1) qsort(p->freed, n, sizeof *p->freed, by_number);
  for (uint32_t i = 0; i < n; i++) {
    *(p->last_free == NO_VALUE ? &p->first_free : &p->after[p->last_free]) = p->freed[i];
    p->last_free = p->freed[i];
    p->after[p->last_free] = NO_VALUE;
  }
}

/* The free buffer that has been idle longest and is large enough; else the one that has been idle
 * longest, which grows. Files of any size are planned in time that grows with them, so only so many
 * are looked at: real graphs have some hundred. */
static uint32_t take_free(struct planner *p, uint64_t size) {
  enum { LOOKS = 1024 };
  const struct graph *g = p->g;
  uint32_t best = NO_VALUE, before_best = NO_VALUE, before = NO_VALUE, b = p->first_free;
  for (int looks = 0; b != NO_VALUE && looks < LOOKS; looks++, before = b, b = p->after[b]) {
    const uint64_t has = g->buffers[b].size;
    if (has > 8 * size && size > 65536) continue; /* a small tensor leaves a large one free */
    if (best != NO_VALUE && has < size) continue;
    best = b;
    before_best = before;
    if (has >= size) break;
  }
  if (best == NO_VALUE) return NO_VALUE;
  *(before_best == NO_VALUE ? &p->first_free : &p->after[before_best]) = p->after[best];
  if (p->last_free == best) p->last_free = before_best;
  return best;
}

static void place_transient(struct planner *p, uint32_t id) {
  struct graph *g = p->g;
  const struct life *life = &p->lives[id];
  const uint64_t size = buffer_size(life->size);
  uint32_t buffer = take_free(p, size);
  if (buffer == NO_VALUE) buffer = add_buffer(p, BUFFER_TRANSIENT, size, id);
  if (g->buffers[buffer].size < size) g->buffers[buffer].size = size;
  p->after[buffer] = p->ending[life->last];
  p->ending[life->last] = buffer;
  g->values[id].tensor.buffer = buffer;
}

/* Roots in the order of their first use, scratch included; values are chained by that time. */
static sconce_status place_all(struct planner *p) {
  struct graph *g = p->g;
  uint32_t *head = arena_new(&g->arena, uint32_t, p->n_times);
  uint32_t *next = arena_new(&g->arena, uint32_t, g->n_values);
  p->ending = arena_new(&g->arena, uint32_t, p->n_times);
  p->after = arena_new(&g->arena, uint32_t, g->n_values);
  p->freed = arena_new(&g->arena, uint32_t, g->n_values);
  if (!head || !next || !p->ending || !p->after || !p->freed)
    return fail(p->err, SCONCE_NO_MEMORY, "no memory to place tensors");
  for (uint32_t i = 0; i < p->n_times; i++) head[i] = p->ending[i] = NO_VALUE;
  p->first_free = p->last_free = NO_VALUE;
  for (uint32_t id = 0; id < g->n_values; id++) {
    if (g->values[id].kind != VK_TENSOR || g->values[id].tensor.root != id) continue;
    bool used = p->lives[id].first <= p->lives[id].last;
    const struct tensor *t = &g->values[id].tensor;
    if (!t->behind) g->values[id].tensor.buffer = UINT32_MAX; /* the first of a join places all */
    if (t->input || t->output || (t->constant && used)) {
      TRY(place_owned(p, id));
    } else if (used) {
      next[id] = head[p->lives[id].first];
      head[p->lives[id].first] = id;
    }
  }
  for (uint32_t time = 0; time < p->n_times; time++) {
    if (time > 0) set_free(p, time - 1);
    for (uint32_t id = head[time]; id != NO_VALUE; id = next[id]) place_transient(p, id);
  }
  return SCONCE_OK;
}

sconce_status memory_plan(struct graph *g, sconce_error *err) {
  struct planner p = {.g = g, .err = err};
  TRY(join_views(&p));
  TRY(find_lives(&p));
  g->buffers = arena_new(&g->arena, struct buffer, g->n_values);
  if (!g->buffers) return fail(err, SCONCE_NO_MEMORY, "no memory for %u buffers", g->n_values);
  TRY(place_all(&p));
  for (uint32_t id = 0; id < g->n_values; id++) {
    if (g->values[id].kind != VK_TENSOR) continue;
    g->values[id].tensor.buffer = root_of(g, id)->buffer;
    g->values[id].tensor.base = root_of(g, id)->base;
  }
  for (uint32_t i = 0; i < g->n_buffers; i++)
    if (g->buffers[i].size > g->caps.max_buffer)
      return fail(err, SCONCE_NO_GPU_MEMORY,
                  "a tensor needs %" PRIu64 " bytes, the device's buffers have at most %" PRIu64,
                  g->buffers[i].size, g->caps.max_buffer);
  return SCONCE_OK;
}

/* ---- the checker ----------------------------------------------------------------------------- */

static bool persistent(enum buffer_kind kind) {
  return kind == BUFFER_CONSTANT || kind == BUFFER_STATE;
}

static sconce_status check_record(const struct graph *g, const struct record *r,
                                  sconce_error *err) {
  for (uint32_t i = 0; i < r->n_operands; i++) {
    const struct tensor *t = &g->values[r->operands[i].value].tensor;
    if (t->buffer >= g->n_buffers)
      return fail(err, SCONCE_BAD_GRAPH, "binding %u of '%s' has no memory", i, r->row->wgsl->name);
    const struct buffer *b = &g->buffers[t->buffer];
    if (persistent(b->kind) != g->values[t->root].tensor.constant)
      return fail(err, SCONCE_BAD_GRAPH,
                  "value %u and value %u share a buffer, but only one of them persists",
                  r->operands[i].value, b->value);
    bool writes = r->row->wgsl->bindings[i] == BIND_WRITE;
    if (writes && b->kind == BUFFER_CONSTANT)
      return fail(err, SCONCE_BAD_GRAPH, "binding %u of '%s' writes a constant", i,
                  r->row->wgsl->name);
    for (uint32_t k = 0; writes && k < r->n_operands; k++)
      if (k != i && g->values[r->operands[k].value].tensor.buffer == t->buffer)
        return fail(err, SCONCE_BAD_GRAPH,
                    "bindings %u and %u of '%s' are one buffer, and %u is written", i, k,
                    r->row->wgsl->name, i);
  }
  return SCONCE_OK;
}

sconce_status graph_check(const struct graph *g, sconce_error *err) {
  for (uint32_t i = 0; i < g->n_nodes; i++)
    for (uint32_t k = 0; k < g->nodes[i].n_records; k++) {
      sconce_status status = check_record(g, &g->nodes[i].records[k], err);
      if (status == SCONCE_OK) continue;
      error_prefix(err, "node %u (%s): ", g->nodes[i].index, g->nodes[i].name);
      return status;
    }
  return SCONCE_OK;
}
