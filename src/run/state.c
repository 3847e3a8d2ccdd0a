/* States: opening and closing, inputs, contents. What a call does is in call.c. */
#include "run/state.h"

#include "run/convert.h"

#include <inttypes.h>

sconce_status state_check_up(const sconce_state *s, sconce_error *err) {
  if (!s->down) return SCONCE_OK;
  return fail(err, SCONCE_DEVICE_LOST, "the device is lost, and nobody has opened it again");
}

sconce_status state_check_idle(const sconce_state *s, sconce_error *err) {
  if (s->exec.n_running == 0 && !s->pending) return SCONCE_OK;
  return fail(err, SCONCE_BAD_ARGUMENT, "%u calls are running", s->exec.n_running + s->pending);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Bytes of a border on the host at its largest: inputs as the graph has them, outputs as callers
 * do, if that is something else. */
static uint64_t border_size(const struct value *v, const sconce_tensor *bound, bool input) {
  if (v->kind != VK_TENSOR) return 0;
  if (!input && convert_is_copy(v->tensor.dtype, bound->dtype)) return 0;
  return tensor_numel_max(&v->tensor) *
         (input ? vk_dtype_size(v->tensor.dtype) : sconce_dtype_size(bound->dtype));
}

static sconce_status init_borders(sconce_state *s, struct border *borders, const uint32_t *values,
                                  const sconce_tensor *bounds, uint32_t n, bool input,
                                  uint64_t *largest, sconce_error *err) {
  for (uint32_t i = 0; i < n; i++) {
    borders[i] = (struct border){.value = values[i], .bound = bounds[i]};
    const uint64_t size = border_size(&s->graph.values[values[i]], &bounds[i], input);
    if (size > *largest) *largest = size;
    if (size == 0) continue;
    borders[i].bytes = arena_alloc(&s->arena, (size_t)size, 1, 8);
    if (!borders[i].bytes)
      return fail(err, SCONCE_NO_MEMORY, "no memory for %" PRIu64 " bytes", size);
  }
  return SCONCE_OK;
}

static sconce_status start_exec(sconce_state *s, sconce_error *err) {
  const uint64_t asked = s->method->model->device->piece_ns;
  TRY(exec_init(&s->exec, &s->method->shared, s->pool, &s->graph, err));
  if (asked) s->exec.piece_ns = asked;
  return SCONCE_OK;
}

static sconce_status init(sconce_state *s, sconce_error *err) {
  const sconce_method_info *info = &s->method->info;
  uint64_t side = 1, converted = 0;
  TRY(graph_copy(&s->graph, &s->method->graph, err));
  s->inputs = arena_new(&s->arena, struct border, info->n_inputs);
  s->outputs = arena_new(&s->arena, struct border, info->n_outputs);
  if (!s->inputs || !s->outputs) return fail(err, SCONCE_NO_MEMORY, "no memory for borders");
  TRY(init_borders(s, s->inputs, s->graph.inputs, info->inputs, info->n_inputs, true, &side, err));
  TRY(init_borders(s, s->outputs, s->graph.outputs, info->outputs, info->n_outputs, false,
                   &converted, err));
  s->side = arena_alloc(&s->arena, (size_t)side, 1, 8);
  if (!s->side) return fail(err, SCONCE_NO_MEMORY, "no memory for %" PRIu64 " bytes", side);
  return start_exec(s, err);
}

/* A user of its method; true: device_free is due. */
static bool drop(sconce_state *s) {
  sconce_method *method = s->method;
  sconce_state **at = &method->states;
  while (*at != s) at = &(*at)->next;
  *at = s->next;
  if (s->exec.gpu) exec_free(&s->exec);
  pool_drop(s->pool);
  graph_free(&s->graph);
  sconce_allocator allocator = s->arena.allocator;
  arena_free(&s->arena);
  block_resize(&allocator, s, sizeof *s, 0);
  return method_drop(method);
}

/* A pool of its own, or the other's. */
static sconce_status find_pool(sconce_state *s, const sconce_state *with, sconce_error *err) {
  if (with) with->pool->users++;
  s->pool = with ? with->pool : pool_open(&s->arena.allocator);
  return s->pool ? SCONCE_OK : fail(err, SCONCE_NO_MEMORY, "no memory for a state");
}

static sconce_status check_with(const sconce_method *method, const sconce_state *with,
                                sconce_error *err) {
  if (!with) return SCONCE_OK;
  TRY(state_check_up(with, err));
  if (method->model != with->method->model)
    return fail(err, SCONCE_BAD_ARGUMENT, "the two methods are of different models");
  for (uint32_t i = 0; i < method->graph.n_buffers; i++)
    if (pool_has(with->pool, &method->graph, i)) return SCONCE_OK;
  return fail(err, SCONCE_BAD_ARGUMENT,
              "'%s' and '%s' have no buffer in common: export with share_mutable_buffers",
              method->info.name, with->method->info.name);
}

static sconce_status open_state(sconce_state **out, sconce_method *method, sconce_state *with,
                                sconce_error *err) {
  if (method->phase != METHOD_READY)
    return fail(err, SCONCE_BAD_ARGUMENT, "the method is still being opened");
  TRY(gpu_check(method->model->device->gpu, err));
  TRY(check_with(method, with, err));
  if (with && with->pending)
    return fail(err, SCONCE_BAD_ARGUMENT, "a call of the other state is still being planned");
  if (with) TRY(piece_flush(&with->exec, err)); /* what is shared is held no more */
  sconce_state *s = block_resize(&method->arena.allocator, NULL, 0, sizeof *s);
  if (!s) return fail(err, SCONCE_NO_MEMORY, "no memory for a state");
  *s = (sconce_state){.method = method, .next = method->states};
  method->states = s;
  method->users++;
  arena_init(&s->arena, &method->arena.allocator);
  arena_init(&s->graph.arena, &method->arena.allocator);
  sconce_status status = find_pool(s, with, err);
  if (status == SCONCE_OK) status = init(s, err);
  if (status != SCONCE_OK)
    (void)drop(s); /* the caller still has the method */
  else
    *out = s;
  return status;
}

sconce_status sconce_state_open(sconce_state **out, sconce_method *method, sconce_error *err) {
  if (!out || !method) return fail(err, SCONCE_BAD_ARGUMENT, "out or method is NULL");
  *out = NULL;
  sconce_error local;
  LOCKED(method->model->device->gpu, open_state(out, method, NULL, err ? err : &local));
}

sconce_status sconce_state_join(sconce_state **out, sconce_method *method, sconce_state *with,
                                sconce_error *err) {
  if (!out || !method || !with)
    return fail(err, SCONCE_BAD_ARGUMENT, "out, method or with is NULL");
  *out = NULL;
  sconce_error local;
  LOCKED(method->model->device->gpu, open_state(out, method, with, err ? err : &local));
}

void sconce_state_close(sconce_state *s) {
  if (!s) return;
  sconce_device *device = s->method->model->device;
  gpu_lock(device->gpu);
  const bool unused = drop(s);
  gpu_unlock(device->gpu);
  if (unused) device_free(device);
}

void state_take_down(sconce_state *s) {
  if (s->exec.gpu) exec_free(&s->exec);
  graph_free(&s->graph);
  arena_init(&s->graph.arena, &s->method->arena.allocator);
  s->done = s->drawn = s->pending = s->asked = false;
  s->losses += !s->down;
  s->down = true;
}

static void point_at(struct border *borders, const uint32_t *values, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    borders[i].value = values[i];
    borders[i].set = borders[i].fresh = borders[i].set && !borders[i].fed;
    borders[i].fed = false;
  }
}

sconce_status state_bring_back(sconce_state *s, sconce_error *err) {
  const sconce_method_info *info = &s->method->info;
  TRY(graph_copy(&s->graph, &s->method->graph, err));
  point_at(s->inputs, s->graph.inputs, info->n_inputs);
  point_at(s->outputs, s->graph.outputs, info->n_outputs);
  TRY(start_exec(s, err));
  s->down = false;
  return SCONCE_OK;
}

uint32_t sconce_state_losses(const sconce_state *s) { return s ? s->losses : 0; }

/* ---- inputs ---------------------------------------------------------------------------------- */

/* A static shape is part of what was traced: with other dims the graph would compute nonsense. */
static sconce_status check_dim(const sconce_state *s, uint32_t i, uint32_t d, uint32_t dim,
                               sconce_error *err) {
  const uint32_t bound = s->inputs[i].bound.dims[d];
  if (dim > bound)
    return fail(err, SCONCE_BAD_ARGUMENT, "input %u: dim %u is %u, at most %u", i, d, dim, bound);
  if (dim < bound && !s->method->info.dynamic[i])
    return fail(err, SCONCE_BAD_ARGUMENT,
                "input %u: dim %u is %u, it was exported with %u and without dynamic shapes", i, d,
                dim, bound);
  return SCONCE_OK;
}

static sconce_status check_dims(const sconce_state *s, uint32_t i, const sconce_tensor *t,
                                sconce_error *err) {
  const struct border *b = &s->inputs[i];
  if (!sconce_dtype_size(t->dtype))
    return fail(err, SCONCE_BAD_ARGUMENT, "input %u: unknown dtype %d", i, (int)t->dtype);
  if (t->rank != b->bound.rank)
    return fail(err, SCONCE_BAD_ARGUMENT, "input %u has rank %u, given %u", i, b->bound.rank,
                t->rank);
  uint64_t numel = 1;
  for (uint32_t d = 0; d < t->rank; d++) {
    TRY(check_dim(s, i, d, t->dims[d], err));
    numel *= t->dims[d];
  }
  uint64_t size = numel * sconce_dtype_size(t->dtype);
  if (size != t->size || (size && !t->data))
    return fail(err, SCONCE_BAD_ARGUMENT, "input %u: %zu bytes of data, its dims need %" PRIu64, i,
                t->data ? t->size : 0, size);
  return SCONCE_OK;
}

/* Scalars are part of what was traced: a call may only repeat them. */
static sconce_status check_scalar(const struct value *v, uint32_t i, const sconce_tensor *t,
                                  sconce_error *err) {
  double want = v->kind == VK_DOUBLE ? v->d : v->kind == VK_BOOLEAN ? v->b : (double)v->i;
  double got = 0;
  if (t->rank != 0 || t->size != sconce_dtype_size(t->dtype) || !t->data)
    return fail(err, SCONCE_BAD_ARGUMENT, "input %u is a scalar", i);
  int64_t whole = 0;
  if (t->dtype == SCONCE_INT64)
    memcpy(&whole, t->data, 8), got = (double)whole;
  else if (t->dtype == SCONCE_FLOAT64)
    memcpy(&got, t->data, 8);
  else if (t->dtype == SCONCE_BOOL)
    got = *(const uint8_t *)t->data;
  else
    return fail(err, SCONCE_BAD_ARGUMENT, "input %u is a scalar of int64, float64 or bool", i);
  if (v->kind != VK_NULL && got != want)
    return fail(err, SCONCE_BAD_ARGUMENT, "input %u was exported as %g, given %g", i, want, got);
  return SCONCE_OK;
}

/* A live scalar. */
static sconce_status set_number(struct border *b, uint32_t i, const sconce_tensor *t,
                                sconce_error *err) {
  int32_t number;
  if (t->rank != 0 || t->size != sconce_dtype_size(t->dtype) || !t->data)
    return fail(err, SCONCE_BAD_ARGUMENT, "input %u is a scalar", i);
  sconce_status status = convert_in(VK_INT32, &number, t->dtype, t->data, 1, err);
  if (status != SCONCE_OK) {
    error_prefix(err, "input %u: ", i);
    return status;
  }
  b->number = number;
  return SCONCE_OK;
}

/* Another runtime hands a delegate the same weights at every call: what an input has already is not
 * sent again. */
static void keep_input(struct border *b, const sconce_tensor *t, const void *bytes, size_t size) {
  const bool same = b->set && !b->fed &&
                    (t->rank == 0 || memcmp(b->live, t->dims, t->rank * sizeof *b->live) == 0) &&
                    (size == 0 || memcmp(b->bytes, bytes, size) == 0);
  if (same) return;
  if (size) memcpy(b->bytes, bytes, size);
  memcpy(b->live, t->dims, sizeof b->live);
  b->set = b->fresh = true;
  b->fed = false;
}

sconce_status sconce_state_set_input(sconce_state *s, uint32_t i, const sconce_tensor *t,
                                     sconce_error *err) {
  if (!s || !t) return fail(err, SCONCE_BAD_ARGUMENT, "state or tensor is NULL");
  ALONE(&s->alone, "state");
  TRY(state_check_up(s, err));
  if (i >= s->graph.n_inputs)
    return fail(err, SCONCE_BAD_ARGUMENT, "input %u of %u", i, s->graph.n_inputs);
  if (s->pending) TRY(state_settle(s, err));
  struct border *b = &s->inputs[i];
  struct value *v = &s->graph.values[b->value];
  if (v->kind != VK_TENSOR) {
    TRY(s->method->info.dynamic[i] ? set_number(b, i, t, err) : check_scalar(v, i, t, err));
    b->set = true;
    return SCONCE_OK;
  }
  TRY(check_dims(s, i, t, err));
  uint64_t numel = 1;
  for (uint32_t d = 0; d < t->rank; d++) numel *= t->dims[d];
  /* Converted on the side first: a value out of range must not half replace the old ones. */
  sconce_status status = convert_in(v->tensor.dtype, s->side, t->dtype, t->data, numel, err);
  if (status != SCONCE_OK) {
    error_prefix(err, "input %u: ", i);
    return status;
  }
  keep_input(b, t, s->side, (size_t)numel * vk_dtype_size(v->tensor.dtype));
  return SCONCE_OK;
}

/* An output's live dims, and what is wrong with it as this input. */
static sconce_status check_feed(const sconce_state *s, uint32_t input, const sconce_state *from,
                                uint32_t output, sconce_error *err) {
  const struct value *x = &from->graph.values[from->outputs[output].value];
  const struct value *y = &s->graph.values[s->inputs[input].value];
  char one[120], two[120];
  if (x->kind != VK_TENSOR || y->kind != VK_TENSOR || x->tensor.rank != y->tensor.rank ||
      x->tensor.dtype != y->tensor.dtype)
    return fail(err, SCONCE_BAD_ARGUMENT, "output %u is %s, input %u is %s", output,
                x->kind == VK_TENSOR ? tensor_text(&x->tensor, one) : "a scalar", input,
                y->kind == VK_TENSOR ? tensor_text(&y->tensor, two) : "a scalar");
  for (uint32_t d = 0; d < y->tensor.rank; d++)
    TRY(check_dim(s, input, d, x->tensor.dim_live[d], err));
  return SCONCE_OK;
}

static sconce_status feed(sconce_state *s, uint32_t input, sconce_state *from, uint32_t output,
                          sconce_error *err) {
  TRY(state_check_idle(s, err));
  TRY(state_check_idle(from, err));
  if (!from->done)
    return fail(err, SCONCE_BAD_ARGUMENT, "no call has finished since the last begin");
  TRY(check_feed(s, input, from, output, err));
  TRY(exec_feed(&s->exec, input, &from->exec, output, err));
  struct border *b = &s->inputs[input];
  memcpy(b->live, from->graph.values[from->outputs[output].value].tensor.dim_live, sizeof b->live);
  b->set = b->fed = true;
  b->fresh = false;
  return SCONCE_OK;
}

sconce_status sconce_state_feed(sconce_state *s, uint32_t input, sconce_state *from,
                                uint32_t output, sconce_error *err) {
  if (!s || !from) return fail(err, SCONCE_BAD_ARGUMENT, "state or from is NULL");
  ALONE(&s->alone, "state");
  TRY(state_check_up(s, err));
  TRY(state_check_up(from, err));
  if (output >= from->graph.n_outputs || input >= s->graph.n_inputs)
    return fail(err, SCONCE_BAD_ARGUMENT, "output %u of %u into input %u of %u", output,
                from->graph.n_outputs, input, s->graph.n_inputs);
  if (state_gpu(s) != state_gpu(from))
    return fail(err, SCONCE_BAD_ARGUMENT, "the two states are on different devices");
  sconce_error local;
  LOCKED(state_gpu(s), feed(s, input, from, output, err ? err : &local));
}

/* ---- contents ------------------------------------------------------------------------------- */

sconce_status sconce_state_reset(sconce_state *s, sconce_error *err) {
  if (!s) return fail(err, SCONCE_BAD_ARGUMENT, "state is NULL");
  ALONE(&s->alone, "state");
  TRY(state_check_up(s, err));
  TRY(state_check_idle(s, err));
  LOCKED(state_gpu(s), exec_reset(&s->exec, err));
}

size_t sconce_state_size(const sconce_state *s) {
  return s && !s->down ? (size_t)exec_state_size(&s->exec) : 0;
}

static sconce_status check_state(sconce_state *s, const void *data, size_t size,
                                 sconce_error *err) {
  if (!s || !data) return fail(err, SCONCE_BAD_ARGUMENT, "state or data is NULL");
  TRY(state_check_up(s, err));
  TRY(state_check_idle(s, err));
  if (size != sconce_state_size(s))
    return fail(err, SCONCE_BAD_ARGUMENT, "%zu bytes, the state has %zu", size,
                sconce_state_size(s));
  return SCONCE_OK;
}

sconce_status sconce_state_save(sconce_state *s, void *out, size_t size, sconce_error *err) {
  ALONE(s ? &s->alone : NULL, "state");
  TRY(check_state(s, out, size, err));
  LOCKED(state_gpu(s), exec_get_state(&s->exec, out, err));
}

sconce_status sconce_state_restore(sconce_state *s, const void *data, size_t size,
                                   sconce_error *err) {
  ALONE(s ? &s->alone : NULL, "state");
  TRY(check_state(s, data, size, err));
  LOCKED(state_gpu(s), exec_set_state(&s->exec, data, err));
}

void sconce_state_stats(const sconce_state *s, sconce_stats *out) {
  if (!s || !out) return;
  gpu_lock(state_gpu(s));
  const struct gpu_stats *g = gpu_stats(state_gpu(s));
  *out = (sconce_stats){.gpu_weights = g->bytes[GPU_WEIGHTS],
                        .gpu_state = g->bytes[GPU_STATE],
                        .gpu_transient = g->bytes[GPU_TRANSIENT],
                        .gpu_staging = g->bytes[GPU_STAGING],
                        .gpu_params = g->bytes[GPU_PARAMS],
                        .gpu_buffers = g->buffers,
                        .gpu_groups = g->groups,
                        .gpu_kernels = g->kernels,
                        .gpu_objects_made = g->buffers_made + g->groups_made,
                        .own = s->down ? 0 : exec_own(&s->exec),
                        .host = s->arena.held + s->graph.arena.held,
                        .nodes = s->graph.n_nodes,
                        .dispatches = exec_dispatches(&s->exec),
                        .submits = s->exec.submits,
                        .nodes_planned = s->graph.nodes_planned,
                        .params_written = s->exec.records_written};
  gpu_unlock(state_gpu(s));
}
