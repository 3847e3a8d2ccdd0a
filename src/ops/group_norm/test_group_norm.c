/* group_norm: every kind of row, weight and bias apart, live shapes, rows in parts, in one graph.
 */
#include "op.h"

struct norm {
  struct op_test t;
  enum vk_dtype dtype;
  uint32_t x, y, mean, rstd, c, groups;
  double *w, *b; /* NULL: there is none */
};

static void load(struct norm *m, const char *name, uint32_t n, uint32_t height, uint32_t width,
                 const char *force, uint64_t binding) {
  sconce_error err = {0};
  struct op_test *t = &m->t;
  op_begin(t);
  if (binding) t->graph.caps.max_storage_binding = binding;
  m->x = op_input(t, m->dtype, DIMS(n, m->c, height, width));
  m->y = op_output(t, m->dtype, DIMS(n, m->c, height, width));
  m->mean = op_output(t, m->dtype, DIMS(n, m->groups));
  m->rstd = op_output(t, m->dtype, DIMS(n, m->groups));
  uint32_t w = m->w ? op_constant(t, m->dtype, DIMS(m->c), m->w) : op_null(t);
  uint32_t b = m->b ? op_constant(t, m->dtype, DIMS(m->c), m->b) : op_null(t);
  uint32_t args[12] = {m->x, w, b}, k = 3;
  args[k++] = op_int(t, n);
  args[k++] = op_int(t, m->c);
  args[k++] = op_int(t, (int64_t)height * width);
  args[k++] = op_int(t, m->groups);
  args[k++] = op_double(t, 1e-5);
  if (strstr(name, "::")) args[k++] = m->y, args[k++] = m->mean, args[k++] = m->rstd;
  args[k++] = op_list(t, IDS(m->y, m->mean, m->rstd));
  op_node(t, name, args, k);
  CHECK_OK(op_load(t, force, &err), err);
}

/* Elements around 3, so that E[x^2] - mean^2 would show. */
static void call(struct norm *m, uint32_t n, uint32_t height, uint32_t width, const char *why) {
  if (test_failed()) return;
  sconce_error err = {0};
  const uint64_t inner = (uint64_t)height * width, numel = n * m->c * inner;
  const uint64_t cols = m->c / m->groups * inner, rows = (uint64_t)n * m->groups;
  double *x = test_values(m->dtype, numel, n + height), *want = calloc(numel + 1, sizeof *want);
  double *means = calloc(rows + 1, sizeof *means), *factors = calloc(rows + 1, sizeof *factors);
  for (uint64_t i = 0; i < numel; i++) x[i] = 3 + round(x[i] * 64) / 64;
  for (uint64_t r = 0; r < rows; r++) {
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < cols; i++) sum += x[r * cols + i];
    means[r] = sum / (double)cols;
    for (uint64_t i = 0; i < cols; i++) squares += pow(x[r * cols + i] - means[r], 2);
    factors[r] = 1 / sqrt(squares / (double)cols + 1e-5);
    for (uint64_t e = r * cols; e < (r + 1) * cols; e++) {
      uint64_t c = e / inner % m->c;
      want[e] = (x[e] - means[r]) * factors[r] * (m->w ? m->w[c] : 1) + (m->b ? m->b[c] : 0);
    }
  }
  op_set(&m->t, m->x, DIMS(n, m->c, height, width), x);
  CHECK_OK(op_run(&m->t, &err), err);
  const double tolerance = m->dtype == VK_FLOAT16 ? 4e-3 : 1e-5;
  uint64_t got;
  test_close(op_get(&m->t, m->y, &got), want, numel, tolerance, tolerance, why);
  CHECK_EQ(got, numel);
  test_close(op_get(&m->t, m->mean, &got), means, rows, 0, tolerance, "mean");
  CHECK_EQ(got, rows);
  test_close(op_get(&m->t, m->rstd, &got), factors, rows, 0, tolerance, "rstd");
  free(x);
  free(want);
  free(means);
  free(factors);
}

static void run(const char *name, enum vk_dtype dtype, const uint32_t *x, uint32_t groups,
                bool weight, bool bias, const char *force, uint64_t binding, const char *why) {
  struct norm m = {.dtype = dtype, .c = x[1], .groups = groups};
  if (weight) m.w = test_values(dtype, m.c, 3);
  if (bias) m.b = test_values(dtype, m.c, 4);
  load(&m, name, x[0], x[2], x[3], force, binding);
  call(&m, x[0], x[2], x[3], why);
  call(&m, 1, x[2], x[3], why);
  call(&m, 0, x[2], x[3], "nothing");
  call(&m, x[0], x[2] > 3 ? 3 : 1, x[3], "another height");
  call(&m, x[0], x[2], x[3], "as at first");
  free(m.w);
  free(m.b);
  op_end(&m.t);
}

static const struct {
  uint32_t x[4], groups;
  bool weight, bias;
  const char *why;
} cases[] = {
    {{3, 6, 3, 5}, 2, true, true, "odd rows: halves share words across rows"},
    {{2, 4, 4, 6}, 4, true, false, "a group is a channel, a weight alone"},
    {{3, 4, 2, 2}, 1, false, true, "one group, a bias alone"},
    {{2, 8, 6, 4}, 2, false, false, "neither"},
    {{3, 12, 32, 20}, 3, true, true, "rows for 256 threads"},
    {{2, 6, 120, 92}, 2, true, true, "rows of several parts, whose last is shorter"},
    {{1, 2, 300, 165}, 2, true, true, "long rows that are quads, but for a few"},
    {{2, 4, 150, 165}, 2, true, true, "long rows that are quads after some calls"},
};
static const enum vk_dtype dtypes[] = {VK_FLOAT32, VK_FLOAT16};

static void every_case(void) {
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int d = 0; d < 2; d++)
      run(i % 2 ? "aten.native_group_norm.default" : "aten::native_group_norm.out", dtypes[d],
          cases[i].x, cases[i].groups, cases[i].weight, cases[i].bias, NULL, 0, cases[i].why);
}

static void no_quads(void) {
  static const uint32_t x[] = {1, 1, 1001, 1001}, some[] = {3, 6, 151, 165};
  if (gpu_caps(test_gpu()).max_storage_binding < sizeof(float) * 1001 * 1001) {
    test_skip("bindings are too small"); /* and rows not aligned, so that they are not split */
    return;
  }
  for (int d = 0; d < 2; d++)
    run("aten::native_group_norm.out", dtypes[d], some, 2, true, true, NULL, 0, "long rows");
  run("aten.native_group_norm.default", VK_FLOAT32, x, 1, false, true, NULL, 0, "a million");
}

static void every_row(void) {
  static const char *const names[] = {"words_f32", "words_f16", "quads_f32", "quads_f16"};
  for (int k = 0; k < 4; k++)
    run("aten.native_group_norm.default", dtypes[k % 2], cases[4].x, cases[4].groups, true, true,
        names[k], 0, names[k]);
}

/* More than a binding holds: some rows at a time. */
static void in_parts(void) {
  static const uint32_t few[] = {5, 12, 8, 8}, odd[] = {70, 6, 3, 5}, long_rows[] = {3, 6, 128, 96};
  for (int d = 0; d < 2; d++) {
    run("aten.native_group_norm.default", dtypes[d], few, 3, true, true, NULL, 4096, "few rows");
    run("aten.native_group_norm.default", dtypes[d], odd, 2, true, true, NULL, 12000, "odd rows");
    run("aten.native_group_norm.default", dtypes[d], long_rows, 2, true, true, NULL, 300000,
        "rows of several parts");
  }
}

static void refuses(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(2, 8, 3)),
           y = op_output(&t, VK_FLOAT32, DIMS(2, 8, 3));
  uint32_t mean = op_tensor(&t, VK_FLOAT32, DIMS(2, 3)),
           rstd = op_tensor(&t, VK_FLOAT32, DIMS(2, 3));
  op_node(&t, "aten.native_group_norm.default",
          IDS(x, op_null(&t), op_null(&t), op_int(&t, 2), op_int(&t, 8), op_int(&t, 3),
              op_int(&t, 3), op_int(&t, 1), op_list(&t, IDS(y, mean, rstd))));
  CHECK_FAILS(op_try(&t, &err), SCONCE_BAD_GRAPH, err, "3 groups of channels of float32 [2, 8, 3]");
  op_end(&t);
}

const struct test suite_group_norm[] = {TEST(every_case), TEST(no_quads), TEST(every_row),
                                        TEST(in_parts),   TEST(refuses),  {0}};
