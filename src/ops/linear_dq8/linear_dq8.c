/* Dynamic 8-bit activations: parameters for each row, and the 4-bit linear of rows so quantised.
 *
 * y = s_m Σ (q − z_m) (code − 8) scale. The first dispatch rounds x to what 8 bits keep of it, once
 * per row and in float32, where s (q − z) is exact to a rounding; the second is linear_q4's. */
#include "ops/linear_q4/linear_q4.h"

#include "dq8_rows.wgsl.h"
#include "qparams.wgsl.h"

#include <inttypes.h>

static const struct kernel qparams_kernels[] = {
    {"f32", &qparams_wgsl, "use=elem_f32", .threads = 256, .workgroup_bytes = 2048},
    {"f16", &qparams_wgsl, "use=elem_f16", .threads = 256, .workgroup_bytes = 2048},
    {0},
};
static const struct kernel rows_kernels[] = {
    {"f32", &dq8_rows_wgsl, "use=elem_f32"},
    {"f16", &dq8_rows_wgsl, "use=elem_f16"},
    {0},
};

static sconce_status check_params(struct plan *p, const struct tensor *scale,
                                  const struct tensor *zero, uint32_t rows) {
  char a[120], b[120];
  TRY(float_check(p, scale, "the scale"));
  if (zero->dtype != VK_INT8 && zero->dtype != VK_INT32)
    return fail(p->err, SCONCE_UNSUPPORTED, "zero points of %s, expected int8 or int32",
                vk_dtype_name(zero->dtype));
  if (tensor_numel(scale) != rows || tensor_numel(zero) != rows)
    return fail(p->err, SCONCE_BAD_GRAPH, "scales %s and zero points %s for %u rows",
                tensor_text(scale, a), tensor_text(zero, b), rows);
  return SCONCE_OK;
}

/* ---- torchao.choose_qparams_affine --------------------------------------------------------------
 * [x, mapping, block, dtype, qmin, qmax, eps, dtype of scales, of zeros, (keepdim,) out]; whether
 * dims are kept shows in the outputs. */

enum { MAPPING = 1, BLOCK, TARGET, QMIN, QMAX, EPS };

static sconce_status qparams_out(struct plan *p, const struct node *n, const struct tensor **scale,
                                 const struct tensor **zero) {
  uint32_t list = n->n_args - 1;
  if (list != 9 && list != 10)
    return fail(p->err, SCONCE_BAD_GRAPH, "%u arguments, expected 10 or 11", n->n_args);
  *scale = tensor_at(p, arg_item(p, n, list, 0));
  *zero = tensor_at(p, arg_item(p, n, list, 1));
  if (arg_count(p, n, list) == 2 && *scale && *zero) return SCONCE_OK;
  return fail(p->err, SCONCE_BAD_GRAPH, "the result is no list of a scale and a zero point");
}

static sconce_status qparams_shape(struct plan *p, const struct node *n) {
  const struct tensor *x = arg_tensor(p, n, 0), *out[2];
  if (!x) return SCONCE_BAD_GRAPH;
  TRY(qparams_out(p, n, &out[0], &out[1]));
  for (uint32_t i = 0; i < 2; i++) {
    uint32_t dims[RANK_MAX] = {rows_of(x)}, rank = out[i]->rank;
    bool keeps = rank == x->rank; /* a last dim of 1 */
    if (keeps || rank + 1 == x->rank)
      for (uint32_t d = 0; d < rank; d++) dims[d] = x->dim_live[d];
    if (keeps && rank) dims[rank - 1] = 1;
    TRY(set_dims(p, arg_item(p, n, n->n_args - 1, i), dims, rank));
  }
  return SCONCE_OK;
}

/* One block is one row. */
static sconce_status check_blocks(struct plan *p, const struct node *n, const struct tensor *x) {
  int64_t block[RANK_MAX];
  uint32_t rank;
  if (!arg_text_is(p, n, MAPPING, "ASYMMETRIC") &&
      !arg_text_is(p, n, MAPPING, "MappingType.ASYMMETRIC"))
    return fail(p->err, SCONCE_UNSUPPORTED, "only the asymmetric mapping is known");
  TRY(arg_ints(p, n, BLOCK, block, RANK_MAX, &rank));
  if (rank != x->rank || rank == 0)
    return fail(p->err, SCONCE_BAD_GRAPH, "blocks of rank %u for a tensor of rank %u", rank,
                x->rank);
  for (uint32_t i = 0; i < rank; i++) {
    bool last = i + 1 == rank;
    if (block[i] != (last ? x->dim_live[i] : 1))
      return fail(p->err, SCONCE_UNSUPPORTED, "blocks of %" PRId64 " along dim %u of %u", block[i],
                  i, x->dim_live[i]);
  }
  return SCONCE_OK;
}

static sconce_status qparams_emit(struct plan *p, const struct node *n) {
  const struct tensor *x = arg_tensor(p, n, 0), *scale, *zero;
  if (!x) return SCONCE_BAD_GRAPH;
  TRY(qparams_out(p, n, &scale, &zero));
  TRY(float_check(p, x, "x"));
  TRY(check_blocks(p, n, x));
  TRY(check_params(p, scale, zero, rows_of(x)));
  double qmin, qmax, eps;
  TRY(arg_float_or(p, n, QMIN, -128, &qmin));
  TRY(arg_float_or(p, n, QMAX, 127, &qmax));
  TRY(arg_float_or(p, n, EPS, 1.1920928955078125e-07, &eps)); /* float32's */
  if (!(qmin >= -128 && qmin <= 0 && qmax <= 127 && qmax > 0))
    return fail(p->err, SCONCE_UNSUPPORTED, "quantised values from %g to %g", qmin, qmax);
  const double least = is_half(scale) ? 5.9604644775390625e-08 : 1.17549435e-38; /* not 0 */
  struct qparams_params u = {.m = rows_of(x),
                             .k = x->dim_live[x->rank - 1],
                             .half = is_half(scale),
                             .bytes = vk_dtype_size(zero->dtype),
                             .qmin = (float)qmin,
                             .qmax = (float)qmax,
                             .eps = (float)(eps > least ? eps : least)};
  uint32_t list = n->n_args - 1;
  return dispatch(p, &qparams_kernels[is_half(x)], &u, div_up(u.m, 4),
                  OPERANDS({arg_id(n, 0)}, {arg_item(p, n, list, 0)}, {arg_item(p, n, list, 1)}));
}

/* ---- et_vk.linear_dq8ca_q4gsw: [x, scale, zero, w, sums, scales, group, bias?, y] --------------
 */

enum { X, X_SCALE, X_ZERO, W, SUMS, SCALES, GROUP, BIAS };

/* The sums of the codes are not read: q − z is formed before the product. */
static sconce_status prepare(struct plan *p, struct node *n) {
  const struct tensor *x = arg_tensor(p, n, X), *scales = arg_tensor(p, n, SCALES);
  if (!x || !scales) return SCONCE_BAD_GRAPH;
  TRY(graph_scratch(p->g, VK_FLOAT32, tensor_numel_max(x), &n->extra[1], p->err));
  return graph_packed(p->g, arg_id(n, SCALES), PACK_TRANSPOSED, &n->extra[0], p->err);
}

static sconce_status shape(struct plan *p, const struct node *n) {
  const struct tensor *x = arg_tensor(p, n, X), *w = arg_tensor(p, n, W);
  if (!x || !w) return SCONCE_BAD_GRAPH;
  return rows_shape(p, out_id(n), x, w->dim_max[0]);
}

static sconce_status emit_rows(struct plan *p, const struct node *n, uint32_t m, uint32_t k) {
  const struct tensor *x = arg_tensor(p, n, X), *scale = arg_tensor(p, n, X_SCALE);
  const struct tensor *zero = arg_tensor(p, n, X_ZERO);
  if (!x || !scale || !zero) return SCONCE_BAD_GRAPH;
  TRY(check_params(p, scale, zero, m));
  const uint64_t from_row = (uint64_t)k * vk_dtype_size(x->dtype), to_row = (uint64_t)k * 4;
  const uint64_t step = rows_split(p, m, from_row, to_row);
  struct dq8_rows_params u = {.k = k, .half = is_half(scale), .bytes = vk_dtype_size(zero->dtype)};
  for (uint64_t m0 = 0; m0 < m; m0 += step) {
    u.first = (uint32_t)m0;
    u.m = (uint32_t)(m - m0 < step ? m - m0 : step);
    TRY(dispatch(p, &rows_kernels[is_half(x)], &u, div_up((uint64_t)u.m * k, 64),
                 OPERANDS(rows_part(p, arg_id(n, X), from_row, m0, u.m), {arg_id(n, X_SCALE)},
                          {arg_id(n, X_ZERO)}, rows_part(p, n->extra[1], to_row, m0, u.m))));
  }
  return SCONCE_OK;
}

static sconce_status emit(struct plan *p, const struct node *n) {
  struct q4_linear l;
  TRY(q4_linear_of(p, n, (struct q4_args){X, W, SCALES, GROUP, BIAS}, &l));
  l.x = n->extra[1]; /* as emit_rows leaves it */
  TRY(emit_rows(p, n, l.m, l.k));
  return q4_emit(p, &l);
}

const struct op ops_linear_dq8[] = {
    {"torchao.choose_qparams_affine.default", qparams_shape, qparams_emit, .flags = OP_LIST,
     .kernels = {qparams_kernels}},
    {"et_vk.linear_dq8ca_q4gsw.default", shape, emit, prepare, .n_args = 9,
     .kernels = {rows_kernels}, .unbound = 1 << SUMS | 1 << SCALES},
    {0},
};
