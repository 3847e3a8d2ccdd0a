/* Sums, relu and pixel shuffle of quantised tensors, byte for byte: the oracle takes PyTorch's
 * steps in float32. */
#include "op.h"

#include <float.h>

enum { MOST = 4096 };
static double xa[MOST], xb[MOST], want[MOST];

/* Every byte comes, also the ends. */
static void fill(double *x, uint32_t n, enum vk_dtype dtype, uint64_t seed) {
  for (uint32_t i = 0; i < n; i++)
    x[i] = (double)(test_random(&seed) % 256) - (dtype == VK_UINT8 ? 0 : 128);
}

static double bytes_of(float real, double inverse, double zero, double low, double high) {
  const volatile float product = real * (float)inverse;
  return fmin(fmax(nearbyintf(product) + (float)zero, low), high);
}

static float real_of(double q, double scale, double zero) {
  const volatile float real = ((float)q - (float)zero) * (float)scale;
  return real;
}

/* ---- sums ------------------------------------------------------------------------------------ */

struct sum {
  uint32_t a[3], b[3], y[3], rank;
  double numbers[7]; /* scale and zero of a, b and y; alpha */
  const char *why;
};
static const struct sum sums[] = {
    {{7, 5, 3}, {7, 5, 3}, {7, 5, 3}, 3, {0.05, 0, 0.1, 3, 0.08, -2, 2}, "one shape, 105 bytes"},
    {{3, 5, 7}, {3, 5, 7}, {3, 5, 7}, 3, {0.5, 3, 0.25, -7, 0.5, 1, 1}, "ties to even"},
    {{3, 5, 7}, {1, 5, 1}, {3, 5, 7}, 3, {0.02, 9, 0.03, -128, 0.05, 127, 1}, "b by channel"},
    {{1, 1, 1}, {2, 3, 5}, {2, 3, 5}, 3, {1, -3, 0.1, 3, 0.3, -2, -0.7}, "a is one byte"},
    {{2, 1, 6}, {1, 4, 6}, {2, 4, 6}, 3, {1e-3, 0, 1e3, 3, 2, 0, 1}, "both repeat"},
    {{4, 4, 4}, {4, 4, 4}, {4, 4, 4}, 3, {3, -5, 5, 77, 1e-30, 0, 1}, "everything saturates"},
};
enum { SUMS = sizeof sums / sizeof *sums };

static uint32_t place(const uint32_t *dims, const uint32_t *at) {
  uint32_t i = 0;
  for (uint32_t d = 0; d < 3; d++) i = i * dims[d] + (dims[d] == 1 ? 0 : at[d]);
  return i;
}

static uint32_t expect_sum(const struct sum *s, const uint32_t y[3], const uint32_t a[3],
                           const uint32_t b[3], double low, double high) {
  const double *v = s->numbers;
  uint32_t n = 0, at[3];
  for (at[0] = 0; at[0] < y[0]; at[0]++)
    for (at[1] = 0; at[1] < y[1]; at[1]++)
      for (at[2] = 0; at[2] < y[2]; at[2]++) {
        const volatile float right = (float)v[6] * real_of(xb[place(b, at)], v[2], v[3]);
        const float sum = real_of(xa[place(a, at)], v[0], v[1]) + right;
        want[n++] = bytes_of(sum, 1 / v[4], v[5], low, high);
      }
  return n;
}

static void add_sum(struct op_test *t, const struct sum *s, bool decomposed, uint32_t a, uint32_t b,
                    uint32_t y, double low, double high) {
  uint32_t v[7];
  for (int i = 0; i < 7; i++) v[i] = op_double(t, s->numbers[i]);
  const uint32_t l = op_int(t, (int64_t)low), h = op_int(t, (int64_t)high);
  if (decomposed)
    op_node(t, "quantized_decomposed::add.out",
            IDS(a, v[0], v[1], l, h, b, v[2], v[3], l, h, v[4], v[5], l, h, y));
  else
    op_node(t, "et_vk.q8ta_add.default", IDS(a, b, v[0], v[1], v[2], v[3], v[4], v[5], v[6], y));
}

static void run_sum(const struct sum *s, enum vk_dtype dtype, bool decomposed) {
  if (decomposed && s->numbers[6] != 1) return; /* it has no alpha */
  const double low = dtype == VK_UINT8 ? 0 : decomposed ? -100 : -128;
  const double high = dtype == VK_UINT8 ? 255 : 127;
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t a = op_input(&t, dtype, s->a, 3), b = op_input(&t, dtype, s->b, 3);
  uint32_t y = op_output(&t, dtype, s->y, 3);
  add_sum(&t, s, decomposed, a, b, y, low, high);
  CHECK_OK(op_load(&t, NULL, &err), err);
  const uint32_t lives[] = {s->y[0], 1, 0, s->y[0]};
  for (int i = 0; i < 4 && !test_failed(); i++) {
    uint32_t da[3], db[3], dy[3];
    memcpy(da, s->a, sizeof da), memcpy(db, s->b, sizeof db), memcpy(dy, s->y, sizeof dy);
    if (da[0] > 1) da[0] = lives[i];
    if (db[0] > 1) db[0] = lives[i];
    dy[0] = lives[i];
    fill(xa, da[0] * da[1] * da[2], dtype, 3);
    fill(xb, db[0] * db[1] * db[2], dtype, 4);
    const uint32_t n = expect_sum(s, dy, da, db, low, high);
    op_set(&t, a, da, 3, xa);
    op_set(&t, b, db, 3, xb);
    CHECK_OK(op_run(&t, &err), err);
    uint64_t got;
    const double *values = op_get(&t, y, &got);
    CHECK_EQ(got, n);
    if (!test_failed()) test_close(values, want, n, 0, 0, s->why);
  }
  op_end(&t);
}

static void every_sum(void) {
  for (size_t i = 0; i < SUMS; i++)
    for (int decomposed = 0; decomposed < 2 && !test_failed(); decomposed++) {
      run_sum(&sums[i], VK_INT8, decomposed);
      run_sum(&sums[i], VK_UINT8, decomposed);
    }
}

/* ---- relu and pixel shuffle ------------------------------------------------------------------ */

struct move {
  uint32_t dims[4], r; /* 0: relu */
  double numbers[4];   /* scale and zero of x, the inverse of y's, its zero */
  const char *why;
};
static const struct move moves[] = {
    {{3, 5, 1, 7}, 0, {0.05, 0, 20, 0}, "relu: the same scale"},
    {{1, 3, 5, 7}, 0, {0.5, -13, 1, 5}, "relu: half of it at ties"},
    {{2, 2, 2, 2}, 0, {0.1, 127, 100, -128}, "relu: everything below zero"},
    {{2, 8, 3, 5}, 2, {0.05, -3, 12.5, 5}, "shuffle by 2, other scales"},
    {{3, 9, 2, 3}, 3, {0.05, -3, 20, -3}, "shuffle by 3, 54 bytes a plane"},
    {{1, 3, 3, 3}, 1, {0.5, 0, 1, 0}, "shuffle by 1"},
};
enum { MOVES = sizeof moves / sizeof *moves };

static uint32_t expect_move(const struct move *m, uint32_t batch, double low, double high) {
  const uint32_t *d = m->dims, r = m->r ? m->r : 1;
  const uint32_t planes = d[1] / (r * r), h = d[2] * r, w = d[3] * r;
  uint32_t n = 0;
  for (uint32_t p = 0; p < batch * planes; p++)
    for (uint32_t i = 0; i < h; i++)
      for (uint32_t k = 0; k < w; k++) {
        const uint32_t from = ((p * r + i % r) * r + k % r) * d[2] * d[3] + i / r * d[3] + k / r;
        const float real = real_of(xa[from], m->numbers[0], m->numbers[1]);
        want[n++] = bytes_of(m->r ? real : fmaxf(real, 0), 1 / (1 / m->numbers[2]), m->numbers[3],
                             low, high);
      }
  return n;
}

static void run_move(const struct move *m, enum vk_dtype dtype) {
  const double low = dtype == VK_UINT8 ? 0 : -128, high = dtype == VK_UINT8 ? 255 : 127;
  const uint32_t r = m->r ? m->r : 1;
  const uint32_t *d = m->dims;
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, dtype, d, 4);
  uint32_t y = op_output(&t, dtype, DIMS(d[0], d[1] / (r * r), d[2] * r, d[3] * r));
  uint32_t s = op_double(&t, m->numbers[0]), z = op_double(&t, m->numbers[1]);
  uint32_t zero = op_double(&t, m->numbers[3]);
  if (m->r)
    op_node(&t, "et_vk.q8ta_pixel_shuffle.default",
            IDS(x, s, z, op_double(&t, m->numbers[2]), zero, op_int(&t, m->r), y));
  else
    op_node(&t, "et_vk.q8ta_relu.default", IDS(x, s, z, op_double(&t, 1 / m->numbers[2]), zero, y));
  CHECK_OK(op_load(&t, NULL, &err), err);
  const uint32_t lives[] = {d[0], 1, 0, d[0]};
  for (int i = 0; i < 4 && !test_failed(); i++) {
    fill(xa, lives[i] * d[1] * d[2] * d[3], dtype, 7);
    const uint32_t n = expect_move(m, lives[i], low, high);
    op_set(&t, x, DIMS(lives[i], d[1], d[2], d[3]), xa);
    CHECK_OK(op_run(&t, &err), err);
    uint64_t got;
    const double *values = op_get(&t, y, &got);
    CHECK_EQ(got, n);
    if (!test_failed()) test_close(values, want, n, 0, 0, m->why);
  }
  op_end(&t);
}

static void every_move(void) {
  for (size_t i = 0; i < MOVES && !test_failed(); i++) {
    run_move(&moves[i], VK_INT8);
    run_move(&moves[i], VK_UINT8);
  }
}

/* A number by hand, with alpha: 0.05 · 10 + 2 · 0.1 · (−20 − 3) = −4.1, −51.25 steps of 0.08. */
static void by_hand(void) {
  struct op_test t;
  sconce_error err = {0};
  const struct sum s = {.numbers = {0.05, 0, 0.1, 3, 0.08, -2, 2}};
  const double a = 10, b = -20;
  op_begin(&t);
  uint32_t ia = op_input(&t, VK_INT8, DIMS(1)), ib = op_input(&t, VK_INT8, DIMS(1));
  uint32_t y = op_output(&t, VK_INT8, DIMS(1));
  add_sum(&t, &s, false, ia, ib, y, 0, 0);
  REQUIRE_OK(op_load(&t, NULL, &err), err);
  op_set(&t, ia, DIMS(1), &a);
  op_set(&t, ib, DIMS(1), &b);
  CHECK_OK(op_run(&t, &err), err);
  uint64_t n;
  CHECK_EQ((int)*op_get(&t, y, &n), -53);
  op_end(&t);
}

static void refuses(void) {
  struct op_test t;
  sconce_error err = {0};
  const struct sum s = {.numbers = {1, 0, 1, 0, 1, 0, 1}};
  op_begin(&t);
  uint32_t a = op_input(&t, VK_INT8, DIMS(4)), b = op_input(&t, VK_UINT8, DIMS(4));
  add_sum(&t, &s, false, a, b, op_output(&t, VK_INT8, DIMS(4)), 0, 0);
  CHECK_FAILS(op_try(&t, &err), SCONCE_UNSUPPORTED, err, "uint8 to int8");
  op_end(&t);
  op_begin(&t);
  uint32_t x = op_input(&t, VK_INT8, DIMS(1, 6, 2, 2)),
           y = op_output(&t, VK_INT8, DIMS(1, 1, 4, 4));
  uint32_t one = op_int(&t, 1), none = op_int(&t, 0);
  op_node(&t, "et_vk.q8ta_pixel_shuffle.default", IDS(x, one, none, one, none, op_int(&t, 2), y));
  CHECK_FAILS(op_try(&t, &err), SCONCE_BAD_GRAPH, err, "6 channels");
  op_end(&t);
}

const struct test suite_q8ta_elementwise[] = {
    TEST(every_sum), TEST(every_move), TEST(by_hand), TEST(refuses), {0}};
