/* Reductions: every set of dims, against a plain loop over all elements in double. */
#include "oracles.h"

enum { RANK = ORACLE_RANK, LIVE = 5 };

static const struct operation {
  enum oracle_reduction kind;
  const char *name, *row;
  bool integers;
} operations[] = {
    {REDUCE_SUM, "aten.sum.dim_IntList", "sum", true},
    {REDUCE_MEAN, "aten.mean.dim", "sum", false},
    {REDUCE_PRODUCT, "aten.prod.dim_int", "prod", true},
    {REDUCE_MAX, "aten.amax.default", "max", true},
    {REDUCE_MIN, "aten.amin.default", "min", true},
    {REDUCE_ARGMAX, "aten.argmax.default", "argmax", true},
    {REDUCE_ARGMIN, "aten.argmin.default", "argmin", true},
};

static const struct {
  uint32_t x[RANK];
  unsigned dims; /* bits; 0: no list, all */
  bool keep;
  const char *why;
} shapes[] = {
    {{LIVE, 3, 70}, 4, false, "the last dim, more than a workgroup"},
    {{LIVE, 3, 7}, 4, true, "the last dim, kept, odd halves"},
    {{LIVE, 30, 7}, 2, false, "a middle dim"},
    {{3, LIVE, 9}, 1, true, "the first dim"},
    {{3, LIVE, 9}, 5, false, "dims that are not neighbours"},
    {{LIVE, 4, 6}, 0, false, "all of them"},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static bool places(enum oracle_reduction kind) { return kind >= REDUCE_ARGMAX; }

static bool one_dim(enum oracle_reduction kind) { return places(kind) || kind == REDUCE_PRODUCT; }

static double reduce(enum oracle_reduction kind, double so_far, double v, double *best,
                     double place) {
  bool more = kind == REDUCE_MAX || kind == REDUCE_ARGMAX;
  switch (kind) {
  case REDUCE_SUM:
  case REDUCE_MEAN:
    return so_far + v;
  case REDUCE_PRODUCT:
    return so_far * v;
  default:
    if (isnan(*best) || (!isnan(v) && (more ? v <= *best : v >= *best))) return so_far;
    *best = v;
    return places(kind) ? place : v;
  }
}

/* want by output element; returns how many. */
uint64_t oracle_reduce(enum oracle_reduction kind, const double *x, const uint32_t *dims,
                       unsigned reduced, double *want) {
  double best[1000], count = 1;
  uint64_t n = 1, numel = (uint64_t)dims[0] * dims[1] * dims[2];
  for (int i = 0; i < RANK; i++) {
    if (reduced >> i & 1)
      count *= dims[i];
    else
      n *= dims[i];
  }
  for (uint64_t e = 0; e < n; e++) {
    best[e] = kind == REDUCE_MAX || kind == REDUCE_ARGMAX ? -INFINITY : INFINITY;
    want[e] = kind == REDUCE_MAX || kind == REDUCE_MIN ? best[e] : kind == REDUCE_PRODUCT;
  }
  for (uint64_t e = 0; e < numel; e++) {
    uint32_t c[RANK] = {(uint32_t)(e / dims[2] / dims[1]), (uint32_t)(e / dims[2] % dims[1]),
                        (uint32_t)(e % dims[2])};
    uint64_t at = 0, place = 0;
    for (int i = 0; i < RANK; i++) {
      uint64_t *which = reduced >> i & 1 ? &place : &at;
      *which = *which * dims[i] + c[i];
    }
    want[at] = reduce(kind, want[at], x[e], &best[at], (double)place);
  }
  for (uint64_t e = 0; e < n && kind == REDUCE_MEAN; e++) want[e] /= count;
  return n;
}

/* Of a product that stays small: v is -1 to 1. */
static double factor(double v, enum vk_dtype dtype) {
  if (dtype != VK_INT32) return 1 + round(v * 8) / 64;
  return fabs(v) > 0.9 ? 2 : v > 0 ? 1 : -1;
}

static uint32_t dims_arg(struct op_test *t, enum oracle_reduction kind, unsigned dims,
                         bool as_int) {
  int64_t list[RANK];
  uint32_t n = 0;
  for (int i = 0; i < RANK; i++)
    if (dims >> i & 1) list[n++] = as_int ? i : i - RANK;
  if (!n) return op_null(t);
  if (!one_dim(kind)) return op_ints(t, list, n);
  return as_int ? op_int(t, list[0]) : op_double(t, (double)list[0]);
}

static void run(const struct operation *o, size_t s, enum vk_dtype dtype, const char *force) {
  static const uint32_t lives[] = {LIVE, 2, 1, LIVE};
  unsigned reduced = shapes[s].dims ? shapes[s].dims : 7;
  if (o->kind == REDUCE_PRODUCT && !shapes[s].dims) return;                /* another name */
  if (one_dim(o->kind) && (shapes[s].dims & (shapes[s].dims - 1))) return; /* takes one dim */
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t out[RANK], rank = 0;
  for (int i = 0; i < RANK; i++)
    if (shapes[s].keep || !(reduced >> i & 1)) out[rank++] = reduced >> i & 1 ? 1 : shapes[s].x[i];
  uint32_t x = op_input(&t, dtype, shapes[s].x, RANK);
  uint32_t y = op_output(&t, places(o->kind) ? VK_INT32 : dtype, out, rank);
  uint32_t dims = dims_arg(&t, o->kind, shapes[s].dims, force == NULL),
           keep = op_bool(&t, shapes[s].keep);
  if (o->kind <= REDUCE_PRODUCT)
    op_node(&t, o->name, IDS(x, dims, keep, op_null(&t), y));
  else
    op_node(&t, o->name, IDS(x, dims, keep, y));
  CHECK_OK(op_load(&t, force, &err), err);
  for (size_t i = 0; i < 4 && !test_failed(); i++) {
    uint32_t live[RANK];
    for (int d = 0; d < RANK; d++) live[d] = shapes[s].x[d] == LIVE ? lives[i] : shapes[s].x[d];
    uint64_t n = (uint64_t)live[0] * live[1] * live[2], n_got;
    double *values = test_values(VK_FLOAT32, n, 3 + i), *want = malloc(1000 * sizeof *want);
    for (uint64_t e = 0; e < n; e++)
      values[e] = o->kind == REDUCE_PRODUCT ? factor(values[e], dtype)
                                            : round(values[e] * 20) / (dtype == VK_INT32 ? 1 : 4);
    op_set(&t, x, live, RANK, values);
    CHECK_OK(op_run(&t, &err), err);
    const double *got = op_get(&t, y, &n_got);
    CHECK_EQ(n_got, oracle_reduce(o->kind, values, live, reduced, want));
    double rel = o->kind > REDUCE_PRODUCT ? 0 : dtype == VK_FLOAT16 ? 1e-3 : 2e-6;
    char what[120];
    snprintf(what, sizeof what, "%s %s: %s", o->name, vk_dtype_name(dtype), shapes[s].why);
    test_close(got, want, n_got, rel, rel, what);
    free(values);
    free(want);
  }
  op_end(&t);
}

/* The table's choice; where that is a thread for an output, a workgroup as well. */
static void every_row(void) {
  static const char *const names[] = {"f32", "f16", "i32"};
  static const enum vk_dtype dtypes[] = {VK_FLOAT32, VK_FLOAT16, VK_INT32};
  for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
    for (size_t d = 0; d < 3; d++)
      for (size_t s = 0; s < SHAPES && (d < 2 || operations[i].integers); s++) {
        char name[40];
        snprintf(name, sizeof name, "%s_%s", operations[i].row, names[d]);
        run(&operations[i], s, dtypes[d], NULL);
        if (s == 1 || s == 4) run(&operations[i], s, dtypes[d], name);
      }
}

static void corners(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(2, 4)), one = op_ints(&t, INTS(-1)),
           no = op_bool(&t, false);
  uint32_t most = op_output(&t, VK_FLOAT32, DIMS(2)), place = op_output(&t, VK_INT32, DIMS(2));
  uint32_t sum = op_output(&t, VK_FLOAT32, DIMS(2));
  op_node(&t, "aten.amax.default", IDS(x, one, no, most));
  op_node(&t, "aten.argmin.default", IDS(x, op_int(&t, 1), no, place));
  op_node(&t, "aten.sum.dim_IntList", IDS(x, one, no, op_null(&t), sum));
  CHECK_OK(op_load(&t, NULL, &err), err);
  const double values[] = {1, NAN, 3, NAN, -INFINITY, -5, -INFINITY, -7};
  op_set(&t, x, DIMS(2, 4), values);
  CHECK_OK(op_run(&t, &err), err);
  uint64_t n;
  test_close(op_get(&t, most, &n), (const double[]){NAN, -5}, 2, 0, 0, "a NaN is the largest");
  test_close(op_get(&t, place, &n), (const double[]){1, 0}, 2, 0, 0, "the first of equals");
  op_set(&t, x, DIMS(2, 0), values);
  CHECK_EQ(op_run(&t, &err), SCONCE_BAD_ARGUMENT);
  CHECK(strstr(err.text, "the extremum of no elements") != NULL);
  op_end(&t);
}

/* Of every element, of none, and of elements of another dtype. */
static void of_all(void) {
  static const struct {
    const char *name;
    enum vk_dtype from, to;
    uint32_t n;
    double want;
    const char *why;
  } cases[] = {
      {"aten::prod.out", VK_FLOAT32, VK_FLOAT32, 4, 0.75, "a product"},
      {"aten::prod.out", VK_FLOAT16, VK_FLOAT16, 0, 1, "a product of nothing"},
      {"aten::prod.out", VK_BOOL, VK_INT32, 4, 1, "of booleans"},
      {"aten::mean.dtype_out", VK_FLOAT32, VK_FLOAT32, 4, 1.1875, "a mean"},
      {"aten::mean.dtype_out", VK_FLOAT32, VK_FLOAT32, 0, NAN, "a mean of nothing"},
  };
  static const double values[] = {0.5, 2, 0.75, 1}, means[] = {0.5, 2, 1.25, 1},
                      ones[] = {1, 1, 1, 1};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t x = op_input(&t, cases[i].from, DIMS(4)), y = op_output(&t, cases[i].to, NULL, 0);
    op_node(&t, cases[i].name, IDS(x, op_null(&t), y));
    CHECK_OK(op_load(&t, NULL, &err), err);
    op_set(&t, x, DIMS(cases[i].n),
           cases[i].from == VK_BOOL        ? ones
           : strstr(cases[i].name, "mean") ? means
                                           : values);
    CHECK_OK(op_run(&t, &err), err);
    uint64_t n;
    test_close(op_get(&t, y, &n), &cases[i].want, 1, 1e-6, 0, cases[i].why);
    op_end(&t);
  }
}

/* Lines in parts. In all of them ones of both signs take turns, but for one 2 and one -2, so that
 * every result is small: sums within what float16 holds, products of all. */
static const struct {
  uint32_t x[RANK];
  unsigned dims;
  bool all_dtypes;
  const char *why;
} long_lines[] = {
    {{1, 1, 40003}, 4, true, "elements that follow each other"},
    {{1, 1, 1000003}, 4, false, "a million"},
    {{1, 2600, 100}, 2, true, "lines side by side, a thread for each part"},
    {{1, 5000, 3}, 2, false, "a few lines side by side"},
    {{40, 3, 2000}, 5, false, "over dims that are not neighbours"},
    {{1, 1, 5000001}, 4, false, "five million"},
};

/* Lines run from the first to the last element of the reduced dims. */
enum { N = sizeof operations / sizeof *operations };

static double *of_both_signs(const uint32_t *dims, uint64_t numel) {
  double *x = malloc((size_t)numel * sizeof *x);
  for (uint64_t i = 0; i < numel; i++) x[i] = i / dims[2] % 2 == i % dims[2] % 2 ? 1 : -1;
  for (uint64_t i = 0; i < 2; i++)
    x[(uint64_t)((double)numel * (0.6 + 0.3 * (double)i))] = 2 - 4.0 * (double)i;
  return x;
}

static void long_line(size_t s, enum vk_dtype dtype, const double *values, double (*want)[1000]) {
  const uint32_t *dims = long_lines[s].x;
  const uint64_t numel = (uint64_t)dims[0] * dims[1] * dims[2];
  struct op_test t;
  sconce_error err = {0};
  uint32_t out[RANK], ys[N] = {0};
  int64_t list[RANK];
  op_begin(&t);
  uint32_t x = op_input(&t, dtype, dims, RANK), n = 0;
  for (int i = 0; i < RANK; i++) {
    const bool gone = long_lines[s].dims >> i & 1;
    out[i] = gone ? 1 : dims[i];
    if (gone) list[n++] = i;
  }
  for (size_t i = 0; i < N; i++) {
    const struct operation *o = &operations[i];
    if ((one_dim(o->kind) && n > 1) || (dtype == VK_INT32 && !o->integers)) continue;
    const uint32_t which = one_dim(o->kind) ? op_int(&t, list[0]) : op_ints(&t, list, n);
    ys[i] = op_output(&t, places(o->kind) ? VK_INT32 : dtype, out, RANK);
    if (o->kind <= REDUCE_PRODUCT)
      op_node(&t, o->name, IDS(x, which, op_bool(&t, true), op_null(&t), ys[i]));
    else
      op_node(&t, o->name, IDS(x, which, op_bool(&t, true), ys[i]));
  }
  if (numel * vk_dtype_size(dtype) > t.graph.caps.max_storage_binding) { /* it is not split */
    CHECK_FAILS(op_try(&t, &err), SCONCE_UNSUPPORTED, err, "binding");
    op_end(&t);
    return;
  }
  CHECK_OK(op_load(&t, NULL, &err), err);
  op_set(&t, x, dims, RANK, values);
  CHECK_OK(op_run(&t, &err), err);
  for (size_t i = 0; i < N && !test_failed(); i++) {
    uint64_t got;
    if (ys[i])
      test_close(op_get(&t, ys[i], &got), want[i], out[0] * out[1] * out[2], 1e-7, 1e-3,
                 long_lines[s].why);
  }
  op_end(&t);
}

static void in_parts(void) {
  static const enum vk_dtype dtypes[] = {VK_FLOAT32, VK_FLOAT16, VK_INT32};
  for (size_t s = 0; s < sizeof long_lines / sizeof *long_lines; s++) {
    if (long_lines[s].x[2] > 5000000 && test_gpu_is_slow()) continue;
    const uint32_t *dims = long_lines[s].x;
    double *values = of_both_signs(dims, (uint64_t)dims[0] * dims[1] * dims[2]);
    double(*want)[1000] = malloc(N * sizeof *want);
    for (size_t i = 0; i < N; i++)
      oracle_reduce(operations[i].kind, values, dims, long_lines[s].dims, want[i]);
    for (size_t d = 0; d < (long_lines[s].all_dtypes ? 3 : 1); d++)
      long_line(s, dtypes[d], values, want);
    free(values);
    free(want);
  }
}

const struct test suite_reduce[] = {
    TEST(every_row), TEST(corners), TEST(of_all), TEST(in_parts), {0}};
