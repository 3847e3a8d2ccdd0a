/* Operators that are a few others: when a file names one, those become nodes in its place. They
 * cost a dispatch more than a kernel of their own, and no kernel. */
#include "ops/compound/expand.h"

#include <string.h>

/* ---- any ------------------------------------------------------------------------------------- */

/* Is one of them not zero: a sum of ones, compared with zero; of no elements it is false. */
static sconce_status any_over(const struct expansion *x, uint32_t dims, uint32_t keep,
                              uint32_t result) {
  const struct tensor *from, *y;
  uint32_t truth, ones, sum, none, zero;
  TRY(expand_given(x, 0, &from));
  TRY(expand_tensor(x, VK_BOOL, from, &truth));
  TRY(expand_given(x, 0, &from));
  TRY(expand_tensor(x, VK_INT32, from, &ones));
  TRY(expand_given(x, x->n_args - 1, &y));
  TRY(expand_tensor(x, VK_INT32, y, &sum));
  TRY(expand_number(x, VK_NULL, 0, &none));
  TRY(expand_number(x, VK_INT, 0, &zero));
  TRY(ADD("aten.ne.Scalar", x->args[0], zero, truth));
  TRY(ADD("aten::_to_copy.out", truth, none, none, ones));
  TRY(ADD("aten.sum.dim_IntList", ones, dims, keep, none, sum));
  return ADD("aten.ne.Scalar", sum, zero, result);
}

/* [x, dim, keepdim, out] */
static sconce_status any_dim(const struct expansion *x) {
  uint32_t list;
  TRY(expand_list(x, &x->args[1], 1, &list));
  return any_over(x, list, x->args[2], x->args[3]);
}

/* [x, dims or none, keepdim, out] */
static sconce_status any_dims(const struct expansion *x) {
  return any_over(x, x->args[1], x->args[2], x->args[3]);
}

/* [x, out] */
static sconce_status any_all(const struct expansion *x) {
  uint32_t none, keep;
  TRY(expand_number(x, VK_NULL, 0, &none));
  TRY(expand_number(x, VK_BOOLEAN, 0, &keep));
  return any_over(x, none, keep, x->args[1]);
}

/* ---- extrema --------------------------------------------------------------------------------- */

/* [x, out] */
static sconce_status of_all(const struct expansion *x, const char *name) {
  uint32_t none, keep;
  TRY(expand_number(x, VK_NULL, 0, &none));
  TRY(expand_number(x, VK_BOOLEAN, 0, &keep));
  return ADD(name, x->args[0], none, keep, x->args[1]);
}
static sconce_status max_all(const struct expansion *x) { return of_all(x, "aten.amax.default"); }
static sconce_status min_all(const struct expansion *x) { return of_all(x, "aten.amin.default"); }

/* ---- parts and wholes ------------------------------------------------------------------------ */

/* [[x…], dim, out]: each with a dim of 1 more, side by side. */
static sconce_status stack(const struct expansion *x) {
  enum { MOST = 256 };
  uint32_t ids[MOST], n = 0, list;
  const struct tensor *y;
  for (; n < MOST && expand_item(x, 0, n) != NO_VALUE; n++) {
    TRY(expand_given(x, 2, &y));
    struct tensor one = *y;
    int64_t dim;
    TRY(expand_int(x, 1, &dim));
    const int64_t at = dim < 0 ? dim + one.rank : dim;
    if (at < 0 || at >= one.rank)
      return fail(x->err, SCONCE_BAD_GRAPH, "dim %d of rank %u", (int)dim, one.rank);
    one.dim_max[at] = 1;
    const struct value *item = &x->g->values[expand_item(x, 0, n)];
    if (item->kind == VK_TENSOR) one.dtype = item->tensor.dtype;
    TRY(expand_tensor(x, one.dtype, &one, &ids[n]));
    TRY(ADD("aten.unsqueeze_copy.default", expand_item(x, 0, n), x->args[1], ids[n]));
  }
  if (expand_item(x, 0, n) != NO_VALUE)
    return fail(x->err, SCONCE_UNSUPPORTED, "a stack of more than %d tensors", MOST);
  TRY(expand_list(x, ids, n, &list));
  return ADD("aten.cat.default", list, x->args[1], x->args[2]);
}

/* [x, mask, value, out] */
static sconce_status masked_fill(const struct expansion *x) {
  const struct tensor *from;
  uint32_t value;
  TRY(expand_given(x, 0, &from));
  value = graph_add_tensor(x->g, from->dtype, 0, NULL, x->err);
  if (value == NO_VALUE) return SCONCE_NO_MEMORY;
  TRY(ADD("aten::scalar_tensor.out", x->args[2], value));
  return ADD("aten.where.self", x->args[1], value, x->args[0], x->args[3]);
}

/* [x, dim, out]: the first half of it times the sigmoid of the second. */
static sconce_status glu(const struct expansion *x) {
  const struct tensor *from, *y;
  uint32_t half[2], gate, list, sizes, number;
  TRY(expand_given(x, 0, &from));
  TRY(expand_given(x, 2, &y));
  int64_t dim;
  TRY(expand_int(x, 1, &dim));
  const int64_t at = dim < 0 ? dim + from->rank : dim;
  if (at < 0 || at >= from->rank)
    return fail(x->err, SCONCE_BAD_GRAPH, "dim %d of rank %u in two", (int)dim, from->rank);
  uint32_t whole, two;
  TRY(expand_number(x, VK_SYMINT, 0, &whole));
  TRY(expand_number(x, VK_SYMINT, 0, &number));
  TRY(expand_number(x, VK_INT, 2, &two));
  TRY(ADD("sym_size.int", x->args[0], x->args[1], whole));
  TRY(ADD("floordiv", whole, two, number));
  for (int i = 0; i < 2; i++) {
    TRY(expand_given(x, 2, &y));
    TRY(expand_tensor(x, y->dtype, y, &half[i]));
  }
  TRY(expand_given(x, 2, &y));
  TRY(expand_tensor(x, y->dtype, y, &gate));
  TRY(expand_list(x, (const uint32_t[]){number, number}, 2, &sizes));
  TRY(expand_list(x, half, 2, &list));
  TRY(ADD("aten.split_with_sizes_copy.default", x->args[0], sizes, x->args[1], list));
  TRY(ADD("aten.sigmoid.default", half[1], gate));
  return ADD("aten.mul.Tensor", half[0], gate, x->args[2]);
}

/* ---- choices and copies ---------------------------------------------------------------------- */

/* [x, low or none, high or none, out] */
static sconce_status clamp_between(const struct expansion *x) {
  const struct tensor *y;
  const uint32_t low = expand_some(x, 1), high = expand_some(x, 2);
  uint32_t raised;
  if (low == NO_VALUE && high == NO_VALUE)
    return fail(x->err, SCONCE_BAD_GRAPH, "a clamp without bounds");
  if (high == NO_VALUE) return ADD("aten.maximum.default", x->args[0], low, x->args[3]);
  if (low == NO_VALUE) return ADD("aten.minimum.default", x->args[0], high, x->args[3]);
  TRY(expand_given(x, 3, &y));
  TRY(expand_broadcast(x, y->dtype, x->args[0], low, &raised));
  TRY(ADD("aten.maximum.default", x->args[0], low, raised));
  return ADD("aten.minimum.default", raised, high, x->args[3]);
}

/* [x, value, out]: a tensor of one number. */
static sconce_status fill_tensor(const struct expansion *x) {
  const struct tensor *value, *y;
  uint32_t same, none;
  TRY(expand_given(x, 1, &value));
  TRY(expand_given(x, 2, &y));
  TRY(expand_tensor(x, y->dtype, value, &same));
  TRY(expand_number(x, VK_NULL, 0, &none));
  TRY(ADD("aten::_to_copy.out", x->args[1], none, none, same));
  return ADD("aten.copy.default", x->args[0], same, none, x->args[2]);
}

/* [x, p, train, [y, mask]]: outside of training nothing is dropped. */
static sconce_status dropout(const struct expansion *x) {
  int64_t trains = 1; /* where the file leaves it open */
  if (expand_some(x, 2) != NO_VALUE) TRY(expand_int(x, 2, &trains));
  uint32_t none, one;
  if (trains)
    return fail(x->err, SCONCE_UNSUPPORTED,
                "dropout in training draws random numbers: export the model after eval()");
  TRY(expand_number(x, VK_NULL, 0, &none));
  TRY(expand_number(x, VK_INT, 1, &one));
  TRY(ADD("aten.alias_copy.default", x->args[0], expand_item(x, 3, 0)));
  return ADD("aten::full_like.out", x->args[0], one, none, expand_item(x, 3, 1));
}

#define COMPOUND(NAME, PORTABLE, EXPAND, N_ARGS)                                                   \
  {NAME, .expand = EXPAND, .also = PORTABLE, .n_args = N_ARGS}

const struct op ops_compound[] = {
    COMPOUND("aten.any.dim", "aten::any.out", any_dim, 4),
    COMPOUND("aten.any.dims", "aten::any.dims_out", any_dims, 4),
    COMPOUND("aten.any.default", "aten::any.all_out", any_all, 2),
    COMPOUND("aten.max.default", "aten::max.unary_out", max_all, 2),
    COMPOUND("aten.min.default", "aten::min.unary_out", min_all, 2),
    COMPOUND("aten.stack.default", "aten::stack.out", stack, 3),
    COMPOUND("aten.masked_fill.Scalar", "aten::masked_fill.Scalar_out", masked_fill, 4),
    COMPOUND("aten.glu.default", "aten::glu.out", glu, 3),
    COMPOUND("aten.clamp.Tensor", "aten::clamp.Tensor_out", clamp_between, 4),
    COMPOUND("aten.fill.Tensor", "aten::fill.Tensor_out", fill_tensor, 3),
    {"aten.native_dropout.default", .expand = dropout, .also = "aten::native_dropout.out",
     .n_args = 4, .flags = OP_LIST},
    {0},
};
