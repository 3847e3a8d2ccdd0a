/* Moving elements: every operator's own formula, coordinate by coordinate, for every element size,
 * in one graph through several live shapes. */
#include "oracles.h"

enum { RANK = ORACLE_MOVE_RANK, LIVE = 6 };
#define NONE ORACLE_NONE

static const struct oracle_move rows[] = {
    {MOVE_SLICE, "aten.slice_copy.Tensor", 2, {LIVE, 8}, 4, {0, 1, NONE, 1}, "whole rows: quads"},
    {MOVE_SLICE,
     "aten.slice_copy.Tensor",
     2,
     {LIVE, 7},
     4,
     {1, -5, -1, 2},
     "from the end, in steps"},
    {MOVE_SLICE,
     "aten.slice_copy.Tensor",
     3,
     {2, LIVE, 3},
     4,
     {-2, NONE, INT64_MAX, 1},
     "to the end"},
    {MOVE_SLICE, "aten.slice_copy.Tensor", 2, {LIVE, 6}, 4, {1, 4, 2, 1}, "nothing"},
    {MOVE_SLICE, "aten.slice_copy.Tensor", 2, {LIVE, 6}, 4, {1, 2, 6, 1}, "two halves a word"},
    {MOVE_SELECT, "aten.select_copy.int", 2, {LIVE, 8}, 2, {0, -1}, "the last live row"},
    {MOVE_SELECT, "aten.select_copy.int", 3, {2, 3, LIVE}, 2, {1, 2}, "a middle dim"},
    {MOVE_SELECT, "aten.select_copy.int", 1, {5}, 2, {0, 3}, "to a scalar"},
    {MOVE_PERMUTE, "aten.permute_copy.default", 3, {LIVE, 3, 5}, 3, {2, 0, 1}, "all dims move"},
    {MOVE_PERMUTE, "aten.permute.default", 4, {2, LIVE, 3, 8}, 4, {0, 2, 1, -1}, "rows stay whole"},
    {MOVE_PERMUTE, "aten.permute_copy.default", 2, {LIVE, 4}, 2, {0, 1}, "nothing moves"},
    {MOVE_TRANSPOSE, "aten.transpose_copy.int", 3, {LIVE, 3, 5}, 2, {-1, 0}, "ends"},
    {MOVE_TRANSPOSE, "aten.transpose.int", 2, {LIVE, 5}, 2, {0, 1}, "a matrix"},
    {MOVE_T, "aten.t_copy.default", 2, {LIVE, 5}, 0, {0}, "a matrix"},
    {MOVE_EXPAND,
     "aten.expand_copy.default",
     3,
     {2, 1, 5},
     4,
     {3, -1, 4, 5},
     "a new dim and an old 1"},
    {MOVE_EXPAND, "aten.expand_copy.default", 2, {LIVE, 1}, 2, {-1, 7}, "a column, live rows"},
    {MOVE_REPEAT, "aten.repeat.default", 2, {LIVE, 3}, 3, {2, 1, 3}, "a new dim in front"},
    {MOVE_REPEAT, "aten.repeat.default", 2, {LIVE, 4}, 2, {2, 1}, "whole quads again"},
    {MOVE_FLIP, "aten.flip.default", 3, {LIVE, 3, 5}, 2, {0, -1}, "two dims"},
    {MOVE_FLIP, "aten.flip.default", 2, {LIVE, 8}, 1, {0}, "rows of quads backwards"},
    {MOVE_PAD, "aten.constant_pad_nd.default", 2, {LIVE, 5}, 4, {1, 2, 0, 1}, "odd sides"},
    {MOVE_PAD, "aten.constant_pad_nd.default", 2, {LIVE, 8}, 4, {0, 0, 2, 1}, "whole rows"},
    {MOVE_PAD, "aten.constant_pad_nd.default", 2, {LIVE, 8}, 2, {-1, -2}, "crops"},
    {MOVE_SHUFFLE, "aten.pixel_shuffle.default", 4, {1, 8, LIVE, 3}, 1, {2}, "two channels"},
    {MOVE_UNSHUFFLE, "aten.pixel_unshuffle.default", 4, {LIVE, 3, 4, 8}, 1, {2}, "three channels"},
    {MOVE_REFLECT,
     "aten.reflection_pad1d.default",
     2,
     {LIVE, 5},
     2,
     {3, 4},
     "a line, to its other end"},
    {MOVE_REFLECT, "aten.reflection_pad2d.default", 4, {LIVE, 2, 3, 4}, 4, {1, 2, 2, 0}, "a plane"},
    {MOVE_REFLECT,
     "aten.reflection_pad3d.default",
     4,
     {LIVE, 3, 4, 2},
     6,
     {1, 0, -1, 3, 2, 1},
     "crops too"},
    {MOVE_NEAREST,
     "aten.replication_pad1d.default",
     3,
     {2, LIVE, 5},
     2,
     {3, 9},
     "longer than the line"},
    {MOVE_NEAREST,
     "aten.replication_pad2d.default",
     3,
     {2, LIVE, 4},
     4,
     {1, 2, 2, 1},
     "a live side"},
    {MOVE_NEAREST,
     "aten.replication_pad3d.default",
     4,
     {1, 3, LIVE, 2},
     6,
     {1, 0, -1, 3, 2, 1},
     "crops too"},
    {MOVE_ROLL, "aten.roll.default", 2, {LIVE, 5}, 1, {-2}, "all of it, backwards"},
    {MOVE_ROLL,
     "aten.roll.default",
     3,
     {2, LIVE, 5},
     2,
     {1, -1, 7, -8},
     "two dims, further than they are"},
    {MOVE_NARROW, "aten.narrow_copy.default", 2, {LIVE, 7}, 3, {1, 2, 4}, "a part"},
    {MOVE_NARROW, "aten.narrow_copy.default", 2, {LIVE, 8}, 3, {-1, -4, 4}, "from the end"},
    {MOVE_DIAGONAL, "aten.diagonal_copy.default", 3, {LIVE, 4, 5}, 3, {1, 1, 2}, "of the last two"},
    {MOVE_DIAGONAL, "aten.diagonal_copy.default", 3, {LIVE, 4, 5}, 3, {-2, 0, -1}, "of a live dim"},
    {MOVE_STRIDED, "aten.as_strided_copy.default", 2, {3, 5}, 5, {2, 3, 1, 4, 1}, "overlapping"},
    {MOVE_TRIL, "aten.tril.default", 3, {2, LIVE, 5}, 1, {0}, "matrices"},
    {MOVE_TRIL, "aten.tril.default", 2, {7, LIVE}, 1, {-3}, "below"},
    {MOVE_TRIU, "aten.triu.default", 3, {LIVE, 3, 7}, 1, {2}, "above"},
};
enum { ROWS = sizeof rows / sizeof *rows };

static int64_t wrap(int64_t dim, uint32_t rank) { return dim < 0 ? dim + rank : dim; }

/* Where a slice starts in a dim of `size`, how long it is. */
static int64_t slice_start(const int64_t *a, int64_t size, int64_t *length) {
  int64_t start = a[1] == NONE ? 0 : a[1] < 0 ? a[1] + size : a[1];
  int64_t end = a[2] == NONE ? size : a[2] < 0 ? a[2] + size : a[2];
  start = start < 0 ? 0 : start > size ? size : start;
  end = end < 0 ? 0 : end > size ? size : end;
  *length = 0;
  for (int64_t i = start; i < end; i += a[3]) ++*length;
  return start;
}

uint32_t oracle_move_dims(const struct oracle_move *r, const uint32_t *x, uint32_t *y) {
  uint32_t rank = r->rank;
  int64_t length;
  memcpy(y, x, RANK * sizeof *y);
  switch (r->kind) {
  case MOVE_SLICE:
    slice_start(r->a, x[wrap(r->a[0], rank)], &length);
    y[wrap(r->a[0], rank)] = (uint32_t)length;
    return rank;
  case MOVE_SELECT:
    for (uint32_t i = (uint32_t)r->a[0]; i + 1 < rank; i++) y[i] = x[i + 1];
    return rank - 1;
  case MOVE_PERMUTE:
    for (uint32_t i = 0; i < rank; i++) y[i] = x[wrap(r->a[i], rank)];
    return rank;
  case MOVE_TRANSPOSE:
    y[wrap(r->a[0], rank)] = x[wrap(r->a[1], rank)];
    y[wrap(r->a[1], rank)] = x[wrap(r->a[0], rank)];
    return rank;
  case MOVE_T:
    y[0] = x[1], y[1] = x[0];
    return rank;
  case MOVE_EXPAND:
    for (uint32_t i = 0; i < r->n; i++)
      y[i] = r->a[i] == -1 ? x[i - (r->n - rank)] : (uint32_t)r->a[i];
    return r->n;
  case MOVE_REPEAT:
    for (uint32_t i = 0; i < r->n; i++)
      y[i] = (uint32_t)r->a[i] * (i < r->n - rank ? 1 : x[i - (r->n - rank)]);
    return r->n;
  case MOVE_PAD:
    for (uint32_t i = 0; i < r->n / 2; i++)
      y[rank - 1 - i] = (uint32_t)((int64_t)x[rank - 1 - i] + r->a[2 * i] + r->a[2 * i + 1]);
    return rank;
  case MOVE_REFLECT:
  case MOVE_NEAREST:
    for (uint32_t i = 0; i < r->n / 2; i++)
      y[rank - 1 - i] = (uint32_t)((int64_t)x[rank - 1 - i] + r->a[2 * i] + r->a[2 * i + 1]);
    return rank;
  case MOVE_NARROW:
    y[wrap(r->a[0], rank)] = (uint32_t)r->a[2];
    return rank;
  case MOVE_UNSHUFFLE:
    y[1] = x[1] * 4, y[2] = x[2] / 2, y[3] = x[3] / 2;
    return rank;
  case MOVE_DIAGONAL: {
    uint32_t k = 0;
    for (uint32_t i = 0; i < rank; i++)
      if (i != wrap(r->a[1], rank) && i != wrap(r->a[2], rank)) y[k++] = x[i];
    y[k] = 0;
    while (y[k] + (r->a[0] < 0 ? -r->a[0] : 0) < x[wrap(r->a[1], rank)] &&
           y[k] + (r->a[0] > 0 ? r->a[0] : 0) < x[wrap(r->a[2], rank)])
      y[k]++;
    return rank - 1;
  }
  case MOVE_STRIDED:
    y[0] = (uint32_t)r->a[0], y[1] = (uint32_t)r->a[1];
    return 2;
  case MOVE_SHUFFLE:
    y[1] = x[1] / 4, y[2] = x[2] * 2, y[3] = x[3] * 2;
    return rank;
  default:
    return rank;
  }
}

/* The coordinates in x of an element of y; false: it is filled. */
static bool source(const struct oracle_move *r, const uint32_t *x, const uint32_t *c, int64_t *s) {
  uint32_t rank = r->rank;
  int64_t length;
  for (uint32_t i = 0; i < RANK; i++) s[i] = c[i];
  switch (r->kind) {
  case MOVE_SLICE: {
    int64_t dim = wrap(r->a[0], rank);
    s[dim] = slice_start(r->a, x[dim], &length) + c[dim] * r->a[3];
    return true;
  }
  case MOVE_SELECT:
    for (uint32_t i = 0, k = 0; i < rank; i++)
      s[i] = i == (uint32_t)r->a[0] ? wrap(r->a[1], x[i]) : c[k++];
    return true;
  case MOVE_PERMUTE:
    for (uint32_t i = 0; i < rank; i++) s[wrap(r->a[i], rank)] = c[i];
    return true;
  case MOVE_TRANSPOSE:
    s[wrap(r->a[0], rank)] = c[wrap(r->a[1], rank)];
    s[wrap(r->a[1], rank)] = c[wrap(r->a[0], rank)];
    return true;
  case MOVE_T:
    s[0] = c[1], s[1] = c[0];
    return true;
  case MOVE_EXPAND:
  case MOVE_REPEAT:
    for (uint32_t i = 0; i < rank; i++) s[i] = c[i + r->n - rank] % x[i];
    return true;
  case MOVE_FLIP:
    for (uint32_t i = 0; i < r->n; i++)
      s[wrap(r->a[i], rank)] = x[wrap(r->a[i], rank)] - 1 - c[wrap(r->a[i], rank)];
    return true;
  case MOVE_PAD:
    for (uint32_t i = 0; i < r->n / 2; i++) s[rank - 1 - i] -= r->a[2 * i];
    for (uint32_t i = 0; i < rank; i++)
      if (s[i] < 0 || s[i] >= x[i]) return false;
    return true;
  case MOVE_REFLECT:
  case MOVE_NEAREST:
    for (uint32_t i = 0; i < r->n / 2; i++) {
      int64_t *at = &s[rank - 1 - i], last = (int64_t)x[rank - 1 - i] - 1;
      *at -= r->a[2 * i];
      if (*at < 0) *at = r->kind == MOVE_REFLECT ? -*at : 0;
      if (*at > last) *at = r->kind == MOVE_REFLECT ? 2 * last - *at : last;
    }
    return true;
  case MOVE_ROLL:
    for (uint32_t i = 0; i < r->n && r->n == 2; i++) {
      int64_t dim = wrap(r->a[i], rank), size = x[dim];
      s[dim] = ((s[dim] - r->a[2 + i]) % size + size) % size;
    }
    if (r->n == 1) { /* as one line of pairs */
      int64_t all = (int64_t)x[0] * x[1];
      int64_t at = (((int64_t)c[0] * x[1] + c[1] - r->a[0]) % all + all) % all;
      s[0] = at / x[1], s[1] = at % x[1];
    }
    return true;
  case MOVE_NARROW:
    s[wrap(r->a[0], rank)] += wrap(r->a[1], x[wrap(r->a[0], rank)]);
    return true;
  case MOVE_UNSHUFFLE:
    s[1] = c[1] / 4, s[2] = c[2] * 2 + c[1] % 4 / 2, s[3] = c[3] * 2 + c[1] % 2;
    return true;
  case MOVE_DIAGONAL:
    for (uint32_t i = 0, k = 0; i < rank; i++) {
      s[i] = c[rank - 2];
      if (i == wrap(r->a[1], rank))
        s[i] += r->a[0] < 0 ? -r->a[0] : 0;
      else if (i == wrap(r->a[2], rank))
        s[i] += r->a[0] > 0 ? r->a[0] : 0;
      else
        s[i] = c[k++];
    }
    return true;
  case MOVE_STRIDED: {
    int64_t at = c[0] * r->a[2] + c[1] * r->a[3] + r->a[4];
    s[0] = at / x[1], s[1] = at % x[1];
    return true;
  }
  case MOVE_TRIL:
  case MOVE_TRIU: {
    int64_t right = (int64_t)c[rank - 1] - c[rank - 2];
    return r->kind == MOVE_TRIL ? right <= r->a[0] : right >= r->a[0];
  }
  default:
    s[1] = c[1] * 4 + c[2] % 2 * 2 + c[3] % 2, s[2] = c[2] / 2, s[3] = c[3] / 2;
    return true;
  }
}

void oracle_move_node(struct op_test *t, const struct oracle_move *r, uint32_t x, uint32_t y,
                      bool as_int) {
  uint32_t n[4];
  for (uint32_t i = 0; i < 4; i++)
    n[i] = r->a[i] == NONE                  ? op_null(t)
           : as_int || r->a[i] == INT64_MAX ? op_int(t, r->a[i])
                                            : op_double(t, (double)r->a[i]);
  uint32_t list = op_ints(t, r->a, r->n);
  switch (r->kind) {
  case MOVE_SLICE:
    op_node(t, r->name, IDS(x, n[0], n[1], n[2], n[3], y));
    break;
  case MOVE_SELECT:
  case MOVE_TRANSPOSE:
    op_node(t, r->name, IDS(x, n[0], n[1], y));
    break;
  case MOVE_T:
    op_node(t, r->name, IDS(x, y));
    break;
  case MOVE_EXPAND:
    op_node(t, r->name, IDS(x, list, op_bool(t, false), y));
    break;
  case MOVE_PAD:
    op_node(t, r->name,
            IDS(x, list, as_int ? op_int(t, ORACLE_FILL) : op_double(t, ORACLE_FILL), y));
    break;
  case MOVE_SHUFFLE:
  case MOVE_UNSHUFFLE:
  case MOVE_TRIL:
  case MOVE_TRIU:
    op_node(t, r->name, IDS(x, n[0], y));
    break;
  case MOVE_ROLL:
    op_node(t, r->name,
            IDS(x, op_ints(t, r->n == 2 ? r->a + 2 : r->a, r->n), op_ints(t, r->a, r->n & 2), y));
    break;
  case MOVE_NARROW:
  case MOVE_DIAGONAL:
    op_node(t, r->name, IDS(x, n[0], n[1], n[2], y));
    break;
  case MOVE_STRIDED:
    op_node(t, r->name,
            IDS(x, op_ints(t, r->a, 2), op_ints(t, r->a + 2, 2), op_int(t, r->a[4]), y));
    break;
  default:
    op_node(t, r->name, IDS(x, list, y));
  }
}

static uint64_t product(const uint32_t *dims, uint32_t rank) {
  uint64_t n = 1;
  for (uint32_t i = 0; i < rank; i++) n *= dims[i];
  return n;
}

static double *counting(uint64_t n, enum vk_dtype dtype) {
  double *x = malloc((size_t)(n + 1) * sizeof *x);
  for (uint64_t i = 0; i < n; i++)
    x[i] = dtype == VK_BOOL ? (double)(i * 7 % 3 > 0) : (double)(1 + i % 120);
  return x;
}

double *oracle_moved(const struct oracle_move *r, const uint32_t *x, const double *values) {
  uint32_t y[RANK], rank = oracle_move_dims(r, x, y), c[RANK] = {0};
  uint64_t n = product(y, rank);
  double *want = malloc((size_t)(n + 1) * sizeof *want);
  for (uint64_t e = 0; e < n; e++) {
    uint64_t rest = e, at = 0;
    for (uint32_t i = rank; i-- > 0; rest /= y[i]) c[i] = (uint32_t)(rest % y[i]);
    int64_t s[RANK];
    bool inside = source(r, x, c, s);
    for (uint32_t i = 0; i < r->rank; i++) at = at * x[i] + (uint64_t)s[i];
    want[e] = inside ? values[at] : r->kind == MOVE_PAD ? ORACLE_FILL : 0;
  }
  return want;
}

static void run(const struct oracle_move *r, enum vk_dtype dtype, bool as_int) {
  static const uint32_t lives[] = {LIVE, 3, 1, 0, 5, LIVE};
  uint32_t x[RANK], y[RANK];
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t rank = oracle_move_dims(r, r->x, y);
  uint32_t in = op_input(&t, dtype, r->x, r->rank), out = op_output(&t, dtype, y, rank);
  oracle_move_node(&t, r, in, out, as_int);
  CHECK_OK(op_load(&t, NULL, &err), err);
  for (size_t i = 0; i < sizeof lives / sizeof *lives && !test_failed(); i++) {
    for (uint32_t d = 0; d < RANK; d++) x[d] = r->x[d] == LIVE ? lives[i] : r->x[d];
    if (r->kind == MOVE_SELECT && x[r->a[0]] == 0) continue;           /* an error, see refuses */
    if (r->kind == MOVE_NEAREST && product(x, r->rank) == 0) continue; /* the same */
    uint64_t n = product(x, r->rank), n_got;
    double *values = counting(n, dtype), *want = oracle_moved(r, x, values);
    op_set(&t, in, x, r->rank, values);
    CHECK_OK(op_run(&t, &err), err);
    const double *got = op_get(&t, out, &n_got);
    rank = oracle_move_dims(r, x, y);
    CHECK_EQ(n_got, product(y, rank));
    char what[160];
    snprintf(what, sizeof what, "%s %s: %s, live %u", r->name, vk_dtype_name(dtype), r->why,
             lives[i]);
    if (!test_failed()) test_close(got, want, n_got, 0, 0, what);
    free(values);
    free(want);
  }
  op_end(&t);
}

static void every_operator(void) {
  for (size_t i = 0; i < ROWS; i++) {
    run(&rows[i], VK_FLOAT32, true);
    run(&rows[i], VK_FLOAT16, false);
    run(&rows[i], VK_INT8, true);
    if (rows[i].kind != MOVE_PAD) run(&rows[i], VK_BOOL, true);
  }
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* Three parts of (2, n, inner) side by side, and apart again. */
static void cat_and_split(void) {
  static const struct {
    enum vk_dtype dtype;
    uint32_t outer, inner;
  } cases[] = {{VK_FLOAT32, 1, 4}, {VK_FLOAT32, 2, 3}, {VK_FLOAT16, 2, 1},
               {VK_FLOAT16, 2, 8}, {VK_INT8, 3, 1},    {VK_BOOL, 1, 5}};
  static const uint32_t lives[] = {5, 2, 0, 1, 5};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    uint32_t outer = cases[k].outer, inner = cases[k].inner;
    enum vk_dtype dtype = cases[k].dtype;
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t a = op_input(&t, dtype, DIMS(outer, 5, inner)),
             b = op_input(&t, dtype, DIMS(outer, 3, inner));
    uint32_t nothing = op_input(&t, dtype, DIMS(0));
    uint32_t whole = op_output(&t, dtype, DIMS(outer, 8, inner));
    uint32_t top = op_output(&t, dtype, DIMS(outer, 5, inner)),
             rest = op_output(&t, dtype, DIMS(outer, 3, inner));
    uint32_t live = op_symint(&t);
    op_node(&t, "aten.cat.default", IDS(op_list(&t, IDS(a, nothing, b)), op_int(&t, -2), whole));
    op_node(&t, "aten.split_with_sizes_copy.default",
            IDS(whole, op_list(&t, IDS(live, op_int(&t, 3))), op_double(&t, 1),
                op_list(&t, IDS(top, rest))));
    CHECK_OK(op_load(&t, NULL, &err), err);
    for (size_t i = 0; i < 5 && !test_failed(); i++) {
      uint32_t rows_a = lives[i];
      uint64_t n;
      double *va = counting((uint64_t)outer * rows_a * inner, dtype);
      double *vb = counting((uint64_t)outer * 3 * inner + 7, dtype), *want = counting(500, dtype);
      op_set(&t, a, DIMS(outer, rows_a, inner), va);
      op_set(&t, b, DIMS(outer, 3, inner), vb + 7);
      op_set_symint(&t, live, rows_a);
      CHECK_OK(op_run(&t, &err), err);
      for (uint32_t o = 0, e = 0; o < outer; o++)
        for (uint32_t m = 0; m < rows_a + 3; m++)
          for (uint32_t c = 0; c < inner; c++)
            want[e++] = m < rows_a ? va[(o * rows_a + m) * inner + c]
                                   : vb[7 + (o * 3 + m - rows_a) * inner + c];
      const double *got = op_get(&t, whole, &n);
      CHECK_EQ(n, outer * (rows_a + 3) * inner);
      test_close(got, want, n, 0, 0, "cat");
      got = op_get(&t, top, &n);
      CHECK_EQ(n, outer * rows_a * inner);
      test_close(got, va, n, 0, 0, "the first part");
      got = op_get(&t, rest, &n);
      test_close(got, vb + 7, n, 0, 0, "the second part");
      free(va);
      free(vb);
      free(want);
    }
    op_end(&t);
  }
}

/* Three rows of (3, n) apart, and (3, 5) in columns of two. */
static void unbind_and_split(void) {
  static const enum vk_dtype dtypes[] = {VK_FLOAT32, VK_FLOAT16, VK_INT8};
  for (size_t k = 0; k < 3; k++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t x = op_input(&t, dtypes[k], DIMS(3, 5)), rows_[3], columns[3];
    for (uint32_t i = 0; i < 3; i++) {
      rows_[i] = op_output(&t, dtypes[k], DIMS(5));
      columns[i] = op_output(&t, dtypes[k], DIMS(3, i < 2 ? 2 : 1));
    }
    op_node(&t, "aten::unbind_copy.int_out", IDS(x, op_int(&t, 0), op_list(&t, rows_, 3)));
    op_node(&t, "aten.split_copy.Tensor",
            IDS(x, op_int(&t, 2), op_int(&t, -1), op_list(&t, columns, 3)));
    CHECK_OK(op_load(&t, NULL, &err), err);
    double *values = counting(15, dtypes[k]), want[6];
    op_set(&t, x, DIMS(3, 5), values);
    CHECK_OK(op_run(&t, &err), err);
    for (uint32_t i = 0; i < 3 && !test_failed(); i++) {
      uint64_t n;
      test_close(op_get(&t, rows_[i], &n), values + 5 * i, 5, 0, 0, "a row");
      for (uint32_t e = 0, wide = i < 2 ? 2 : 1; e < 3 * wide; e++)
        want[e] = values[e / wide * 5 + 2 * i + e % wide];
      const double *got = op_get(&t, columns[i], &n);
      CHECK_EQ(n, i < 2 ? 6 : 3);
      test_close(got, want, n, 0, 0, "columns");
    }
    op_set(&t, x, DIMS(2, 5), values);
    CHECK_FAILS(op_run(&t, &err), SCONCE_BAD_ARGUMENT, err, "3 results of a dim of 2");
    free(values);
    op_end(&t);
  }
}

/* A state that a call writes and the next one reads. */
static void copies_into(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  double zeros[8] = {0};
  uint32_t state = op_constant(&t, VK_FLOAT32, DIMS(2, 4), zeros);
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(4)), y = op_output(&t, VK_FLOAT32, DIMS(2, 4));
  op_node(&t, "aten.add.Tensor", IDS(state, x, op_int(&t, 1), y));
  op_node(&t, "aten::copy_", IDS(state, x, op_bool(&t, false), state));
  CHECK_OK(op_load(&t, NULL, &err), err);
  for (int call = 0; call < 3 && !test_failed(); call++) {
    double values[4], want[8];
    for (int i = 0; i < 4; i++) values[i] = 10 * call + i;
    for (int i = 0; i < 8; i++) want[i] = values[i % 4] + (call ? values[i % 4] - 10 : 0);
    op_set(&t, x, DIMS(4), values);
    CHECK_OK(op_run(&t, &err), err);
    uint64_t n;
    test_close(op_get(&t, y, &n), want, 8, 0, 0, "state + x");
  }
  op_end(&t);
}

/* ---- scalars and errors ---------------------------------------------------------------------- */

/* One token at a live position: the bounds are SymInts that change from call to call. */
static void live_bounds(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(10, 4)), start = op_symint(&t), end = op_symint(&t);
  uint32_t y = op_output(&t, VK_FLOAT32, DIMS(10, 4)), z = op_output(&t, VK_FLOAT32, DIMS(4));
  op_node(&t, "aten.slice_copy.Tensor", IDS(x, op_int(&t, 0), start, end, op_int(&t, 1), y));
  op_node(&t, "aten.select_copy.int", IDS(x, op_int(&t, 0), start, z));
  double *values = counting(40, VK_FLOAT32);
  CHECK_OK(op_load(&t, NULL, &err), err);
  for (uint32_t at = 0; at < 10 && !test_failed(); at += 3) {
    op_set(&t, x, DIMS(10, 4), values);
    op_set_symint(&t, start, at);
    op_set_symint(&t, end, at + 4);
    CHECK_OK(op_run(&t, &err), err);
    uint64_t n;
    const double *got = op_get(&t, y, &n);
    CHECK_EQ(n, at + 4 > 10 ? (10 - at) * 4 : 16);
    test_close(got, values + 4 * (size_t)at, n, 0, 0, "a slice");
    test_close(op_get(&t, z, &n), values + 4 * (size_t)at, 4, 0, 0, "a row");
  }
  op_set_symint(&t, start, 10);
  CHECK_EQ(op_run(&t, &err), SCONCE_BAD_ARGUMENT);
  CHECK(strstr(err.text, "index 10 of a dim of 10") != NULL);
  op_set_symint(&t, start, -1);
  CHECK_OK(op_run(&t, &err), err);
  free(values);
  op_end(&t);
}

static void refuses(void) {
  static const struct {
    struct oracle_move row;
    uint32_t y[RANK];
    const char *fragment;
  } cases[] = {
      {{MOVE_SLICE, "aten.slice_copy.Tensor", 2, {4, 4}, 4, {0, 0, 4, 0}, ""},
       {4, 4},
       "a step of 0"},
      {{MOVE_SLICE, "aten.slice_copy.Tensor", 2, {4, 4}, 4, {2, 0, 4, 1}, ""},
       {4, 4},
       "dim 2 of a tensor"},
      {{MOVE_SELECT, "aten.select_copy.int", 2, {4, 4}, 2, {0, 4}, ""},
       {4},
       "index 4 of a dim of 4"},
      {{MOVE_PERMUTE, "aten.permute_copy.default", 2, {4, 4}, 2, {0, 0}, ""},
       {4, 4},
       "no permutation"},
      {{MOVE_REFLECT, "aten.reflection_pad1d.default", 2, {4, 4}, 2, {4, 0}, ""},
       {4, 8},
       "a pad of 4 beside 4 elements"},
      {{MOVE_ROLL, "aten.roll.default", 2, {4, 4}, 2, {0, 2, 1, 1}, ""},
       {4, 4},
       "dim 2 of a tensor"},
      {{MOVE_NARROW, "aten.narrow_copy.default", 2, {4, 4}, 3, {0, 2, 3}, ""},
       {4, 4},
       "3 from 2 on, of 4"},
      {{MOVE_STRIDED, "aten.as_strided_copy.default", 2, {4, 4}, 5, {4, 4, 4, 2, 0}, ""},
       {4, 4},
       "reach element 18 of 16"},
      {{MOVE_DIAGONAL, "aten.diagonal_copy.default", 3, {4, 4, 4}, 3, {0, 1, 1}, ""},
       {4, 4},
       "with itself"},
      {{MOVE_EXPAND, "aten.expand_copy.default", 2, {4, 4}, 2, {4, 8}, ""}, {4, 8}, "becomes 8"},
      {{MOVE_FLIP, "aten.flip.default", 2, {4, 4}, 2, {1, -1}, ""}, {4, 4}, "or twice"},
      {{MOVE_PAD, "aten.constant_pad_nd.default", 2, {4, 4}, 3, {1, 1, 1}, ""}, {4, 4}, "3 pads"},
      {{MOVE_SHUFFLE, "aten.pixel_shuffle.default", 3, {6, 4, 4}, 1, {2}, ""},
       {1, 8, 8},
       "a factor of 2"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const struct oracle_move *r = &cases[i].row;
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t x = op_input(&t, VK_FLOAT32, r->x, r->rank);
    oracle_move_node(
        &t, r, x,
        op_output(&t, VK_FLOAT32, cases[i].y,
                  r->kind == MOVE_SELECT || r->kind == MOVE_DIAGONAL ? r->rank - 1 : r->rank),
        true);
    sconce_status status = op_load(&t, NULL, &err);
    if (status == SCONCE_OK) status = op_run(&t, &err);
    CHECK(status == SCONCE_BAD_GRAPH || status == SCONCE_BAD_ARGUMENT);
    CHECK(strstr(err.text, cases[i].fragment) != NULL);
    op_end(&t);
  }
}

/* A source that lives in its target's memory: nothing to move. */
static void copies_nothing(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  double zeros[8] = {0};
  uint32_t state = op_constant(&t, VK_FLOAT32, DIMS(2, 4), zeros);
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(4)), y = op_output(&t, VK_FLOAT32, DIMS(2, 4));
  op_node(&t, "aten::copy_", IDS(state, state, op_bool(&t, false), state));
  op_node(&t, "aten.add.Tensor", IDS(state, x, op_int(&t, 1), y));
  CHECK_OK(op_load(&t, NULL, &err), err);
  double values[4] = {1, 2, 3, 4}, want[8] = {1, 2, 3, 4, 1, 2, 3, 4};
  op_set(&t, x, DIMS(4), values);
  CHECK_OK(op_run(&t, &err), err);
  uint64_t n;
  test_close(op_get(&t, y, &n), want, 8, 0, 0, "zeros + x");
  CHECK_EQ(t.exec.n_dispatches, 1);
  op_end(&t);
}

const struct test suite_move[] = {
    TEST(every_operator), TEST(cat_and_split), TEST(unbind_and_split), TEST(copies_into),
    TEST(copies_nothing), TEST(live_bounds),   TEST(refuses),          {0}};
