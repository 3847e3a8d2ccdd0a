/* Test support for operators: see op.h. */
#include "op.h"

#include "base/half.h"

void op_begin(struct op_test *t) {
  *t = (struct op_test){0};
  struct gpu *gpu = test_gpu();
  struct caps caps = {0};
  if (gpu) caps = gpu_caps(gpu);
  graph_init(&t->graph, NULL, &caps);
  t->graph.inputs = t->inputs;
  t->graph.outputs = t->outputs;
}

void op_end(struct op_test *t) {
  exec_free(&t->exec);
  shared_free(&t->shared);
  weights_free(&t->weights);
  for (size_t i = 0; i < sizeof t->data / sizeof *t->data; i++) free(t->data[i]);
  free(t->results);
  graph_free(&t->graph);
}

/* ---- values ---------------------------------------------------------------------------------- */

static struct value *value(struct op_test *t, enum vk_kind kind, uint32_t *id) {
  *id = graph_add_value(&t->graph, kind, &t->built);
  return &t->graph.values[*id];
}

uint32_t op_tensor(struct op_test *t, enum vk_dtype dtype, const uint32_t *dims, uint32_t rank) {
  return graph_add_tensor(&t->graph, dtype, rank, dims, &t->built);
}

uint32_t op_input(struct op_test *t, enum vk_dtype dtype, const uint32_t *dims, uint32_t rank) {
  uint32_t id = op_tensor(t, dtype, dims, rank);
  t->graph.values[id].tensor.input = true;
  t->inputs[t->graph.n_inputs++] = id;
  return id;
}

uint32_t op_output(struct op_test *t, enum vk_dtype dtype, const uint32_t *dims, uint32_t rank) {
  uint32_t id = op_tensor(t, dtype, dims, rank);
  t->graph.values[id].tensor.output = true;
  t->outputs[t->graph.n_outputs++] = id;
  return id;
}

uint32_t op_constant_bytes(struct op_test *t, enum vk_dtype dtype, const uint32_t *dims,
                           uint32_t rank, const void *bytes) {
  uint32_t id = op_tensor(t, dtype, dims, rank);
  struct tensor *tensor = &t->graph.values[id].tensor;
  size_t size = (size_t)tensor_nbytes_max(tensor);
  uint8_t *copy = arena_new(&t->graph.arena, uint8_t, size);
  memcpy(copy, bytes, size);
  tensor->constant = true;
  tensor->bytes = extent_of((struct span){copy, size});
  return id;
}

uint32_t op_constant(struct op_test *t, enum vk_dtype dtype, const uint32_t *dims, uint32_t rank,
                     const double *values) {
  uint64_t n = 1;
  for (uint32_t i = 0; i < rank; i++) n *= dims[i];
  void *bytes = malloc((size_t)n * vk_dtype_size(dtype) + 1);
  test_to_dtype(dtype, values, n, bytes);
  uint32_t id = op_constant_bytes(t, dtype, dims, rank, bytes);
  free(bytes);
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
  uint32_t ids[64];
  if (n > 64) abort();
  for (uint32_t i = 0; i < n; i++) ids[i] = plain_int(t, ints[i]);
  return op_list(t, ids, n);
}

uint32_t op_ints(struct op_test *t, const int64_t *ints, uint32_t n) {
  if (test_swap_scalars) return int_values(t, ints, n);
  uint32_t id;
  int64_t *copy = arena_new(&t->graph.arena, int64_t, n);
  memcpy(copy, ints, n * sizeof *copy);
  struct value *v = value(t, VK_INT_LIST, &id);
  v->list.n = n;
  v->list.ints = copy;
  return id;
}

uint32_t op_doubles(struct op_test *t, const double *doubles, uint32_t n) {
  uint32_t id, ids[64];
  if (n > 64) abort();
  for (uint32_t i = 0; i < n && test_swap_scalars; i++) ids[i] = op_double(t, doubles[i]);
  if (test_swap_scalars) return op_list(t, ids, n);
  double *copy = arena_new(&t->graph.arena, double, n);
  memcpy(copy, doubles, n * sizeof *copy);
  struct value *v = value(t, VK_DOUBLE_LIST, &id);
  v->list.n = n;
  v->list.doubles = copy;
  return id;
}

uint32_t op_list(struct op_test *t, const uint32_t *ids, uint32_t n) {
  uint32_t id;
  uint32_t *copy = arena_new(&t->graph.arena, uint32_t, n);
  memcpy(copy, ids, n * sizeof *copy);
  struct value *v = value(t, VK_VALUE_LIST, &id);
  v->list.n = n;
  v->list.ids = copy;
  return id;
}

uint32_t op_symint(struct op_test *t) {
  uint32_t id;
  value(t, VK_SYMINT, &id);
  t->inputs[t->graph.n_inputs++] = id;
  return id;
}

void op_node(struct op_test *t, const char *name, const uint32_t *args, uint32_t n) {
  sconce_error err = {0};
  test_note_operator(name);
  const struct op *op = op_find(text_of(name));
  sconce_status status = op && op->flags & OP_OWN ? graph_add_own(&t->graph, op, args, n, &err)
                                                  : graph_add_node(&t->graph, text_of(name),
                                                                   t->graph.n_nodes, args, n, &err);
  if (status != SCONCE_OK && t->built.status == SCONCE_OK) t->built = err;
}

/* ---- running --------------------------------------------------------------------------------- */

sconce_status op_load(struct op_test *t, const char *force, sconce_error *err) {
  if (t->built.status != SCONCE_OK) {
    *err = t->built;
    return err->status;
  }
  t->graph.force = force;
  struct gpu *gpu = test_gpu();
  if (!gpu) return fail(err, SCONCE_NO_DEVICE, "no device");
  TRY(graph_finish(&t->graph, err));
  weights_init(&t->weights, gpu, NULL, &t->graph.arena.allocator);
  TRY(shared_begin(&t->shared, gpu, &t->weights, &t->graph, err));
  TRY(shared_finish(&t->shared, err));
  TRY(exec_init(&t->exec, &t->shared, &t->graph, err));
  graph_begin(&t->graph);
  t->loaded = true;
  return SCONCE_OK;
}

void op_set(struct op_test *t, uint32_t input, const uint32_t *dims, uint32_t rank,
            const double *values) {
  struct tensor *tensor = &t->graph.values[input].tensor;
  sconce_error err = {0};
  CHECK_OK(graph_set_dims(&t->graph, input, dims, rank, &err), err);
  uint64_t n = tensor_numel(tensor);
  for (uint32_t i = 0; i < t->graph.n_inputs; i++) {
    if (t->inputs[i] != input) continue;
    free(t->data[i]);
    t->data[i] = malloc((size_t)n * vk_dtype_size(tensor->dtype) + 1);
    test_to_dtype(tensor->dtype, values, n, t->data[i]);
    tensor->host = t->data[i];
  }
}

void op_set_symint(struct op_test *t, uint32_t input, int64_t number) {
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
    TRY(exec_part(&t->exec, value, elements, err));
    wanted->host = elements;
    TRY(graph_plan(&t->graph, err));
    wanted->host = NULL;
    TRY(graph_check(&t->graph, err));
  }
  TRY(exec_begin(&t->exec, &(struct take){.token = NO_VALUE}, err));
  bool done;
  return exec_poll(&t->exec, true, &done, err);
}

sconce_status op_run(struct op_test *t, sconce_error *err) {
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
  const struct tensor *tensor = &t->graph.values[output].tensor;
  *numel = tensor_numel(tensor);
  free(t->results);
  t->results = calloc((size_t)*numel + 1, sizeof *t->results);
  for (uint32_t i = 0; i < t->graph.n_outputs; i++)
    if (t->outputs[i] == output && exec_output(&t->exec, i))
      test_from_dtype(tensor->dtype, exec_output(&t->exec, i), *numel, t->results);
  return t->results;
}

/* ---- numbers --------------------------------------------------------------------------------- */

void test_to_dtype(enum vk_dtype dtype, const double *values, uint64_t n, void *out) {
  for (uint64_t i = 0; i < n; i++) switch (dtype) {
    case VK_FLOAT32:
      ((float *)out)[i] = (float)values[i];
      break;
    case VK_FLOAT16:
      ((uint16_t *)out)[i] = half_from_float((float)values[i]);
      break;
    case VK_INT32:
      ((int32_t *)out)[i] = (int32_t)values[i];
      break;
    case VK_INT8:
      ((int8_t *)out)[i] = (int8_t)values[i];
      break;
    default:
      ((uint8_t *)out)[i] = (uint8_t)values[i];
      break;
    }
}

void test_from_dtype(enum vk_dtype dtype, const void *bytes, uint64_t n, double *out) {
  for (uint64_t i = 0; i < n; i++) switch (dtype) {
    case VK_FLOAT32:
      out[i] = (double)((const float *)bytes)[i];
      break;
    case VK_FLOAT16:
      out[i] = (double)half_to_float(((const uint16_t *)bytes)[i]);
      break;
    case VK_INT32:
      out[i] = ((const int32_t *)bytes)[i];
      break;
    case VK_INT8:
      out[i] = ((const int8_t *)bytes)[i];
      break;
    default:
      out[i] = ((const uint8_t *)bytes)[i];
      break;
    }
}

double *test_values(enum vk_dtype dtype, uint64_t n, uint64_t seed) {
  double *values = malloc((size_t)(n + 1) * sizeof *values);
  void *rounded = malloc((size_t)(n + 1) * 8);
  for (uint64_t i = 0; i < n; i++) values[i] = (double)test_random_float(&seed);
  test_to_dtype(dtype, values, n, rounded);
  test_from_dtype(dtype, rounded, n, values);
  free(rounded);
  return values;
}

bool test_close(const double *got, const double *want, uint64_t n, double abs, double rel,
                const char *what) {
  test_checked();
  uint64_t worst = n;
  double most = 0;
  for (uint64_t i = 0; i < n; i++) {
    bool both_odd = (isnan(got[i]) && isnan(want[i])) || got[i] == want[i];
    double over = both_odd ? 0 : fabs(got[i] - want[i]) - (abs + rel * fabs(want[i]));
    if (isnan(over)) over = INFINITY;
    if (over > most) {
      most = over;
      worst = i;
    }
  }
  if (worst == n) return true;
  test_fail(__FILE__, __LINE__, "%s: element %llu of %llu is %.9g, want %.9g", what,
            (unsigned long long)worst, (unsigned long long)n, got[worst], want[worst]);
  return false;
}
