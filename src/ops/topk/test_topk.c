/* The best elements: short and long lines, ties, NaNs, every dtype, against a sort by definition.
 */
#include "op.h"

enum { LIVE = 13 };
static const struct row {
  const char *name;
  uint32_t x[3];
  int64_t dim;
  uint32_t k;
  bool several, largest, keep;
  const char *why;
} rows[] = {
    {"aten.topk.default", {LIVE, 3, 20}, -1, 3, true, true, true, "short lines"},
    {"aten::topk.values", {LIVE, 3, 7}, 2, 7, true, false, true, "all of them, the smallest first"},
    {"aten.topk.default", {2, 9, LIVE}, 1, 5, true, true, true, "lines side by side"},
    {"aten.topk.default", {LIVE, 1, 1500}, 2, 40, true, true, true, "long lines"},
    {"aten.topk.default", {LIVE, 1, 1500}, 2, 1, true, false, true, "the smallest of long lines"},
    {"aten::topk.values", {700, 2, LIVE}, 0, 650, true, false, true, "long lines side by side"},
    {"aten.max.dim", {LIVE, 3, 7}, 2, 1, false, true, false, "the largest, odd halves"},
    {"aten::max.dim_max", {LIVE, 600, 2}, 1, 1, false, true, true, "the largest of long lines"},
    {"aten.min.dim", {3, LIVE, 5}, 0, 1, false, false, true, "the smallest"},
    {"aten::min.dim_min", {LIVE, 3, 7}, 1, 1, false, false, false, "the smallest"},
    {"aten::sort.values", {LIVE, 3, 7}, -1, 7, true, false, true, "short lines in order"},
    {"aten::sort.values", {LIVE, 600, 2}, 1, 600, true, true, true, "long lines side by side"},
    {"aten::sort.values_stable", {LIVE, 1, 1500}, 2, 1500, true, true, true, "long lines"},
};
enum { ROWS = sizeof rows / sizeof *rows };

struct item {
  double v;
  uint32_t i;
};
static bool sort_largest;

static int compare(const void *left, const void *right) {
  const struct item *a = left, *b = right;
  if (isnan(a->v) || isnan(b->v)) {
    int order = isnan(a->v) && isnan(b->v) ? 0 : isnan(a->v) ? -1 : 1; /* NaN is the largest */
    if (order) return sort_largest ? order : -order;
  } else if (a->v != b->v) {
    return (a->v > b->v) == sort_largest ? -1 : 1;
  }
  return a->i < b->i ? -1 : 1;
}

static void expect(const struct row *r, const double *x, const uint32_t *dims, double *values,
                   double *indices) {
  uint64_t d = (uint64_t)(r->dim < 0 ? r->dim + 3 : r->dim), outer = 1, inner = 1;
  for (uint64_t i = 0; i < 3; i++) {
    if (i < d) outer *= dims[i];
    if (i > d) inner *= dims[i];
  }
  struct item *line = calloc(dims[d] + 1, sizeof *line);
  sort_largest = r->largest;
  for (uint64_t o = 0; o < outer; o++)
    for (uint64_t c = 0; c < inner; c++) {
      for (uint32_t i = 0; i < dims[d]; i++)
        line[i] = (struct item){x[(o * dims[d] + i) * inner + c], i};
      qsort(line, dims[d], sizeof *line, compare);
      for (uint32_t i = 0; i < r->k; i++) {
        values[(o * r->k + i) * inner + c] = line[i].v;
        indices[(o * r->k + i) * inner + c] = line[i].i;
      }
    }
  free(line);
}

struct best {
  struct op_test t;
  const struct row *r;
  enum vk_dtype dtype;
  uint32_t x, values, indices;
};

static double *values_of(enum vk_dtype dtype, uint64_t n, uint64_t seed) {
  const bool floats = dtype == VK_FLOAT32 || dtype == VK_FLOAT16;
  double *x = test_values(floats ? dtype : VK_FLOAT32, n, seed);
  for (uint64_t i = 0; i < n; i++) {
    if (dtype == VK_BOOL)
      x[i] = x[i] > 0;
    else if (dtype == VK_UINT8)
      x[i] = round(fabs(x[i]) * 255);
    else if (dtype == VK_INT8)
      x[i] = round(x[i] * 127);
    else if (dtype == VK_INT32)
      x[i] = i % 5 ? round(x[i] * 20) : trunc(x[i] * 2147483647.0);
    else if (i % 3 == 0)
      x[i] = round(x[i] * 4) / 4; /* ties, and zeros of both signs */
  }
  return x;
}

static void call(struct best *b, uint32_t live) {
  sconce_error err = {0};
  const struct row *r = b->r;
  uint32_t dims[3], d = (uint32_t)(r->dim < 0 ? r->dim + 3 : r->dim);
  for (int i = 0; i < 3; i++) dims[i] = r->x[i] == LIVE ? live : r->x[i];
  uint64_t n = (uint64_t)dims[0] * dims[1] * dims[2], outs = n / dims[d] * r->k, got;
  double *x = values_of(b->dtype, n, live + 1);
  double *values = calloc((size_t)outs + 1, sizeof *values);
  double *indices = calloc((size_t)outs + 1, sizeof *indices);
  expect(r, x, dims, values, indices);
  op_set(&b->t, b->x, dims, 3, x);
  CHECK_OK(op_run(&b->t, &err), err);
  char what[120];
  snprintf(what, sizeof what, "%s %s, live %u: %s", r->name, vk_dtype_name(b->dtype), live, r->why);
  const double *result = op_get(&b->t, b->values, &got);
  CHECK_EQ(got, outs);
  if (got == outs) test_close(result, values, outs, 0, 0, what);
  if (got == outs) test_close(op_get(&b->t, b->indices, &got), indices, outs, 0, 0, what);
  free(x);
  free(values);
  free(indices);
}

static void run(const struct row *r, enum vk_dtype dtype) {
  struct best b = {.r = r, .dtype = dtype};
  struct op_test *t = &b.t;
  sconce_error err = {0};
  uint32_t out[3], rank = 0, args[8], n = 0, d = (uint32_t)(r->dim < 0 ? r->dim + 3 : r->dim);
  op_begin(t);
  for (uint32_t i = 0; i < 3; i++)
    if (i != d || r->keep) out[rank++] = i == d ? r->k : r->x[i];
  args[n++] = b.x = op_input(t, dtype, r->x, 3);
  b.values = op_output(t, dtype, out, rank);
  b.indices = op_output(t, VK_INT32, out, rank);
  const bool all = strstr(r->name, "sort");
  if (strstr(r->name, "stable")) args[n++] = op_bool(t, true);
  if (r->several && !all) args[n++] = op_int(t, r->k);
  args[n++] = op_int(t, r->dim);
  args[n++] = op_bool(t, r->several ? r->largest : r->keep);
  if (r->several && !all) args[n++] = op_bool(t, true);
  if (strstr(r->name, "::")) args[n++] = b.values, args[n++] = b.indices;
  args[n++] = op_list(t, IDS(b.values, b.indices));
  op_node(t, r->name, args, n);
  CHECK_OK(op_load(t, NULL, &err), err);
  const uint32_t lives[] = {LIVE, 2, 1, 0, LIVE};
  for (int i = 0; i < 5 && !test_failed(); i++) call(&b, lives[i]);
  op_end(t);
}

static void every_line(void) {
  for (size_t i = 0; i < ROWS; i++) {
    run(&rows[i], VK_FLOAT32);
    run(&rows[i], VK_FLOAT16);
    run(&rows[i], VK_INT32);
  }
}

static void bytes(void) {
  static const enum vk_dtype dtypes[] = {VK_UINT8, VK_INT8, VK_BOOL};
  for (int k = 0; k < 3; k++) {
    run(&rows[0], dtypes[k]);
    run(&rows[3], dtypes[k]);
  }
}

/* NaNs, infinities and zeros of both signs: short lines, and long ones with many ties. */
static void corners(void) {
  for (int k = 0; k < 2; k++) {
    const uint32_t size = k ? 2000 : 12;
    const struct row r = {"aten.topk.default", {2, 1, size}, 2, 10, true, true, true, "corners"};
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t x = op_input(&t, VK_FLOAT32, DIMS(2, 1, size));
    uint32_t values = op_output(&t, VK_FLOAT32, DIMS(2, 1, 10));
    uint32_t indices = op_output(&t, VK_INT32, DIMS(2, 1, 10));
    op_node(&t, r.name,
            IDS(x, op_int(&t, 10), op_int(&t, 2), op_bool(&t, true), op_bool(&t, true),
                op_list(&t, IDS(values, indices))));
    CHECK_OK(op_load(&t, NULL, &err), err);
    double *v = calloc(2 * size, sizeof *v), want[20], places[20];
    for (uint32_t i = 0; i < 2 * size; i++)
      v[i] = i % 7 == 3 ? NAN : i % 5 == 1 ? -INFINITY : i % 2 ? -0.0 : 0;
    v[size + 8] = INFINITY;
    for (uint32_t i = size; i < 2 * size; i++)
      if (isnan(v[i]) && i % 11) v[i] = 0;
    expect(&r, v, (const uint32_t[]){2, 1, size}, want, places);
    op_set(&t, x, DIMS(2, 1, size), v);
    CHECK_OK(op_run(&t, &err), err);
    uint64_t n;
    test_close(op_get(&t, values, &n), want, 20, 0, 0, "corners");
    test_close(op_get(&t, indices, &n), places, 20, 0, 0, "corners");
    free(v);
    op_end(&t);
  }
}

/* Along a dim a NaN is the extremum, whichever is asked for: the first of them. */
static void extrema_of_nan(void) {
  static const char *const names[] = {"aten.max.dim", "aten.min.dim"};
  for (int i = 0; i < 8; i++) {
    const uint32_t size = i & 2 ? 700 : 5;
    const enum vk_dtype dtype = i & 4 ? VK_FLOAT16 : VK_FLOAT32;
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t x = op_input(&t, dtype, DIMS(2, size)), values = op_output(&t, dtype, DIMS(2));
    uint32_t indices = op_output(&t, VK_INT32, DIMS(2));
    op_node(&t, names[i % 2],
            IDS(x, op_int(&t, 1), op_bool(&t, false), op_list(&t, IDS(values, indices))));
    CHECK_OK(op_load(&t, NULL, &err), err);
    double v[1400];
    for (uint32_t e = 0; e < 2 * size; e++) v[e] = e % 3;
    v[0] = -INFINITY, v[1] = INFINITY, v[2] = v[4] = NAN;
    v[size + 3] = i % 2 ? -7 : 7;
    op_set(&t, x, DIMS(2, size), v);
    CHECK_OK(op_run(&t, &err), err);
    uint64_t n;
    test_close(op_get(&t, values, &n), (const double[]){NAN, v[size + 3]}, 2, 0, 0, names[i % 2]);
    test_close(op_get(&t, indices, &n), (const double[]){2, 3}, 2, 0, 0, names[i % 2]);
    op_end(&t);
  }
}

/* Lines in parts, the last of which has fewer than are wanted, and ties in all of them. */
static void long_lines(void) {
  static const struct {
    uint32_t rows, size, k;
    bool largest, large;
  } cases[] = {
      {1, 2 * 65536 + 5, 40, true, false},
      {2, 3 * 65536 + 5, 40, true, false},
      {1, 1000003, 1000, false, false},
      {1, 4200000, 20000, true, true}, /* parts grow, so that what they find can be searched */
      {1, 5000001, 3, true, true},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases && !test_failed(); i++) {
    const uint32_t n_rows = cases[i].rows, size = cases[i].size, k = cases[i].k;
    struct op_test t;
    sconce_error err = {0};
    if (cases[i].large && test_gpu_is_slow()) continue;
    op_begin(&t);
    uint32_t x = op_input(&t, VK_FLOAT32, DIMS(n_rows, size));
    uint32_t values = op_output(&t, VK_FLOAT32, DIMS(n_rows, k));
    uint32_t indices = op_output(&t, VK_INT32, DIMS(n_rows, k));
    op_node(&t, "aten.topk.default",
            IDS(x, op_int(&t, k), op_int(&t, 1), op_bool(&t, cases[i].largest), op_bool(&t, true),
                op_list(&t, IDS(values, indices))));
    if (4 * n_rows * size > t.graph.caps.max_storage_binding) { /* it is not split */
      CHECK_FAILS(op_try(&t, &err), SCONCE_UNSUPPORTED, err, "the device binds at most");
      op_end(&t);
      continue;
    }
    CHECK_OK(op_load(&t, NULL, &err), err);
    /* Every value as often as there are rounds, in an order of its own: the best are those of the
     * first rounds that have them. 7919 is prime to all rounds. */
    enum { ROUND = 50000 };
    double *v = malloc(sizeof *v * n_rows * size), *want = malloc(sizeof *want * n_rows * k),
           *places = malloc(sizeof *places * n_rows * k);
    uint32_t *where = malloc(sizeof *where * ROUND);
    for (uint32_t e = 0; e < n_rows * size; e++) v[e] = (uint32_t)(e % size * 7919ull % ROUND);
    for (uint32_t e = 0; e < ROUND; e++) where[e * 7919ull % ROUND] = e;
    for (uint32_t r = 0, n = 0; r < n_rows; r++)
      for (uint32_t value = 0; n < (r + 1) * k; value++) {
        const uint32_t best = cases[i].largest ? ROUND - 1 - value : value;
        for (uint32_t at = where[best]; at < size && n < (r + 1) * k; at += ROUND, n++) {
          want[n] = best;
          places[n] = at;
        }
      }
    op_set(&t, x, DIMS(n_rows, size), v);
    CHECK_OK(op_run(&t, &err), err);
    uint64_t n;
    test_close(op_get(&t, values, &n), want, n_rows * k, 0, 0, "values");
    test_close(op_get(&t, indices, &n), places, n_rows * k, 0, 0, "places");
    free(v);
    free(want);
    free(places);
    free(where);
    op_end(&t);
  }
}

static void refuses_too_many(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_INT8, DIMS(600000)), y = op_output(&t, VK_INT8, DIMS(600000));
  uint32_t i = op_output(&t, VK_INT32, DIMS(600000));
  op_node(&t, "aten.topk.default",
          IDS(x, op_int(&t, 600000), op_int(&t, 0), op_bool(&t, true), op_bool(&t, true),
              op_list(&t, IDS(y, i))));
  CHECK_FAILS(op_try(&t, &err), SCONCE_UNSUPPORTED, err,
              "the 600000 best of 600000 elements, at most 524288");
  op_end(&t);
  op_begin(&t);
  x = op_input(&t, VK_INT8, DIMS(65537)), y = op_output(&t, VK_INT8, DIMS(65537));
  i = op_output(&t, VK_INT32, DIMS(65537));
  op_node(&t, "aten::sort.values",
          IDS(x, op_int(&t, 0), op_bool(&t, true), y, i, op_list(&t, IDS(y, i))));
  CHECK_FAILS(op_try(&t, &err), SCONCE_UNSUPPORTED, err,
              "a line of 65537 elements to sort, at most 65536");
  op_end(&t);
}

static void refuses(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(4)), y = op_output(&t, VK_FLOAT32, DIMS(5));
  uint32_t i = op_output(&t, VK_INT32, DIMS(5));
  op_node(&t, "aten.topk.default",
          IDS(x, op_int(&t, 5), op_int(&t, 0), op_bool(&t, true), op_bool(&t, true),
              op_list(&t, IDS(y, i))));
  CHECK_FAILS(op_try(&t, &err), SCONCE_BAD_ARGUMENT, err, "5 elements of 4");
  op_end(&t);
}

const struct test suite_topk[] = {
    TEST(every_line), TEST(bytes),   TEST(corners),          TEST(extrema_of_nan),
    TEST(long_lines), TEST(refuses), TEST(refuses_too_many), {0}};
