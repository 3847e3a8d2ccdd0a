/* Layer normalisation over the trailing dims, with its mean and its reciprocal deviation. */
#include "ops/compound/expand.h"
#include "ops/moments/moments.h"
#include "ops/parts/parts.h"

#include "layer_norm.wgsl.h"

/* tile[0]: rows of a workgroup. */
static const struct kernel kernels[] = {
    {"f16", &layer_norm_wgsl, "use=elem_f16", OF_F16, .tile = {2}, .workgroup_bytes = 512,
     .reference = true},
    {"f32", &layer_norm_wgsl, "use=elem_f32", OF_F32, .tile = {1}, .workgroup_bytes = 512,
     .reference = true},
    {0},
};

enum { X, SHAPE, WEIGHT, BIAS, EPS, OUT, ARGS }; /* OUT: [y, mean, rstd] */

/* How many trailing dims are normalised; they must be those of x. */
static sconce_status trailing(struct plan *p, const struct node *n, const struct tensor *x,
                              uint32_t *count) {
  int64_t dims[RANK_MAX];
  TRY(arg_ints(p, n, SHAPE, dims, RANK_MAX, count));
  char text[120];
  bool fits = *count > 0 && *count <= x->rank;
  for (uint32_t i = 0; fits && i < *count; i++) fits = dims[i] == x->dim_live[x->rank - *count + i];
  if (fits) return SCONCE_OK;
  return fail(p->err, SCONCE_BAD_GRAPH, "%s has no trailing dims of the %u given",
              tensor_text(x, text), *count);
}

static sconce_status check_affine(struct plan *p, const struct node *n, uint32_t i,
                                  const struct tensor *x, uint32_t cols) {
  if (arg_is_null(p, n, i)) return SCONCE_OK;
  const struct tensor *t;
  TRY(arg_tensor(p, n, i, &t));
  char text[120];
  if (t->dtype != x->dtype || tensor_numel(t) != cols)
    return fail(p->err, SCONCE_BAD_GRAPH, "argument %u is %s for rows of %u", i,
                tensor_text(t, text), cols);
  return SCONCE_OK;
}

static sconce_status shape(struct plan *p, const struct node *n) {
  const struct tensor *x;
  TRY(arg_tensor(p, n, X, &x));
  if (!tensor_is_float(x))
    return fail(p->err, SCONCE_UNSUPPORTED, "the norm of a %s tensor", vk_dtype_name(x->dtype));
  if (arg_count(p, n, OUT) != 3)
    return fail(p->err, SCONCE_BAD_GRAPH, "%u results, expected 3", arg_count(p, n, OUT));
  uint32_t count, dims[RANK_MAX];
  TRY(trailing(p, n, x, &count));
  TRY(set_dims(p, arg_item(p, n, OUT, 0), x->dim_live, x->rank));
  for (uint32_t i = 0; i < x->rank; i++) dims[i] = i < x->rank - count ? x->dim_live[i] : 1;
  TRY(set_dims(p, arg_item(p, n, OUT, 1), dims, x->rank));
  return set_dims(p, arg_item(p, n, OUT, 2), dims, x->rank);
}

static sconce_status prepare(struct plan *p, struct node *n) {
  const struct tensor *x;
  int64_t dims[RANK_MAX];
  uint32_t count;
  TRY(arg_tensor(p, n, X, &x));
  TRY(arg_ints(p, n, SHAPE, dims, RANK_MAX, &count));
  if (count > x->rank) return SCONCE_OK; /* shape will say why */
  const uint32_t leading = (1u << (x->rank - count)) - 1;
  const uint64_t cols = moments_count(x->dim_max, x->rank, ~leading);
  if (cols <= PART_DENSE) return SCONCE_OK;
  return moments_prepare(p, n, 0, moments_count(x->dim_max, x->rank, leading), cols);
}

/* Rows of many workgroups. */
static sconce_status emit_long(struct plan *p, const struct node *n, uint32_t rows, uint32_t cols,
                               double eps) {
  const bool weight = !arg_is_null(p, n, WEIGHT), bias = !arg_is_null(p, n, BIAS);
  const struct operand w = {arg_id(n, WEIGHT)}, b = {arg_id(n, BIAS)};
  TRY(moments_rows(p, n, arg_id(n, X), rows, cols, 0));
  return moments_norm(p, n, 0,
                      &(struct moments_norm){.x = arg_id(n, X),
                                             .y = arg_item(p, n, OUT, 0),
                                             .mean = arg_item(p, n, OUT, 1),
                                             .rstd = arg_item(p, n, OUT, 2),
                                             .w = weight ? &w : NULL,
                                             .b = bias ? &b : NULL,
                                             .cols = cols,
                                             .groups = 1,
                                             .inner = 1,
                                             .eps = eps});
}

static sconce_status emit(struct plan *p, const struct node *n) {
  const struct tensor *x;
  TRY(arg_tensor(p, n, X, &x));
  uint32_t count, rows = 1, cols = 1;
  double eps;
  TRY(trailing(p, n, x, &count));
  TRY(arg_float(p, n, EPS, &eps));
  for (uint32_t i = 0; i < x->rank - count; i++) rows *= x->dim_live[i];
  for (uint32_t i = x->rank - count; i < x->rank; i++) cols *= x->dim_live[i];
  TRY(check_affine(p, n, WEIGHT, x, cols));
  TRY(check_affine(p, n, BIAS, x, cols));
  if (parts_of(rows, cols, PART_DENSE) > 1) return emit_long(p, n, rows, cols, eps);
  bool weight = !arg_is_null(p, n, WEIGHT), bias = !arg_is_null(p, n, BIAS);
  struct layer_norm_params u = {
      .rows = rows, .cols = cols, .eps = (float)eps, .affine = (weight ? 1u : 0) | (bias ? 2u : 0)};
  const struct kernel *row;
  TRY(choose(p, n, kernels, x->dtype, NULL, &row));
  uint32_t id = arg_id(n, X); /* stands in for what is not there */
  return dispatch(p, row, &u, div_up(u.rows, row->tile[0]),
                  OPERANDS({id}, {weight ? arg_id(n, WEIGHT) : id}, {bias ? arg_id(n, BIAS) : id},
                           {arg_item(p, n, OUT, 0)}, {arg_item(p, n, OUT, 1)},
                           {arg_item(p, n, OUT, 2)}));
}

EXPAND_WIDE(wide, "aten.native_layer_norm.default", VK_FLOAT32)

const struct op ops_layer_norm[] = {
    {"aten.native_layer_norm.default", shape, emit, prepare, wide, expand_mixes_floats,
     .n_args = ARGS, .flags = OP_LIST, .also = "aten::native_layer_norm.out",
     .tables = TABLES(kernels, moments_kernels, moments_join_kernels, moments_out_kernels,
                      moments_norm_kernels)},
    {0},
};
