/* Rows or elements of a tensor by an index tensor, or by several. */
#include "ops/indices/indices.h"
#include "ops/places/places.h"
#include "ops/strides/strides.h"

#include "gather.wgsl.h"

#include <inttypes.h>
#include <string.h>

enum { LOOPS_MAX = 12 };

static const struct kernel kernels[] = {
    UNIT_KERNELS(gather_wgsl),
    {0},
};

/* ---- arguments ------------------------------------------------------------------------------- */

/* What is gathered: `dim` of x, by the index tensor. */
struct gather {
  uint32_t x, index, dim;
};

/* ROWS: [x, [index], out], the output's dims are the index's and x's without the indexed ones.
 * SELECTS: [x, dim, index, out], the index has one dim.
 * ELEMENTS: [x, dim, index, sparse, out], the output has the index's dims. */
enum { ROWS, SELECTS, ELEMENTS };

/* Indices that the host knows must lie within the dim. */
static sconce_status check_host(struct plan *p, const struct tensor *index, int64_t size) {
  for (uint64_t i = 0; index->host && i < tensor_numel(index); i++) {
    int32_t at;
    memcpy(&at, (const uint8_t *)index->host + 4 * i, 4);
    if (at < -size || at >= size)
      return fail(p->err, SCONCE_BAD_ARGUMENT, "index %" PRId32 " of a dim of %" PRId64, at, size);
  }
  return SCONCE_OK;
}

/* A number counts as one row of itself, an index that is one as a list of one. */
static uint32_t at_least_one(uint32_t rank) { return rank ? rank : 1; }
static uint32_t rows_along(const struct tensor *x, uint32_t dim) {
  return x->rank ? x->dim_live[dim] : 1;
}

static sconce_status gather_of(struct plan *p, const struct node *n, struct gather *g) {
  const struct tensor *x;
  TRY(arg_tensor(p, n, 0, &x));
  *g = (struct gather){.x = arg_id(n, 0), .index = arg_id(n, 2)};
  if (n->op->code != ROWS) {
    TRY(arg_dim(p, n, 1, at_least_one(x->rank), &g->dim));
  } else {
    g->index = NO_VALUE;
    for (uint32_t i = 0; i < arg_count(p, n, 1); i++) {
      if (!tensor_at(p, arg_item(p, n, 1, i))) continue;
      if (i >= x->rank) return fail(p->err, SCONCE_BAD_GRAPH, "index %u of rank %u", i, x->rank);
      g->dim = i;
      g->index = arg_item(p, n, 1, i);
    }
  }
  const struct tensor *index = tensor_at(p, g->index);
  if (!index) return fail(p->err, SCONCE_UNSUPPORTED, "no index tensor for dim %u", g->dim);
  char text[120];
  if (index->dtype != VK_INT32)
    return fail(p->err, SCONCE_UNSUPPORTED, "the index is %s", tensor_text(index, text));
  uint32_t rank = n->op->code == ELEMENTS ? at_least_one(x->rank) : 1;
  if (n->op->code != ROWS && at_least_one(index->rank) != rank)
    return fail(p->err, SCONCE_BAD_GRAPH, "the index of a tensor of rank %u is %s", x->rank,
                tensor_text(index, text));
  return SCONCE_OK;
}

static sconce_status shape(struct plan *p, const struct node *n) {
  struct gather g;
  TRY(gather_of(p, n, &g));
  const struct tensor *x = tensor_at(p, g.x), *index = tensor_at(p, g.index);
  TRY(check_host(p, index, rows_along(x, g.dim)));
  uint32_t dims[2 * RANK_MAX], rank = 0;
  if (n->op->code == ELEMENTS) return set_dims(p, out_id(n), index->dim_live, index->rank);
  if (x->rank == 0) return set_dims(p, out_id(n), dims, 0);
  for (uint32_t i = 0; i < g.dim; i++) dims[rank++] = x->dim_live[i];
  for (uint32_t i = 0; i < index->rank; i++) dims[rank++] = index->dim_live[i];
  if (n->op->code == SELECTS && index->rank == 0) dims[rank++] = 1;
  for (uint32_t i = g.dim + 1; i < x->rank; i++) dims[rank++] = x->dim_live[i];
  return set_dims(p, out_id(n), dims, rank);
}

/* ---- emit ------------------------------------------------------------------------------------ */

/* Operand 0 is x without the indexed dim, operand 1 the index. */
static void loops_of(const struct node *n, const struct gather *g, const struct tensor *x,
                     const struct tensor *index, struct nest *nest) {
  uint32_t strides[RANK_MAX], steps[RANK_MAX];
  dense_strides(x->dim_live, x->rank, strides);
  dense_strides(index->dim_live, index->rank, steps);
  *nest = (struct nest){.n_operands = 2};
  if (n->op->code == ELEMENTS) {
    for (uint32_t i = 0; i < index->rank; i++)
      nest_push(nest, index->dim_live[i], i == g->dim ? 0 : strides[i], steps[i]);
  } else {
    for (uint32_t i = 0; i < g->dim; i++) nest_push(nest, x->dim_live[i], strides[i], 0);
    for (uint32_t i = 0; i < index->rank; i++) nest_push(nest, index->dim_live[i], 0, steps[i]);
    for (uint32_t i = g->dim + 1; i < x->rank; i++) nest_push(nest, x->dim_live[i], strides[i], 0);
  }
}

/* May k elements that follow each other move as one? */
static bool divisible(const struct nest *nest, uint32_t axis_stride, uint32_t k) {
  uint32_t last = nest->rank - 1;
  if (k == 1) return true;
  if (nest->stride[0][last] != 1 || nest->stride[1][last] != 0 || nest->size[last] % k)
    return false;
  for (uint32_t i = 0; i < last; i++)
    if (nest->stride[0][i] % k) return false;
  return axis_stride % k == 0;
}

/* `axis` rows of x are `stride` elements apart; the index tensor says which. */
static sconce_status emit_loops(struct plan *p, const struct node *n, struct nest nest,
                                uint32_t index, uint32_t axis, uint32_t stride) {
  const struct tensor *x, *y = out_tensor(p, n);
  char one[120], two[120];
  TRY(arg_tensor(p, n, 0, &x));
  if (x->dtype != y->dtype || axis > INT32_MAX)
    return fail(p->err, SCONCE_BAD_GRAPH, "%s becomes %s", tensor_text(x, one),
                tensor_text(y, two));
  nest_merge(&nest);
  if (nest.rank > LOOPS_MAX)
    return fail(p->err, SCONCE_UNSUPPORTED, "more than %d dims to gather along", LOOPS_MAX);
  uint32_t size = vk_dtype_size(y->dtype);
  uint32_t unit = divisible(&nest, stride, 16 / size)  ? 16
                  : divisible(&nest, stride, 4 / size) ? 4
                                                       : size;
  uint32_t k = unit < 4 ? 1 : unit / size;
  struct gather_params u = {.numel = (uint32_t)(tensor_numel(y) / k),
                            .rank = nest.rank,
                            .axis = axis,
                            .axis_stride = stride / k};
  nest.size[nest.rank - 1] /= k;
  for (uint32_t i = 0; i + 1 < nest.rank; i++) nest.stride[0][i] /= k;
  memcpy(u.dims, nest.size, sizeof u.dims);
  memcpy(u.stride, nest.stride[0], sizeof u.stride);
  memcpy(u.step, nest.stride[1], sizeof u.step);
  const struct kernel *row;
  TRY(choose(p, n, kernels, y->dtype, &(struct unit){unit}, &row));
  return dispatch(p, row, &u, div_up(div_up(u.numel, unit < 4 ? 4 / unit : 1), 64),
                  OPERANDS({arg_id(n, 0)}, {index}, {out_id(n)}));
}

static sconce_status emit(struct plan *p, const struct node *n) {
  struct gather g;
  TRY(gather_of(p, n, &g));
  const struct tensor *x = tensor_at(p, g.x);
  struct nest nest;
  uint32_t strides[RANK_MAX];
  loops_of(n, &g, x, tensor_at(p, g.index), &nest);
  dense_strides(x->dim_live, x->rank, strides);
  const uint32_t stride = x->rank ? strides[g.dim] : 1;
  return emit_loops(p, n, nest, g.index, rows_along(x, g.dim), stride);
}

/* ---- several indices ------------------------------------------------------------------------- */

static bool several(const struct plan *p, const struct node *n) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < arg_count(p, n, 1); i++)
    count += tensor_at(p, arg_item(p, n, 1, i)) != NULL;
  return count > 1;
}

static sconce_status read_several(struct plan *p, const struct node *n, struct indices *ix,
                                  struct index_loops *loops) {
  const struct tensor *x;
  TRY(arg_tensor(p, n, 0, &x));
  TRY(indices_of(p, n, 1, x, ix));
  return indices_loops(p, x, ix, loops);
}

static sconce_status rows_prepare(struct plan *p, struct node *n) {
  return several(p, n) ? indices_scratch(p, n, 1, 0) : SCONCE_OK;
}

static sconce_status rows_shape(struct plan *p, const struct node *n) {
  const struct tensor *x;
  struct indices ix;
  struct index_loops loops;
  if (!several(p, n)) return shape(p, n);
  TRY(read_several(p, n, &ix, &loops));
  TRY(arg_tensor(p, n, 0, &x));
  TRY(indices_check(p, x, &ix));
  return set_dims(p, out_id(n), loops.dims, loops.rank);
}

static sconce_status rows_emit(struct plan *p, const struct node *n) {
  const struct tensor *x;
  struct indices ix;
  struct index_loops loops;
  struct nest nest = {.n_operands = 2};
  if (!several(p, n)) return emit(p, n);
  TRY(read_several(p, n, &ix, &loops));
  TRY(arg_tensor(p, n, 0, &x));
  TRY(indices_emit(p, n, x, &ix, n->extra[0]));
  for (uint32_t i = 0; i < loops.rank; i++)
    nest_push(&nest, loops.dims[i], loops.stride[i], loops.step[i]);
  return emit_loops(p, n, nest, n->extra[0], indices_rows(x, &ix), indices_row(x, &ix));
}

#define GATHER(NAME, PORTABLE, CODE, N_ARGS)                                                       \
  {NAME, shape, emit, .also = PORTABLE, .code = CODE, .n_args = N_ARGS, .tables = TABLES(kernels)}

const struct op ops_gather[] = {
    {"aten.index.Tensor", rows_shape, rows_emit, rows_prepare, .also = "aten::index.Tensor_out",
     .expand = places_index, .expands = places_have_mask, .code = ROWS, .n_args = 3,
     .tables = TABLES(kernels, indices_kernels)},
    GATHER("aten.index_select.default", "aten::index_select.out", SELECTS, 4),
    GATHER("aten.gather.default", "aten::gather.out", ELEMENTS, 5),
    {0},
};
