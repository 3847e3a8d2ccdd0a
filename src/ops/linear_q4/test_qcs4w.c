/* Linear with 4-bit weights and a scale for each row, against the formula in double. */
#include "op.h"
#include "ops/linear_q4/linear_q4.h"

struct shape {
  uint32_t m, k, n;
  const char *why;
};
static const struct shape shapes[] = {
    {1, 32, 16, "a vector"},         {3, 64, 12, "a few rows"},
    {2, 1056, 7, "n odd"},           {5, 12, 6, "k not a multiple of 32"},
    {4, 7, 5, "k odd: half a byte"}, {70, 128, 66, "tiles"},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void run(const struct shape *s, enum vk_dtype dtype, enum vk_dtype scale_dtype) {
  const uint32_t stride = (s->k + 1) / 2;
  double *x = test_values(dtype, (uint64_t)s->m * s->k, 1);
  double *scales = test_values(scale_dtype, s->n, 2), *want = malloc(s->m * s->n * sizeof *want);
  uint8_t *w = malloc((size_t)s->n * stride);
  uint64_t seed = 5;
  for (uint32_t i = 0; i < s->n * stride; i++) w[i] = (uint8_t)(test_random(&seed) >> 7);
  for (uint32_t m = 0; m < s->m; m++)
    for (uint32_t n = 0; n < s->n; n++) {
      double sum = 0;
      for (uint32_t k = 0; k < s->k; k++) {
        const uint8_t byte = w[n * stride + k / 2];
        sum += x[m * s->k + k] * ((k & 1 ? byte & 15 : byte >> 4) - 8);
      }
      want[m * s->n + n] = sum * scales[n];
    }
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t ix = op_input(&t, dtype, DIMS(s->m, s->k)), y = op_output(&t, dtype, DIMS(s->m, s->n));
  uint32_t iw = op_constant_bytes(&t, VK_UINT8, DIMS(s->n, stride), w);
  op_node(&t, "et_vk.linear_qcs4w.default",
          IDS(ix, iw, op_constant(&t, scale_dtype, DIMS(s->n), scales), y));
  CHECK_OK(op_load(&t, NULL, &err), err);
  const uint32_t lives[] = {s->m, 1, 0, s->m};
  for (int i = 0; i < 4 && !test_failed(); i++) {
    op_set(&t, ix, DIMS(lives[i], s->k), x);
    CHECK_OK(op_run(&t, &err), err);
    uint64_t n;
    const double *got = op_get(&t, y, &n);
    CHECK_EQ(n, lives[i] * s->n);
    const double rel = dtype == VK_FLOAT16 ? 6e-4 : 2e-6;
    if (!test_failed()) test_close(got, want, n, 4e-6 * sqrt(s->k), rel, s->why);
  }
  op_end(&t);
  free(x), free(scales), free(want), free(w);
}

static void every_shape(void) {
  for (size_t i = 0; i < SHAPES && !test_failed(); i++) {
    run(&shapes[i], VK_FLOAT32, VK_FLOAT32);
    run(&shapes[i], VK_FLOAT16, VK_FLOAT16);
    run(&shapes[i], VK_FLOAT32, VK_FLOAT16);
  }
}

/* Codes −8 7 0 1 and 1 −1 3 −4. */
static void by_hand(void) {
  static const uint8_t w[] = {0x0f, 0x89, 0x97, 0xb4};
  const double scales[] = {0.5, 0.1}, x[] = {1, 2, 3, 4}, want[] = {5, -0.8};
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t ix = op_input(&t, VK_FLOAT32, DIMS(1, 4)), y = op_output(&t, VK_FLOAT32, DIMS(1, 2));
  op_node(&t, "et_vk.linear_qcs4w.default",
          IDS(ix, op_constant_bytes(&t, VK_UINT8, DIMS(2, 2), w),
              op_constant(&t, VK_FLOAT32, DIMS(2), scales), y));
  REQUIRE_OK(op_load(&t, NULL, &err), err);
  op_set(&t, ix, DIMS(1, 4), x);
  CHECK_OK(op_run(&t, &err), err);
  uint64_t n;
  test_close(op_get(&t, y, &n), want, 2, 1e-6, 0, "by hand");
  op_end(&t);
}

static void packed_in_pieces(void) {
  uint8_t in[80], got[16];
  const uint32_t dims[] = {16, 5};
  const struct unpacked from = {VK_UINT8, 2, dims, in};
  for (int i = 0; i < 80; i++) in[i] = (uint8_t)(i * 37);
  CHECK_EQ(q4_turned.size(&from), 80);
  for (uint32_t at = 0; at < 80; at += 16) {
    q4_turned.fill(&from, at, at + 16, got);
    for (uint32_t i = 0; i < 16; i++) CHECK_EQ(got[i], (in[at + i] & 15) * 16 + in[at + i] / 16);
  }
}

static void refuses(void) {
  static const struct {
    uint32_t k, scales;
    const char *says;
  } cases[] = {
      {8, 2, "x is float32 [1, 8], the weight uint8 [2, 2]"},
      {4, 1, "scales float32 [1] for a weight uint8 [2, 2]"},
  };
  static const double zeros[8];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t x = op_input(&t, VK_FLOAT32, DIMS(1, cases[i].k));
    uint32_t y = op_output(&t, VK_FLOAT32, DIMS(1, 2));
    op_node(&t, "et_vk.linear_qcs4w.default",
            IDS(x, op_constant(&t, VK_UINT8, DIMS(2, 2), zeros),
                op_constant(&t, VK_FLOAT32, DIMS(cases[i].scales), zeros), y));
    CHECK_FAILS(op_try(&t, &err), SCONCE_BAD_GRAPH, err, cases[i].says);
    op_end(&t);
  }
}

const struct test suite_qcs4w[] = {
    TEST(every_shape), TEST(by_hand), TEST(packed_in_pieces), TEST(refuses), {0}};
