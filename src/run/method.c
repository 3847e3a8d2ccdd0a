/* Methods: inputs in, one planned call, outputs out. */
#include "base/os.h"
#include "run/convert.h"
#include "run/model.h"
#include "run/rehearse.h"
#include "sconce_dev.h"

#include <inttypes.h>
#include <string.h>

struct border {
  uint32_t value;                 /* of the graph */
  sconce_tensor bound;            /* dtype and upper bounds as the program says; data NULL */
  uint32_t live[SCONCE_MAX_RANK]; /* input: dims as last set */
  void *bytes; /* input: elements in the graph's dtype; output: converted, or NULL */
  bool set;    /* input: has data */
  bool fresh;  /* input: changed since it was last written to the device */
  bool fed;    /* input: its elements came from an output and are on the device alone */
};

struct sconce_method {
  sconce_model *model;
  struct arena arena;
  struct graph graph;
  struct exec exec;
  struct border *inputs, *outputs;
  struct draw draw;
  sconce_draw how; /* a token is chosen by each call */
  bool drawing;
  void *elements;                   /* of a tensor that scalars are read from */
  void *side;                       /* room for the largest input while it is converted */
  bool done;                        /* outputs of the last call can be read */
  uint64_t calls, plan_ns, wait_ns; /* see sconce_call_times */
};

/* ---- opening --------------------------------------------------------------------------------- */

static void describe_border(const struct pte_method *m, uint32_t index, sconce_tensor *out) {
  struct pte_value v = pte_value(m, index);
  *out = (sconce_tensor){.dtype = SCONCE_INT64};
  if (v.kind == PTE_DOUBLE) out->dtype = SCONCE_FLOAT64;
  if (v.kind == PTE_BOOL) out->dtype = SCONCE_BOOL;
  if (v.kind != PTE_TENSOR) return;
  out->dtype = (sconce_dtype)v.tensor.shape.scalar_type;
  out->rank = v.tensor.shape.rank < SCONCE_MAX_RANK ? v.tensor.shape.rank : SCONCE_MAX_RANK;
  for (uint32_t i = 0; i < out->rank; i++) out->dims[i] = (uint32_t)v.tensor.shape.sizes[i];
}

/* What the program says of a value and what the graph made of it must agree: buffers are sized by
 * the one, data is checked by the other. */
static sconce_status check_border(const struct border *b, const struct value *v, const char *side,
                                  uint32_t i, sconce_error *err) {
  uint32_t rank = v->kind == VK_TENSOR ? v->tensor.rank : 0;
  if (rank == b->bound.rank &&
      (rank == 0 || memcmp(v->tensor.dim_max, b->bound.dims, rank * sizeof *b->bound.dims) == 0))
    return SCONCE_OK;
  return fail(err, SCONCE_BAD_GRAPH, "%s %u has other dims in the program than in the graph", side,
              i);
}

static sconce_status init_borders(sconce_method *m, const struct pte_method *pm,
                                  sconce_error *err) {
  m->inputs = arena_new(&m->arena, struct border, pm->n_inputs);
  m->outputs = arena_new(&m->arena, struct border, pm->n_outputs);
  if (!m->inputs || !m->outputs) return fail(err, SCONCE_NO_MEMORY, "no memory for borders");
  uint64_t side = 1;
  for (uint32_t i = 0; i < pm->n_inputs + pm->n_outputs; i++) {
    bool input = i < pm->n_inputs;
    uint32_t k = input ? i : i - pm->n_inputs;
    struct border *b = input ? &m->inputs[k] : &m->outputs[k];
    b->value = input ? m->graph.inputs[k] : m->graph.outputs[k];
    describe_border(pm, (uint32_t)fb_i32_at(input ? pm->inputs : pm->outputs, k), &b->bound);
    const struct value *v = &m->graph.values[b->value];
    TRY(check_border(b, v, input ? "input" : "output", k, err));
    if (v->kind != VK_TENSOR) continue;
    uint64_t numel = tensor_numel_max(&v->tensor);
    uint64_t size =
        numel * (input ? vk_dtype_size(v->tensor.dtype) : sconce_dtype_size(b->bound.dtype));
    if (!input && convert_is_copy(v->tensor.dtype, b->bound.dtype)) continue;
    b->bytes = arena_alloc(&m->arena, (size_t)size, 1, 8);
    if (!b->bytes) return fail(err, SCONCE_NO_MEMORY, "no memory for %" PRIu64 " bytes", size);
    if (input && size > side) side = size;
  }
  m->side = arena_alloc(&m->arena, (size_t)side, 1, 8);
  if (!m->side) return fail(err, SCONCE_NO_MEMORY, "no memory for %" PRIu64 " bytes", side);
  return SCONCE_OK;
}

static sconce_status build(sconce_method *m, const char *name, sconce_error *err) {
  struct pte_method pm;
  if (!pte_find_method(&m->model->pte, text_of(name), &pm))
    return fail(err, SCONCE_BAD_ARGUMENT, "no method '%s'", name);
  TRY(program_build(&m->graph, m->model, &pm, &m->draw, err));
  TRY(graph_finish(&m->graph, err));
  TRY(init_borders(m, &pm, err));
  struct rehearsal calls;
  TRY(rehearse(&m->graph, &m->draw, &pm, &calls, err));
  TRY(exec_init(&m->exec, m->model->device->gpu, &m->graph, calls.rows, calls.n, err));
  const struct exec *x = &m->exec;
  log_write(&m->model->device->log, SCONCE_LOG_DEBUG,
            "%" PRIu64 " bytes to the device in %.1f ms, %u kernels %.1f ms later", x->uploaded,
            (double)x->upload_ns * 1e-6, gpu_stats(x->gpu)->kernels, (double)x->compile_ns * 1e-6);
  return SCONCE_OK;
}

sconce_status sconce_method_open(sconce_method **out, sconce_model *model, const char *name,
                                 sconce_error *err) {
  if (!out || !model) return fail(err, SCONCE_BAD_ARGUMENT, "out or model is NULL");
  *out = NULL;
  sconce_error local;
  if (!err) err = &local;
  struct gpu *gpu = model->device->gpu;
  TRY(gpu_check(gpu, err));
  sconce_method *m = block_resize(&model->arena.allocator, NULL, 0, sizeof *m);
  if (!m) return fail(err, SCONCE_NO_MEMORY, "no memory for a method");
  *m = (sconce_method){.model = model};
  const struct caps caps = gpu_caps(gpu);
  arena_init(&m->arena, &model->arena.allocator);
  graph_init(&m->graph, &model->arena.allocator, &caps);
  m->graph.passes_off = model->device->passes_off;
  sconce_status status = build(m, name ? name : "forward", err);
  if (status != SCONCE_OK)
    sconce_method_close(m);
  else
    *out = m;
  return status;
}

void sconce_method_close(sconce_method *m) {
  if (!m) return;
  exec_free(&m->exec);
  graph_free(&m->graph);
  sconce_allocator allocator = m->arena.allocator;
  arena_free(&m->arena);
  block_resize(&allocator, m, sizeof *m, 0);
}

uint32_t sconce_method_n_inputs(const sconce_method *m) { return m ? m->graph.n_inputs : 0; }
uint32_t sconce_method_n_outputs(const sconce_method *m) { return m ? m->graph.n_outputs : 0; }

bool sconce_method_input_info(const sconce_method *m, uint32_t i, sconce_tensor *out) {
  if (!m || i >= m->graph.n_inputs) return false;
  *out = m->inputs[i].bound;
  return true;
}

bool sconce_method_output_info(const sconce_method *m, uint32_t i, sconce_tensor *out) {
  if (!m || i >= m->graph.n_outputs) return false;
  *out = m->outputs[i].bound;
  return true;
}

static sconce_status check_idle(const sconce_method *m, sconce_error *err) {
  if (m->exec.n_running == 0) return SCONCE_OK;
  return fail(err, SCONCE_BAD_ARGUMENT, "%u calls are running", m->exec.n_running);
}

/* ---- inputs ---------------------------------------------------------------------------------- */

static sconce_status check_dims(const struct border *b, uint32_t i, const sconce_tensor *t,
                                sconce_error *err) {
  if (!sconce_dtype_size(t->dtype))
    return fail(err, SCONCE_BAD_ARGUMENT, "input %u: unknown dtype %d", i, (int)t->dtype);
  if (t->rank != b->bound.rank)
    return fail(err, SCONCE_BAD_ARGUMENT, "input %u has rank %u, given %u", i, b->bound.rank,
                t->rank);
  uint64_t numel = 1;
  for (uint32_t d = 0; d < t->rank; d++) {
    if (t->dims[d] > b->bound.dims[d])
      return fail(err, SCONCE_BAD_ARGUMENT, "input %u: dim %u is %u, at most %u", i, d, t->dims[d],
                  b->bound.dims[d]);
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

sconce_status sconce_method_set_input(sconce_method *m, uint32_t i, const sconce_tensor *t,
                                      sconce_error *err) {
  if (!m || !t) return fail(err, SCONCE_BAD_ARGUMENT, "method or tensor is NULL");
  if (i >= m->graph.n_inputs)
    return fail(err, SCONCE_BAD_ARGUMENT, "input %u of %u", i, m->graph.n_inputs);
  struct border *b = &m->inputs[i];
  struct value *v = &m->graph.values[b->value];
  if (v->kind != VK_TENSOR) {
    TRY(check_scalar(v, i, t, err));
    b->set = true;
    return SCONCE_OK;
  }
  TRY(check_dims(b, i, t, err));
  uint64_t numel = 1;
  for (uint32_t d = 0; d < t->rank; d++) numel *= t->dims[d];
  /* Converted on the side first: a value out of range must not half replace the old ones. */
  sconce_status status = convert_in(v->tensor.dtype, m->side, t->dtype, t->data, numel, err);
  if (status != SCONCE_OK) {
    error_prefix(err, "input %u: ", i);
    return status;
  }
  memcpy(b->bytes, m->side, (size_t)numel * vk_dtype_size(v->tensor.dtype));
  b->set = b->fresh = true;
  b->fed = false;
  memcpy(b->live, t->dims, sizeof b->live);
  return SCONCE_OK;
}

sconce_status sconce_method_feed(sconce_method *m, uint32_t output, uint32_t input,
                                 sconce_error *err) {
  if (!m) return fail(err, SCONCE_BAD_ARGUMENT, "method is NULL");
  if (output >= m->graph.n_outputs || input >= m->graph.n_inputs)
    return fail(err, SCONCE_BAD_ARGUMENT, "output %u of %u into input %u of %u", output,
                m->graph.n_outputs, input, m->graph.n_inputs);
  TRY(check_idle(m, err));
  if (!m->done) return fail(err, SCONCE_BAD_ARGUMENT, "no call has finished since the last begin");
  struct border *b = &m->inputs[input];
  const struct value *from = &m->graph.values[m->outputs[output].value];
  const struct value *to = &m->graph.values[b->value];
  char one[120], two[120];
  if (from->kind != VK_TENSOR || to->kind != VK_TENSOR || from->tensor.rank != to->tensor.rank ||
      from->tensor.dtype != to->tensor.dtype)
    return fail(err, SCONCE_BAD_ARGUMENT, "output %u is %s, input %u is %s", output,
                from->kind == VK_TENSOR ? tensor_text(&from->tensor, one) : "a scalar", input,
                to->kind == VK_TENSOR ? tensor_text(&to->tensor, two) : "a scalar");
  for (uint32_t d = 0; d < to->tensor.rank; d++)
    if (from->tensor.dim_live[d] > to->tensor.dim_max[d])
      return fail(err, SCONCE_BAD_ARGUMENT, "input %u: dim %u is %u, at most %u", input, d,
                  from->tensor.dim_live[d], to->tensor.dim_max[d]);
  TRY(exec_feed(&m->exec, output, input, err));
  memcpy(b->live, from->tensor.dim_live, sizeof b->live);
  b->set = b->fed = true;
  b->fresh = false;
  return SCONCE_OK;
}

sconce_status sconce_method_keep_output(sconce_method *m, uint32_t i, bool on_device,
                                        sconce_error *err) {
  if (!m || i >= m->graph.n_outputs)
    return fail(err, SCONCE_BAD_ARGUMENT, "output %u of %u", i, m ? m->graph.n_outputs : 0);
  m->exec.kept[i] = on_device;
  return SCONCE_OK;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

bool sconce_method_draws(const sconce_method *m) { return m && m->draw.token != NO_VALUE; }

sconce_status sconce_method_draw(sconce_method *m, const sconce_draw *how, sconce_error *err) {
  if (!m) return fail(err, SCONCE_BAD_ARGUMENT, "method is NULL");
  m->drawing = how != NULL;
  if (!how) return SCONCE_OK;
  m->drawing = false;
  if (!sconce_method_draws(m))
    return fail(err, SCONCE_UNSUPPORTED, "the method is no language model with ids and logits");
  if (!(how->temperature >= 0) || !(how->top_p >= 0 && how->top_p <= 1) ||
      !(how->min_p >= 0 && how->min_p <= 1) || how->top_k > INT32_MAX || how->position > INT32_MAX)
    return fail(err, SCONCE_BAD_ARGUMENT, "temperature %g, top_k %u, top_p %g, min_p %g",
                (double)how->temperature, how->top_k, (double)how->top_p, (double)how->min_p);
  m->how = *how;
  m->drawing = true;
  return SCONCE_OK;
}

sconce_status sconce_method_feed_token(sconce_method *m, sconce_error *err) {
  if (!m || !m->drawing || !(m->exec.n_running || m->done))
    return fail(err, SCONCE_BAD_ARGUMENT, "no call has chosen a token");
  struct border *b = &m->inputs[0];
  b->live[0] = b->live[1] = 1;
  b->set = b->fed = true;
  b->fresh = false;
  return SCONCE_OK;
}

int32_t sconce_method_token(const sconce_method *m) {
  int32_t token = -1;
  const void *data = m && m->done ? exec_output(&m->exec, m->graph.n_outputs) : NULL;
  if (data) memcpy(&token, data, sizeof token);
  return token;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static sconce_status plan(sconce_method *m, sconce_error *err) {
  for (uint32_t i = 0; i < m->graph.n_inputs; i++) {
    struct border *b = &m->inputs[i];
    struct value *v = &m->graph.values[b->value];
    if (v->kind != VK_TENSOR) continue;
    if (!b->set) return fail(err, SCONCE_BAD_ARGUMENT, "input %u was never set", i);
    v->tensor.host = b->fed ? NULL : b->bytes;
    TRY(graph_set_dims(&m->graph, b->value, b->live, v->tensor.rank, err));
    if ((b->fresh || b->fed) && v->stamp != m->graph.call)
      TRY(graph_touch(&m->graph, b->value, err));
  }
  TRY(draw_set(&m->graph, &m->draw, m->drawing ? &m->how : NULL, err));
  return graph_plan(&m->graph, err);
}

/* A scalar that only the device knows splits the call: run what is planned, read it, plan on. */
static sconce_status plan_on(sconce_method *m, sconce_error *err) {
  while (m->graph.wanted != NO_VALUE) {
    struct tensor *t = &m->graph.values[m->graph.wanted].tensor;
    log_write(&m->model->device->log, SCONCE_LOG_INFO,
              "a scalar is computed on the device: the call waits for it");
    if (!m->elements) m->elements = arena_alloc(&m->arena, HOST_READ_MAX, 1, 8);
    if (!m->elements) return fail(err, SCONCE_NO_MEMORY, "no memory for a scalar");
    TRY(exec_part(&m->exec, m->graph.wanted, m->elements, err));
    t->host = m->elements;
    sconce_status status = graph_plan(&m->graph, err);
    t->host = NULL; /* the next tensor's elements go there too */
    TRY(status);
  }
  return SCONCE_OK;
}

static sconce_status write_inputs(sconce_method *m, sconce_error *err) {
  for (uint32_t i = 0; i < m->graph.n_inputs; i++) {
    struct border *b = &m->inputs[i];
    const struct value *v = &m->graph.values[b->value];
    if (v->kind != VK_TENSOR || !b->fresh) continue;
    const struct tensor *t = &v->tensor;
    if (t->bound || t->output) TRY(exec_write(&m->exec, b->value, b->bytes, tensor_nbytes(t), err));
    b->fresh = t->output || t->written; /* then it must be sent again */
  }
  return SCONCE_OK;
}

static sconce_status start(sconce_method *m, sconce_error *err) {
  graph_begin(&m->graph);
  sconce_status status = plan(m, err);
  if (status == SCONCE_OK) status = write_inputs(m, err);
  if (status == SCONCE_OK) status = plan_on(m, err);
  if (status != SCONCE_OK) {
    graph_rollback(&m->graph);
    exec_give_up(&m->exec);
  }
  return status;
}

sconce_status sconce_method_begin(sconce_method *m, sconce_error *err) {
  if (!m) return fail(err, SCONCE_BAD_ARGUMENT, "method is NULL");
  if (m->exec.n_running == SCONCE_CALLS_MAX)
    return fail(err, SCONCE_BAD_ARGUMENT, "%d calls are running", SCONCE_CALLS_MAX);
  sconce_error local;
  if (!err) err = &local;
  uint64_t from = os_clock_ns();
  TRY(start(m, err)); /* else the last call's outputs stay */
  m->plan_ns += os_clock_ns() - from;
  m->done = false;
  m->exec.token = m->drawing ? m->draw.token : NO_VALUE;
  sconce_status status = exec_begin(&m->exec, err);
  if (status != SCONCE_OK) graph_rollback(&m->graph);
  m->calls += status == SCONCE_OK;
  return status;
}

static sconce_status finish(sconce_method *m, bool block, bool *done, sconce_error *err) {
  if (!m || !done) return fail(err, SCONCE_BAD_ARGUMENT, "method or done is NULL");
  sconce_error local;
  uint64_t from = os_clock_ns();
  TRY(exec_poll(&m->exec, block, done, err ? err : &local));
  if (block) m->wait_ns += os_clock_ns() - from;
  m->done = *done;
  return SCONCE_OK;
}

sconce_status sconce_method_poll(sconce_method *m, bool *done, sconce_error *err) {
  return finish(m, false, done, err);
}

sconce_status sconce_method_wait(sconce_method *m, sconce_error *err) {
  bool done;
  return finish(m, true, &done, err);
}

void sconce_method_cancel(sconce_method *m) {
  if (!m) return;
  exec_cancel(&m->exec);
  m->done = false;
}

sconce_status sconce_method_run(sconce_method *m, sconce_error *err) {
  TRY(sconce_method_begin(m, err));
  return sconce_method_wait(m, err);
}

sconce_status sconce_method_output(sconce_method *m, uint32_t i, sconce_tensor *out,
                                   sconce_error *err) {
  if (!m || !out) return fail(err, SCONCE_BAD_ARGUMENT, "method or out is NULL");
  if (i >= m->graph.n_outputs)
    return fail(err, SCONCE_BAD_ARGUMENT, "output %u of %u", i, m->graph.n_outputs);
  if (!m->done) return fail(err, SCONCE_BAD_ARGUMENT, "no call has finished since the last begin");
  const struct border *b = &m->outputs[i];
  const struct value *v = &m->graph.values[b->value];
  *out = b->bound;
  const struct outcome *o = exec_outcome(&m->exec, i);
  if (v->kind != VK_TENSOR) {
    out->data = &o->number;
    out->size = sconce_dtype_size(out->dtype);
    return SCONCE_OK;
  }
  uint64_t numel = 1;
  memcpy(out->dims, o->dims, sizeof out->dims);
  for (uint32_t d = 0; d < v->tensor.rank; d++) numel *= o->dims[d];
  out->size = (size_t)numel * sconce_dtype_size(out->dtype);
  out->data = exec_output(&m->exec, i);
  if (!b->bytes || !out->data) return SCONCE_OK;
  TRY(convert_out(out->dtype, b->bytes, v->tensor.dtype, out->data, numel, err));
  out->data = b->bytes;
  return SCONCE_OK;
}

sconce_status sconce_method_reset(sconce_method *m, sconce_error *err) {
  if (!m) return fail(err, SCONCE_BAD_ARGUMENT, "method is NULL");
  TRY(check_idle(m, err));
  return exec_reset(&m->exec, err);
}

size_t sconce_method_state_size(const sconce_method *m) {
  return m ? (size_t)exec_state_size(&m->exec) : 0;
}

static sconce_status check_state(sconce_method *m, const void *data, size_t size,
                                 sconce_error *err) {
  if (!m || !data) return fail(err, SCONCE_BAD_ARGUMENT, "method or data is NULL");
  TRY(check_idle(m, err));
  if (size != sconce_method_state_size(m))
    return fail(err, SCONCE_BAD_ARGUMENT, "%zu bytes of state, the method has %zu", size,
                sconce_method_state_size(m));
  return SCONCE_OK;
}

sconce_status sconce_method_get_state(sconce_method *m, void *out, size_t size, sconce_error *err) {
  TRY(check_state(m, out, size, err));
  return exec_get_state(&m->exec, out, err);
}

sconce_status sconce_method_set_state(sconce_method *m, const void *data, size_t size,
                                      sconce_error *err) {
  TRY(check_state(m, data, size, err));
  return exec_set_state(&m->exec, data, err);
}

void sconce_method_stats(const sconce_method *m, sconce_stats *out) {
  if (!m || !out) return;
  const struct gpu_stats *s = gpu_stats(m->exec.gpu);
  *out = (sconce_stats){.gpu_persistent = s->bytes[GPU_PERSISTENT],
                        .gpu_transient = s->bytes[GPU_TRANSIENT],
                        .gpu_staging = s->bytes[GPU_STAGING],
                        .gpu_params = s->bytes[GPU_PARAMS],
                        .host = m->arena.held + m->graph.arena.held,
                        .nodes = m->graph.n_nodes,
                        .dispatches = m->exec.n_dispatches,
                        .nodes_planned = m->graph.nodes_planned,
                        .params_written = m->exec.records_written,
                        .gpu_buffers = s->buffers,
                        .gpu_groups = s->groups,
                        .gpu_kernels = s->kernels,
                        .gpu_objects_made = s->buffers_made + s->groups_made};
}

void sconce_method_times(const sconce_method *m, sconce_call_times *out) {
  if (!m || !out) return;
  *out = (sconce_call_times){.calls = m->calls,
                             .plan_ns = m->plan_ns,
                             .bind_ns = m->exec.bind_ns,
                             .submit_ns = m->exec.submit_ns,
                             .wait_ns = m->wait_ns};
}

void sconce_method_load_times(const sconce_method *m, sconce_load_times *out) {
  if (!m || !out) return;
  *out = (sconce_load_times){.uploaded = m->exec.uploaded,
                             .upload_ns = m->exec.upload_ns,
                             .compile_ns = m->exec.compile_ns};
}

static sconce_status start_for_clock(sconce_method *m, sconce_error *err) {
  TRY(check_idle(m, err));
  TRY(start(m, err));
  m->done = false;
  return SCONCE_OK;
}

sconce_status sconce_method_time_pass(sconce_method *m, uint64_t *ns, sconce_error *err) {
  if (!m || !ns) return fail(err, SCONCE_BAD_ARGUMENT, "method or ns is NULL");
  sconce_error local;
  if (!err) err = &local;
  TRY(start_for_clock(m, err));
  sconce_status status = exec_time_pass(&m->exec, ns, err);
  if (status != SCONCE_OK) graph_rollback(&m->graph);
  return status;
}

sconce_status sconce_method_profile(sconce_method *m,
                                    void (*each)(void *user, const char *node, const char *kernel,
                                                 uint64_t from, uint64_t to),
                                    void *user, sconce_error *err) {
  if (!m || !each) return fail(err, SCONCE_BAD_ARGUMENT, "method or each is NULL");
  sconce_error local;
  if (!err) err = &local;
  TRY(start_for_clock(m, err));
  struct arena scratch;
  arena_init(&scratch, &m->arena.allocator);
  sconce_status status = exec_profile(&m->exec, &scratch, each, user, err);
  if (status != SCONCE_OK) graph_rollback(&m->graph);
  arena_free(&scratch);
  return status;
}
