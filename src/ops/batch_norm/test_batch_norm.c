/* batch_norm: numbers of channels that are given and such as x has itself, live shapes, in parts.
 */
#include "op.h"

enum kind { GIVEN, EITHER, OWN };

static const struct row {
  const char *name;
  enum kind kind;
  uint32_t rank, x[5];
  bool weight, bias;
  const char *why;
} rows[] = {
    {"aten._native_batch_norm_legit_no_training.default",
     GIVEN,
     4,
     {3, 6, 4, 4},
     true,
     true,
     "a channel's elements are whole quads"},
    {"aten._native_batch_norm_legit_no_training.default",
     GIVEN,
     4,
     {3, 5, 3, 5},
     true,
     false,
     "quads of two channels, a weight alone"},
    {"aten::_native_batch_norm_legit_no_training.out",
     GIVEN,
     2,
     {7, 5},
     false,
     true,
     "one element a channel, a bias alone"},
    {"aten._native_batch_norm_legit_no_training.default",
     GIVEN,
     3,
     {4, 3, 9},
     false,
     false,
     "neither"},
    {"aten._native_batch_norm_legit_no_training.default",
     GIVEN,
     5,
     {2, 3, 2, 3, 4},
     true,
     true,
     "three dims"},
    {"aten._native_batch_norm_legit.default", EITHER, 4, {3, 6, 4, 4}, true, true, "by a flag"},
    {"aten::_native_batch_norm_legit.out", EITHER, 4, {3, 6, 3, 3}, true, true, "by a flag"},
    {"aten._native_batch_norm_legit.no_stats", OWN, 4, {3, 6, 4, 4}, true, true, "its own"},
    {"aten::_native_batch_norm_legit.no_stats_out", OWN, 3, {3, 5, 7}, true, false, "its own, odd"},
};
enum { ROWS = sizeof rows / sizeof *rows };

struct norm {
  struct op_test t;
  const struct row *r;
  enum vk_dtype dtype;
  uint32_t x, y, mean, rstd;
  double *w, *b, *middle, *variance;
};

static uint32_t add_outputs(struct norm *m, uint32_t *args, uint32_t k) {
  const uint32_t stats[] = {m->r->kind == OWN ? m->r->x[1] : 0};
  m->y = op_output(&m->t, m->dtype, m->r->x, m->r->rank);
  m->mean = op_output(&m->t, m->dtype, stats, 1);
  m->rstd = op_output(&m->t, m->dtype, stats, 1);
  if (strstr(m->r->name, "::")) args[k++] = m->y, args[k++] = m->mean, args[k++] = m->rstd;
  args[k++] = op_list(&m->t, IDS(m->y, m->mean, m->rstd));
  return k;
}

static void load(struct norm *m, const char *force, uint64_t binding) {
  const struct row *r = m->r;
  struct op_test *t = &m->t;
  sconce_error err = {0};
  uint32_t c = r->x[1], args[14], k = 0;
  op_begin(t);
  if (binding) t->graph.caps.max_storage_binding = binding;
  m->w = test_values(m->dtype, c, 3);
  m->b = test_values(m->dtype, c, 4);
  m->middle = test_values(m->dtype, c, 5);
  m->variance = test_values(m->dtype, c, 6);
  for (uint32_t i = 0; i < c; i++) m->variance[i] = fabs(m->variance[i]);
  args[k++] = m->x = op_input(t, m->dtype, r->x, r->rank);
  args[k++] = r->weight ? op_constant(t, m->dtype, DIMS(c), m->w) : op_null(t);
  args[k++] = r->bias ? op_constant(t, m->dtype, DIMS(c), m->b) : op_null(t);
  if (r->kind != OWN) args[k++] = op_constant(t, m->dtype, DIMS(c), m->middle);
  if (r->kind != OWN) args[k++] = op_constant(t, m->dtype, DIMS(c), m->variance);
  if (r->kind != GIVEN) args[k++] = op_bool(t, r->kind == OWN);
  args[k++] = op_double(t, 0.1);
  args[k++] = op_double(t, 1e-3);
  k = add_outputs(m, args, k);
  op_node(t, r->name, args, k);
  CHECK_OK(op_load(t, force, &err), err);
}

static void own_numbers(struct norm *m, const double *x, uint32_t n, uint64_t inner) {
  uint32_t channels = m->r->x[1];
  double count = n * (double)inner;
  for (uint32_t c = 0; c < channels; c++) {
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < n; i++)
      for (uint64_t k = 0; k < inner; k++) sum += x[(i * channels + c) * inner + k];
    m->middle[c] = sum / count;
    for (uint32_t i = 0; i < n; i++)
      for (uint64_t k = 0; k < inner; k++)
        squares += pow(x[(i * channels + c) * inner + k] - m->middle[c], 2);
    m->variance[c] = squares / count;
  }
}

static void check_stats(struct norm *m, double tolerance) {
  uint64_t got;
  double factors[64];
  for (uint32_t c = 0; c < m->r->x[1]; c++) factors[c] = 1 / sqrt(m->variance[c] + 1e-3);
  test_close(op_get(&m->t, m->mean, &got), m->middle, m->r->x[1], tolerance, tolerance, "mean");
  CHECK_EQ(got, m->r->x[1]);
  test_close(op_get(&m->t, m->rstd, &got), factors, m->r->x[1], 0, tolerance, "rstd");
}

static void call(struct norm *m, uint32_t n) {
  const struct row *r = m->r;
  sconce_error err = {0};
  uint32_t dims[5];
  uint64_t inner = 1, got;
  memcpy(dims, r->x, sizeof dims);
  dims[0] = n;
  for (uint32_t i = 2; i < r->rank; i++) inner *= dims[i];
  uint64_t numel = n * r->x[1] * inner;
  double *x = test_values(m->dtype, numel, n + 1), *want = calloc((size_t)numel + 1, sizeof *want);
  if (r->kind == OWN && n) own_numbers(m, x, n, inner);
  for (uint64_t e = 0; e < numel; e++) {
    uint64_t c = e / inner % r->x[1];
    want[e] = (x[e] - m->middle[c]) / sqrt(m->variance[c] + 1e-3) * (r->weight ? m->w[c] : 1) +
              (r->bias ? m->b[c] : 0);
  }
  op_set(&m->t, m->x, dims, r->rank, x);
  CHECK_OK(op_run(&m->t, &err), err);
  const double tolerance = m->dtype == VK_FLOAT16 ? 4e-3 : 1e-5;
  test_close(op_get(&m->t, m->y, &got), want, numel, tolerance, tolerance, r->why);
  CHECK_EQ(got, numel);
  if (r->kind == OWN && n) check_stats(m, tolerance);
  free(x);
  free(want);
}

static void run(const struct row *r, enum vk_dtype dtype, const char *force, uint64_t binding) {
  struct norm m = {.r = r, .dtype = dtype};
  load(&m, force, binding);
  const uint32_t lives[] = {r->x[0], 1, 0, 2, r->x[0]};
  for (int i = 0; i < 5 && !test_failed(); i++) call(&m, lives[i]);
  free(m.w);
  free(m.b);
  free(m.middle);
  free(m.variance);
  op_end(&m.t);
}

static void every_case(void) {
  for (size_t i = 0; i < ROWS; i++) {
    run(&rows[i], VK_FLOAT32, NULL, 0);
    run(&rows[i], VK_FLOAT16, NULL, 0);
  }
  run(&rows[0], VK_FLOAT32, "given_f32", 0);
  run(&rows[7], VK_FLOAT16, "own_f16", 0);
}

/* More than a binding holds: some planes at a time, which need not begin with channel 0. */
static void in_parts(void) {
  static const struct row large = {"aten._native_batch_norm_legit_no_training.default",
                                   GIVEN,
                                   3,
                                   {90, 7, 5},
                                   true,
                                   true,
                                   "in parts"};
  run(&large, VK_FLOAT32, NULL, 4096);
  run(&large, VK_FLOAT16, NULL, 4096);
}

static void refuses(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  const double ones[] = {1, 1, 1};
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(2, 4)), c = op_constant(&t, VK_FLOAT32, DIMS(3), ones);
  uint32_t y = op_output(&t, VK_FLOAT32, DIMS(2, 4)), none = op_tensor(&t, VK_FLOAT32, DIMS(0));
  op_node(&t, "aten._native_batch_norm_legit_no_training.default",
          IDS(x, op_null(&t), op_null(&t), c, c, op_double(&t, 0.1), op_double(&t, 1e-5),
              op_list(&t, IDS(y, none, none))));
  CHECK_FAILS(op_try(&t, &err), SCONCE_BAD_GRAPH, err,
              "argument 3 is float32 [3] for 4 channels of float32");
  op_end(&t);
}

static void training_is_refused(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  const double ones[] = {1, 1, 1};
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(2, 3)), c = op_constant(&t, VK_FLOAT32, DIMS(3), ones);
  uint32_t y = op_output(&t, VK_FLOAT32, DIMS(2, 3)), none = op_tensor(&t, VK_FLOAT32, DIMS(0));
  op_node(&t, "aten._native_batch_norm_legit.default",
          IDS(x, op_null(&t), op_null(&t), c, c, op_bool(&t, true), op_double(&t, 0.1),
              op_double(&t, 1e-5), op_list(&t, IDS(y, none, none))));
  CHECK_FAILS(op_try(&t, &err), SCONCE_UNSUPPORTED, err,
              "training changes the running mean and variance");
  op_end(&t);
}

const struct test suite_batch_norm[] = {
    TEST(every_case), TEST(in_parts), TEST(refuses), TEST(training_is_refused), {0}};
