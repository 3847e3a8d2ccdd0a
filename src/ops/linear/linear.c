/* Dense products: linear, mm, addmm, bmm are one problem with different steps through w and bias.
 */
#include "ops/compound/expand.h"
#include "ops/linear/product.h"

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

/* What is added: anything that broadcasts to (m, n). */
static sconce_status add_bias(struct plan *p, const struct node *n, uint32_t arg,
                              struct product *q) {
  const struct tensor *bias;
  TRY(arg_tensor(p, n, arg, &bias));
  TRY(product_check(p, tensor_at(p, q->x), bias, "what is added"));
  const uint32_t cols = bias->rank ? bias->dim_live[bias->rank - 1] : 1, rows = rows_of(bias);
  char text[120];
  if ((cols != 1 && cols != q->u.n) || (rows != 1 && rows != q->u.m))
    return fail(p->err, SCONCE_BAD_GRAPH, "%s does not broadcast to [%u, %u]",
                tensor_text(bias, text), q->u.m, q->u.n);
  q->bias = arg_id(n, arg);
  q->u.bias = 1 + is_half(bias);
  q->u.bias_n = cols == 1 ? 0 : 1;
  q->u.bias_m = rows == 1 ? 0 : cols;
  q->u.beta = 1;
  return SCONCE_OK;
}

static sconce_status linear_read(struct plan *p, const struct node *n, struct product *q) {
  TRY(linear_check(p, n));
  const struct tensor *x, *w;
  TRY(arg_tensor(p, n, 0, &x));
  TRY(arg_tensor(p, n, 1, &w));
  const uint32_t k = w->dim_live[1];
  *q = (struct product){.x = arg_id(n, 0), .w = arg_id(n, 1), .rest = NO_VALUE, .y = out_id(n)};
  q->u = (struct linear_params){
      .batch = 1, .m = rows_of(x), .n = w->dim_live[0], .k = k, .w_n = k, .w_k = 1, .alpha = 1};
  return arg_is_null(p, n, 2) ? SCONCE_OK : add_bias(p, n, 2, q);
}

static sconce_status linear_shape(struct plan *p, const struct node *n) {
  struct product q;
  TRY(linear_read(p, n, &q));
  return rows_shape(p, out_id(n), tensor_at(p, q.x), q.u.n);
}

/* ---- aten.mm: [a, b, y]; aten.bmm: the same with a batch; aten.addmm: [self, a, b, beta, alpha,
 * y] */

enum { LINEAR, MM, BMM, ADDMM };

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

static sconce_status addmm_bias(struct plan *p, const struct node *n, struct product *q) {
  double beta, alpha;
  TRY(arg_float(p, n, 3, &beta));
  TRY(arg_float(p, n, 4, &alpha));
  TRY(add_bias(p, n, 0, q));
  if (beta == 0) q->u.bias = 0; /* even NaN is ignored */
  q->u.alpha = (float)alpha;
  q->u.beta = (float)beta;
  return SCONCE_OK;
}

static sconce_status mm_read(struct plan *p, const struct node *n, struct product *q) {
  const struct tensor *a, *b;
  TRY(mm_check(p, n, &a, &b));
  const uint32_t at = n->op->code == ADDMM, rank = a->rank;
  *q = (struct product){
      .x = arg_id(n, at), .w = arg_id(n, at + 1), .rest = NO_VALUE, .y = out_id(n)};
  q->u = (struct linear_params){.batch = rank == 3 ? a->dim_live[0] : 1,
                                .m = a->dim_live[rank - 2],
                                .n = b->dim_live[rank - 1],
                                .k = a->dim_live[rank - 1],
                                .w_n = 1,
                                .w_k = b->dim_live[rank - 1],
                                .alpha = 1};
  return n->op->code == ADDMM ? addmm_bias(p, n, q) : SCONCE_OK;
}

/* ---- all of them ----------------------------------------------------------------------------- */

sconce_status product_read(struct plan *p, const struct node *n, struct product *q) {
  return n->op->code == LINEAR ? linear_read(p, n, q) : mm_read(p, n, q);
}

static sconce_status emit(struct plan *p, const struct node *n) {
  struct product q;
  TRY(product_read(p, n, &q));
  return product_emit(p, n, &q);
}

/* Upper bounds of dims need not fit each other; shape looks at those of a call. */
static sconce_status prepare(struct plan *p, struct node *n) {
  struct product q;
  sconce_error quiet = {0};
  struct plan asks = {p->g, p->node, &quiet};
  return product_read(&asks, n, &q) == SCONCE_OK ? product_prepare(p, n, &q) : SCONCE_OK;
}

EXPAND_WIDE(mm_words, "aten.mm.default", VK_INT32)
EXPAND_WIDE(bmm_words, "aten.bmm.default", VK_INT32)
EXPAND_WIDE(addmm_words, "aten.addmm.default", VK_INT32)

const struct op ops_linear[] = {
    {"aten.linear.default", linear_shape, emit, prepare, .also = "aten::linear.out", .n_args = 4,
     .flags = OP_ROWS, .code = LINEAR, .tables = TABLES(product_kernels, product_sums)},
    {"aten.mm.default", mm_shape, emit, prepare, mm_words, expand_gives_bytes,
     .also = "aten::mm.out", .n_args = 3, .code = MM,
     .tables = TABLES(product_kernels, product_sums)},
    {"aten.bmm.default", mm_shape, emit, prepare, bmm_words, expand_gives_bytes,
     .also = "aten::bmm.out", .n_args = 3, .code = BMM,
     .tables = TABLES(product_kernels, product_sums)},
    {"aten.addmm.default", mm_shape, emit, prepare, addmm_words, expand_gives_bytes,
     .also = "aten::addmm.out", .n_args = 6, .code = ADDMM,
     .tables = TABLES(product_kernels, product_sums)},
    {0},
};
