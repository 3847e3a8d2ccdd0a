/* Execution: see exec.h. */
#include "run/exec.h"

#include "base/checked.h"
#include "base/os.h"
#include "graph/flow.h"

#include <stdio.h>
#include <string.h>

enum { SLOTS_A_BLOCK = 256 };

/* Parameter memory: a uniform buffer and what it holds, written once a call where it changed. */
struct params {
  struct params *next;
  struct gpu_buffer *buffer;
  uint32_t n;                    /* slots taken */
  uint32_t dirty_from, dirty_to; /* slots to write */
  uint8_t bytes[SLOTS_A_BLOCK * EXEC_SLOT];
};

/* A record's buffers bound to its kernel. Shapes come and go; what was bound once is kept. */
struct variant {
  struct variant *next;
  const struct kernel *row;
  struct operand operands[BINDINGS_MAX];
  struct gpu_group *group;
  float group_ns; /* see struct origin */
};

/* One record place of a node. */
struct bound {
  struct bound *next; /* place of the node's next record */
  struct params *block;
  uint32_t slot;
  struct variant *variants;
};

/* ---- loading --------------------------------------------------------------------------------- */

/* Staging grows to what calls want back: all logits of a long prompt would be a gigabyte. */
static sconce_status open_flights(struct exec *x, sconce_error *err) {
  for (uint32_t i = 0; i < EXEC_FLIGHTS; i++) {
    x->flights[i].outcomes = arena_new(x->arena, struct outcome, x->graph->n_outputs + 1);
    if (!x->flights[i].outcomes) return fail(err, SCONCE_NO_MEMORY, "no memory for outputs");
  }
  return SCONCE_OK;
}

static enum gpu_use use_of(enum buffer_kind kind) {
  return kind == BUFFER_STATE ? GPU_STATE : GPU_TRANSIENT;
}

static bool has_jumps(const struct graph *g) {
  for (uint32_t i = 0; i < g->n_nodes; i++)
    if (flow_is_jump(&g->nodes[i])) return true;
  return false;
}

static bool in_pool(const struct exec *x, uint32_t buffer) {
  return x->pool && pool_wants(x->graph, buffer);
}

/* What state begins with; fresh buffers are zero. */
static sconce_status start_state(struct exec *x, uint32_t buffer, bool fresh, sconce_error *err) {
  if (x->graph->buffers[buffer].kind != BUFFER_STATE) return SCONCE_OK;
  struct gpu_buffer *from = x->shared->held[buffer]->buffer, *to = x->buffers[buffer];
  const struct gpu_copy copy = {
      .from = from, .to_buffer = to, .size = x->graph->buffers[buffer].size};
  if (from) return gpu_submit(x->gpu, &(struct gpu_batch){.copies = &copy, .n_copies = 1}, err);
  return fresh ? SCONCE_OK : gpu_clear(to, err);
}

static sconce_status open_buffer(struct exec *x, uint32_t i, sconce_error *err) {
  static const char *const names[] = {"constant", "state", "input", "output", "transient"};
  const struct buffer *b = &x->graph->buffers[i];
  bool fresh = true;
  x->buffers[i] = x->shared->buffers[i];
  if (x->buffers[i]) return SCONCE_OK;
  if (in_pool(x, i))
    TRY(pool_take(x->pool, x->gpu, x->graph, i, &x->buffers[i], &fresh, err));
  else
    TRY(gpu_buffer_open(x->gpu, use_of(b->kind), b->size, names[b->kind], &x->buffers[i], err));
  return fresh ? start_state(x, i, true, err) : SCONCE_OK;
}

static sconce_status open_buffers(struct exec *x, sconce_error *err) {
  const struct graph *g = x->graph;
  x->buffers = arena_new(x->arena, struct gpu_buffer *, g->n_buffers);
  x->bound = arena_new(x->arena, struct bound *, g->n_nodes);
  x->copies = arena_new(x->arena, struct gpu_copy, g->n_outputs + 1);
  const bool jumps = has_jumps(g);
  if (jumps) x->again = arena_new(x->arena, struct bound **, g->n_nodes);
  x->loops = flow_has_loops(g);
  if (!x->buffers || !x->bound || !x->copies || (jumps && !x->again))
    return fail(err, SCONCE_NO_MEMORY, "no memory for %u buffers", g->n_buffers);
  for (uint32_t i = 0; i < g->n_buffers; i++) TRY(open_buffer(x, i, err));
  return open_flights(x, err);
}

sconce_status exec_init(struct exec *x, struct shared *shared, struct pool *pool,
                        struct graph *graph, sconce_error *err) {
  *x = (struct exec){
      .gpu = shared->gpu, .shared = shared, .pool = pool, .graph = graph, .arena = &graph->arena};
  x->piece_ns = PIECE_NS;
  pool_begin(pool);
  return open_buffers(x, err);
}

static bool is_own(const struct exec *x, uint32_t buffer) {
  return x->buffers[buffer] && !x->shared->buffers[buffer] && !in_pool(x, buffer);
}

void exec_free(struct exec *x) {
  piece_drop(x);
  for (uint32_t i = 0; x->bound && i < x->graph->n_nodes; i++)
    for (struct bound *b = x->bound[i]; b; b = b->next)
      for (struct variant *v = b->variants; v; v = v->next) gpu_group_close(v->group);
  for (struct params *p = x->params; p; p = p->next) gpu_buffer_close(p->buffer);
  for (uint32_t i = 0; x->buffers && i < x->graph->n_buffers; i++)
    if (is_own(x, i)) gpu_buffer_close(x->buffers[i]);
  for (uint32_t i = 0; i < EXEC_FLIGHTS; i++) gpu_read_close(x->flights[i].read);
  gpu_read_close(x->part);
  pool_end(x->pool);
  *x = (struct exec){0};
}

uint64_t exec_own(const struct exec *x) {
  uint64_t size = 0;
  for (uint32_t i = 0; i < x->graph->n_buffers; i++)
    if (is_own(x, i) || (in_pool(x, i) && x->pool->users == 1))
      size += gpu_buffer_size(x->buffers[i]);
  for (const struct params *p = x->params; p; p = p->next) size += gpu_buffer_size(p->buffer);
  for (uint32_t i = 0; i < EXEC_FLIGHTS; i++) size += gpu_read_size(x->flights[i].read);
  return size + gpu_read_size(x->part);
}

sconce_status exec_reset(struct exec *x, sconce_error *err) {
  for (uint32_t i = 0; i < x->graph->n_buffers; i++) TRY(start_state(x, i, false, err));
  return SCONCE_OK;
}

/* ---- state ----------------------------------------------------------------------------------- */

uint64_t exec_state_size(const struct exec *x) {
  uint64_t size = 0;
  for (uint32_t i = 0; i < x->graph->n_buffers; i++)
    if (x->graph->buffers[i].kind == BUFFER_STATE) size += x->graph->buffers[i].size;
  return size;
}

static sconce_status read_begin(struct exec *x, struct gpu_read *read, uint32_t buffer,
                                uint64_t offset, uint64_t size, sconce_error *err) {
  struct gpu_copy copy = {
      .from = x->buffers[buffer], .from_offset = offset, .to = read, .size = size};
  TRY(gpu_submit(x->gpu, &(struct gpu_batch){.copies = &copy, .n_copies = 1}, err));
  return gpu_read_begin(read, err);
}

static sconce_status read_back(struct exec *x, struct gpu_read *read, uint32_t buffer,
                               uint64_t offset, uint64_t size, uint8_t *out, sconce_error *err) {
  const void *data;
  TRY(read_begin(x, read, buffer, offset, size, err));
  TRY(gpu_read_wait(read, &data, err));
  memcpy(out, data, (size_t)size);
  gpu_read_end(read);
  return SCONCE_OK;
}

enum { STATE_STEP = 16 << 20 }; /* bytes at a time, so that staging stays small */

sconce_status exec_get_state(struct exec *x, uint8_t *out, sconce_error *err) {
  struct gpu_read *read;
  TRY(gpu_read_open(x->gpu, STATE_STEP, &read, err));
  sconce_status status = SCONCE_OK;
  for (uint32_t i = 0; i < x->graph->n_buffers && status == SCONCE_OK; i++) {
    const struct buffer *b = &x->graph->buffers[i];
    if (b->kind != BUFFER_STATE) continue;
    for (uint64_t at = 0; at < b->size && status == SCONCE_OK; at += STATE_STEP) {
      uint64_t n = b->size - at < STATE_STEP ? b->size - at : STATE_STEP;
      status = read_back(x, read, i, at, n, out + at, err);
    }
    out += b->size;
  }
  gpu_read_close(read);
  return status;
}

sconce_status exec_set_state(struct exec *x, const uint8_t *in, sconce_error *err) {
  for (uint32_t i = 0; i < x->graph->n_buffers; i++) {
    const struct buffer *b = &x->graph->buffers[i];
    if (b->kind != BUFFER_STATE) continue;
    for (uint64_t at = 0; at < b->size; at += STATE_STEP) {
      uint64_t n = b->size - at < STATE_STEP ? b->size - at : STATE_STEP;
      TRY(gpu_write(x->buffers[i], at, in + at, (size_t)n, err));
    }
    in += b->size;
  }
  return SCONCE_OK;
}

/* ---- binding --------------------------------------------------------------------------------- */

static sconce_status take_slot(struct exec *x, struct bound *b, sconce_error *err) {
  if (!x->params || x->params->n == SLOTS_A_BLOCK) {
    struct params *block = arena_new(x->arena, struct params, 1);
    if (!block) return fail(err, SCONCE_NO_MEMORY, "no memory for parameters");
    TRY(gpu_buffer_open(x->gpu, GPU_PARAMS, sizeof block->bytes, "params", &block->buffer, err));
    block->dirty_from = SLOTS_A_BLOCK;
    block->next = x->params;
    x->params = block;
  }
  b->block = x->params;
  b->slot = x->params->n++;
  return SCONCE_OK;
}

static sconce_status place_of(struct exec *x, struct bound **at, struct bound **out,
                              sconce_error *err) {
  if (!*at) {
    struct bound *b = arena_new(x->arena, struct bound, 1);
    if (!b) return fail(err, SCONCE_NO_MEMORY, "no memory for a binding");
    TRY(take_slot(x, b, err));
    *at = b;
  }
  *out = *at;
  return SCONCE_OK;
}

static bool same_operands(const struct record *r, const struct variant *v) {
  if (r->row != v->row) return false;
  for (uint32_t i = 0; i < r->n_operands; i++)
    if (r->operands[i].value != v->operands[i].value ||
        r->operands[i].offset != v->operands[i].offset ||
        r->operands[i].size != v->operands[i].size)
      return false;
  return true;
}

/* Bindings cover a tensor at its maximum, so a live shape never changes them. */
sconce_status exec_group(const struct exec *x, struct gpu_buffer *const *buffers,
                         const struct record *r, struct gpu_buffer *params, uint32_t slot,
                         struct gpu_group **out, sconce_error *err) {
  struct gpu_kernel *kernel;
  struct gpu_binding bindings[BINDINGS_MAX];
  uint32_t n = r->n_operands;
  TRY(gpu_kernel_get(x->gpu, r->row, &kernel, err));
  for (uint32_t i = 0; i < n; i++) {
    const struct operand *o = &r->operands[i];
    const struct tensor *t = &x->graph->values[o->value].tensor;
    bindings[i] =
        (struct gpu_binding){.buffer = buffers[t->buffer],
                             .offset = t->base + o->offset,
                             .size = buffer_size(o->size ? o->size : tensor_nbytes_max(t))};
  }
  if (r->params_size)
    bindings[n++] = (struct gpu_binding){params, (uint64_t)slot * EXEC_SLOT, EXEC_SLOT};
  return gpu_group_open(kernel, bindings, n, out, err);
}

static sconce_status new_variant(struct exec *x, struct bound *b, const struct record *r,
                                 struct variant **out, sconce_error *err) {
  struct variant *v = arena_new(x->arena, struct variant, 1);
  if (!v) return fail(err, SCONCE_NO_MEMORY, "no memory for a bind group");
  v->row = r->row;
  memcpy(v->operands, r->operands, sizeof v->operands);
  TRY(exec_group(x, x->buffers, r, b->block->buffer, b->slot, &v->group, err));
  v->next = b->variants;
  b->variants = v;
  *out = v;
  return SCONCE_OK;
}

static void set_params(struct exec *x, struct bound *b, const struct record *r) {
  uint8_t *slot = b->block->bytes + (size_t)b->slot * EXEC_SLOT;
  if (memcmp(slot, r->params, r->params_size) == 0) return;
  memcpy(slot, r->params, r->params_size);
  if (b->slot < b->block->dirty_from) b->block->dirty_from = b->slot;
  if (b->slot >= b->block->dirty_to) b->block->dirty_to = b->slot + 1;
  x->records_written++;
}

/* Where the time of a kernel is learned: visits of a loop have it in common. */
static float *time_of(struct bound *first, struct variant *v) {
  for (struct variant *w = first ? first->variants : NULL; w && w != v; w = w->next)
    if (w->row == v->row) return &w->group_ns;
  return &v->group_ns;
}

/* `first` is the same record's place at the node's first visit. */
static sconce_status bind(struct exec *x, struct bound *b, struct bound *first,
                          const struct record *r, struct gpu_dispatch *out, struct origin *origin,
                          sconce_error *err) {
  struct variant *v = b->variants;
  while (v && !same_operands(r, v)) v = v->next;
  if (!v) TRY(new_variant(x, b, r, &v, err));
  set_params(x, b, r);
  *out = (struct gpu_dispatch){v->group, {r->grid[0], r->grid[1], r->grid[2]}};
  const float groups = (float)r->grid[0] * (float)r->grid[1] * (float)r->grid[2];
  float *group_ns = first == b ? &v->group_ns : time_of(first, v);
  if (*group_ns == 0 && groups > 0) *group_ns = piece_guess(x) / groups;
  origin->group_ns = group_ns;
  origin->ns = *group_ns * groups;
  return SCONCE_OK;
}

static sconce_status reserve_dispatches(struct exec *x, uint32_t n, sconce_error *err) {
  if (n <= x->cap_dispatches) return SCONCE_OK;
  uint32_t cap = n + x->cap_dispatches;
  struct gpu_dispatch *more = arena_new(x->arena, struct gpu_dispatch, cap);
  struct origin *origins = arena_new(x->arena, struct origin, cap), *spare[2] = {NULL};
  for (int i = 0; i < 2 && x->loops; i++) spare[i] = arena_new(x->arena, struct origin, cap);
  if (!more || !origins || (x->loops && (!spare[0] || !spare[1])))
    return fail(err, SCONCE_NO_MEMORY, "no memory for %u dispatches", n);
  if (x->n_dispatches) memcpy(more, x->dispatches, x->n_dispatches * sizeof *more);
  if (x->n_dispatches) memcpy(origins, x->origins, x->n_dispatches * sizeof *origins);
  x->dispatches = more;
  x->origins = origins;
  memcpy(x->spare, spare, sizeof spare);
  x->cap_dispatches = cap;
  return SCONCE_OK;
}

/* A node that a loop visits again before a submit has parameters for each visit: all of them are
 * written before the first of its dispatches runs. */
static sconce_status bind_node(struct exec *x, uint32_t node, sconce_error *err) {
  const struct node *n = &x->graph->nodes[node];
  struct bound **at = x->again && x->again[node] ? x->again[node] : &x->bound[node];
  const bool again = at != &x->bound[node];
  struct bound *first = x->bound[node];
  TRY(reserve_dispatches(x, x->n_dispatches + n->n_records, err));
  for (uint32_t k = 0; k < n->n_records; k++) {
    struct bound *b = NULL;
    TRY(place_of(x, at, &b, err));
    struct origin *origin = &x->origins[x->n_dispatches];
    *origin = (struct origin){.node = n, .row = n->records[k].row};
    TRY(bind(x, b, again ? first : b, &n->records[k], &x->dispatches[x->n_dispatches], origin,
             err));
    x->n_dispatches++;
    at = &b->next;
    first = first ? first->next : NULL;
  }
  if (x->again) x->again[node] = at;
  return SCONCE_OK;
}

/* The list of dispatches; the same as the last call's when nothing was planned anew. */
static sconce_status bind_planned(struct exec *x, sconce_error *err) {
  const struct graph *g = x->graph;
  const bool whole = g->from == 0 && g->planned == g->n_nodes;
  TRY(piece_flush(x, err));
  if (!x->begun) x->submits = x->dispatches_gone = 0;
  if (x->complete && g->nodes_planned == 0 && whole && !x->begun) return SCONCE_OK;
  if (!x->begun) x->n_dispatches = 0;
  x->begun = true;
  x->complete = false;
  for (uint32_t i = g->from; i < g->planned; i++) TRY(bind_node(x, i, err));
  x->complete = whole;
  if (x->again) x->graph->from = g->planned; /* whoever comes again before more is planned */
  return SCONCE_OK;
}

uint32_t exec_dispatches(const struct exec *x) { return x->dispatches_gone + x->n_dispatches; }

static sconce_status write_params(struct exec *x, sconce_error *err) {
  for (struct params *p = x->params; p; p = p->next) {
    if (p->dirty_from >= p->dirty_to) continue;
    size_t at = (size_t)p->dirty_from * EXEC_SLOT,
           size = (size_t)(p->dirty_to - p->dirty_from) * EXEC_SLOT;
    TRY(gpu_write(p->buffer, at, p->bytes + at, size, err));
    p->dirty_from = SLOTS_A_BLOCK;
    p->dirty_to = 0;
  }
  return SCONCE_OK;
}

/* ---- running --------------------------------------------------------------------------------- */

sconce_status exec_write(struct exec *x, uint32_t value, const void *data, uint64_t size,
                         sconce_error *err) {
  const struct tensor *t = &x->graph->values[value].tensor;
  TRY(piece_flush(x, err));
  return gpu_write(x->buffers[t->buffer], 0, data, (size_t)size, err);
}

sconce_status exec_feed(struct exec *x, uint32_t input, const struct exec *y, uint32_t output,
                        sconce_error *err) {
  const struct tensor *from = &y->graph->values[y->graph->outputs[output]].tensor;
  const struct tensor *to = &x->graph->values[x->graph->inputs[input]].tensor;
  uint64_t size = round_up(tensor_nbytes(from), 4);
  struct gpu_copy copy = {
      .from = y->buffers[from->buffer], .to_buffer = x->buffers[to->buffer], .size = size};
  if (copy.from == copy.to_buffer || size == 0) return SCONCE_OK; /* it is there already */
  return gpu_submit(x->gpu, &(struct gpu_batch){.copies = &copy, .n_copies = 1}, err);
}

/* ---- flights --------------------------------------------------------------------------------- */

/* Copies start on words: where a row begins inside one, that word is copied whole, and `at` is
 * behind what nobody wants of it. */
static struct gpu_copy copy_of(const struct exec *x, uint32_t value, uint64_t from,
                               struct outcome *o, uint64_t *size) {
  const struct tensor *t = &x->graph->values[value].tensor;
  const uint64_t start = from & ~(uint64_t)3;
  struct gpu_copy copy = {.from = x->buffers[t->buffer],
                          .from_offset = start,
                          .to_offset = *size,
                          .size = round_up(tensor_nbytes(t) - start, 4)};
  o->copied = true;
  o->at = *size + (from - start);
  *size += round_up(copy.size, 8);
  return copy;
}

/* Where the rows start that a call wants back, in bytes; the outcome's dims are then theirs. */
static uint64_t first_wanted(const struct tensor *t, uint32_t last_rows, struct outcome *o) {
  const uint32_t axis = t->rank >= 2 ? t->rank - 2 : 0;
  if (t->rank < 2 || last_rows == 0 || o->dims[axis] <= last_rows) return 0;
  for (uint32_t d = 0; d < axis; d++)
    if (o->dims[d] != 1) return 0;
  const uint64_t skipped = o->dims[axis] - last_rows;
  o->dims[axis] = last_rows;
  return skipped * o->dims[axis + 1] * vk_dtype_size(t->dtype);
}

/* What a call will give, and the copies for it; returns their number, *size: bytes of them all. */
static uint32_t note_outcomes(struct exec *x, struct flight *f, const struct take *take,
                              uint64_t *size) {
  const struct graph *g = x->graph;
  uint32_t n = 0;
  *size = 0;
  for (uint32_t i = 0; i < g->n_outputs; i++) {
    const struct value *v = &g->values[g->outputs[i]];
    struct outcome *o = &f->outcomes[i];
    *o = (struct outcome){.number = v->kind == VK_TENSOR ? 0 : v->i};
    if (v->kind != VK_TENSOR) continue;
    memcpy(o->dims, v->tensor.dim_live, sizeof o->dims);
    if (take->nothing) continue;
    const uint64_t from = first_wanted(&v->tensor, take->last_rows, o);
    x->copies[n] = copy_of(x, g->outputs[i], from, o, size);
    n += x->copies[n].size > 0;
  }
  struct outcome *tokens = &f->outcomes[g->n_outputs];
  *tokens = (struct outcome){0};
  if (take->token == NO_VALUE) return n;
  memcpy(tokens->dims, g->values[take->token].tensor.dim_live, sizeof tokens->dims);
  x->copies[n++] = copy_of(x, take->token, 0, tokens, size);
  return n;
}

static struct flight *free_flight(struct exec *x) {
  for (uint32_t i = 0; i < EXEC_FLIGHTS; i++)
    if (!x->flights[i].taken) return &x->flights[i];
  return NULL;
}

static sconce_status grow_flight(struct exec *x, struct flight *f, uint64_t size,
                                 sconce_error *err) {
  if (f->read && f->size >= size) return SCONCE_OK;
  gpu_read_close(f->read);
  f->read = NULL;
  f->size = 0;
  TRY(gpu_read_open(x->gpu, size, &f->read, err));
  f->size = size;
  return SCONCE_OK;
}

static void end_flight(struct flight *f) {
  if (f->taken) gpu_read_end(f->read);
  f->taken = false;
}

static void end_finished(struct exec *x) {
  if (x->finished) end_flight(x->finished);
  x->finished = NULL;
  x->mapped = NULL;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* What is bound and not yet sent. A long chain goes in a few submits: the device starts while the
 * rest is encoded. Two to four were best for a token of 82 dispatches on an H200, eight worse;
 * a prompt of 128 tokens has some 200, a quarter of which the device waits for. One that has
 * another call to work on needs none. */
static uint32_t splits_of(const struct exec *x) {
  const uint32_t n = x->n_dispatches - x->dispatches_sent;
  return n < 48 || x->n_running ? 1 : n < 64 ? 2 : n < 128 ? 3 : 4;
}

/* Where submit s of so many begins. Each has twice as many dispatches as the one in front of it,
 * since to encode them takes about half of the time that they run: so the device starts soon and
 * never waits. */
static uint32_t split_at(uint32_t n, uint32_t s, uint32_t splits) {
  return n * ((1u << s) - 1) / ((1u << splits) - 1);
}

static sconce_status send(struct exec *x, uint32_t splits, const struct gpu_copy *copies,
                          uint32_t n_copies, sconce_error *err) {
  TRY(piece_flush(x, err));
  TRY(write_params(x, err));
  const uint32_t first = x->dispatches_sent, n = x->n_dispatches - first;
  for (uint32_t s = 0; s < splits; s++) {
    uint32_t from = first + split_at(n, s, splits), to = first + split_at(n, s + 1, splits);
    bool last = s + 1 == splits;
    struct gpu_dispatch *list = n ? x->dispatches + from : NULL; /* a call may dispatch nothing */
    TRY(gpu_submit(x->gpu, &(struct gpu_batch){list, to - from, copies, last ? n_copies : 0}, err));
    x->submits++;
  }
  x->dispatches_sent = x->n_dispatches;
  return SCONCE_OK;
}

/* Parameters of what was sent may be written anew: the queue keeps the order. */
static void let_go(struct exec *x) {
  if (!x->again) return;
  memset(x->again, 0, x->graph->n_nodes * sizeof *x->again);
  x->dispatches_gone += x->n_dispatches;
  x->n_dispatches = x->dispatches_sent = 0;
  x->complete = false;
  struct origin *sent = x->origins;
  if (!x->spare[0]) return;
  x->origins = x->spare[0];
  x->spare[0] = x->spare[1];
  x->spare[1] = sent;
}

bool exec_is_paced(const struct exec *x) { return x->loops && !(x->pool && x->pool->users > 1); }

sconce_status exec_take(struct exec *x, bool block, bool *taken, sconce_error *err) {
  *taken = true;
  if (!x->again) return SCONCE_OK;
  TRY(bind_planned(x, err));
  uint32_t after;
  while (*taken && exec_is_paced(x) && piece_is_full(x, &after)) {
    TRY(write_params(x, err));
    TRY(piece_send(x, after, block, taken, err));
  }
  if (!exec_is_paced(x) && x->n_dispatches - x->dispatches_sent >= TAKE_MAX)
    TRY(send(x, 1, NULL, 0, err));
  if (*taken && x->n_dispatches && x->dispatches_sent == x->n_dispatches) let_go(x);
  return SCONCE_OK;
}

sconce_status exec_part_begin(struct exec *x, uint32_t value, sconce_error *err) {
  const struct tensor *t = &x->graph->values[value].tensor;
  uint64_t size = tensor_nbytes(t);
  if (size == 0 || size > HOST_READ_MAX)
    return fail(err, SCONCE_UNSUPPORTED, "a scalar from a tensor of %llu bytes",
                (unsigned long long)size);
  TRY(bind_planned(x, err));
  TRY(send(x, splits_of(x), NULL, 0, err));
  let_go(x);
  if (!x->part) TRY(gpu_read_open(x->gpu, HOST_READ_MAX, &x->part, err));
  return read_begin(x, x->part, t->buffer, 0, round_up(size, 4), err);
}

sconce_status exec_part_poll(struct exec *x, uint32_t value, void *out, bool block, bool *done,
                             sconce_error *err) {
  const void *data;
  TRY(block ? gpu_read_wait(x->part, &data, err) : gpu_read_poll(x->part, &data, err));
  *done = data != NULL;
  if (!*done) return SCONCE_OK;
  memcpy(out, data, (size_t)tensor_nbytes(&x->graph->values[value].tensor));
  gpu_read_end(x->part);
  return SCONCE_OK;
}

/* After a call has been sent, or given up, the next one starts from its first node. */
static void call_over(struct exec *x) {
  if (x->loops) piece_drop(x);
  x->dispatches_sent = 0;
  x->begun = false;
  if (x->again) memset(x->again, 0, x->graph->n_nodes * sizeof *x->again);
}

/* The copies of the outputs into this flight. */
static sconce_status prepare_copies(struct exec *x, struct flight *f, const struct take *take,
                                    uint32_t *n, sconce_error *err) {
  uint64_t size;
  *n = note_outcomes(x, f, take, &size);
  TRY(grow_flight(x, f, size, err));
  for (uint32_t i = 0; i < *n; i++) x->copies[i].to = f->read;
  return SCONCE_OK;
}

static sconce_status begin(struct exec *x, struct flight *f, const struct take *take,
                           sconce_error *err) {
  uint64_t start = os_clock_ns();
  uint32_t n;
  TRY(bind_planned(x, err));
  uint64_t bound = os_clock_ns();
  TRY(prepare_copies(x, f, take, &n, err));
  if (piece_wanted(x)) {
    TRY(write_params(x, err));
    TRY(piece_begin(x, f, n, err));
  } else {
    watch_begin(&f->watch, x, x->dispatches_sent, x->n_dispatches);
    if (x->again) f->watch.origins = NULL; /* others will stand there */
    TRY(send(x, splits_of(x), x->copies, n, err));
    TRY(gpu_read_begin(f->read, err));
  }
  x->bind_ns += bound - start;
  x->submit_ns += os_clock_ns() - bound;
  return SCONCE_OK;
}

sconce_status exec_begin(struct exec *x, const struct take *take, sconce_error *err) {
  end_finished(x);
  struct flight *f = free_flight(x);
  if (!f) return fail(err, SCONCE_BAD_ARGUMENT, "%d calls are running", EXEC_FLIGHTS);
  sconce_status status = begin(x, f, take, err);
  call_over(x);
  f->taken = status == SCONCE_OK;
  if (status == SCONCE_OK)
    x->running[x->n_running++] = f;
  else
    x->complete = false;
  return status;
}

sconce_status exec_read(struct exec *x, sconce_error *err) {
  end_finished(x);
  struct flight *f = free_flight(x);
  uint32_t n;
  bool done;
  if (!f) return fail(err, SCONCE_BAD_ARGUMENT, "%d calls are running", EXEC_FLIGHTS);
  TRY(piece_flush(x, err));
  TRY(prepare_copies(x, f, &(struct take){.token = NO_VALUE}, &n, err));
  TRY(gpu_submit(x->gpu, &(struct gpu_batch){.copies = x->copies, .n_copies = n}, err));
  TRY(gpu_read_begin(f->read, err));
  f->watch = (struct watch){0};
  f->taken = true;
  x->running[x->n_running++] = f;
  return exec_poll(x, true, &done, err);
}

static void leave_queue(struct exec *x) {
  x->n_running--;
  memmove(x->running, x->running + 1, x->n_running * sizeof *x->running);
}

/* *data is NULL while the call goes on. */
static sconce_status look(struct exec *x, struct flight *f, bool block, const void **data,
                          sconce_error *err) {
  *data = NULL;
  TRY(piece_go_on(x, block && x->held.flight == f, err));
  if (x->held.flight == f) return SCONCE_OK;
  TRY(block ? gpu_read_wait(f->read, data, err) : gpu_read_poll(f->read, data, err));
  if (*data)
    watch_end(x, &f->watch, block);
  else
    watch_still(&f->watch);
  return SCONCE_OK;
}

sconce_status exec_poll(struct exec *x, bool block, bool *done, sconce_error *err) {
  *done = x->n_running == 0 && x->mapped;
  if (*done) return SCONCE_OK;
  if (x->n_running == 0) return fail(err, SCONCE_BAD_ARGUMENT, "nothing is running");
  struct flight *f = x->running[0];
  const void *data;
  sconce_status status = look(x, f, block, &data, err);
  if (status != SCONCE_OK) {
    if (x->held.flight == f) piece_drop(x);
    leave_queue(x);
    gpu_read_end(f->read); /* where nobody may wait the read still goes on */
    f->taken = false;
    return status;
  }
  *done = data != NULL;
  if (!*done) return SCONCE_OK;
  end_finished(x);
  leave_queue(x);
  x->finished = f;
  x->mapped = data;
  return SCONCE_OK;
}

const struct outcome *exec_outcome(const struct exec *x, uint32_t output) {
  return x->finished ? &x->finished->outcomes[output] : NULL;
}

const void *exec_output(const struct exec *x, uint32_t output) {
  const struct outcome *o = exec_outcome(x, output);
  return o && o->copied ? x->mapped + o->at : NULL;
}

void exec_give_up(struct exec *x) { call_over(x); }

/* wgpu-native would take the end of a copy that was given up for the end of the next one into the
 * same buffer, and let the host read too early: a staging buffer on its way is not used again. */
void exec_cancel(struct exec *x) {
  piece_drop(x);
  for (uint32_t i = 0; i < x->n_running; i++) {
    struct flight *f = x->running[i];
    gpu_read_close(f->read);
    *f = (struct flight){.outcomes = f->outcomes};
  }
  x->n_running = 0;
  gpu_read_close(x->part);
  x->part = NULL;
  end_finished(x);
  call_over(x);
}

/* Binds what is planned, for a run that only the clock is asked about. */
static sconce_status bind_for_clock(struct exec *x, sconce_error *err) {
  end_finished(x);
  sconce_status status = bind_planned(x, err);
  call_over(x);
  if (status == SCONCE_OK) return write_params(x, err);
  x->complete = false;
  return status;
}

sconce_status exec_time_pass(struct exec *x, uint64_t *ns, sconce_error *err) {
  TRY(bind_for_clock(x, err));
  struct gpu_batch batch = {.dispatches = x->dispatches, .n_dispatches = x->n_dispatches};
  uint64_t times[2] = {0};
  TRY(gpu_profile(x->gpu, &batch, GPU_TIME_WHOLE, times, err));
  *ns = times[1] - times[0];
  return SCONCE_OK;
}

sconce_status exec_profile(struct exec *x, struct arena *scratch,
                           void (*each)(void *user, const char *node, const char *kernel,
                                        uint64_t from, uint64_t to),
                           void *user, sconce_error *err) {
  TRY(bind_for_clock(x, err));
  uint64_t *times = arena_new(scratch, uint64_t, 2 * (size_t)x->n_dispatches);
  if (!times) return fail(err, SCONCE_NO_MEMORY, "no memory for %u times", x->n_dispatches);
  struct gpu_batch batch = {.dispatches = x->dispatches, .n_dispatches = x->n_dispatches};
  TRY(gpu_profile(x->gpu, &batch, GPU_TIME_EACH, times, err));
  for (uint32_t i = 0; i < x->n_dispatches; i++) {
    const struct kernel *row = x->origins[i].row;
    char label[120];
    snprintf(label, sizeof label, "%s/%s", row->wgsl->name, row->name);
    each(user, x->origins[i].node->name, label, times[2 * i] - times[0],
         times[2 * i + 1] - times[0]);
  }
  return SCONCE_OK;
}
