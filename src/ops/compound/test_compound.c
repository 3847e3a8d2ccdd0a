/* Operators that are a few others, against what they mean. */
#include "op.h"

static void check(const char *name, struct op_test *t, uint32_t x, uint32_t n_x, const double *of_x,
                  uint32_t y, const double *want, uint64_t n) {
  sconce_error err = {0};
  CHECK_OK(op_load(t, NULL, &err), err);
  if (t->loaded) {
    op_set(t, x, DIMS(2, n_x / 2), of_x);
    CHECK_OK(op_run(t, &err), err);
    uint64_t got_n;
    const double *got = op_get(t, y, &got_n);
    CHECK_EQ(got_n, n);
    if (!test_failed()) test_close(got, want, n, 1e-6, 1e-6, name);
  }
  op_end(t);
}

static const double numbers[6] = {0, -2, 0, 0, 0, 0};

static void any_of_dims(void) {
  static const enum vk_dtype dtypes[] = {VK_FLOAT32, VK_FLOAT16, VK_INT32, VK_BOOL};
  for (size_t i = 0; i < 4; i++) {
    double of_x[6];
    for (int k = 0; k < 6; k++) of_x[k] = dtypes[i] == VK_BOOL ? numbers[k] != 0 : numbers[k];
    struct op_test t;
    op_begin(&t);
    uint32_t x = op_input(&t, dtypes[i], DIMS(2, 3)), y = op_output(&t, VK_BOOL, DIMS(2));
    op_node(&t, "aten::any.out", IDS(x, op_int(&t, -1), op_bool(&t, false), y));
    check("any along a dim", &t, x, 6, of_x, y, (const double[]){1, 0}, 2);
    op_begin(&t);
    x = op_input(&t, dtypes[i], DIMS(2, 3)), y = op_output(&t, VK_BOOL, DIMS(1, 3));
    op_node(&t, "aten::any.dims_out", IDS(x, op_ints(&t, INTS(0)), op_bool(&t, true), y));
    check("any, kept", &t, x, 6, of_x, y, (const double[]){0, 1, 0}, 3);
    op_begin(&t);
    x = op_input(&t, dtypes[i], DIMS(2, 3)), y = op_output(&t, VK_BOOL, NULL, 0);
    op_node(&t, "aten::any.all_out", IDS(x, y));
    check("any at all", &t, x, 6, of_x, y, (const double[]){1}, 1);
  }
}

static void extrema_of_all(void) {
  static const double of_x[6] = {3, -2, 7, 0, 5, -9};
  struct op_test t;
  op_begin(&t);
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(2, 3)), y = op_output(&t, VK_FLOAT32, NULL, 0);
  op_node(&t, "aten::max.unary_out", IDS(x, y));
  check("max", &t, x, 6, of_x, y, (const double[]){7}, 1);
  op_begin(&t);
  x = op_input(&t, VK_INT32, DIMS(2, 3)), y = op_output(&t, VK_INT32, NULL, 0);
  op_node(&t, "aten::min.unary_out", IDS(x, y));
  check("min", &t, x, 6, of_x, y, (const double[]){-9}, 1);
}

static void wholes_of_parts(void) {
  static const double of_x[6] = {3, -2, 7, 0, 5, -9};
  struct op_test t;
  op_begin(&t);
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(2, 3)), y = op_output(&t, VK_FLOAT32, DIMS(2, 2, 3));
  op_node(&t, "aten::stack.out", IDS(op_list(&t, IDS(x, x)), op_int(&t, 1), y));
  check("stack", &t, x, 6, of_x, y, (const double[]){3, -2, 7, 3, -2, 7, 0, 5, -9, 0, 5, -9}, 12);
  op_begin(&t);
  x = op_input(&t, VK_FLOAT32, DIMS(2, 2)), y = op_output(&t, VK_FLOAT32, DIMS(2, 1));
  op_node(&t, "aten::glu.out", IDS(x, op_int(&t, -1), y));
  check("glu", &t, x, 4, of_x, y, (const double[]){3 / (1 + exp(2)), 7 * 0.5}, 2);
  op_begin(&t);
  x = op_input(&t, VK_FLOAT32, DIMS(2, 3));
  uint32_t mask = op_tensor(&t, VK_BOOL, DIMS(2, 3));
  y = op_output(&t, VK_FLOAT32, DIMS(2, 3));
  op_node(&t, "aten.lt.Scalar", IDS(x, op_int(&t, 0), mask));
  op_node(&t, "aten::masked_fill.Scalar_out", IDS(x, mask, op_double(&t, 0.5), y));
  check("masked fill", &t, x, 6, of_x, y, (const double[]){3, 0.5, 7, 0, 5, 0.5}, 6);
}

static void choices(void) {
  static const double of_x[6] = {3, -2, 7, 0, 5, -9};
  struct op_test t;
  const double low[3] = {0, -1, 8}, high[2] = {4, 2};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(2, 3)), y = op_output(&t, VK_FLOAT32, DIMS(2, 3));
  op_node(&t, "aten::clamp.Tensor_out",
          IDS(x, op_constant(&t, VK_FLOAT32, DIMS(3), low),
              op_constant(&t, VK_FLOAT32, DIMS(2, 1), high), y));
  check("clamp between", &t, x, 6, of_x, y, (const double[]){3, -1, 4, 0, 2, 2}, 6);
  op_begin(&t);
  x = op_input(&t, VK_FLOAT32, DIMS(2, 3)), y = op_output(&t, VK_FLOAT32, DIMS(2, 3));
  op_node(&t, "aten::clamp.Tensor_out",
          IDS(x, op_null(&t), op_constant(&t, VK_FLOAT32, DIMS(2, 1), high), y));
  check("clamp below", &t, x, 6, of_x, y, (const double[]){3, -2, 4, 0, 2, -9}, 6);
  op_begin(&t);
  x = op_input(&t, VK_FLOAT32, DIMS(2, 3)), y = op_output(&t, VK_FLOAT32, DIMS(2, 3));
  op_node(&t, "aten::fill.Tensor_out",
          IDS(x, op_constant(&t, VK_INT32, NULL, 0, (const double[]){7}), y));
  check("fill", &t, x, 6, of_x, y, (const double[]){7, 7, 7, 7, 7, 7}, 6);
}

static void dropout(void) {
  static const double of_x[6] = {3, -2, 7, 0, 5, -9};
  for (int train = 0; train < 2; train++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t x = op_input(&t, VK_FLOAT32, DIMS(2, 3)), y = op_output(&t, VK_FLOAT32, DIMS(2, 3)),
             mask = op_output(&t, VK_BOOL, DIMS(2, 3));
    op_node(&t, "aten::native_dropout.out",
            IDS(x, op_double(&t, 0.5), op_bool(&t, train), y, mask, op_list(&t, IDS(y, mask))));
    if (!train) {
      check("dropout", &t, x, 6, of_x, y, of_x, 6);
      continue;
    }
    CHECK_FAILS(op_load(&t, NULL, &err), SCONCE_UNSUPPORTED, err, "export the model after eval()");
    op_end(&t);
  }
}

/* Operators that no build runs say why. */
static void refused(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(2)), y = op_output(&t, VK_FLOAT32, DIMS(2));
  op_node(&t, "aten::randn.out", IDS(x, y));
  CHECK_FAILS(op_load(&t, NULL, &err), SCONCE_UNSUPPORTED, err,
              "give them to the method as an input");
  op_end(&t);
}

const struct test suite_compound[] = {TEST(any_of_dims),
                                      TEST(extrema_of_all),
                                      TEST(wholes_of_parts),
                                      TEST(choices),
                                      TEST(dropout),
                                      TEST(refused),
                                      {0}};
