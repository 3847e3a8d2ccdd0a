/* What the pass `linear` makes of a product, an activation and a sum, and what it must leave. */
#include "op.h"

#include "ops/linear/product.h"

enum act { NO_ACT, RELU, GELU, GELU_TANH, SILU, ACTS };

static double apply(enum act act, double x) {
  switch (act) {
  case RELU:
    return fmax(x, 0);
  case GELU:
    return 0.5 * x * (1 + erf(x / sqrt(2)));
  case GELU_TANH:
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
  case SILU:
    return x / (1 + exp(-x));
  default:
    return x;
  }
}

struct form {
  enum act act;
  bool add, swapped, views; /* swapped: rest + y instead of y + rest; views: dims of 1 in between */
  uint32_t rows, deep, cols;
  enum vk_dtype dtype;
};

struct ids {
  uint32_t x, rest, y;
};

static uint32_t tensor(struct op_test *t, const struct form *f, bool last) {
  const uint32_t dims[] = {1, f->rows, f->cols};
  return (last ? op_output : op_tensor)(t, f->dtype, dims, 3);
}

/* (1, rows, cols) as (rows, 1, cols) and back, as exporters write it. */
static uint32_t add_views(struct op_test *t, const struct form *f, uint32_t y) {
  if (!f->views) return y;
  const uint32_t turned = op_tensor(t, f->dtype, DIMS(f->rows, 1, f->cols));
  const uint32_t back = tensor(t, f, false);
  op_node(t, "aten.permute_copy.default", IDS(y, op_ints(t, INTS(1, 0, 2)), turned));
  op_node(t, "aten.transpose_copy.int", IDS(turned, op_int(t, 0), op_int(t, 1), back));
  return back;
}

static struct ids build(struct op_test *t, const struct form *f, const double *w,
                        const double *bias) {
  struct ids i = {.rest = NO_VALUE};
  i.x = op_input(t, f->dtype, DIMS(1, f->rows, f->deep));
  if (f->add) i.rest = op_input(t, f->dtype, DIMS(1, f->rows, f->cols));
  uint32_t y = tensor(t, f, f->act == NO_ACT && !f->add);
  op_node(t, "aten.linear.default",
          IDS(i.x, op_constant(t, f->dtype, DIMS(f->cols, f->deep), w),
              op_constant(t, f->dtype, DIMS(f->cols), bias), y));
  if (f->act != NO_ACT) {
    static const char *const names[ACTS] = {[RELU] = "aten.relu.default",
                                            [GELU] = "aten.gelu.default",
                                            [GELU_TANH] = "aten.gelu.default",
                                            [SILU] = "aten.silu.default"};
    const uint32_t from = add_views(t, f, y);
    y = tensor(t, f, !f->add);
    if (f->act == GELU || f->act == GELU_TANH)
      op_node(t, names[f->act], IDS(from, op_text(t, f->act == GELU ? "none" : "tanh"), y));
    else
      op_node(t, names[f->act], IDS(from, y));
  }
  if (f->add) {
    const uint32_t from = add_views(t, f, y);
    y = tensor(t, f, true);
    op_node(t, "aten.add.Tensor",
            IDS(f->swapped ? i.rest : from, f->swapped ? from : i.rest, op_int(t, 1), y));
  }
  i.y = y;
  return i;
}

static void expect(const struct form *f, uint32_t rows, const double *x, const double *w,
                   const double *bias, const double *rest, double *y) {
  for (uint32_t m = 0; m < rows; m++)
    for (uint32_t n = 0; n < f->cols; n++) {
      double sum = bias[n];
      for (uint32_t k = 0; k < f->deep; k++) sum += x[m * f->deep + k] * w[n * f->deep + k];
      y[m * f->cols + n] = apply(f->act, sum) + (f->add ? rest[m * f->cols + n] : 0);
    }
}

static void run(const struct form *f, const char *force, const char *passes_off) {
  double *x = test_values(f->dtype, (uint64_t)f->rows * f->deep, 1);
  double *w = test_values(f->dtype, (uint64_t)f->cols * f->deep, 2);
  double *bias = test_values(f->dtype, f->cols, 3);
  double *rest = test_values(f->dtype, (uint64_t)f->rows * f->cols, 4);
  double *want = malloc((size_t)f->rows * f->cols * sizeof *want);
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  t.graph.passes_off = passes_off;
  const struct ids i = build(&t, f, w, bias);
  CHECK_OK(op_load(&t, force, &err), err);
  if (!passes_off) CHECK_EQ(t.graph.n_nodes, 1);
  const uint32_t live[] = {f->rows, 1, f->rows / 2};
  for (int c = 0; c < 3 && !test_failed(); c++) {
    op_set(&t, i.x, DIMS(1, live[c], f->deep), x);
    if (f->add) op_set(&t, i.rest, DIMS(1, live[c], f->cols), rest);
    CHECK_OK(op_run(&t, &err), err);
    expect(f, live[c], x, w, bias, rest, want);
    uint64_t n;
    const double *got = op_get(&t, i.y, &n);
    CHECK_EQ(n, (uint64_t)live[c] * f->cols);
    if (!test_failed())
      test_close(got, want, n, f->dtype == VK_FLOAT16 ? 2e-3 : 2e-6 * sqrt(f->deep),
                 f->dtype == VK_FLOAT16 ? 2e-3 : 2e-6, force ? force : "a form");
  }
  op_end(&t);
  free(x);
  free(w);
  free(bias);
  free(rest);
  free(want);
}

/* Vectors, tiles, and slices that a second kernel adds up. */
static void every_form(void) {
  static const uint32_t sizes[][3] = {{4, 8, 6}, {40, 1028, 72}, {3, 5, 7}};
  for (enum act act = NO_ACT; act < ACTS; act++)
    for (uint32_t how = 0; how < 8 && !test_failed(); how++) {
      const uint32_t *size = sizes[(act + how) % 3];
      struct form f = {act, how & 1, how & 2, how & 4, size[0], size[1], size[2], VK_FLOAT32};
      if (act == NO_ACT && !f.add) continue;
      run(&f, NULL, NULL);
      run(&f, NULL, "linear");
      f.dtype = VK_FLOAT16;
      if (size[2] % 2 == 0) run(&f, NULL, NULL);
    }
}

static void every_row_ends(void) {
  for (const struct kernel *row = product_kernels; row->name && !test_failed(); row++) {
    if (strstr(row->name, "_kn") || row->dtypes == OF_I32) continue;
    const struct form f = {GELU, true, false, false,
                           6,    264,  12,    row->dtypes == OF_F16 ? VK_FLOAT16 : VK_FLOAT32};
    run(&f, row->name, NULL);
  }
}

/* Same values, but seen by somebody else, or not the same sum. */
enum miss { READER, OUTPUT, ALPHA, BROADCAST, TWICE, MISSES };
static void near_misses(void) {
  enum { ROWS = 4, DEEP = 8, COLS = 6 };
  const struct form f = {.rows = ROWS, .deep = DEEP, .cols = COLS};
  double *x = test_values(VK_FLOAT32, ROWS * DEEP, 1), *w = test_values(VK_FLOAT32, COLS * DEEP, 2);
  double *bias = test_values(VK_FLOAT32, COLS, 3), *rest = test_values(VK_FLOAT32, ROWS * COLS, 4);
  for (enum miss miss = 0; miss < MISSES && !test_failed(); miss++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    const uint32_t ix = op_input(&t, VK_FLOAT32, DIMS(1, ROWS, DEEP));
    const uint32_t rows = miss == BROADCAST ? 1 : ROWS;
    const uint32_t ir = op_input(&t, VK_FLOAT32, DIMS(1, rows, COLS));
    const uint32_t y =
        (miss == OUTPUT ? op_output : op_tensor)(&t, VK_FLOAT32, DIMS(1, ROWS, COLS));
    const uint32_t sum = op_output(&t, VK_FLOAT32, DIMS(1, ROWS, COLS));
    op_node(&t, "aten.linear.default",
            IDS(ix, op_constant(&t, VK_FLOAT32, DIMS(COLS, DEEP), w),
                op_constant(&t, VK_FLOAT32, DIMS(COLS), bias), y));
    if (miss == READER)
      op_node(&t, "aten.neg.default", IDS(y, op_output(&t, VK_FLOAT32, DIMS(1, ROWS, COLS))));
    op_node(&t, "aten.add.Tensor",
            IDS(y, miss == TWICE ? y : ir, op_int(&t, miss == ALPHA ? 2 : 1), sum));
    REQUIRE_OK(op_load(&t, NULL, &err), err);
    CHECK_EQ(t.graph.n_nodes, miss == READER ? 3 : 2);
    op_set(&t, ix, DIMS(1, ROWS, DEEP), x);
    op_set(&t, ir, DIMS(1, rows, COLS), rest);
    CHECK_OK(op_run(&t, &err), err);
    double want[ROWS * COLS];
    expect(&f, ROWS, x, w, bias, NULL, want);
    for (uint32_t i = 0; i < ROWS * COLS; i++)
      want[i] += miss == TWICE ? want[i]
                               : (miss == ALPHA ? 2 : 1) * rest[miss == BROADCAST ? i % COLS : i];
    uint64_t n;
    const double *got = op_get(&t, sum, &n);
    if (!test_failed()) test_close(got, want, n, 1e-5, 2e-6, "sum");
    op_end(&t);
  }
  free(x);
  free(w);
  free(bias);
  free(rest);
}

/* Q, K and V of one weight, each written where it is read; with live rows, and with an offset that
 * may not be bound or a bias that is no row: then the nodes run as they came. */
static void cut(uint32_t wide, uint32_t bias_rows, bool fits) {
  enum { ROWS = 21, DEEP = 12, PARTS = 3 };
  const struct form f = {.rows = ROWS, .deep = DEEP, .cols = PARTS * wide};
  double *x = test_values(VK_FLOAT32, ROWS * DEEP, 1);
  double *w = test_values(VK_FLOAT32, (uint64_t)f.cols * DEEP, 2);
  double *bias = test_values(VK_FLOAT32, (uint64_t)ROWS * f.cols, 3);
  for (uint32_t i = f.cols; i < ROWS * f.cols; i++) bias[i] = bias[i % f.cols] + i / f.cols;
  double *whole = malloc((size_t)ROWS * f.cols * sizeof *whole);
  double *want = malloc((size_t)ROWS * wide * sizeof *want);
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  const uint32_t ix = op_input(&t, VK_FLOAT32, DIMS(1, ROWS, DEEP));
  const uint32_t y = op_tensor(&t, VK_FLOAT32, DIMS(1, ROWS, f.cols));
  const uint32_t split = op_tensor(&t, VK_FLOAT32, DIMS(1, ROWS, PARTS, wide));
  const uint32_t turned = op_tensor(&t, VK_FLOAT32, DIMS(PARTS, ROWS, 1, wide));
  uint32_t parts[PARTS];
  op_node(&t, "aten.linear.default",
          IDS(ix, op_constant(&t, VK_FLOAT32, DIMS(f.cols, DEEP), w),
              op_constant(&t, VK_FLOAT32, DIMS(bias_rows, f.cols), bias), y));
  op_node(&t, "aten.view_copy.default", IDS(y, op_ints(&t, INTS(1, -1, PARTS, wide)), split));
  op_node(&t, "aten.permute_copy.default", IDS(split, op_ints(&t, INTS(2, 1, 0, 3)), turned));
  for (int i = 0; i < PARTS; i++) {
    parts[i] = op_output(&t, VK_FLOAT32, DIMS(ROWS, 1, wide));
    op_node(&t, "aten.select_copy.int", IDS(turned, op_int(&t, 0), op_int(&t, i), parts[i]));
  }
  REQUIRE_OK(op_load(&t, NULL, &err), err);
  CHECK_EQ(t.graph.n_nodes, 1);
  for (uint32_t rows = ROWS; rows > 0 && !test_failed(); rows = bias_rows > 1 ? 0 : rows / 4) {
    op_set(&t, ix, DIMS(1, rows, DEEP), x);
    CHECK_OK(op_run(&t, &err), err);
    CHECK_EQ(t.graph.nodes[0].n_records == PARTS, fits);
    expect(&f, rows, x, w, bias, NULL, whole);
    for (uint32_t i = 0; i < rows * f.cols && bias_rows > 1; i++) whole[i] += i / f.cols;
    for (uint32_t i = 0; i < PARTS; i++) {
      for (uint32_t k = 0; k < rows * wide; k++)
        want[k] = whole[k / wide * f.cols + i * wide + k % wide];
      uint64_t n;
      const double *got = op_get(&t, parts[i], &n);
      CHECK_EQ(n, (uint64_t)rows * wide);
      if (!test_failed()) test_close(got, want, n, 1e-5, 2e-6, "a part");
    }
  }
  op_end(&t);
  free(x);
  free(w);
  free(bias);
  free(whole);
  free(want);
}

static void parts_of_a_product(void) {
  cut(64, 1, true);
  cut(5, 1, false);
  cut(64, 21, false);
}

const struct test suite_linear_fuse[] = {
    TEST(every_form), TEST(every_row_ends), TEST(near_misses), TEST(parts_of_a_product), {0}};
