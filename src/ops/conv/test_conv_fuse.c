/* What the pass `conv` makes of a convolution, a sum and an activation, and what it must leave. The
 * convolution is 1x1, so that the oracle is a product; test_conv has the others. */
#include "op.h"

#include "ops/conv/emit.h"

enum act { NO_ACT, RELU, HARDTANH, CLAMP_LOW, HARDSWISH, SILU, SIGMOID_MUL, ACTS };

static double apply(enum act act, double x) {
  const double sigmoid = 1 / (1 + exp(-x));
  switch (act) {
  case RELU:
    return fmax(x, 0);
  case HARDTANH:
    return fmin(fmax(x, -0.5), 0.25);
  case CLAMP_LOW:
    return fmax(x, -0.125);
  case HARDSWISH:
    return x * fmin(fmax(x + 3, 0), 6) / 6;
  case SILU:
  case SIGMOID_MUL:
    return x * sigmoid;
  default:
    return x;
  }
}

/* Everything that a graph may have. */
struct form {
  enum act act;
  bool add, swapped; /* swapped: rest + y instead of y + rest */
  bool transposed, depthwise;
  uint32_t batch, pixels;
  enum vk_dtype dtype;
};
enum { CHANNELS = 12, DEEP = 5 };

struct ids {
  uint32_t x, rest, y;
};

static uint32_t add_act(struct op_test *t, const struct form *f, uint32_t x, uint32_t y) {
  const uint32_t dims[] = {f->batch, CHANNELS, f->pixels};
  static const char *const names[ACTS] = {[RELU] = "aten.relu.default",
                                          [HARDTANH] = "aten.hardtanh.default",
                                          [CLAMP_LOW] = "aten.clamp.default",
                                          [HARDSWISH] = "aten.hardswish.default",
                                          [SILU] = "aten.silu.default"};
  if (f->act == SIGMOID_MUL) {
    uint32_t s = op_tensor(t, f->dtype, dims, 3);
    op_node(t, "aten.sigmoid.default", IDS(x, s));
    op_node(t, "aten.mul.Tensor", IDS(f->swapped ? s : x, f->swapped ? x : s, y));
  } else if (f->act == HARDTANH || f->act == CLAMP_LOW) {
    uint32_t low = op_double(t, f->act == HARDTANH ? -0.5 : -0.125);
    uint32_t high = f->act == HARDTANH ? op_double(t, 0.25) : op_null(t);
    op_node(t, names[f->act], IDS(x, low, high, y));
  } else {
    op_node(t, names[f->act], IDS(x, y));
  }
  return y;
}

static void add_conv(struct op_test *t, const struct form *f, const double *w, const double *bias,
                     uint32_t x, uint32_t y) {
  const uint32_t in = f->depthwise ? 1 : DEEP;
  uint32_t dw[] = {f->transposed ? in : CHANNELS, f->transposed ? CHANNELS : in, 1};
  uint32_t ones = op_ints(t, INTS(1)), none = op_ints(t, INTS(0));
  op_node(t, "aten.convolution.default",
          IDS(x, op_constant(t, f->dtype, dw, 3, w), op_constant(t, f->dtype, DIMS(CHANNELS), bias),
              ones, none, ones, op_bool(t, f->transposed), none,
              op_int(t, f->depthwise ? CHANNELS : 1), y));
}

static struct ids build(struct op_test *t, const struct form *f, const double *w,
                        const double *bias) {
  const uint32_t dims[] = {f->batch, CHANNELS, f->pixels};
  struct ids i = {.rest = NO_VALUE};
  i.x = op_input(t, f->dtype, DIMS(f->batch, f->depthwise ? CHANNELS : DEEP, f->pixels));
  if (f->add) i.rest = op_input(t, f->dtype, dims, 3);
  i.y = op_output(t, f->dtype, dims, 3);
  uint32_t y = !f->add && f->act == NO_ACT ? i.y : op_tensor(t, f->dtype, dims, 3);
  add_conv(t, f, w, bias, i.x, y);
  if (f->add) {
    uint32_t sum = f->act == NO_ACT ? i.y : op_tensor(t, f->dtype, dims, 3);
    op_node(t, "aten.add.Tensor",
            IDS(f->swapped ? i.rest : y, f->swapped ? y : i.rest, op_int(t, 1), sum));
    y = sum;
  }
  if (f->act != NO_ACT) add_act(t, f, y, i.y);
  return i;
}

/* w is (CHANNELS, deep), or if transposed (deep, CHANNELS). */
static void expect(const struct form *f, uint32_t batch, const double *x, const double *w,
                   const double *bias, const double *rest, double *y) {
  const uint32_t deep = f->depthwise ? 1 : DEEP, l = f->pixels;
  for (uint32_t n = 0; n < batch; n++)
    for (uint32_t c = 0; c < CHANNELS; c++)
      for (uint32_t q = 0; q < l; q++) {
        double sum = bias[c];
        for (uint32_t k = 0; k < deep; k++) {
          const uint32_t in = f->depthwise ? n * CHANNELS + c : n * DEEP + k;
          sum += x[in * l + q] * w[f->transposed ? k * CHANNELS + c : c * deep + k];
        }
        const uint32_t at = (n * CHANNELS + c) * l + q;
        y[at] = apply(f->act, sum + (f->add ? rest[at] : 0));
      }
}

static void run(const struct form *f, const char *force, const char *passes_off) {
  const uint32_t numel = f->batch * CHANNELS * f->pixels;
  double *x = test_values(f->dtype, numel, 1), *w = test_values(f->dtype, CHANNELS * DEEP, 2);
  double *bias = test_values(f->dtype, CHANNELS, 3), *rest = test_values(f->dtype, numel, 4);
  double *want = malloc(numel * sizeof *want);
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  t.graph.passes_off = passes_off;
  struct ids i = build(&t, f, w, bias);
  CHECK_OK(op_load(&t, force, &err), err);
  CHECK_EQ(t.graph.n_nodes > 1, passes_off != NULL);
  for (uint32_t batch = f->batch; batch + 1 > 0 && !test_failed(); batch--) { /* down to none */
    op_set(&t, i.x, DIMS(batch, f->depthwise ? CHANNELS : DEEP, f->pixels), x);
    if (f->add) op_set(&t, i.rest, DIMS(batch, CHANNELS, f->pixels), rest);
    CHECK_OK(op_run(&t, &err), err);
    uint64_t n;
    const double *got = op_get(&t, i.y, &n);
    CHECK_EQ(n, batch * CHANNELS * f->pixels);
    expect(f, batch, x, w, bias, rest, want);
    if (!test_failed()) test_close(got, want, n, 3e-6, f->dtype == VK_FLOAT16 ? 6e-4 : 2e-6, "y");
  }
  op_end(&t);
  free(x);
  free(w);
  free(bias);
  free(rest);
  free(want);
}

static void every_form(void) {
  for (int i = 1; i < 2 * ACTS && !test_failed(); i++) {
    struct form f = {
        .act = (enum act)(i / 2), .add = i % 2, .swapped = i % 3 == 0, .batch = 2, .pixels = 6};
    f.dtype = VK_FLOAT32;
    run(&f, NULL, NULL);
    run(&f, NULL, "conv");
    f.dtype = VK_FLOAT16;
    f.pixels = 7;
    run(&f, NULL, NULL);
  }
}

/* Every way in which kernels store: quads, pairs, one by one, phases. */
static void every_row_adds(void) {
  for (const struct kernel *row = conv_kernels; row->name && !test_failed(); row++)
    for (uint32_t i = 0; i < 4; i++) {
      struct form f = {.act = HARDSWISH, .add = true, .batch = 2, .pixels = 6 + i % 3};
      f.transposed = i == 3;
      f.depthwise = strstr(row->name, "depthwise") != NULL && !f.transposed;
      f.dtype = row->dtypes == OF_F32 ? VK_FLOAT32 : VK_FLOAT16;
      run(&f, row->name, NULL);
    }
}

/* Same values, but seen by somebody else, or not the same sum. */
enum miss { READER, OUTPUT, ALPHA, BROADCAST, TWICE, BOUNDED, MISSES };
static uint32_t build_miss(struct op_test *t, enum miss miss, const double *w, const double *bias) {
  const struct form f = {.batch = 1, .pixels = 6, .dtype = VK_FLOAT32};
  const uint32_t dims[] = {1, CHANNELS, 6};
  uint32_t x = op_input(t, VK_FLOAT32, DIMS(1, DEEP, 6));
  uint32_t rest = op_input(t, VK_FLOAT32, DIMS(1, CHANNELS, miss == BROADCAST ? 1 : 6));
  uint32_t y = (miss == OUTPUT ? op_output : op_tensor)(t, VK_FLOAT32, dims, 3);
  uint32_t sum = op_output(t, VK_FLOAT32, dims, 3);
  if (miss == BOUNDED) {
    uint32_t ones = op_ints(t, INTS(1)), none = op_ints(t, INTS(0));
    op_node(t, "et_vk.conv_with_clamp.default",
            IDS(x, op_constant(t, VK_FLOAT32, DIMS(CHANNELS, DEEP, 1), w),
                op_constant(t, VK_FLOAT32, DIMS(CHANNELS), bias), ones, none, ones,
                op_bool(t, false), none, op_int(t, 1), op_double(t, -9), op_double(t, 9), y));
  } else {
    add_conv(t, &f, w, bias, x, y);
  }
  if (miss == READER) op_node(t, "aten.neg.default", IDS(y, op_output(t, VK_FLOAT32, dims, 3)));
  op_node(t, "aten.add.Tensor",
          IDS(y, miss == TWICE ? y : rest, op_int(t, miss == ALPHA ? 2 : 1), sum));
  return sum;
}

static void near_misses(void) {
  double *w = test_values(VK_FLOAT32, CHANNELS * DEEP, 2);
  double *bias = test_values(VK_FLOAT32, CHANNELS, 3), *x = test_values(VK_FLOAT32, DEEP * 6, 1);
  double *rest = test_values(VK_FLOAT32, CHANNELS * 6, 4), want[CHANNELS * 6];
  for (enum miss miss = 0; miss < MISSES && !test_failed(); miss++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t sum = build_miss(&t, miss, w, bias);
    REQUIRE_OK(op_load(&t, NULL, &err), err);
    CHECK_EQ(t.graph.n_nodes, miss == READER ? 3 : 2);
    op_set(&t, t.inputs[0], DIMS(1, DEEP, 6), x);
    op_set(&t, t.inputs[1], DIMS(1, CHANNELS, miss == BROADCAST ? 1 : 6), rest);
    CHECK_OK(op_run(&t, &err), err);
    expect(&(struct form){.pixels = 6}, 1, x, w, bias, NULL, want);
    for (uint32_t i = 0; i < CHANNELS * 6; i++)
      want[i] +=
          miss == TWICE ? want[i] : (miss == ALPHA ? 2 : 1) * rest[miss == BROADCAST ? i / 6 : i];
    uint64_t n;
    const double *got = op_get(&t, sum, &n);
    if (!test_failed()) test_close(got, want, n, 3e-6, 2e-6, "sum");
    op_end(&t);
  }
  free(w);
  free(bias);
  free(x);
  free(rest);
}

/* Live dims that broadcast: the parts run, and the fused kernel again when they are equal. */
static void broadcast_live(void) {
  const struct form f = {.add = true, .batch = 2, .pixels = 6, .dtype = VK_FLOAT32};
  double *x = test_values(VK_FLOAT32, 2 * DEEP * 6, 1), *w = test_values(VK_FLOAT32, 60, 2);
  double *bias = test_values(VK_FLOAT32, CHANNELS, 3), *rest = test_values(VK_FLOAT32, 144, 4);
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  struct ids i = build(&t, &f, w, bias);
  REQUIRE_OK(op_load(&t, NULL, &err), err);
  for (uint32_t batch = 1; batch <= 2; batch++) {
    double copies[144], want[144];
    for (uint32_t k = 0; k < 144; k++) copies[k] = rest[batch == 1 ? k % 72 : k];
    op_set(&t, i.x, DIMS(2, DEEP, 6), x);
    op_set(&t, i.rest, DIMS(batch, CHANNELS, 6), rest);
    CHECK_OK(op_run(&t, &err), err);
    CHECK_EQ(t.graph.nodes[0].n_records, batch == 1 ? 2 : 1);
    expect(&f, 2, x, w, bias, copies, want);
    uint64_t n;
    const double *got = op_get(&t, i.y, &n);
    if (!test_failed()) test_close(got, want, n, 3e-6, 2e-6, "y");
  }
  op_end(&t);
  free(x);
  free(w);
  free(bias);
  free(rest);
}

const struct test suite_conv_fuse[] = {
    TEST(every_form), TEST(every_row_adds), TEST(near_misses), TEST(broadcast_live), {0}};
