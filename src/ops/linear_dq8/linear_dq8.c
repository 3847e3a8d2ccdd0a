/* The 4-bit linear of rows that are quantised to 8 bits, with parameters for each row.
 *
 * y = s_m Σ (q − z_m) (code − 8) scale. The first dispatch rounds x to what 8 bits keep of it, once
 * per row and in float32, where s (q − z) is exact to a rounding; the second is linear_q4's. */
#include "ops/linear_q4/linear_q4.h"

#include "dq8_rows.wgsl.h"

static const struct kernel rows_kernels[] = {
    {"f32", &dq8_rows_wgsl, "use=elem_f32", OF_F32},
    {"f16", &dq8_rows_wgsl, "use=elem_f16", OF_F16},
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

/* ---- et_vk.linear_dq8ca_q4gsw: [x, scale, zero, w, sums, scales, group, bias?, y] --------------
 */

enum { X, X_SCALE, X_ZERO, W, SUMS, SCALES, GROUP, BIAS };

/* The sums of the codes are not read: q − z is formed before the product. */
static sconce_status prepare(struct plan *p, struct node *n) {
  const struct tensor *x, *scales;
  TRY(arg_tensor(p, n, X, &x));
  TRY(arg_tensor(p, n, SCALES, &scales));
  TRY(graph_scratch(p->g, VK_FLOAT32, tensor_numel_max(x), &n->extra[1], p->err));
  TRY(graph_packed(p->g, arg_id(n, SCALES), &q4_scales, &n->extra[0], p->err));
  return q4_scratch(p, n, X, W, SCALES);
}

static sconce_status shape(struct plan *p, const struct node *n) {
  const struct tensor *x, *w;
  TRY(arg_tensor(p, n, X, &x));
  TRY(arg_tensor(p, n, W, &w));
  return rows_shape(p, out_id(n), x, w->dim_max[0]);
}

static sconce_status emit_rows(struct plan *p, const struct node *n, uint32_t m, uint32_t k) {
  const struct tensor *x, *scale;
  TRY(arg_tensor(p, n, X, &x));
  TRY(arg_tensor(p, n, X_SCALE, &scale));
  const struct tensor *zero;
  TRY(arg_tensor(p, n, X_ZERO, &zero));
  TRY(check_params(p, scale, zero, m));
  const uint64_t from_row = (uint64_t)k * vk_dtype_size(x->dtype), to_row = (uint64_t)k * 4;
  const uint64_t step = rows_split(p, m, from_row, to_row);
  struct dq8_rows_params u = {.k = k, .half = is_half(scale), .bytes = vk_dtype_size(zero->dtype)};
  const struct kernel *row;
  TRY(choose(p, n, rows_kernels, x->dtype, NULL, &row));
  for (uint64_t m0 = 0; m0 < m; m0 += step) {
    u.first = (uint32_t)m0;
    u.m = (uint32_t)(m - m0 < step ? m - m0 : step);
    TRY(dispatch(p, row, &u, div_up((uint64_t)u.m * k, 64),
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
  return q4_emit(p, n, &l);
}

const struct op ops_linear_dq8[] = {
    {"et_vk.linear_dq8ca_q4gsw.default", shape, emit, prepare, .n_args = 9,
     .unbound = 1 << SUMS | 1 << SCALES, .tables = TABLES(rows_kernels, Q4_TABLES)},
    {0},
};
