/* Linear with weights of bytes, against the formula in double. */
#include "op.h"

struct shape {
  uint32_t m, k, n, groups; /* groups 0: w is (k, n) with a scale for each k */
  const char *why;
};
static const struct shape shapes[] = {
    {1, 16, 4, 1, "one piece"},
    {1, 4096, 37, 1, "a long row, n odd"},
    {8, 20, 12, 1, "rows of words, but not of 16 bytes"},
    {3, 64, 10, 4, "groups of 16"},
    {2, 24, 6, 6, "groups of a word"},
    {9, 32, 8, 1, "the first m for tiles"},
    {5, 13, 7, 1, "nothing fits but the plain one"},
    {4, 30, 6, 4, "groups of 8, the last of 6"},
    {70, 68, 66, 17, "more than one tile each way, groups"},
    {5, 12, 8, 0, "by k"},
    {66, 33, 68, 0, "by k, which is odd"},
    {3, 9, 5, 0, "by k, nothing a multiple of 4"},
    {70, 36, 72, 0, "by k, tiles"},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

struct dtypes {
  enum vk_dtype x, scale, y;
};

static uint32_t n_scales(const struct shape *s) { return s->groups ? s->n * s->groups : s->k; }

static double *expect(const struct shape *s, const double *x, const int8_t *w, const double *scales,
                      const double *bias) {
  double *want = malloc((size_t)s->m * s->n * sizeof *want);
  const uint32_t group = s->groups ? (s->k + s->groups - 1) / s->groups : 1;
  for (uint32_t m = 0; m < s->m; m++)
    for (uint32_t n = 0; n < s->n; n++) {
      double sum = 0;
      for (uint32_t k = 0; k < s->k; k++) {
        const double scale = s->groups ? scales[n * s->groups + k / group] : scales[k];
        sum += x[m * s->k + k] * w[s->groups ? n * s->k + k : k * s->n + n] * scale;
      }
      want[m * s->n + n] = sum + (bias ? bias[n] : 0);
    }
  return want;
}

static void add_node(struct op_test *t, const struct shape *s, uint32_t x, uint32_t w,
                     uint32_t scales, uint32_t bias, uint32_t y) {
  if (bias != NO_VALUE)
    op_node(t, "et_vk.linear_q8csw.default", IDS(x, w, scales, bias, y));
  else if (!s->groups)
    op_node(t, "quantized_decomposed::mixed_mm.out", IDS(x, w, scales, op_null(t), y));
  else if (s->groups > 1)
    op_node(t, "quantized_decomposed::mixed_linear.out",
            IDS(x, w, scales, op_null(t), op_null(t), y));
  else
    op_node(t, "aten._weight_int8pack_mm.default", IDS(x, w, scales, y));
}

static void run(const struct shape *s, const struct dtypes *d, const char *force) {
  struct op_test t;
  sconce_error err = {0};
  double *x = test_values(d->x, (uint64_t)s->m * s->k, 1);
  double *scales = test_values(d->scale, n_scales(s), 2);
  int8_t *w = malloc((size_t)s->n * s->k);
  uint64_t seed = 7;
  for (uint32_t i = 0; i < s->n * s->k; i++) w[i] = (int8_t)(test_random(&seed) >> 9);
  double *bias = test_values(d->scale, s->n, 3);
  const bool biased = s->groups == 1 && s->m > 1; /* the rest as other operators have it */
  double *want = expect(s, x, w, scales, biased ? bias : NULL);
  op_begin(&t);
  uint32_t ix = op_input(&t, d->x, DIMS(s->m, s->k)), y = op_output(&t, d->y, DIMS(s->m, s->n));
  uint32_t iw = s->groups ? op_constant_bytes(&t, VK_INT8, DIMS(s->n, s->k), w)
                          : op_constant_bytes(&t, VK_INT8, DIMS(s->k, s->n), w);
  uint32_t is = s->groups > 1 ? op_constant(&t, d->scale, DIMS(s->n, s->groups), scales)
                              : op_constant(&t, d->scale, DIMS(n_scales(s)), scales);
  add_node(&t, s, ix, iw, is, biased ? op_constant(&t, d->scale, DIMS(s->n), bias) : NO_VALUE, y);
  CHECK_OK(op_load(&t, force, &err), err);
  const uint32_t lives[] = {s->m, 1, 0, s->m > 2 ? s->m / 2 : 1, s->m};
  for (int i = force ? 3 : 0; i < 5 && !test_failed(); i++) {
    op_set(&t, ix, DIMS(lives[i], s->k), x);
    CHECK_OK(op_run(&t, &err), err);
    uint64_t n;
    const double *got = op_get(&t, y, &n);
    CHECK_EQ(n, lives[i] * s->n);
    const double rel = d->y == VK_FLOAT16 ? 6e-4 : 2e-6;
    if (!test_failed()) test_close(got, want, n, 2e-6 * s->k, rel, s->why);
  }
  op_end(&t);
  free(x), free(scales), free(bias), free(w), free(want);
}

static const struct dtypes dtypes[] = {
    {VK_FLOAT32, VK_FLOAT32, VK_FLOAT32}, {VK_FLOAT16, VK_FLOAT16, VK_FLOAT16},
    {VK_FLOAT32, VK_FLOAT16, VK_FLOAT32}, {VK_FLOAT16, VK_FLOAT32, VK_FLOAT32},
    {VK_FLOAT32, VK_FLOAT32, VK_FLOAT16},
};

static void every_shape(void) {
  for (size_t i = 0; i < SHAPES; i++)
    for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes && !test_failed(); k++)
      run(&shapes[i], &dtypes[k], NULL);
}

static void every_row(void) {
  struct gpu *gpu = test_gpu();
  const struct op *op = op_find(text_of("aten._weight_int8pack_mm.default"));
  REQUIRE(gpu && op);
  const struct caps caps = gpu_caps(gpu);
  for (const struct kernel *row = op->tables[0]; row->name && !test_failed(); row++)
    for (size_t i = 0; i < SHAPES && kernel_runs(row, &caps); i++) {
      run(&shapes[i], &dtypes[0], row->name);
      run(&shapes[i], &dtypes[1], row->name);
    }
}

/* A weight of more than a binding, where that is capped: rows of y in parts. */
static void large(void) {
  static const struct shape s = {2, 1024, 1040, 1, "a weight of 1 MiB and more"};
  run(&s, &dtypes[0], NULL);
  run(&s, &dtypes[1], NULL);
}

static void refuses(void) {
  struct op_test t;
  sconce_error err = {0};
  static const double zeros[8];
  op_begin(&t);
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(1, 4)), y = op_output(&t, VK_FLOAT32, DIMS(1, 2));
  uint32_t w = op_constant(&t, VK_INT8, DIMS(2, 4), zeros);
  uint32_t s = op_constant(&t, VK_FLOAT32, DIMS(1), zeros);
  op_node(&t, "aten._weight_int8pack_mm.default", IDS(x, w, s, y));
  CHECK_FAILS(op_try(&t, &err), SCONCE_BAD_GRAPH, err,
              "scales float32 [1] for a weight int8 [2, 4]");
  op_end(&t);
  op_begin(&t);
  x = op_input(&t, VK_FLOAT32, DIMS(1, 4)), y = op_output(&t, VK_FLOAT32, DIMS(1, 2));
  w = op_constant(&t, VK_INT8, DIMS(2, 4), zeros), s = op_constant(&t, VK_FLOAT32, DIMS(2), zeros);
  op_node(&t, "quantized_decomposed::mixed_linear.out", IDS(x, w, s, s, op_null(&t), y));
  CHECK_FAILS(op_try(&t, &err), SCONCE_UNSUPPORTED, err, "zero points");
  op_end(&t);
}

const struct test suite_linear_q8[] = {
    TEST(every_shape), TEST(every_row), TEST(large), TEST(refuses), {0}};
