/* Elementwise operators of two tensors with broadcasting: {operation} × {elements} × {layout}. */
#include "ops/strides/strides.h"

#include "binary.wgsl.h"

#include <math.h>
#include <string.h>

static bool quads(const void *problem) { return *(const bool *)problem; } /* see binary.wgsl */

/* Each operation is an expression in WGSL, without blanks; what it may use is in the libraries.
 * tile[0]: elements that share one index. */
#define PAIR(NAME, RESULT, DTYPE, USES)                                                            \
  {NAME, &binary_wgsl, "result=" RESULT " " USES, DTYPE, .fits = quads, .tile = {4}}, {            \
    NAME "_any", &binary_wgsl, "QUADS=false result=" RESULT " " USES, DTYPE, .tile = {1}           \
  }
#define FLOATS(NAME, RESULT, USES)                                                                 \
  PAIR(NAME "_f32", RESULT, OF_F32, "use=quad_f32 use=binary_float use=not_a_number" USES),        \
      PAIR(NAME "_f16", RESULT, OF_F16, "use=quad_f16 use=binary_float use=not_a_number" USES)
#define NUMBERS(NAME, RESULT, USES)                                                                \
  FLOATS(NAME, RESULT, USES), PAIR(NAME "_i32", RESULT, OF_I32, "use=quad_i32 use=binary_int")
#define LOGIC(NAME, RESULT) PAIR(NAME "_bool", RESULT, OF_BOOL, "use=quad_u8 use=binary_compare")
#define COMPARISON(NAME, RESULT)                                                                   \
  PAIR(NAME "_f32", RESULT, OF_F32, "use=quad_f32 use=binary_compare"),                            \
      PAIR(NAME "_f16", RESULT, OF_F16, "use=quad_f16 use=binary_compare"),                        \
      PAIR(NAME "_i32", RESULT, OF_I32, "use=quad_i32 use=binary_compare"), LOGIC(NAME, RESULT)

#define TABLE(NAME, ...) static const struct kernel NAME##_kernels[] = {__VA_ARGS__, {0}}
TABLE(add, NUMBERS("add", "u+alpha*v", ""));
TABLE(sub, NUMBERS("sub", "u-alpha*v", ""));
TABLE(mul, NUMBERS("mul", "u*v", ""), LOGIC("and", "is_true(u)&is_true(v)"));
TABLE(div, FLOATS("div", "u/v", ""),
      PAIR("div_i32", "vec4<f32>(u)/vec4<f32>(v)", OF_I32, "use=quad_i32 use=binary_ratio"));
TABLE(floor, NUMBERS("floor_div", "floor_div(u,v)", " use=binary_quotient"));
TABLE(trunc, NUMBERS("trunc_div", "trunc_div(u,v)", " use=binary_quotient"));
TABLE(min, NUMBERS("min", "least(u,v)", ""));
TABLE(max, NUMBERS("max", "largest(u,v)", ""));
TABLE(pow, NUMBERS("pow", "power(u,v)", " use=power"));
TABLE(eq, COMPARISON("eq", "u==v"));
TABLE(ne, COMPARISON("ne", "!(u==v)"));
TABLE(lt, COMPARISON("lt", "u<v"));
TABLE(le, COMPARISON("le", "u<=v"));
TABLE(gt, COMPARISON("gt", "u>v"));
TABLE(ge, COMPARISON("ge", "u>=v"));
/* Any dtype: what is not zero is true. */
TABLE(and, COMPARISON("and", "is_true(u)&is_true(v)"));
TABLE(or, COMPARISON("or", "is_true(u)|is_true(v)"));
TABLE(xor, COMPARISON("xor", "is_true(u)!=is_true(v)"));

#define BITS(NAME, RESULT) PAIR(NAME "_i32", RESULT, OF_I32, "use=quad_i32 use=binary_int")
TABLE(bit_and, BITS("bit_and", "u&v"), LOGIC("and", "is_true(u)&is_true(v)"));
TABLE(bit_or, BITS("bit_or", "u|v"), LOGIC("or", "is_true(u)|is_true(v)"));
TABLE(bit_xor, BITS("bit_xor", "u^v"), LOGIC("xor", "is_true(u)!=is_true(v)"));
TABLE(left_shift, BITS("left_shift", "left_shift(u,v)"));
TABLE(right_shift, BITS("right_shift", "right_shift(u,v)"));
TABLE(rsub, NUMBERS("rsub", "v-alpha*u", ""));
TABLE(fmod, NUMBERS("fmod", "fmod(u,v)", " use=binary_quotient use=binary_remainder"));
TABLE(remainder, NUMBERS("remainder", "modulo(u,v)", " use=binary_quotient use=binary_remainder"));
TABLE(atan2, FLOATS("atan2", "angle(u,v)", " use=binary_angle"),
      PAIR("atan2_i32", "angle(vec4<f32>(u),vec4<f32>(v))", OF_I32,
           "use=quad_i32 use=binary_ratio use=binary_angle use=not_a_number"));

static sconce_status shape(struct plan *p, const struct node *n) {
  const struct tensor *x[2];
  TRY(arg_tensors(p, n, 0, 2, x));
  uint32_t dims[RANK_MAX], rank;
  TRY(broadcast_dims(p, x, 2, dims, &rank));
  return set_dims(p, out_id(n), dims, rank);
}

/* Turns the innermost loop into one over quads if both operands allow it. */
static bool to_quads(struct nest *nest, uint32_t *stays) {
  uint32_t last = nest->rank - 1;
  if (nest->rank > 1 && nest->size[last] % 4) return false; /* a quad would cross two rows */
  for (uint32_t k = 0; k < 2; k++) {
    if (nest->stride[k][last] > 1) return false;
    *stays |= nest->stride[k][last] ? 0 : 1u << k;
  }
  for (uint32_t k = 0; k < 2; k++)
    for (uint32_t i = 0; i < last && !(*stays >> k & 1); i++) nest->stride[k][i] /= 4;
  nest->size[last] = (uint32_t)div_up(nest->size[last], 4);
  return true;
}

static sconce_status element_bits(struct plan *p, const struct node *n, uint32_t i,
                                  enum vk_dtype dtype, uint32_t *bits) {
  if (dtype == VK_INT32) {
    int64_t number;
    TRY(arg_int(p, n, i, &number));
    *bits = (uint32_t)number;
    return SCONCE_OK;
  }
  double number;
  TRY(arg_float(p, n, i, &number));
  *bits = number_bits(dtype, number);
  return SCONCE_OK;
}

/* One dispatch, or several over ranges where the tensors exceed a binding and run in step. */
static sconce_status dispatch_parts(struct plan *p, const struct node *n, const struct kernel *row,
                                    struct binary_params *u) {
  const struct tensor *y = tensor_at(p, out_id(n));
  uint64_t numel = u->n, part = numel;
  if (u->rank == 1) part = flat_part(p, tensor_numel_max(y), 4);
  if (part == 0 || part > numel) part = numel;
  for (uint64_t at = 0; at < numel; at += part) {
    u->n = (uint32_t)(numel - at < part ? numel - at : part);
    struct operand operands[3];
    for (uint32_t k = 0; k < 3; k++) {
      uint32_t id = k < 2 ? arg_id(n, k) : out_id(n);
      bool whole = part == numel || u->stays >> k & 1;
      operands[k] = whole ? (struct operand){id, 0, 0} : flat_operand(p, id, at, part);
    }
    TRY(dispatch(p, row, u, div_up(u->n, 256), operands));
  }
  return SCONCE_OK;
}

/* Of the operator's tables, or of its results where the tables do not say. */
enum { PLAIN, WITH_ALPHA, COMPARES }; /* PLAIN: what the kernels give */

static enum vk_dtype result_of(const struct kernel *table, uint32_t code, enum vk_dtype of) {
  if (code == COMPARES) return VK_BOOL;
  return (table == div_kernels || table == atan2_kernels) && of == VK_INT32 ? VK_FLOAT32 : of;
}

static sconce_status emit_from(struct plan *p, const struct node *n, const struct kernel *table) {
  const struct tensor *a, *b;
  TRY(arg_tensor(p, n, 0, &a));
  TRY(arg_tensor(p, n, 1, &b));
  const struct tensor *y = out_tensor(p, n);
  char one[120], two[120];
  if (a->dtype != b->dtype)
    return fail(p->err, SCONCE_UNSUPPORTED, "operands are %s and %s, expected one dtype",
                tensor_text(a, one), tensor_text(b, two));
  struct nest nest = {.rank = y->rank, .n_operands = 2};
  memcpy(nest.size, y->dim_live, y->rank * sizeof *nest.size);
  nest_broadcast(&nest, 0, a);
  nest_broadcast(&nest, 1, b);
  nest_merge(&nest);
  struct binary_params u = {.n = (uint32_t)tensor_numel(y)};
  if (n->op->code == WITH_ALPHA) TRY(element_bits(p, n, 2, a->dtype, &u.alpha));
  struct nest quads = nest;
  const bool in_quads = to_quads(&quads, &u.stays);
  const struct kernel *row = row_for(p, n, table, a->dtype, &in_quads);
  if (!row || y->dtype != result_of(table, n->op->code, a->dtype))
    return fail(p->err, SCONCE_UNSUPPORTED, "%s and %s", tensor_text(a, one), tensor_text(y, two));
  const struct nest *loops = row->tile[0] == 4 ? &quads : &nest;
  u.rank = loops->rank;
  memcpy(u.dims, loops->size, sizeof u.dims);
  memcpy(u.stride_a, loops->stride[0], sizeof u.stride_a);
  memcpy(u.stride_b, loops->stride[1], sizeof u.stride_b);
  return dispatch_parts(p, n, row, &u);
}

/* [a, b, out], or [a, b, alpha, out] */
static sconce_status emit(struct plan *p, const struct node *n) {
  return emit_from(p, n, n->op->tables[0]);
}

/* [a, b, rounding mode, out] */
static sconce_status emit_div(struct plan *p, const struct node *n) {
  if (arg_is_null(p, n, 2)) return emit_from(p, n, div_kernels);
  if (arg_is_text(p, n, 2, "floor")) return emit_from(p, n, floor_kernels);
  if (arg_is_text(p, n, 2, "trunc")) return emit_from(p, n, trunc_kernels);
  return fail(p->err, SCONCE_UNSUPPORTED, "the rounding mode is neither floor nor trunc");
}

/* The number comes first: [number, tensor, …, out] reads as any other pair. */
#define PAIR_FLAGS (OP_NUMBERS | OP_PROMOTES)
#define OF_TWO(NAME, PORTABLE, TABLE)                                                              \
  {NAME, shape, emit, .also = PORTABLE, .n_args = 3, .flags = PAIR_FLAGS, .tables = TABLES(TABLE)}
#define COMPARED(NAME, PORTABLE, TABLE)                                                            \
  {NAME,                                                                                           \
   shape,                                                                                          \
   emit,                                                                                           \
   .also = PORTABLE,                                                                               \
   .n_args = 3,                                                                                    \
   .code = COMPARES,                                                                               \
   .flags = PAIR_FLAGS | OP_COMPARES,                                                              \
   .tables = TABLES(TABLE)}
#define SCALED(NAME, PORTABLE, TABLE)                                                              \
  {NAME,                                                                                           \
   shape,                                                                                          \
   emit,                                                                                           \
   .also = PORTABLE,                                                                               \
   .n_args = 4,                                                                                    \
   .code = WITH_ALPHA,                                                                             \
   .flags = PAIR_FLAGS,                                                                            \
   .tables = TABLES(TABLE)}
#define DIVIDED(NAME, PORTABLE, N_ARGS, EMIT, ...)                                                 \
  {NAME,                                                                                           \
   shape,                                                                                          \
   EMIT,                                                                                           \
   .also = PORTABLE,                                                                               \
   .n_args = N_ARGS,                                                                               \
   .flags = PAIR_FLAGS | OP_DIVIDES,                                                               \
   .tables = TABLES(__VA_ARGS__)}

const struct op ops_binary[] = {
    SCALED("aten.add.Tensor", "aten::add.out", add_kernels),
    SCALED("aten.add.Scalar", "aten::add.Scalar_out", add_kernels),
    SCALED("aten.sub.Tensor", "aten::sub.out", sub_kernels),
    SCALED("aten.sub.Scalar", "aten::sub.Scalar_out", sub_kernels),
    SCALED("aten.rsub.Scalar", "aten::rsub.Scalar_out", rsub_kernels),
    OF_TWO("aten.mul.Tensor", "aten::mul.out", mul_kernels),
    OF_TWO("aten.mul.Scalar", "aten::mul.Scalar_out", mul_kernels),
    DIVIDED("aten.div.Tensor", "aten::div.out", 3, emit, div_kernels),
    DIVIDED("aten.div.Scalar", "aten::div.Scalar_out", 3, emit, div_kernels),
    DIVIDED("aten.div.Tensor_mode", "aten::div.out_mode", 4, emit_div, div_kernels, floor_kernels,
            trunc_kernels),
    DIVIDED("aten.div.Scalar_mode", "aten::div.Scalar_mode_out", 4, emit_div, div_kernels,
            floor_kernels, trunc_kernels),
    OF_TWO("aten.floor_divide.default", "aten::floor_divide.out", floor_kernels),
    OF_TWO("aten.remainder.Tensor", "aten::remainder.Tensor_out", remainder_kernels),
    OF_TWO("aten.remainder.Scalar", "aten::remainder.Scalar_out", remainder_kernels),
    OF_TWO("aten.fmod.Tensor", "aten::fmod.Tensor_out", fmod_kernels),
    OF_TWO("aten.fmod.Scalar", "aten::fmod.Scalar_out", fmod_kernels),
    DIVIDED("aten.atan2.default", "aten::atan2.out", 3, emit, atan2_kernels),
    OF_TWO("aten.minimum.default", "aten::minimum.out", min_kernels),
    OF_TWO("aten.maximum.default", "aten::maximum.out", max_kernels),
    OF_TWO("aten.pow.Tensor_Tensor", "aten::pow.Tensor_Tensor_out", pow_kernels),
    OF_TWO("aten.pow.Scalar", "aten::pow.Scalar_out", pow_kernels),
    COMPARED("aten.eq.Tensor", "aten::eq.Tensor_out", eq_kernels),
    COMPARED("aten.ne.Tensor", "aten::ne.Tensor_out", ne_kernels),
    COMPARED("aten.lt.Tensor", "aten::lt.Tensor_out", lt_kernels),
    COMPARED("aten.le.Tensor", "aten::le.Tensor_out", le_kernels),
    COMPARED("aten.gt.Tensor", "aten::gt.Tensor_out", gt_kernels),
    COMPARED("aten.ge.Tensor", "aten::ge.Tensor_out", ge_kernels),
    COMPARED("aten.logical_and.default", "aten::logical_and.out", and_kernels),
    COMPARED("aten.logical_or.default", "aten::logical_or.out", or_kernels),
    COMPARED("aten.logical_xor.default", "aten::logical_xor.out", xor_kernels),
    OF_TWO("aten.bitwise_and.Tensor", "aten::bitwise_and.Tensor_out", bit_and_kernels),
    OF_TWO("aten.bitwise_and.Scalar", "aten::bitwise_and.Scalar_out", bit_and_kernels),
    OF_TWO("aten.bitwise_or.Tensor", "aten::bitwise_or.Tensor_out", bit_or_kernels),
    OF_TWO("aten.bitwise_or.Scalar", "aten::bitwise_or.Scalar_out", bit_or_kernels),
    OF_TWO("aten.bitwise_xor.Tensor", "aten::bitwise_xor.Tensor_out", bit_xor_kernels),
    OF_TWO("aten.bitwise_xor.Scalar", "aten::bitwise_xor.Scalar_out", bit_xor_kernels),
    OF_TWO("aten.bitwise_left_shift.Tensor",
           "aten::bitwise_left_shift.Tensor_out aten.__lshift__.Tensor aten::__lshift__.Tensor_out",
           left_shift_kernels),
    OF_TWO("aten.bitwise_left_shift.Tensor_Scalar",
           "aten::bitwise_left_shift.Tensor_Scalar_out aten.__lshift__.Scalar "
           "aten::__lshift__.Scalar_out",
           left_shift_kernels),
    OF_TWO(
        "aten.bitwise_right_shift.Tensor",
        "aten::bitwise_right_shift.Tensor_out aten.__rshift__.Tensor aten::__rshift__.Tensor_out",
        right_shift_kernels),
    OF_TWO("aten.bitwise_right_shift.Tensor_Scalar",
           "aten::bitwise_right_shift.Tensor_Scalar_out aten.__rshift__.Scalar "
           "aten::__rshift__.Scalar_out",
           right_shift_kernels),
    {0},
};
