/* A tensor with a slice of it replaced. */
#include "graph/op.h"

#include "slice_over.wgsl.h"
#include "slice_put.wgsl.h"
#include "slice_put_params.wgsl.h"

#include <inttypes.h>
#include <string.h>

static const struct kernel kernels[] = {
    {"words", &slice_put_wgsl, "", OF_F32 | OF_I32},
    {"halves", &slice_put_wgsl, "BITS=16u", OF_F16},
    {"bytes", &slice_put_wgsl, "BITS=8u", OF_BOOL | OF_U8 | OF_I8},
    {0},
};

static const struct kernel over_kernels[] = {
    {"words", &slice_over_wgsl, "", OF_F32 | OF_I32},
    {0},
};

/* SLICE: [x, source, dim, start, end, step, out]; ONE: [x, source, dim, index, out], and the source
 * lacks the dim. */
enum { SLICE, ONE };
enum { X, SOURCE, DIM, START, END, STEP };

/* A bound counted from the end if negative, cut to the dim. */
static sconce_status bound(struct plan *p, const struct node *n, uint32_t i, int64_t absent,
                           int64_t size, int64_t *out) {
  TRY(arg_int_or(p, n, i, absent, out));
  if (*out < 0) *out += size;
  if (*out < 0) *out = 0;
  if (*out > size) *out = size;
  return SCONCE_OK;
}

static sconce_status range_of(struct plan *p, const struct node *n, int64_t size,
                              struct slice_put_params *u) {
  int64_t start, end, step = 1;
  if (n->op->code == ONE) {
    TRY(arg_int(p, n, START, &start));
    const int64_t given = start;
    if (start < 0) start += size;
    if (start < 0 || start >= size)
      return fail(p->err, SCONCE_BAD_ARGUMENT, "index %" PRId64 " of a dim of %" PRId64, given,
                  size);
    end = start + 1;
  } else {
    TRY(bound(p, n, START, 0, size, &start));
    TRY(bound(p, n, END, size, size, &end));
    TRY(arg_int(p, n, STEP, &step));
  }
  if (step < 1) return fail(p->err, SCONCE_BAD_GRAPH, "a step of %" PRId64, step);
  if (step > size) step = size ? size : 1; /* there is no second element then */
  u->start = (uint32_t)start;
  u->step = (uint32_t)step;
  u->count = end > start ? (uint32_t)div_up((uint64_t)(end - start), (uint64_t)step) : 0;
  return SCONCE_OK;
}

/* The source has x's dims but for the sliced one, which has the slice's size or, for ONE, lacks. */
static sconce_status check_source(struct plan *p, const struct node *n, const struct tensor *x,
                                  uint32_t dim, uint32_t count) {
  const struct tensor *source;
  uint32_t dims[RANK_MAX], rank = 0;
  char one[120], two[120];
  TRY(arg_tensor(p, n, SOURCE, &source));
  for (uint32_t i = 0; i < x->rank; i++)
    if (i != dim || n->op->code == SLICE) dims[rank++] = i == dim ? count : x->dim_live[i];
  if (source->dtype == x->dtype && source->rank == rank &&
      memcmp(source->dim_live, dims, rank * sizeof *dims) == 0)
    return SCONCE_OK;
  return fail(p->err, SCONCE_BAD_ARGUMENT, "%u elements of dim %u of %s from %s", count, dim,
              tensor_text(x, one), tensor_text(source, two));
}

static sconce_status read_call(struct plan *p, const struct node *n, struct slice_put_params *u) {
  const struct tensor *x;
  uint32_t dim;
  TRY(arg_tensor(p, n, X, &x));
  TRY(arg_dim(p, n, DIM, x->rank, &dim));
  *u = (struct slice_put_params){
      .n = (uint32_t)tensor_numel(x), .size = x->dim_live[dim], .inner = 1};
  for (uint32_t i = dim + 1; i < x->rank; i++) u->inner *= x->dim_live[i];
  TRY(range_of(p, n, u->size, u));
  return check_source(p, n, x, dim, u->count);
}

static sconce_status shape(struct plan *p, const struct node *n) {
  struct slice_put_params u;
  TRY(read_call(p, n, &u));
  return shape_same(p, n);
}

static sconce_status emit(struct plan *p, const struct node *n) {
  const struct tensor *x, *y = out_tensor(p, n);
  const struct kernel *row;
  struct slice_put_params u = {0};
  char one[120], two[120];
  TRY(read_call(p, n, &u));
  TRY(arg_tensor(p, n, X, &x));
  if (x->dtype != y->dtype)
    return fail(p->err, SCONCE_BAD_GRAPH, "%s becomes %s", tensor_text(x, one),
                tensor_text(y, two));
  if (arg_id(n, X) == out_id(n)) {
    TRY(choose(p, n, over_kernels, x->dtype, NULL, &row));
    return dispatch(p, row, &u, div_up(tensor_numel(tensor_at(p, arg_id(n, SOURCE))), 64),
                    OPERANDS({arg_id(n, SOURCE)}, {out_id(n)}));
  }
  TRY(choose(p, n, kernels, x->dtype, NULL, &row));
  return dispatch(p, row, &u, div_up(div_up(u.n, 4 / vk_dtype_size(x->dtype)), 64),
                  OPERANDS({arg_id(n, X)}, {arg_id(n, SOURCE)}, {out_id(n)}));
}

const struct op ops_slice_put[] = {
    {"aten.slice_scatter.default", shape, emit, .also = "aten::slice_scatter.out", .code = SLICE,
     .n_args = 7, .flags = OP_SELF_WORDS, .tables = TABLES(kernels, over_kernels)},
    {"aten.select_scatter.default", shape, emit, .also = "aten::select_scatter.out", .code = ONE,
     .n_args = 5, .flags = OP_SELF_WORDS, .tables = TABLES(kernels, over_kernels)},
    {0},
};
