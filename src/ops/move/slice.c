/* Parts of a tensor along one dim, and tensors made of such parts. */
#include "ops/move/move.h"

#include <inttypes.h>
#include <string.h>

/* ---- slice ----------------------------------------------------------------------------------- */

struct slice {
  uint32_t dim, length;
  int64_t start, step;
};

static int64_t clamped(int64_t at, int64_t size) {
  if (at < 0) at += size;
  return at < 0 ? 0 : at > size ? size : at;
}

/* [x, dim, start, end, step, out] */
static sconce_status slice_of(struct plan *p, const struct node *n, struct slice *s) {
  const struct tensor *x;
  TRY(arg_tensor(p, n, 0, &x));
  int64_t start, end;
  TRY(arg_dim(p, n, 1, x->rank, &s->dim));
  int64_t size = x->dim_live[s->dim];
  TRY(arg_int_or(p, n, 2, 0, &start));
  TRY(arg_int_or(p, n, 3, size, &end));
  TRY(arg_int_or(p, n, 4, 1, &s->step));
  if (s->step < 1) return fail(p->err, SCONCE_BAD_GRAPH, "a step of %" PRId64, s->step);
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
static sconce_status select_of(struct plan *p, const struct node *n, const struct tensor **x,
                               uint32_t *dim, int64_t *index) {
  TRY(arg_tensor(p, n, 0, x));
  TRY(arg_dim(p, n, 1, (*x)->rank, dim));
  return arg_int(p, n, 2, index);
}

static sconce_status select_shape(struct plan *p, const struct node *n) {
  const struct tensor *x;
  uint32_t dim, dims[RANK_MAX], rank = 0;
  int64_t index;
  TRY(select_of(p, n, &x, &dim, &index));
  const int64_t size = x->dim_live[dim];
  if (index < -size || index >= size)
    return fail(p->err, SCONCE_BAD_ARGUMENT, "index %" PRId64 " of a dim of %" PRId64, index, size);
  for (uint32_t i = 0; i < x->rank; i++)
    if (i != dim) dims[rank++] = x->dim_live[i];
  return set_dims(p, out_id(n), dims, rank);
}

static sconce_status select_emit(struct plan *p, const struct node *n) {
  const struct tensor *x;
  uint32_t dim;
  int64_t index, stride = 1, strides[RANK_MAX] = {0};
  TRY(select_of(p, n, &x, &dim, &index));
  if (index < 0) index += x->dim_live[dim];
  for (uint32_t i = x->rank; i-- > 0; stride *= x->dim_live[i]) strides[i] = stride;
  struct move m = {.base = index * strides[dim]};
  for (uint32_t i = 0; i < x->rank; i++)
    if (i != dim) TRY(move_push(p, &m, x->dim_live[i], strides[i]));
  return move_emit(p, n, &m, arg_id(n, 0), out_id(n));
}

/* ---- split ----------------------------------------------------------------------------------- */

enum { PARTS_MAX = 64 };

/* [x, sizes, dim, outs] */
static sconce_status sizes_of(struct plan *p, const struct node *n, uint32_t *dim,
                              int64_t sizes[PARTS_MAX], uint32_t *count) {
  const struct tensor *x;
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

#define PARTS(NAME, PORTABLE, SHAPE, EMIT, N_ARGS)                                                 \
  {NAME, SHAPE, EMIT, .also = PORTABLE, .n_args = N_ARGS, .tables = TABLES(move_kernels)}

const struct op ops_slice[] = {
    PARTS("aten.slice_copy.Tensor", "aten::slice_copy.Tensor_out", slice_shape, slice_emit, 6),
    PARTS("aten.select_copy.int", "aten::select_copy.int_out", select_shape, select_emit, 4),
    {"aten.split_with_sizes_copy.default", split_shape, split_emit, .n_args = 4, .flags = OP_LIST,
     .also = "aten::split_with_sizes_copy.out", .tables = TABLES(move_kernels)},
    PARTS("aten.cat.default", "aten::cat.out", cat_shape, cat_emit, 3),
    {0},
};
