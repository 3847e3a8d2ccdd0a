/* Dense products: linear, mm, addmm, bmm are one problem with different steps through w and bias.
 */
#include "ops/linear/rows.h"

#include "matmul.wgsl.h"
#include "matmul_int.wgsl.h"
#include "matmul_plain.wgsl.h"
#include "matvec.wgsl.h"

struct problem {
  struct linear_params u;
  bool mixed; /* x and w in different dtypes */
  bool words; /* every row of y starts on a word */
  bool half;  /* x and y have 2 bytes */
  uint32_t x, w, bias, y;
};

/* Above 8 rows the tile is ahead. */
static bool fits_matvec(const void *problem) {
  const struct problem *q = problem;
  return q->u.batch == 1 && q->u.m <= 8 && q->u.k && q->u.k % 4 == 0 && q->u.w_k == 1 &&
         q->u.bias_m == 0 && q->words && !q->mixed;
}
static bool fits_matvec64(const void *problem) {
  return fits_matvec(problem) && ((const struct problem *)problem)->u.k >= 256;
}
static bool fits_tile(const struct problem *q) { return q->u.k % 4 == 0 && q->words && !q->mixed; }
static bool fits_nk(const void *problem) {
  const struct problem *q = problem;
  return fits_tile(q) && q->u.w_k == 1;
}
static bool fits_kn(const void *problem) {
  const struct problem *q = problem;
  return fits_tile(q) && q->u.w_n == 1 && q->u.n % 4 == 0;
}

/* A tile is the columns of y that a workgroup takes, and the rows. */
#define MATVEC(NAME, SET, DTYPE, NEEDS, FITS, COLS, BYTES)                                         \
  {NAME, &matvec_wgsl, SET, DTYPE, NEEDS, FITS, {COLS, 1}, .threads = 256, .workgroup_bytes = BYTES}
#define MATMUL(NAME, SET, DTYPE, FITS)                                                             \
  {NAME, &matmul_wgsl, SET, DTYPE, 0, FITS, {64, 64}, .threads = 256, .workgroup_bytes = 16384}
#define ROWS(T, DTYPE, TYPES)                                                                      \
  MATVEC("matvec64_" T, "L=64u use=lanes_subgroup " TYPES, DTYPE, NEEDS_SUBGROUPS, fits_matvec64,  \
         16, 1024),                                                                                \
      MATVEC("matvec16_" T, "L=16u use=lanes_subgroup " TYPES, DTYPE, NEEDS_SUBGROUPS,             \
             fits_matvec, 64, 1024),                                                               \
      MATVEC("matvec64_memory_" T, "L=64u use=lanes_memory " TYPES, DTYPE, 0, fits_matvec64, 16,   \
             4096),                                                                                \
      MATVEC("matvec16_memory_" T, "L=16u use=lanes_memory " TYPES, DTYPE, 0, fits_matvec, 64,     \
             4096),                                                                                \
      MATMUL("matmul_nk_" T, TYPES, DTYPE, fits_nk),                                               \
      MATMUL("matmul_kn_" T, "K_LAST=false " TYPES, DTYPE, fits_kn), {                             \
    "plain_" T, &matmul_plain_wgsl, "use=elem_" T, DTYPE, .threads = 64, .reference = true         \
  }
static const struct kernel kernels[] = {
    ROWS("f32", OF_F32, "use=quad_f32 use=elem_f32"),
    ROWS("f16", OF_F16, "use=quad_f16 use=elem_f16"),
    {"plain_i32", &matmul_int_wgsl, "", OF_I32, .threads = 64, .reference = true},
    {0},
};

/* ---- emit ------------------------------------------------------------------------------------ */

static uint64_t workgroups_of(const struct kernel *row, const struct problem *q) {
  const struct linear_params *u = &q->u;
  if (row->wgsl != &matmul_wgsl && row->wgsl != &matvec_wgsl) /* by elements of y */
    return div_up((uint64_t)u->batch * u->m * u->cols, row->threads * (q->half ? 2 : 1));
  return div_up(u->n, row->tile[0]) * div_up(u->m, row->tile[1]) * u->batch;
}

/* Rows [m0, m0 + q.u.m) of x, in as many dispatches as w needs; only w of (n, k) can be split. */
static sconce_status emit_part(struct plan *p, const struct kernel *row, struct problem q,
                               uint64_t m0) {
  const uint32_t n = q.u.n;
  const uint64_t size = q.half ? 2 : 4, x_row = q.u.k * size, y_row = q.u.cols * size;
  const uint64_t w_row = (uint64_t)q.u.k << (q.u.w_half ? 1 : 2);
  const bool splits = q.u.batch == 1 && q.u.w_k == 1;
  const uint64_t step = splits ? rows_split(p, n, w_row, 0) : n;
  for (uint64_t n0 = 0; n0 < n; n0 += step) {
    q.u.first = (uint32_t)n0;
    q.u.n = (uint32_t)(n - n0 < step ? n - n0 : step);
    struct operand w = {q.w};
    if (splits) w = rows_part(p, q.w, w_row, n0, q.u.n);
    TRY(dispatch(p, row, &q.u, workgroups_of(row, &q),
                 OPERANDS(rows_part(p, q.x, x_row, m0, (uint64_t)q.u.m * q.u.batch), w,
                          {q.u.bias ? q.bias : q.w, 0, q.u.bias ? 0 : 4},
                          rows_part(p, q.y, y_row, m0, (uint64_t)q.u.m * q.u.batch))));
  }
  return SCONCE_OK;
}

/* Floats of either size mix; integers are among themselves. */
static sconce_status dense_check(struct plan *p, const struct tensor *x, const struct tensor *t,
                                 const char *what) {
  if (x->dtype == VK_INT32 && t->dtype == VK_INT32) return SCONCE_OK;
  TRY(float_check(p, x, "x"));
  return float_check(p, t, what);
}

static sconce_status emit_problem(struct plan *p, const struct node *n, struct problem *q) {
  const struct tensor *x = tensor_at(p, q->x), *w = tensor_at(p, q->w), *y = tensor_at(p, q->y);
  TRY(dense_check(p, x, w, "the weight"));
  if (y->dtype != x->dtype)
    return fail(p->err, SCONCE_BAD_GRAPH, "x is %s, the result %s", vk_dtype_name(x->dtype),
                vk_dtype_name(y->dtype));
  q->half = is_half(x);
  q->mixed = x->dtype != w->dtype;
  q->words = !q->half || q->u.n % 2 == 0 || (q->u.m == 1 && q->u.batch == 1);
  q->u.w_half = is_half(w);
  q->u.cols = q->u.n;
  const struct kernel *row;
  TRY(choose(p, n, kernels, x->dtype, q, &row));
  const uint32_t m = q->u.m;
  const uint64_t size = q->half ? 2 : 4;
  const bool splits = q->u.batch == 1 && q->u.bias_m == 0;
  const uint64_t step = splits ? rows_split(p, m, q->u.k * size, q->u.n * size) : m;
  for (uint64_t m0 = 0; m0 < m; m0 += step) {
    q->u.m = (uint32_t)(m - m0 < step ? m - m0 : step);
    TRY(emit_part(p, row, *q, m0));
  }
  return SCONCE_OK;
}

/* ---- aten.linear: [x, w, bias?, y] ------------------------------------------------------------
 */

static sconce_status linear_check(struct plan *p, const struct node *n) {
  const struct tensor *x, *w;
  TRY(arg_tensor(p, n, 0, &x));
  TRY(arg_tensor(p, n, 1, &w));
  char a[120], b[120];
  if (w->rank != 2 || x->rank == 0 || x->dim_live[x->rank - 1] != w->dim_live[1])
    return fail(p->err, SCONCE_BAD_GRAPH, "x is %s, the weight %s", tensor_text(x, a),
                tensor_text(w, b));
  return SCONCE_OK;
}

static sconce_status linear_shape(struct plan *p, const struct node *n) {
  TRY(linear_check(p, n));
  const struct tensor *x, *w;
  TRY(arg_tensor(p, n, 0, &x));
  TRY(arg_tensor(p, n, 1, &w));
  uint32_t bias;
  TRY(rows_bias(p, n, 2, w->dim_live[0], &bias));
  return rows_shape(p, out_id(n), x, w->dim_live[0]);
}

static sconce_status linear_emit(struct plan *p, const struct node *n) {
  TRY(linear_check(p, n));
  const struct tensor *x, *w;
  TRY(arg_tensor(p, n, 0, &x));
  TRY(arg_tensor(p, n, 1, &w));
  const uint32_t k = w->dim_live[1];
  struct problem q = {.x = arg_id(n, 0), .w = arg_id(n, 1), .bias = arg_id(n, 2), .y = out_id(n)};
  q.u = (struct linear_params){.batch = 1,
                               .m = rows_of(x),
                               .n = w->dim_live[0],
                               .k = k,
                               .w_n = k,
                               .w_k = 1,
                               .bias_n = 1,
                               .alpha = 1,
                               .beta = 1};
  TRY(rows_bias(p, n, 2, q.u.n, &q.u.bias));
  return emit_problem(p, n, &q);
}

/* ---- aten.mm: [a, b, y]; aten.bmm: the same with a batch; aten.addmm: [self, a, b, beta, alpha,
 * y] */

enum { MM, BMM, ADDMM };

/* The operands, after a check of their dims. */
static sconce_status mm_check(struct plan *p, const struct node *n, const struct tensor **a,
                              const struct tensor **b) {
  const uint32_t at = n->op->code == ADDMM, rank = n->op->code == BMM ? 3 : 2;
  TRY(arg_tensor(p, n, at, a));
  TRY(arg_tensor(p, n, at + 1, b));
  const uint32_t *da = (*a)->dim_live, *db = (*b)->dim_live;
  char one[120], two[120];
  if ((*a)->rank == rank && (*b)->rank == rank && da[rank - 1] == db[rank - 2] &&
      (rank == 2 || da[0] == db[0]))
    return SCONCE_OK;
  return fail(p->err, SCONCE_BAD_GRAPH, "%s times %s", tensor_text(*a, one), tensor_text(*b, two));
}

static sconce_status mm_shape(struct plan *p, const struct node *n) {
  const struct tensor *a, *b;
  TRY(mm_check(p, n, &a, &b));
  uint32_t dims[3] = {a->dim_live[0], a->dim_live[1], a->dim_live[2]};
  dims[a->rank - 1] = b->dim_live[b->rank - 1];
  return set_dims(p, out_id(n), dims, a->rank);
}

/* What addmm adds: anything that broadcasts to (m, n). */
static sconce_status addmm_bias(struct plan *p, const struct node *n, struct problem *q) {
  const struct tensor *self;
  TRY(arg_tensor(p, n, 0, &self));
  double beta, alpha;
  TRY(arg_float(p, n, 3, &beta));
  TRY(arg_float(p, n, 4, &alpha));
  TRY(dense_check(p, tensor_at(p, q->x), self, "what is added"));
  const uint32_t cols = self->rank ? self->dim_live[self->rank - 1] : 1;
  const uint32_t rows = self->rank > 1 ? self->dim_live[0] : 1;
  char text[120];
  if (self->rank > 2 || (cols != 1 && cols != q->u.n) || (rows != 1 && rows != q->u.m))
    return fail(p->err, SCONCE_BAD_GRAPH, "%s does not broadcast to [%u, %u]",
                tensor_text(self, text), q->u.m, q->u.n);
  q->bias = arg_id(n, 0);
  q->u.bias = beta == 0 ? 0 : 1 + is_half(self); /* a factor of 0 ignores even NaN */
  q->u.bias_n = cols == 1 ? 0 : 1;
  q->u.bias_m = rows == 1 ? 0 : cols;
  q->u.alpha = (float)alpha;
  q->u.beta = (float)beta;
  return SCONCE_OK;
}

static sconce_status mm_emit(struct plan *p, const struct node *n) {
  const struct tensor *a, *b;
  TRY(mm_check(p, n, &a, &b));
  const uint32_t at = n->op->code == ADDMM, rank = a->rank;
  struct problem q = {.x = arg_id(n, at), .w = arg_id(n, at + 1), .y = out_id(n)};
  q.u = (struct linear_params){.batch = rank == 3 ? a->dim_live[0] : 1,
                               .m = a->dim_live[rank - 2],
                               .n = b->dim_live[rank - 1],
                               .k = a->dim_live[rank - 1],
                               .w_n = 1,
                               .w_k = b->dim_live[rank - 1],
                               .alpha = 1};
  if (n->op->code == ADDMM) TRY(addmm_bias(p, n, &q));
  return emit_problem(p, n, &q);
}

const struct op ops_linear[] = {
    {"aten.linear.default", linear_shape, linear_emit, .also = "aten::linear.out", .n_args = 4,
     .flags = OP_ROWS, .tables = TABLES(kernels)},
    {"aten.mm.default", mm_shape, mm_emit, .also = "aten::mm.out", .n_args = 3, .code = MM,
     .tables = TABLES(kernels)},
    {"aten.bmm.default", mm_shape, mm_emit, .also = "aten::bmm.out", .n_args = 3, .code = BMM,
     .tables = TABLES(kernels)},
    {"aten.addmm.default", mm_shape, mm_emit, .also = "aten::addmm.out", .n_args = 6, .code = ADDMM,
     .tables = TABLES(kernels)},
    {0},
};
