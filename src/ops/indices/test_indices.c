/* Several indices at once, to read and to write, and masks: every coordinate by the rules that
 * PyTorch documents. */
#include "op.h"

enum { X = 4, LIVE = 13, MOST = 5000 };

static const struct row {
  uint32_t x[X];
  uint32_t rank[X];     /* of the index for each dim; 0: there is none */
  uint32_t index[X][2]; /* its dims */
  uint32_t values;      /* trailing dims of the result that values have for index_put */
  const char *why;
} rows[] = {
    {{5, 7, 3, 2}, {1, 1}, {{LIVE}, {LIVE}}, 3, "two in front"},
    {{5, 7, 3, 2},
     {0, 1, 1},
     {{0}, {LIVE}, {LIVE}},
     3,
     "neighbours in the middle: they stay there"},
    {{5, 7, 3, 4}, {1, 0, 1}, {{LIVE}, {0}, {LIVE}}, 1, "apart: they go to the front"},
    {{5, 7, 3, 2}, {2, 1, 0, 1}, {{LIVE, 1}, {4}, {0}, {1}}, 2, "three that broadcast"},
    {{5, 7, 3, 2},
     {0, 0, 2, 1},
     {{0}, {0}, {LIVE, 3}, {3}},
     0,
     "whole elements, one value for all"},
    {{6, 2, 3, 2}, {1}, {{LIVE}}, 4, "one, to write"},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* ---- the oracle ------------------------------------------------------------------------------ */

struct picture {                /* of one call */
  uint32_t n_shared, shared[2]; /* dims of all indices broadcast */
  uint32_t rank, dims[6], from; /* of the result; `from`: where those dims begin */
  uint32_t index[X][2];
  double *at[X]; /* elements of the indices */
};

static void look(const struct row *r, uint32_t live, struct picture *q) {
  uint32_t first = X, last = 0, count = 0;
  *q = (struct picture){0};
  for (uint32_t d = 0; d < X; d++) {
    if (!r->rank[d]) continue;
    if (first == X) first = d;
    last = d;
    count++;
    if (r->rank[d] > q->n_shared) q->n_shared = r->rank[d];
  }
  for (uint32_t i = 0; i < q->n_shared; i++) q->shared[i] = 1;
  for (uint32_t d = 0; d < X; d++)
    for (uint32_t i = 0; i < r->rank[d]; i++) {
      uint32_t size = r->index[d][i] == LIVE ? live : r->index[d][i];
      q->index[d][i] = size;
      if (size != 1) q->shared[q->n_shared - r->rank[d] + i] = size;
    }
  q->from = last - first + 1 == count ? first : 0;
  for (uint32_t d = 0; d <= X; d++) {
    for (uint32_t i = 0; d == q->from && i < q->n_shared; i++) q->dims[q->rank++] = q->shared[i];
    if (d < X && !r->rank[d]) q->dims[q->rank++] = r->x[d];
  }
}

/* The element of x that element e of the result is. */
static uint64_t place(const struct row *r, const struct picture *q, uint64_t e) {
  uint32_t c[6], k = 0;
  uint64_t at = 0;
  for (uint32_t i = q->rank; i-- > 0; e /= q->dims[i]) c[i] = (uint32_t)(e % q->dims[i]);
  for (uint32_t d = 0; d < X; d++) {
    uint32_t here;
    if (r->rank[d]) {
      uint64_t which = 0;
      for (uint32_t i = 0; i < r->rank[d]; i++) {
        uint32_t size = q->index[d][i], coordinate = c[q->from + q->n_shared - r->rank[d] + i];
        which = which * size + (size == 1 ? 0 : coordinate);
      }
      double i = q->at[d][which];
      here = (uint32_t)(i < 0 ? i + r->x[d] : i);
    } else {
      if (k == q->from) k += q->n_shared;
      here = c[k++];
    }
    at = at * r->x[d] + here;
  }
  return at;
}

/* ---- running --------------------------------------------------------------------------------- */

enum kind { READ, WRITE, ADD };

struct call {
  struct op_test t;
  const struct row *r;
  enum kind kind;
  enum vk_dtype dtype;
  uint32_t x, index[X], values, y;
};

static uint64_t product(const uint32_t *dims, uint32_t rank) {
  uint64_t n = 1;
  for (uint32_t i = 0; i < rank; i++) n *= dims[i];
  return n;
}

static double *numbers(enum vk_dtype dtype, uint64_t n, uint64_t seed) {
  double *v = test_values(VK_FLOAT32, n, seed);
  for (uint64_t i = 0; i < n; i++)
    v[i] = round(v[i] * 60) / (dtype == VK_FLOAT32 ? 4 : 1) + (dtype == VK_UINT8 ? 60 : 0);
  return v;
}

static void set_indices(struct call *c, struct picture *q) {
  uint64_t seed = 3;
  for (uint32_t d = 0; d < X; d++) {
    if (!c->r->rank[d]) continue;
    uint64_t n = product(q->index[d], c->r->rank[d]);
    q->at[d] = calloc((size_t)n + 1, sizeof *q->at[d]);
    for (uint64_t i = 0; i < n; i++)
      q->at[d][i] = floor((double)test_random_float(&seed) * c->r->x[d]); /* negative ones too */
    op_set(&c->t, c->index[d], q->index[d], c->r->rank[d], q->at[d]);
  }
}

static void run_call(struct call *c, uint32_t live) {
  const struct row *r = c->r;
  struct picture q;
  sconce_error err = {0};
  look(r, live, &q);
  set_indices(c, &q);
  uint64_t n = product(r->x, X), picked = product(q.dims, q.rank), got;
  uint32_t skip = q.rank - r->values;
  uint64_t given = product(q.dims + skip, r->values);
  double *x = numbers(c->dtype, n, 1), *values = numbers(c->dtype, given, 2);
  double *want = calloc((size_t)(picked > n ? picked : n) + 1, sizeof *want);
  op_set(&c->t, c->x, r->x, X, x);
  if (c->kind != READ) op_set(&c->t, c->values, q.dims + skip, r->values, values);
  if (c->kind != READ) memcpy(want, x, (size_t)n * sizeof *x);
  for (uint64_t e = 0; e < picked; e++) {
    uint64_t at = place(r, &q, e);
    if (c->kind == READ)
      want[e] = x[at];
    else
      want[at] = values[e % given] + (c->kind == ADD ? want[at] : 0);
  }
  CHECK_OK(op_run(&c->t, &err), err);
  const double *result = op_get(&c->t, c->y, &got);
  CHECK_EQ(got, c->kind == READ ? picked : n);
  if (!test_failed()) test_close(result, want, got, 0, 0, r->why);
  for (uint32_t d = 0; d < X; d++) free(q.at[d]);
  free(x);
  free(values);
  free(want);
}

static void run(const struct row *r, enum kind kind, enum vk_dtype dtype, const char *name) {
  struct call c = {.r = r, .kind = kind, .dtype = dtype};
  struct op_test *t = &c.t;
  struct picture q;
  sconce_error err = {0};
  uint32_t list[X], n = 0;
  op_begin(t);
  look(r, LIVE, &q);
  c.x = op_input(t, dtype, r->x, X);
  for (uint32_t d = 0; d < X; d++) {
    if (r->rank[d]) c.index[d] = op_input(t, VK_INT32, r->index[d], r->rank[d]);
    list[d] = r->rank[d] ? c.index[d] : NO_VALUE;
    if (r->rank[d]) n = d + 1;
  }
  if (kind != READ) c.values = op_input(t, dtype, q.dims + q.rank - r->values, r->values);
  c.y = kind == READ ? op_output(t, dtype, q.dims, q.rank) : op_output(t, dtype, r->x, X);
  if (kind == READ)
    op_node(t, name, IDS(c.x, op_list(t, list, n), c.y));
  else
    op_node(t, name, IDS(c.x, op_list(t, list, n), c.values, op_bool(t, kind == ADD), c.y));
  CHECK_OK(op_load(t, NULL, &err), err);
  const uint32_t lives[] = {LIVE, 2, 1, 0, LIVE};
  for (int i = 0; i < 5 && !test_failed(); i++) run_call(&c, lives[i]);
  op_end(t);
}

static void reads(void) {
  for (size_t i = 0; i < ROWS; i++) {
    run(&rows[i], READ, VK_FLOAT32, "aten.index.Tensor");
    run(&rows[i], READ, VK_FLOAT16, "aten::index.Tensor_out");
    run(&rows[i], READ, VK_UINT8, "aten.index.Tensor");
  }
}

static void writes(void) {
  for (size_t i = 0; i < ROWS; i++) {
    run(&rows[i], WRITE, VK_FLOAT32, "aten.index_put.default");
    run(&rows[i], WRITE, VK_FLOAT16, "aten::index_put.out");
    run(&rows[i], WRITE, VK_UINT8, "aten.index_put.default");
    run(&rows[i], ADD, VK_FLOAT32, "aten.index_put.default");
    run(&rows[i], ADD, VK_INT32, "aten.index_put.default");
    run(&rows[i], ADD, VK_FLOAT16, "aten.index_put.default");
  }
}

/* ---- masks ----------------------------------------------------------------------------------- */

/* x[mask] = values, where the mask covers leading dims or, behind a dim without one, the next. */
static void masks(void) {
  static const struct {
    uint32_t skip, covers, values; /* values: trailing dims behind the mask's */
  } cases[] = {{0, 1, 2}, {0, 2, 0}, {1, 1, 1}, {0, 3, 0}};
  const uint32_t dims[] = {5, 3, 7};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const uint32_t skip = cases[i].skip, covers = cases[i].covers;
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t x = op_input(&t, VK_FLOAT32, dims, 3), y = op_output(&t, VK_FLOAT32, dims, 3);
    uint32_t mask = op_input(&t, VK_BOOL, dims + skip, covers);
    uint32_t values = op_input(&t, VK_FLOAT32, dims + 3 - cases[i].values, cases[i].values);
    op_node(&t, "aten.index_put.default",
            IDS(x, skip ? op_list(&t, IDS(NO_VALUE, mask)) : op_list(&t, IDS(mask)), values,
                op_bool(&t, false), y));
    CHECK_OK(op_load(&t, NULL, &err), err);
    double vx[105], vm[105], vv[105], want[105];
    uint64_t inner = product(dims + skip + covers, 3 - skip - covers);
    uint64_t masked = product(dims + skip, covers),
             given = product(dims + 3 - cases[i].values, cases[i].values), n;
    for (uint32_t e = 0; e < 105; e++) vx[e] = e, vm[e] = e * 7 % 3 == 1, vv[e] = 1000 + e;
    for (uint32_t e = 0; e < 105; e++)
      want[e] = vm[e / inner % masked] != 0 ? vv[e % given] : vx[e];
    op_set(&t, x, dims, 3, vx);
    op_set(&t, mask, dims + skip, covers, vm);
    op_set(&t, values, dims + 3 - cases[i].values, cases[i].values, vv);
    CHECK_OK(op_run(&t, &err), err);
    test_close(op_get(&t, y, &n), want, 105, 0, 0, "a mask");
    op_end(&t);
  }
}

/* A state that each call writes a row of, as a cache does. */
static void in_place(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  double want[12] = {0};
  uint32_t state = op_constant(&t, VK_FLOAT32, DIMS(4, 3), want), one = op_int(&t, 1);
  uint32_t at = op_input(&t, VK_INT32, DIMS(1)), row = op_input(&t, VK_FLOAT32, DIMS(1, 3));
  uint32_t zero = op_constant(&t, VK_FLOAT32, DIMS(1), (const double[]){0});
  uint32_t y = op_output(&t, VK_FLOAT32, DIMS(4, 3));
  op_node(&t, "aten::index_put_", IDS(state, op_list(&t, IDS(at)), row, op_bool(&t, false), state));
  op_node(&t, "aten.add.Tensor", IDS(state, zero, one, y));
  CHECK_OK(op_load(&t, NULL, &err), err);
  for (uint32_t i = 0; i < 5 && !test_failed(); i++) {
    const uint32_t to = i * 3 % 4;
    double values[3] = {10.0 * i, 10.0 * i + 1, 10.0 * i + 2}, place = to;
    memcpy(want + 3 * to, values, sizeof values);
    op_set(&t, at, DIMS(1), &place);
    op_set(&t, row, DIMS(1, 3), values);
    CHECK_OK(op_run(&t, &err), err);
    uint64_t n;
    test_close(op_get(&t, y, &n), want, 12, 0, 0, "rows stay where they were put");
  }
  op_end(&t);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void refuses(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(4, 5)), y = op_output(&t, VK_FLOAT32, DIMS(3));
  uint32_t i = op_input(&t, VK_INT32, DIMS(3)), k = op_input(&t, VK_INT32, DIMS(3));
  op_node(&t, "aten.index.Tensor", IDS(x, op_list(&t, IDS(i, k)), y));
  CHECK_OK(op_load(&t, NULL, &err), err);
  double zeros[20] = {0};
  op_set(&t, x, DIMS(4, 5), zeros);
  op_set(&t, i, DIMS(3), (const double[]){0, 1, -4});
  op_set(&t, k, DIMS(3), (const double[]){0, 5, 1});
  CHECK_FAILS(op_run(&t, &err), SCONCE_BAD_ARGUMENT, err, "index 5 of a dim of 5");
  op_set(&t, i, DIMS(3), zeros);
  op_set(&t, k, DIMS(2), zeros);
  CHECK_FAILS(op_run(&t, &err), SCONCE_BAD_ARGUMENT, err, "do not broadcast");
  op_end(&t);
  op_begin(&t);
  x = op_input(&t, VK_FLOAT32, DIMS(4, 5)), y = op_output(&t, VK_FLOAT32, DIMS(4, 5));
  uint32_t mask = op_input(&t, VK_BOOL, DIMS(4)), values = op_input(&t, VK_FLOAT32, DIMS(2, 5));
  op_node(&t, "aten.index_put.default",
          IDS(x, op_list(&t, IDS(mask)), values, op_bool(&t, false), y));
  CHECK_FAILS(op_try(&t, &err), SCONCE_UNSUPPORTED, err,
              "values of float32 [2, 5] do not broadcast to 2 dims by their indices");
  op_end(&t);
}

const struct test suite_indices[] = {TEST(reads),    TEST(writes),  TEST(masks),
                                     TEST(in_place), TEST(refuses), {0}};
