/* Scatter: every element size, an index and a source that are smaller or larger than x, several
 * updates of one element, against a loop over the updates in order. */
#include "op.h"

enum { LIVE = 13 };
enum kind { REPLACE, VALUE, ADD };

static const struct row {
  const char *name;
  enum kind kind;
  uint32_t x[3], index[3], source[3];
  int64_t dim;
  const char *why;
} rows[] = {
    {"aten.scatter.src", REPLACE, {LIVE, 4, 9}, {LIVE, 4, 5}, {LIVE, 4, 5}, 2, "some of each line"},
    {"aten::scatter.src_out",
     REPLACE,
     {LIVE, 4, 3},
     {LIVE, 20, 2},
     {LIVE, 21, 3},
     1,
     "many updates, a larger source"},
    {"aten.scatter.src",
     REPLACE,
     {7, 3, LIVE},
     {4, 2, LIVE},
     {5, 3, LIVE},
     -3,
     "fewer lines than x"},
    {"et_vk.scatter_src_unique.default",
     REPLACE,
     {1, 1, 3000},
     {1, 1, 70},
     {1, 1, 70},
     -1,
     "a long line"},
    {"aten.scatter.value", VALUE, {LIVE, 4, 9}, {LIVE, 4, 5}, {0}, 2, "a number"},
    {"aten::scatter.value_out", VALUE, {7, 3, LIVE}, {4, 2, LIVE}, {0}, 0, "a number, fewer lines"},
    {"aten.scatter_add.default", ADD, {LIVE, 4, 3}, {LIVE, 20, 2}, {LIVE, 21, 3}, 1, "sums"},
    {"aten::scatter_add.out", ADD, {7, 3, LIVE}, {40, 2, LIVE}, {40, 3, LIVE}, 0, "sums"},
};
enum { ROWS = sizeof rows / sizeof *rows };

static void live_dims(const uint32_t *dims, uint32_t live, uint32_t *out, uint64_t *n) {
  *n = 1;
  for (int i = 0; i < 3; i++) *n *= out[i] = dims[i] == LIVE ? live : dims[i];
}

static uint64_t offset(const uint32_t *dims, const uint32_t *c) {
  return ((uint64_t)c[0] * dims[1] + c[1]) * dims[2] + c[2];
}

static void expect(const struct row *r, const uint32_t *x, const uint32_t *index,
                   const uint32_t *source, const double *places, const double *values,
                   double number, double *want) {
  uint32_t c[3], dim = (uint32_t)(r->dim < 0 ? r->dim + 3 : r->dim);
  for (c[0] = 0; c[0] < index[0]; c[0]++)
    for (c[1] = 0; c[1] < index[1]; c[1]++)
      for (c[2] = 0; c[2] < index[2]; c[2]++) {
        uint32_t to[3] = {c[0], c[1], c[2]};
        to[dim] = (uint32_t)places[offset(index, c)];
        double v = r->kind == VALUE ? number : values[offset(source, c)];
        double *at = &want[offset(x, to)];
        *at = r->kind == ADD ? *at + v : v;
      }
}

struct scatter {
  struct op_test t;
  const struct row *r;
  enum vk_dtype dtype;
  uint32_t x, index, source, y;
};

static double *values_of(enum vk_dtype dtype, uint64_t n, uint64_t seed) {
  const bool floats = dtype == VK_FLOAT32 || dtype == VK_FLOAT16;
  double *x = test_values(floats ? dtype : VK_FLOAT32, n, seed);
  for (uint64_t i = 0; i < n && !floats; i++)
    x[i] = dtype == VK_INT32  ? trunc(x[i] * 1e7)
           : dtype == VK_BOOL ? x[i] > 0
                              : round(fabs(x[i]) * 120);
  return x;
}

static void call(struct scatter *s, uint32_t live) {
  const struct row *r = s->r;
  sconce_error err = {0};
  uint32_t x[3], index[3], source[3], dim = (uint32_t)(r->dim < 0 ? r->dim + 3 : r->dim);
  uint64_t n, updates, n_source, got, seed = live + 5;
  live_dims(r->x, live, x, &n);
  live_dims(r->index, live, index, &updates);
  live_dims(r->source, live, source, &n_source);
  double *want = values_of(s->dtype, n, live + 1),
         *values = values_of(s->dtype, n_source, live + 2);
  double *places = calloc((size_t)updates + 1, sizeof *places);
  for (uint64_t j = 0; j < updates; j++) {
    double v = fabs((double)test_random_float(&seed));
    places[j] = strstr(r->name, "unique") ? (double)(j * 37 % 3000) : floor(v * x[dim]);
  }
  op_set(&s->t, s->x, x, 3, want);
  op_set(&s->t, s->index, index, 3, places);
  if (r->kind != VALUE) op_set(&s->t, s->source, source, 3, values);
  expect(r, x, index, source, places, values, s->dtype == VK_BOOL ? 1 : 3, want);
  CHECK_OK(op_run(&s->t, &err), err);
  char what[120];
  snprintf(what, sizeof what, "%s %s, live %u: %s", r->name, vk_dtype_name(s->dtype), live, r->why);
  const double *result = op_get(&s->t, s->y, &got);
  const double tolerance = r->kind != ADD || s->dtype == VK_INT32 ? 0
                           : s->dtype == VK_FLOAT16               ? 4e-3
                                                                  : 1e-5;
  CHECK_EQ(got, n);
  if (got == n) test_close(result, want, n, tolerance, 0, what);
  free(want);
  free(values);
  free(places);
}

static void run(const struct row *r, enum vk_dtype dtype) {
  struct scatter s = {.r = r, .dtype = dtype};
  struct op_test *t = &s.t;
  sconce_error err = {0};
  op_begin(t);
  s.x = op_input(t, dtype, r->x, 3);
  s.index = op_input(t, VK_INT32, r->index, 3);
  s.source = r->kind == VALUE ? op_double(t, 3) : op_input(t, dtype, r->source, 3);
  s.y = op_output(t, dtype, r->x, 3);
  op_node(t, r->name, IDS(s.x, op_int(t, r->dim), s.index, s.source, s.y));
  CHECK_OK(op_load(t, NULL, &err), err);
  const uint32_t lives[] = {LIVE, 2, 1, 0, LIVE};
  for (int i = 0; i < 5 && !test_failed(); i++) call(&s, lives[i]);
  op_end(t);
}

static void every_size(void) {
  static const enum vk_dtype dtypes[] = {VK_FLOAT32, VK_FLOAT16, VK_INT32, VK_BOOL, VK_UINT8};
  for (size_t i = 0; i < ROWS; i++)
    for (int d = 0; d < (rows[i].kind == ADD ? 3 : 5); d++) run(&rows[i], dtypes[d]);
}

/* What lies outside a dim: an error where the host knows, else no update. */
static void outside(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(4)), index = op_input(&t, VK_INT32, DIMS(3));
  uint32_t hidden = op_tensor(&t, VK_INT32, DIMS(3)), y = op_output(&t, VK_FLOAT32, DIMS(4));
  uint32_t one = op_constant(&t, VK_INT32, DIMS(1), (const double[]){1});
  op_node(&t, "aten.mul.Tensor", IDS(index, one, hidden));
  op_node(&t, "aten.scatter.value", IDS(x, op_int(&t, 0), hidden, op_double(&t, 9), y));
  CHECK_OK(op_load(&t, NULL, &err), err);
  op_set(&t, x, DIMS(4), (const double[]){1, 2, 3, 4});
  op_set(&t, index, DIMS(3), (const double[]){-1, 2, 4});
  CHECK_OK(op_run(&t, &err), err);
  uint64_t n;
  test_close(op_get(&t, y, &n), (const double[]){1, 2, 9, 4}, 4, 0, 0, "only what is inside");
  op_end(&t);
  op_begin(&t);
  x = op_input(&t, VK_FLOAT32, DIMS(4)), index = op_input(&t, VK_INT32, DIMS(3));
  y = op_output(&t, VK_FLOAT32, DIMS(4));
  op_node(&t, "aten.scatter.value", IDS(x, op_int(&t, 0), index, op_double(&t, 9), y));
  CHECK_OK(op_load(&t, NULL, &err), err);
  op_set(&t, x, DIMS(4), (const double[]){1, 2, 3, 4});
  op_set(&t, index, DIMS(3), (const double[]){0, 2, 4});
  CHECK_EQ(op_run(&t, &err), SCONCE_BAD_ARGUMENT);
  CHECK(strstr(err.text, "index 4 of a dim of 4") != NULL);
  op_end(&t);
}

/* index_put_ of state, twice: rows 4, 1 and 4 again of (5, 3), or row 2 alone. What an element gets
 * last counts, or all is added up; where elements have no 4 bytes it goes through a copy. */
static void put_rows(enum vk_dtype dtype, bool add, uint32_t rows_put) {
  static const double places[2][3] = {{4, 1, 4}, {2}};
  const double *place = places[rows_put == 1];
  struct op_test t;
  sconce_error err = {0};
  double state[15], values[9];
  for (int i = 0; i < 15; i++) state[i] = i;
  op_begin(&t);
  uint32_t x = op_constant(&t, dtype, DIMS(5, 3), state);
  uint32_t index = op_input(&t, VK_INT32, DIMS(rows_put));
  uint32_t source = op_input(&t, dtype, DIMS(rows_put, 3)), y = op_output(&t, dtype, DIMS(5, 3));
  op_node(&t, "aten::index_put_",
          IDS(x, op_list(&t, (const uint32_t[]){index}, 1), source, op_bool(&t, add), x));
  op_node(&t, "aten.mul.Tensor", IDS(x, op_constant(&t, dtype, DIMS(1), (const double[]){1}), y));
  CHECK_OK(op_load(&t, NULL, &err), err);
  for (int round = 1; round < 3 && !test_failed(); round++) {
    uint64_t n;
    for (uint32_t i = 0; i < 3 * rows_put; i++) {
      double *at = &state[3 * (uint32_t)place[i / 3] + i % 3];
      values[i] = 10.0 * round + i;
      *at = add ? *at + values[i] : values[i];
    }
    op_set(&t, index, DIMS(rows_put), place);
    op_set(&t, source, DIMS(rows_put, 3), values);
    CHECK_OK(op_run(&t, &err), err);
    test_close(op_get(&t, y, &n), state, 15, 0, 0, add ? "added" : "put");
  }
  op_end(&t);
}

static void in_place(void) {
  static const enum vk_dtype dtypes[] = {VK_FLOAT32, VK_INT32, VK_FLOAT16};
  for (int d = 0; d < 3; d++)
    for (uint32_t n = 1; n <= 3; n += 2) {
      put_rows(dtypes[d], false, n);
      put_rows(dtypes[d], true, n);
    }
}

static void refuses(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(2, 4)), index = op_input(&t, VK_INT32, DIMS(3, 4));
  uint32_t source = op_input(&t, VK_FLOAT32, DIMS(3, 4)), y = op_output(&t, VK_FLOAT32, DIMS(2, 4));
  op_node(&t, "aten.scatter.src", IDS(x, op_int(&t, 1), index, source, y));
  CHECK_FAILS(op_try(&t, &err), SCONCE_BAD_ARGUMENT, err,
              "an index of int32 [3, 4] for float32 [2, 4] from float32 [3, 4]");
  op_end(&t);
}

const struct test suite_scatter[] = {
    TEST(every_size), TEST(outside), TEST(in_place), TEST(refuses), {0}};
