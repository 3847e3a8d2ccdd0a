/* Parts of a tensor along one dim, and tensors made of such parts. */
#include "ops/move/move.h"

#include <inttypes.h>
#include <string.h>

/* ---- slice ----------------------------------------------------------------------------------- */

struct slice {
  uint32_t dim, length;
  int64_t start, step;
};
enum { SLICE, NARROW };

static int64_t clamped(int64_t at, int64_t size) {
  if (at < 0) at += size;
  return at < 0 ? 0 : at > size ? size : at;
}

/* [x, dim, start, length, out] */
static sconce_status narrow_of(struct plan *p, const struct node *n, struct slice *s) {
  const struct tensor *x;
  int64_t length;
  TRY(arg_tensor(p, n, 0, &x));
  TRY(arg_dim(p, n, 1, x->rank, &s->dim));
  TRY(arg_int(p, n, 2, &s->start));
  TRY(arg_int(p, n, 3, &length));
  const int64_t size = x->dim_live[s->dim], start = s->start;
  if (start < 0) s->start += size;
  if (s->start < 0 || length < 0 || s->start > size || length > size - s->start)
    return fail(p->err, SCONCE_BAD_ARGUMENT, "%" PRId64 " from %" PRId64 " on, of %" PRId64, length,
                start, size);
  s->length = (uint32_t)length;
  s->step = 1;
  return SCONCE_OK;
}

/* [x, dim, start, end, step, out] */
static sconce_status slice_of(struct plan *p, const struct node *n, struct slice *s) {
  if (n->op->code == NARROW) return narrow_of(p, n, s);
  const struct tensor *x;
  TRY(arg_tensor(p, n, 0, &x));
  int64_t start, end;
  TRY(arg_dim(p, n, 1, x->rank, &s->dim));
  int64_t size = x->dim_live[s->dim];
  TRY(arg_int_or(p, n, 2, 0, &start));
  TRY(arg_int_or(p, n, 3, size, &end));
  TRY(arg_int_or(p, n, 4, 1, &s->step));
  if (s->step < 1) return fail(p->err, SCONCE_BAD_GRAPH, "a step of %" PRId64, s->step);
  if (s->step > size) s->step = size ? size : 1; /* there is no second element then */
  s->start = clamped(start, size);
  end = clamped(end, size);
  s->length = end > s->start ? (uint32_t)((end - s->start - 1) / s->step + 1) : 0;
  return SCONCE_OK;
}

static sconce_status slice_shape(struct plan *p, const struct node *n) {
  struct slice s;
  TRY(slice_of(p, n, &s));
  const struct tensor *x;
  TRY(arg_tensor(p, n, 0, &x));
  uint32_t dims[RANK_MAX];
  memcpy(dims, x->dim_live, sizeof dims);
  dims[s.dim] = s.length;
  return set_dims(p, out_id(n), dims, x->rank);
}

/* y is the part of x that starts at `start` of `dim` and goes in steps. */
static sconce_status emit_part(struct plan *p, const struct node *n, uint32_t x, uint32_t y,
                               const struct slice *s) {
  const struct tensor *from = tensor_at(p, x), *to = tensor_at(p, y);
  if (!from || !to) return fail(p->err, SCONCE_BAD_GRAPH, "a part is no tensor");
  struct move m;
  TRY(move_begin(p, &m, to, from));
  m.base = s->start * m.stride[s->dim];
  m.stride[s->dim] *= s->step;
  return move_emit(p, n, &m, x, y);
}

static sconce_status slice_emit(struct plan *p, const struct node *n) {
  struct slice s;
  TRY(slice_of(p, n, &s));
  return emit_part(p, n, arg_id(n, 0), out_id(n), &s);
}

/* ---- select ---------------------------------------------------------------------------------- */

/* [x, dim, index, out] */
sconce_status select_place(struct plan *p, const struct node *n, const struct tensor **x,
                           uint32_t *dim, int64_t *index) {
  TRY(arg_tensor(p, n, 0, x));
  TRY(arg_dim(p, n, 1, (*x)->rank, dim));
  return arg_int(p, n, 2, index);
}

static sconce_status select_shape(struct plan *p, const struct node *n) {
  const struct tensor *x;
  uint32_t dim, dims[RANK_MAX], rank = 0;
  int64_t index;
  TRY(select_place(p, n, &x, &dim, &index));
  const int64_t size = x->dim_live[dim];
  if (index < -size || index >= size)
    return fail(p->err, SCONCE_BAD_ARGUMENT, "index %" PRId64 " of a dim of %" PRId64, index, size);
  for (uint32_t i = 0; i < x->rank; i++)
    if (i != dim) dims[rank++] = x->dim_live[i];
  return set_dims(p, out_id(n), dims, rank);
}

/* y is x at `index` of `dim`. */
static sconce_status emit_one(struct plan *p, const struct node *n, const struct tensor *x,
                              uint32_t dim, int64_t index, uint32_t y) {
  int64_t stride = 1, strides[RANK_MAX] = {0};
  for (uint32_t i = x->rank; i-- > 0; stride *= x->dim_live[i]) strides[i] = stride;
  struct move m = {.base = index * strides[dim]};
  for (uint32_t i = 0; i < x->rank; i++)
    if (i != dim) TRY(move_push(p, &m, x->dim_live[i], strides[i]));
  return move_emit(p, n, &m, arg_id(n, 0), y);
}

static sconce_status select_emit(struct plan *p, const struct node *n) {
  const struct tensor *x;
  uint32_t dim;
  int64_t index;
  TRY(select_place(p, n, &x, &dim, &index));
  return emit_one(p, n, x, dim, index < 0 ? index + x->dim_live[dim] : index, out_id(n));
}

/* [x, dim, outs]: all of them. */
static sconce_status unbind_shape(struct plan *p, const struct node *n) {
  const struct tensor *x;
  uint32_t dim, dims[RANK_MAX], rank = 0, count = arg_count(p, n, 2);
  TRY(arg_tensor(p, n, 0, &x));
  TRY(arg_dim(p, n, 1, x->rank, &dim));
  if (count != x->dim_live[dim])
    return fail(p->err, SCONCE_BAD_ARGUMENT, "%u results of a dim of %u", count, x->dim_live[dim]);
  for (uint32_t i = 0; i < x->rank; i++)
    if (i != dim) dims[rank++] = x->dim_live[i];
  for (uint32_t i = 0; i < count; i++) TRY(set_dims(p, arg_item(p, n, 2, i), dims, rank));
  return SCONCE_OK;
}

static sconce_status unbind_emit(struct plan *p, const struct node *n) {
  const struct tensor *x;
  uint32_t dim;
  TRY(arg_tensor(p, n, 0, &x));
  TRY(arg_dim(p, n, 1, x->rank, &dim));
  for (uint32_t i = 0; i < arg_count(p, n, 2); i++)
    TRY(emit_one(p, n, x, dim, i, arg_item(p, n, 2, i)));
  return SCONCE_OK;
}

/* ---- split ----------------------------------------------------------------------------------- */

enum { PARTS_MAX = 1024 };

/* [x, size, dim, outs]: equal ones but for the last. */
static sconce_status equal_sizes(struct plan *p, const struct node *n, uint32_t *dim,
                                 int64_t sizes[PARTS_MAX], uint32_t *count) {
  const struct tensor *x;
  int64_t size;
  TRY(arg_tensor(p, n, 0, &x));
  TRY(arg_int(p, n, 1, &size));
  TRY(arg_dim(p, n, 2, x->rank, dim));
  const int64_t all = x->dim_live[*dim];
  *count = arg_count(p, n, 3);
  const int64_t parts = size > 0 ? all / size + (all % size != 0) : 0;
  if (size < 0 || *count > PARTS_MAX || *count != (parts ? parts : 1) || (!size && all))
    return fail(p->err, SCONCE_BAD_ARGUMENT, "%u parts of %" PRId64 " for a dim of %" PRId64,
                *count, size, all);
  for (uint32_t i = 0; i < *count; i++) sizes[i] = i + 1 < *count ? size : all - i * size;
  return SCONCE_OK;
}

enum { SIZES, EQUAL };

/* [x, sizes, dim, outs] */
static sconce_status sizes_of(struct plan *p, const struct node *n, uint32_t *dim,
                              int64_t sizes[PARTS_MAX], uint32_t *count) {
  const struct tensor *x;
  if (n->op->code == EQUAL) return equal_sizes(p, n, dim, sizes, count);
  TRY(arg_tensor(p, n, 0, &x));
  TRY(arg_ints(p, n, 1, sizes, PARTS_MAX, count));
  TRY(arg_dim(p, n, 2, x->rank, dim));
  for (uint32_t i = 0; i < *count; i++)
    if (sizes[i] < 0 || sizes[i] > INT32_MAX)
      return fail(p->err, SCONCE_BAD_GRAPH, "part %u has size %" PRId64, i, sizes[i]);
  if (arg_count(p, n, 3) != *count)
    return fail(p->err, SCONCE_BAD_GRAPH, "%u outputs for %u sizes", arg_count(p, n, 3), *count);
  return SCONCE_OK;
}

static sconce_status split_shape(struct plan *p, const struct node *n) {
  uint32_t dim, count, dims[RANK_MAX];
  int64_t sizes[PARTS_MAX], sum = 0;
  const struct tensor *x;
  TRY(arg_tensor(p, n, 0, &x));
  TRY(sizes_of(p, n, &dim, sizes, &count));
  for (uint32_t i = 0; i < count; i++) sum += sizes[i];
  if (sum != x->dim_live[dim])
    return fail(p->err, SCONCE_BAD_ARGUMENT, "sizes add up to %" PRId64 ", the dim has %u", sum,
                x->dim_live[dim]);
  memcpy(dims, x->dim_live, sizeof dims);
  for (uint32_t i = 0; i < count; i++) {
    dims[dim] = (uint32_t)sizes[i];
    TRY(set_dims(p, arg_item(p, n, 3, i), dims, x->rank));
  }
  return SCONCE_OK;
}

static sconce_status split_emit(struct plan *p, const struct node *n) {
  uint32_t count;
  int64_t sizes[PARTS_MAX];
  struct slice s = {.step = 1};
  TRY(sizes_of(p, n, &s.dim, sizes, &count));
  for (uint32_t i = 0; i < count; s.start += sizes[i++]) {
    uint32_t id = arg_item(p, n, 3, i);
    const struct tensor *y = tensor_at(p, id);
    if (y && tensor_numel(y)) TRY(emit_part(p, n, arg_id(n, 0), id, &s));
  }
  return SCONCE_OK;
}

/* ---- cat ------------------------------------------------------------------------------------- */

/* PyTorch lets an empty tensor of one dim join anything. */
static bool is_nothing(const struct tensor *x) { return x->rank == 1 && x->dim_live[0] == 0; }

/* [tensors, dim, out] */
static sconce_status cat_shape(struct plan *p, const struct node *n) {
  const struct tensor *y = out_tensor(p, n);
  uint32_t dim, dims[RANK_MAX], count = arg_count(p, n, 0), seen = 0;
  TRY(arg_dim(p, n, 1, y->rank, &dim));
  uint64_t sum = 0;
  for (uint32_t i = 0; i < count; i++) {
    const struct tensor *x = tensor_at(p, arg_item(p, n, 0, i));
    if (!x) return fail(p->err, SCONCE_BAD_GRAPH, "item %u is no tensor", i);
    if (is_nothing(x)) continue;
    if (!seen++) memcpy(dims, x->dim_live, sizeof dims);
    bool alike = x->rank == y->rank;
    for (uint32_t d = 0; alike && d < y->rank; d++) alike = d == dim || dims[d] == x->dim_live[d];
    char one[120], two[120];
    if (!alike)
      return fail(p->err, SCONCE_BAD_ARGUMENT, "item %u is %s, the result %s", i,
                  tensor_text(x, one), tensor_text(y, two));
    sum += x->dim_live[dim];
  }
  if (!seen) memset(dims, 0, sizeof dims);
  if (sum > UINT32_MAX) return fail(p->err, SCONCE_BAD_ARGUMENT, "%" PRIu64 " rows", sum);
  dims[dim] = (uint32_t)sum;
  return set_dims(p, out_id(n), dims, y->rank);
}

static sconce_status cat_emit(struct plan *p, const struct node *n) {
  const struct tensor *y = out_tensor(p, n);
  uint32_t dim, at = 0;
  TRY(arg_dim(p, n, 1, y->rank, &dim));
  for (uint32_t i = 0; i < arg_count(p, n, 0); i++) {
    uint32_t id = arg_item(p, n, 0, i);
    const struct tensor *x = tensor_at(p, id);
    if (!x) return fail(p->err, SCONCE_BAD_GRAPH, "item %u is no tensor", i);
    if (tensor_numel(x) == 0) continue;
    struct move m;
    TRY(move_begin(p, &m, y, x));
    m.keep = true;
    m.from[dim] = at;
    m.size[dim] = x->dim_live[dim];
    at += x->dim_live[dim];
    TRY(move_emit(p, n, &m, id, out_id(n)));
  }
  return SCONCE_OK;
}

/* ---- rows of a loop ---------------------------------------------------------------------------
 */

/* [row, index, out]: the result, whose first dim now ends with this row, takes it there. */
static sconce_status row_shape(struct plan *p, const struct node *n) {
  const struct tensor *x, *y = out_tensor(p, n);
  uint32_t dims[RANK_MAX];
  int64_t index;
  char one[120], two[120];
  TRY(arg_tensor(p, n, 0, &x));
  TRY(arg_int(p, n, 1, &index));
  bool fits = x->rank + 1 == y->rank && x->dtype == y->dtype;
  for (uint32_t i = 0; fits && i < x->rank; i++) fits = x->dim_live[i] <= y->dim_max[i + 1];
  if (!fits)
    return fail(p->err, SCONCE_BAD_ARGUMENT, "%s is no row of %s", tensor_text(x, one),
                tensor_text(y, two));
  if (index < 0 || index >= y->dim_max[0])
    return fail(p->err, SCONCE_BAD_ARGUMENT, "row %" PRId64 " of %u", index, y->dim_max[0]);
  memcpy(dims + 1, x->dim_live, x->rank * sizeof *dims);
  dims[0] = (uint32_t)index + 1;
  return set_dims(p, out_id(n), dims, y->rank);
}

static sconce_status row_emit(struct plan *p, const struct node *n) {
  const struct tensor *y = out_tensor(p, n);
  int64_t index;
  TRY(arg_int(p, n, 1, &index));
  struct move m;
  TRY(move_begin(p, &m, y, y));
  m.keep = true;
  m.from[0] = index;
  m.size[0] = 1;
  return move_emit(p, n, &m, arg_id(n, 0), out_id(n));
}

static const struct op copy_row = {"sconce.copy_row",
                                   row_shape,
                                   row_emit,
                                   .n_args = 3,
                                   .writes = 4,
                                   .flags = OP_OWN,
                                   .tables = TABLES(move_kernels)};

/* [out, row, index]: how torch.map and scan gather what their rounds give. */
static sconce_status copy_index(const struct expansion *x) {
  const uint32_t args[] = {x->args[1], x->args[2], x->args[0]};
  return graph_add_own(x->g, &copy_row, args, 3, x->err);
}

#define PARTS(NAME, PORTABLE, SHAPE, EMIT, N_ARGS)                                                 \
  {NAME, SHAPE, EMIT, .also = PORTABLE, .n_args = N_ARGS, .tables = TABLES(move_kernels)}

const struct op ops_slice[] = {
    PARTS("aten.slice_copy.Tensor", "aten::slice_copy.Tensor_out", slice_shape, slice_emit, 6),
    {"aten.narrow_copy.default", slice_shape, slice_emit, .also = "aten::narrow_copy.out",
     .code = NARROW, .n_args = 5, .tables = TABLES(move_kernels)},
    PARTS("aten.select_copy.int", "aten::select_copy.int_out", select_shape, select_emit, 4),
    {"aten.split_with_sizes_copy.default", split_shape, split_emit, .n_args = 4, .flags = OP_LIST,
     .also = "aten::split_with_sizes_copy.out", .tables = TABLES(move_kernels)},
    {"aten.split_copy.Tensor", split_shape, split_emit, .n_args = 4, .flags = OP_LIST,
     .code = EQUAL, .also = "aten::split_copy.Tensor_out", .tables = TABLES(move_kernels)},
    {"aten.unbind_copy.int", unbind_shape, unbind_emit, .n_args = 3, .flags = OP_LIST,
     .also = "aten::unbind_copy.int_out", .tables = TABLES(move_kernels)},
    {"aten.cat.default", cat_shape, cat_emit, .also = "aten::cat.out", .n_args = 3,
     .flags = OP_JOINS, .tables = TABLES(move_kernels)},
    {"executorch_prim::et_copy_index.tensor", .expand = copy_index, .n_args = 3, .flags = OP_HOST},
    {0},
};
