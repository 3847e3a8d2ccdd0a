/* layer_norm: every kind of row, weight and bias apart, several trailing dims, live shapes. */
#include "op.h"

struct norm {
  struct op_test t;
  uint32_t x, y, mean, rstd, cols;
  double *w, *b;
};

static void load(struct norm *m, enum vk_dtype dtype, uint32_t rows, uint32_t c0, uint32_t c1,
                 bool weight, bool bias, const char *force) {
  sconce_error err = {0};
  op_begin(&m->t);
  m->cols = c0 * c1;
  m->w = test_values(dtype, m->cols, 3);
  m->b = test_values(dtype, m->cols, 4);
  m->x = op_input(&m->t, dtype, DIMS(rows, c0, c1));
  m->y = op_output(&m->t, dtype, DIMS(rows, c0, c1));
  m->mean = op_output(&m->t, dtype, DIMS(rows, 1, 1));
  m->rstd = op_output(&m->t, dtype, DIMS(rows, 1, 1));
  uint32_t w = weight ? op_constant(&m->t, dtype, DIMS(c0, c1), m->w) : op_null(&m->t);
  uint32_t b = bias ? op_constant(&m->t, dtype, DIMS(c0, c1), m->b) : op_null(&m->t);
  op_node(&m->t, "aten.native_layer_norm.default",
          IDS(m->x, op_ints(&m->t, INTS(c0, c1)), w, b, op_double(&m->t, 1e-5),
              op_list(&m->t, IDS(m->y, m->mean, m->rstd))));
  CHECK_OK(op_load(&m->t, force, &err), err);
}

static void unload(struct norm *m) {
  free(m->w);
  free(m->b);
  op_end(&m->t);
}

static void call(struct norm *m, enum vk_dtype dtype, uint32_t rows, uint32_t c0, bool weight,
                 bool bias, const char *why) {
  if (test_failed()) return;
  sconce_error err = {0};
  uint64_t n = (uint64_t)rows * m->cols, got_n;
  double *x = test_values(dtype, n, rows), *want = calloc(n + 1, sizeof *want);
  double *means = calloc(rows + 1, sizeof *means);
  for (uint32_t r = 0; r < rows; r++) {
    double sum = 0, squares = 0;
    for (uint32_t c = 0; c < m->cols; c++) sum += x[r * m->cols + c];
    means[r] = sum / m->cols;
    for (uint32_t c = 0; c < m->cols; c++) squares += pow(x[r * m->cols + c] - means[r], 2);
    for (uint32_t c = 0; c < m->cols; c++)
      want[r * m->cols + c] = (x[r * m->cols + c] - means[r]) / sqrt(squares / m->cols + 1e-5) *
                                  (weight ? m->w[c] : 1) +
                              (bias ? m->b[c] : 0);
  }
  op_set(&m->t, m->x, DIMS(rows, c0, m->cols / c0), x);
  CHECK_OK(op_run(&m->t, &err), err);
  double tolerance = dtype == VK_FLOAT16 ? 4e-3 : 1e-5;
  const double *got = op_get(&m->t, m->y, &got_n);
  CHECK_EQ(got_n, n);
  test_close(got, want, n, tolerance, tolerance, why);
  got = op_get(&m->t, m->mean, &got_n);
  test_close(got, means, rows, tolerance, tolerance, "mean");
  free(x);
  free(want);
  free(means);
}

static const struct {
  uint32_t rows, c0, c1;
  bool weight, bias;
  const char *why;
} cases[] = {
    {5, 1, 7, true, true, "odd rows: 2-byte elements share words across rows"},
    {4, 3, 5, true, false, "two trailing dims, a weight alone"},
    {3, 2, 64, false, true, "a bias alone"},
    {2, 1, 300, false, false, "neither, more than a workgroup wide"},
    {3, 3, 5667, true, true, "rows of two parts, which share words"},
    {1, 1000, 1000, true, false, "a row of a million"},
    {1, 5000, 1000, false, true, "a row of five million"},
};

static void every_case(void) {
  static const char *const names[] = {"f32", "f16"};
  static const enum vk_dtype dtypes[] = {VK_FLOAT32, VK_FLOAT16};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int d = 0; d < (cases[i].c0 < 1000 ? 2 : 1); d++) {
      const uint64_t bytes = (uint64_t)cases[i].c0 * cases[i].c1 * 4;
      const bool large = cases[i].c0 >= 1000; /* once is enough */
      if (large && (test_gpu_is_slow() || bytes > gpu_caps(test_gpu()).max_storage_binding))
        continue;
      struct norm m;
      load(&m, dtypes[d], cases[i].rows, cases[i].c0, cases[i].c1, cases[i].weight, cases[i].bias,
           names[d]);
      const uint32_t live[] = {cases[i].rows, 1, 0, cases[i].rows};
      for (int k = 0; k < (large ? 1 : 4); k++)
        call(&m, dtypes[d], live[k], cases[i].c0, cases[i].weight, cases[i].bias, cases[i].why);
      unload(&m);
    }
}

static void wrong_dims_are_refused(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(2, 8)), y = op_output(&t, VK_FLOAT32, DIMS(2, 8));
  uint32_t mean = op_tensor(&t, VK_FLOAT32, DIMS(2, 1)),
           rstd = op_tensor(&t, VK_FLOAT32, DIMS(2, 1));
  op_node(&t, "aten.native_layer_norm.default",
          IDS(x, op_ints(&t, INTS(7)), op_null(&t), op_null(&t), op_int(&t, 1),
              op_list(&t, IDS(y, mean, rstd))));
  CHECK_FAILS(op_try(&t, &err), SCONCE_BAD_GRAPH, err,
              "float32 [2, 8] has no trailing dims of the 1 given");
  op_end(&t);
}

const struct test suite_layer_norm[] = {TEST(every_case), TEST(wrong_dims_are_refused), {0}};
