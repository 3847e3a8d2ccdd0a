/* Tensors that are made of numbers: one for all elements, or a progression. */
#include "ops/strides/strides.h"

#include "fill.wgsl.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const struct kernel kernels[] = {
    {"f32", &fill_wgsl, "use=quad_f32", OF_F32},
    {"f16", &fill_wgsl, "use=quad_f16", OF_F16},
    {"i32", &fill_wgsl, "use=quad_i32", OF_I32},
    {"bytes", &fill_wgsl, "use=quad_u8", OF_U8 | OF_I8 | OF_BOOL},
    {0},
};

/* ---- values ---------------------------------------------------------------------------------- */

static sconce_status emit_values(struct plan *p, const struct node *n, double start, double step) {
  const struct tensor *y = out_tensor(p, n);
  if (!(start >= INT32_MIN && start <= INT32_MAX) && !tensor_is_float(y))
    return fail(p->err, SCONCE_UNSUPPORTED, "%g in a tensor of %s", start, vk_dtype_name(y->dtype));
  struct fill_params u = {.start = number_bits(y->dtype, start),
                          .step = number_bits(y->dtype, step)};
  const struct kernel *row;
  TRY(choose(p, n, kernels, y->dtype, NULL, &row));
  uint64_t numel = tensor_numel(y), part = flat_part(p, tensor_numel_max(y), 4);
  if (part == 0) part = numel;
  for (uint64_t at = 0; at < numel; at += part) {
    u.n = (uint32_t)(numel - at < part ? numel - at : part);
    u.first = (uint32_t)at;
    TRY(dispatch(p, row, &u, div_up(u.n, 256), OPERANDS(flat_operand(p, out_id(n), at, part))));
  }
  return SCONCE_OK;
}

/* Which number, if it is not an argument. */
enum { ZERO, ONE, GIVEN };

/* [size or tensor, (value,) …, out] */
static sconce_status emit(struct plan *p, const struct node *n) {
  double value = n->op->code == ONE;
  if (n->op->code == GIVEN) TRY(arg_float(p, n, 1, &value));
  return emit_values(p, n, value, 0);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

/* [size, …, out] */
static sconce_status shape_sizes(struct plan *p, const struct node *n) {
  int64_t sizes[RANK_MAX];
  uint32_t dims[RANK_MAX], rank;
  TRY(arg_ints(p, n, 0, sizes, RANK_MAX, &rank));
  for (uint32_t i = 0; i < rank; i++) {
    if (sizes[i] < 0 || sizes[i] > UINT32_MAX)
      return fail(p->err, SCONCE_BAD_ARGUMENT, "size %" PRId64 " of dim %u", sizes[i], i);
    dims[i] = (uint32_t)sizes[i];
  }
  return set_dims(p, out_id(n), dims, rank);
}

/* [value, …, out] */
static sconce_status shape_scalar(struct plan *p, const struct node *n) {
  return set_dims(p, out_id(n), (const uint32_t[]){0}, 0);
}

static sconce_status emit_scalar(struct plan *p, const struct node *n) {
  double value;
  TRY(arg_float(p, n, 0, &value));
  return emit_values(p, n, value, 0);
}

/* [end, out], or [start, end, step, …, out] */
static sconce_status range_of(struct plan *p, const struct node *n, double *start, double *end,
                              double *step) {
  *start = 0;
  *step = 1;
  if (n->n_args == 2) return arg_float(p, n, 0, end);
  TRY(arg_float_or(p, n, 0, 0, start));
  TRY(arg_float(p, n, 1, end));
  return arg_float_or(p, n, 2, 1, step);
}

static sconce_status arange_shape(struct plan *p, const struct node *n) {
  double start, end = 0, step;
  TRY(range_of(p, n, &start, &end, &step));
  double count = ceil((end - start) / step);
  if (step == 0 || !(count >= 0 && count <= UINT32_MAX))
    return fail(p->err, SCONCE_BAD_ARGUMENT, "from %g to %g in steps of %g", start, end, step);
  return set_dims(p, out_id(n), (const uint32_t[]){(uint32_t)count}, 1);
}

static sconce_status arange_emit(struct plan *p, const struct node *n) {
  double start, end = 0, step;
  TRY(range_of(p, n, &start, &end, &step));
  return emit_values(p, n, start, step);
}

#define FILL(NAME, SHAPE, EMIT, CODE, N_ARGS)                                                      \
  {NAME, SHAPE, EMIT, .code = CODE, .n_args = N_ARGS, .tables = TABLES(kernels)}

/* Portable names have rows of their own: without dtype, layout, device and pin_memory. */
const struct op ops_fill[] = {
    FILL("aten.full.default", shape_sizes, emit, GIVEN, 7),
    FILL("aten::full.out", shape_sizes, emit, GIVEN, 3),
    FILL("aten.full_like.default", shape_same, emit, GIVEN, 8),
    FILL("aten::full_like.out", shape_same, emit, GIVEN, 4),
    FILL("aten.zeros.default", shape_sizes, emit, ZERO, 6),
    FILL("aten::zeros.out", shape_sizes, emit, ZERO, 2),
    FILL("aten.ones.default", shape_sizes, emit, ONE, 6),
    FILL("aten::ones.out", shape_sizes, emit, ONE, 2),
    /* What is in it means nothing; zeros are as good. */
    FILL("aten.empty.memory_format", shape_sizes, emit, ZERO, 7),
    FILL("aten::empty.out", shape_sizes, emit, ZERO, 3),
    FILL("dim_order_ops._empty_dim_order.default", shape_sizes, emit, ZERO, 7),
    FILL("dim_order_ops::_empty_dim_order.out", shape_sizes, emit, ZERO, 3),
    FILL("aten.fill.Scalar", shape_same, emit, GIVEN, 3),
    FILL("aten::fill.Scalar_out", shape_same, emit, GIVEN, 3),
    FILL("aten::arange.out", arange_shape, arange_emit, GIVEN, 2),
    FILL("aten::arange.start_out", arange_shape, arange_emit, GIVEN, 4),
    FILL("aten.zeros_like.default", shape_same, emit, ZERO, 7),
    FILL("aten.ones_like.default", shape_same, emit, ONE, 7),
    FILL("aten.scalar_tensor.default", shape_scalar, emit_scalar, GIVEN, 6),
    FILL("aten::scalar_tensor.out", shape_scalar, emit_scalar, GIVEN, 2),
    FILL("aten.arange.start_step", arange_shape, arange_emit, GIVEN, 8),
    {0},
};
