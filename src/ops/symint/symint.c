/* Live scalars: numbers that the host knows before it encodes a call. Delegates compute with
 * integers; the program around them with integers, doubles and booleans, whose kind is whatever the
 * last instruction gave them. */
#include "graph/op.h"

#include "base/checked.h"
#include "base/half.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static struct number whole(int64_t i) { return (struct number){.kind = NUMBER_INT, .i = i}; }
static struct number fraction(double d) { return (struct number){.kind = NUMBER_DOUBLE, .d = d}; }
static struct number truth(bool b) { return (struct number){.kind = NUMBER_BOOL, .i = b}; }
static double value_of(struct number n) { return n.kind == NUMBER_DOUBLE ? n.d : (double)n.i; }

/* ---- of tensors ------------------------------------------------------------------------------ */

/* One element of an integer tensor whose values the host has. */
static int64_t element(const struct tensor *t, uint64_t at) {
  const uint8_t *host = t->host;
  switch (t->dtype) {
  case VK_INT32: {
    int32_t v;
    memcpy(&v, host + 4 * at, 4);
    return v;
  }
  case VK_INT8:
    return (int8_t)host[at];
  default:
    return host[at]; /* uint8, bool */
  }
}

/* [x, dim, index, out]: x at `index` along `dim`, at 0 along all others. */
static sconce_status select_as_symint(struct plan *p, const struct node *n) {
  const struct tensor *x;
  TRY(arg_tensor(p, n, 0, &x));
  uint32_t dim;
  int64_t index;
  TRY(arg_dim(p, n, 1, x->rank, &dim));
  TRY(arg_int(p, n, 2, &index));
  if (tensor_is_float(x))
    return fail(p->err, SCONCE_BAD_GRAPH, "a scalar from a %s tensor", vk_dtype_name(x->dtype));
  int64_t at = index < 0 ? index + x->dim_live[dim] : index;
  if (at < 0 || at >= x->dim_live[dim])
    return fail(p->err, SCONCE_BAD_ARGUMENT, "index %" PRId64 " of a dim of %u", index,
                x->dim_live[dim]);
  if (tensor_numel(x) == 0) /* another dim is 0 */
    return fail(p->err, SCONCE_BAD_ARGUMENT, "a scalar from a tensor without elements");
  if (!x->host) return want_elements(p, n);
  uint64_t stride = 1;
  for (uint32_t i = dim + 1; i < x->rank; i++) stride *= x->dim_live[i];
  return set_symint(p, out_id(n), element(x, (uint64_t)at * stride));
}

/* [x, out]: the first element, as its dtype says. */
static sconce_status local_scalar(struct plan *p, const struct node *n) {
  const struct tensor *x;
  TRY(arg_tensor(p, n, 0, &x));
  if (tensor_numel(x) == 0)
    return fail(p->err, SCONCE_BAD_ARGUMENT, "a scalar from a tensor without elements");
  if (!x->host) return want_elements(p, n);
  float f = 0;
  uint16_t h = 0;
  if (x->dtype == VK_FLOAT32) memcpy(&f, x->host, sizeof f);
  if (x->dtype == VK_FLOAT16) memcpy(&h, x->host, sizeof h), f = half_to_float(h);
  if (tensor_is_float(x)) return set_number(p, out_id(n), fraction((double)f));
  const int64_t i = element(x, 0);
  return set_number(p, out_id(n), x->dtype == VK_BOOL ? truth(i != 0) : whole(i));
}

/* [x, dim, out] */
static sconce_status sym_size(struct plan *p, const struct node *n) {
  const struct tensor *x;
  TRY(arg_tensor(p, n, 0, &x));
  uint32_t dim;
  TRY(arg_dim(p, n, 1, x->rank, &dim));
  return set_symint(p, out_id(n), x->dim_live[dim]);
}

/* [x, out] */
static sconce_status sym_numel(struct plan *p, const struct node *n) {
  const struct tensor *x;
  TRY(arg_tensor(p, n, 0, &x));
  return set_symint(p, out_id(n), (int64_t)tensor_numel(x));
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

/* In op->code: a delegate's arithmetic is of integers, though an exporter may have written 2
 * as 2.0; what a program's gives is of the kind of its arguments. */
enum { WHOLE = 8 };

static sconce_status operand(struct plan *p, const struct node *n, uint32_t i, struct number *out) {
  if (!(n->op->code & WHOLE)) return arg_number(p, n, i, out);
  *out = whole(0);
  return arg_int(p, n, i, &out->i);
}

static sconce_status operands(struct plan *p, const struct node *n, struct number *a,
                              struct number *b) {
  TRY(operand(p, n, 0, a));
  return operand(p, n, 1, b);
}

static sconce_status overflow(struct plan *p, int64_t a, const char *sign, int64_t b) {
  return fail(p->err, SCONCE_BAD_ARGUMENT, "%" PRId64 " %s %" PRId64 " overflows", a, sign, b);
}

enum { ADD, SUB, MUL };

/* Integers if both are, else doubles. */
static sconce_status arithmetic(struct plan *p, const struct node *n) {
  static const char *const signs[] = {"+", "-", "*"};
  const uint32_t code = n->op->code & ~(uint32_t)WHOLE;
  struct number a, b;
  int64_t r = 0;
  TRY(operands(p, n, &a, &b));
  if (a.kind == NUMBER_DOUBLE || b.kind == NUMBER_DOUBLE) {
    const double x = value_of(a), y = value_of(b);
    return set_number(p, out_id(n), fraction(code == ADD ? x + y : code == SUB ? x - y : x * y));
  }
  const bool fits = code == ADD   ? add_i64(a.i, b.i, &r)
                    : code == SUB ? sub_i64(a.i, b.i, &r)
                                  : mul_i64(a.i, b.i, &r);
  return fits ? set_symint(p, out_id(n), r) : overflow(p, a.i, signs[code], b.i);
}

enum { DOWN = 1, TO_ZERO = 2, REST = 4 };

/* The quotient rounds to minus infinity as Python's does, or to zero as C's; REST: what is left. */
static sconce_status divide(struct plan *p, int64_t a, int64_t b, uint32_t how, int64_t *out) {
  if (b == 0) return fail(p->err, SCONCE_BAD_ARGUMENT, "%" PRId64 " divided by 0", a);
  if (a == INT64_MIN && b == -1) return overflow(p, a, "//", b);
  int64_t quotient = a / b, rest = a % b;
  if (how & DOWN && rest && (rest < 0) != (b < 0)) {
    quotient -= 1;
    rest += b;
  }
  *out = how & REST ? rest : quotient;
  return SCONCE_OK;
}

static sconce_status division(struct plan *p, const struct node *n) {
  struct number a, b;
  int64_t r = 0;
  TRY(operands(p, n, &a, &b));
  if (a.kind == NUMBER_DOUBLE || b.kind == NUMBER_DOUBLE) {
    if (n->op->code & REST)
      return fail(p->err, SCONCE_BAD_GRAPH, "a remainder of %g and %g", value_of(a), value_of(b));
    return set_number(p, out_id(n), fraction(floor(value_of(a) / value_of(b))));
  }
  TRY(divide(p, a.i, b.i, n->op->code, &r));
  return set_symint(p, out_id(n), r);
}

static sconce_status truediv(struct plan *p, const struct node *n) {
  double a, b;
  TRY(arg_float(p, n, 0, &a));
  TRY(arg_float(p, n, 1, &b));
  return set_number(p, out_id(n), fraction(a / b));
}

static sconce_status neg(struct plan *p, const struct node *n) {
  struct number a;
  TRY(operand(p, n, 0, &a));
  if (a.kind == NUMBER_DOUBLE) return set_number(p, out_id(n), fraction(-a.d));
  if (a.i == INT64_MIN) return overflow(p, 0, "-", a.i);
  return set_symint(p, out_id(n), -a.i);
}

static sconce_status sym_max(struct plan *p, const struct node *n) {
  int64_t a, b;
  TRY(arg_int(p, n, 0, &a));
  TRY(arg_int(p, n, 1, &b));
  return set_symint(p, out_id(n), a > b ? a : b);
}

static sconce_status sym_min(struct plan *p, const struct node *n) {
  int64_t a, b;
  TRY(arg_int(p, n, 0, &a));
  TRY(arg_int(p, n, 1, &b));
  return set_symint(p, out_id(n), a < b ? a : b);
}

/* ---- kinds and conditions -------------------------------------------------------------------- */

enum { LESS = 1, EQUAL = 2, GREATER = 4 };

/* op->code has a bit for each way in which a may stand to b; a NaN stands in none. */
static sconce_status compare(struct plan *p, const struct node *n) {
  struct number a, b;
  uint32_t order;
  TRY(operands(p, n, &a, &b));
  if (a.kind == NUMBER_DOUBLE || b.kind == NUMBER_DOUBLE) {
    const double x = value_of(a), y = value_of(b);
    order = x < y ? LESS : x > y ? GREATER : x == y ? EQUAL : 0;
  } else {
    order = a.i < b.i ? LESS : a.i == b.i ? EQUAL : GREATER;
  }
  return set_number(p, out_id(n), truth((n->op->code & order) != 0));
}

static sconce_status sym_not(struct plan *p, const struct node *n) {
  bool a;
  TRY(arg_bool(p, n, 0, &a));
  return set_number(p, out_id(n), truth(!a));
}

/* [condition, a, b, out] */
static sconce_status sym_ite(struct plan *p, const struct node *n) {
  bool condition;
  struct number picked;
  TRY(arg_bool(p, n, 0, &condition));
  TRY(arg_number(p, n, condition ? 1 : 2, &picked));
  return set_number(p, out_id(n), picked);
}

static sconce_status sym_float(struct plan *p, const struct node *n) {
  double a;
  TRY(arg_float(p, n, 0, &a));
  return set_number(p, out_id(n), fraction(a));
}

enum { TRUNC, CEIL, ROUND };

/* A double becomes an integer; halves round to even. */
static sconce_status to_int(struct plan *p, const struct node *n) {
  double a;
  TRY(arg_float(p, n, 0, &a));
  const double r = n->op->code == CEIL ? ceil(a) : n->op->code == ROUND ? nearbyint(a) : trunc(a);
  if (!(fabs(r) < 9.2e18)) return fail(p->err, SCONCE_BAD_ARGUMENT, "%g is no integer", a);
  return set_symint(p, out_id(n), (int64_t)r);
}

#define PRIM(NAME) "executorch_prim::" NAME ".Scalar"
#define SCALAR(NAME, ALSO, FUNCTION, N_ARGS, CODE)                                                 \
  {NAME, FUNCTION, .also = ALSO, .n_args = N_ARGS, .flags = OP_HOST, .code = CODE}

const struct op ops_symint[] = {
    {"et_vk.select_as_symint.default", select_as_symint, .n_args = 4, .flags = OP_HOST | OP_READS},
    {"aten::_local_scalar_dense", local_scalar, .n_args = 2, .flags = OP_HOST | OP_READS},
    SCALAR("sym_size.int", "aten::sym_size.int", sym_size, 3, 0),
    SCALAR("aten::sym_numel", NULL, sym_numel, 2, 0),
    SCALAR("add", NULL, arithmetic, 3, ADD | WHOLE),
    SCALAR(PRIM("add"), NULL, arithmetic, 3, ADD),
    SCALAR("sub", NULL, arithmetic, 3, SUB | WHOLE),
    SCALAR(PRIM("sub"), NULL, arithmetic, 3, SUB),
    SCALAR("mul", NULL, arithmetic, 3, MUL | WHOLE),
    SCALAR(PRIM("mul"), NULL, arithmetic, 3, MUL),
    SCALAR("floordiv", NULL, division, 3, DOWN | WHOLE),
    SCALAR(PRIM("floordiv"), NULL, division, 3, DOWN),
    SCALAR("executorch_prim::floordiv.int", NULL, division, 3, TO_ZERO),
    SCALAR("mod", NULL, division, 3, DOWN | REST | WHOLE),
    SCALAR(PRIM("mod"), "executorch_prim::mod.int", division, 3, TO_ZERO | REST),
    SCALAR(PRIM("truediv"), NULL, truediv, 3, 0),
    SCALAR("neg", NULL, neg, 2, WHOLE),
    SCALAR(PRIM("neg"), NULL, neg, 2, 0),
    SCALAR("lt", PRIM("lt"), compare, 3, LESS),
    SCALAR("le", PRIM("le"), compare, 3, LESS | EQUAL),
    SCALAR("eq", PRIM("eq"), compare, 3, EQUAL),
    SCALAR("ne", NULL, compare, 3, LESS | GREATER),
    SCALAR("ge", PRIM("ge"), compare, 3, EQUAL | GREATER),
    SCALAR("gt", PRIM("gt"), compare, 3, GREATER),
    SCALAR("sym_max", PRIM("sym_max"), sym_max, 3, 0),
    SCALAR("sym_min", PRIM("sym_min"), sym_min, 3, 0),
    SCALAR(PRIM("sym_not"), NULL, sym_not, 2, 0),
    SCALAR(PRIM("sym_ite"), NULL, sym_ite, 4, 0),
    SCALAR(PRIM("sym_float"), NULL, sym_float, 2, 0),
    SCALAR(PRIM("sym_int"), PRIM("trunc"), to_int, 2, TRUNC),
    SCALAR(PRIM("ceil"), NULL, to_int, 2, CEIL),
    SCALAR(PRIM("round"), NULL, to_int, 2, ROUND),
    {0},
};
