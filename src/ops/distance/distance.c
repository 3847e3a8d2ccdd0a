/* Distances between the rows of two tensors, or between all rows of one. */
#include "ops/strides/strides.h"

#include "distance.wgsl.h"

#include <math.h>
#include <string.h>

#define USES " use=not_a_number use=power"
static const struct kernel between[] = {
    {"two_f32", &distance_wgsl, "use=elem_f32" USES, OF_F32},
    {"two_f16", &distance_wgsl, "use=elem_f16" USES, OF_F16},
    {0},
};
static const struct kernel within[] = {
    {"one_f32", &distance_wgsl, "PAIRS=true use=elem_f32" USES, OF_F32},
    {"one_f16", &distance_wgsl, "PAIRS=true use=elem_f16" USES, OF_F16},
    {0},
};

/* As distance.wgsl counts them. */
enum { COUNT, SUM, SQUARES, LARGEST, POWERS };

static uint32_t kind_of(double p) {
  return p == 0 ? COUNT : p == 1 ? SUM : p == 2 ? SQUARES : isinf(p) ? LARGEST : POWERS;
}

static sconce_status norm_of(struct plan *p, const struct node *n, uint32_t i, double *norm) {
  TRY(arg_float(p, n, i, norm));
  return *norm >= 0 ? SCONCE_OK : fail(p->err, SCONCE_BAD_GRAPH, "a norm of %g", *norm);
}

/* ---- two tensors ----------------------------------------------------------------------------- */

/* [a, b, p, compute_mode, out]: batch dims broadcast; the mode is about speed. */
static sconce_status batch_of(struct plan *p, const struct node *n, const struct tensor *x[2],
                              struct tensor batch[2], uint32_t dims[RANK_MAX], uint32_t *rank) {
  double norm;
  char one[120], two[120];
  TRY(arg_tensors(p, n, 0, 2, x));
  TRY(norm_of(p, n, 2, &norm));
  if (x[0]->rank < 2 || x[1]->rank < 2 ||
      x[0]->dim_live[x[0]->rank - 1] != x[1]->dim_live[x[1]->rank - 1])
    return fail(p->err, SCONCE_BAD_ARGUMENT, "rows of %s and of %s", tensor_text(x[0], one),
                tensor_text(x[1], two));
  for (int k = 0; k < 2; k++) {
    batch[k] = *x[k];
    batch[k].rank -= 2;
  }
  return broadcast_dims(p, (const struct tensor *const[]){&batch[0], &batch[1]}, 2, dims, rank);
}

static sconce_status between_shape(struct plan *p, const struct node *n) {
  const struct tensor *x[2];
  struct tensor batch[2];
  uint32_t dims[RANK_MAX], rank = 0;
  TRY(batch_of(p, n, x, batch, dims, &rank));
  dims[rank] = x[0]->dim_live[x[0]->rank - 2];
  dims[rank + 1] = x[1]->dim_live[x[1]->rank - 2];
  return set_dims(p, out_id(n), dims, rank + 2);
}

static sconce_status between_emit(struct plan *p, const struct node *n) {
  const struct tensor *x[2], *y = out_tensor(p, n);
  struct tensor batch[2];
  struct nest nest = {.n_operands = 2};
  const struct kernel *row;
  double norm;
  TRY(batch_of(p, n, x, batch, nest.size, &nest.rank));
  TRY(norm_of(p, n, 2, &norm));
  if (x[0]->dtype != x[1]->dtype || x[0]->dtype != y->dtype)
    return fail(p->err, SCONCE_UNSUPPORTED, "%s and %s", vk_dtype_name(x[0]->dtype),
                vk_dtype_name(x[1]->dtype));
  struct distance_params u = {.n = (uint32_t)tensor_numel(y),
                              .rows_a = x[0]->dim_live[x[0]->rank - 2],
                              .rows_b = x[1]->dim_live[x[1]->rank - 2],
                              .cols = x[0]->dim_live[x[0]->rank - 1],
                              .p = (float)norm,
                              .kind = kind_of(norm),
                              .rank = nest.rank};
  const uint32_t matrix[] = {u.rows_a * u.cols, u.rows_b * u.cols};
  for (uint32_t k = 0; k < 2; k++) {
    nest_broadcast(&nest, k, &batch[k]);
    for (uint32_t i = 0; i < nest.rank; i++) nest.stride[k][i] *= matrix[k];
  }
  memcpy(u.dims, nest.size, sizeof u.dims);
  memcpy(u.stride_a, nest.stride[0], sizeof u.stride_a);
  memcpy(u.stride_b, nest.stride[1], sizeof u.stride_b);
  TRY(choose(p, n, between, y->dtype, NULL, &row));
  return dispatch(p, row, &u, div_up(div_up(u.n, 4 / vk_dtype_size(y->dtype)), 64),
                  OPERANDS({arg_id(n, 0)}, {arg_id(n, 1)}, {out_id(n)}));
}

/* ---- one tensor ------------------------------------------------------------------------------ */

/* [x, p, out] */
static sconce_status within_shape(struct plan *p, const struct node *n) {
  const struct tensor *x;
  double norm;
  TRY(arg_tensor(p, n, 0, &x));
  TRY(norm_of(p, n, 1, &norm));
  if (x->rank != 2) return fail(p->err, SCONCE_BAD_GRAPH, "rows of a tensor of rank %u", x->rank);
  const uint64_t rows = x->dim_live[0], pairs = rows ? rows * (rows - 1) / 2 : 0;
  if (pairs > UINT32_MAX)
    return fail(p->err, SCONCE_UNSUPPORTED, "all pairs of %u rows", x->dim_live[0]);
  return set_dims(p, out_id(n), (const uint32_t[]){(uint32_t)pairs}, 1);
}

static sconce_status within_emit(struct plan *p, const struct node *n) {
  const struct tensor *x, *y = out_tensor(p, n);
  const struct kernel *row;
  double norm;
  TRY(arg_tensor(p, n, 0, &x));
  TRY(norm_of(p, n, 1, &norm));
  if (x->dtype != y->dtype)
    return fail(p->err, SCONCE_UNSUPPORTED, "%s of %s", vk_dtype_name(y->dtype),
                vk_dtype_name(x->dtype));
  const struct distance_params u = {.n = y->dim_live[0],
                                    .rows_a = x->dim_live[0],
                                    .cols = x->dim_live[1],
                                    .p = (float)norm,
                                    .kind = kind_of(norm)};
  TRY(choose(p, n, within, y->dtype, NULL, &row));
  return dispatch(p, row, &u, div_up(div_up(u.n, 4 / vk_dtype_size(y->dtype)), 64),
                  OPERANDS({arg_id(n, 0)}, {arg_id(n, 0)}, {out_id(n)}));
}

const struct op ops_distance[] = {
    {"aten._cdist_forward.default", between_shape, between_emit, .also = "aten::_cdist_forward.out",
     .n_args = 5, .tables = TABLES(between)},
    {"aten._pdist_forward.default", within_shape, within_emit, .also = "aten::_pdist_forward.out",
     .n_args = 3, .tables = TABLES(within)},
    {0},
};
