/* Results whose size depends on elements: where a tensor is not zero, what a mask selects, indices
 * that repeat. They are counted on the device, the host reads the count and sets the dims, and the
 * rest of the call goes on from there. All of them are one question: in a running sum, which
 * element does step j belong to? */
#include "ops/places/places.h"

#include "ops/compound/expand.h"
#include "ops/strides/strides.h"

#include "places.wgsl.h"

#include <inttypes.h>
#include <string.h>

static const struct kernel kernels[] = {{"plain", &places_wgsl, ""}, {0}};

/* ---- the places ------------------------------------------------------------------------------ */

/* [sums, x, n, out]: indices (n, x's rank), or (n) of an x of rank 1. */
enum { SUMS, X, COUNT, OUT };

static sconce_status shape(struct plan *p, const struct node *n) {
  const struct tensor *x, *y = out_tensor(p, n);
  int64_t count;
  TRY(arg_tensor(p, n, X, &x));
  TRY(arg_int(p, n, COUNT, &count));
  if (count < 0 || count > INT32_MAX)
    return fail(p->err, SCONCE_BAD_ARGUMENT, "%" PRId64 " results", count);
  return set_dims(p, out_id(n), (const uint32_t[]){(uint32_t)count, x->rank}, y->rank == 1 ? 1 : 2);
}

static sconce_status emit(struct plan *p, const struct node *n) {
  const struct tensor *sums, *x, *y = out_tensor(p, n);
  TRY(arg_tensor(p, n, SUMS, &sums));
  TRY(arg_tensor(p, n, X, &x));
  if (y->dtype != VK_INT32)
    return fail(p->err, SCONCE_UNSUPPORTED, "places of %s", vk_dtype_name(y->dtype));
  struct places_params u = {
      .n = y->dim_live[0], .size = (uint32_t)tensor_numel(sums), .rank = x->rank};
  memcpy(u.dims, x->dim_live, sizeof u.dims);
  const struct kernel *row;
  TRY(choose(p, n, kernels, VK_INT32, NULL, &row));
  return dispatch(p, row, &u, div_up(u.n, 64), OPERANDS({arg_id(n, SUMS)}, {out_id(n)}));
}

/* ---- counting -------------------------------------------------------------------------------- */

/* `flat` has the numbers to add up; the places of x go to `result`. */
static sconce_status add_places(const struct expansion *x, uint32_t flat, uint32_t of,
                                uint32_t result) {
  uint32_t sums, total, count, none, zero, keep, list;
  TRY(expand_flat(x, VK_INT32, flat, &sums));
  total = graph_add_tensor(x->g, VK_INT32, 1, (const uint32_t[]){1}, x->err);
  if (total == NO_VALUE) return SCONCE_NO_MEMORY;
  TRY(expand_number(x, VK_SYMINT, 0, &count));
  TRY(expand_number(x, VK_NULL, 0, &none));
  TRY(expand_number(x, VK_INT, 0, &zero));
  TRY(expand_number(x, VK_BOOLEAN, 1, &keep));
  TRY(expand_list(x, &zero, 1, &list));
  TRY(ADD("aten.cumsum.default", flat, zero, none, sums));
  TRY(ADD("aten.sum.dim_IntList", flat, list, keep, none, total));
  TRY(ADD("et_vk.select_as_symint.default", total, zero, zero, count));
  const struct op *op = op_find(text_of("sconce.places"));
  return graph_add_own(x->g, op, (const uint32_t[]){sums, of, count, result}, 4, x->err);
}

static sconce_status add_view(const struct expansion *x, uint32_t from, uint32_t to) {
  uint32_t open, list;
  TRY(expand_number(x, VK_INT, -1, &open));
  TRY(expand_list(x, &open, 1, &list));
  return ADD("aten.view_copy.default", from, list, to);
}

/* A one for what is not zero, in one dim. */
static sconce_status add_ones(const struct expansion *x, uint32_t of, uint32_t *flat) {
  uint32_t truth, ones, zero, none;
  const struct tensor t = x->g->values[of].tensor;
  TRY(expand_tensor(x, VK_BOOL, &t, &truth));
  TRY(expand_tensor(x, VK_INT32, &t, &ones));
  TRY(expand_flat(x, VK_INT32, of, flat));
  TRY(expand_number(x, VK_INT, 0, &zero));
  TRY(expand_number(x, VK_NULL, 0, &none));
  TRY(ADD("aten.ne.Scalar", of, zero, truth));
  TRY(ADD("aten::_to_copy.out", truth, none, none, ones));
  return add_view(x, ones, *flat);
}

/* ---- operators ------------------------------------------------------------------------------- */

/* [x, out] */
static sconce_status nonzero(const struct expansion *x) {
  const struct tensor *from;
  uint32_t flat;
  TRY(expand_given(x, 0, &from));
  if (from->rank == 0)
    return fail(x->err, SCONCE_UNSUPPORTED, "the places of a tensor without dims");
  TRY(add_ones(x, x->args[0], &flat));
  return add_places(x, flat, x->args[0], x->args[1]);
}

/* [repeats, output_size or none, out] */
static sconce_status repeat_interleave(const struct expansion *x) {
  const struct tensor *from;
  TRY(expand_given(x, 0, &from));
  if (from->rank != 1 || from->dtype != VK_INT32)
    return fail(x->err, SCONCE_BAD_GRAPH, "repeats of rank %u and %s", from->rank,
                vk_dtype_name(from->dtype));
  return add_places(x, x->args[0], x->args[0], x->args[2]);
}

/* x and the mask, both in their common dims and then in one dim. */
struct masked {
  uint32_t whole, x, mask;
};

static sconce_status add_masked(const struct expansion *x, struct masked *m) {
  const struct tensor *from, *mask;
  uint32_t zeros, one, none, all;
  TRY(expand_given(x, 0, &from));
  const enum vk_dtype dtype = from->dtype;
  TRY(expand_tensor(x, VK_BOOL, from, &zeros));
  TRY(expand_given(x, 1, &mask));
  if (mask->dtype != VK_BOOL && mask->dtype != VK_UINT8)
    return fail(x->err, SCONCE_BAD_GRAPH, "a mask of %s", vk_dtype_name(mask->dtype));
  TRY(expand_broadcast(x, VK_BOOL, x->args[0], x->args[1], &all));
  TRY(expand_broadcast(x, dtype, x->args[0], x->args[1], &m->whole));
  TRY(expand_flat(x, dtype, m->whole, &m->x));
  TRY(expand_flat(x, VK_BOOL, m->whole, &m->mask));
  TRY(expand_number(x, VK_INT, 0, &one));
  TRY(expand_number(x, VK_NULL, 0, &none));
  TRY(ADD("aten::full_like.out", x->args[0], one, none, zeros));
  TRY(ADD("aten.logical_or.default", x->args[1], zeros, all));
  TRY(ADD("aten.where.self", all, x->args[0], x->args[0], m->whole));
  TRY(add_view(x, m->whole, m->x));
  return add_view(x, all, m->mask);
}

/* [x, mask, out] */
static sconce_status masked_select(const struct expansion *x) {
  struct masked m;
  uint32_t ones, places, zero;
  TRY(add_masked(x, &m));
  TRY(add_ones(x, m.mask, &ones));
  TRY(expand_flat(x, VK_INT32, m.mask, &places));
  TRY(add_places(x, ones, m.mask, places));
  TRY(expand_number(x, VK_INT, 0, &zero));
  return ADD("aten.index_select.default", m.x, zero, places, x->args[2]);
}

/* Live dims of a value as a list. */
static sconce_status add_sizes(const struct expansion *x, uint32_t of, uint32_t *list) {
  uint32_t ids[RANK_MAX], dim;
  const uint32_t rank = x->g->values[of].tensor.rank;
  for (uint32_t i = 0; i < rank; i++) {
    TRY(expand_number(x, VK_SYMINT, 0, &ids[i]));
    TRY(expand_number(x, VK_INT, i, &dim));
    TRY(ADD("sym_size.int", of, dim, ids[i]));
  }
  return expand_list(x, ids, rank, list);
}

/* [x, mask, source, out]: what the mask selects takes the source's elements one after the other. */
static sconce_status masked_scatter(const struct expansion *x) {
  struct masked m;
  uint32_t ones, sums, less, source, picked, result, zero, one, none, sizes;
  const struct tensor *from, *given;
  TRY(expand_given(x, 2, &given));
  TRY(expand_given(x, 0, &from));
  if (given->dtype != from->dtype)
    return fail(x->err, SCONCE_BAD_GRAPH, "%s into %s", vk_dtype_name(given->dtype),
                vk_dtype_name(from->dtype));
  const enum vk_dtype dtype = from->dtype;
  TRY(add_masked(x, &m));
  TRY(add_ones(x, m.mask, &ones));
  TRY(expand_flat(x, VK_INT32, m.mask, &sums));
  TRY(expand_flat(x, VK_INT32, m.mask, &less));
  TRY(expand_flat(x, dtype, x->args[2], &source));
  TRY(expand_flat(x, dtype, m.mask, &picked));
  TRY(expand_flat(x, dtype, m.mask, &result));
  TRY(expand_number(x, VK_INT, 0, &zero));
  TRY(expand_number(x, VK_INT, 1, &one));
  TRY(expand_number(x, VK_NULL, 0, &none));
  TRY(ADD("aten.cumsum.default", ones, zero, none, sums));
  TRY(ADD("aten.sub.Scalar", sums, one, one, less)); /* -1 before the first: not taken */
  TRY(add_view(x, x->args[2], source));
  TRY(ADD("aten.index_select.default", source, zero, less, picked));
  TRY(ADD("aten.where.self", m.mask, picked, m.x, result));
  TRY(add_sizes(x, m.whole, &sizes));
  return ADD("aten.view_copy.default", result, sizes, x->args[3]);
}

/* ---- masks among indices --------------------------------------------------------------------- */

static bool is_mask(const struct expansion *x, uint32_t id) {
  const struct value *v = id == NO_VALUE ? NULL : &x->g->values[id];
  return v && v->kind == VK_TENSOR && v->tensor.rank > 0 &&
         (v->tensor.dtype == VK_BOOL || v->tensor.dtype == VK_UINT8);
}

bool places_have_mask(const struct expansion *x) {
  for (uint32_t i = 0; i < RANK_MAX; i++)
    if (is_mask(x, expand_item(x, 1, i))) return true;
  return false;
}

/* A column of the places for each dim of the mask. */
static sconce_status add_columns(const struct expansion *x, uint32_t mask, uint32_t *ids,
                                 uint32_t *n) {
  uint32_t ones, places, one, at;
  const uint32_t rank = x->g->values[mask].tensor.rank;
  if (*n + rank > RANK_MAX)
    return fail(x->err, SCONCE_BAD_GRAPH, "indices of more than %d dims", RANK_MAX);
  TRY(add_ones(x, mask, &ones));
  const uint32_t most = x->g->values[ones].tensor.dim_max[0];
  places = graph_add_tensor(x->g, VK_INT32, 2, (const uint32_t[]){most, rank}, x->err);
  if (places == NO_VALUE) return SCONCE_NO_MEMORY;
  TRY(add_places(x, ones, mask, places));
  TRY(expand_number(x, VK_INT, 1, &one));
  for (uint32_t i = 0; i < rank; i++) {
    TRY(expand_flat(x, VK_INT32, ones, &ids[*n]));
    TRY(expand_number(x, VK_INT, i, &at));
    TRY(ADD("aten.select_copy.int", places, one, at, ids[(*n)++]));
  }
  return SCONCE_OK;
}

/* The list of indices with columns in place of masks. */
static sconce_status add_indices(const struct expansion *x, uint32_t *list) {
  uint32_t ids[RANK_MAX], n = 0;
  const uint32_t count = x->g->values[x->args[1]].list.n;
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t id = expand_item(x, 1, i);
    if (is_mask(x, id)) {
      TRY(add_columns(x, id, ids, &n));
      continue;
    }
    if (n == RANK_MAX)
      return fail(x->err, SCONCE_BAD_GRAPH, "indices of more than %d dims", RANK_MAX);
    ids[n++] = id;
  }
  return expand_list(x, ids, n, list);
}

sconce_status places_index(const struct expansion *x) {
  uint32_t list;
  TRY(add_indices(x, &list));
  return ADD("aten.index.Tensor", x->args[0], list, x->args[2]);
}

/* Rows of values that go to all places alike need not be counted. */
bool places_tell_values(const struct expansion *x) {
  const struct value *to = &x->g->values[x->args[0]], *values = &x->g->values[x->args[2]];
  uint32_t n = 0, dim = 0, covers = 0;
  for (uint32_t i = 0; i < RANK_MAX; i++) {
    const uint32_t id = expand_item(x, 1, i);
    if (id == NO_VALUE || x->g->values[id].kind != VK_TENSOR) continue;
    n++;
    if (is_mask(x, id)) dim = i, covers = x->g->values[id].tensor.rank;
  }
  if (!covers || to->kind != VK_TENSOR || values->kind != VK_TENSOR) return false;
  const uint32_t behind = to->tensor.rank - dim - covers; /* dims of the result behind the mask's */
  const uint32_t rank = values->tensor.rank;
  return n > 1 || (rank > behind && values->tensor.dim_max[rank - 1 - behind] != 1);
}

sconce_status places_index_put(const struct expansion *x) {
  uint32_t list;
  TRY(add_indices(x, &list));
  return ADD("aten.index_put.default", x->args[0], list, x->args[2], x->args[3], x->args[4]);
}

/* ---- the family ------------------------------------------------------------------------------ */

#define COUNTED(NAME, PORTABLE, EXPAND, N_ARGS)                                                    \
  {NAME, .expand = EXPAND, .also = PORTABLE, .n_args = N_ARGS}

const struct op ops_places[] = {
    COUNTED("aten.nonzero.default", "aten::nonzero.out", nonzero, 2),
    COUNTED("aten.masked_select.default", "aten::masked_select.out", masked_select, 3),
    COUNTED("aten.masked_scatter.default", "aten::masked_scatter.out", masked_scatter, 4),
    COUNTED("aten.repeat_interleave.Tensor", "aten::repeat_interleave.Tensor_out",
            repeat_interleave, 3),
    {"sconce.places", shape, emit, .n_args = 4, .flags = OP_OWN, .tables = TABLES(kernels)},
    {0},
};
