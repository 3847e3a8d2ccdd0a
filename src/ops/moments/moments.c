/* Variances: see moments.h. */
#include "ops/moments/moments.h"

#include "ops/parts/parts.h"
#include "ops/strides/strides.h"

#include "moments.wgsl.h"
#include "moments_join.wgsl.h"
#include "moments_norm.wgsl.h"
#include "moments_out.wgsl.h"

#include <inttypes.h>
#include <string.h>

/* ---- kernels --------------------------------------------------------------------------------- */

struct problem {
  uint64_t results, count;
  bool contiguous; /* the elements of a result follow each other */
  bool in_parts;
};

static bool alone(const void *problem) { /* as for sums */
  const struct problem *q = problem;
  return q->count <= 16 || (q->results >= (q->in_parts ? 64 : 4096) && !q->contiguous);
}

/* tile[0]: results of a workgroup, or parts. */
#define PAIR(NAME, SET, OF)                                                                        \
  {"thread_" NAME, &moments_wgsl, "GROUP=false " SET, OF, .fits = alone, .tile = {64}}, {          \
    "group_" NAME, &moments_wgsl, SET, OF, .tile = {1}, .workgroup_bytes = 256, .reference = true  \
  }
const struct kernel moments_kernels[] = {
    PAIR("f32", "use=elem_f32", OF_F32),
    PAIR("f16", "use=elem_f16", OF_F16),
    {0},
};
const struct kernel moments_join_kernels[] = {
    {"parts", &moments_join_wgsl, "", .workgroup_bytes = 256}, {0}};
const struct kernel moments_norm_kernels[] = {
    {"f32", &moments_norm_wgsl, "use=elem_f32", OF_F32},
    {"f16", &moments_norm_wgsl, "use=elem_f16", OF_F16},
    {0},
};

#define IS(NAME, MOMENT)                                                                           \
  static bool NAME(const void *problem) { return *(const enum moment *)problem == (MOMENT); }
IS(is_mean, MOMENT_MEAN)
IS(is_variance, MOMENT_VARIANCE)
IS(is_factor, MOMENT_FACTOR)

#define OUT(NAME, KIND)                                                                            \
  {#NAME "_f32", &moments_out_wgsl, "KIND=" KIND " use=elem_f32", OF_F32, .fits = is_##NAME}, {    \
    #NAME "_f16", &moments_out_wgsl, "KIND=" KIND " use=elem_f16", OF_F16, .fits = is_##NAME       \
  }
const struct kernel moments_out_kernels[] = {
    OUT(mean, "MEAN"), OUT(variance, "VARIANCE"), OUT(factor, "FACTOR"), {0}};

/* ---- for others ------------------------------------------------------------------------------ */

uint64_t moments_results(const uint32_t *dims, uint32_t rank, uint32_t reduced) {
  return moments_count(dims, rank, ~reduced);
}

uint64_t moments_count(const uint32_t *dims, uint32_t rank, uint32_t reduced) {
  uint64_t n = 1;
  for (uint32_t i = 0; i < rank; i++)
    if (reduced >> i & 1) n *= dims[i];
  return n;
}

sconce_status moments_prepare(struct plan *p, struct node *n, uint32_t first, uint64_t results,
                              uint64_t count) {
  TRY(graph_scratch(p->g, VK_FLOAT32, 2 * results, &n->extra[first], p->err));
  if (count <= PART_SPARSE) return SCONCE_OK;
  return graph_scratch(p->g, VK_FLOAT32, 2 * parts_most(results, count, PART_SPARSE),
                       &n->extra[first + 1], p->err);
}

static sconce_status emit_nests(struct plan *p, const struct node *n, uint32_t id,
                                struct nest *kept, struct nest *inner, uint32_t first) {
  const struct tensor *x = tensor_at(p, id);
  if (!x) return fail(p->err, SCONCE_BAD_GRAPH, "value %u is no tensor", id);
  uint64_t results = 1, count = 1;
  for (uint32_t i = 0; i < kept->rank; i++) results *= kept->size[i];
  for (uint32_t i = 0; i < inner->rank; i++) count *= inner->size[i];
  nest_merge(kept);
  nest_merge(inner);
  struct moments_params u = {
      .n = (uint32_t)results, .count = (uint32_t)count, .kept = kept->rank, .reduced = inner->rank};
  memcpy(u.kept_dims, kept->size, sizeof u.kept_dims);
  memcpy(u.kept_stride, kept->stride[0], sizeof u.kept_stride);
  memcpy(u.reduced_dims, inner->size, sizeof u.reduced_dims);
  memcpy(u.reduced_stride, inner->stride[0], sizeof u.reduced_stride);
  const bool contiguous = inner->stride[0][inner->rank - 1] == 1;
  u.each = contiguous ? PART_DENSE : PART_SPARSE;
  u.parts = parts_of(results, count, u.each);
  const struct problem problem = {results, count, contiguous, u.parts > 1};
  const struct kernel *row = row_for(p, n, moments_kernels, x->dtype, &problem);
  char text[120];
  if (!row) return fail(p->err, SCONCE_UNSUPPORTED, "the variance of %s", tensor_text(x, text));
  const uint32_t stats = n->extra[first], found = u.parts > 1 ? n->extra[first + 1] : stats;
  TRY(dispatch(p, row, &u, div_up(results * u.parts, row->tile[0]), OPERANDS({id}, {found})));
  if (u.parts == 1) return SCONCE_OK;
  const struct moments_join_params j = {u.n, u.count, u.parts, u.each};
  TRY(choose(p, n, moments_join_kernels, VK_FLOAT32, NULL, &row));
  return dispatch(p, row, &j, results, OPERANDS({found}, {stats}));
}

sconce_status moments_emit(struct plan *p, const struct node *n, uint32_t id, uint32_t reduced,
                           uint32_t first) {
  const struct tensor *x = tensor_at(p, id);
  if (!x) return fail(p->err, SCONCE_BAD_GRAPH, "value %u is no tensor", id);
  uint32_t strides[RANK_MAX];
  struct nest kept = {.n_operands = 1}, inner = {.n_operands = 1};
  dense_strides(x->dim_live, x->rank, strides);
  for (uint32_t i = 0; i < x->rank; i++)
    nest_push(reduced >> i & 1 ? &inner : &kept, x->dim_live[i], strides[i], 0);
  return emit_nests(p, n, id, &kept, &inner, first);
}

sconce_status moments_rows(struct plan *p, const struct node *n, uint32_t id, uint32_t rows,
                           uint32_t cols, uint32_t first) {
  struct nest kept = {.n_operands = 1}, inner = {.n_operands = 1};
  nest_push(&kept, rows, cols, 0);
  nest_push(&inner, cols, 1, 0);
  return emit_nests(p, n, id, &kept, &inner, first);
}

sconce_status moments_norm(struct plan *p, const struct node *n, uint32_t first,
                           const struct moments_norm *m) {
  const struct tensor *t = tensor_at(p, m->x);
  if (!t) return fail(p->err, SCONCE_BAD_GRAPH, "value %u is no tensor", m->x);
  struct moments_norm_params u = {.n = (uint32_t)tensor_numel(t),
                                  .cols = m->cols,
                                  .groups = m->groups,
                                  .depth = m->depth,
                                  .inner = m->inner,
                                  .affine = (m->w ? 1u : 0) | (m->b ? 2u : 0),
                                  .eps = (float)m->eps};
  const struct kernel *row;
  TRY(choose(p, n, moments_norm_kernels, t->dtype, NULL, &row));
  TRY(moments_out(p, n, first, MOMENT_MEAN, m->cols, 0, m->mean));
  TRY(moments_out(p, n, first, MOMENT_FACTOR, m->cols, m->eps, m->rstd));
  const struct operand x = {m->x}; /* stands in for what is not there */
  return dispatch(p, row, &u, div_up(div_up(u.n, 4 / vk_dtype_size(t->dtype)), 64),
                  OPERANDS(x, m->w ? *m->w : x, m->b ? *m->b : x, {n->extra[first]}, {m->y}));
}

sconce_status moments_out(struct plan *p, const struct node *n, uint32_t first, enum moment moment,
                          double divisor, double eps, uint32_t y) {
  const struct tensor *t = tensor_at(p, y);
  if (!t) return fail(p->err, SCONCE_BAD_GRAPH, "value %u is no tensor", y);
  struct moments_out_params u = {
      .n = (uint32_t)tensor_numel(t), .divisor = (float)divisor, .eps = (float)eps};
  const struct kernel *row = row_for(p, n, moments_out_kernels, t->dtype, &moment);
  char text[120];
  if (!row) return fail(p->err, SCONCE_UNSUPPORTED, "a variance in %s", tensor_text(t, text));
  return dispatch(p, row, &u, div_up(div_up(u.n, 4 / vk_dtype_size(t->dtype)), 64),
                  OPERANDS({n->extra[first]}, {y}));
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* [x, dims, correction, keepdim, …, out]: divided by the count less the correction, Null: 1.
 * BOTH: out is [variance, mean]. */
enum { X, DIMS, CORRECTION, KEEP };
enum { BOTH = 1 };

/* A bit for each dim; no list, or an empty one, means all. */
static sconce_status dims_of(struct plan *p, const struct node *n, const struct tensor *x,
                             uint32_t *reduced) {
  int64_t list[RANK_MAX];
  uint32_t count = 0;
  *reduced = 0;
  if (!arg_is_null(p, n, DIMS)) TRY(arg_ints(p, n, DIMS, list, RANK_MAX, &count));
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t rank = x->rank ? x->rank : 1; /* a number is its own only element */
    int64_t dim = list[i] < 0 ? list[i] + rank : list[i];
    if (dim < 0 || dim >= rank)
      return fail(p->err, SCONCE_BAD_GRAPH, "dim %" PRId64 " of a tensor of rank %u", list[i],
                  x->rank);
    *reduced |= 1u << dim;
  }
  if (count == 0) *reduced = (1u << RANK_MAX) - 1;
  return SCONCE_OK;
}

static uint32_t result(struct plan *p, const struct node *n, uint32_t k) {
  return n->op->code == BOTH ? arg_item(p, n, n->n_args - 1, k) : out_id(n);
}

static sconce_status shape(struct plan *p, const struct node *n) {
  const struct tensor *x;
  TRY(arg_tensor(p, n, X, &x));
  const uint32_t results = n->op->code == BOTH ? 2 : 1;
  uint32_t reduced, dims[RANK_MAX], rank = 0;
  bool keep;
  TRY(dims_of(p, n, x, &reduced));
  TRY(arg_bool(p, n, KEEP, &keep));
  if (results == 2 && arg_count(p, n, n->n_args - 1) != 2)
    return fail(p->err, SCONCE_BAD_GRAPH, "%u results, expected 2", arg_count(p, n, n->n_args - 1));
  for (uint32_t i = 0; i < x->rank; i++) {
    bool gone = reduced >> i & 1;
    if (!gone || keep) dims[rank++] = gone ? 1 : x->dim_live[i];
  }
  for (uint32_t k = 0; k < results; k++) TRY(set_dims(p, result(p, n, k), dims, rank));
  return SCONCE_OK;
}

static sconce_status prepare(struct plan *p, struct node *n) {
  const struct tensor *x;
  uint32_t reduced;
  TRY(arg_tensor(p, n, X, &x));
  TRY(dims_of(p, n, x, &reduced));
  return moments_prepare(p, n, 0, moments_results(x->dim_max, x->rank, reduced),
                         moments_count(x->dim_max, x->rank, reduced));
}

static sconce_status emit(struct plan *p, const struct node *n) {
  const struct tensor *x;
  TRY(arg_tensor(p, n, X, &x));
  uint32_t reduced;
  double correction;
  TRY(dims_of(p, n, x, &reduced));
  TRY(arg_float_or(p, n, CORRECTION, 1, &correction));
  TRY(moments_emit(p, n, arg_id(n, X), reduced, 0));
  const double count = (double)moments_count(x->dim_live, x->rank, reduced);
  const double divisor = count > correction ? count - correction : 0;
  TRY(moments_out(p, n, 0, MOMENT_VARIANCE, divisor, 0, result(p, n, 0)));
  if (n->op->code != BOTH) return SCONCE_OK;
  return moments_out(p, n, 0, MOMENT_MEAN, count, 0, result(p, n, 1));
}

#define VARIANCE(NAME, PORTABLE, CODE, FLAGS, N_ARGS)                                              \
  {NAME,                                                                                           \
   shape,                                                                                          \
   emit,                                                                                           \
   prepare,                                                                                        \
   .also = PORTABLE,                                                                               \
   .code = CODE,                                                                                   \
   .flags = FLAGS,                                                                                 \
   .n_args = N_ARGS,                                                                               \
   .tables = TABLES(moments_kernels, moments_join_kernels, moments_out_kernels)}

const struct op ops_moments[] = {
    VARIANCE("aten.var.dim", "aten::var.out", 0, 0, 5),
    VARIANCE("aten.var.correction", "aten::var.correction_out", 0, 0, 5),
    VARIANCE("aten.var_mean.correction", NULL, BOTH, OP_LIST, 5),
    VARIANCE("aten::var_mean.correction_out", NULL, BOTH, OP_LIST, 7),
    {0},
};
