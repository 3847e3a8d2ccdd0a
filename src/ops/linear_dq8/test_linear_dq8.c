/* Dynamic 8-bit activations, against the formulas in double. */
#include "op.h"

static uint32_t qparams(struct op_test *t, uint32_t x, uint32_t k, uint32_t scale, uint32_t zero) {
  uint32_t out = op_list(t, IDS(scale, zero));
  op_node(t, "torchao.choose_qparams_affine.default",
          IDS(x, op_text(t, "ASYMMETRIC"), op_ints(t, INTS(1, k)), op_null(t), op_int(t, -128),
              op_double(t, 127), op_double(t, 1.1920928955078125e-07), op_null(t), op_null(t),
              op_bool(t, false), out));
  return out;
}

struct shape {
  uint32_t m, k, n, group;
  const char *why;
};
static const struct shape shapes[] = {
    {1, 8, 2, 4, "the smallest"},
    {5, 12, 5, 12, "k not a multiple of 8, n odd"},
    {4, 64, 16, 32, "a vector row"},
    {2, 4096, 12, 128, "a large k"},
    {3, 1056, 20, 32, "k above 1024, uneven over the lanes"},
    {70, 128, 66, 64, "tiles"},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* Integer sums are exact: only the scales and the last rounding differ from double. */
static void run(const struct shape *s, enum vk_dtype dtype, const char *force) {
  const uint32_t stride = (s->k + 7) / 8 * 4, cols = (s->n + 3) / 4 * 4, sums = (s->n + 7) / 8 * 8;
  const uint32_t groups = s->k / s->group;
  uint64_t seed = 9;
  double *x = test_values(dtype, (uint64_t)s->m * s->k, 1);
  double *scales = test_values(dtype, (uint64_t)groups * cols, 2);
  double *bias = test_values(dtype, cols, 3), *want = malloc(s->m * s->n * sizeof *want);
  double *zeros = calloc((size_t)groups * sums, sizeof *zeros);
  double *xs = malloc(s->m * sizeof *xs), *xz = malloc(s->m * sizeof *xz);
  uint8_t *w = malloc((size_t)s->n * stride);
  for (uint32_t i = 0; i < s->n * stride; i++) w[i] = (uint8_t)(test_random(&seed) >> 7);
  for (uint32_t m = 0; m < s->m; m++) {
    xs[m] = dtype == VK_FLOAT16 ? 0.0078125 : (double)(float)(0.005 + 0.001 * m);
    xz[m] = (int)(m * 37 % 256) - 128;
    for (uint32_t n = 0; n < s->n; n++) {
      double y = 0;
      for (uint32_t k = 0; k < s->k; k++) {
        float inverse = 1 / (float)xs[m];
        double q = nearbyint((float)x[m * s->k + k] * inverse) + xz[m];
        int code = (k & 1 ? w[n * stride + k / 2] >> 4 : w[n * stride + k / 2] & 15) - 8;
        y += (fmin(fmax(q, -128), 127) - xz[m]) * code * scales[k / s->group * cols + n];
      }
      want[m * s->n + n] = y * xs[m] + bias[n];
    }
  }
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t ix = op_input(&t, dtype, DIMS(s->m, s->k)), is = op_input(&t, dtype, DIMS(s->m));
  uint32_t iz = op_input(&t, VK_INT8, DIMS(s->m)), iy = op_output(&t, dtype, DIMS(s->m, s->n));
  uint32_t iw = op_constant_bytes(&t, VK_UINT8, DIMS(s->n, stride), w);
  uint32_t isums = op_constant(&t, VK_INT32, DIMS(groups, sums), zeros);
  uint32_t isc = op_constant(&t, dtype, DIMS(groups, cols), scales);
  uint32_t ib = op_constant(&t, dtype, DIMS(cols), bias);
  op_node(&t, "et_vk.linear_dq8ca_q4gsw.default",
          IDS(ix, is, iz, iw, isums, isc, op_double(&t, s->group), ib, iy));
  CHECK_OK(op_load(&t, force, &err), err);
  const uint32_t live[] = {s->m, 1, 0, s->m > 2 ? s->m / 2 : 1, s->m};
  for (int i = force ? 3 : 0; i < 5 && !test_failed(); i++) {
    op_set(&t, ix, DIMS(live[i], s->k), x);
    op_set(&t, is, DIMS(live[i]), xs);
    op_set(&t, iz, DIMS(live[i]), xz);
    CHECK_OK(op_run(&t, &err), err);
    uint64_t n;
    const double *got = op_get(&t, iy, &n);
    if (!test_failed())
      test_close(got, want, n, 2e-6 * sqrt(s->k), dtype == VK_FLOAT16 ? 6e-4 : 2e-6, s->why);
  }
  op_end(&t);
  free(x), free(scales), free(bias), free(want), free(zeros), free(xs), free(xz), free(w);
}

static void every_shape(void) {
  for (size_t i = 0; i < SHAPES && !test_failed(); i++) {
    run(&shapes[i], VK_FLOAT32, NULL);
    run(&shapes[i], VK_FLOAT16, NULL);
  }
}

/* The rows for float32 x and float16 y are reached from here only. */
static void every_mixed_row(void) {
  struct gpu *gpu = test_gpu();
  const struct op *op = op_find(text_of("et_vk.linear_q4gsw.default"));
  REQUIRE(gpu && op);
  const struct caps caps = gpu_caps(gpu);
  for (const struct kernel *row = op->tables[1]; row->name && !test_failed(); row++)
    for (size_t k = 2; k < SHAPES && kernel_runs(row, &caps); k++)
      run(&shapes[k], VK_FLOAT16, row->name);
}

/* Both operators as the exporter chains them: the example of a row by hand. */
static void chained(void) {
  static const uint8_t w[] = {0x10, 0x87, 0xa9, 0xfe, 0x88, 0x88, 0x99, 0x99};
  const double scales[] = {0.5, 1, 0, 0, 0.25, 2, 0, 0},
               sums[16] = {-16, 0, 0, 0, 0, 0, 0, 0, 16, 4};
  const double x[] = {-1, 0, 0.5, 1.55, 0, 0, 0, 0};
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t ix = op_input(&t, VK_FLOAT32, DIMS(1, 8)), is = op_tensor(&t, VK_FLOAT32, DIMS(1));
  uint32_t iz = op_tensor(&t, VK_INT8, DIMS(1)), iy = op_output(&t, VK_FLOAT32, DIMS(1, 2));
  qparams(&t, ix, 8, is, iz);
  uint32_t iw = op_constant_bytes(&t, VK_UINT8, DIMS(2, 4), w);
  uint32_t isums = op_constant(&t, VK_INT32, DIMS(2, 8), sums);
  uint32_t isc = op_constant(&t, VK_FLOAT32, DIMS(2, 4), scales);
  op_node(&t, "et_vk.linear_dq8ca_q4gsw.default",
          IDS(ix, is, iz, iw, isums, isc, op_int(&t, 4), op_null(&t), iy));
  REQUIRE_OK(op_load(&t, NULL, &err), err);
  op_set(&t, ix, DIMS(1, 8), x);
  CHECK_OK(op_run(&t, &err), err);
  uint64_t n;
  const double *got = op_get(&t, iy, &n);
  CHECK_NEAR(got[0], 3.75, 1e-5);
  CHECK_NEAR(got[1], 0, 1e-6);
  op_end(&t);
}

const struct test suite_linear_dq8[] = {
    TEST(every_shape), TEST(every_mixed_row), TEST(chained), {0}};
