/* Elementwise operators of one tensor. A new one is a row at the end of this file and a row of the
 * test; what its expression calls and WGSL has not is a function in unary_float.wgsl. */
#include "ops/strides/strides.h"

#include "unary.wgsl.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* An operation is an expression in WGSL, without blanks: of x and of the numbers a, b and c. */
#define ROW(NAME, RESULT, DTYPE, USES) {NAME, &unary_wgsl, "result=" RESULT " " USES, DTYPE}
#define FLOAT_ROWS(NAME, RESULT, USES)                                                             \
  ROW(NAME "_f32", RESULT, OF_F32,                                                                 \
      "use=quad_f32 use=unary_float use=activations use=not_a_number" USES),                       \
      ROW(NAME "_f16", RESULT, OF_F16,                                                             \
          "use=quad_f16 use=unary_float use=activations use=not_a_number" USES)
#define INT_ROW(NAME, RESULT) ROW(NAME "_i32", RESULT, OF_I32, "use=quad_i32 use=unary_int")
/* Tables: a literal outside functions lives as long as the program. */
#define FLOATS(NAME, RESULT) ((const struct kernel[]){FLOAT_ROWS(NAME, RESULT, ""), {0}})
/* Where a device's function makes a number of what is none, as SwiftShader's exp and log do. */
#define PASSING(NAME, RESULT) FLOATS(NAME, "select(" RESULT ",x,is_nan(x))")
#define NUMBERS(NAME, RESULT)                                                                      \
  ((const struct kernel[]){FLOAT_ROWS(NAME, RESULT, ""), INT_ROW(NAME, RESULT), {0}})
/* Of integers nothing is left to round. */
#define ROUNDED(NAME, RESULT)                                                                      \
  ((const struct kernel[]){FLOAT_ROWS(NAME, RESULT, ""), INT_ROW("same", "x"), {0}})
#define POWERS(NAME, RESULT)                                                                       \
  ((const struct kernel[]){                                                                        \
      FLOAT_ROWS(NAME, RESULT, " use=unary_power use=power"), INT_ROW(NAME, RESULT), {0}})
#define ANGLES(NAME, RESULT)                                                                       \
  ((const struct kernel[]){FLOAT_ROWS(NAME, RESULT, " use=unary_angle"), {0}})
#define COMPARES(NAME, RESULT)                                                                     \
  ((const struct kernel[]){ROW(NAME "_f32", RESULT, OF_F32, "use=quad_f32 use=unary_compare"),     \
                           ROW(NAME "_f16", RESULT, OF_F16, "use=quad_f16 use=unary_compare"),     \
                           ROW(NAME "_i32", RESULT, OF_I32, "use=quad_i32 use=unary_compare"),     \
                           ROW(NAME "_bool", RESULT, OF_BOOL, "use=quad_u8 use=unary_compare"),    \
                           {0}})
#define KINDS(NAME, RESULT)                                                                        \
  ((const struct kernel[]){                                                                        \
      ROW(NAME "_f32", RESULT, OF_F32, "use=quad_f32 use=unary_compare use=not_a_number"),         \
      ROW(NAME "_f16", RESULT, OF_F16, "use=quad_f16 use=unary_compare use=not_a_number"),         \
      ROW("never_i32", "x<x", OF_I32, "use=quad_i32 use=unary_compare"),                           \
      ROW("never_bool", "x<x", OF_BOOL, "use=quad_u8 use=unary_compare"),                          \
      {0}})
#define BITS(NAME, RESULT)                                                                         \
  ((const struct kernel[]){INT_ROW(NAME, RESULT),                                                  \
                           ROW("eq_bool", "x==a", OF_BOOL, "use=quad_u8 use=unary_compare"),       \
                           {0}})

/* ---- numbers --------------------------------------------------------------------------------- */

/* A number as an element of x: of an integer tensor only an integer, cut to 32 bits. */
static sconce_status number(struct plan *p, const struct node *n, uint32_t i, double absent,
                            uint32_t *bits) {
  const struct tensor *x;
  double d;
  TRY(arg_tensor(p, n, 0, &x));
  TRY(arg_float_or(p, n, i, absent, &d));
  if (tensor_is_float(x)) {
    *bits = number_bits(x->dtype, d);
    return SCONCE_OK;
  }
  d = d > INT32_MAX ? INT32_MAX : d < INT32_MIN ? INT32_MIN : d;
  if (floor(d) != d)
    return fail(p->err, SCONCE_UNSUPPORTED, "argument %u is %g for a tensor of %s", i, d,
                vk_dtype_name(x->dtype));
  *bits = (uint32_t)(int32_t)d;
  return SCONCE_OK;
}

/* What an operator has between its tensor and its output, and what it makes. */
enum { PLAIN, WITH_NUMBERS, RANGE, MARGIN, DECIMALS, COMPARISON, NEGATION };

static bool makes_bool(const struct op *op) {
  return op->code == COMPARISON || op->code == NEGATION;
}

/* The power of ten, and whether places before the point are meant. */
static sconce_status decimals(struct plan *p, const struct node *n, struct unary_params *u) {
  int64_t places;
  TRY(arg_int(p, n, 1, &places));
  const float ten = (float)pow(10, fabs((double)places)), before = places < 0 ? 1.0f : 0.0f;
  if (!isfinite(ten))
    return fail(p->err, SCONCE_UNSUPPORTED, "%" PRId64 " decimals of a float32", places);
  memcpy(&u->a, &ten, 4);
  memcpy(&u->b, &before, 4);
  return SCONCE_OK;
}

static sconce_status numbers(struct plan *p, const struct node *n, struct unary_params *u) {
  uint32_t *const to[] = {&u->a, &u->b, &u->c};
  switch (n->op->code) {
  case RANGE:
    TRY(number(p, n, 1, -INFINITY, &u->a));
    return number(p, n, 2, INFINITY, &u->b);
  case MARGIN: /* a negative one stands for none */
    return number(p, n, 1, -1, &u->a);
  case DECIMALS:
    return decimals(p, n, u);
  case WITH_NUMBERS:
  case COMPARISON:
    for (uint32_t i = 0; i < 3 && i + 2 < n->n_args; i++) TRY(number(p, n, i + 1, 0, to[i]));
    return SCONCE_OK;
  default:
    return SCONCE_OK;
  }
}

/* ---- shape and emit -------------------------------------------------------------------------- */

static sconce_status emit_from(struct plan *p, const struct node *n, const struct kernel *table) {
  const struct tensor *x, *y = out_tensor(p, n);
  TRY(arg_tensor(p, n, 0, &x));
  struct unary_params u = {0};
  TRY(numbers(p, n, &u));
  const struct kernel *row = row_for(p, n, table, x->dtype, NULL);
  if (!row || y->dtype != (makes_bool(n->op) ? VK_BOOL : x->dtype))
    return fail(p->err, SCONCE_UNSUPPORTED, "%s to %s", vk_dtype_name(x->dtype),
                vk_dtype_name(y->dtype));
  uint64_t numel = tensor_numel(y), part = flat_part(p, tensor_numel_max(y), 4);
  if (part == 0) part = numel;
  for (uint64_t at = 0; at < numel; at += part) {
    u.n = (uint32_t)(numel - at < part ? numel - at : part);
    TRY(dispatch(
        p, row, &u, div_up(u.n, 256),
        OPERANDS(flat_operand(p, arg_id(n, 0), at, part), flat_operand(p, out_id(n), at, part))));
  }
  return SCONCE_OK;
}

static sconce_status emit(struct plan *p, const struct node *n) {
  return emit_from(p, n, n->op->tables[0]);
}

/* [x, approximate, out] */
static sconce_status emit_gelu(struct plan *p, const struct node *n) {
  if (arg_is_text(p, n, 1, "none")) return emit_from(p, n, n->op->tables[0]);
  if (arg_is_text(p, n, 1, "tanh")) return emit_from(p, n, n->op->tables[1]);
  return fail(p->err, SCONCE_UNSUPPORTED, "the approximation is neither none nor tanh");
}

#define UNARY(NAME, PORTABLE, CODE, N_ARGS, TABLE)                                                 \
  {NAME,                                                                                           \
   shape_same,                                                                                     \
   emit,                                                                                           \
   .also = PORTABLE,                                                                               \
   .code = CODE,                                                                                   \
   .n_args = N_ARGS,                                                                               \
   .flags = OP_FOLLOWS | ((CODE) >= COMPARISON ? OP_COMPARES : 0),                                 \
   .tables = TABLES(TABLE)}
#define OF_ONE(NAME, PORTABLE, TABLE) UNARY(NAME, PORTABLE, PLAIN, 2, TABLE)
#define WITH_ONE(NAME, PORTABLE, TABLE) UNARY(NAME, PORTABLE, WITH_NUMBERS, 3, TABLE)
#define WITH_RANGE(NAME, PORTABLE, TABLE) UNARY(NAME, PORTABLE, RANGE, 4, TABLE)
#define COMPARED(NAME, PORTABLE, TABLE) UNARY(NAME, PORTABLE, COMPARISON, 3, TABLE)
#define NEGATED(NAME, PORTABLE, TABLE) UNARY(NAME, PORTABLE, NEGATION, 2, TABLE)

const struct op ops_unary[] = {
    OF_ONE("aten.sigmoid.default", "aten::sigmoid.out", PASSING("sigmoid", "sigmoid(x)")),
    OF_ONE("aten.abs.default", "aten::abs.out", NUMBERS("abs", "abs(x)")),
    OF_ONE("aten.exp.default", "aten::exp.out", PASSING("exp", "exp(x)")),
    OF_ONE("aten.exp2.default", "aten::exp2.out", PASSING("exp2", "exp2(x)")),
    OF_ONE("aten.sqrt.default", "aten::sqrt.out", FLOATS("sqrt", "sqrt(x)")),
    OF_ONE("aten.rsqrt.default", "aten::rsqrt.out", FLOATS("rsqrt", "inverseSqrt(x)")),
    OF_ONE("aten.sin.default", "aten::sin.out", ANGLES("sin", "sin(small(x))")),
    OF_ONE("aten.cos.default", "aten::cos.out", ANGLES("cos", "cos(small(x))")),
    OF_ONE("aten.tanh.default", "aten::tanh.out", FLOATS("tanh", "tangent(x)")),
    /* ties to even */
    OF_ONE("aten.round.default", "aten::round.out", ROUNDED("round", "round(x)")),
    UNARY("aten.round.decimals", "aten::round.decimals_out", DECIMALS, 3,
          FLOATS("decimals", "rounded(x,a,b>zero)")),
    OF_ONE("aten.neg.default", "aten::neg.out", NUMBERS("neg", "-x")),
    OF_ONE("aten.hardswish.default", NULL, FLOATS("hardswish", "hardswish(x)")),
    WITH_RANGE("aten.clamp.default", "aten::clamp.out", NUMBERS("clamp", "clamped(x,a,b)")),
    WITH_RANGE("aten.hardtanh.default", "aten::hardtanh.out", NUMBERS("clamp", "clamped(x,a,b)")),
    WITH_ONE("aten.pow.Tensor_Scalar", "aten::pow.Tensor_Scalar_out", POWERS("pow", "to_the(x,a)")),
    OF_ONE("aten.relu.default", "aten::relu.out", NUMBERS("relu", "relu(x)")),
    {"aten.gelu.default", shape_same, emit_gelu, .also = "aten::gelu.out", .n_args = 3,
     .flags = OP_FOLLOWS,
     .tables = TABLES(FLOATS("gelu", "gelu(x)"), FLOATS("gelu_tanh", "gelu_tanh(x)"))},
    WITH_ONE("aten.leaky_relu.default", "aten::leaky_relu.out",
             FLOATS("leaky_relu", "select(a*x,x,x>zero)")),
    /* alpha, scale, input_scale */
    UNARY("aten.elu.default", "aten::elu.out", WITH_NUMBERS, 5,
          PASSING("elu", "b*select(a*exp_less_one(c*x),x,x>zero)")),
    OF_ONE("aten.log.default", "aten::log.out", PASSING("log", "logarithm(x)")),
    OF_ONE("aten.log2.default", "aten::log2.out", PASSING("log2", "logarithm(x)*1.442695")),
    OF_ONE("aten.log1p.default", "aten::log1p.out",
           PASSING("log1p", "select(log_of_one_more(x),not_a_number(),x<vec4<f32>(-1.0))")),
    OF_ONE("aten.expm1.default", "aten::expm1.out", PASSING("expm1", "exp_less_one(x)")),
    OF_ONE("aten.sign.default", "aten::sign.out", NUMBERS("sign", "signum(x)")),
    OF_ONE("aten.sinh.default", "aten::sinh.out", FLOATS("sinh", "hyperbolic_sine(x)")),
    OF_ONE("aten.cosh.default", "aten::cosh.out", PASSING("cosh", "cosh(x)")),
    OF_ONE("aten.asin.default", "aten::asin.out", FLOATS("asin", "arc_sine(x)")),
    OF_ONE("aten.acos.default", "aten::acos.out", FLOATS("acos", "arc_cosine(x)")),
    OF_ONE("aten.atan.default", "aten::atan.out", FLOATS("atan", "arc_tangent(x)")),
    OF_ONE("aten.asinh.default", "aten::asinh.out", FLOATS("asinh", "area_sine(x)")),
    OF_ONE("aten.acosh.default", "aten::acosh.out", FLOATS("acosh", "area_cosine(x)")),
    OF_ONE("aten.atanh.default", "aten::atanh.out", FLOATS("atanh", "area_tangent(x)")),
    OF_ONE("aten.erf.default", "aten::erf.out", FLOATS("erf", "erf(x)")),
    OF_ONE("aten.log10.default", "aten::log10.out", PASSING("log10", "logarithm(x)*0.4342945")),
    WITH_ONE("aten.hardshrink.default", NULL, FLOATS("hardshrink", "select(x,zero,abs(x)<=a)")),
    OF_ONE("aten.hardsigmoid.default", NULL, FLOATS("hardsigmoid", "hardsigmoid(x)")),
    OF_ONE("aten.tan.default", "aten::tan.out", ANGLES("tan", "tan(small(x))")),
    OF_ONE("aten.floor.default", "aten::floor.out", ROUNDED("floor", "floor(x)")),
    OF_ONE("aten.ceil.default", "aten::ceil.out", ROUNDED("ceil", "ceil(x)")),
    OF_ONE("aten.trunc.default", "aten::trunc.out", ROUNDED("trunc", "trunc(x)")),
    OF_ONE("aten.reciprocal.default", "aten::reciprocal.out", FLOATS("reciprocal", "1.0/x")),
    OF_ONE("aten.silu.default", NULL, FLOATS("silu", "x*sigmoid(x)")),
    COMPARED("aten.eq.Scalar", "aten::eq.Scalar_out", COMPARES("eq", "x==a")),
    COMPARED("aten.ne.Scalar", "aten::ne.Scalar_out", COMPARES("ne", "!(x==a)")),
    COMPARED("aten.lt.Scalar", "aten::lt.Scalar_out", COMPARES("lt", "x<a")),
    COMPARED("aten.le.Scalar", "aten::le.Scalar_out", COMPARES("le", "x<=a")),
    COMPARED("aten.gt.Scalar", "aten::gt.Scalar_out", COMPARES("gt", "x>a")),
    COMPARED("aten.ge.Scalar", "aten::ge.Scalar_out", COMPARES("ge", "x>=a")),
    /* not x: x == 0, the number that params start with */
    NEGATED("aten.logical_not.default", "aten::logical_not.out", COMPARES("eq", "x==a")),
    OF_ONE("aten.bitwise_not.default", "aten::bitwise_not.out", BITS("not", "~x")),
    NEGATED("aten.isnan.default", "aten::isnan.out", KINDS("isnan", "is_nan(x)")),
    NEGATED("aten.isinf.default", "aten::isinf.out", KINDS("isinf", "is_infinite(x)")),
    UNARY("aten.logit.default", "aten::logit.out", MARGIN, 3, FLOATS("logit", "logit(x,a)")),
    {0},
};
