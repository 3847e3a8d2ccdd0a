/* Distances: every norm, with batches that broadcast, against the sums that define them. */
#include "op.h"

static const double norms[] = {0, 1, 2, 3.5, INFINITY};

static double distance(const double *a, const double *b, uint32_t n, double p) {
  double sum = 0;
  for (uint32_t i = 0; i < n; i++) {
    const double d = fabs(a[i] - b[i]);
    sum = p == 0 ? sum + (d != 0) : isinf(p) ? fmax(sum, d) : sum + pow(d, p);
  }
  return p == 0 || isinf(p) ? sum : pow(sum, 1 / p);
}

static void two(double p, enum vk_dtype dtype) {
  enum { BATCH = 3, A = 5, B = 4, COLS = 7 };
  static const uint32_t lives[] = {A, 2, 0, 1, A};
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t a = op_input(&t, dtype, DIMS(BATCH, A, COLS)), b = op_input(&t, dtype, DIMS(1, B, COLS));
  uint32_t y = op_output(&t, dtype, DIMS(BATCH, A, B));
  op_node(&t, "aten::_cdist_forward.out", IDS(a, b, op_double(&t, p), op_null(&t), y));
  CHECK_OK(op_load(&t, NULL, &err), err);
  for (size_t i = 0; i < 5 && !test_failed(); i++) {
    const uint32_t rows = lives[i];
    double *va = test_values(dtype, BATCH * A * COLS, 1 + i), *vb = test_values(dtype, B * COLS, 9);
    double want[BATCH * A * B];
    vb[3] = va[3]; /* nothing between them */
    for (uint32_t e = 0; e < BATCH * rows * B; e++)
      want[e] = distance(va + e / B * COLS, vb + e % B * COLS, COLS, p);
    op_set(&t, a, DIMS(BATCH, rows, COLS), va);
    op_set(&t, b, DIMS(1, B, COLS), vb);
    CHECK_OK(op_run(&t, &err), err);
    uint64_t n;
    const double *got = op_get(&t, y, &n);
    CHECK_EQ(n, BATCH * rows * B);
    const double tolerance = dtype == VK_FLOAT16 ? 2e-3 : 1e-4;
    test_close(got, want, n, tolerance, tolerance, "between two");
    free(va);
    free(vb);
  }
  op_end(&t);
}

static void one(double p, enum vk_dtype dtype) {
  enum { ROWS = 6, COLS = 5 };
  static const uint32_t lives[] = {ROWS, 2, 1, 0, 5};
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, dtype, DIMS(ROWS, COLS)),
           y = op_output(&t, dtype, DIMS(ROWS * (ROWS - 1) / 2));
  op_node(&t, "aten::_pdist_forward.out", IDS(x, op_double(&t, p), y));
  CHECK_OK(op_load(&t, NULL, &err), err);
  for (size_t i = 0; i < 5 && !test_failed(); i++) {
    double *v = test_values(dtype, ROWS * COLS, 3 + i), want[ROWS * ROWS];
    uint64_t n, count = 0;
    for (uint32_t j = 0; j < lives[i]; j++)
      for (uint32_t k = j + 1; k < lives[i]; k++)
        want[count++] = distance(v + j * COLS, v + k * COLS, COLS, p);
    op_set(&t, x, DIMS(lives[i], COLS), v);
    CHECK_OK(op_run(&t, &err), err);
    const double *got = op_get(&t, y, &n);
    CHECK_EQ(n, count);
    const double tolerance = dtype == VK_FLOAT16 ? 2e-3 : 1e-4;
    if (n == count && n) test_close(got, want, n, tolerance, tolerance, "within one");
    free(v);
  }
  op_end(&t);
}

static void every_norm(void) {
  for (size_t i = 0; i < sizeof norms / sizeof *norms; i++)
    for (int half = 0; half < 2; half++) {
      two(norms[i], half ? VK_FLOAT16 : VK_FLOAT32);
      one(norms[i], half ? VK_FLOAT16 : VK_FLOAT32);
    }
}

static void refuses(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t a = op_input(&t, VK_FLOAT32, DIMS(2, 3)), b = op_input(&t, VK_FLOAT32, DIMS(2, 4));
  op_node(&t, "aten::_cdist_forward.out",
          IDS(a, b, op_double(&t, 2), op_null(&t), op_output(&t, VK_FLOAT32, DIMS(2, 2))));
  CHECK_FAILS(op_try(&t, &err), SCONCE_BAD_ARGUMENT, err, "rows of float32 [2, 3]");
  op_end(&t);
}

const struct test suite_distance[] = {TEST(every_norm), TEST(refuses), {0}};
