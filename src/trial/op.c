/* Small graphs, built node by node and run: see op.h. */
#include "op.h"

#include "gpu/gpu.h"

void op_begin_on(struct op_test *t, struct gpu *gpu, const sconce_allocator *allocator) {
  *t = (struct op_test){.gpu = gpu};
  struct caps caps = {0};
  if (gpu) caps = gpu_caps(gpu);
  graph_init(&t->graph, allocator, &caps);
  t->graph.inputs = t->inputs;
  t->graph.outputs = t->outputs;
}

void op_begin(struct op_test *t) {
  op_begin_on(t, test_gpu(), NULL);
  t->graph.caps.fast = false;
}

void op_end(struct op_test *t) {
  exec_free(&t->exec);
  shared_free(&t->shared);
  weights_free(&t->weights);
  graph_free(&t->graph);
  trial_right();
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool is_good(const struct op_test *t) { return t->built.status == SCONCE_OK; }

/* What cannot be made is written to t->none, and says so in op_load. */
static struct value *value(struct op_test *t, enum vk_kind kind, uint32_t *id) {
  *id = is_good(t) ? graph_add_value(&t->graph, kind, &t->built) : NO_VALUE;
  return *id == NO_VALUE ? &t->none : &t->graph.values[*id];
}

static void *memory(struct op_test *t, size_t n, size_t size) {
  void *p = arena_alloc(&t->graph.arena, n, size, 8);
  if (!p && is_good(t)) fail(&t->built, SCONCE_NO_MEMORY, "no memory for %zu elements", n);
  return p;
}

uint32_t op_tensor(struct op_test *t, enum vk_dtype dtype, const uint32_t *dims, uint32_t rank) {
  return is_good(t) ? graph_add_tensor(&t->graph, dtype, rank, dims, &t->built) : NO_VALUE;
}

static bool has_room(struct op_test *t, uint32_t id, uint32_t n) {
  if (id != NO_VALUE && n < OP_BORDERS) return true;
  if (is_good(t))
    fail(&t->built, SCONCE_BAD_ARGUMENT, "more than %d inputs or outputs", OP_BORDERS);
  return false;
}

uint32_t op_input(struct op_test *t, enum vk_dtype dtype, const uint32_t *dims, uint32_t rank) {
  uint32_t id = op_tensor(t, dtype, dims, rank);
  if (!has_room(t, id, t->graph.n_inputs)) return NO_VALUE;
  t->graph.values[id].tensor.input = true;
  t->inputs[t->graph.n_inputs++] = id;
  return id;
}

uint32_t op_output(struct op_test *t, enum vk_dtype dtype, const uint32_t *dims, uint32_t rank) {
  uint32_t id = op_tensor(t, dtype, dims, rank);
  if (!has_room(t, id, t->graph.n_outputs)) return NO_VALUE;
  t->graph.values[id].tensor.output = true;
  t->outputs[t->graph.n_outputs++] = id;
  return id;
}

void *op_elements(struct op_test *t, uint32_t id) {
  if (!is_good(t)) return NULL;
  return memory(t, (size_t)tensor_nbytes_max(&t->graph.values[id].tensor), 1);
}

uint32_t op_constant_of(struct op_test *t, enum vk_dtype dtype, const uint32_t *dims, uint32_t rank,
                        void **elements) {
  uint32_t id = op_tensor(t, dtype, dims, rank);
  *elements = op_elements(t, id);
  if (!*elements) return NO_VALUE;
  struct tensor *tensor = &t->graph.values[id].tensor;
  tensor->constant = true;
  tensor->bytes = extent_of((struct span){*elements, (size_t)tensor_nbytes_max(tensor)});
  return id;
}

uint32_t op_constant_bytes(struct op_test *t, enum vk_dtype dtype, const uint32_t *dims,
                           uint32_t rank, const void *bytes) {
  void *copy;
  uint32_t id = op_constant_of(t, dtype, dims, rank, &copy);
  if (copy) memcpy(copy, bytes, (size_t)tensor_nbytes_max(&t->graph.values[id].tensor));
  return id;
}

uint32_t op_constant(struct op_test *t, enum vk_dtype dtype, const uint32_t *dims, uint32_t rank,
                     const double *values) {
  void *elements;
  uint32_t id = op_constant_of(t, dtype, dims, rank, &elements);
  if (elements)
    test_to_dtype(dtype, values, tensor_numel_max(&t->graph.values[id].tensor), elements);
  return id;
}

uint32_t op_null(struct op_test *t) {
  uint32_t id;
  value(t, VK_NULL, &id);
  return id;
}

static uint32_t plain_int(struct op_test *t, int64_t i) {
  uint32_t id;
  value(t, VK_INT, &id)->i = i;
  return id;
}

static uint32_t plain_double(struct op_test *t, double d) {
  uint32_t id;
  value(t, VK_DOUBLE, &id)->d = d;
  return id;
}

/* Beyond 2^53 a Double would be another number. */
uint32_t op_int(struct op_test *t, int64_t i) {
  const bool exact = i <= (INT64_C(1) << 53) && i >= -(INT64_C(1) << 53);
  return test_swap_scalars && exact ? plain_double(t, (double)i) : plain_int(t, i);
}

uint32_t op_double(struct op_test *t, double d) {
  const bool whole = floor(d) == d && fabs(d) < 9e18 && !(d == 0 && signbit(d));
  return test_swap_scalars && whole ? plain_int(t, (int64_t)d) : plain_double(t, d);
}

uint32_t op_bool(struct op_test *t, bool b) {
  if (test_swap_scalars) return plain_int(t, b);
  uint32_t id;
  value(t, VK_BOOLEAN, &id)->b = b;
  return id;
}

uint32_t op_text(struct op_test *t, const char *text) {
  uint32_t id;
  value(t, VK_STRING, &id)->text = text_of(text);
  return id;
}

static uint32_t int_values(struct op_test *t, const int64_t *ints, uint32_t n) {
  uint32_t *ids = memory(t, n, sizeof *ids);
  if (!ids) return NO_VALUE;
  for (uint32_t i = 0; i < n; i++) ids[i] = plain_int(t, ints[i]);
  return op_list(t, ids, n);
}

/* A list of this kind whose elements are copied. */
static uint32_t list(struct op_test *t, enum vk_kind kind, const void *from, uint32_t n,
                     size_t size) {
  uint32_t id;
  void *copy = memory(t, n, size);
  struct value *v = value(t, kind, &id);
  if (!copy || id == NO_VALUE) return NO_VALUE;
  memcpy(copy, from, n * size);
  v->list.n = n;
  if (kind == VK_INT_LIST) v->list.ints = copy;
  if (kind == VK_DOUBLE_LIST) v->list.doubles = copy;
  if (kind == VK_VALUE_LIST) v->list.ids = copy;
  return id;
}

uint32_t op_ints(struct op_test *t, const int64_t *ints, uint32_t n) {
  return test_swap_scalars ? int_values(t, ints, n) : list(t, VK_INT_LIST, ints, n, sizeof *ints);
}

uint32_t op_doubles(struct op_test *t, const double *doubles, uint32_t n) {
  if (!test_swap_scalars) return list(t, VK_DOUBLE_LIST, doubles, n, sizeof *doubles);
  uint32_t *ids = memory(t, n, sizeof *ids);
  if (!ids) return NO_VALUE;
  for (uint32_t i = 0; i < n; i++) ids[i] = op_double(t, doubles[i]);
  return op_list(t, ids, n);
}

uint32_t op_list(struct op_test *t, const uint32_t *ids, uint32_t n) {
  return list(t, VK_VALUE_LIST, ids, n, sizeof *ids);
}

uint32_t op_symint(struct op_test *t) {
  uint32_t id;
  value(t, VK_SYMINT, &id);
  if (!has_room(t, id, t->graph.n_inputs)) return NO_VALUE;
  t->inputs[t->graph.n_inputs++] = id;
  return id;
}

void op_node(struct op_test *t, const char *name, const uint32_t *args, uint32_t n) {
  if (!is_good(t)) return;
  sconce_error err = {0};
  test_note_operator(name);
  const struct op *op = op_find(text_of(name));
  sconce_status status = op && op->flags & OP_OWN ? graph_add_own(&t->graph, op, args, n, &err)
                                                  : graph_add_node(&t->graph, text_of(name),
                                                                   t->graph.n_nodes, args, n, &err);
  if (status != SCONCE_OK) t->built = err;
}

/* ---- running --------------------------------------------------------------------------------- */

sconce_status op_load(struct op_test *t, const char *force, sconce_error *err) {
  if (t->built.status != SCONCE_OK) {
    *err = t->built;
    return err->status;
  }
  t->graph.force = force;
  if (!t->gpu) return fail(err, SCONCE_NO_DEVICE, "no device");
  TRY(graph_finish(&t->graph, err));
  weights_init(&t->weights, t->gpu, NULL, &t->graph.arena.allocator);
  TRY(shared_begin(&t->shared, t->gpu, &t->weights, &t->graph, err));
  TRY(shared_finish(&t->shared, err));
  TRY(exec_init(&t->exec, &t->shared, NULL, &t->graph, err));
  graph_begin(&t->graph);
  t->loaded = true;
  return SCONCE_OK;
}

void op_set(struct op_test *t, uint32_t input, const uint32_t *dims, uint32_t rank,
            const double *values) {
  if (input == NO_VALUE) return; /* op_load has said so */
  struct tensor *tensor = &t->graph.values[input].tensor;
  sconce_error err = {0};
  CHECK_OK(graph_set_dims(&t->graph, input, dims, rank, &err), err);
  uint64_t n = tensor_numel(tensor);
  for (uint32_t i = 0; i < t->graph.n_inputs; i++) {
    if (t->inputs[i] != input) continue;
    if (!t->data[i]) t->data[i] = op_elements(t, input); /* for the most that there may be */
    if (!t->data[i]) return;
    test_to_dtype(tensor->dtype, values, n, t->data[i]);
    tensor->host = t->data[i];
  }
}

void op_set_symint(struct op_test *t, uint32_t input, int64_t number) {
  if (input == NO_VALUE) return;
  sconce_error err = {0};
  CHECK_OK(graph_set_symint(&t->graph, input, number, &err), err);
}

static sconce_status run_planned(struct op_test *t, sconce_error *err) {
  TRY(graph_plan(&t->graph, err));
  TRY(graph_check(&t->graph, err));
  for (uint32_t i = 0; i < t->graph.n_inputs; i++) {
    const struct value *v = &t->graph.values[t->inputs[i]];
    if (v->kind == VK_TENSOR && t->data[i])
      TRY(exec_write(&t->exec, t->inputs[i], t->data[i], tensor_nbytes(&v->tensor), err));
  }
  for (uint32_t value; (value = t->graph.wanted) != NO_VALUE;) {
    struct tensor *wanted = &t->graph.values[value].tensor;
    uint8_t elements[64] = {0};
    if (tensor_nbytes_max(wanted) > sizeof elements)
      return fail(err, SCONCE_UNSUPPORTED, "a test whose host reads many bytes");
    bool there;
    TRY(exec_part_begin(&t->exec, value, err));
    TRY(exec_part_poll(&t->exec, value, elements, true, &there, err));
    wanted->host = elements;
    TRY(graph_plan(&t->graph, err));
    wanted->host = NULL;
    TRY(graph_check(&t->graph, err));
  }
  trial_runs(&t->graph);
  TRY(exec_begin(&t->exec, &(struct take){.token = NO_VALUE}, err));
  bool done;
  return exec_poll(&t->exec, true, &done, err);
}

sconce_status op_run(struct op_test *t, sconce_error *err) {
  if (!t->loaded) return fail(err, SCONCE_BAD_ARGUMENT, "the graph is not loaded");
  sconce_status status = run_planned(t, err);
  if (status != SCONCE_OK) graph_rollback(&t->graph);
  graph_begin(&t->graph);
  return status;
}

sconce_status op_try(struct op_test *t, sconce_error *err) {
  TRY(op_load(t, NULL, err));
  return op_run(t, err);
}

const double *op_get(struct op_test *t, uint32_t output, uint64_t *numel) {
  static const double nothing;
  *numel = 0;
  if (output == NO_VALUE) return &nothing;
  const struct tensor *tensor = &t->graph.values[output].tensor;
  const uint64_t n = tensor_numel(tensor);
  if (!t->results || n > t->n_results) t->results = memory(t, (size_t)n + 1, sizeof *t->results);
  if (!t->results) return &nothing;
  if (n > t->n_results) t->n_results = n;
  *numel = n;
  memset(t->results, 0, (size_t)*numel * sizeof *t->results);
  for (uint32_t i = 0; i < t->graph.n_outputs; i++)
    if (t->outputs[i] == output && exec_output(&t->exec, i))
      test_from_dtype(tensor->dtype, exec_output(&t->exec, i), *numel, t->results);
  return t->results;
}
