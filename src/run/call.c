/* Calls: what is set is planned and submitted, in parts where the device must tell something first,
 * and its outputs are waited for. A call that fails leaves inputs, dims and
 * numbers as they were. */
#include "run/state.h"

#include "base/os.h"
#include "run/convert.h"

#include <inttypes.h>

/* ---- tokens ---------------------------------------------------------------------------------- */

static sconce_status check_draw(const sconce_state *s, const sconce_call *call, sconce_error *err) {
  const sconce_draw *how = call->draw;
  if (!how) return SCONCE_OK;
  if (!s->method->info.can_draw)
    return fail(err, SCONCE_UNSUPPORTED, "the method is no language model with ids and logits");
  if (!(how->temperature >= 0 && how->temperature <= 1e6f) ||
      !(how->top_p >= 0 && how->top_p <= 1) || !(how->min_p >= 0 && how->min_p <= 1) ||
      how->top_k > INT32_MAX || how->position > INT32_MAX)
    return fail(err, SCONCE_BAD_ARGUMENT, "temperature %g, top_k %u, top_p %g, min_p %g",
                (double)how->temperature, how->top_k, (double)how->top_p, (double)how->min_p);
  if (call->last_rows > DRAW_ROWS_MAX || call->last_rows > how->position + 1)
    return fail(err, SCONCE_BAD_ARGUMENT,
                "tokens of %u rows up to position %" PRIu64 ", at most %d", call->last_rows,
                how->position, DRAW_ROWS_MAX);
  return SCONCE_OK;
}

/* The ids that the next call reads are where the last one puts its token. */
static sconce_status feed_token(sconce_state *s, sconce_error *err) {
  if (!s->drawn || !(s->exec.n_running || s->done))
    return fail(err, SCONCE_BAD_ARGUMENT, "no call has chosen a token");
  struct border *b = &s->inputs[0];
  s->unfed = *b;
  b->live[0] = b->live[1] = 1;
  b->set = b->fed = true;
  b->fresh = false;
  return SCONCE_OK;
}

const int32_t *sconce_state_tokens(const sconce_state *s, uint32_t *n) {
  const int32_t *tokens = s && s->done ? exec_output(&s->exec, s->graph.n_outputs) : NULL;
  *n = tokens ? exec_outcome(&s->exec, s->graph.n_outputs)->dims[1] : 0;
  return tokens;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Rows of logits that somebody wants; 0: those of the file. */
static uint32_t wanted_rows(const sconce_call *call) {
  return call->last_rows || !call->draw || !call->keep_outputs ? call->last_rows : 1;
}

static sconce_status plan(sconce_state *s, const sconce_call *call, sconce_error *err) {
  for (uint32_t i = 0; i < s->graph.n_inputs; i++) {
    struct border *b = &s->inputs[i];
    struct value *v = &s->graph.values[b->value];
    const bool number = v->kind == VK_SYMINT && s->method->info.dynamic[i];
    if (v->kind != VK_TENSOR && !number) continue;
    if (!b->set) return fail(err, SCONCE_BAD_ARGUMENT, "input %u was never set", i);
    if (number) {
      TRY(graph_set_symint(&s->graph, b->value, b->number, err));
      continue;
    }
    v->tensor.host = b->fed ? NULL : b->bytes;
    TRY(graph_set_dims(&s->graph, b->value, b->live, v->tensor.rank, err));
    if ((b->fresh || b->fed) && v->stamp <= s->graph.began)
      TRY(graph_touch(&s->graph, b->value, err));
  }
  TRY(draw_set(&s->graph, &s->method->draw, call->draw, wanted_rows(call), err));
  return graph_plan(&s->graph, err);
}

/* A scalar or a condition that only the device knows splits the call: what is planned runs. */
static sconce_status ask(sconce_state *s, sconce_error *err) {
  log_write(&s->method->model->device->log, SCONCE_LOG_INFO,
            "a scalar is computed on the device: the call waits for it");
  if (!s->elements) s->elements = arena_alloc(&s->arena, HOST_READ_MAX, 1, 8);
  if (!s->elements) return fail(err, SCONCE_NO_MEMORY, "no memory for a scalar");
  TRY(exec_part_begin(&s->exec, s->graph.wanted, err));
  s->asked = true;
  return SCONCE_OK;
}

/* Once the elements are there the plan goes on. Who may not wait looks again with the next poll. */
static sconce_status plan_behind(sconce_state *s, bool block, bool *there, sconce_error *err) {
  struct tensor *t = &s->graph.values[s->graph.wanted].tensor;
  *there = block || s->asked;
  if (!s->asked) TRY(ask(s, err));
  if (!*there) return SCONCE_OK;
  TRY(exec_part_poll(&s->exec, s->graph.wanted, s->elements, block, there, err));
  if (!*there) return SCONCE_OK;
  s->asked = false;
  t->host = s->elements;
  sconce_status status = graph_plan(&s->graph, err);
  t->host = NULL; /* the next tensor's elements go there too */
  return status;
}

/* The rest of a call: behind jumps, and behind what the host must read. It stops, and is pending,
 * after the time of a piece, and without `block` where the device has not come so far. */
static sconce_status plan_rest(sconce_state *s, bool block, sconce_error *err) {
  const uint64_t from = os_clock_ns();
  bool there;
  TRY(exec_take(&s->exec, block, &there, err));
  while (there && !graph_is_whole(&s->graph)) {
    if (s->graph.wanted != NO_VALUE)
      TRY(plan_behind(s, block, &there, err));
    else
      TRY(graph_plan(&s->graph, err));
    if (there) TRY(exec_take(&s->exec, block, &there, err));
    if (exec_is_paced(&s->exec) && os_clock_ns() - from > s->exec.piece_ns) break;
  }
  s->pending = !there || !graph_is_whole(&s->graph);
  return SCONCE_OK;
}

/* What the host reads of inputs is among the numbers that are put back, so the next call takes them
 * all for new ones, also those that the device has by now. */
void state_roll_back(sconce_state *s) {
  graph_rollback(&s->graph);
  if (s->fed_token) s->inputs[0] = s->unfed;
  s->fed_token = false;
  for (uint32_t i = 0; i < s->graph.n_inputs; i++)
    s->inputs[i].fresh = s->inputs[i].set && !s->inputs[i].fed;
}

static void forget_call(sconce_state *s) {
  state_roll_back(s);
  exec_give_up(&s->exec);
  s->pending = s->asked = false;
}

static sconce_status plan_on(sconce_state *s, bool block, sconce_error *err) {
  const uint64_t from = os_clock_ns();
  sconce_status status = plan_rest(s, block, err);
  s->plan_ns += os_clock_ns() - from;
  if (status != SCONCE_OK) forget_call(s);
  return status;
}

static sconce_status write_inputs(sconce_state *s, sconce_error *err) {
  for (uint32_t i = 0; i < s->graph.n_inputs; i++) {
    struct border *b = &s->inputs[i];
    const struct value *v = &s->graph.values[b->value];
    if (v->kind != VK_TENSOR || !b->fresh) continue;
    const struct tensor *t = &v->tensor;
    if (t->bound || t->output) TRY(exec_write(&s->exec, b->value, b->bytes, tensor_nbytes(t), err));
    b->fresh = t->output || t->written; /* then it must be sent again */
  }
  return SCONCE_OK;
}

static sconce_status start(sconce_state *s, const sconce_call *call, bool block,
                           sconce_error *err) {
  const uint64_t from = os_clock_ns();
  s->fed_token = call->feed_token;
  graph_begin(&s->graph);
  sconce_status status = plan(s, call, err);
  if (status == SCONCE_OK) status = write_inputs(s, err);
  s->plan_ns += os_clock_ns() - from;
  if (status == SCONCE_OK) return plan_on(s, block, err);
  forget_call(s);
  return status;
}

static sconce_status submit(sconce_state *s, sconce_error *err) {
  sconce_status status = exec_begin(&s->exec, &s->take, err);
  if (status != SCONCE_OK) state_roll_back(s);
  return status;
}

/* A call that was begun is planned on and, when all of it is, submitted. */
static sconce_status go_on(sconce_state *s, bool block, sconce_error *err) {
  s->done = false;
  sconce_status status = plan_on(s, block, err);
  if (status == SCONCE_OK && !s->pending) status = submit(s, err);
  if (status != SCONCE_OK) s->drawn = false; /* there will be no token of it */
  return status;
}

/* What comes behind a pending call, or would change what it reads, waits for its plan. */
static sconce_status settle(sconce_state *s, sconce_error *err) {
  if (!s->pending) return SCONCE_OK;
  if (!gpu_may_wait(state_gpu(s)))
    return fail(err, SCONCE_BAD_ARGUMENT, "the call before is still being planned: poll it first");
  sconce_status status = SCONCE_OK;
  while (s->pending && status == SCONCE_OK) {
    status = go_on(s, true, err);
    if (!s->pending) break;
    device_leave(s->method->model->device); /* others get turns */
    device_enter(s->method->model->device);
  }
  if (status != SCONCE_OK) error_prefix(err, "the call before: ");
  return status;
}

sconce_status state_settle(sconce_state *s, sconce_error *err) {
  sconce_error local;
  LOCKED(state_gpu(s), settle(s, err ? err : &local));
}

static sconce_status begin(sconce_state *s, const sconce_call *call, sconce_error *err) {
  TRY(state_check_up(s, err));
  TRY(settle(s, err));
  if (s->exec.n_running == SCONCE_CALLS_MAX)
    return fail(err, SCONCE_BAD_ARGUMENT, "%d calls are running", SCONCE_CALLS_MAX);
  TRY(check_draw(s, call, err));
  if (call->feed_token) TRY(feed_token(s, err));
  s->graph.max_steps = call->max_steps ? call->max_steps : STEPS_MAX;
  TRY(start(s, call, false, err)); /* else the last call's outputs stay */
  s->done = false;
  s->take = (struct take){.nothing = call->keep_outputs,
                          .last_rows = call->last_rows,
                          .token = call->draw ? s->method->draw.token : NO_VALUE};
  sconce_status status = s->pending ? SCONCE_OK : submit(s, err);
  s->calls += status == SCONCE_OK;
  s->drawn = status == SCONCE_OK && call->draw;
  return status;
}

sconce_status sconce_state_begin(sconce_state *s, const sconce_call *call, sconce_error *err) {
  static const sconce_call plain = {0};
  if (!s) return fail(err, SCONCE_BAD_ARGUMENT, "state is NULL");
  ALONE(&s->alone, "state");
  sconce_error local;
  LOCKED(state_gpu(s), begin(s, call ? call : &plain, err ? err : &local));
}

static sconce_status finish(sconce_state *s, bool block, bool *done, sconce_error *err) {
  TRY(state_check_up(s, err));
  *done = false;
  /* Those before it are over by the time that the device can tell. */
  if (s->pending && s->exec.n_running == 0) TRY(go_on(s, block, err));
  if (s->pending && s->exec.n_running == 0) return SCONCE_OK;
  uint64_t from = os_clock_ns();
  TRY(exec_poll(&s->exec, block, done, err));
  if (block) s->wait_ns += os_clock_ns() - from;
  s->done = *done;
  return SCONCE_OK;
}

static sconce_status finish_locked(sconce_state *s, bool block, bool *done, sconce_error *err) {
  sconce_error local;
  LOCKED(state_gpu(s), finish(s, block, done, err ? err : &local));
}

sconce_status sconce_state_poll(sconce_state *s, bool *done, sconce_error *err) {
  if (!s || !done) return fail(err, SCONCE_BAD_ARGUMENT, "state or done is NULL");
  ALONE(&s->alone, "state");
  return finish_locked(s, false, done, err);
}

sconce_status sconce_state_wait(sconce_state *s, sconce_error *err) {
  if (!s) return fail(err, SCONCE_BAD_ARGUMENT, "state is NULL");
  ALONE(&s->alone, "state");
  for (bool done = false; !done;) TRY(finish_locked(s, true, &done, err)); /* others get turns */
  return SCONCE_OK;
}

void sconce_state_cancel(sconce_state *s) {
  if (!s) return;
  gpu_lock(state_gpu(s));
  exec_cancel(&s->exec);
  if (s->pending) forget_call(s);
  gpu_unlock(state_gpu(s));
  s->done = false;
}

sconce_status sconce_state_run(sconce_state *s, const sconce_call *call, sconce_error *err) {
  ALONE(s ? &s->alone : NULL, "state");
  TRY(sconce_state_begin(s, call, err));
  return sconce_state_wait(s, err);
}

sconce_status sconce_state_output(sconce_state *s, uint32_t i, sconce_tensor *out,
                                  sconce_error *err) {
  if (!s || !out) return fail(err, SCONCE_BAD_ARGUMENT, "state or out is NULL");
  ALONE(&s->alone, "state");
  TRY(state_check_up(s, err));
  if (i >= s->graph.n_outputs)
    return fail(err, SCONCE_BAD_ARGUMENT, "output %u of %u", i, s->graph.n_outputs);
  if (!s->done) return fail(err, SCONCE_BAD_ARGUMENT, "no call has finished since the last begin");
  const struct border *b = &s->outputs[i];
  const struct value *v = &s->graph.values[b->value];
  *out = b->bound;
  const struct outcome *o = exec_outcome(&s->exec, i);
  if (v->kind != VK_TENSOR) {
    out->data = &o->number;
    out->size = sconce_dtype_size(out->dtype);
    return SCONCE_OK;
  }
  uint64_t numel = 1;
  memcpy(out->dims, o->dims, sizeof out->dims);
  for (uint32_t d = 0; d < v->tensor.rank; d++) numel *= o->dims[d];
  out->size = (size_t)numel * sconce_dtype_size(out->dtype);
  out->data = exec_output(&s->exec, i);
  if (!b->bytes || !out->data) return SCONCE_OK;
  TRY(convert_out(out->dtype, b->bytes, v->tensor.dtype, out->data, numel, err));
  out->data = b->bytes;
  return SCONCE_OK;
}

static sconce_status fetch(sconce_state *s, sconce_error *err) {
  TRY(state_check_up(s, err));
  TRY(state_check_idle(s, err));
  if (!s->done) return fail(err, SCONCE_BAD_ARGUMENT, "no call has finished since the last begin");
  sconce_status status = exec_read(&s->exec, err);
  s->done = status == SCONCE_OK;
  return status;
}

sconce_status sconce_state_fetch(sconce_state *s, sconce_error *err) {
  if (!s) return fail(err, SCONCE_BAD_ARGUMENT, "state is NULL");
  ALONE(&s->alone, "state");
  sconce_error local;
  LOCKED(state_gpu(s), fetch(s, err ? err : &local));
}

/* ---- by the clock ---------------------------------------------------------------------------- */

sconce_status state_start_for_clock(sconce_state *s, sconce_error *err) {
  TRY(state_check_up(s, err));
  TRY(state_check_idle(s, err));
  TRY(start(s, &(sconce_call){0}, true, err));
  while (s->pending) TRY(plan_on(s, true, err));
  s->done = false;
  return SCONCE_OK;
}

typedef void each_dispatch(void *user, const char *node, const char *kernel, uint64_t from,
                           uint64_t to);

static sconce_status profile(sconce_state *s, each_dispatch *each, void *user, sconce_error *err) {
  TRY(state_start_for_clock(s, err));
  struct arena scratch;
  arena_init(&scratch, &s->arena.allocator);
  sconce_status status = exec_profile(&s->exec, &scratch, each, user, err);
  if (status != SCONCE_OK) state_roll_back(s);
  arena_free(&scratch);
  return status;
}

sconce_status sconce_state_profile(sconce_state *s, each_dispatch *each, void *user,
                                   sconce_error *err) {
  if (!s || !each) return fail(err, SCONCE_BAD_ARGUMENT, "state or each is NULL");
  ALONE(&s->alone, "state");
  sconce_error local;
  LOCKED(state_gpu(s), profile(s, each, user, err ? err : &local));
}
