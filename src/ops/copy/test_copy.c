/* Views and casts: sizes that are evaluated, memory that is shared or copied, every pair of dtypes.
 */
#include "op.h"

#include "base/half.h"

static double *counting(uint64_t n) {
  double *x = malloc((size_t)(n + 1) * sizeof *x);
  for (uint64_t i = 0; i < n; i++) x[i] = (double)(i % 100);
  return x;
}

enum kind { VIEW, SQUEEZE, UNSQUEEZE, CLONE, ALIAS, ORDER };
static const struct row {
  enum kind kind;
  const char *name;
  uint32_t rank_x, x[4], rank_y, y[4];
  uint32_t n;
  int64_t a[4];
  const char *why;
} rows[] = {
    {VIEW,
     "aten.view_copy.default",
     2,
     {6, 4},
     3,
     {6, 2, 2},
     3,
     {-1, 2, 2},
     "live rows are inferred"},
    {VIEW, "aten.view_copy.default", 2, {6, 5}, 1, {30}, 1, {-1}, "flat"},
    {VIEW, "aten::view_copy.out", 2, {6, 3}, 3, {1, 6, 3}, 3, {1, -1, 3}, "a dim in front"},
    {SQUEEZE, "aten.squeeze_copy.dims", 3, {6, 1, 3}, 2, {6, 3}, 2, {1, 0}, "a live 1 stays"},
    {SQUEEZE, "aten.squeeze_copy.dims", 3, {6, 3, 1}, 2, {6, 3}, 1, {-1}, "from the end"},
    {UNSQUEEZE, "aten.unsqueeze_copy.default", 2, {6, 3}, 3, {6, 3, 1}, 1, {-1}, "behind the last"},
    {UNSQUEEZE, "aten.unsqueeze_copy.default", 2, {6, 3}, 3, {1, 6, 3}, 1, {0}, "before the first"},
    {CLONE, "aten.clone.default", 2, {6, 3}, 2, {6, 3}, 0, {0}, ""},
    {ALIAS, "aten.alias_copy.default", 2, {6, 3}, 2, {6, 3}, 0, {0}, ""},
    {ORDER, "dim_order_ops._clone_dim_order.default", 2, {6, 3}, 2, {6, 3}, 0, {0}, ""},
};
enum { ROWS = sizeof rows / sizeof *rows };

static void add_node(struct op_test *t, const struct row *r, uint32_t x, uint32_t y, bool as_int) {
  uint32_t list = op_ints(t, r->a, r->n);
  uint32_t number = as_int ? op_int(t, r->a[0]) : op_double(t, (double)r->a[0]);
  if (r->kind == ALIAS)
    op_node(t, r->name, IDS(x, y));
  else if (r->kind == CLONE)
    op_node(t, r->name, IDS(x, op_null(t), y));
  else if (r->kind == ORDER)
    op_node(t, r->name, IDS(x, op_bool(t, false), op_null(t), y));
  else
    op_node(t, r->name, IDS(x, r->kind == UNSQUEEZE ? number : list, y));
}

/* From input to output a view is a copy; between two operators it is nothing at all. */
static void run(const struct row *r, enum vk_dtype dtype, bool inside) {
  static const uint32_t lives[] = {6, 2, 1, 0, 5, 6};
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, dtype, r->x, r->rank_x), y = op_output(&t, dtype, r->y, r->rank_y);
  uint32_t from = inside ? op_tensor(&t, dtype, r->x, r->rank_x) : x;
  uint32_t to = inside ? op_tensor(&t, dtype, r->y, r->rank_y) : y;
  if (inside) op_node(&t, "aten.neg.default", IDS(x, from));
  add_node(&t, r, from, to, inside);
  if (inside) op_node(&t, "aten.neg.default", IDS(to, y));
  CHECK_OK(op_load(&t, NULL, &err), err);
  for (size_t i = 0; i < sizeof lives / sizeof *lives && !test_failed(); i++) {
    uint32_t dims[4];
    memcpy(dims, r->x, sizeof dims);
    dims[0] = lives[i];
    double *values = counting(100);
    op_set(&t, x, dims, r->rank_x, values);
    CHECK_OK(op_run(&t, &err), err);
    CHECK_EQ(t.exec.n_dispatches, lives[i] == 0 ? 0 : inside ? 2 : 1);
    uint64_t n, want = 1;
    for (uint32_t d = 0; d < r->rank_x; d++) want *= dims[d];
    const double *got = op_get(&t, y, &n);
    CHECK_EQ(n, want);
    test_close(got, values, n, 0, 0, r->why);
    free(values);
  }
  op_end(&t);
}

static void views(void) {
  for (size_t i = 0; i < ROWS; i++) {
    run(&rows[i], VK_FLOAT32, true);
    run(&rows[i], VK_FLOAT32, false);
    run(&rows[i], VK_FLOAT16, false);
    run(&rows[i], VK_INT8, false);
  }
}

/* A size list with a scalar that changes. */
static void live_sizes(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(12, 2)), live = op_symint(&t);
  uint32_t y = op_output(&t, VK_FLOAT32, DIMS(12, 12));
  op_node(&t, "aten.view_copy.default", IDS(x, op_list(&t, IDS(live, op_double(&t, -1))), y));
  CHECK_OK(op_load(&t, NULL, &err), err);
  double *values = counting(24);
  for (uint32_t rows_x = 12; rows_x > 1 && !test_failed(); rows_x -= 3) {
    op_set(&t, x, DIMS(rows_x, 2), values);
    op_set_symint(&t, live, rows_x * 2 / 6);
    sconce_status status = op_run(&t, &err);
    CHECK_EQ(status, rows_x % 3 ? SCONCE_BAD_ARGUMENT : SCONCE_OK);
    CHECK_EQ(t.graph.values[y].tensor.dim_live[0], rows_x * 2 / 6);
    CHECK_EQ(t.graph.values[y].tensor.dim_live[1], 6);
  }
  op_set_symint(&t, live, 5);
  CHECK_EQ(op_run(&t, &err), SCONCE_BAD_ARGUMENT);
  CHECK(strstr(err.text, "6 elements do not fill sizes whose product is 5") != NULL);
  free(values);
  op_end(&t);
}

/* ---- casts ----------------------------------------------------------------------------------- */

static double cast(double x, enum vk_dtype to) {
  switch (to) {
  case VK_BOOL:
    return x != 0;
  case VK_INT32:
    return trunc(x);
  case VK_INT8:
    return (int8_t)(int64_t)trunc(x);
  case VK_UINT8:
    return (uint8_t)(int64_t)trunc(x);
  default:
    return x;
  }
}

/* A portable call has fewer arguments: [x, non_blocking, memory_format or dim_order, out]. */
static void casts_one(const char *name, bool portable, enum vk_dtype from, enum vk_dtype to) {
  static const double values[] = {0, 1, 2.75, -2.75, 100, -100, 0.25, -0.5, 127, 255, 300};
  enum { N = sizeof values / sizeof *values };
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, from, DIMS(N)), y = op_output(&t, to, DIMS(N)), null = op_null(&t);
  uint32_t blocking = op_bool(&t, false);
  if (portable)
    op_node(&t, name, IDS(x, blocking, null, y));
  else
    op_node(&t, name, IDS(x, null, null, null, null, blocking, null, y));
  CHECK_OK(op_load(&t, NULL, &err), err);
  for (uint32_t live = N; live > 0 && !test_failed(); live -= 5) {
    double in[N], want[N];
    for (uint32_t i = 0; i < live; i++) {
      in[i] = from == VK_FLOAT16 ? values[i] : cast(values[i], from);
      want[i] = cast(in[i], to);
    }
    op_set(&t, x, DIMS(live), in);
    CHECK_OK(op_run(&t, &err), err);
    uint64_t n;
    const double *got = op_get(&t, y, &n);
    CHECK_EQ(n, live);
    char what[100];
    snprintf(what, sizeof what, "%s to %s", vk_dtype_name(from), vk_dtype_name(to));
    test_close(got, want, n, 0, 0, what);
    if (live < 5) break;
  }
  op_end(&t);
}

static void every_cast(void) {
  static const enum vk_dtype dtypes[] = {VK_FLOAT32, VK_FLOAT16, VK_INT32,
                                         VK_INT8,    VK_UINT8,   VK_BOOL};
  for (size_t i = 0; i < 6; i++)
    for (size_t k = 0; k < 6; k++) {
      casts_one(i % 2 ? "aten._to_copy.default" : "dim_order_ops._to_dim_order_copy.default", false,
                dtypes[i], dtypes[k]);
      casts_one(i % 2 ? "aten::_to_copy.out" : "dim_order_ops::_to_dim_order_copy.out", true,
                dtypes[i], dtypes[k]);
    }
}

/* Every number of float16, with zeros and infinities, to float32. Back, finite ones and those
 * between two neighbours: the nearer, and at ties the even one. Dawn makes NaN of an infinity. */
static void every_half(void) {
  enum { ALL = 2 * 0x7c01, QUARTERS = 4 * (ALL - 2) };
  double *halves = malloc(ALL * sizeof *halves), *between = malloc(QUARTERS * sizeof *between);
  double *want = malloc(QUARTERS * sizeof *want);
  for (uint32_t i = 0; i < ALL; i++)
    halves[i] = (double)half_to_float((uint16_t)(i / 2 | (i % 2 ? 0x8000 : 0)));
  for (uint32_t i = 0; i < QUARTERS; i++) {
    const double low = halves[i / 4], high = halves[i / 4 + 2];
    between[i] = isinf(high) ? low : low + (high - low) * (i % 4) / 4;
    want[i] = (double)half_to_float(half_from_float((float)between[i]));
  }
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_FLOAT16, DIMS(ALL)), y = op_output(&t, VK_FLOAT32, DIMS(ALL));
  uint32_t a = op_input(&t, VK_FLOAT32, DIMS(QUARTERS));
  uint32_t b = op_output(&t, VK_FLOAT16, DIMS(QUARTERS)), null = op_null(&t);
  op_node(&t, "aten._to_copy.default", IDS(x, null, null, null, null, null, null, y));
  op_node(&t, "aten._to_copy.default", IDS(a, null, null, null, null, null, null, b));
  CHECK_OK(op_load(&t, NULL, &err), err);
  op_set(&t, x, DIMS(ALL), halves);
  op_set(&t, a, DIMS(QUARTERS), between);
  if (!test_failed()) CHECK_OK(op_run(&t, &err), err);
  uint64_t n;
  if (!test_failed()) test_close(op_get(&t, y, &n), halves, ALL, 0, 0, "to float32");
  if (!test_failed()) test_close(op_get(&t, b, &n), want, QUARTERS, 0, 0, "to float16");
  op_end(&t);
  free(halves);
  free(between);
  free(want);
}

/* Split by ranges where the device's bindings are smaller. */
static void large(void) {
  enum { N = 300 * 1001 };
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(N)), y = op_output(&t, VK_FLOAT16, DIMS(N));
  uint32_t z = op_output(&t, VK_FLOAT32, DIMS(300, 1001)), null = op_null(&t);
  op_node(&t, "aten._to_copy.default", IDS(x, null, null, null, null, null, null, y));
  op_node(&t, "aten.view_copy.default", IDS(x, op_ints(&t, INTS(300, -1)), z));
  double *values = counting(N);
  CHECK_OK(op_load(&t, NULL, &err), err);
  if (!test_failed()) {
    op_set(&t, x, DIMS(N), values);
    CHECK_OK(op_run(&t, &err), err);
    uint64_t n;
    test_close(op_get(&t, y, &n), values, N, 0, 0, "a cast");
    test_close(op_get(&t, z, &n), values, N, 0, 0, "a copy");
  }
  free(values);
  op_end(&t);
}

const struct test suite_copy[] = {TEST(views),      TEST(live_sizes), TEST(every_cast),
                                  TEST(every_half), TEST(large),      {0}};
