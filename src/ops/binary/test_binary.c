/* Binary operators: {operation} × {dtype} × {layout} × {shapes that broadcast}, in double. */
#include "oracles.h"

static double add(double a, double b, double alpha) { return a + alpha * b; }
static double sub(double a, double b, double alpha) { return a - alpha * b; }
static double mul(double a, double b, double alpha) { return (void)alpha, a * b; }
static double ratio(double a, double b, double alpha) { return (void)alpha, a / b; }
static double floors(double a, double b, double alpha) { return (void)alpha, floor(a / b); }
static double truncs(double a, double b, double alpha) { return (void)alpha, trunc(a / b); }
static double least(double a, double b, double alpha) {
  return (void)alpha, isnan(a) || isnan(b) ? NAN : a < b ? a : b;
}
static double most(double a, double b, double alpha) {
  return (void)alpha, isnan(a) || isnan(b) ? NAN : a > b ? a : b;
}
static double power(double a, double b, double alpha) { return (void)alpha, pow(a, b); }
static double eq(double a, double b, double alpha) { return (void)alpha, a == b; }
static double ne(double a, double b, double alpha) { return (void)alpha, a != b; }
static double lt(double a, double b, double alpha) { return (void)alpha, a < b; }
static double le(double a, double b, double alpha) { return (void)alpha, a <= b; }
static double gt(double a, double b, double alpha) { return (void)alpha, a > b; }
static double ge(double a, double b, double alpha) { return (void)alpha, a >= b; }
static double both(double a, double b, double alpha) { return (void)alpha, a != 0 && b != 0; }
static double either(double a, double b, double alpha) { return (void)alpha, a != 0 || b != 0; }
static double differ(double a, double b, double alpha) { return (void)alpha, (a != 0) != (b != 0); }

static double bit_and(double a, double b, double alpha) {
  return (void)alpha, (int32_t)a & (int32_t)b;
}
static double bit_or(double a, double b, double alpha) {
  return (void)alpha, (int32_t)a | (int32_t)b;
}
static double bit_xor(double a, double b, double alpha) {
  return (void)alpha, (int32_t)a ^ (int32_t)b;
}
static double left(double a, double b, double alpha) {
  return (void)alpha, b < 0 || b > 31 ? 0 : (int32_t)((uint32_t)(int32_t)a << (uint32_t)b);
}
static double right(double a, double b, double alpha) {
  return (void)alpha, floor(a / pow(2, b < 0 || b > 31 ? 31 : b));
}
static double fmods(double a, double b, double alpha) { return (void)alpha, fmod(a, b); }
static double modulo(double a, double b, double alpha) { return (void)alpha, a - floor(a / b) * b; }
static double angle(double a, double b, double alpha) { return (void)alpha, atan2(a, b); }
static double rsub(double a, double b, double alpha) { return b - alpha * a; }

const struct oracle_binary oracles_binary[] = {
    {"aten.add.Tensor", "add", add, NUMBERS, ALPHA, 1e-6},
    {"aten::add.out", "add", add, F32, ALPHA, 1e-6},
    {"aten.sub.Tensor", "sub", sub, NUMBERS, ALPHA, 1e-6},
    {"aten.mul.Tensor", "mul", mul, NUMBERS | BOOL, NOTHING, 1e-6},
    {"aten.div.Tensor", "div", ratio, NUMBERS, NOTHING, 1e-6},
    {"aten.div.Tensor_mode", "div", ratio, NUMBERS, NO_MODE, 1e-6},
    {"aten.div.Tensor_mode", "floor_div", floors, NUMBERS, FLOOR, 0},
    {"aten.div.Tensor_mode", "trunc_div", truncs, NUMBERS, TRUNC, 0},
    {"aten.minimum.default", "min", least, NUMBERS, NOTHING, 0},
    {"aten.maximum.default", "max", most, NUMBERS, NOTHING, 0},
    {"aten.pow.Tensor_Tensor", "pow", power, NUMBERS, NOTHING, 1e-4},
    {"aten.eq.Tensor", "eq", eq, NUMBERS | BOOL, NOTHING, 0},
    {"aten.ne.Tensor", "ne", ne, NUMBERS | BOOL, NOTHING, 0},
    {"aten.lt.Tensor", "lt", lt, NUMBERS | BOOL, NOTHING, 0},
    {"aten.le.Tensor", "le", le, NUMBERS | BOOL, NOTHING, 0},
    {"aten.gt.Tensor", "gt", gt, NUMBERS | BOOL, NOTHING, 0},
    {"aten.ge.Tensor", "ge", ge, NUMBERS | BOOL, NOTHING, 0},
    {"aten.logical_and.default", "and", both, NUMBERS | BOOL, NOTHING, 0},
    {"aten.bitwise_and.Tensor", "and", both, BOOL, NOTHING, 0},
    {"aten.logical_or.default", "or", either, NUMBERS | BOOL, NOTHING, 0},
    {"aten.bitwise_or.Tensor", "or", either, BOOL, NOTHING, 0},
    {"aten.logical_xor.default", "xor", differ, NUMBERS | BOOL, NOTHING, 0},
    {"aten.bitwise_xor.Tensor", "xor", differ, BOOL, NOTHING, 0},
    {"aten.bitwise_and.Tensor", "bit_and", bit_and, I32, NOTHING, 1e-9},
    {"aten.bitwise_or.Tensor", "bit_or", bit_or, I32, NOTHING, 1e-9},
    {"aten.bitwise_xor.Tensor", "bit_xor", bit_xor, I32, NOTHING, 1e-9},
    {"aten.bitwise_left_shift.Tensor", "left_shift", left, I32, NOTHING, 1e-9},
    {"aten.bitwise_right_shift.Tensor", "right_shift", right, I32, NOTHING, 1e-9},
    {"aten.floor_divide.default", "floor_div", floors, NUMBERS, NOTHING, 0},
    {"aten.fmod.Tensor", "fmod", fmods, NUMBERS, NOTHING, 0},
    {"aten.remainder.Tensor", "remainder", modulo, NUMBERS, NOTHING, 0},
    {"aten.atan2.default", "atan2", angle, NUMBERS, NOTHING, 1e-5},
    {"aten.rsub.Scalar", "rsub", rsub, NUMBERS, ALPHA, 1e-6},
};
const size_t n_oracles_binary = sizeof oracles_binary / sizeof *oracles_binary;

/* A dim of LIVE is the one that changes between calls. */
enum { LIVE = 7, LAST_LIVE = 4 };
static const uint32_t lives[] = {LIVE, 3, 1, 0, LIVE};

static const struct {
  uint32_t a[3], b[3];
  const char *why;
} shapes[] = {
    {{1, 1, 1}, {1, 1, 1}, "one element"},
    {{2, LIVE, 5}, {2, LIVE, 5}, "same shape, odd: the last quad is not whole"},
    {{LIVE, 3, 8}, {1, 1, 8}, "a row of quads for all"},
    {{2, LIVE, 4}, {2, LIVE, 1}, "b stays along a row of quads"},
    {{1, 1, 1}, {LIVE, 2, 3}, "a is a scalar"},
    {{LIVE, 1, 5}, {1, 3, 1}, "both sides repeat, rows of no whole quad"},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static double at(const double *x, const uint32_t *dims, const uint32_t *c) {
  size_t index = 0;
  for (int i = 0; i < 3; i++) index = index * dims[i] + (dims[i] == 1 ? 0 : c[i]);
  return x[index];
}

/* Numbers with fractions, ties, zeros (none in a divisor) and, for floats, signs and sizes. */
static double *numbers(enum vk_dtype dtype, uint64_t n, uint64_t seed, bool divisor) {
  double *x = test_values(VK_FLOAT32, n, seed);
  for (uint64_t i = 0; i < n; i++) {
    x[i] = dtype == VK_BOOL ? x[i] > 0 : dtype == VK_INT32 ? trunc(x[i] * 6) : x[i] * 4;
    if (i % 3 == 0) x[i] = round(x[i]);
    if (divisor && x[i] == 0) x[i] = 2;
    /* SwiftShader packs a NaN of two halves into its neighbour: no roots of negative numbers. */
    if (divisor && dtype == VK_FLOAT16) x[i] = fabs(x[i]);
  }
  void *rounded = malloc((size_t)(n + 1) * 4);
  test_to_dtype(dtype, x, n, rounded);
  test_from_dtype(dtype, rounded, n, x);
  free(rounded);
  return x;
}

uint32_t oracle_third(struct op_test *t, const struct oracle_binary *o, bool as_int, double alpha) {
  if (o->third == ALPHA) return as_int ? op_int(t, (int64_t)alpha) : op_double(t, alpha);
  if (o->third == NO_MODE) return op_null(t);
  return op_text(t, o->third == FLOOR ? "floor" : "trunc");
}

enum vk_dtype oracle_result(const struct oracle_binary *o, enum vk_dtype dtype) {
  if (o->rel == 0 && (o->dtypes & BOOL)) return VK_BOOL;
  return (o->of == ratio || o->of == angle) && dtype == VK_INT32 ? VK_FLOAT32 : dtype;
}

/* Live dims for one call, and the broadcast of both. */
static void dims_of(size_t s, uint32_t live, uint32_t a[3], uint32_t b[3], uint32_t y[3]) {
  for (int i = 0; i < 3; i++) {
    a[i] = shapes[s].a[i] == LIVE ? live : shapes[s].a[i];
    b[i] = shapes[s].b[i] == LIVE ? live : shapes[s].b[i];
    y[i] = shapes[s].a[i] == 1 ? b[i] : a[i];
  }
}

static void check(struct op_test *t, uint32_t y, const uint32_t *da, const uint32_t *db,
                  const uint32_t *dy, const double *va, const double *vb,
                  const struct oracle_binary *o, double alpha, enum vk_dtype dtype,
                  const char *why) {
  uint64_t n;
  const double *got = op_get(t, y, &n);
  CHECK_EQ(n, (uint64_t)dy[0] * dy[1] * dy[2]);
  double *want = malloc((size_t)(n + 1) * sizeof *want);
  for (uint32_t c0 = 0, k = 0; c0 < dy[0]; c0++)
    for (uint32_t c1 = 0; c1 < dy[1]; c1++)
      for (uint32_t c2 = 0; c2 < dy[2]; c2++, k++) {
        uint32_t c[3] = {c0, c1, c2};
        want[k] = o->of(at(va, da, c), at(vb, db, c), alpha);
        if (dtype == VK_INT32) want[k] = trunc(want[k]);
        if (dtype == VK_FLOAT16 && fabs(want[k]) > 65504) want[k] = copysign(INFINITY, want[k]);
      }
  double rel = dtype == VK_FLOAT16 ? 1e-3 + o->rel : o->rel;
  char what[100];
  snprintf(what, sizeof what, "%s %s: %s", o->name, vk_dtype_name(dtype), why);
  test_close(got, want, n, dtype == VK_FLOAT16 ? 1e-6 : o->rel, rel, what);
  free(want);
}

static void run(const struct oracle_binary *o, size_t s, enum vk_dtype dtype, const char *force,
                bool as_int) {
  const double alpha = as_int || dtype == VK_INT32 ? 3 : -2.5;
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t da[3], db[3], dy[3];
  dims_of(s, LIVE, da, db, dy);
  enum vk_dtype to = oracle_result(o, dtype);
  uint32_t a = op_input(&t, dtype, da, 3), b = op_input(&t, dtype, db, 3);
  uint32_t y = op_output(&t, to, dy, 3);
  if (o->third == NOTHING)
    op_node(&t, o->name, IDS(a, b, y));
  else
    op_node(&t, o->name, IDS(a, b, oracle_third(&t, o, as_int, alpha), y));
  CHECK_OK(op_load(&t, force, &err), err);
  for (size_t i = 0; i < sizeof lives / sizeof *lives && !test_failed(); i++) {
    dims_of(s, lives[i], da, db, dy);
    bool divides = o->third >= NO_MODE || o->of == ratio || o->of == power || o->of == floors ||
                   o->of == fmods || o->of == modulo;
    double *va = numbers(dtype, (uint64_t)da[0] * da[1] * da[2], 1 + i, o->of == power);
    double *vb = numbers(dtype, (uint64_t)db[0] * db[1] * db[2], 9 + i, divides);
    op_set(&t, a, da, 3, va);
    op_set(&t, b, db, 3, vb);
    CHECK_OK(op_run(&t, &err), err);
    if (!test_failed()) check(&t, y, da, db, dy, va, vb, o, alpha, to, shapes[s].why);
    free(va);
    free(vb);
  }
  op_end(&t);
}

static const struct {
  unsigned bit;
  enum vk_dtype dtype;
  const char *name;
} dtypes[] = {{F32, VK_FLOAT32, "f32"},
              {F16, VK_FLOAT16, "f16"},
              {I32, VK_INT32, "i32"},
              {BOOL, VK_BOOL, "bool"}};

/* Every row on one shape that it fits; every shape with one operation of each result. */
static void every_row(void) {
  for (size_t i = 0; i < n_oracles_binary; i++)
    for (size_t d = 0; d < 4; d++) {
      if (!(oracles_binary[i].dtypes & dtypes[d].bit)) continue;
      char name[40];
      bool both_true = oracles_binary[i].of == mul && dtypes[d].dtype == VK_BOOL;
      snprintf(name, sizeof name, "%s_%s_any", both_true ? "and" : oracles_binary[i].row,
               dtypes[d].name);
      run(&oracles_binary[i], 1, dtypes[d].dtype, NULL, false);
      run(&oracles_binary[i], 1, dtypes[d].dtype, name, true);
    }
}

static void every_shape(void) {
  for (size_t s = 0; s < SHAPES; s++)
    for (size_t i = 0; i < n_oracles_binary; i++)
      for (size_t d = 0; d < 4; d++) {
        bool picked = oracles_binary[i].of == sub || oracles_binary[i].of == lt;
        if (!picked || !(oracles_binary[i].dtypes & dtypes[d].bit)) continue;
        char name[40];
        snprintf(name, sizeof name, "%s_%s_any", oracles_binary[i].row, dtypes[d].name);
        run(&oracles_binary[i], s, dtypes[d].dtype, NULL, true);
        run(&oracles_binary[i], s, dtypes[d].dtype, name, false);
      }
}

/* More quads than 65,535 workgroups hold, and more bytes than a capped binding. */
static void large(void) {
  enum { ROWS = 70, COLS = 4099 };
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t a = op_input(&t, VK_FLOAT32, DIMS(ROWS, COLS)), b = op_input(&t, VK_FLOAT32, DIMS(1));
  uint32_t y = op_output(&t, VK_FLOAT32, DIMS(ROWS, COLS)),
           z = op_output(&t, VK_FLOAT32, DIMS(ROWS, COLS));
  op_node(&t, "aten.mul.Tensor", IDS(a, b, y));
  op_node(&t, "aten.add.Tensor", IDS(a, y, op_int(&t, 2), z));
  double *va = test_values(VK_FLOAT32, (uint64_t)ROWS * COLS, 5), three = 3;
  CHECK_OK(op_load(&t, NULL, &err), err);
  if (!test_failed()) {
    op_set(&t, a, DIMS(ROWS, COLS), va);
    op_set(&t, b, DIMS(1), &three);
    CHECK_OK(op_run(&t, &err), err);
    uint64_t n;
    const double *got = op_get(&t, z, &n);
    for (uint64_t i = 0; i < n; i++) va[i] *= 7;
    test_close(got, va, n, 1e-6, 1e-6, "all of it");
  }
  free(va);
  op_end(&t);
}

/* What an eager PyTorch gives for numbers that are none, and for divisors of zero. */
static void corners(void) {
  static const struct {
    const char *name, *mode;
    double a, b, want;
  } cases[] = {
      {"aten.minimum.default", NULL, 1, NAN, NAN},
      {"aten.maximum.default", NULL, NAN, 1, NAN},
      {"aten.minimum.default", NULL, -INFINITY, 1, -INFINITY},
      {"aten.div.Tensor", NULL, 1, 0, INFINITY},
      {"aten.div.Tensor_mode", "floor", 6, 3, 2},
      {"aten.div.Tensor_mode", "floor", -1, 0, -INFINITY},
      {"aten.div.Tensor_mode", "floor", -7, 2, -4},
      {"aten.div.Tensor_mode", "floor", 1, 0.1f, 9}, /* the float is more than a tenth */
      {"aten.div.Tensor_mode", "floor", 2.5, 0.001f, 2499},
      {"aten.div.Tensor_mode", "floor", -1, 0.1f, -10},
      {"aten.div.Tensor_mode", "floor", INFINITY, 3, NAN},
      {"aten.div.Tensor_mode", "floor", -1, INFINITY, -1},
      {"aten.div.Tensor_mode", "floor", 1, INFINITY, 0},
      {"aten.div.Tensor_mode", "trunc", -7, 2, -3},
      {"aten.div.Tensor_mode", "trunc", 1, 0.1f, 10},
      {"aten.div.Tensor_mode", "trunc", 6, 3, 2},
      {"aten.div.Tensor_mode", "trunc", -INFINITY, 3, -INFINITY},
      {"aten.pow.Tensor_Tensor", NULL, 0, 0, 1},
      {"aten.pow.Tensor_Tensor", NULL, -2, 3, -8},
      {"aten.pow.Tensor_Tensor", NULL, -2, 0.5, NAN},
      {"aten.pow.Tensor_Tensor", NULL, 0, -1, INFINITY},
      {"aten.pow.Tensor_Tensor", NULL, 4, 0.5, 2},
      {"aten.pow.Tensor_Tensor", NULL, 0, -2.5, INFINITY},
      {"aten.pow.Tensor_Tensor", NULL, -0.0, -1, -INFINITY},
      {"aten.pow.Tensor_Tensor", NULL, NAN, 2.5, NAN},
      {"aten.pow.Tensor_Tensor", NULL, 0, NAN, NAN},
      {"aten.pow.Tensor_Tensor", NULL, -INFINITY, 2.5, INFINITY},
      {"aten.pow.Tensor_Tensor", NULL, -INFINITY, -2.5, 0},
      {"aten.pow.Tensor_Tensor", NULL, -INFINITY, 3, -INFINITY},
      {"aten.pow.Tensor_Tensor", NULL, -1, INFINITY, 1},
      {"aten.pow.Tensor_Tensor", NULL, NAN, 0, 1},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t a = op_input(&t, VK_FLOAT32, DIMS(1)), b = op_input(&t, VK_FLOAT32, DIMS(1));
    uint32_t y = op_output(&t, VK_FLOAT32, DIMS(1));
    if (cases[i].mode)
      op_node(&t, cases[i].name, IDS(a, b, op_text(&t, cases[i].mode), y));
    else
      op_node(&t, cases[i].name, IDS(a, b, y));
    CHECK_OK(op_load(&t, NULL, &err), err);
    if (!test_failed()) {
      op_set(&t, a, DIMS(1), &cases[i].a);
      op_set(&t, b, DIMS(1), &cases[i].b);
      CHECK_OK(op_run(&t, &err), err);
      uint64_t n;
      test_close(op_get(&t, y, &n), &cases[i].want, 1, 1e-6, 1e-6, cases[i].name);
    }
    op_end(&t);
  }
}

/* Operands of two dtypes, numbers instead of tensors, results of another dtype: as PyTorch
 * promotes them. */
static void dtypes_meet(void) {
  enum { NUMBER = -1 };
  static const struct {
    const char *name;
    int a, b, y;
    double number; /* of the operand that is none */
    bool fraction;
    double want[3]; /* of a = 7, -3, 0 and b = 2, 5, 1 where they are tensors */
  } rows[] = {
      {"aten::add.out", VK_INT32, VK_FLOAT32, VK_FLOAT32, 0, false, {9, 2, 1}},
      {"aten::mul.out", VK_BOOL, VK_FLOAT16, VK_FLOAT16, 0, false, {2, 5, 0}},
      {"aten::mul.out", VK_FLOAT16, VK_FLOAT32, VK_FLOAT32, 0, false, {14, -15, 0}},
      {"aten::add.out", VK_INT32, VK_INT32, VK_FLOAT32, 0, false, {9, 2, 1}},
      {"aten::mul.Scalar_out", VK_FLOAT32, NUMBER, VK_FLOAT32, 0.5, true, {3.5, -1.5, 0}},
      {"aten::mul.Scalar_out", VK_INT32, NUMBER, VK_INT32, 3, false, {21, -9, 0}},
      {"aten::mul.Scalar_out", VK_INT32, NUMBER, VK_FLOAT32, 0.5, true, {3.5, -1.5, 0}},
      {"aten::add.Scalar_out", VK_BOOL, NUMBER, VK_INT32, 4, false, {5, 5, 4}},
      {"aten::rsub.Scalar_out", VK_FLOAT32, NUMBER, VK_FLOAT32, 1, false, {-6, 4, 1}},
      {"aten::div.Scalar_out", VK_INT32, NUMBER, VK_FLOAT32, 2, false, {3.5, -1.5, 0}},
      {"aten::div.out", VK_INT32, VK_INT32, VK_FLOAT32, 0, false, {3.5, -0.6, 0}},
      {"aten::pow.Scalar_out", NUMBER, VK_FLOAT32, VK_FLOAT32, 2, false, {4, 32, 2}},
      {"aten::gt.Tensor_out", VK_INT32, VK_FLOAT32, VK_BOOL, 0, false, {1, 0, 0}},
      {"aten::remainder.Scalar_out", VK_INT32, NUMBER, VK_INT32, 5, false, {2, 2, 0}},
      {"aten::fmod.Scalar_out", VK_FLOAT32, NUMBER, VK_FLOAT32, 2.5, true, {2, -0.5, 0}},
      {"aten::bitwise_and.Scalar_out", VK_INT32, NUMBER, VK_INT32, 6, false, {6, 4, 0}},
      {"aten::logical_or.out", VK_INT32, VK_FLOAT32, VK_BOOL, 0, false, {1, 1, 1}},
      {"aten::add.out", VK_UINT8, VK_INT32, VK_INT32, 0, false, {9, 258, 1}},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const bool number_a = rows[i].a == NUMBER, number_b = rows[i].b == NUMBER;
    if (test_swap_scalars && (number_a || number_b))
      continue; /* here the kind of a number counts */
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t number =
        rows[i].fraction ? op_double(&t, rows[i].number) : op_int(&t, (int64_t)rows[i].number);
    uint32_t a = number_a ? number : op_input(&t, (enum vk_dtype)rows[i].a, DIMS(3));
    uint32_t b = number_b ? number : op_input(&t, (enum vk_dtype)rows[i].b, DIMS(3));
    uint32_t y = op_output(&t, (enum vk_dtype)rows[i].y, DIMS(3));
    const bool alpha = strstr(rows[i].name, "add") || strstr(rows[i].name, "sub");
    if (alpha)
      op_node(&t, rows[i].name, IDS(a, b, op_int(&t, 1), y));
    else
      op_node(&t, rows[i].name, IDS(a, b, y));
    CHECK_OK(op_load(&t, NULL, &err), err);
    if (t.loaded) {
      double of_a[] = {7, -3, 0};
      if (rows[i].a == VK_BOOL) of_a[0] = of_a[1] = 1;
      if (rows[i].a == VK_UINT8) of_a[1] = 253;
      if (!number_a) op_set(&t, a, DIMS(3), of_a);
      if (!number_b) op_set(&t, b, DIMS(3), (const double[]){2, 5, 1});
      CHECK_OK(op_run(&t, &err), err);
      uint64_t n;
      test_close(op_get(&t, y, &n), rows[i].want, 3, 1e-3, 1e-3, rows[i].name);
    }
    op_end(&t);
  }
}

static void refuses(void) {
  static const struct {
    enum vk_dtype a, b;
    uint32_t cols;
    const char *mode, *fragment;
    sconce_status status;
  } cases[] = {
      {VK_FLOAT32, VK_FLOAT32, 5, "up", "neither floor nor trunc", SCONCE_UNSUPPORTED},
      {VK_FLOAT32, VK_FLOAT32, 4, "floor", "do not broadcast", SCONCE_BAD_ARGUMENT},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t a = op_input(&t, cases[i].a, DIMS(2, 5)),
             b = op_input(&t, cases[i].b, DIMS(1, cases[i].cols));
    uint32_t y = op_output(&t, cases[i].a, DIMS(2, 5));
    op_node(&t, "aten.div.Tensor_mode", IDS(a, b, op_text(&t, cases[i].mode), y));
    sconce_status status = op_load(&t, NULL, &err);
    if (status == SCONCE_OK) status = op_run(&t, &err);
    CHECK_EQ(status, cases[i].status);
    CHECK(strstr(err.text, cases[i].fragment) != NULL);
    op_end(&t);
  }
}

const struct test suite_binary[] = {
    TEST(every_row),   TEST(every_shape), TEST(large), TEST(corners),
    TEST(dtypes_meet), TEST(refuses),     {0}};
