/* rms_norm: rows of every kind of length, live row counts, both dtypes, against double. */
#include "op.h"

#include <float.h>

static const struct {
  uint32_t rows, cols;
  const char *why;
} cases[] = {
    {3, 1, "a row of one element: y is the weight's sign"},
    {5, 7, "an odd row: 2-byte elements share words across rows"},
    {4, 130, "even, no quads"},
    {9, 64, "one quad a thread, some threads idle"},
    {2, 2048, "a model's width"},
    {3, 1028, "a last turn of the loop with one thread"},
};
enum { CASES = sizeof cases / sizeof *cases };

static void oracle(const double *x, const double *w, uint64_t rows, uint32_t cols, double eps,
                   double *y) {
  for (uint64_t r = 0; r < rows; r++) {
    double sum = 0;
    for (uint32_t c = 0; c < cols; c++) sum += x[r * cols + c] * x[r * cols + c];
    for (uint32_t c = 0; c < cols; c++)
      y[r * cols + c] = x[r * cols + c] / sqrt(sum / cols + eps) * w[c];
  }
}

struct norm {
  struct op_test t;
  uint32_t x, y, cols;
  double *w;
};

/* eps: NULL_EPS leaves the argument out, else it is given as an Int if it is one. */
#define NULL_EPS (-1.0)
static void load(struct norm *m, enum vk_dtype dtype, uint32_t rows, uint32_t cols, double eps,
                 const char *force) {
  sconce_error err = {0};
  op_begin(&m->t);
  m->cols = cols;
  m->x = op_input(&m->t, dtype, DIMS(1, rows, cols));
  m->y = op_output(&m->t, dtype, DIMS(1, rows, cols));
  m->w = test_values(dtype, cols, 7);
  uint32_t w = op_constant(&m->t, dtype, DIMS(cols), m->w);
  uint32_t e = eps == NULL_EPS     ? op_null(&m->t)
               : eps == floor(eps) ? op_int(&m->t, (int64_t)eps)
                                   : op_double(&m->t, eps);
  op_node(&m->t, "et_vk.rms_norm.default", IDS(m->x, w, e, m->y));
  CHECK_OK(op_load(&m->t, force, &err), err);
}

static void unload(struct norm *m) {
  free(m->w);
  op_end(&m->t);
}

static void call(struct norm *m, enum vk_dtype dtype, uint32_t rows, double eps, const char *why) {
  if (test_failed()) return;
  sconce_error err = {0};
  double *x = test_values(dtype, (uint64_t)rows * m->cols, rows);
  double *want = malloc((size_t)(rows * m->cols + 1) * sizeof *want);
  op_set(&m->t, m->x, DIMS(1, rows, m->cols), x);
  CHECK_OK(op_run(&m->t, &err), err);
  uint64_t n;
  const double *got = op_get(&m->t, m->y, &n);
  CHECK_EQ(n, rows * m->cols);
  oracle(x, m->w, rows, m->cols, eps == NULL_EPS ? FLT_EPSILON : eps, want);
  double tolerance = dtype == VK_FLOAT16 ? 1e-3 : 2e-6;
  if (!test_failed()) test_close(got, want, n, tolerance, tolerance, why);
  free(x);
  free(want);
}

/* Does forcing this row add anything to the table's own choice? */
static bool worth(const char *force, size_t i, bool half) {
  if (!force) return true;
  bool quads = strncmp(force, "any", 3) != 0;
  return strstr(force, half ? "f16" : "f32") && (cases[i].cols % 4 == 0 || !quads);
}

static void every_length_and_row(void) {
  static const char *const force[] = {
      NULL, "quads_f32", "quads_f16", "subgroups_f32", "subgroups_f16", "any_f32", "any_f16"};
  for (size_t i = 0; i < CASES; i++)
    for (size_t f = 0; f < sizeof force / sizeof *force; f++)
      for (int half = 0; half < 2; half++) {
        if (!worth(force[f], i, half)) continue;
        enum vk_dtype dtype = half ? VK_FLOAT16 : VK_FLOAT32;
        struct norm m;
        load(&m, dtype, cases[i].rows, cases[i].cols, 1e-5, force[f]);
        call(&m, dtype, cases[i].rows, 1e-5, cases[i].why);
        unload(&m);
      }
}

static void more_rows_than_workgroups_in_one_dimension(void) {
  struct norm m;
  load(&m, VK_FLOAT32, 65540, 3, 1e-5, NULL);
  call(&m, VK_FLOAT32, 65540, 1e-5, "65,540 rows");
  unload(&m);
}

static void live_rows_come_and_go(void) {
  static const uint32_t rows[] = {9, 4, 1, 0, 3, 9};
  static const uint32_t cols[] = {5, 32};
  for (size_t k = 0; k < 2; k++)
    for (int half = 0; half < 2; half++) {
      enum vk_dtype dtype = half ? VK_FLOAT16 : VK_FLOAT32;
      struct norm m;
      load(&m, dtype, 9, cols[k], 1e-6, NULL);
      for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        call(&m, dtype, rows[i], 1e-6, "live rows");
      unload(&m);
    }
}

static void epsilon_may_be_absent_or_an_integer(void) {
  static const double eps[] = {NULL_EPS, 0, 1, 0.5};
  for (size_t i = 0; i < sizeof eps / sizeof *eps; i++) {
    struct norm m;
    load(&m, VK_FLOAT32, 3, 12, eps[i], NULL);
    call(&m, VK_FLOAT32, 3, eps[i], "epsilon");
    unload(&m);
  }
}

/* Weights of any shape that broadcasts, and rows that the weight multiplies. */
static void weights_that_broadcast(void) {
  static const struct {
    uint32_t rank_x, x[4], rank_w, w[4], y[4];
    const char *why;
  } rows[] = {
      {3, {2, 5, 24}, 3, {2, 5, 24}, {2, 5, 24}, "a gate"},
      {3, {2, 5, 24}, 3, {2, 1, 24}, {2, 5, 24}, "a modulation"},
      {3, {2, 5, 7}, 1, {1}, {2, 5, 7}, "one number, an odd row"},
      {4, {1, 5, 4, 16}, 4, {1, 5, 1, 16}, {1, 5, 4, 16}, "a table before a rotation"},
      {4, {1, 3, 4, 6}, 2, {4, 1}, {1, 3, 4, 6}, "a number for each head"},
      {3, {1, 3, 5}, 3, {2, 3, 5}, {2, 3, 5}, "more rows than x"},
      {2, {3, 1}, 2, {3, 5}, {3, 5}, "more columns than x"},
      {1, {9}, 2, {4, 9}, {4, 9}, "a higher rank than x"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (int half = 0; half < 2; half++) {
      const enum vk_dtype dtype = half ? VK_FLOAT16 : VK_FLOAT32;
      const uint32_t rank = rows[i].rank_x > rows[i].rank_w ? rows[i].rank_x : rows[i].rank_w;
      struct op_test t;
      sconce_error err = {0};
      op_begin(&t);
      uint32_t x = op_input(&t, dtype, rows[i].x, rows[i].rank_x),
               w = op_input(&t, dtype, rows[i].w, rows[i].rank_w),
               y = op_output(&t, dtype, rows[i].y, rank);
      op_node(&t, "et_vk.rms_norm.default", IDS(x, w, op_double(&t, 1e-5), y));
      CHECK_OK(op_load(&t, NULL, &err), err);
      uint64_t n_x = 1, n_w = 1, n = 1, got_n;
      for (uint32_t d = 0; d < rows[i].rank_x; d++) n_x *= rows[i].x[d];
      for (uint32_t d = 0; d < rows[i].rank_w; d++) n_w *= rows[i].w[d];
      for (uint32_t d = 0; d < rank; d++) n *= rows[i].y[d];
      double *a = test_values(dtype, n_x, 1), *b = test_values(dtype, n_w, 2);
      double *want = malloc((size_t)n * sizeof *want);
      op_set(&t, x, rows[i].x, rows[i].rank_x, a);
      op_set(&t, w, rows[i].w, rows[i].rank_w, b);
      CHECK_OK(op_run(&t, &err), err);
      for (uint64_t e = 0; e < n; e++) {
        uint64_t rest = e, at_x = 0, at_w = 0, step_x = 1, step_w = 1;
        for (uint32_t d = 1; d <= rank; d++) {
          const uint64_t c = rest % rows[i].y[rank - d];
          rest /= rows[i].y[rank - d];
          const uint32_t dim_x = d <= rows[i].rank_x ? rows[i].x[rows[i].rank_x - d] : 1;
          const uint32_t dim_w = d <= rows[i].rank_w ? rows[i].w[rows[i].rank_w - d] : 1;
          at_x += dim_x > 1 ? c * step_x : 0, step_x *= dim_x;
          at_w += dim_w > 1 ? c * step_w : 0, step_w *= dim_w;
        }
        const uint64_t cols = rows[i].x[rows[i].rank_x - 1], first = at_x / cols * cols;
        double squares = 0;
        for (uint64_t k = 0; k < cols; k++) squares += a[first + k] * a[first + k];
        want[e] = a[at_x] / sqrt(squares / (double)cols + 1e-5) * b[at_w];
      }
      const double *got = op_get(&t, y, &got_n);
      CHECK_EQ(got_n, n);
      const double tolerance = half ? 2e-3 : 4e-6;
      if (!test_failed()) test_close(got, want, n, tolerance, tolerance, rows[i].why);
      free(a), free(b), free(want);
      op_end(&t);
    }
}

static void bad_arguments_are_refused(void) {
  static const struct {
    enum vk_dtype x, w;
    uint32_t weight;
    sconce_status status;
    const char *says;
  } bad[] = {
      {VK_FLOAT32, VK_FLOAT16, 8, SCONCE_BAD_GRAPH, "with the weight float16 [8]"},
      {VK_INT32, VK_INT32, 8, SCONCE_UNSUPPORTED, "the norm of int32 [2, 8]"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t x = op_input(&t, bad[i].x, DIMS(2, 8)), w = op_input(&t, bad[i].w, &bad[i].weight, 1);
    uint32_t y = op_output(&t, bad[i].x, DIMS(2, 8));
    op_node(&t, "et_vk.rms_norm.default", IDS(x, w, op_null(&t), y));
    CHECK_FAILS(op_try(&t, &err), bad[i].status, err, bad[i].says);
    op_end(&t);
  }
}

const struct test suite_rms_norm[] = {TEST(every_length_and_row),
                                      TEST(more_rows_than_workgroups_in_one_dimension),
                                      TEST(live_rows_come_and_go),
                                      TEST(epsilon_may_be_absent_or_an_integer),
                                      TEST(weights_that_broadcast),
                                      TEST(bad_arguments_are_refused),
                                      {0}};
