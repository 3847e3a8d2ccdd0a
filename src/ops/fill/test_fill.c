/* Fills and progressions of every dtype. */
#include "op.h"

static void fills(void) {
  static const enum vk_dtype dtypes[] = {VK_FLOAT32, VK_FLOAT16, VK_INT32,
                                         VK_INT8,    VK_UINT8,   VK_BOOL};
  for (size_t d = 0; d < 6; d++) {
    enum vk_dtype dtype = dtypes[d];
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t x = op_input(&t, dtype, DIMS(5, 7)), rows = op_symint(&t), null = op_null(&t);
    uint32_t size = op_list(&t, IDS(rows, op_int(&t, 3)));
    uint32_t full = op_output(&t, dtype, DIMS(6, 3)), like = op_output(&t, dtype, DIMS(5, 7));
    uint32_t ones = op_output(&t, dtype, DIMS(6, 3)), zeros = op_output(&t, dtype, DIMS(5, 7));
    uint32_t scalar = op_output(&t, dtype, NULL, 0), scalar_out = op_output(&t, dtype, NULL, 0);
    uint32_t full_out = op_output(&t, dtype, DIMS(6, 3)),
             like_out = op_output(&t, dtype, DIMS(5, 7));
    uint32_t none = op_output(&t, dtype, DIMS(6, 3)), ones_like = op_output(&t, dtype, DIMS(5, 7));
    op_node(&t, "aten.full.default", IDS(size, op_double(&t, 3), null, null, null, null, full));
    op_node(&t, "aten.full_like.default",
            IDS(x, op_bool(&t, true), null, null, null, null, null, like));
    op_node(&t, "aten.ones.default", IDS(size, null, null, null, null, ones));
    op_node(&t, "aten.zeros_like.default", IDS(x, null, null, null, null, null, zeros));
    op_node(&t, "aten.scalar_tensor.default", IDS(op_int(&t, 7), null, null, null, null, scalar));
    op_node(&t, "aten::scalar_tensor.out", IDS(op_double(&t, 5), scalar_out));
    op_node(&t, "aten::full.out", IDS(size, op_int(&t, 2), full_out));
    op_node(&t, "aten::full_like.out", IDS(x, op_double(&t, 4), null, like_out));
    op_node(&t, "aten.zeros.default", IDS(size, null, null, null, null, none));
    op_node(&t, "aten.ones_like.default", IDS(x, null, null, null, null, null, ones_like));
    CHECK_OK(op_load(&t, NULL, &err), err);
    double values[35] = {0};
    static const uint32_t lives[] = {5, 1, 0, 3};
    for (size_t i = 0; i < 4 && !test_failed(); i++) {
      op_set(&t, x, DIMS(lives[i], 7), values);
      op_set_symint(&t, rows, lives[i] + 1);
      CHECK_OK(op_run(&t, &err), err);
      bool b = dtype == VK_BOOL;
      const struct {
        uint32_t id;
        uint64_t n;
        double value;
      } wants[] = {{full, (lives[i] + 1) * 3, b ? 1 : 3},
                   {like, lives[i] * 7, 1},
                   {ones, (lives[i] + 1) * 3, 1},
                   {zeros, lives[i] * 7, 0},
                   {scalar, 1, b ? 1 : 7},
                   {scalar_out, 1, b ? 1 : 5},
                   {full_out, (lives[i] + 1) * 3, b ? 1 : 2},
                   {like_out, lives[i] * 7, b ? 1 : 4},
                   {none, (lives[i] + 1) * 3, 0},
                   {ones_like, lives[i] * 7, 1}};
      for (size_t k = 0; k < sizeof wants / sizeof *wants; k++) {
        uint64_t n;
        const double *got = op_get(&t, wants[k].id, &n);
        CHECK_EQ(n, wants[k].n);
        for (uint64_t e = 0; e < n; e++) CHECK_EQ((int)got[e], (int)wants[k].value);
      }
    }
    op_end(&t);
  }
}

static void progressions(void) {
  static const struct {
    enum vk_dtype dtype;
    double start, end, step;
    uint32_t n;
  } cases[] = {{VK_INT32, 3, 11, 2, 4},
               {VK_FLOAT32, 0, 1, 0.25, 4},
               {VK_FLOAT16, 5, 1.5, -0.5, 7},
               {VK_INT32, 0, 300000, 1, 300000},
               {VK_INT32, 2, 2, 1, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t null = op_null(&t),
             y = op_output(&t, cases[i].dtype, DIMS(cases[i].n ? cases[i].n : 1));
    op_node(&t, "aten.arange.start_step",
            IDS(op_double(&t, cases[i].start), op_double(&t, cases[i].end),
                op_double(&t, cases[i].step), null, null, null, null, y));
    CHECK_OK(op_load(&t, NULL, &err), err);
    CHECK_OK(op_run(&t, &err), err);
    uint64_t n, wrong = 0;
    const double *got = op_get(&t, y, &n);
    CHECK_EQ(n, cases[i].n);
    for (uint64_t e = 0; e < n; e++) wrong += got[e] != cases[i].start + (double)e * cases[i].step;
    CHECK_EQ(wrong, 0);
    op_end(&t);
  }
}

/* Under their other names: without dtype, layout, device and pin_memory, or with some of them. */
static void other_names(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_INT32, DIMS(2, 3)), null = op_null(&t), outs[10];
  uint32_t size = op_ints(&t, INTS(2, 3));
  for (int i = 0; i < 10; i++)
    outs[i] = op_output(&t, VK_INT32, i < 8 ? (uint32_t[]){2, 3} : (uint32_t[]){4}, i < 8 ? 2 : 1);
  op_node(&t, "aten::zeros.out", IDS(size, outs[0]));
  op_node(&t, "aten::ones.out", IDS(size, outs[1]));
  op_node(&t, "aten.empty.memory_format", IDS(size, null, null, null, null, null, outs[2]));
  op_node(&t, "aten::empty.out", IDS(size, null, outs[3]));
  op_node(&t, "dim_order_ops._empty_dim_order.default",
          IDS(size, null, null, null, null, null, outs[4]));
  op_node(&t, "dim_order_ops::_empty_dim_order.out", IDS(size, null, outs[5]));
  op_node(&t, "aten.fill.Scalar", IDS(x, op_int(&t, 7), outs[6]));
  op_node(&t, "aten::fill.Scalar_out", IDS(x, op_double(&t, -2), outs[7]));
  op_node(&t, "aten::arange.out", IDS(op_int(&t, 4), outs[8]));
  op_node(&t, "aten::arange.start_out",
          IDS(op_int(&t, 3), op_int(&t, 10), op_double(&t, 2), outs[9]));
  CHECK_OK(op_load(&t, NULL, &err), err);
  op_set(&t, x, DIMS(2, 3), (double[6]){0});
  CHECK_OK(op_run(&t, &err), err);
  static const double firsts[10] = {0, 1, 0, 0, 0, 0, 7, -2, 0, 3}, steps[10] = {[8] = 1, [9] = 2};
  for (int i = 0; i < 10; i++) {
    uint64_t n;
    const double *got = op_get(&t, outs[i], &n);
    CHECK_EQ(n, i < 8 ? 6 : 4);
    for (uint64_t e = 0; e < n; e++) CHECK_EQ(got[e], firsts[i] + steps[i] * (double)e);
  }
  op_end(&t);
}

static void refuses(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t null = op_null(&t), y = op_output(&t, VK_INT32, DIMS(4));
  op_node(&t, "aten.arange.start_step",
          IDS(op_int(&t, 0), op_int(&t, 4), op_int(&t, 0), null, null, null, null, y));
  CHECK_OK(op_load(&t, NULL, &err), err);
  CHECK_EQ(op_run(&t, &err), SCONCE_BAD_ARGUMENT);
  CHECK(strstr(err.text, "in steps of 0") != NULL);
  op_end(&t);
}

const struct test suite_fill[] = {
    TEST(fills), TEST(progressions), TEST(other_names), TEST(refuses), {0}};
