/* Methods: planned once, weights and kernels on the device, ready for states.
 *
 * Opening has two parts: the graph (which may need the bytes of a few small constants), then
 * weights and kernels, side by side. A method that is open twice is one. */
#include "run/model.h"

#include "base/os.h"
#include "run/constants.h"
#include "run/convert.h"
#include "run/delegate.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- what it looks like ---------------------------------------------------------------------- */

static bool is_bare(const sconce_method *m) { return m->model->bare.size > 0; }

static void describe_border(const struct pte_method *m, uint32_t index, sconce_tensor *out) {
  const struct pte_value v = pte_value(m, index);
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
static sconce_status check_border(const sconce_tensor *bound, const struct value *v, bool widened,
                                  const char *side, uint32_t i, sconce_error *err) {
  uint32_t rank = v->kind == VK_TENSOR ? v->tensor.rank : 0, dims[RANK_MAX] = {0};
  if (rank) memcpy(dims, v->tensor.dim_max, rank * sizeof *dims);
  if (widened) dims[rank - 2] = 1; /* one row, in a program's words: see draw.h */
  if (rank == bound->rank && memcmp(dims, bound->dims, rank * sizeof *dims) == 0) return SCONCE_OK;
  return fail(err, SCONCE_BAD_GRAPH, "%s %u has other dims in the program than in the graph", side,
              i);
}

static sconce_status describe_side(sconce_method *m, struct fb_vec indices, const uint32_t *ids,
                                   const char *side, const sconce_tensor **out, sconce_error *err) {
  sconce_tensor *tensors = arena_new(&m->arena, sconce_tensor, indices.n);
  if (!tensors) return fail(err, SCONCE_NO_MEMORY, "no memory for %u tensors", indices.n);
  for (uint32_t i = 0; i < indices.n; i++) {
    if (is_bare(m))
      delegate_border(&m->delegate, fb_u32_at(indices, i), &tensors[i]);
    else
      describe_border(&m->program, (uint32_t)fb_i32_at(indices, i), &tensors[i]);
    const bool widened = m->draw.widened && ids[i] == m->graph.outputs[0];
    TRY(check_border(&tensors[i], &m->graph.values[ids[i]], widened, side, i, err));
  }
  *out = tensors;
  return SCONCE_OK;
}

static bool is_dynamic(const struct pte_method *m, struct fb_vec side, uint32_t i) {
  const struct pte_value v = pte_value(m, (uint32_t)fb_i32_at(side, i));
  return v.kind == PTE_TENSOR && v.tensor.dynamism != PTE_STATIC;
}

/* A delegate's graph does not say which dims change: any of them may. */
static sconce_status find_dynamic(sconce_method *m, sconce_error *err) {
  const uint32_t n = m->graph.n_inputs, n_out = m->graph.n_outputs;
  const struct pte_method *p = &m->program;
  bool *dynamic = arena_new(&m->arena, bool, n + n_out);
  if (!dynamic) return fail(err, SCONCE_NO_MEMORY, "no memory for %u inputs", n);
  for (uint32_t i = 0; i < n; i++) dynamic[i] = is_bare(m) || is_dynamic(p, p->inputs, i);
  for (uint32_t i = 0; i < n_out; i++) dynamic[n + i] = is_bare(m) || is_dynamic(p, p->outputs, i);
  m->info.dynamic = dynamic;
  return SCONCE_OK;
}

static sconce_status describe(sconce_method *m, sconce_error *err) {
  const struct fb_vec inputs = is_bare(m) ? m->delegate.inputs : m->program.inputs;
  const struct fb_vec outputs = is_bare(m) ? m->delegate.outputs : m->program.outputs;
  TRY(find_dynamic(m, err));
  m->info.n_inputs = m->graph.n_inputs;
  m->info.n_outputs = m->graph.n_outputs;
  m->info.can_draw = m->draw.token != NO_VALUE;
  m->info.max_rows = m->draw.rows_max;
  TRY(describe_side(m, inputs, m->graph.inputs, "input", &m->info.inputs, err));
  return describe_side(m, outputs, m->graph.outputs, "output", &m->info.outputs, err);
}

static const uint64_t DEVICE_BYTES = UINT64_C(64) << 30, WEIGHTS_SLACK = UINT64_C(64) << 20;

/* ---- opening --------------------------------------------------------------------------------- */

/* A file of a kilobyte can ask for a terabyte: nothing is made before the sum is known. */
static sconce_status check_budget(const sconce_method *m, sconce_error *err) {
  const sconce_model *model = m->model;
  uint64_t weights = 0, all = 0, files = 0;
  for (uint32_t i = 0; i < m->graph.n_buffers; i++) {
    all += m->graph.buffers[i].size; /* each is at most what a device's buffers can have */
    if (m->graph.buffers[i].kind == BUFFER_CONSTANT) weights += m->graph.buffers[i].size;
  }
  for (uint32_t i = 0; i < model->n_sources; i++) files += model->sources[i].size;
  const uint64_t most = model->max_device_bytes ? model->max_device_bytes : DEVICE_BYTES;
  if (all > most)
    return fail(err, SCONCE_UNSUPPORTED,
                "it needs %" PRIu64 " bytes on the device, max_device_bytes is %" PRIu64, all,
                most);
  if (!model->max_device_bytes && weights / 4 > files + WEIGHTS_SLACK / 4)
    return fail(err, SCONCE_UNSUPPORTED,
                "its constants need %" PRIu64 " bytes on the device, the files have %" PRIu64
                ": set max_device_bytes if that is meant",
                weights, files);
  return SCONCE_OK;
}

/* Building and planning are one step each, which no caller can end: max_load_ms does. Reading and
 * compiling go on from poll to poll, and are as long as the files are. */
static uint64_t start_clock(sconce_method *m) {
  enum { LOAD_MS = 300000 };
  const uint64_t now = os_clock_ns();
  m->graph.max_load_ms = m->model->max_load_ms ? m->model->max_load_ms : LOAD_MS;
  m->graph.ends_ns = now + (uint64_t)m->graph.max_load_ms * 1000000 - m->built_ns;
  return now;
}

static void stop_clock(sconce_method *m, uint64_t start) {
  m->built_ns += os_clock_ns() - start;
  m->graph.ends_ns = 0;
}

static sconce_status plan_calls(sconce_method *m, struct rehearsal *calls, sconce_error *err) {
  TRY(graph_finish(&m->graph, err));
  TRY(check_budget(m, err));
  if (!m->info.inputs) TRY(describe(m, err)); /* callers may hold what it said the first time */
  const bool few = gpu_compiles_slowly(m->model->device->gpu);
  TRY(rehearse(&m->graph, &m->draw, m->info.dynamic, few, calls, err));
  return graph_check_time(&m->graph, err);
}

/* The graph is whole: what calls will need is known, and its way to the device begins. */
static sconce_status begin_load(sconce_method *m, sconce_error *err) {
  struct gpu *gpu = m->model->device->gpu;
  struct rehearsal calls;
  const uint64_t start = start_clock(m);
  sconce_status status = plan_calls(m, &calls, err);
  stop_clock(m, start);
  TRY(status);
  TRY(shared_begin(&m->shared, gpu, &m->model->weights, &m->graph, err));
  m->kernels_all = calls.n;
  TRY(gpu_compile_begin(gpu, calls.rows, calls.n, &m->compile, err));
  m->phase = METHOD_LOADS;
  return SCONCE_OK;
}

static sconce_status finish_load(sconce_method *m, sconce_error *err) {
  bool loaded, compiled = true, settled;
  struct gpu *gpu = m->model->device->gpu;
  TRY(shared_poll(&m->shared, &loaded, err));
  if (loaded && !m->upload_ns) m->upload_ns = os_clock_ns() - m->begun_ns;
  if (m->compile) TRY(gpu_compile_poll(m->compile, &m->kernels_done, &compiled, err));
  if (!loaded || !compiled) return SCONCE_OK;
  gpu_compile_end(m->compile, true);
  m->compile = NULL;
  TRY(gpu_settle_poll(gpu, &settled, err));
  if (!settled) return SCONCE_OK;
  m->compile_ns = os_clock_ns() - m->begun_ns - m->upload_ns;
  m->phase = METHOD_READY;
  log_write(&m->model->device->log, SCONCE_LOG_DEBUG,
            "'%s': %" PRIu64 " bytes to the device in %.1f ms, %u kernels %.1f ms later",
            m->info.name, m->shared.load.bytes_all, (double)m->upload_ns * 1e-6, m->kernels_all,
            (double)m->compile_ns * 1e-6);
  return SCONCE_OK;
}

static sconce_status go_on(sconce_method *m, sconce_error *err) {
  if (m->phase == METHOD_READS) {
    bool done;
    TRY(constants_read(&m->graph, m->model, &m->constants, &done, err));
    if (!done) return SCONCE_OK;
    TRY(begin_load(m, err));
  }
  return m->phase == METHOD_LOADS ? finish_load(m, err) : SCONCE_OK;
}

static sconce_method *find(sconce_model *model, const char *name) {
  for (sconce_method *m = model->methods; m; m = m->next)
    if (m->phase != METHOD_FAILED && strcmp(m->info.name, name) == 0) return m;
  return NULL;
}

static sconce_status build_bare(sconce_method *m, const char *name, sconce_error *err) {
  sconce_model *model = m->model;
  if (strcmp(name, "forward") != 0)
    return fail(err, SCONCE_BAD_ARGUMENT, "no method '%s': a delegate alone has 'forward'", name);
  m->info.name = model->info.methods[0];
  TRY(model_graph(model, model->bare, &m->delegate, err));
  TRY(delegate_build(&m->graph, &m->delegate, err));
  TRY(constants_want_scalars(&m->graph, &m->constants, err));
  return draw_add(&m->graph, &m->draw, err);
}

/* As many of the names as a sentence bears. */
static sconce_status no_method(const sconce_model *model, const char *name, sconce_error *err) {
  char list[400] = "";
  size_t n = 0;
  for (uint32_t i = 0; i < model->info.n_methods && n < sizeof list - 1; i++) {
    int more = snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", model->info.methods[i]);
    n += more > 0 ? (size_t)more : 0;
  }
  return fail(err, SCONCE_BAD_ARGUMENT, "no method '%.100s'; there are: %s", name, list);
}

static sconce_status build_program(sconce_method *m, const char *name, sconce_error *err) {
  if (!pte_find_method(&m->model->pte, text_of(name), &m->program))
    return no_method(m->model, name, err);
  m->info.name = m->program.name.data;
  return program_build(&m->graph, m->model, &m->program, &m->draw, &m->constants, err);
}

static sconce_status build(sconce_method *m, const char *name, sconce_error *err) {
  const uint64_t start = start_clock(m);
  sconce_status status = is_bare(m) ? build_bare(m, name, err) : build_program(m, name, err);
  stop_clock(m, start);
  return arena_tell(&m->graph.arena, status, err);
}

static void start_graph(sconce_method *m) {
  const sconce_model *model = m->model;
  const struct caps caps = gpu_caps(model->device->gpu);
  graph_init(&m->graph, &model->arena.allocator, &caps);
  m->graph.passes_off = model->device->passes_off;
  if (model->max_nodes) m->graph.max_nodes = model->max_nodes;
  m->graph.arena.most = model_host_bytes(model);
  m->built_ns = 0;
}

static sconce_status begin(sconce_method **out, sconce_model *model, const char *name,
                           sconce_error *err) {
  struct gpu *gpu = model->device->gpu;
  TRY(gpu_check(gpu, err));
  *out = find(model, name);
  if (*out) {
    (*out)->users++;
    return SCONCE_OK;
  }
  sconce_method *m = block_resize(&model->arena.allocator, NULL, 0, sizeof *m);
  if (!m) return fail(err, SCONCE_NO_MEMORY, "no memory for a method");
  *m = (sconce_method){.model = model, .users = 1, .begun_ns = os_clock_ns()};
  arena_init(&m->arena, &model->arena.allocator);
  m->arena.most = model_host_bytes(model);
  start_graph(m);
  model->users++;
  m->next = model->methods;
  model->methods = m;
  sconce_status status = build(m, name, err);
  if (status != SCONCE_OK)
    (void)method_drop(m); /* the caller still has the model */
  else
    *out = m;
  return status;
}

static sconce_status check_new(sconce_method **out, const sconce_model *model, sconce_error *err) {
  if (!out || !model) return fail(err, SCONCE_BAD_ARGUMENT, "out or model is NULL");
  *out = NULL;
  if (model->ready) return SCONCE_OK;
  return fail(err, SCONCE_BAD_ARGUMENT, "the model is still being opened");
}

sconce_status sconce_method_begin(sconce_method **out, sconce_model *model, const char *name,
                                  sconce_error *err) {
  sconce_error local;
  if (!err) err = &local;
  TRY(check_new(out, model, err));
  LOCKED(model->device->gpu, begin(out, model, name ? name : "forward", err));
}

/* What failed for one who opened it failed for all. */
static sconce_status go_on_or_fail(sconce_method *m, sconce_error *err) {
  if (m->phase == METHOD_FAILED) return fail(err, m->why.status, "%s", m->why.text);
  sconce_status status = arena_tell(&m->graph.arena, go_on(m, err), err);
  status = arena_tell(&m->arena, status, err);
  if (status == SCONCE_OK) return SCONCE_OK;
  m->phase = METHOD_FAILED;
  m->why = *err;
  return status;
}

/* While another thread reads the model's files there is nothing to go on with. */
static sconce_status take_turn(sconce_method *m, sconce_error *err) {
  if (m->phase == METHOD_READY || !model_take_turn(m->model)) return SCONCE_OK;
  const sconce_status status = go_on_or_fail(m, err);
  model_end_turn(m->model);
  return status;
}

static sconce_status poll(sconce_method *m, sconce_progress *progress, sconce_error *err) {
  TRY(take_turn(m, err));
  *progress = (sconce_progress){.done = m->phase == METHOD_READY,
                                .bytes_done = m->shared.load.bytes_done,
                                .bytes_all = m->shared.load.bytes_all,
                                .kernels_done = m->kernels_done,
                                .kernels_all = m->kernels_all};
  if (!progress->done) (void)model_wants(m->model, progress);
  return SCONCE_OK;
}

sconce_status sconce_method_poll(sconce_method *m, sconce_progress *progress, sconce_error *err) {
  if (!m || !progress) return fail(err, SCONCE_BAD_ARGUMENT, "method or progress is NULL");
  sconce_error local;
  LOCKED(m->model->device->gpu, poll(m, progress, err ? err : &local));
}

/* Between two looks at a device that has nothing to say a thread need not spin. */
enum { NAP_NS = 20000 };

static sconce_status finish(sconce_method *m, sconce_error *err) {
  sconce_progress p = {0};
  for (;;) {
    const uint64_t before = p.bytes_done;
    TRY(sconce_method_poll(m, &p, err));
    if (p.done) return SCONCE_OK;
    if (p.wants.size)
      return fail(err, SCONCE_BAD_ARGUMENT,
                  "a file's bytes must be handed in: open the method with sconce_method_begin");
    if (p.bytes_done == before) os_sleep_ns(NAP_NS);
  }
}

sconce_status sconce_method_open(sconce_method **out, sconce_model *model, const char *name,
                                 sconce_error *err) {
  sconce_error local;
  if (!err) err = &local;
  TRY(sconce_method_begin(out, model, name, err));
  sconce_status status = finish(*out, err);
  if (status == SCONCE_OK) return SCONCE_OK;
  sconce_method_close(*out);
  *out = NULL;
  return status;
}

/* ---- after a loss ---------------------------------------------------------------------------- */

void method_take_down(sconce_method *m) {
  gpu_compile_end(m->compile, false);
  m->compile = NULL;
  shared_free(&m->shared);
  constants_give_back(m->model, &m->constants);
  graph_free(&m->graph);
  arena_init(&m->graph.arena, &m->model->arena.allocator);
  m->down = m->down || m->phase != METHOD_FAILED;
}

static sconce_status build_again(sconce_method *m, sconce_error *err) {
  start_graph(m);
  m->phase = METHOD_READS;
  m->upload_ns = 0;
  m->begun_ns = os_clock_ns();
  sconce_status status = build(m, m->info.name, err);
  if (status == SCONCE_OK) return SCONCE_OK;
  m->phase = METHOD_FAILED;
  m->why = *err;
  return status;
}

sconce_status method_bring_back(sconce_method *m, sconce_error *err) {
  const bool was_ready = m->phase == METHOD_READY || m->phase == METHOD_FAILED;
  sconce_status status = build_again(m, err);
  if (status == SCONCE_OK && was_ready) status = finish(m, err);
  if (status == SCONCE_OK)
    m->down = false;
  else
    method_take_down(m);
  return status;
}

bool method_drop(sconce_method *m) {
  if (--m->users > 0) return false;
  sconce_model *model = m->model;
  sconce_method **at = &model->methods;
  while (*at != m) at = &(*at)->next;
  *at = m->next;
  gpu_compile_end(m->compile, false);
  shared_free(&m->shared);
  constants_give_back(model, &m->constants);
  graph_free(&m->graph);
  sconce_allocator allocator = m->arena.allocator;
  arena_free(&m->arena);
  block_resize(&allocator, m, sizeof *m, 0);
  return model_drop(model);
}

void sconce_method_close(sconce_method *m) {
  if (!m) return;
  sconce_device *device = m->model->device;
  gpu_lock(device->gpu);
  const bool unused = method_drop(m);
  gpu_unlock(device->gpu);
  if (unused) device_free(device);
}

const sconce_method_info *sconce_method_describe(const sconce_method *m) {
  return m && m->phase == METHOD_READY ? &m->info : NULL;
}
