/* Slices replaced: bounds from both ends, steps, live dims, against the coordinates themselves. */
#include "op.h"

enum { LIVE = 13 };
#define NONE INT64_MIN

static const struct row {
  uint32_t x[3];
  int64_t dim, start, end, step; /* step 0: one index, at start */
  const char *why;
} rows[] = {
    {{LIVE, 4, 7}, 2, 2, 5, 1, "inside lines, odd halves"},
    {{3, LIVE, 4}, 1, -2, INT64_MAX, 1, "the last two of a live dim"},
    {{9, 2, LIVE}, 0, 1, NONE, 3, "every third"},
    {{LIVE, 4, 8}, -2, NONE, -1, 2, "every second up to the last"},
    {{LIVE, 4, 3}, 1, 3, 2, 1, "nothing"},
    {{LIVE, 4, 3}, 1, -1, NONE, 0, "one index from the end"},
    {{5, 4, LIVE}, 0, 2, NONE, 0, "one index"},
};

static void run(const struct row *r, enum vk_dtype dtype) {
  static const uint32_t lives[] = {LIVE, 3, 0, 7};
  const uint32_t dim = (uint32_t)(r->dim < 0 ? r->dim + 3 : r->dim);
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t most[3], n_most = 0;
  for (uint32_t i = 0; i < 3; i++)
    if (i != dim || r->step) most[n_most++] = r->x[i];
  uint32_t x = op_input(&t, dtype, r->x, 3), y = op_output(&t, dtype, r->x, 3);
  uint32_t source = op_input(&t, dtype, most, n_most), start, end;
  start = r->start == NONE ? op_null(&t) : op_int(&t, r->start);
  end = r->end == NONE ? op_null(&t) : op_int(&t, r->end);
  for (int i = 0; i < 4 && !test_failed(); i++) {
    uint32_t dims[3], from[3], rank = 0, count = 0;
    for (uint32_t k = 0; k < 3; k++) dims[k] = r->x[k] == LIVE ? lives[i] : r->x[k];
    const int64_t size = dims[dim];
    int64_t first = r->start == NONE ? 0 : r->start < 0 ? r->start + size : r->start;
    int64_t last = r->end == NONE ? size : r->end < 0 ? r->end + size : r->end;
    if (!r->step) last = first + 1;
    first = first < 0 ? 0 : first;
    last = last > size ? size : last;
    for (int64_t at = first; at < last; at += r->step ? r->step : 1) count++;
    for (uint32_t k = 0; k < 3; k++)
      if (k != dim || r->step) from[rank++] = k == dim ? count : dims[k];
    if (i == 0) {
      t.graph.values[source].tensor.rank = rank;
      for (uint32_t k = 0; k < rank; k++)
        t.graph.values[source].tensor.dim_max[k] = t.graph.values[source].tensor.dim_live[k] =
            from[k];
      if (r->step)
        op_node(&t, "aten.slice_scatter.default",
                IDS(x, source, op_int(&t, r->dim), start, end, op_int(&t, r->step), y));
      else
        op_node(&t, "aten.select_scatter.default", IDS(x, source, op_int(&t, r->dim), start, y));
      CHECK_OK(op_load(&t, NULL, &err), err);
    }
    uint64_t inner = 1, n = (uint64_t)dims[0] * dims[1] * dims[2], got;
    for (uint32_t k = dim + 1; k < 3; k++) inner *= dims[k];
    double vx[1000], vs[1000], want[1000];
    for (uint64_t e = 0; e < n; e++)
      vx[e] = (double)(e % 50), vs[e] = (double)(60 + e % 50), want[e] = vx[e];
    uint64_t outer = n ? n / inner / dims[dim] : 0;
    for (uint64_t o = 0; o < outer; o++)
      for (uint32_t k = 0; k < count; k++)
        for (uint64_t c = 0; c < inner; c++)
          want[(o * dims[dim] + (uint64_t)first + k * (uint64_t)(r->step ? r->step : 1)) * inner +
               c] = vs[(o * count + k) * inner + c];
    op_set(&t, x, dims, 3, vx);
    op_set(&t, source, from, rank, vs);
    CHECK_OK(op_run(&t, &err), err);
    const double *result = op_get(&t, y, &got);
    CHECK_EQ(got, n);
    if (got == n) test_close(result, want, n, 0, 0, r->why);
  }
  op_end(&t);
}

static void every_slice(void) {
  static const enum vk_dtype dtypes[] = {VK_FLOAT32, VK_FLOAT16, VK_INT8};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (int d = 0; d < 3; d++) run(&rows[i], dtypes[d]);
}

/* Of state: rows 1 and 3 of (2, 5, 3), or row 4; two calls. */
static void put_slice(enum vk_dtype dtype, bool one) {
  struct op_test t;
  sconce_error err = {0};
  double state[30] = {0}, values[12];
  op_begin(&t);
  uint32_t x = op_constant(&t, dtype, DIMS(2, 5, 3), state), y;
  uint32_t source = one ? op_input(&t, dtype, DIMS(2, 3)) : op_input(&t, dtype, DIMS(2, 2, 3));
  y = op_output(&t, dtype, DIMS(2, 5, 3));
  const uint32_t dim = op_int(&t, 1);
  if (one)
    op_node(&t, "aten::select_scatter.out", IDS(x, source, dim, op_int(&t, -1), x));
  else
    op_node(&t, "aten::slice_scatter.out",
            IDS(x, source, dim, op_int(&t, 1), op_int(&t, 5), op_int(&t, 2), x));
  op_node(&t, "aten.mul.Tensor", IDS(x, op_constant(&t, dtype, DIMS(1), (const double[]){1}), y));
  CHECK_OK(op_load(&t, NULL, &err), err);
  for (int round = 1; round < 3 && !test_failed(); round++) {
    uint64_t n;
    for (uint32_t i = 0; i < (one ? 6 : 12); i++) {
      const uint32_t outer = i / (one ? 3 : 6), row = one ? 4 : 1 + 2 * (i / 3 % 2);
      state[outer * 15 + row * 3 + i % 3] = values[i] = 20.0 * round + i;
    }
    op_set(&t, source, one ? (const uint32_t[]){2, 3} : (const uint32_t[]){2, 2, 3}, one ? 2 : 3,
           values);
    CHECK_OK(op_run(&t, &err), err);
    test_close(op_get(&t, y, &n), state, 30, 0, 0, one ? "one row" : "two rows");
  }
  op_end(&t);
}

static void in_place(void) {
  static const enum vk_dtype dtypes[] = {VK_FLOAT32, VK_INT32, VK_FLOAT16};
  for (int d = 0; d < 3; d++) {
    put_slice(dtypes[d], false);
    put_slice(dtypes[d], true);
  }
}

static void refuses(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(4, 3)), y = op_output(&t, VK_FLOAT32, DIMS(4, 3));
  uint32_t source = op_input(&t, VK_FLOAT32, DIMS(3, 3));
  op_node(&t, "aten.slice_scatter.default",
          IDS(x, source, op_int(&t, 0), op_int(&t, 0), op_int(&t, 2), op_int(&t, 1), y));
  CHECK_OK(op_load(&t, NULL, &err), err);
  const double zeros[12] = {0};
  op_set(&t, x, DIMS(4, 3), zeros);
  op_set(&t, source, DIMS(3, 3), zeros);
  CHECK_FAILS(op_run(&t, &err), SCONCE_BAD_ARGUMENT, err,
              "2 elements of dim 0 of float32 [4, 3] from float32 [3, 3]");
  op_end(&t);
}

const struct test suite_slice_put[] = {TEST(every_slice), TEST(in_place), TEST(refuses), {0}};
