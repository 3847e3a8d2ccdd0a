/* Running sums along every dim, from every dtype to every dtype, against a plain loop. */
#include "op.h"

enum { LIVE = 13 };
static const struct {
  uint32_t x[3];
  int64_t dim;
  const char *why;
} shapes[] = {
    {{LIVE, 3, 7}, 2, "short lines, odd halves"},
    {{LIVE, 2, 300}, -1, "more than a workgroup at once"},
    {{3, LIVE, 9}, 1, "a live dim, lines side by side"},
    {{70, LIVE, 3}, 0, "the first dim, more than a thread takes"},
    {{2, 70, 4100}, 1, "many lines side by side"},
    {{1, 2, 40001}, 2, "lines in parts"},
    {{2, 20000, 5}, 1, "lines in parts, side by side"},
    {{1, 1, 1000003}, 2, "a million"},
    {{1, 1, 5000001}, 2, "five million, parts of which are more than a workgroup at once"},
};
enum { SHAPES = sizeof shapes / sizeof *shapes, PARTS = 5, MILLIONS = SHAPES - 1 };
static const enum vk_dtype froms[] = {VK_FLOAT32, VK_FLOAT16, VK_INT32, VK_UINT8, VK_INT8, VK_BOOL};
static const enum vk_dtype tos[] = {VK_FLOAT32, VK_FLOAT16, VK_INT32};

static bool is_float(enum vk_dtype dtype) { return dtype == VK_FLOAT32 || dtype == VK_FLOAT16; }

static double *values_of(enum vk_dtype from, uint64_t n, uint64_t seed) {
  double *x = test_values(is_float(from) ? from : VK_FLOAT32, n, seed);
  for (uint64_t i = 0; i < n && from != VK_FLOAT32; i++) {
    if (from == VK_BOOL)
      x[i] = x[i] > 0;
    else if (from == VK_FLOAT16)
      x[i] = round(x[i] * 16) / 4; /* up to 4, so that casts to integers cut */
    else
      x[i] = from == VK_UINT8 ? round(fabs(x[i]) * 250) : round(x[i] * 120);
  }
  return x;
}

static void call(struct op_test *t, size_t s, uint32_t x, uint32_t y, enum vk_dtype from,
                 enum vk_dtype to, uint32_t live) {
  sconce_error err = {0};
  uint32_t dims[3], d = (uint32_t)(shapes[s].dim < 0 ? shapes[s].dim + 3 : shapes[s].dim);
  for (int k = 0; k < 3; k++) dims[k] = shapes[s].x[k] == LIVE ? live : shapes[s].x[k];
  uint64_t n = (uint64_t)dims[0] * dims[1] * dims[2], inner = 1, got;
  for (uint32_t k = d + 1; k < 3; k++) inner *= dims[k];
  double *values = values_of(from, n, live), *want = calloc((size_t)n + 1, sizeof *want);
  double largest = 1;
  for (uint64_t e = 0; e < n; e++) {
    double v = to == VK_INT32 ? trunc(values[e]) : values[e];
    want[e] = v + (e / inner % dims[d] ? want[e - inner] : 0);
    largest = fmax(largest, fabs(want[e]));
  }
  for (uint64_t e = 0; e < n && to == VK_FLOAT16; e++)
    if (want[e] >= 65520) want[e] = INFINITY;
  op_set(t, x, dims, 3, values);
  CHECK_OK(op_run(t, &err), err);
  char what[160];
  snprintf(what, sizeof what, "%s to %s, live %u: %s", vk_dtype_name(from), vk_dtype_name(to), live,
           shapes[s].why);
  const double *result = op_get(t, y, &got);
  CHECK_EQ(got, n);
  double abs = to == VK_FLOAT16   ? 6e-4 * fmin(largest, 65504)
               : to == VK_FLOAT32 ? 1e-6 * largest
                                  : 0;
  if (got == n) test_close(result, want, n, abs, 0, what);
  free(values);
  free(want);
}

static void run(size_t s, enum vk_dtype from, enum vk_dtype to, const char *force) {
  static const uint32_t lives[] = {LIVE, 2, 1, 0, LIVE};
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, from, shapes[s].x, 3), y = op_output(&t, to, shapes[s].x, 3);
  op_node(&t, s % 2 ? "aten.cumsum.default" : "aten::cumsum.out",
          IDS(x, op_int(&t, shapes[s].dim), op_null(&t), y));
  uint64_t bytes = 4;
  for (int d = 0; d < 3; d++) bytes *= shapes[s].x[d];
  if (bytes > t.graph.caps.max_storage_binding) { /* it is not split */
    CHECK_FAILS(op_load(&t, force, &err), SCONCE_UNSUPPORTED, err, "the device binds at most");
    op_end(&t);
    return;
  }
  CHECK_OK(op_load(&t, force, &err), err);
  const bool large = bytes > 1 << 17; /* once is enough */
  for (int i = 0; i < (large ? 1 : 5) && !test_failed(); i++) call(&t, s, x, y, from, to, lives[i]);
  op_end(&t);
}

static void every_dtype(void) {
  for (size_t f = 0; f < 6; f++)
    for (size_t k = 0; k < 3; k++)
      for (size_t s = 0; s <= PARTS; s += s == 1 ? PARTS - 1 : 1) run(s, froms[f], tos[k], NULL);
}

static void every_dim(void) {
  for (size_t s = 0; s < SHAPES; s++) {
    if (s == MILLIONS && test_gpu_is_slow()) continue;
    run(s, VK_FLOAT32, VK_FLOAT32, NULL);
    if (s == MILLIONS) continue;
    run(s, VK_FLOAT16, VK_FLOAT16, NULL);
    run(s, VK_INT32, VK_INT32, "i32_to_i32");
  }
}

/* One long line, sums beyond 2^24, integers that wrap: exact; infinities stay where they are. */
static void corners(void) {
  enum { N = 70001 };
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_INT32, DIMS(N)), y = op_output(&t, VK_INT32, DIMS(N));
  uint32_t f = op_input(&t, VK_FLOAT32, DIMS(4, 70)), g = op_output(&t, VK_FLOAT32, DIMS(4, 70));
  op_node(&t, "aten.cumsum.default", IDS(x, op_int(&t, 0), op_null(&t), y));
  op_node(&t, "aten.cumsum.default", IDS(f, op_int(&t, 1), op_null(&t), g));
  CHECK_OK(op_load(&t, NULL, &err), err);
  double *values = calloc(N, sizeof *values), *want = calloc(N, sizeof *want);
  double floats[280], sums[280];
  uint32_t sum = 0;
  for (uint32_t i = 0; i < N; i++) {
    values[i] = (double)(i * 7919 % 100000);
    sum += (uint32_t)values[i];
    want[i] = (int32_t)sum;
  }
  for (int i = 0; i < 280; i++) {
    floats[i] = i == 5                 ? INFINITY
                : i == 75              ? NAN
                : i == 145 || i == 150 ? i == 150 ? -INFINITY : INFINITY
                                       : 1;
    sums[i] = i % 70 ? sums[i - 1] + floats[i] : floats[i];
  }
  op_set(&t, x, DIMS(N), values);
  op_set(&t, f, DIMS(4, 70), floats);
  CHECK_OK(op_run(&t, &err), err);
  uint64_t n;
  test_close(op_get(&t, y, &n), want, N, 0, 0, "a long line");
  test_close(op_get(&t, g, &n), sums, 280, 0, 0, "infinities and a NaN");
  free(values);
  free(want);
  op_end(&t);
}

static void a_number(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_FLOAT32, NULL, 0), y = op_output(&t, VK_FLOAT32, NULL, 0);
  op_node(&t, "aten.cumsum.default", IDS(x, op_int(&t, -1), op_null(&t), y));
  CHECK_OK(op_load(&t, NULL, &err), err);
  op_set(&t, x, (const uint32_t[]){0}, 0, (const double[]){5});
  CHECK_OK(op_run(&t, &err), err);
  uint64_t n;
  test_close(op_get(&t, y, &n), (const double[]){5}, 1, 0, 0, "a number");
  op_end(&t);
}

static void refuses(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(4)), y = op_output(&t, VK_BOOL, DIMS(4));
  op_node(&t, "aten.cumsum.default", IDS(x, op_int(&t, 0), op_null(&t), y));
  CHECK_FAILS(op_try(&t, &err), SCONCE_UNSUPPORTED, err, "sums of float32 [4] in bool [4]");
  op_end(&t);
}

const struct test suite_cumsum[] = {TEST(every_dtype), TEST(every_dim), TEST(corners),
                                    TEST(a_number),    TEST(refuses),   {0}};
