/* Results whose size depends on elements, in one graph through calls that give more and fewer. */
#include "op.h"

enum { ROWS = 5, COLS = 3, MOST = ROWS * COLS };

/* Elements that are not zero: none, all, every third one. */
static void pattern(int call, uint32_t n, double *x) {
  for (uint32_t i = 0; i < n; i++)
    x[i] = call == 1 ? 0 : call == 2 ? 1 + i % 4 : i % 3 == 0 ? 1 + i % 7 : 0;
}

static void nonzero(void) {
  static const enum vk_dtype dtypes[] = {VK_FLOAT32, VK_FLOAT16, VK_INT32, VK_BOOL, VK_UINT8};
  static const uint32_t lives[] = {ROWS, ROWS, 3, 0, 1};
  for (size_t d = 0; d < 5; d++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t x = op_input(&t, dtypes[d], DIMS(ROWS, COLS)),
             y = op_output(&t, VK_INT32, DIMS(MOST, 2));
    op_node(&t, "aten::nonzero.out", IDS(x, y));
    CHECK_OK(op_load(&t, NULL, &err), err);
    for (int call = 0; call < 5 && !test_failed(); call++) {
      double values[MOST], want[2 * MOST];
      uint64_t n, count = 0;
      pattern(call, MOST, values);
      for (uint32_t i = 0; i < MOST && dtypes[d] == VK_BOOL; i++) values[i] = values[i] != 0;
      for (uint32_t i = 0; i < lives[call] * COLS; i++)
        if (values[i] != 0) want[count++] = i / COLS, want[count++] = i % COLS;
      op_set(&t, x, DIMS(lives[call], COLS), values);
      CHECK_OK(op_run(&t, &err), err);
      const double *got = op_get(&t, y, &n);
      CHECK_EQ(n, count);
      if (n == count && n) test_close(got, want, n, 0, 0, "places");
    }
    op_end(&t);
  }
}

/* The mask is a column that all columns of x share. */
static void masked(void) {
  static const enum vk_dtype dtypes[] = {VK_FLOAT32, VK_FLOAT16, VK_INT8, VK_BOOL};
  for (size_t d = 0; d < 4; d++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t x = op_input(&t, dtypes[d], DIMS(ROWS, COLS)),
             m = op_input(&t, VK_BOOL, DIMS(ROWS, 1)), s = op_input(&t, dtypes[d], DIMS(MOST));
    uint32_t some = op_output(&t, dtypes[d], DIMS(MOST)),
             put = op_output(&t, dtypes[d], DIMS(ROWS, COLS));
    op_node(&t, "aten::masked_select.out", IDS(x, m, some));
    op_node(&t, "aten::masked_scatter.out", IDS(x, m, s, put));
    CHECK_OK(op_load(&t, NULL, &err), err);
    for (int call = 0; call < 4 && !test_failed(); call++) {
      const uint32_t live = call == 3 ? 2 : ROWS;
      double values[MOST], mask[ROWS], source[MOST], want[MOST], all[MOST];
      uint64_t n, count = 0;
      pattern(call, ROWS, mask);
      for (uint32_t i = 0; i < ROWS; i++) mask[i] = mask[i] != 0;
      for (uint32_t i = 0; i < MOST; i++) {
        values[i] = dtypes[d] == VK_BOOL ? i % 2 : i + 1;
        source[i] = dtypes[d] == VK_BOOL ? i % 3 == 1 : 100 - (double)i;
      }
      for (uint32_t i = 0; i < live * COLS; i++) {
        all[i] = mask[i / COLS] != 0 ? source[count] : values[i];
        if (mask[i / COLS] != 0) want[count++] = values[i];
      }
      op_set(&t, x, DIMS(live, COLS), values);
      op_set(&t, m, DIMS(live, 1), mask);
      op_set(&t, s, DIMS(MOST), source);
      CHECK_OK(op_run(&t, &err), err);
      const double *got = op_get(&t, some, &n);
      CHECK_EQ(n, count);
      if (n == count && n) test_close(got, want, n, 0, 0, "selected");
      got = op_get(&t, put, &n);
      CHECK_EQ(n, live * COLS);
      test_close(got, all, n, 0, 0, "scattered");
    }
    op_end(&t);
  }
}

/* x[m] for a mask of rows, and for one of elements. */
static void indexed(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(ROWS, COLS)), m = op_input(&t, VK_BOOL, DIMS(ROWS)),
           k = op_input(&t, VK_BOOL, DIMS(ROWS, COLS));
  uint32_t rows = op_output(&t, VK_FLOAT32, DIMS(ROWS, COLS)),
           some = op_output(&t, VK_FLOAT32, DIMS(MOST));
  op_node(&t, "aten::index.Tensor_out", IDS(x, op_list(&t, IDS(m)), rows));
  op_node(&t, "aten::index.Tensor_out", IDS(x, op_list(&t, IDS(k)), some));
  CHECK_OK(op_load(&t, NULL, &err), err);
  for (int call = 0; call < 4 && !test_failed(); call++) {
    double values[MOST], mask[ROWS], all[MOST], want[MOST], want_some[MOST];
    uint64_t n, count = 0, count_some = 0;
    pattern(call, ROWS, mask);
    pattern((call + 1) % 4, MOST, all);
    for (uint32_t i = 0; i < MOST; i++) {
      values[i] = i + 0.5;
      all[i] = all[i] != 0;
      if (mask[i / COLS] != 0) want[count++] = values[i];
      if (all[i] != 0) want_some[count_some++] = values[i];
    }
    for (uint32_t i = 0; i < ROWS; i++) mask[i] = mask[i] != 0;
    op_set(&t, x, DIMS(ROWS, COLS), values);
    op_set(&t, m, DIMS(ROWS), mask);
    op_set(&t, k, DIMS(ROWS, COLS), all);
    CHECK_OK(op_run(&t, &err), err);
    const double *got = op_get(&t, rows, &n);
    CHECK_EQ(n, count);
    if (n == count && n) test_close(got, want, n, 0, 0, "rows");
    got = op_get(&t, some, &n);
    CHECK_EQ(n, count_some);
    if (n == count_some && n) test_close(got, want_some, n, 0, 0, "elements");
  }
  op_end(&t);
}

static void repeats(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_INT32, DIMS(4)), y = op_output(&t, VK_INT32, DIMS(20));
  op_node(&t, "aten::repeat_interleave.Tensor_out", IDS(x, op_null(&t), y));
  CHECK_OK(op_load(&t, NULL, &err), err);
  static const double calls[][4] = {{1, 3, 0, 2}, {0, 0, 0, 0}, {5, 5, 5, 5}, {0, 2, 0, 0}};
  for (int call = 0; call < 4; call++) {
    double want[20];
    uint64_t n, count = 0;
    for (int i = 0; i < 4; i++)
      for (int k = 0; k < (int)calls[call][i]; k++) want[count++] = i;
    op_set(&t, x, DIMS(4), calls[call]);
    CHECK_OK(op_run(&t, &err), err);
    const double *got = op_get(&t, y, &n);
    CHECK_EQ(n, count);
    if (n == count && n) test_close(got, want, n, 0, 0, "repeats");
  }
  op_set(&t, x, DIMS(4), (const double[]){9, 9, 9, 9});
  CHECK_FAILS(op_run(&t, &err), SCONCE_BAD_ARGUMENT, err, "dim 0 is 36, at most 20");
  op_end(&t);
}

const struct test suite_places[] = {TEST(nonzero), TEST(masked), TEST(indexed), TEST(repeats), {0}};
