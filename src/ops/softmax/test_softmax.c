/* Softmax along every dim, with lines that end inside words. */
#include "op.h"

enum { LIVE = 5 };
static const struct {
  uint32_t x[3];
  int64_t dim;
  const char *why;
} shapes[] = {
    {{LIVE, 3, 70}, -1, "the last dim, more than a workgroup"},
    {{LIVE, 3, 7}, 2, "the last dim, odd halves"},
    {{3, LIVE, 9}, 1, "a live middle dim"},
    {{40, LIVE, 3}, 0, "the first dim"},
    {{1, 2, 40001}, 2, "lines in parts"},
    {{2, 5000, 70}, 1, "lines in parts, side by side"},
    {{2, 5000, 3}, 1, "a few of those"},
    {{1, 1, 1000003}, 2, "a million"},
    {{1, 1, 5000001}, 2, "five million"},
};
enum { SHAPES = sizeof shapes / sizeof *shapes, MILLIONS = SHAPES - 2 };

static void run(size_t s, enum vk_dtype dtype, bool logarithm, bool as_int) {
  static const uint32_t lives[] = {LIVE, 2, 1, 0, LIVE};
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, dtype, shapes[s].x, 3), y = op_output(&t, dtype, shapes[s].x, 3);
  uint32_t dim = as_int ? op_int(&t, shapes[s].dim) : op_double(&t, (double)shapes[s].dim);
  op_node(&t, logarithm ? "aten._log_softmax.default" : "aten._softmax.default",
          IDS(x, dim, op_bool(&t, false), y));
  uint64_t bytes = vk_dtype_size(dtype);
  for (int d = 0; d < 3; d++) bytes *= shapes[s].x[d];
  if (bytes > t.graph.caps.max_storage_binding) { /* it is not split */
    CHECK_FAILS(op_try(&t, &err), SCONCE_UNSUPPORTED, err, "the device binds at most");
    op_end(&t);
    return;
  }
  CHECK_OK(op_load(&t, NULL, &err), err);
  for (size_t i = 0; i < (bytes > 1 << 16 ? 1 : 5) && !test_failed(); i++) {
    uint32_t dims[3], d = (uint32_t)(shapes[s].dim < 0 ? shapes[s].dim + 3 : shapes[s].dim);
    for (int k = 0; k < 3; k++) dims[k] = shapes[s].x[k] == LIVE ? lives[i] : shapes[s].x[k];
    double mosts[70], sums[70]; /* of the lines of an outer index */
    uint64_t n = (uint64_t)dims[0] * dims[1] * dims[2], inner = 1, n_got;
    for (uint32_t k = d + 1; k < 3; k++) inner *= dims[k];
    double *values = test_values(dtype, n, 2 + i), *want = malloc((size_t)(n + 1) * sizeof *want);
    for (uint64_t e = 0; e < n; e++) values[e] *= e % 5 ? 8 : 64; /* exact in both dtypes */
    for (uint64_t e = 0; e < n; e++) {
      uint64_t first = e / (inner * dims[d]) * (inner * dims[d]) + e % inner;
      double most = -INFINITY, sum = 0;
      if (e == first) {
        for (uint32_t k = 0; k < dims[d]; k++) most = fmax(most, values[first + k * inner]);
        for (uint32_t k = 0; k < dims[d]; k++) sum += exp(values[first + k * inner] - most);
        mosts[e % inner] = most;
        sums[e % inner] = sum;
      }
      most = mosts[e % inner];
      sum = sums[e % inner];
      want[e] = logarithm ? values[e] - most - log(sum) : exp(values[e] - most) / sum;
    }
    op_set(&t, x, dims, 3, values);
    CHECK_OK(op_run(&t, &err), err);
    const double *got = op_get(&t, y, &n_got);
    CHECK_EQ(n_got, n);
    double tolerance = dtype == VK_FLOAT16 ? 1e-3 : 1e-5;
    test_close(got, want, n, tolerance / (logarithm ? 1 : 100), tolerance, shapes[s].why);
    free(values);
    free(want);
  }
  op_end(&t);
}

static void every_dim(void) {
  for (size_t s = 0; s < MILLIONS; s++)
    for (int k = 0; k < 4; k++) run(s, k & 1 ? VK_FLOAT16 : VK_FLOAT32, k & 2, k & 1);
}

static void millions(void) {
  for (size_t s = MILLIONS; s < (test_gpu_is_slow() ? MILLIONS + 1 : SHAPES); s++)
    run(s, VK_FLOAT32, s == MILLIONS, false);
}

/* Infinities alone in a part, and a line of nothing else. */
static void infinities(void) {
  enum { N = 40000, PART = 16384 };
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(3, N)), y = op_output(&t, VK_FLOAT32, DIMS(3, N));
  op_node(&t, "aten._softmax.default", IDS(x, op_int(&t, 1), op_bool(&t, false), y));
  CHECK_OK(op_load(&t, NULL, &err), err);
  double *values = malloc(3 * N * sizeof *values), *want = malloc(3 * N * sizeof *want);
  for (uint32_t i = 0; i < 3 * N; i++) {
    const uint32_t row = i / N, col = i % N;
    values[i] = row == 1 || col < PART ? -INFINITY : 0;
    want[i] = row == 1 ? NAN : col < PART ? 0 : 1.0 / (N - PART);
    if (row == 2) want[i] = NAN;
  }
  values[2 * N + 7] = NAN; /* among infinities */
  op_set(&t, x, DIMS(3, N), values);
  CHECK_OK(op_run(&t, &err), err);
  uint64_t n;
  test_close(op_get(&t, y, &n), want, 3 * N, 0, 1e-5, "infinities");
  free(values);
  free(want);
  op_end(&t);
}

/* half_to_float: sums and results in 32 bits. */
static void halves_to_floats(void) {
  static const char *const names[] = {"aten._softmax.default", "aten::_log_softmax.out"};
  static const double values[] = {0.5, 8, -3, 8.5};
  for (int log_of = 0; log_of < 2; log_of++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t x = op_input(&t, VK_FLOAT16, DIMS(4)), y = op_output(&t, VK_FLOAT32, DIMS(4));
    op_node(&t, names[log_of], IDS(x, op_int(&t, 0), op_bool(&t, true), y));
    CHECK_OK(op_load(&t, NULL, &err), err);
    op_set(&t, x, DIMS(4), values);
    CHECK_OK(op_run(&t, &err), err);
    double sum = 0, want[4];
    uint64_t n;
    for (int i = 0; i < 4; i++) sum += exp(values[i]);
    for (int i = 0; i < 4; i++) want[i] = log_of ? values[i] - log(sum) : exp(values[i]) / sum;
    test_close(op_get(&t, y, &n), want, 4, 2e-6, 2e-6, names[log_of]);
    op_end(&t);
  }
}

static void refuses(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_INT32, DIMS(4)), y = op_output(&t, VK_INT32, DIMS(4));
  op_node(&t, "aten._softmax.default", IDS(x, op_int(&t, 0), op_bool(&t, false), y));
  CHECK_EQ(op_load(&t, NULL, &err), SCONCE_UNSUPPORTED);
  CHECK(strstr(err.text, "int32 [4] becomes int32 [4]") != NULL);
  op_end(&t);
}

const struct test suite_softmax[] = {TEST(every_dim),        TEST(millions), TEST(infinities),
                                     TEST(halves_to_floats), TEST(refuses),  {0}};
