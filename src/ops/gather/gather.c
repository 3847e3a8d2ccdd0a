/* Rows or elements of a tensor by an index tensor. */
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

/* ROWS: [x, [index], out], the output's dims are the index's and x's without the first.
 * SELECTS: [x, dim, index, out], the index has one dim.
 * ELEMENTS: [x, dim, index, sparse, out], the output has the index's dims. */
enum { ROWS, SELECTS, ELEMENTS };

/* Indices that the host knows must lie within the dim. */
static sconce_status check_host(struct plan *p, const struct tensor *index, int64_t size) {
  for (uint64_t i = 0; index->host && !p->first && i < tensor_numel(index); i++) {
    int32_t at;
    memcpy(&at, (const uint8_t *)index->host + 4 * i, 4);
    if (at < -size || at >= size)
      return fail(p->err, SCONCE_BAD_ARGUMENT, "index %" PRId32 " of a dim of %" PRId64, at, size);
  }
  return SCONCE_OK;
}

static sconce_status gather_of(struct plan *p, const struct node *n, struct gather *g) {
  const struct tensor *x = arg_tensor(p, n, 0);
  if (!x) return SCONCE_BAD_GRAPH;
  *g = (struct gather){.x = arg_id(n, 0), .index = arg_id(n, 2)};
  if (n->op->variant != ROWS) {
    TRY(arg_dim(p, n, 1, x->rank, &g->dim));
  } else {
    g->index = NO_VALUE;
    for (uint32_t i = 0; i < arg_count(p, n, 1); i++) {
      if (!tensor_at(p, arg_item(p, n, 1, i))) continue;
      if (g->index != NO_VALUE || i >= x->rank)
        return fail(p->err, SCONCE_UNSUPPORTED, "an index of dim %u, expected only one", i);
      g->dim = i;
      g->index = arg_item(p, n, 1, i);
    }
  }
  const struct tensor *index = tensor_at(p, g->index);
  if (!index) return fail(p->err, SCONCE_UNSUPPORTED, "no index tensor for dim %u", g->dim);
  char text[120];
  if (index->dtype != VK_INT32)
    return fail(p->err, SCONCE_UNSUPPORTED, "the index is %s", tensor_text(index, text));
  uint32_t rank = n->op->variant == ELEMENTS ? x->rank : 1;
  if (x->rank == 0 || (n->op->variant != ROWS && index->rank != rank))
    return fail(p->err, SCONCE_BAD_GRAPH, "the index of a tensor of rank %u is %s", x->rank,
                tensor_text(index, text));
  return check_host(p, index, x->dim_live[g->dim]);
}

static sconce_status shape(struct plan *p, const struct node *n) {
  struct gather g;
  TRY(gather_of(p, n, &g));
  const struct tensor *x = tensor_at(p, g.x), *index = tensor_at(p, g.index);
  uint32_t dims[2 * RANK_MAX], rank = 0;
  if (n->op->variant == ELEMENTS) return set_dims(p, out_id(n), index->dim_live, index->rank);
  for (uint32_t i = 0; i < g.dim; i++) dims[rank++] = x->dim_live[i];
  for (uint32_t i = 0; i < index->rank; i++) dims[rank++] = index->dim_live[i];
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
  if (n->op->variant == ELEMENTS) {
    for (uint32_t i = 0; i < x->rank; i++)
      nest_push(nest, index->dim_live[i], i == g->dim ? 0 : strides[i], steps[i]);
  } else {
    for (uint32_t i = 0; i < g->dim; i++) nest_push(nest, x->dim_live[i], strides[i], 0);
    for (uint32_t i = 0; i < index->rank; i++) nest_push(nest, index->dim_live[i], 0, steps[i]);
    for (uint32_t i = g->dim + 1; i < x->rank; i++) nest_push(nest, x->dim_live[i], strides[i], 0);
  }
  nest_merge(nest);
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

static sconce_status emit(struct plan *p, const struct node *n) {
  struct gather g;
  TRY(gather_of(p, n, &g));
  const struct tensor *x = tensor_at(p, g.x), *y = arg_tensor(p, n, n->n_args - 1);
  if (!y) return SCONCE_BAD_GRAPH;
  char one[120], two[120];
  if (x->dtype != y->dtype || x->dim_live[g.dim] > INT32_MAX)
    return fail(p->err, SCONCE_BAD_GRAPH, "%s becomes %s", tensor_text(x, one),
                tensor_text(y, two));
  struct nest nest;
  loops_of(n, &g, x, tensor_at(p, g.index), &nest);
  if (nest.rank > LOOPS_MAX)
    return fail(p->err, SCONCE_UNSUPPORTED, "more than %d dims to gather along", LOOPS_MAX);
  uint32_t strides[RANK_MAX], size = vk_dtype_size(y->dtype);
  dense_strides(x->dim_live, x->rank, strides);
  uint32_t stride = strides[g.dim];
  uint32_t unit = divisible(&nest, stride, 16 / size)  ? 16
                  : divisible(&nest, stride, 4 / size) ? 4
                                                       : size;
  uint32_t k = unit < 4 ? 1 : unit / size;
  struct gather_params u = {.numel = (uint32_t)(tensor_numel(y) / k),
                            .rank = nest.rank,
                            .axis = x->dim_live[g.dim],
                            .axis_stride = stride / k};
  nest.size[nest.rank - 1] /= k;
  for (uint32_t i = 0; i + 1 < nest.rank; i++) nest.stride[0][i] /= k;
  memcpy(u.dims, nest.size, sizeof u.dims);
  memcpy(u.stride, nest.stride[0], sizeof u.stride);
  memcpy(u.step, nest.stride[1], sizeof u.step);
  const struct kernel *row = choose(p, kernels, &(struct unit){unit});
  return dispatch(p, row, &u, div_up(div_up(u.numel, unit < 4 ? 4 / unit : 1), 64),
                  OPERANDS({g.x}, {g.index}, {out_id(n)}));
}

#define GATHER(NAME, VARIANT, N_ARGS)                                                              \
  {                                                                                                \
    NAME, shape, emit, .variant = VARIANT, .n_args = N_ARGS, .kernels = { kernels }                \
  }

const struct op ops_gather[] = {
    GATHER("aten.index.Tensor", ROWS, 3),
    GATHER("aten::index.Tensor_out", ROWS, 3),
    GATHER("aten.index_select.default", SELECTS, 4),
    GATHER("aten::index_select.out", SELECTS, 4),
    GATHER("aten.gather.default", ELEMENTS, 5),
    GATHER("aten::gather.out", ELEMENTS, 5),
    {0},
};
