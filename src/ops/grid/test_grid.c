/* Grids: every interpolation, padding and alignment, against their definitions in double. */
#include "op.h"

enum { FOUR, NEAREST, SIXTEEN };
enum { ZEROS, BORDER, REFLECTION };

struct plane {
  const double *x;
  uint32_t height, width;
  int outside;
  bool align;
};

static double scaled(double v, uint32_t size, bool align) {
  return align ? (v + 1) / 2 * (size - 1) : ((v + 1) * size - 1) / 2;
}

/* A coordinate outside of a plane, moved by steps of mirrors until it is inside. */
static double moved(const struct plane *q, double c, uint32_t size) {
  double low = q->align ? 0 : -0.5, high = q->align ? size - 1 : size - 0.5;
  if (q->outside == ZEROS) return c;
  if (q->outside == REFLECTION && low == high) return 0;
  while (q->outside == REFLECTION && (c < low || c > high))
    c = c < low ? 2 * low - c : 2 * high - c;
  return c < 0 ? 0 : c > size - 1 ? size - 1 : c;
}

static double element(const struct plane *q, double row, double col) {
  if (row < 0 || col < 0 || row > q->height - 1 || col > q->width - 1) return 0;
  return q->x[(size_t)row * q->width + (size_t)col];
}

/* Weight of an element at a distance. */
static double weight(int kind, double off) {
  const double a = -0.75;
  off = fabs(off);
  if (kind == FOUR) return off < 1 ? 1 - off : 0;
  if (off <= 1) return (a + 2) * off * off * off - (a + 3) * off * off + 1;
  return off < 2 ? a * off * off * off - 5 * a * off * off + 8 * a * off - 4 * a : 0;
}

static double sampled(const struct plane *q, int kind, double down, double across) {
  double h = scaled(down, q->height, q->align), w = scaled(across, q->width, q->align), sum = 0;
  if (kind != SIXTEEN) h = moved(q, h, q->height), w = moved(q, w, q->width);
  if (kind == NEAREST) return element(q, nearbyint(h), nearbyint(w));
  for (int i = -1; i <= 2; i++)
    for (int k = -1; k <= 2; k++) {
      double row = floor(h) + i, col = floor(w) + k;
      double share = weight(kind, row - h) * weight(kind, col - w);
      if (kind == SIXTEEN) row = moved(q, row, q->height), col = moved(q, col, q->width);
      if (share != 0) sum += share * element(q, row, col);
    }
  return sum;
}

struct sample {
  struct op_test t;
  enum vk_dtype dtype;
  int kind, outside;
  bool align;
  uint32_t x, grid, y;
};

static void call(struct sample *s, uint32_t n, const uint32_t *size, const uint32_t *out) {
  enum { C = 3 };
  sconce_error err = {0};
  uint64_t in = (uint64_t)size[0] * size[1], outs = (uint64_t)out[0] * out[1], got;
  double *x = test_values(s->dtype, n * C * in, n + 1);
  double *grid = test_values(s->dtype, n * outs * 2, n + 2);
  double *want = calloc((size_t)(n * C * outs) + 1, sizeof *want);
  for (uint64_t i = 0; i < n * outs * 2; i++) grid[i] *= 2; /* half of them outside */
  for (uint64_t e = 0; e < n * C * outs; e++) {
    const double *at = grid + (e / outs / C * outs + e % outs) * 2;
    struct plane q = {x + e / outs * in, size[0], size[1], s->outside, s->align};
    want[e] = sampled(&q, s->kind, at[1], at[0]);
  }
  op_set(&s->t, s->x, DIMS(n, C, size[0], size[1]), x);
  op_set(&s->t, s->grid, DIMS(n, out[0], out[1], 2), grid);
  CHECK_OK(op_run(&s->t, &err), err);
  char what[120];
  snprintf(what, sizeof what, "kind %d, outside %d, align %d, %u items", s->kind, s->outside,
           s->align, n);
  const double *result = op_get(&s->t, s->y, &got);
  CHECK_EQ(got, n * C * outs);
  const double tolerance = s->dtype == VK_FLOAT16 ? 2e-3 : 2e-5;
  if (got == n * C * outs) test_close(result, want, got, tolerance, tolerance, what);
  free(x);
  free(grid);
  free(want);
}

static void run(struct sample *s, const char *name, uint32_t n, uint64_t binding) {
  sconce_error err = {0};
  struct op_test *t = &s->t;
  op_begin(t);
  if (binding) t->graph.caps.max_storage_binding = binding;
  s->x = op_input(t, s->dtype, DIMS(n, 3, 5, 4));
  s->grid = op_input(t, s->dtype, DIMS(n, 3, 7, 2));
  s->y = op_output(t, s->dtype, DIMS(n, 3, 3, 7));
  op_node(
      t, name,
      IDS(s->x, s->grid, op_int(t, s->kind), op_int(t, s->outside), op_bool(t, s->align), s->y));
  CHECK_OK(op_load(t, NULL, &err), err);
  const uint32_t whole[] = {5, 4}, less[] = {1, 3}, places[] = {3, 7}, few[] = {2, 1};
  call(s, n, whole, places);
  call(s, 1, less, places);
  call(s, 0, whole, places);
  call(s, n, whole, few);
  op_end(t);
}

static void every_mode(void) {
  for (int k = 0; k < 36 && !test_failed(); k++) {
    struct sample s = {.dtype = k % 2 ? VK_FLOAT16 : VK_FLOAT32,
                       .kind = k / 2 % 3,
                       .outside = k / 6 % 3,
                       .align = k / 18};
    run(&s, k % 4 < 2 ? "aten.grid_sampler_2d.default" : "aten::grid_sampler_2d.out", 2, 0);
  }
}

/* More than a binding holds: some planes at a time, whose grid is another one. */
static void in_parts(void) {
  struct sample s = {.dtype = VK_FLOAT32, .outside = BORDER};
  run(&s, "aten.grid_sampler_2d.default", 150, 26000);
}

/* As PyTorch: nowhere is NaN, or an edge where there is one. */
static void no_place(void) {
  static const double grid[] = {NAN, 0, INFINITY, 0, -INFINITY, 0, 1e30, 0};
  static const struct {
    int kind, outside;
    double want[4];
  } cases[] = {
      {FOUR, ZEROS, {NAN, NAN, NAN, 0}},    {FOUR, BORDER, {4, 6, 4, 6}},
      {FOUR, REFLECTION, {4, 4, 4, 4}},     {NEAREST, ZEROS, {0, 0, 0, 0}},
      {NEAREST, BORDER, {4, 6, 4, 6}},      {NEAREST, REFLECTION, {4, 4, 4, 4}},
      {SIXTEEN, ZEROS, {NAN, NAN, NAN, 0}}, {SIXTEEN, BORDER, {NAN, NAN, NAN, 6}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t x = op_input(&t, VK_FLOAT32, DIMS(1, 1, 3, 3));
    uint32_t places = op_input(&t, VK_FLOAT32, DIMS(1, 1, 4, 2));
    uint32_t y = op_output(&t, VK_FLOAT32, DIMS(1, 1, 1, 4));
    op_node(&t, "aten.grid_sampler_2d.default",
            IDS(x, places, op_int(&t, cases[i].kind), op_int(&t, cases[i].outside),
                op_bool(&t, true), y));
    CHECK_OK(op_load(&t, NULL, &err), err);
    op_set(&t, x, DIMS(1, 1, 3, 3), (const double[]){1, 2, 3, 4, 5, 6, 7, 8, 9});
    op_set(&t, places, DIMS(1, 1, 4, 2), grid);
    CHECK_OK(op_run(&t, &err), err);
    uint64_t n;
    test_close(op_get(&t, y, &n), cases[i].want, 4, 1e-5, 0, "no place");
    op_end(&t);
  }
}

static void priors(void) {
  for (int k = 0; k < 2; k++) {
    const enum vk_dtype dtype = k ? VK_FLOAT16 : VK_FLOAT32;
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t x = op_input(&t, dtype, DIMS(1, 2, 5, 7)), y = op_output(&t, dtype, DIMS(35, 2));
    op_node(&t, "et_vk.grid_priors.default", IDS(x, op_int(&t, 8), op_double(&t, 0.5), y));
    CHECK_OK(op_load(&t, NULL, &err), err);
    static const uint32_t lives[][2] = {{5, 7}, {3, 3}, {0, 7}, {1, 1}, {4, 6}};
    for (size_t i = 0; i < 5 && !test_failed(); i++) {
      uint32_t h = lives[i][0], w = lives[i][1];
      double zeros[70] = {0}, want[70];
      for (uint32_t r = 0; r < h * w; r++)
        want[2 * r] = (r % w + 0.5) * 8, want[2 * r + 1] = (r / w + 0.5) * 8;
      op_set(&t, x, DIMS(1, 2, h, w), zeros);
      CHECK_OK(op_run(&t, &err), err);
      uint64_t n;
      const double *got = op_get(&t, y, &n);
      CHECK_EQ(n, 2 * h * w);
      test_close(got, want, n, 0, 0, "priors");
    }
    op_end(&t);
  }
}

static void refuses(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(1, 1, 3, 3)),
           y = op_output(&t, VK_FLOAT32, DIMS(1, 1, 2, 2));
  uint32_t places = op_input(&t, VK_FLOAT32, DIMS(1, 2, 2, 2));
  op_node(&t, "aten.grid_sampler_2d.default",
          IDS(x, places, op_int(&t, 3), op_int(&t, 0), op_bool(&t, true), y));
  CHECK_FAILS(op_try(&t, &err), SCONCE_BAD_GRAPH, err, "interpolation 3, padding 0");
  op_end(&t);
}

const struct test suite_grid[] = {TEST(every_mode), TEST(in_parts), TEST(no_place),
                                  TEST(priors),     TEST(refuses),  {0}};
