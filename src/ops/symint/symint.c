/* Live scalars: integers that the host knows before it encodes a call. */
#include "graph/op.h"

#include "base/checked.h"

#include <inttypes.h>
#include <string.h>

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

/* [x, dim, out] */
static sconce_status sym_size(struct plan *p, const struct node *n) {
  const struct tensor *x;
  TRY(arg_tensor(p, n, 0, &x));
  uint32_t dim;
  TRY(arg_dim(p, n, 1, x->rank, &dim));
  return set_symint(p, out_id(n), x->dim_live[dim]);
}

static sconce_status operands(struct plan *p, const struct node *n, int64_t *a, int64_t *b) {
  TRY(arg_int(p, n, 0, a));
  return arg_int(p, n, 1, b);
}

static sconce_status overflow(struct plan *p, int64_t a, const char *sign, int64_t b) {
  return fail(p->err, SCONCE_BAD_ARGUMENT, "%" PRId64 " %s %" PRId64 " overflows", a, sign, b);
}

static sconce_status add(struct plan *p, const struct node *n) {
  int64_t a, b, r;
  TRY(operands(p, n, &a, &b));
  if (!add_i64(a, b, &r)) return overflow(p, a, "+", b);
  return set_symint(p, out_id(n), r);
}

static sconce_status sub(struct plan *p, const struct node *n) {
  int64_t a, b, r;
  TRY(operands(p, n, &a, &b));
  if (!sub_i64(a, b, &r)) return overflow(p, a, "-", b);
  return set_symint(p, out_id(n), r);
}

static sconce_status mul(struct plan *p, const struct node *n) {
  int64_t a, b, r;
  TRY(operands(p, n, &a, &b));
  if (!mul_i64(a, b, &r)) return overflow(p, a, "*", b);
  return set_symint(p, out_id(n), r);
}

/* Python's division and remainder: the quotient rounds to minus infinity. */
static sconce_status divide(struct plan *p, int64_t a, int64_t b, int64_t *quotient,
                            int64_t *remainder) {
  if (b == 0) return fail(p->err, SCONCE_BAD_ARGUMENT, "%" PRId64 " divided by 0", a);
  if (a == INT64_MIN && b == -1) return overflow(p, a, "//", b);
  *quotient = a / b;
  *remainder = a % b;
  if (*remainder && (*remainder < 0) != (b < 0)) {
    *quotient -= 1;
    *remainder += b;
  }
  return SCONCE_OK;
}

static sconce_status floordiv(struct plan *p, const struct node *n) {
  int64_t a, b, q = 0, r = 0;
  TRY(operands(p, n, &a, &b));
  TRY(divide(p, a, b, &q, &r));
  return set_symint(p, out_id(n), q);
}

static sconce_status mod(struct plan *p, const struct node *n) {
  int64_t a, b, q = 0, r = 0;
  TRY(operands(p, n, &a, &b));
  TRY(divide(p, a, b, &q, &r));
  return set_symint(p, out_id(n), r);
}

static sconce_status neg(struct plan *p, const struct node *n) {
  int64_t a;
  TRY(arg_int(p, n, 0, &a));
  if (a == INT64_MIN) return overflow(p, 0, "-", a);
  return set_symint(p, out_id(n), -a);
}

static sconce_status sym_max(struct plan *p, const struct node *n) {
  int64_t a, b;
  TRY(operands(p, n, &a, &b));
  return set_symint(p, out_id(n), a > b ? a : b);
}

static sconce_status sym_min(struct plan *p, const struct node *n) {
  int64_t a, b;
  TRY(operands(p, n, &a, &b));
  return set_symint(p, out_id(n), a < b ? a : b);
}

enum { LESS = 1, EQUAL = 2, GREATER = 4 };

/* 1 or 0: op->code has a bit for each way in which a may stand to b. */
static sconce_status compare(struct plan *p, const struct node *n) {
  int64_t a, b;
  TRY(operands(p, n, &a, &b));
  const uint32_t order = a < b ? LESS : a == b ? EQUAL : GREATER;
  return set_symint(p, out_id(n), (n->op->code & order) != 0);
}

const struct op ops_symint[] = {
    {"et_vk.select_as_symint.default", select_as_symint, .n_args = 4, .flags = OP_HOST | OP_READS},
    {"sym_size.int", sym_size, .n_args = 3, .flags = OP_HOST},
    {"add", add, .n_args = 3, .flags = OP_HOST},
    {"sub", sub, .n_args = 3, .flags = OP_HOST},
    {"mul", mul, .n_args = 3, .flags = OP_HOST},
    {"floordiv", floordiv, .n_args = 3, .flags = OP_HOST},
    {"mod", mod, .n_args = 3, .flags = OP_HOST},
    {"neg", neg, .n_args = 2, .flags = OP_HOST},
    {"lt", compare, .n_args = 3, .flags = OP_HOST, .code = LESS},
    {"le", compare, .n_args = 3, .flags = OP_HOST, .code = LESS | EQUAL},
    {"eq", compare, .n_args = 3, .flags = OP_HOST, .code = EQUAL},
    {"ne", compare, .n_args = 3, .flags = OP_HOST, .code = LESS | GREATER},
    {"ge", compare, .n_args = 3, .flags = OP_HOST, .code = EQUAL | GREATER},
    {"gt", compare, .n_args = 3, .flags = OP_HOST, .code = GREATER},
    {"sym_max", sym_max, .n_args = 3, .flags = OP_HOST},
    {"sym_min", sym_min, .n_args = 3, .flags = OP_HOST},
    {0},
};
