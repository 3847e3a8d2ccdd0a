/* Resampling: every way to say a size, sizes and factors that disagree, live planes, against the
 * definitions in double. Where an element lies in x is a product of float32, as PyTorch has it. */
#include "op.h"

enum kind { NEAREST, BILINEAR, SMOOTH };
enum { LIVE = 13 };

static const struct row {
  const char *name;
  enum kind kind;
  bool vec;
  uint32_t x[4];    /* LIVE changes between calls */
  int64_t size[2];  /* 0: none given */
  double factor[2]; /* 0: none given */
  bool align;
  const char *why;
} rows[] = {
    {"aten.upsample_nearest2d.vec", NEAREST, true, {LIVE, 2, 3, 5}, {6, 10}, {0}, false, "twice"},
    {"aten.upsample_nearest2d.vec",
     NEAREST,
     true,
     {2, 2, LIVE, 5},
     {0},
     {2, 1.5},
     false,
     "factors, a live height"},
    {"aten::upsample_nearest2d.vec_out",
     NEAREST,
     true,
     {LIVE, 2, 7, 9},
     {3, 4},
     {0},
     false,
     "smaller"},
    {"aten.upsample_nearest2d.default",
     NEAREST,
     false,
     {LIVE, 2, 5, 5},
     {10, 7},
     {2.1, 1.3},
     false,
     "factors that decide where, not how many"},
    {"aten::upsample_nearest2d.out", NEAREST, false, {LIVE, 2, 5, 3}, {5, 3}, {0}, false, "a copy"},
    {"aten::upsample_nearest2d.vec_out",
     NEAREST,
     true,
     {LIVE, 2, 5, 4},
     {0},
     {2.15, 1.2},
     false,
     "a height that doubles and a width that stays, whatever the factors"},
    {"aten.upsample_bilinear2d.vec", BILINEAR, true, {LIVE, 2, 3, 5}, {6, 10}, {0}, false, "twice"},
    {"aten.upsample_bilinear2d.vec", BILINEAR, true, {LIVE, 2, 3, 5}, {7, 9}, {0}, true, "corners"},
    {"aten.upsample_bilinear2d.vec",
     BILINEAR,
     true,
     {2, 3, 4, LIVE},
     {0},
     {2.5, 3},
     false,
     "factors, a live width"},
    {"aten::upsample_bilinear2d.vec_out",
     BILINEAR,
     true,
     {LIVE, 2, 7, 9},
     {3, 1},
     {0},
     true,
     "to a column"},
    {"aten.upsample_bilinear2d.default",
     BILINEAR,
     false,
     {LIVE, 2, 5, 6},
     {9, 6},
     {2.1, 3},
     false,
     "factors that decide where; a dim that is copied"},
    {"aten::upsample_bilinear2d.out",
     BILINEAR,
     false,
     {LIVE, 1, 1, 1},
     {3, 2},
     {0},
     false,
     "one element"},
    {"aten._upsample_bilinear2d_aa.default",
     SMOOTH,
     false,
     {LIVE, 2, 9, 11},
     {4, 3},
     {0},
     false,
     "smaller"},
    {"aten::_upsample_bilinear2d_aa.out",
     SMOOTH,
     false,
     {LIVE, 2, 4, 5},
     {9, 5},
     {0},
     false,
     "larger"},
    {"aten._upsample_bilinear2d_aa.vec",
     SMOOTH,
     true,
     {LIVE, 2, 8, 7},
     {5, 3},
     {0},
     true,
     "corners"},
    {"aten::_upsample_bilinear2d_aa.vec_out",
     SMOOTH,
     true,
     {LIVE, 2, 8, 9},
     {0},
     {0.4, 0.7},
     false,
     "factors"},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* ---- the oracle ------------------------------------------------------------------------------ */

static uint32_t size_of(const struct row *r, int d, uint32_t in) {
  return r->size[0] ? (uint32_t)r->size[d] : (uint32_t)(in * r->factor[d]);
}

static float ratio_of(const struct row *r, int d, uint32_t in, uint32_t out) {
  if (r->align) return out > 1 ? (float)(in - 1) / (float)(out - 1) : 0;
  return r->factor[d] > 0 ? (float)(1 / r->factor[d]) : (float)in / (float)out;
}

/* How much each of `in` elements along a dim has of element o of `out`. */
static void weights_of(const struct row *r, int d, uint32_t in, uint32_t out, uint32_t o,
                       double *weights) {
  float ratio = ratio_of(r, d, in, out), at = (float)o * ratio;
  memset(weights, 0, in * sizeof *weights);
  if (r->kind == NEAREST) {
    uint32_t i = out == in ? o : out == 2 * in ? o / 2 : (uint32_t)floorf(at);
    weights[i < in ? i : in - 1] = 1;
    return;
  }
  if (r->kind == BILINEAR) {
    double place = r->align ? (double)at : fmax(0, (o + 0.5) * (double)ratio - 0.5);
    if (in == out) place = o;
    if (place > in - 1) place = in - 1;
    uint32_t low = (uint32_t)place;
    weights[low] = 1 - (place - low);
    if (low + 1 < in) weights[low + 1] = place - low;
    return;
  }
  double reach = fmax(1, (double)ratio), middle = (o + 0.5) * (double)ratio, sum = 0;
  for (uint32_t i = 0; i < in; i++) {
    weights[i] = fmax(0, 1 - fabs(i + 0.5 - middle) / reach);
    if (i + 0.5 < middle - reach || i + 0.5 > middle + reach) weights[i] = 0;
    sum += weights[i];
  }
  for (uint32_t i = 0; i < in && sum > 0; i++) weights[i] /= sum;
}

static void expect(const struct row *r, const uint32_t *x, const uint32_t *y, const double *values,
                   double *want) {
  double h[64], w[64];
  uint64_t planes = (uint64_t)x[0] * x[1];
  for (uint32_t i = 0; i < y[0]; i++)
    for (uint32_t k = 0; k < y[1]; k++) {
      weights_of(r, 0, x[2], y[0], i, h);
      weights_of(r, 1, x[3], y[1], k, w);
      for (uint64_t plane = 0; plane < planes; plane++) {
        double sum = 0;
        for (uint32_t a = 0; a < x[2]; a++)
          for (uint32_t b = 0; b < x[3]; b++)
            sum += h[a] * w[b] * values[(plane * x[2] + a) * x[3] + b];
        want[(plane * y[0] + i) * y[1] + k] = sum;
      }
    }
}

/* ---- running --------------------------------------------------------------------------------- */

static void add_node(struct op_test *t, const struct row *r, uint32_t x, uint32_t y) {
  uint32_t args[8], n = 0;
  bool factors = r->factor[0] > 0;
  args[n++] = x;
  args[n++] = r->size[0] ? op_ints(t, r->size, 2) : op_null(t);
  if (r->kind != NEAREST) args[n++] = op_bool(t, r->align);
  if (r->vec) {
    args[n++] = factors ? op_doubles(t, r->factor, 2) : op_null(t);
  } else {
    args[n++] = factors ? op_double(t, r->factor[0]) : op_null(t);
    args[n++] = factors ? op_double(t, r->factor[1]) : op_null(t);
  }
  args[n++] = y;
  op_node(t, r->name, args, n);
}

static void call(struct op_test *t, const struct row *r, uint32_t x, uint32_t y,
                 enum vk_dtype dtype, uint32_t live) {
  sconce_error err = {0};
  uint32_t dims[4], size[2];
  for (int i = 0; i < 4; i++) dims[i] = r->x[i] == LIVE ? live : r->x[i];
  for (int d = 0; d < 2; d++) size[d] = size_of(r, d, dims[2 + d]);
  uint64_t n = (uint64_t)dims[0] * dims[1] * dims[2] * dims[3], got;
  uint64_t outs = (uint64_t)dims[0] * dims[1] * size[0] * size[1];
  bool floats = dtype == VK_FLOAT32 || dtype == VK_FLOAT16;
  double *values = test_values(floats ? dtype : VK_FLOAT32, n, live + 1);
  double *want = calloc((size_t)outs + 1, sizeof *want);
  for (uint64_t i = 0; i < n && !floats; i++) values[i] = round(fabs(values[i]) * 127);
  expect(r, dims, size, values, want);
  op_set(t, x, dims, 4, values);
  CHECK_OK(op_run(t, &err), err);
  const double tolerance = r->kind == NEAREST ? 0 : dtype == VK_FLOAT16 ? 1e-3 : 2e-6;
  char what[160];
  snprintf(what, sizeof what, "%s %s, live %u: %s", r->name, vk_dtype_name(dtype), live, r->why);
  const double *result = op_get(t, y, &got);
  CHECK_EQ(got, outs);
  if (got == outs) test_close(result, want, outs, tolerance, tolerance, what);
  free(values);
  free(want);
}

static void run(const struct row *r, enum vk_dtype dtype, uint64_t binding) {
  static const uint32_t lives[] = {LIVE, 3, 1, 0, LIVE};
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  if (binding) t.graph.caps.max_storage_binding = binding;
  uint32_t out[4] = {r->x[0], r->x[1], size_of(r, 0, r->x[2]), size_of(r, 1, r->x[3])};
  uint32_t x = op_input(&t, dtype, r->x, 4), y = op_output(&t, dtype, out, 4);
  add_node(&t, r, x, y);
  CHECK_OK(op_load(&t, NULL, &err), err);
  for (int i = 0; i < 5 && !test_failed(); i++)
    if (lives[i] || r->x[0] == LIVE) call(&t, r, x, y, dtype, lives[i]);
  op_end(&t);
}

static void every_way(void) {
  static const enum vk_dtype dtypes[] = {VK_FLOAT32, VK_FLOAT16, VK_INT32, VK_BOOL, VK_UINT8};
  for (size_t i = 0; i < ROWS; i++)
    for (int d = 0; d < (rows[i].kind == NEAREST ? 5 : 2); d++)
      if (dtypes[d] != VK_BOOL) run(&rows[i], dtypes[d], 0);
}

/* More than a binding holds: some planes at a time. */
static void in_parts(void) {
  static const struct row large = {"aten.upsample_bilinear2d.vec",
                                   BILINEAR,
                                   true,
                                   {LIVE, 60, 3, 3},
                                   {5, 7},
                                   {0},
                                   false,
                                   "in parts"};
  run(&large, VK_FLOAT32, 40960);
  run(&large, VK_FLOAT16, 20480);
}

/* Infinities weigh in even with a weight of 0, as in PyTorch. */
static void infinities(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(1, 1, 1, 2)),
           y = op_output(&t, VK_FLOAT32, DIMS(1, 1, 1, 3));
  op_node(&t, "aten.upsample_bilinear2d.vec",
          IDS(x, op_ints(&t, INTS(1, 3)), op_bool(&t, true), op_null(&t), y));
  CHECK_OK(op_load(&t, NULL, &err), err);
  op_set(&t, x, DIMS(1, 1, 1, 2), (const double[]){1, INFINITY});
  CHECK_OK(op_run(&t, &err), err);
  uint64_t n;
  const double *got = op_get(&t, y, &n);
  CHECK(isnan(got[0]) && isnan(got[1]) && isnan(got[2]));
  op_end(&t);
}

static void refuses(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_INT32, DIMS(1, 1, 2, 2)),
           y = op_output(&t, VK_INT32, DIMS(1, 1, 4, 4));
  op_node(&t, "aten.upsample_bilinear2d.vec",
          IDS(x, op_ints(&t, INTS(4, 4)), op_bool(&t, true), op_null(&t), y));
  CHECK_FAILS(op_try(&t, &err), SCONCE_UNSUPPORTED, err,
              "int32 [1, 1, 2, 2] becomes int32 [1, 1, 4, 4]");
  op_end(&t);
  op_begin(&t);
  x = op_input(&t, VK_FLOAT32, DIMS(1, 1, 2, 2)), y = op_output(&t, VK_FLOAT32, DIMS(1, 1, 4, 4));
  op_node(&t, "aten.upsample_nearest2d.vec", IDS(x, op_null(&t), op_list(&t, IDS(x, x)), y));
  CHECK_FAILS(op_try(&t, &err), SCONCE_BAD_GRAPH, err, "item 0 of argument 2 is no number");
  op_end(&t);
}

const struct test suite_upsample[] = {
    TEST(every_way), TEST(in_parts), TEST(infinities), TEST(refuses), {0}};
