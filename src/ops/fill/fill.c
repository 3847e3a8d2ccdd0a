/* Tensors that are made of numbers: one for all elements, or a progression. */
#include "ops/strides/strides.h"

#include "fill.wgsl.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define FITS(NAME, TEST)                                                                           \
  static bool NAME(const void *problem, const struct caps *caps) {                                 \
    (void)caps;                                                                                    \
    enum vk_dtype dtype = *(const enum vk_dtype *)problem;                                         \
    return TEST;                                                                                   \
  }
FITS(is_f32, dtype == VK_FLOAT32)
FITS(is_f16, dtype == VK_FLOAT16)
FITS(is_i32, dtype == VK_INT32)

static const struct kernel kernels[] = {
    {"f32", &fill_wgsl, "use=quad_f32", .fits = is_f32},
    {"f16", &fill_wgsl, "use=quad_f16", .fits = is_f16},
    {"i32", &fill_wgsl, "use=quad_i32", .fits = is_i32},
    {"bytes", &fill_wgsl, "use=quad_u8"},
    {0},
};

/* ---- values ---------------------------------------------------------------------------------- */

static uint32_t element_bits(enum vk_dtype dtype, double value) {
  float single = (float)value;
  uint32_t bits;
  if (dtype == VK_BOOL) return value != 0;
  if (dtype != VK_FLOAT32 && dtype != VK_FLOAT16) return (uint32_t)(int64_t)value;
  memcpy(&bits, &single, sizeof bits);
  return bits;
}

static sconce_status emit_values(struct plan *p, const struct node *n, double start, double step) {
  const struct tensor *y = arg_tensor(p, n, n->n_args - 1);
  if (!y) return SCONCE_BAD_GRAPH;
  if (!(start >= INT32_MIN && start <= INT32_MAX) && y->dtype != VK_FLOAT32 &&
      y->dtype != VK_FLOAT16)
    return fail(p->err, SCONCE_UNSUPPORTED, "%g in a tensor of %s", start, vk_dtype_name(y->dtype));
  struct fill_params u = {.start = element_bits(y->dtype, start),
                          .step = element_bits(y->dtype, step)};
  const struct kernel *row = choose(p, kernels, &y->dtype);
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
  double value = n->op->variant == ONE;
  if (n->op->variant == GIVEN) TRY(arg_float(p, n, 1, &value));
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

/* [start, end, step, …, out] */
static sconce_status arange_shape(struct plan *p, const struct node *n) {
  double start, end, step;
  TRY(arg_float_or(p, n, 0, 0, &start));
  TRY(arg_float(p, n, 1, &end));
  TRY(arg_float_or(p, n, 2, 1, &step));
  double count = ceil((end - start) / step);
  if (step == 0 || !(count >= 0 && count <= UINT32_MAX))
    return fail(p->err, SCONCE_BAD_ARGUMENT, "from %g to %g in steps of %g", start, end, step);
  return set_dims(p, out_id(n), (const uint32_t[]){(uint32_t)count}, 1);
}

static sconce_status arange_emit(struct plan *p, const struct node *n) {
  double start, step;
  TRY(arg_float_or(p, n, 0, 0, &start));
  TRY(arg_float_or(p, n, 2, 1, &step));
  return emit_values(p, n, start, step);
}

#define FILL(NAME, SHAPE, EMIT, VARIANT, N_ARGS)                                                   \
  {                                                                                                \
    NAME, SHAPE, EMIT, .variant = VARIANT, .n_args = N_ARGS, .kernels = { kernels }                \
  }

const struct op ops_fill[] = {
    FILL("aten.full.default", shape_sizes, emit, GIVEN, 7),
    FILL("aten::full.out", shape_sizes, emit, GIVEN, 3),
    FILL("aten.full_like.default", shape_same, emit, GIVEN, 8),
    FILL("aten::full_like.out", shape_same, emit, GIVEN, 4),
    FILL("aten.zeros.default", shape_sizes, emit, ZERO, 6),
    FILL("aten.ones.default", shape_sizes, emit, ONE, 6),
    FILL("aten.zeros_like.default", shape_same, emit, ZERO, 7),
    FILL("aten.ones_like.default", shape_same, emit, ONE, 7),
    FILL("aten.scalar_tensor.default", shape_scalar, emit_scalar, GIVEN, 6),
    FILL("aten::scalar_tensor.out", shape_scalar, emit_scalar, GIVEN, 2),
    FILL("aten.arange.start_step", arange_shape, arange_emit, GIVEN, 8),
    {0},
};
