/* Operators that are a few others: when a file names one, those become nodes in its place. They
 * cost a dispatch more than a kernel of their own, and no kernel. */
#include "graph/op.h"

#include <string.h>

/* ---- values ---------------------------------------------------------------------------------- */

static sconce_status need_tensor(const struct expansion *x, uint32_t i, const struct tensor **out) {
  const uint32_t id = x->args[i];
  *out = id != NO_VALUE && x->g->values[id].kind == VK_TENSOR ? &x->g->values[id].tensor : NULL;
  if (*out) return SCONCE_OK;
  return fail(x->err, SCONCE_BAD_GRAPH, "argument %u is no tensor", i);
}

static sconce_status new_tensor(const struct expansion *x, enum vk_dtype dtype,
                                const struct tensor *like, uint32_t *out) {
  const struct tensor t = *like; /* values may move */
  *out = graph_add_tensor(x->g, dtype, t.rank, t.dim_max, x->err);
  return *out == NO_VALUE ? SCONCE_NO_MEMORY : SCONCE_OK;
}

static sconce_status new_number(const struct expansion *x, enum vk_kind kind, int64_t i,
                                uint32_t *out) {
  *out = graph_add_value(x->g, kind, x->err);
  if (*out == NO_VALUE) return SCONCE_NO_MEMORY;
  if (kind == VK_BOOLEAN) x->g->values[*out].b = i != 0;
  if (kind == VK_INT) x->g->values[*out].i = i;
  return SCONCE_OK;
}

/* A list of values; one of integers may hold live ones. */
static sconce_status new_list(const struct expansion *x, const uint32_t *ids, uint32_t n,
                              uint32_t *out) {
  uint32_t *copy = arena_new(&x->g->arena, uint32_t, n);
  *out = graph_add_value(x->g, VK_VALUE_LIST, x->err);
  if (!copy || *out == NO_VALUE) return fail(x->err, SCONCE_NO_MEMORY, "no memory for a list");
  memcpy(copy, ids, n * sizeof *copy);
  x->g->values[*out].list.n = n;
  x->g->values[*out].list.ids = copy;
  return SCONCE_OK;
}

#define ADD(name, ...)                                                                             \
  graph_add_node(x->g, text_of(name), x->index, (const uint32_t[]){__VA_ARGS__},                   \
                 (uint32_t)(sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)), x->err)

/* ---- any ------------------------------------------------------------------------------------- */

/* Is one of them not zero: a sum of ones, compared with zero; of no elements it is false. */
static sconce_status any_over(const struct expansion *x, uint32_t dims, uint32_t keep,
                              uint32_t result) {
  const struct tensor *from, *y;
  uint32_t truth, ones, sum, none, zero;
  TRY(need_tensor(x, 0, &from));
  TRY(new_tensor(x, VK_BOOL, from, &truth));
  TRY(need_tensor(x, 0, &from));
  TRY(new_tensor(x, VK_INT32, from, &ones));
  TRY(need_tensor(x, x->n_args - 1, &y));
  TRY(new_tensor(x, VK_INT32, y, &sum));
  TRY(new_number(x, VK_NULL, 0, &none));
  TRY(new_number(x, VK_INT, 0, &zero));
  TRY(ADD("aten.ne.Scalar", x->args[0], zero, truth));
  TRY(ADD("aten::_to_copy.out", truth, none, none, ones));
  TRY(ADD("aten.sum.dim_IntList", ones, dims, keep, none, sum));
  return ADD("aten.ne.Scalar", sum, zero, result);
}

/* [x, dim, keepdim, out] */
static sconce_status any_dim(const struct expansion *x) {
  uint32_t list;
  TRY(new_list(x, &x->args[1], 1, &list));
  return any_over(x, list, x->args[2], x->args[3]);
}

/* [x, dims or none, keepdim, out] */
static sconce_status any_dims(const struct expansion *x) {
  return any_over(x, x->args[1], x->args[2], x->args[3]);
}

/* [x, out] */
static sconce_status any_all(const struct expansion *x) {
  uint32_t none, keep;
  TRY(new_number(x, VK_NULL, 0, &none));
  TRY(new_number(x, VK_BOOLEAN, 0, &keep));
  return any_over(x, none, keep, x->args[1]);
}

/* ---- extrema --------------------------------------------------------------------------------- */

static uint32_t item(const struct expansion *x, uint32_t i, uint32_t k) {
  const struct value *v = x->args[i] == NO_VALUE ? NULL : &x->g->values[x->args[i]];
  return v && v->kind == VK_VALUE_LIST && k < v->list.n ? v->list.ids[k] : NO_VALUE;
}

/* [x, out] */
static sconce_status of_all(const struct expansion *x, const char *name) {
  uint32_t none, keep;
  TRY(new_number(x, VK_NULL, 0, &none));
  TRY(new_number(x, VK_BOOLEAN, 0, &keep));
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
  for (; n < MOST && item(x, 0, n) != NO_VALUE; n++) {
    TRY(need_tensor(x, 2, &y));
    struct tensor one = *y;
    const struct value *dim = x->args[1] == NO_VALUE ? NULL : &x->g->values[x->args[1]];
    if (!dim || dim->kind != VK_INT || one.rank == 0)
      return fail(x->err, SCONCE_UNSUPPORTED, "a stack along a dim that is no number");
    const int64_t at = dim->i < 0 ? dim->i + one.rank : dim->i;
    if (at < 0 || at >= one.rank)
      return fail(x->err, SCONCE_BAD_GRAPH, "dim %d of rank %u", (int)dim->i, one.rank);
    one.dim_max[at] = 1;
    TRY(new_tensor(x, one.dtype, &one, &ids[n]));
    TRY(ADD("aten.unsqueeze_copy.default", item(x, 0, n), x->args[1], ids[n]));
  }
  if (item(x, 0, n) != NO_VALUE)
    return fail(x->err, SCONCE_UNSUPPORTED, "a stack of more than %d tensors", MOST);
  TRY(new_list(x, ids, n, &list));
  return ADD("aten.cat.default", list, x->args[1], x->args[2]);
}

/* [x, mask, value, out] */
static sconce_status masked_fill(const struct expansion *x) {
  const struct tensor *from;
  uint32_t value;
  TRY(need_tensor(x, 0, &from));
  value = graph_add_tensor(x->g, from->dtype, 0, NULL, x->err);
  if (value == NO_VALUE) return SCONCE_NO_MEMORY;
  TRY(ADD("aten::scalar_tensor.out", x->args[2], value));
  return ADD("aten.where.self", x->args[1], value, x->args[0], x->args[3]);
}

/* [x, dim, out]: the first half of it times the sigmoid of the second. */
static sconce_status glu(const struct expansion *x) {
  const struct tensor *from, *y;
  uint32_t half[2], gate, list, sizes, number;
  TRY(need_tensor(x, 0, &from));
  TRY(need_tensor(x, 2, &y));
  const struct value *dim = x->args[1] == NO_VALUE ? NULL : &x->g->values[x->args[1]];
  if (!dim || dim->kind != VK_INT || from->rank == 0)
    return fail(x->err, SCONCE_UNSUPPORTED, "a gate along a dim that is no number");
  const int64_t at = dim->i < 0 ? dim->i + from->rank : dim->i;
  if (at < 0 || at >= from->rank || from->dim_max[at] % 2)
    return fail(x->err, SCONCE_BAD_GRAPH, "dim %d of rank %u in two", (int)dim->i, from->rank);
  TRY(new_number(x, VK_INT, from->dim_max[at] / 2, &number));
  for (int i = 0; i < 2; i++) {
    TRY(need_tensor(x, 2, &y));
    TRY(new_tensor(x, y->dtype, y, &half[i]));
  }
  TRY(need_tensor(x, 2, &y));
  TRY(new_tensor(x, y->dtype, y, &gate));
  TRY(new_list(x, (const uint32_t[]){number, number}, 2, &sizes));
  TRY(new_list(x, half, 2, &list));
  TRY(ADD("aten.split_with_sizes_copy.default", x->args[0], sizes, x->args[1], list));
  TRY(ADD("aten.sigmoid.default", half[1], gate));
  return ADD("aten.mul.Tensor", half[0], gate, x->args[2]);
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
    {0},
};
