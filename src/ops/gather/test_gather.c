/* Gathering: (outer, size, inner) by an index, for every element size and unit. */
#include "op.h"

enum { SIZE = 6, MOST = 5 };

static const struct {
  enum vk_dtype dtype;
  uint32_t outer, inner;
  const char *why;
} cases[] = {
    {VK_FLOAT32, 1, 8, "rows of quads"},
    {VK_FLOAT32, 2, 3, "rows of words"},
    {VK_FLOAT32, 1, 1, "a vector"},
    {VK_FLOAT16, 1, 6, "halves that fill words"},
    {VK_FLOAT16, 2, 3, "halves that do not"},
    {VK_INT8, 2, 5, "bytes"},
    {VK_BOOL, 1, 16, "bytes that fill a quad"},
    {VK_INT32, 3, 4, "integers"},
};
enum { CASES = sizeof cases / sizeof *cases };

static double *counting(uint64_t n) {
  double *x = malloc((size_t)(n + 1) * sizeof *x);
  for (uint64_t i = 0; i < n; i++) x[i] = (double)(i % 120);
  return x;
}

/* Negative ones count from the end. */
static const double indices[MOST] = {5, 0, -1, 3, -6};

static uint32_t row_of(uint32_t i) {
  return (uint32_t)(indices[i] < 0 ? indices[i] + (double)SIZE : indices[i]);
}

enum kind { INDEX, INDEX_INNER, SELECT, GATHER };

static void run(size_t k, enum kind kind) {
  uint32_t outer = kind == INDEX ? 1 : cases[k].outer, inner = cases[k].inner;
  enum vk_dtype dtype = cases[k].dtype;
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t dims[3] = {outer, SIZE, inner}, out[3] = {outer, MOST, inner};
  const uint32_t skip = kind == INDEX; /* a tensor of two dims */
  uint32_t x = op_input(&t, dtype, dims + skip, 3 - skip);
  uint32_t index =
      kind == GATHER ? op_input(&t, VK_INT32, out, 3) : op_input(&t, VK_INT32, DIMS(MOST));
  uint32_t y = op_output(&t, dtype, out + skip, 3 - skip);
  if (kind == INDEX)
    op_node(&t, "aten.index.Tensor", IDS(x, op_list(&t, IDS(index)), y));
  else if (kind == INDEX_INNER) /* x[:, index] */
    op_node(&t, "aten.index.Tensor", IDS(x, op_list(&t, IDS(op_null(&t), index)), y));
  else if (kind == SELECT)
    op_node(&t, "aten.index_select.default", IDS(x, op_double(&t, -2), index, y));
  else
    op_node(&t, "aten.gather.default", IDS(x, op_int(&t, 1), index, op_bool(&t, false), y));
  CHECK_OK(op_load(&t, NULL, &err), err);
  static const uint32_t lives[] = {MOST, 2, 0, 1, MOST};
  double *values = counting((uint64_t)outer * SIZE * inner);
  for (size_t i = 0; i < 5 && !test_failed(); i++) {
    uint32_t live = lives[i];
    uint64_t n = (uint64_t)outer * live * inner, n_got;
    double *want = counting(n), *which = counting(n);
    for (uint32_t e = 0; e < n; e++) {
      uint32_t o = e / (live * inner), c = e % inner, m = e / inner % live;
      uint32_t at = kind == GATHER ? (m + c) % MOST : m;
      which[e] = indices[at];
      want[e] = values[(o * SIZE + row_of(at)) * inner + c];
    }
    op_set(&t, x, dims + skip, 3 - skip, values);
    if (kind == GATHER)
      op_set(&t, index, DIMS(outer, live, inner), which);
    else
      op_set(&t, index, DIMS(live), indices);
    CHECK_OK(op_run(&t, &err), err);
    const double *got = op_get(&t, y, &n_got);
    CHECK_EQ(n_got, n);
    test_close(got, want, n, 0, 0, cases[k].why);
    free(want);
    free(which);
  }
  free(values);
  op_end(&t);
}

static void every_unit(void) {
  for (size_t k = 0; k < CASES; k++) {
    run(k, INDEX);
    run(k, INDEX_INNER);
    run(k, SELECT);
    run(k, GATHER);
  }
}

/* An index that the host knows is an error; one that the GPU computed reads nothing. */
static void out_of_range(void) {
  for (int known = 0; known < 2; known++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t x = op_input(&t, VK_FLOAT32, DIMS(SIZE, 4)), in = op_input(&t, VK_INT32, DIMS(3));
    uint32_t index = known ? in : op_tensor(&t, VK_INT32, DIMS(3));
    uint32_t y = op_output(&t, VK_FLOAT32, DIMS(3, 4));
    if (!known) op_node(&t, "aten.neg.default", IDS(in, index));
    op_node(&t, "aten.index.Tensor", IDS(x, op_list(&t, IDS(index)), y));
    double *values = counting(24), bad[3] = {-2, 6, -2000000000}, want[12] = {8, 9, 10, 11};
    memcpy(want + 4, want, 4 * sizeof *want);
    memset(want + 4, 0, 8 * sizeof *want);
    for (int i = 0; i < 4; i++) want[4 + i] = i; /* -6 is the first row */
    CHECK_OK(op_load(&t, NULL, &err), err);
    op_set(&t, x, DIMS(SIZE, 4), values);
    op_set(&t, in, DIMS(3), bad);
    sconce_status status = op_run(&t, &err);
    CHECK_EQ(status, known ? SCONCE_BAD_ARGUMENT : SCONCE_OK);
    if (known) CHECK(strstr(err.text, "index 6 of a dim of 6") != NULL);
    uint64_t n;
    if (!known) test_close(op_get(&t, y, &n), want, 12, 0, 0, "zeros for what is outside");
    free(values);
    op_end(&t);
  }
}

static void refuses(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(4, 4)), index = op_input(&t, VK_FLOAT32, DIMS(4));
  uint32_t y = op_output(&t, VK_FLOAT32, DIMS(4, 4));
  op_node(&t, "aten.index.Tensor", IDS(x, op_list(&t, IDS(index)), y));
  CHECK_FAILS(op_try(&t, &err), SCONCE_UNSUPPORTED, err, "the index is float32 [4]");
  op_end(&t);
}

const struct test suite_gather[] = {TEST(every_unit), TEST(out_of_range), TEST(refuses), {0}};
