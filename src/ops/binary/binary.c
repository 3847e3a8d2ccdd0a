/* Elementwise operators of two tensors with broadcasting: {operation} × {elements} × {layout}. */
#include "ops/strides/strides.h"

#include "binary.wgsl.h"

#include <math.h>
#include <string.h>

/* What the predicates of the tables agree on. */
struct problem {
  enum vk_dtype from, to;
  bool quads; /* see binary.wgsl */
};

#define FITS(NAME, FROM, TO)                                                                       \
  static bool NAME(const void *problem, const struct caps *caps) {                                 \
    (void)caps;                                                                                    \
    const struct problem *q = problem;                                                             \
    return q->from == (FROM) && q->to == (TO);                                                     \
  }                                                                                                \
  static bool NAME##_quads(const void *problem, const struct caps *caps) {                         \
    return ((const struct problem *)problem)->quads && NAME(problem, caps);                        \
  }
FITS(f32, VK_FLOAT32, VK_FLOAT32)
FITS(f16, VK_FLOAT16, VK_FLOAT16)
FITS(i32, VK_INT32, VK_INT32)
FITS(i32_to_f32, VK_INT32, VK_FLOAT32)
FITS(f32_to_bool, VK_FLOAT32, VK_BOOL)
FITS(f16_to_bool, VK_FLOAT16, VK_BOOL)
FITS(i32_to_bool, VK_INT32, VK_BOOL)
FITS(bool_to_bool, VK_BOOL, VK_BOOL)

/* tile[0]: elements that share one index. */
#define PAIR(NAME, OP, FITS, USES)                                                                 \
  {NAME, &binary_wgsl, "OP=" OP " " USES, .fits = FITS##_quads, .tile = {4}}, {                    \
    NAME "_any", &binary_wgsl, "OP=" OP " QUADS=false " USES, .fits = FITS, .tile = {1}            \
  }
#define ARITHMETIC(NAME, OP, FLOATS)                                                               \
  PAIR(NAME "_f32", OP, f32, "use=quad_f32 " FLOATS),                                              \
      PAIR(NAME "_f16", OP, f16, "use=quad_f16 " FLOATS),                                          \
      PAIR(NAME "_i32", OP, i32, "use=quad_i32 use=binary_int")
#define FLOATS "use=binary_float use=not_a_number"
#define QUOTIENT "use=binary_quotient use=not_a_number"
#define POWER "use=binary_power use=power use=not_a_number"
#define COMPARISON(NAME, OP)                                                                       \
  PAIR(NAME "_f32", OP, f32_to_bool, "use=quad_f32 use=binary_compare"),                           \
      PAIR(NAME "_f16", OP, f16_to_bool, "use=quad_f16 use=binary_compare"),                       \
      PAIR(NAME "_i32", OP, i32_to_bool, "use=quad_i32 use=binary_compare"),                       \
      PAIR(NAME "_bool", OP, bool_to_bool, "use=quad_u8 use=binary_compare")
#define LOGIC(NAME, OP) PAIR(NAME "_bool", OP, bool_to_bool, "use=quad_u8 use=binary_compare")

static const struct kernel add_kernels[] = {ARITHMETIC("add", "0u", FLOATS), {0}};
static const struct kernel sub_kernels[] = {ARITHMETIC("sub", "1u", FLOATS), {0}};
static const struct kernel mul_kernels[] = {
    ARITHMETIC("mul", "2u", FLOATS), LOGIC("and", "6u"), {0}};
static const struct kernel div_kernels[] = {
    PAIR("div_f32", "3u", f32, "use=quad_f32 " FLOATS),
    PAIR("div_f16", "3u", f16, "use=quad_f16 " FLOATS),
    PAIR("div_i32", "3u", i32_to_f32, "use=quad_i32 use=binary_ratio"),
    {0}};
static const struct kernel floor_kernels[] = {ARITHMETIC("floor_div", "4u", QUOTIENT), {0}};
static const struct kernel trunc_kernels[] = {ARITHMETIC("trunc_div", "5u", QUOTIENT), {0}};
static const struct kernel min_kernels[] = {ARITHMETIC("min", "6u", FLOATS), {0}};
static const struct kernel max_kernels[] = {ARITHMETIC("max", "7u", FLOATS), {0}};
static const struct kernel pow_kernels[] = {ARITHMETIC("pow", "8u", POWER), {0}};
static const struct kernel eq_kernels[] = {COMPARISON("eq", "0u"), {0}};
static const struct kernel ne_kernels[] = {COMPARISON("ne", "1u"), {0}};
static const struct kernel lt_kernels[] = {COMPARISON("lt", "2u"), {0}};
static const struct kernel le_kernels[] = {COMPARISON("le", "3u"), {0}};
static const struct kernel gt_kernels[] = {COMPARISON("gt", "4u"), {0}};
static const struct kernel ge_kernels[] = {COMPARISON("ge", "5u"), {0}};
static const struct kernel and_kernels[] = {LOGIC("and", "6u"), {0}};
static const struct kernel or_kernels[] = {LOGIC("or", "7u"), {0}};
static const struct kernel xor_kernels[] = {LOGIC("xor", "8u"), {0}};

static sconce_status shape(struct plan *p, const struct node *n) {
  const struct tensor *x[2] = {arg_tensor(p, n, 0), arg_tensor(p, n, 1)};
  if (!x[0] || !x[1]) return SCONCE_BAD_GRAPH;
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
  float rounded = (float)number;
  memcpy(bits, &rounded, sizeof rounded);
  return SCONCE_OK;
}

/* One dispatch, or several over ranges where the tensors exceed a binding and run in step. */
static sconce_status dispatch_parts(struct plan *p, const struct node *n, const struct kernel *row,
                                    struct binary_params *u) {
  const struct tensor *y = tensor_at(p, out_id(n));
  uint64_t numel = u->n, part = numel;
  if (row && u->rank == 1) part = flat_part(p, tensor_numel_max(y), 4);
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

static sconce_status emit_from(struct plan *p, const struct node *n, const struct kernel *kernels,
                               uint32_t alpha_arg) {
  const struct tensor *a = arg_tensor(p, n, 0), *b = arg_tensor(p, n, 1);
  const struct tensor *y = arg_tensor(p, n, n->n_args - 1);
  if (!a || !b || !y) return SCONCE_BAD_GRAPH;
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
  if (alpha_arg) TRY(element_bits(p, n, alpha_arg, a->dtype, &u.alpha));
  struct nest quads = nest;
  struct problem problem = {a->dtype, y->dtype, to_quads(&quads, &u.stays)};
  const struct kernel *row = choose(p, kernels, &problem);
  if (!row)
    return fail(p->err, SCONCE_UNSUPPORTED, "%s and %s", tensor_text(a, one), tensor_text(y, two));
  const struct nest *loops = row->tile[0] == 4 ? &quads : &nest;
  u.rank = loops->rank;
  memcpy(u.dims, loops->size, sizeof u.dims);
  memcpy(u.stride_a, loops->stride[0], sizeof u.stride_a);
  memcpy(u.stride_b, loops->stride[1], sizeof u.stride_b);
  return dispatch_parts(p, n, row, &u);
}

/* [a, b, out], or [a, b, alpha, out] */
enum { PLAIN, WITH_ALPHA };
static sconce_status emit(struct plan *p, const struct node *n) {
  return emit_from(p, n, n->op->kernels[0], n->op->variant == WITH_ALPHA ? 2 : 0);
}

/* [a, b, rounding mode, out] */
static sconce_status emit_div(struct plan *p, const struct node *n) {
  if (arg_is_null(p, n, 2)) return emit_from(p, n, div_kernels, 0);
  if (arg_text_is(p, n, 2, "floor")) return emit_from(p, n, floor_kernels, 0);
  if (arg_text_is(p, n, 2, "trunc")) return emit_from(p, n, trunc_kernels, 0);
  return fail(p->err, SCONCE_UNSUPPORTED, "the rounding mode is neither floor nor trunc");
}

#define OF_TWO(NAME, KERNELS)                                                                      \
  {                                                                                                \
    NAME, shape, emit, .n_args = 3, .kernels = { KERNELS }                                         \
  }
#define SCALED(NAME, KERNELS)                                                                      \
  {                                                                                                \
    NAME, shape, emit, .variant = WITH_ALPHA, .n_args = 4, .kernels = { KERNELS }                  \
  }
#define DIVIDED(NAME)                                                                              \
  {                                                                                                \
    NAME, shape, emit_div, .n_args = 4, .kernels = { div_kernels, floor_kernels, trunc_kernels }   \
  }

const struct op ops_binary[] = {
    SCALED("aten.add.Tensor", add_kernels),
    SCALED("aten::add.out", add_kernels),
    SCALED("aten.sub.Tensor", sub_kernels),
    SCALED("aten::sub.out", sub_kernels),
    OF_TWO("aten.mul.Tensor", mul_kernels),
    OF_TWO("aten::mul.out", mul_kernels),
    OF_TWO("aten.div.Tensor", div_kernels),
    OF_TWO("aten::div.out", div_kernels),
    DIVIDED("aten.div.Tensor_mode"),
    DIVIDED("aten::div.out_mode"),
    OF_TWO("aten.minimum.default", min_kernels),
    OF_TWO("aten::minimum.out", min_kernels),
    OF_TWO("aten.maximum.default", max_kernels),
    OF_TWO("aten::maximum.out", max_kernels),
    OF_TWO("aten.pow.Tensor_Tensor", pow_kernels),
    OF_TWO("aten::pow.Tensor_Tensor_out", pow_kernels),
    OF_TWO("aten.eq.Tensor", eq_kernels),
    OF_TWO("aten.ne.Tensor", ne_kernels),
    OF_TWO("aten.lt.Tensor", lt_kernels),
    OF_TWO("aten.le.Tensor", le_kernels),
    OF_TWO("aten.gt.Tensor", gt_kernels),
    OF_TWO("aten.ge.Tensor", ge_kernels),
    OF_TWO("aten.logical_and.default", and_kernels),
    OF_TWO("aten.bitwise_and.Tensor", and_kernels),
    OF_TWO("aten.logical_or.default", or_kernels),
    OF_TWO("aten.bitwise_or.Tensor", or_kernels),
    OF_TWO("aten.logical_xor.default", xor_kernels),
    {0},
};
