/* A choice between two tensors, element by element: three operands that broadcast. */
#include "ops/strides/strides.h"

#include "where.wgsl.h"

#include <string.h>

static const struct kernel kernels[] = {
    {"words", &where_wgsl, "BITS=32u", OF_F32 | OF_I32},
    {"halves", &where_wgsl, "BITS=16u", OF_F16},
    {"bytes", &where_wgsl, "BITS=8u", OF_U8 | OF_I8 | OF_BOOL},
    {0},
};

/* [condition, a, b, out] */
static sconce_status operands(struct plan *p, const struct node *n, const struct tensor *x[3]) {
  TRY(arg_tensors(p, n, 0, 3, x));
  char one[120], two[120];
  if (vk_dtype_size(x[0]->dtype) != 1 || x[1]->dtype != x[2]->dtype)
    return fail(p->err, SCONCE_UNSUPPORTED, "a condition of %s for %s and %s",
                vk_dtype_name(x[0]->dtype), tensor_text(x[1], one), tensor_text(x[2], two));
  return SCONCE_OK;
}

static sconce_status shape(struct plan *p, const struct node *n) {
  const struct tensor *x[3];
  uint32_t dims[RANK_MAX], rank;
  TRY(operands(p, n, x));
  TRY(broadcast_dims(p, x, 3, dims, &rank));
  return set_dims(p, out_id(n), dims, rank);
}

static sconce_status emit(struct plan *p, const struct node *n) {
  const struct tensor *x[3], *y = out_tensor(p, n);
  TRY(operands(p, n, x));
  char one[120];
  if (x[1]->dtype != y->dtype)
    return fail(p->err, SCONCE_BAD_GRAPH, "the result is %s, not %s", tensor_text(y, one),
                vk_dtype_name(x[1]->dtype));
  struct nest nest = {.rank = y->rank, .n_operands = 3};
  memcpy(nest.size, y->dim_live, y->rank * sizeof *nest.size);
  for (uint32_t k = 0; k < 3; k++) nest_broadcast(&nest, k, x[k]);
  nest_merge(&nest);
  struct where_params u = {.n = (uint32_t)tensor_numel(y), .rank = nest.rank};
  memcpy(u.dims, nest.size, sizeof u.dims);
  memcpy(u.stride_c, nest.stride[0], sizeof u.stride_c);
  memcpy(u.stride_a, nest.stride[1], sizeof u.stride_a);
  memcpy(u.stride_b, nest.stride[2], sizeof u.stride_b);
  uint32_t size = vk_dtype_size(y->dtype);
  const struct kernel *row;
  TRY(choose(p, n, kernels, y->dtype, NULL, &row));
  return dispatch(p, row, &u, div_up(div_up(u.n, 4 / size), 64),
                  OPERANDS({arg_id(n, 0)}, {arg_id(n, 1)}, {arg_id(n, 2)}, {out_id(n)}));
}

const struct op ops_where[] = {
    {"aten.where.self", shape, emit, .also = "aten::where.self_out", .n_args = 4,
     .flags = OP_PROMOTES | OP_CHOOSES, .tables = TABLES(kernels)},
    {0},
};
