/* Unary operators: {operation} × {dtype} × {live shapes}, against the mathematics in double. */
#include "oracles.h"

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double rsqrt_(double x) { return 1 / sqrt(x); }
static double negative(double x) { return -x; }
static double hardsigmoid(double x) { return fmin(fmax(x + 3, 0), 6) / 6; }
static double hardswish(double x) { return x * hardsigmoid(x); }
static double clamp(double x) { return fmin(fmax(x, -2), 3); }
static double at_most(double x) { return fmin(x, 3); }
static double cube(double x) { return x * x * x; }
static double root(double x) { return sqrt(x); } /* as PyTorch: no number of -infinity */
static double power(double x) { return pow(x, -1.75); }
static double relu(double x) { return x > 0 ? x : 0; }
static double gelu(double x) { return 0.5 * x * (1 + erf(x / sqrt(2))); }
static double gelu_tanh(double x) {
  return 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}
static double two_decimals(double x) { return nearbyint(x * 100) / 100; }
static double tens(double x) { return nearbyint(x / 10) * 10; }
static double leaky(double x) { return x > 0 ? x : x * 3; }
static double elu(double x) { return 2 * (x > 0 ? x : 1.5 * expm1(0.5 * x)); }
static double signum(double x) { return (x > 0) - (x < 0); }
static double hardshrink(double x) { return fabs(x) > 3 ? x : 0; }
static double inverse(double x) { return 1 / x; }
static double silu(double x) { return x * sigmoid(x); }
static double eq(double x) { return x == 3; }
static double ne(double x) { return x != 3; }
static double lt(double x) { return x < 3; }
static double le(double x) { return x <= 3; }
static double gt(double x) { return x > 3; }
static double ge(double x) { return x >= 3; }
static double is_infinite(double x) { return isinf(x) != 0; }
static double is_nan(double x) { return isnan(x) != 0; }
static double logit(double x) { return log(x / (1 - x)); }
static double logit_within(double x) { return logit(fmin(fmax(x, 0.25), 0.75)); }
static double complement(double x) { return -x - 1; }
static double not_(double x) { return x == 0; }

const struct oracle_unary oracles_unary[] = {
    {"aten.sigmoid.default", sigmoid, FLOATS, .abs = 1e-7, .rel = 1e-5},
    {"aten.abs.default", fabs, NUMBERS},
    {"aten.exp.default", exp, FLOATS, .domain = MODEST, .rel = 1e-5},
    {"aten.exp2.default", exp2, FLOATS, .domain = MODEST, .rel = 1e-5},
    {"aten.sqrt.default", sqrt, FLOATS, .domain = POSITIVE, .rel = 1e-6},
    {"aten.rsqrt.default", rsqrt_, FLOATS, .domain = POSITIVE, .rel = 1e-6},
    {"aten.sin.default", sin, FLOATS, .domain = MODEST, .abs = 5e-4},
    {"aten.cos.default", cos, FLOATS, .domain = MODEST, .abs = 5e-4},
    {"aten.sin.default", sin, F32, .abs = 5e-4}, /* of any size */
    {"aten.cos.default", cos, F32, .abs = 5e-4},
    {"aten.tan.default", tan, FLOATS, .domain = MODEST, .abs = 5e-3, .rel = 5e-3},
    {"aten.tanh.default", tanh, FLOATS, .abs = 1e-6, .rel = 1e-5},
    {"aten.round.default", nearbyint, NUMBERS},
    {"aten.round.decimals", two_decimals, FLOATS, 1, {2}, .rel = 1e-6},
    {"aten.round.decimals", tens, FLOATS, 1, {-1}, .rel = 1e-6},
    {"aten.neg.default", negative, NUMBERS},
    {"aten.hardswish.default", hardswish, FLOATS, .abs = 1e-6, .rel = 1e-6},
    {"aten.clamp.default", clamp, NUMBERS, 2, {-2, 3}},
    {"aten.clamp.default", at_most, NUMBERS, 2, {NAN, 3}},
    {"aten.hardtanh.default", clamp, NUMBERS, 2, {-2, 3}},
    {"aten.pow.Tensor_Scalar", cube, NUMBERS, 1, {3}, .domain = MODEST, .rel = 1e-6},
    {"aten.pow.Tensor_Scalar", root, FLOATS, 1, {0.5}, .domain = POSITIVE, .rel = 1e-6},
    {"aten.pow.Tensor_Scalar", power, FLOATS, 1, {-1.75}, .domain = POSITIVE, .rel = 1e-4},
    {"aten.relu.default", relu, NUMBERS},
    {"aten.gelu.default", gelu, FLOATS, .text = "none", .abs = 2e-6, .rel = 1e-5},
    {"aten.gelu.default", gelu_tanh, FLOATS, .text = "tanh", .abs = 1e-6, .rel = 1e-5},
    {"aten.leaky_relu.default", leaky, FLOATS, 1, {3}, .rel = 1e-6},
    {"aten.elu.default", elu, FLOATS, 3, {1.5, 2, 0.5}, .abs = 1e-9, .rel = 2e-6},
    {"aten.log.default", log, FLOATS, .domain = POSITIVE, .abs = 1e-6, .rel = 1e-5},
    {"aten.log2.default", log2, FLOATS, .domain = POSITIVE, .abs = 1e-6, .rel = 1e-5},
    {"aten.log1p.default", log1p, FLOATS, .domain = POSITIVE, .abs = 1e-6, .rel = 1e-5},
    {"aten.expm1.default", expm1, FLOATS, .domain = MODEST, .abs = 1e-9, .rel = 1e-5},
    {"aten.sign.default", signum, NUMBERS},
    {"aten.sinh.default", sinh, FLOATS, .domain = MODEST, .abs = 1e-9, .rel = 1e-5},
    {"aten.cosh.default", cosh, FLOATS, .domain = MODEST, .rel = 1e-5},
    {"aten.asin.default", asin, FLOATS, .domain = UNIT, .abs = 1e-6, .rel = 1e-4},
    {"aten.acos.default", acos, FLOATS, .domain = UNIT, .abs = 1e-6, .rel = 1e-4},
    {"aten.atan.default", atan, FLOATS, .abs = 1e-6, .rel = 1e-4},
    {"aten.asinh.default", asinh, FLOATS, .abs = 1e-6, .rel = 1e-5},
    {"aten.acosh.default", acosh, FLOATS, .domain = ABOVE_ONE, .abs = 1e-6, .rel = 1e-5},
    {"aten.atanh.default", atanh, FLOATS, .domain = UNIT, .abs = 1e-6, .rel = 1e-5},
    {"aten.erf.default", erf, FLOATS, .abs = 5e-7, .rel = 1e-5},
    {"aten.log10.default", log10, FLOATS, .domain = POSITIVE, .abs = 1e-6, .rel = 1e-5},
    {"aten.hardshrink.default", hardshrink, FLOATS, 1, {3}},
    {"aten.hardsigmoid.default", hardsigmoid, FLOATS, .rel = 1e-6},
    {"aten.floor.default", floor, NUMBERS},
    {"aten.ceil.default", ceil, NUMBERS},
    {"aten.trunc.default", trunc, NUMBERS},
    {"aten.reciprocal.default", inverse, FLOATS, .domain = POSITIVE, .rel = 1e-6},
    {"aten.silu.default", silu, FLOATS, .abs = 1e-6, .rel = 1e-5},
    {"aten.eq.Scalar", eq, NUMBERS | BOOL, 1, {3}},
    {"aten.ne.Scalar", ne, NUMBERS | BOOL, 1, {3}},
    {"aten.lt.Scalar", lt, NUMBERS | BOOL, 1, {3}},
    {"aten.le.Scalar", le, NUMBERS | BOOL, 1, {3}},
    {"aten.gt.Scalar", gt, NUMBERS | BOOL, 1, {3}},
    {"aten.ge.Scalar", ge, NUMBERS | BOOL, 1, {3}},
    {"aten.logical_not.default", not_, NUMBERS | BOOL},
    {"aten.bitwise_not.default", not_, BOOL},
    {"aten.bitwise_not.default", complement, I32},
    {"aten.isnan.default", is_nan, NUMBERS | BOOL},
    {"aten.isinf.default", is_infinite, NUMBERS | BOOL},
    {"aten.logit.default", logit, FLOATS, 1, {NAN}, .domain = INSIDE, .abs = 1e-6, .rel = 1e-5},
    {"aten.logit.default",
     logit_within,
     FLOATS,
     1,
     {0.25},
     .domain = UNIT,
     .abs = 1e-6,
     .rel = 1e-5},
};
const size_t n_oracles_unary = sizeof oracles_unary / sizeof *oracles_unary;

/* Ends, ties, zeros and large numbers, then random ones. */
static const double ends[] = {0,  -0.5, 0.5,   1.5, 2.5, 3,    -3,   2,
                              -2, 1e-4, -1e-4, 88,  -88, 1000, -1000};
enum { ENDS = sizeof ends / sizeof *ends };

static double *numbers(const struct oracle_unary *o, enum vk_dtype dtype, uint64_t n,
                       uint64_t seed) {
  double *x = test_values(VK_FLOAT32, n, seed);
  for (uint64_t i = 0; i < n; i++) {
    x[i] = i < ENDS && o->domain == ALL ? ends[i] : x[i] * (o->domain == MODEST ? 3 : 12);
    if (o->domain == POSITIVE) x[i] = fabs(x[i]) + 0.01;
    if (o->domain == UNIT) x[i] = x[i] / 13;
    if (o->domain == INSIDE) x[i] = 0.5 + x[i] / 25;
    if (o->domain == ABOVE_ONE) x[i] = fabs(x[i]) + 1;
    if (dtype == VK_INT32) x[i] = trunc(x[i]);
    if (dtype == VK_BOOL) x[i] = x[i] > 0;
  }
  void *rounded = malloc((size_t)(n + 1) * 4);
  test_to_dtype(dtype, x, n, rounded);
  test_from_dtype(dtype, rounded, n, x);
  free(rounded);
  return x;
}

static void add_node(struct op_test *t, const struct oracle_unary *o, uint32_t x, uint32_t y,
                     bool as_int) {
  uint32_t args[5] = {x}, n = 1;
  if (o->text) args[n++] = op_text(t, o->text);
  for (uint32_t i = 0; i < o->n; i++) {
    const double number = o->numbers[i];
    args[n++] = isnan(number)                       ? op_null(t)
                : as_int && trunc(number) == number ? op_int(t, (int64_t)number)
                                                    : op_double(t, number);
  }
  args[n++] = y;
  op_node(t, o->name, args, n);
}

static void run(const struct oracle_unary *o, enum vk_dtype dtype, bool as_int) {
  bool compares = (o->dtypes & BOOL) != 0;
  enum { MOST = 9 };
  static const uint32_t lives[] = {MOST, 3, 1, 0, MOST};
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, dtype, DIMS(MOST, 7));
  uint32_t y = op_output(&t, compares ? VK_BOOL : dtype, DIMS(MOST, 7));
  add_node(&t, o, x, y, as_int);
  CHECK_OK(op_load(&t, NULL, &err), err);
  for (size_t i = 0; i < sizeof lives / sizeof *lives && !test_failed(); i++) {
    double *values = numbers(o, dtype, (uint64_t)lives[i] * 7, 1 + i);
    op_set(&t, x, DIMS(lives[i], 7), values);
    CHECK_OK(op_run(&t, &err), err);
    uint64_t n;
    const double *got = op_get(&t, y, &n);
    CHECK_EQ(n, lives[i] * 7);
    for (uint64_t k = 0; k < n; k++) values[k] = o->of(values[k]);
    bool half = dtype == VK_FLOAT16 && !compares;
    test_close(got, values, n, o->abs + (half ? 1e-6 : 0), o->rel + (half ? 1e-3 : 0), o->name);
    free(values);
  }
  op_end(&t);
}

static void every_operation(void) {
  for (size_t i = 0; i < n_oracles_unary; i++) {
    unsigned dtypes = oracles_unary[i].dtypes;
    if (dtypes & F32) run(&oracles_unary[i], VK_FLOAT32, false);
    if (dtypes & F32) run(&oracles_unary[i], VK_FLOAT32, true);
    if (dtypes & F16) run(&oracles_unary[i], VK_FLOAT16, true);
    if (dtypes & I32) run(&oracles_unary[i], VK_INT32, false);
    if (dtypes & BOOL) run(&oracles_unary[i], VK_BOOL, true);
  }
}

/* Split where the binding is capped at 1 MiB; f16 has half the bytes but the same steps. */
static void large(void) {
  enum { N = 300 * 1001 };
  for (int half = 0; half < 2; half++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    enum vk_dtype dtype = half ? VK_FLOAT16 : VK_FLOAT32;
    uint32_t x = op_input(&t, dtype, DIMS(N)), y = op_output(&t, VK_BOOL, DIMS(N));
    op_node(&t, "aten.lt.Scalar", IDS(x, op_int(&t, 0), y));
    double *values = test_values(dtype, N, 4);
    CHECK_OK(op_load(&t, NULL, &err), err);
    if (!test_failed()) {
      op_set(&t, x, DIMS(N), values);
      CHECK_OK(op_run(&t, &err), err);
      uint64_t n;
      const double *got = op_get(&t, y, &n);
      for (uint64_t i = 0; i < n; i++) values[i] = values[i] < 0;
      test_close(got, values, n, 0, 0, "lt 0");
    }
    free(values);
    op_end(&t);
  }
}

static void corners(void) {
  static const struct {
    const char *name;
    double x, want;
  } cases[] = {
      {"aten.relu.default", NAN, NAN},       {"aten.sigmoid.default", -INFINITY, 0},
      {"aten.sigmoid.default", INFINITY, 1}, {"aten.tanh.default", -INFINITY, -1},
      {"aten.sqrt.default", -1, NAN},        {"aten.log.default", 0, -INFINITY},
      {"aten.rsqrt.default", 0, INFINITY},   {"aten.isnan.default", NAN, 1},
      {"aten.isnan.default", INFINITY, 0},   {"aten.isinf.default", -INFINITY, 1},
      {"aten.isinf.default", NAN, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t x = op_input(&t, VK_FLOAT32, DIMS(1)), y = op_output(&t, VK_FLOAT32, DIMS(1));
    op_node(&t, cases[i].name, IDS(x, y));
    CHECK_OK(op_load(&t, NULL, &err), err);
    if (!test_failed()) {
      op_set(&t, x, DIMS(1), &cases[i].x);
      CHECK_OK(op_run(&t, &err), err);
      uint64_t n;
      test_close(op_get(&t, y, &n), &cases[i].want, 1, 1e-7, 0, cases[i].name);
    }
    op_end(&t);
  }
}

/* What is no number goes through, but for PyTorch's sign, which is 0, and comparisons; infinities
 * as the mathematics has them. */
static void no_numbers(void) {
  static const double specials[] = {NAN, INFINITY, -INFINITY};
  static const enum vk_dtype dtypes[] = {VK_FLOAT32, VK_FLOAT16};
  for (size_t i = 0; i < 2 * n_oracles_unary; i++) {
    const struct oracle_unary *o = &oracles_unary[i / 2];
    const bool compares = (o->dtypes & BOOL) != 0;
    if (!(o->dtypes & (i % 2 ? F16 : F32))) continue;
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t x = op_input(&t, dtypes[i % 2], DIMS(3));
    uint32_t y = op_output(&t, compares ? VK_BOOL : dtypes[i % 2], DIMS(3));
    add_node(&t, o, x, y, false);
    CHECK_OK(op_load(&t, NULL, &err), err);
    if (!test_failed()) {
      op_set(&t, x, DIMS(3), specials);
      CHECK_OK(op_run(&t, &err), err);
      double want[3];
      uint64_t n;
      for (int k = 0; k < 3; k++) want[k] = o->of(specials[k]);
      if (!compares) want[0] = o->of == signum ? 0 : NAN;
      test_close(op_get(&t, y, &n), want, 3, 1e-6, i % 2 ? 1e-3 : 1e-6, o->name);
    }
    op_end(&t);
  }
}

/* The dtype that the result says, where kernels have it: PyTorch's promotion. */
static void other_dtypes(void) {
  static const struct {
    const char *name;
    enum vk_dtype from, to;
    double number, x, want;
    const char *why;
  } cases[] = {
      {"aten::sqrt.out", VK_INT32, VK_FLOAT32, NAN, 9, 3, "a float of an integer"},
      {"aten::exp.out", VK_BOOL, VK_FLOAT32, NAN, 0, 1, "a float of a boolean"},
      {"aten::neg.out", VK_UINT8, VK_UINT8, NAN, 3, 253, "bytes wrap"},
      {"aten::abs.out", VK_INT8, VK_INT8, NAN, -128, -128, "the least one has no opposite"},
      {"aten::bitwise_not.out", VK_UINT8, VK_UINT8, NAN, 5, 250, "bits of a byte"},
      {"aten::sign.out", VK_BOOL, VK_BOOL, NAN, 1, 1, "of a boolean"},
      {"aten::gt.Scalar_out", VK_INT32, VK_BOOL, 2.5, 3, 1, "a fraction beside integers"},
      {"aten::le.Scalar_out", VK_UINT8, VK_BOOL, 200, 201, 0, "bytes beside a number"},
      {"aten::pow.Tensor_Scalar_out", VK_INT32, VK_FLOAT32, 0.5, 16, 4, "a root of an integer"},
      {"aten::isinf.out", VK_INT32, VK_BOOL, NAN, 7, 0, "no integer is"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t x = op_input(&t, cases[i].from, DIMS(1)), y = op_output(&t, cases[i].to, DIMS(1));
    if (isnan(cases[i].number))
      op_node(&t, cases[i].name, IDS(x, y));
    else
      op_node(&t, cases[i].name, IDS(x, op_double(&t, cases[i].number), y));
    CHECK_OK(op_load(&t, NULL, &err), err);
    if (!test_failed()) {
      op_set(&t, x, DIMS(1), &cases[i].x);
      CHECK_OK(op_run(&t, &err), err);
      uint64_t n;
      test_close(op_get(&t, y, &n), &cases[i].want, 1, 1e-6, 0, cases[i].why);
    }
    op_end(&t);
  }
}

static void refuses(void) {
  static const struct {
    const char *name, *text;
    enum vk_dtype dtype;
    const char *fragment;
  } cases[] = {
      {"aten.gelu.default", "erf", VK_FLOAT32, "neither none nor tanh"},
      {"aten.gelu.default", "none", VK_INT32, "int32 to int32"},
      {"aten.pow.Tensor_Scalar", NULL, VK_INT32, "argument 1 is 0.5"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t x = op_input(&t, cases[i].dtype, DIMS(4)), y = op_output(&t, cases[i].dtype, DIMS(4));
    uint32_t middle = cases[i].text ? op_text(&t, cases[i].text) : op_double(&t, 0.5);
    op_node(&t, cases[i].name, IDS(x, middle, y));
    CHECK_EQ(op_load(&t, NULL, &err), SCONCE_UNSUPPORTED);
    CHECK(strstr(err.text, cases[i].fragment) != NULL);
    op_end(&t);
  }
}

const struct test suite_unary[] = {
    TEST(every_operation), TEST(large), TEST(corners), TEST(no_numbers), TEST(other_dtypes),
    TEST(refuses),         {0}};
