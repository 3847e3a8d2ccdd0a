/* Elementwise operators of one tensor: a new activation is one row here, one case in the library of
 * operations and one oracle in the test. */
#include "ops/strides/strides.h"

#include "unary.wgsl.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct problem {
  enum vk_dtype from, to;
};

#define FITS(NAME, FROM, TO)                                                                       \
  static bool NAME(const void *problem, const struct caps *caps) {                                 \
    (void)caps;                                                                                    \
    const struct problem *q = problem;                                                             \
    return q->from == (FROM) && q->to == (TO);                                                     \
  }
FITS(f32, VK_FLOAT32, VK_FLOAT32)
FITS(f16, VK_FLOAT16, VK_FLOAT16)
FITS(i32, VK_INT32, VK_INT32)
FITS(f32_to_bool, VK_FLOAT32, VK_BOOL)
FITS(f16_to_bool, VK_FLOAT16, VK_BOOL)
FITS(i32_to_bool, VK_INT32, VK_BOOL)
FITS(bool_to_bool, VK_BOOL, VK_BOOL)

#define ROW(NAME, OP, FITS, USES) {NAME, &unary_wgsl, "OP=" OP " " USES, .fits = FITS}
#define FLOAT_ROWS(NAME, OP, USES)                                                                 \
  ROW(NAME "_f32", OP, f32, "use=quad_f32 use=not_a_number " USES),                                \
      ROW(NAME "_f16", OP, f16, "use=quad_f16 use=not_a_number " USES)
#define INT_ROW(NAME, OP) ROW(NAME "_i32", OP, i32, "use=quad_i32 use=unary_int")
/* Tables: a literal outside functions lives as long as the program. */
#define FLOATS(NAME, OP) ((const struct kernel[]){FLOAT_ROWS(NAME, OP, "use=unary_float"), {0}})
#define NUMBERS(NAME, OP)                                                                          \
  ((const struct kernel[]){FLOAT_ROWS(NAME, OP, "use=unary_float"), INT_ROW(NAME, OP), {0}})
#define POWERS(NAME, OP)                                                                           \
  ((const struct kernel[]){                                                                        \
      FLOAT_ROWS(NAME, OP, "use=unary_power use=power"), INT_ROW(NAME, OP), {0}})
#define COMPARES(NAME, OP)                                                                         \
  ((const struct kernel[]){ROW(NAME "_f32", OP, f32_to_bool, "use=quad_f32 use=unary_compare"),    \
                           ROW(NAME "_f16", OP, f16_to_bool, "use=quad_f16 use=unary_compare"),    \
                           ROW(NAME "_i32", OP, i32_to_bool, "use=quad_i32 use=unary_compare"),    \
                           ROW(NAME "_bool", OP, bool_to_bool, "use=quad_u8 use=unary_compare"),   \
                           {0}})

/* ---- numbers --------------------------------------------------------------------------------- */

static uint32_t float_bits(double number) {
  float rounded = (float)number;
  uint32_t bits;
  memcpy(&bits, &rounded, sizeof bits);
  return bits;
}

static bool is_float(const struct tensor *x) {
  return x->dtype == VK_FLOAT32 || x->dtype == VK_FLOAT16;
}

/* A number as an element of x: of an integer tensor only an integer, cut to 32 bits. */
static sconce_status number(struct plan *p, const struct node *n, uint32_t i, double absent,
                            uint32_t *bits) {
  const struct tensor *x = arg_tensor(p, n, 0);
  double d;
  TRY(arg_float_or(p, n, i, absent, &d));
  if (is_float(x)) {
    *bits = float_bits(d);
    return SCONCE_OK;
  }
  d = d > INT32_MAX ? INT32_MAX : d < INT32_MIN ? INT32_MIN : d;
  if (floor(d) != d)
    return fail(p->err, SCONCE_UNSUPPORTED, "argument %u is %g for a tensor of %s", i, d,
                vk_dtype_name(x->dtype));
  *bits = (uint32_t)(int32_t)d;
  return SCONCE_OK;
}

/* What an operator has between its tensor and its output. */
enum { NO_NUMBER, ONE_NUMBER, RANGE };

static sconce_status numbers(struct plan *p, const struct node *n, struct unary_params *u) {
  switch (n->op->variant) {
  case RANGE:
    TRY(number(p, n, 1, -INFINITY, &u->a));
    return number(p, n, 2, INFINITY, &u->b);
  case ONE_NUMBER:
    return number(p, n, 1, 0, &u->a);
  default:
    return SCONCE_OK;
  }
}

/* ---- shape and emit -------------------------------------------------------------------------- */

static sconce_status emit_from(struct plan *p, const struct node *n, const struct kernel *kernels) {
  const struct tensor *x = arg_tensor(p, n, 0), *y = arg_tensor(p, n, n->n_args - 1);
  if (!x || !y) return SCONCE_BAD_GRAPH;
  struct unary_params u = {0};
  TRY(numbers(p, n, &u));
  const struct kernel *row = choose(p, kernels, &(struct problem){x->dtype, y->dtype});
  if (!row)
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
  return emit_from(p, n, n->op->kernels[0]);
}

/* [x, approximate, out] */
static sconce_status emit_gelu(struct plan *p, const struct node *n) {
  if (arg_text_is(p, n, 1, "none")) return emit_from(p, n, n->op->kernels[0]);
  if (arg_text_is(p, n, 1, "tanh")) return emit_from(p, n, n->op->kernels[1]);
  return fail(p->err, SCONCE_UNSUPPORTED, "the approximation is neither none nor tanh");
}

#define OF_ONE(NAME, KERNELS)                                                                      \
  {                                                                                                \
    NAME, shape_same, emit, .n_args = 2, .kernels = { KERNELS }                                    \
  }
#define WITH_NUMBER(NAME, KERNELS)                                                                 \
  {                                                                                                \
    NAME, shape_same, emit, .variant = ONE_NUMBER, .n_args = 3, .kernels = { KERNELS }             \
  }
#define WITH_RANGE(NAME, KERNELS)                                                                  \
  {                                                                                                \
    NAME, shape_same, emit, .variant = RANGE, .n_args = 4, .kernels = { KERNELS }                  \
  }

const struct op ops_unary[] = {
    OF_ONE("aten.sigmoid.default", FLOATS("sigmoid", "0u")),
    OF_ONE("aten.abs.default", NUMBERS("abs", "1u")),
    OF_ONE("aten.exp.default", FLOATS("exp", "2u")),
    OF_ONE("aten.sqrt.default", FLOATS("sqrt", "3u")),
    OF_ONE("aten.rsqrt.default", FLOATS("rsqrt", "4u")),
    OF_ONE("aten.sin.default", FLOATS("sin", "5u")),
    OF_ONE("aten.cos.default", FLOATS("cos", "6u")),
    OF_ONE("aten.tanh.default", FLOATS("tanh", "7u")),
    OF_ONE("aten.round.default", FLOATS("round", "8u")),
    OF_ONE("aten.neg.default", NUMBERS("neg", "9u")),
    OF_ONE("aten.hardswish.default", FLOATS("hardswish", "10u")),
    WITH_RANGE("aten.clamp.default", NUMBERS("clamp", "11u")),
    WITH_RANGE("aten.hardtanh.default", NUMBERS("clamp", "11u")),
    WITH_NUMBER("aten.pow.Tensor_Scalar", POWERS("pow", "12u")),
    OF_ONE("aten.relu.default", NUMBERS("relu", "13u")),
    {"aten.gelu.default", shape_same, emit_gelu, .n_args = 3,
     .kernels = {FLOATS("gelu", "14u"), FLOATS("gelu_tanh", "15u")}},
    WITH_NUMBER("aten.leaky_relu.default", FLOATS("leaky_relu", "16u")),
    OF_ONE("aten.log.default", FLOATS("log", "17u")),
    OF_ONE("aten.log10.default", FLOATS("log10", "18u")),
    WITH_NUMBER("aten.hardshrink.default", FLOATS("hardshrink", "19u")),
    OF_ONE("aten.hardsigmoid.default", FLOATS("hardsigmoid", "20u")),
    OF_ONE("aten.tan.default", FLOATS("tan", "21u")),
    OF_ONE("aten.floor.default", FLOATS("floor", "22u")),
    OF_ONE("aten.ceil.default", FLOATS("ceil", "23u")),
    OF_ONE("aten.trunc.default", FLOATS("trunc", "24u")),
    OF_ONE("aten.reciprocal.default", FLOATS("reciprocal", "25u")),
    OF_ONE("aten.silu.default", FLOATS("silu", "26u")),
    WITH_NUMBER("aten.eq.Scalar", COMPARES("eq", "0u")),
    WITH_NUMBER("aten.ne.Scalar", COMPARES("ne", "1u")),
    WITH_NUMBER("aten.lt.Scalar", COMPARES("lt", "2u")),
    WITH_NUMBER("aten.le.Scalar", COMPARES("le", "3u")),
    WITH_NUMBER("aten.gt.Scalar", COMPARES("gt", "4u")),
    WITH_NUMBER("aten.ge.Scalar", COMPARES("ge", "5u")),
    /* not x: x == 0, the number that params start with */
    OF_ONE("aten.logical_not.default", COMPARES("eq", "0u")),
    OF_ONE("aten.bitwise_not.default", COMPARES("eq", "0u")),
    {0},
};
