/* More elements at a tensor's sides: a number, or elements of its own; and what goes out at one
 * side and comes in at the other. */
#include "ops/move/move.h"

#include "base/half.h"

#include <inttypes.h>

/* ---- pad ------------------------------------------------------------------------------------- */

/* [x, pad, …, out]: pairs (left, right), the last dim first; negative ones crop. */
static sconce_status pads_of(struct plan *p, const struct node *n, const struct tensor *x,
                             int64_t left[RANK_MAX], uint32_t dims[RANK_MAX]) {
  int64_t pads[2 * RANK_MAX];
  uint32_t count;
  TRY(arg_ints(p, n, 1, pads, 2 * RANK_MAX, &count));
  if (count % 2 || count / 2 > x->rank)
    return fail(p->err, SCONCE_BAD_GRAPH, "%u pads of %u dims", count, x->rank);
  for (uint32_t i = 0; i < x->rank; i++) {
    uint32_t pair = x->rank - 1 - i;
    bool given = pair < count / 2;
    left[i] = given ? pads[2 * pair] : 0;
    const int64_t right = given ? pads[2 * pair + 1] : 0;
    if (left[i] != (int32_t)left[i] || right != (int32_t)right)
      return fail(p->err, SCONCE_BAD_ARGUMENT, "pads of %" PRId64 " and %" PRId64, left[i], right);
    int64_t size = (int64_t)x->dim_live[i] + left[i] + right;
    if (size < 0 || size > INT32_MAX)
      return fail(p->err, SCONCE_BAD_ARGUMENT, "dim %u becomes %" PRId64, i, size);
    dims[i] = (uint32_t)size;
  }
  return SCONCE_OK;
}

static sconce_status pad_shape(struct plan *p, const struct node *n) {
  const struct tensor *x;
  TRY(arg_tensor(p, n, 0, &x));
  int64_t left[RANK_MAX];
  uint32_t dims[RANK_MAX];
  TRY(pads_of(p, n, x, left, dims));
  for (uint32_t i = 0; i < x->rank; i++) {
    const int64_t right = (int64_t)dims[i] - x->dim_live[i] - left[i], size = x->dim_live[i];
    const int64_t most = left[i] > right ? left[i] : right;
    const bool reaches = n->op->code == EDGE_REFLECTED ? most < size : size > 0 || most <= 0;
    if (n->op->code != EDGE_FILL && most > 0 && !reaches)
      return fail(p->err, SCONCE_BAD_ARGUMENT, "a pad of %" PRId64 " beside %" PRId64 " elements",
                  most, size);
  }
  return set_dims(p, out_id(n), dims, x->rank);
}

static sconce_status pad_emit(struct plan *p, const struct node *n) {
  const struct tensor *x, *y = out_tensor(p, n);
  TRY(arg_tensor(p, n, 0, &x));
  uint32_t dims[RANK_MAX];
  int64_t left[RANK_MAX];
  double value = 0;
  struct move m;
  TRY(pads_of(p, n, x, left, dims));
  if (n->op->code == EDGE_FILL) TRY(arg_float_or(p, n, 2, 0, &value));
  TRY(move_begin(p, &m, y, x));
  m.edge = (enum move_edge)n->op->code;
  m.fill = y->dtype == VK_FLOAT16 ? half_from_float((float)value) : number_bits(y->dtype, value);
  for (uint32_t i = 0; i < x->rank; i++) {
    m.from[i] = left[i];
    m.size[i] = x->dim_live[i];
  }
  return move_emit(p, n, &m, arg_id(n, 0), out_id(n));
}

/* ---- roll ------------------------------------------------------------------------------------ */

/* [x, shifts, dims, out]: without dims all of x is one. */
static sconce_status rolls_of(struct plan *p, const struct node *n, const struct tensor *x,
                              int64_t shifts[RANK_MAX], int64_t dims[RANK_MAX], uint32_t *count) {
  uint32_t n_dims;
  TRY(arg_ints(p, n, 1, shifts, RANK_MAX, count));
  TRY(arg_ints(p, n, 2, dims, RANK_MAX, &n_dims));
  if (n_dims ? n_dims != *count : *count != 1)
    return fail(p->err, SCONCE_BAD_GRAPH, "%u shifts of %u dims", *count, n_dims);
  for (uint32_t i = 0; i < n_dims; i++) {
    const int64_t dim = dims[i];
    if (dim < 0) dims[i] += x->rank;
    if (dims[i] < 0 || dims[i] >= x->rank)
      return fail(p->err, SCONCE_BAD_GRAPH, "dim %" PRId64 " of a tensor of rank %u", dim, x->rank);
  }
  if (!n_dims) dims[0] = -1;
  return SCONCE_OK;
}

static sconce_status roll_shape(struct plan *p, const struct node *n) {
  const struct tensor *x;
  int64_t shifts[RANK_MAX], dims[RANK_MAX];
  uint32_t count;
  TRY(arg_tensor(p, n, 0, &x));
  TRY(rolls_of(p, n, x, shifts, dims, &count));
  return shape_same(p, n);
}

static sconce_status roll_emit(struct plan *p, const struct node *n) {
  const struct tensor *x, *y = out_tensor(p, n);
  int64_t shifts[RANK_MAX], dims[RANK_MAX];
  uint32_t count = 0;
  struct move m;
  TRY(arg_tensor(p, n, 0, &x));
  TRY(rolls_of(p, n, x, shifts, dims, &count));
  TRY(move_begin(p, &m, y, x));
  if (dims[0] < 0) {
    const uint32_t all = (uint32_t)tensor_numel(x);
    m = (struct move){.rank = 1, .dims = {all}, .size = {all}, .stride = {1}};
    dims[0] = 0;
  }
  m.edge = EDGE_AGAIN;
  for (uint32_t i = 0; i < count; i++) { /* a dim may be there twice */
    const int64_t size = m.dims[dims[i]], turn = size ? shifts[i] % size : 0;
    if (size) m.from[dims[i]] = (m.from[dims[i]] + turn + size) % size;
  }
  return move_emit(p, n, &m, arg_id(n, 0), out_id(n));
}

#define PAD(NAME, PORTABLE, CODE, N_ARGS)                                                          \
  {NAME,                                                                                           \
   pad_shape,                                                                                      \
   pad_emit,                                                                                       \
   .also = PORTABLE,                                                                               \
   .code = CODE,                                                                                   \
   .n_args = N_ARGS,                                                                               \
   .tables = TABLES(move_kernels)}

const struct op ops_pad[] = {
    PAD("aten.constant_pad_nd.default", "aten::constant_pad_nd.out", EDGE_FILL, 4),
    PAD("aten.reflection_pad1d.default",
        "aten::reflection_pad1d.out aten.reflection_pad2d.default aten::reflection_pad2d.out "
        "aten.reflection_pad3d.default aten::reflection_pad3d.out",
        EDGE_REFLECTED, 3),
    PAD("aten.replication_pad1d.default",
        "aten::replication_pad1d.out aten.replication_pad2d.default aten::replication_pad2d.out "
        "aten.replication_pad3d.default aten::replication_pad3d.out",
        EDGE_NEAREST, 3),
    {"aten.roll.default", roll_shape, roll_emit, .also = "aten::roll.out", .n_args = 4,
     .tables = TABLES(move_kernels)},
    {0},
};
