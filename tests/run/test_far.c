/* Arguments that are far from what an exporter writes: steps, offsets and sizes at the ends of 64
 * bits, which leave one element or none without a sum or product that overflows on the way; and
 * tensors without elements or dims where a graph promises a result that has some. */
#include "op.h"

#include <string.h>

/* x is 0 … 5 as (6) or (2, 3); y has room for a column more than it needs, where it may. */
static const struct row {
  const char *name;
  uint32_t rank;      /* of x */
  int64_t numbers[4]; /* behind x */
  uint32_t n_numbers;
  uint32_t dims[2], y_rank; /* of y at most */
  double want[6];
  uint32_t n_want;
} rows[] = {
    {"aten.slice_copy.Tensor", 1, {0, 1, INT64_MAX, INT64_MAX}, 4, {6}, 1, {1}, 1},
    {"aten.slice_copy.Tensor", 1, {0, INT64_MIN, INT64_MAX, 5}, 4, {6}, 1, {0, 5}, 2},
    {"aten.slice_copy.Tensor", 1, {0, -1, 6, INT64_MAX}, 4, {1}, 1, {5}, 1},
    {"aten.slice_copy.Tensor", 2, {1, 2, 3, INT64_MAX}, 4, {2, 3}, 2, {2, 5}, 2},
    {"aten.slice_copy.Tensor", 2, {0, 0, INT64_MAX, INT64_MAX - 1}, 4, {2, 3}, 2, {0, 1, 2}, 3},
    {"aten.slice_copy.Tensor", 2, {0, 1, 2, INT64_C(1) << 61}, 4, {2, 3}, 2, {3, 4, 5}, 3},
    {"aten.unfold_copy.default", 1, {0, 4, INT64_MAX}, 3, {3, 4}, 2, {0, 1, 2, 3}, 4},
    {"aten.unfold_copy.default", 1, {0, 0, INT64_MAX}, 3, {1, 1}, 2, {0}, 0},
    {"aten.diagonal_copy.default", 2, {INT64_MAX, 0, 1}, 3, {3}, 1, {0}, 0},
    {"aten.diagonal_copy.default", 2, {INT64_MIN, 0, 1}, 3, {3}, 1, {0}, 0},
    {"aten.diagonal_copy.default", 2, {INT64_MIN, 1, 0}, 3, {3}, 1, {0}, 0},
    {"aten.diagonal_copy.default", 2, {-1, 0, 1}, 3, {3}, 1, {3}, 1},
    {"aten.tril.default", 2, {INT64_MAX}, 1, {2, 3}, 2, {0, 1, 2, 3, 4, 5}, 6},
    {"aten.triu.default", 2, {INT64_MIN}, 1, {2, 3}, 2, {0, 1, 2, 3, 4, 5}, 6},
};

static const double six[] = {0, 1, 2, 3, 4, 5};

static uint32_t input(struct op_test *t, uint32_t rank) {
  return rank == 1 ? op_input(t, VK_FLOAT32, DIMS(6)) : op_input(t, VK_FLOAT32, DIMS(2, 3));
}

static void set(struct op_test *t, uint32_t x, uint32_t rank) {
  const uint32_t line[] = {6}, matrix[] = {2, 3};
  op_set(t, x, rank == 1 ? line : matrix, rank, six);
}

static void one_element_or_none(void) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const struct row *r = &rows[i];
    struct op_test t;
    sconce_error err = {0};
    uint64_t n = 0;
    op_begin(&t);
    uint32_t args[6] = {input(&t, r->rank)};
    for (uint32_t k = 0; k < r->n_numbers; k++) args[k + 1] = op_int(&t, r->numbers[k]);
    args[r->n_numbers + 1] = op_output(&t, VK_FLOAT32, r->dims, r->y_rank);
    op_node(&t, r->name, args, r->n_numbers + 2);
    CHECK_OK(op_load(&t, NULL, &err), err);
    set(&t, args[0], r->rank);
    CHECK_OK(op_run(&t, &err), err);
    const double *got = op_get(&t, args[r->n_numbers + 1], &n);
    CHECK_EQ(n, r->n_want);
    if (n == r->n_want) test_close(got, r->want, n, 0, 0, r->name);
    op_end(&t);
  }
}

static void parts_of_any_size(void) {
  static const int64_t sizes[] = {6, INT32_MAX, INT64_MAX - 3, INT64_MAX, INT64_MIN, -1, 0};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    struct op_test t;
    sconce_error err = {0};
    uint64_t n = 0;
    op_begin(&t);
    uint32_t x = input(&t, 1), y = op_output(&t, VK_FLOAT32, DIMS(6));
    op_node(&t, "aten.split_copy.Tensor",
            IDS(x, op_int(&t, sizes[i]), op_int(&t, 0), op_list(&t, IDS(y))));
    if (sizes[i] < 1) {
      CHECK_FAILS(op_try(&t, &err), SCONCE_BAD_ARGUMENT, err, "1 parts of");
    } else {
      CHECK_OK(op_load(&t, NULL, &err), err);
      set(&t, x, 1);
      CHECK_OK(op_run(&t, &err), err);
      const double *got = op_get(&t, y, &n);
      CHECK_EQ(n, 6);
      if (n == 6) test_close(got, six, n, 0, 0, "one part");
    }
    op_end(&t);
  }
}

static void one_element_is_put(void) {
  static const int64_t steps[] = {6, INT64_C(1) << 40, INT64_MAX};
  static const double want[] = {0, 9, 2, 3, 4, 5};
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    struct op_test t;
    sconce_error err = {0};
    uint64_t n = 0;
    op_begin(&t);
    uint32_t x = input(&t, 1), from = op_input(&t, VK_FLOAT32, DIMS(1));
    uint32_t y = op_output(&t, VK_FLOAT32, DIMS(6));
    op_node(
        &t, "aten.slice_scatter.default",
        IDS(x, from, op_int(&t, 0), op_int(&t, 1), op_int(&t, INT64_MAX), op_int(&t, steps[i]), y));
    CHECK_OK(op_load(&t, NULL, &err), err);
    set(&t, x, 1);
    op_set(&t, from, DIMS(1), (double[]){9});
    CHECK_OK(op_run(&t, &err), err);
    const double *got = op_get(&t, y, &n);
    CHECK_EQ(n, 6);
    if (n == 6) test_close(got, want, n, 0, 0, "one element");
    op_end(&t);
  }
}

/* ---- nothing where something is promised ----------------------------------------------------- */

/* The largest result is not empty, that of these arguments is. */
static void convolution_of_no_images(void) {
  struct op_test t;
  sconce_error err = {0};
  uint64_t n = 1;
  op_begin(&t);
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(0, 1, 4)), null = op_null(&t);
  uint32_t w = op_constant(&t, VK_FLOAT32, DIMS(2, 1, 3), six);
  uint32_t y = op_output(&t, VK_FLOAT32, DIMS(3, 2, 2)), one = op_ints(&t, INTS(1));
  uint32_t zero = op_ints(&t, INTS(0)), groups = op_int(&t, 1), no = op_bool(&t, false);
  op_node(&t, "aten.convolution.default", IDS(x, w, null, one, zero, one, no, zero, groups, y));
  CHECK_OK(op_load(&t, NULL, &err), err);
  op_set(&t, x, DIMS(0, 1, 4), six);
  CHECK_OK(op_run(&t, &err), err);
  (void)op_get(&t, y, &n);
  CHECK_EQ(n, 0);
  op_end(&t);
}

static void shuffle_of_no_pixels(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_INT8, DIMS(1, 4, 0, 4)), scale = op_double(&t, 0.5);
  uint32_t y = op_output(&t, VK_INT8, DIMS(1, 1, 2, 8)), zero = op_int(&t, 0);
  op_node(&t, "et_vk.q8ta_pixel_shuffle.default",
          IDS(x, scale, zero, scale, zero, op_int(&t, 2), y));
  CHECK_OK(op_load(&t, NULL, &err), err);
  op_end(&t);
}

/* Two selections from a product without columns. */
static void selections_from_no_columns(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(2, 3)), null = op_null(&t), dim = op_int(&t, 0);
  uint32_t w = op_constant(&t, VK_FLOAT32, DIMS(0, 3), six);
  uint32_t product = op_tensor(&t, VK_FLOAT32, DIMS(2, 0));
  uint32_t first = op_output(&t, VK_FLOAT32, DIMS(0)), last = op_output(&t, VK_FLOAT32, DIMS(0));
  op_node(&t, "aten.linear.default", IDS(x, w, null, product));
  op_node(&t, "aten.select_copy.int", IDS(product, dim, op_int(&t, 0), first));
  op_node(&t, "aten.select_copy.int", IDS(product, dim, op_int(&t, 1), last));
  CHECK_OK(op_load(&t, NULL, &err), err);
  op_set(&t, x, DIMS(2, 3), six);
  CHECK_OK(op_run(&t, &err), err);
  op_end(&t);
}

static void a_number_where_a_table_is(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(1, 1, 1, 2));
  uint32_t cos = op_input(&t, VK_FLOAT32, DIMS(1, 1)), sin = op_input(&t, VK_FLOAT32, NULL, 0);
  uint32_t q = op_output(&t, VK_FLOAT32, DIMS(1, 1, 1, 2));
  uint32_t k = op_output(&t, VK_FLOAT32, DIMS(1, 1, 1, 2));
  op_node(&t, "et_vk.apply_rotary_emb.default", IDS(x, x, cos, sin, op_list(&t, IDS(q, k))));
  CHECK_FAILS(op_try(&t, &err), SCONCE_BAD_GRAPH, err,
              "the tables are float32 [1, 1] and float32 []");
  op_end(&t);
}

static void a_position_past_all_tables(void) {
  static const int64_t starts[] = {INT64_MAX, INT64_MIN, 1};
  for (int i = 0; i < 3; i++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t x = op_input(&t, VK_FLOAT32, DIMS(1, 2, 1, 2));
    uint32_t table = op_input(&t, VK_FLOAT32, DIMS(2, 2));
    uint32_t q = op_output(&t, VK_FLOAT32, DIMS(1, 2, 1, 2));
    uint32_t k = op_output(&t, VK_FLOAT32, DIMS(1, 2, 1, 2));
    op_node(&t, "et_vk.apply_rotary_emb_hf.default",
            IDS(x, x, table, table, op_int(&t, starts[i]), op_list(&t, IDS(q, k))));
    CHECK_FAILS(op_try(&t, &err), SCONCE_BAD_ARGUMENT, err, "the tables have 2");
    op_end(&t);
  }
}

/* A buffer that begins with zeros has no bytes in the file: its elements are on the device alone.
 */
static void indices_from_a_buffer_without_bytes(void) {
  static const uint8_t nothing[1];
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(6)), y = op_output(&t, VK_FLOAT32, DIMS(6));
  uint32_t index = op_tensor(&t, VK_INT32, DIMS(6)), dim = op_int(&t, 0);
  struct tensor *buffer = &t.graph.values[index].tensor;
  buffer->constant = buffer->written = true;
  buffer->bytes = (struct extent){.data = nothing};
  op_node(&t, "aten.gather.default", IDS(x, dim, index, op_bool(&t, false), y));
  CHECK_OK(op_load(&t, NULL, &err), err);
  op_set(&t, x, DIMS(6), six);
  CHECK_OK(op_run(&t, &err), err);
  uint64_t n = 0;
  const double *got = op_get(&t, y, &n);
  for (uint64_t i = 0; i < n; i++) CHECK_EQ((int)got[i], 0);
  CHECK_EQ(n, 6);
  op_end(&t);
}

const struct test suite_far[] = {
    TEST(one_element_or_none),
    TEST(parts_of_any_size),
    TEST(one_element_is_put),
    TEST(convolution_of_no_images),
    TEST(shuffle_of_no_pixels),
    TEST(selections_from_no_columns),
    TEST(a_number_where_a_table_is),
    TEST(a_position_past_all_tables),
    TEST(indices_from_a_buffer_without_bytes),
    {0},
};
