/* The elements of a tensor in another order, some of them several times, some from outside. */
#include "graph/rewrite.h"
#include "ops/move/move.h"

#include <inttypes.h>
#include <string.h>

static void strides_of(const struct tensor *x, int64_t strides[RANK_MAX]) {
  int64_t stride = 1;
  for (uint32_t i = x->rank; i-- > 0; stride *= x->dim_live[i]) strides[i] = stride;
}

/* ---- permute --------------------------------------------------------------------------------- */

/* Which dim of x each dim of the output is. */
enum { BY_LIST, BY_PAIR, BY_TWO };

sconce_status permute_order(struct plan *p, const struct node *n, const struct tensor *x,
                            uint32_t order[RANK_MAX]) {
  uint32_t a = 0, b = 1, count = 0, seen = 0;
  int64_t list[RANK_MAX];
  for (uint32_t i = 0; i < x->rank; i++) order[i] = i;
  if (n->op->code != BY_LIST) {
    if (x->rank < 2) return SCONCE_OK;
    if (n->op->code == BY_PAIR) {
      TRY(arg_dim(p, n, 1, x->rank, &a));
      TRY(arg_dim(p, n, 2, x->rank, &b));
    }
    order[a] = b;
    order[b] = a;
    return SCONCE_OK;
  }
  TRY(arg_ints(p, n, 1, list, RANK_MAX, &count));
  for (uint32_t i = 0; i < count; i++) {
    int64_t dim = list[i] < 0 ? list[i] + x->rank : list[i];
    if (dim >= 0 && dim < x->rank) seen |= 1u << (order[i] = (uint32_t)dim);
  }
  if (count != x->rank || seen != (1u << x->rank) - 1)
    return fail(p->err, SCONCE_BAD_GRAPH, "the list is no permutation of %u dims", x->rank);
  return SCONCE_OK;
}

static sconce_status permute_shape(struct plan *p, const struct node *n) {
  const struct tensor *x;
  TRY(arg_tensor(p, n, 0, &x));
  uint32_t order[RANK_MAX], dims[RANK_MAX];
  TRY(permute_order(p, n, x, order));
  for (uint32_t i = 0; i < x->rank; i++) dims[i] = x->dim_live[order[i]];
  return set_dims(p, out_id(n), dims, x->rank);
}

static sconce_status permute_emit(struct plan *p, const struct node *n) {
  const struct tensor *x;
  TRY(arg_tensor(p, n, 0, &x));
  uint32_t order[RANK_MAX];
  int64_t strides[RANK_MAX];
  TRY(permute_order(p, n, x, order));
  strides_of(x, strides);
  struct move m = {0};
  for (uint32_t i = 0; i < x->rank; i++)
    TRY(move_push(p, &m, x->dim_live[order[i]], strides[order[i]]));
  return move_emit(p, n, &m, arg_id(n, 0), out_id(n));
}

/* ---- expand and repeat ----------------------------------------------------------------------- */

/* [x, size, implicit, out]: -1 keeps a dim of x. */
static sconce_status expand_shape(struct plan *p, const struct node *n) {
  const struct tensor *x;
  TRY(arg_tensor(p, n, 0, &x));
  int64_t sizes[RANK_MAX];
  uint32_t rank, dims[RANK_MAX];
  TRY(arg_ints(p, n, 1, sizes, RANK_MAX, &rank));
  if (rank < x->rank) return fail(p->err, SCONCE_BAD_GRAPH, "rank %u to %u", x->rank, rank);
  for (uint32_t i = 0; i < rank; i++) {
    bool new_dim = i < rank - x->rank;
    uint32_t old = new_dim ? 1 : x->dim_live[i - (rank - x->rank)];
    int64_t size = sizes[i] == -1 && !new_dim ? old : sizes[i];
    if (size < 0 || size > UINT32_MAX || (old != 1 && size != old))
      return fail(p->err, SCONCE_BAD_ARGUMENT, "dim %u of %u becomes %" PRId64, i, old, sizes[i]);
    dims[i] = (uint32_t)size;
  }
  return set_dims(p, out_id(n), dims, rank);
}

/* y is x broadcast to y's live dims. */
static sconce_status emit_broadcast(struct plan *p, const struct node *n, uint32_t x, uint32_t y) {
  const struct tensor *from = tensor_at(p, x), *to = tensor_at(p, y);
  int64_t strides[RANK_MAX];
  struct move m = {0};
  strides_of(from, strides);
  for (uint32_t i = 0; i < to->rank; i++) {
    bool repeats = i + from->rank < to->rank || from->dim_live[i + from->rank - to->rank] == 1;
    TRY(move_push(p, &m, to->dim_live[i], repeats ? 0 : strides[i + from->rank - to->rank]));
  }
  return move_emit(p, n, &m, x, y);
}

static sconce_status expand_emit(struct plan *p, const struct node *n) {
  const struct tensor *x, *y = out_tensor(p, n);
  TRY(arg_tensor(p, n, 0, &x));
  if (x->rank > y->rank)
    return fail(p->err, SCONCE_BAD_GRAPH, "an expansion from rank %u to %u", x->rank, y->rank);
  return emit_broadcast(p, n, arg_id(n, 0), out_id(n));
}

/* [x, repeats, out]: repeats may be longer than x's dims. */
static sconce_status repeats_of(struct plan *p, const struct node *n, const struct tensor *x,
                                int64_t repeats[RANK_MAX], uint32_t *rank) {
  TRY(arg_ints(p, n, 1, repeats, RANK_MAX, rank));
  if (*rank < x->rank)
    return fail(p->err, SCONCE_BAD_GRAPH, "%u repeats of %u dims", *rank, x->rank);
  for (uint32_t i = 0; i < *rank; i++)
    if (repeats[i] < 0 || repeats[i] > INT32_MAX)
      return fail(p->err, SCONCE_BAD_ARGUMENT, "%" PRId64 " repeats", repeats[i]);
  return SCONCE_OK;
}

static sconce_status repeat_shape(struct plan *p, const struct node *n) {
  const struct tensor *x;
  TRY(arg_tensor(p, n, 0, &x));
  int64_t repeats[RANK_MAX];
  uint32_t rank, dims[RANK_MAX];
  TRY(repeats_of(p, n, x, repeats, &rank));
  for (uint32_t i = 0; i < rank; i++) {
    uint32_t old = i < rank - x->rank ? 1 : x->dim_live[i - (rank - x->rank)];
    if ((uint64_t)repeats[i] * old > UINT32_MAX)
      return fail(p->err, SCONCE_BAD_ARGUMENT, "%" PRId64 " repeats of %u", repeats[i], old);
    dims[i] = (uint32_t)repeats[i] * old;
  }
  return set_dims(p, out_id(n), dims, rank);
}

static sconce_status repeat_emit(struct plan *p, const struct node *n) {
  const struct tensor *x, *y = out_tensor(p, n);
  TRY(arg_tensor(p, n, 0, &x));
  int64_t repeats[RANK_MAX], strides[RANK_MAX];
  uint32_t rank;
  TRY(repeats_of(p, n, x, repeats, &rank));
  strides_of(x, strides);
  struct move m = {0};
  for (uint32_t i = 0; i < rank; i++) {
    uint32_t k = i - (rank - x->rank), old = i < rank - x->rank ? 1 : x->dim_live[k];
    TRY(move_push(p, &m, old ? y->dim_live[i] / old : 0, 0));
    TRY(move_push(p, &m, old, old == 1 ? 0 : strides[k]));
  }
  return move_emit(p, n, &m, arg_id(n, 0), out_id(n));
}

/* ---- flip ------------------------------------------------------------------------------------ */

/* [x, dims, out] */
static sconce_status flip_emit(struct plan *p, const struct node *n) {
  const struct tensor *x, *y = out_tensor(p, n);
  TRY(arg_tensor(p, n, 0, &x));
  int64_t list[RANK_MAX];
  uint32_t count, seen = 0;
  TRY(arg_ints(p, n, 1, list, RANK_MAX, &count));
  struct move m;
  TRY(move_begin(p, &m, y, x));
  for (uint32_t i = 0; i < count; i++) {
    int64_t dim = list[i] < 0 ? list[i] + x->rank : list[i];
    if (x->rank == 0 && (list[i] == 0 || list[i] == -1)) continue; /* a number either way round */
    if (dim < 0 || dim >= x->rank || seen >> dim & 1)
      return fail(p->err, SCONCE_BAD_GRAPH, "dim %" PRId64 " of %u, or twice", list[i], x->rank);
    seen |= 1u << dim;
    m.base += (x->dim_live[dim] - 1) * m.stride[dim];
    m.stride[dim] = -m.stride[dim];
  }
  return move_emit(p, n, &m, arg_id(n, 0), out_id(n));
}

/* ---- pixel shuffle --------------------------------------------------------------------------- */

/* [x, r, out]: (…, C r r, H, W) becomes (…, C, H r, W r). */
static sconce_status factor_of(struct plan *p, const struct node *n, const struct tensor *x,
                               uint32_t *r) {
  int64_t factor;
  TRY(arg_int(p, n, 1, &factor));
  if (x->rank < 3 || factor < 1 || factor > 4096)
    return fail(p->err, SCONCE_BAD_GRAPH, "a factor of %" PRId64 " for a rank of %u", factor,
                x->rank);
  if (x->dim_live[x->rank - 3] % (factor * factor))
    return fail(p->err, SCONCE_BAD_ARGUMENT, "a factor of %" PRId64 " for %u channels", factor,
                x->dim_live[x->rank - 3]);
  *r = (uint32_t)factor;
  return SCONCE_OK;
}

static sconce_status shuffle_shape(struct plan *p, const struct node *n) {
  const struct tensor *x;
  TRY(arg_tensor(p, n, 0, &x));
  uint32_t r = 1, dims[RANK_MAX];
  TRY(factor_of(p, n, x, &r));
  memcpy(dims, x->dim_live, sizeof dims);
  dims[x->rank - 3] /= r * r;
  dims[x->rank - 2] *= r;
  dims[x->rank - 1] *= r;
  return set_dims(p, out_id(n), dims, x->rank);
}

static sconce_status shuffle_emit(struct plan *p, const struct node *n) {
  const struct tensor *x;
  TRY(arg_tensor(p, n, 0, &x));
  uint32_t r = 1;
  int64_t strides[RANK_MAX];
  TRY(factor_of(p, n, x, &r));
  strides_of(x, strides);
  struct move m = {0};
  const uint32_t *dims = x->dim_live + x->rank - 3;
  int64_t channel = strides[x->rank - 3];
  for (uint32_t i = 0; i + 3 < x->rank; i++) TRY(move_push(p, &m, x->dim_live[i], strides[i]));
  TRY(move_push(p, &m, dims[0] / (r * r), channel * r * r));
  TRY(move_push(p, &m, dims[1], dims[2]));
  TRY(move_push(p, &m, r, channel * r));
  TRY(move_push(p, &m, dims[2], 1));
  TRY(move_push(p, &m, r, channel));
  return move_emit(p, n, &m, arg_id(n, 0), out_id(n));
}

/* [x, r, out]: (…, C, H r, W r) becomes (…, C r r, H, W). */
static sconce_status unshuffle_shape(struct plan *p, const struct node *n) {
  const struct tensor *x;
  int64_t r;
  TRY(arg_tensor(p, n, 0, &x));
  TRY(arg_int(p, n, 1, &r));
  uint32_t dims[RANK_MAX];
  memcpy(dims, x->dim_live, sizeof dims);
  if (x->rank < 3 || r < 1 || r > 4096)
    return fail(p->err, SCONCE_BAD_GRAPH, "a factor of %" PRId64 " for a rank of %u", r, x->rank);
  if (dims[x->rank - 2] % r || dims[x->rank - 1] % r)
    return fail(p->err, SCONCE_BAD_ARGUMENT, "a factor of %" PRId64 " for %u x %u pixels", r,
                dims[x->rank - 2], dims[x->rank - 1]);
  dims[x->rank - 3] *= (uint32_t)(r * r);
  dims[x->rank - 2] /= (uint32_t)r;
  dims[x->rank - 1] /= (uint32_t)r;
  return set_dims(p, out_id(n), dims, x->rank);
}

static sconce_status unshuffle_emit(struct plan *p, const struct node *n) {
  const struct tensor *x;
  int64_t strides[RANK_MAX], factor;
  TRY(arg_tensor(p, n, 0, &x));
  TRY(arg_int(p, n, 1, &factor));
  strides_of(x, strides);
  struct move m = {0};
  const uint32_t *dims = x->dim_live + x->rank - 3, r = (uint32_t)factor;
  for (uint32_t i = 0; i + 2 < x->rank; i++) TRY(move_push(p, &m, x->dim_live[i], strides[i]));
  TRY(move_push(p, &m, r, dims[2]));
  TRY(move_push(p, &m, r, 1));
  TRY(move_push(p, &m, dims[1] / r, (int64_t)dims[2] * r));
  TRY(move_push(p, &m, dims[2] / r, r));
  return move_emit(p, n, &m, arg_id(n, 0), out_id(n));
}

/* ---- strides --------------------------------------------------------------------------------- */

/* [x, size, stride, storage_offset, out]: x's elements as they lie in memory. */
static sconce_status strided_of(struct plan *p, const struct node *n, int64_t size[RANK_MAX],
                                int64_t stride[RANK_MAX], int64_t *base, uint32_t *rank) {
  const struct tensor *x;
  uint32_t count;
  TRY(arg_tensor(p, n, 0, &x));
  TRY(arg_ints(p, n, 1, size, RANK_MAX, rank));
  TRY(arg_ints(p, n, 2, stride, RANK_MAX, &count));
  TRY(arg_int_or(p, n, 3, 0, base));
  const int64_t numel = (int64_t)tensor_numel(x);
  int64_t last = *base, empty = 0;
  bool fits = count == *rank && last >= 0 && last < INT32_MAX;
  for (uint32_t i = 0; fits && i < count; i++) {
    fits = size[i] >= 0 && size[i] <= INT32_MAX && stride[i] >= 0 && stride[i] <= INT32_MAX;
    if (!fits) break;
    empty |= size[i] == 0;
    last += size[i] ? (size[i] - 1) * stride[i] : 0;
    fits = last <= INT32_MAX;
  }
  if (!fits || (!empty && last >= numel))
    return fail(p->err, SCONCE_BAD_ARGUMENT,
                "%u sizes and %u strides reach element %" PRId64 " of %" PRId64, *rank, count, last,
                numel);
  return SCONCE_OK;
}

static sconce_status strided_shape(struct plan *p, const struct node *n) {
  int64_t size[RANK_MAX], stride[RANK_MAX], base;
  uint32_t rank = 0, dims[RANK_MAX];
  TRY(strided_of(p, n, size, stride, &base, &rank));
  for (uint32_t i = 0; i < rank; i++) dims[i] = (uint32_t)size[i];
  return set_dims(p, out_id(n), dims, rank);
}

static sconce_status strided_emit(struct plan *p, const struct node *n) {
  int64_t size[RANK_MAX], stride[RANK_MAX];
  uint32_t rank = 0;
  struct move m = {0};
  TRY(strided_of(p, n, size, stride, &m.base, &rank));
  for (uint32_t i = 0; i < rank; i++) TRY(move_push(p, &m, (uint32_t)size[i], stride[i]));
  return move_emit(p, n, &m, arg_id(n, 0), out_id(n));
}

/* [x, offset, dim1, dim2, out]: the diagonal becomes the last dim. */
struct diagonal {
  uint32_t dim[2], length;
  int64_t first[2]; /* where it starts in both */
};

static sconce_status diagonal_of(struct plan *p, const struct node *n, const struct tensor *x,
                                 struct diagonal *d) {
  int64_t offset;
  TRY(arg_int(p, n, 1, &offset));
  for (uint32_t i = 0; i < 2; i++) TRY(arg_dim(p, n, 2 + i, x->rank, &d->dim[i]));
  if (d->dim[0] == d->dim[1])
    return fail(p->err, SCONCE_BAD_GRAPH, "the diagonal of dim %u with itself", d->dim[0]);
  const int64_t rows = x->dim_live[d->dim[0]], columns = x->dim_live[d->dim[1]];
  if (offset < -rows) offset = -rows; /* beyond the corner there is nothing either way */
  if (offset > columns) offset = columns;
  d->first[0] = offset < 0 ? -offset : 0;
  d->first[1] = offset < 0 ? 0 : offset;
  const int64_t down = rows - d->first[0], along = columns - d->first[1];
  const int64_t length = down < along ? down : along;
  d->length = length > 0 ? (uint32_t)length : 0;
  return SCONCE_OK;
}

static sconce_status diagonal_shape(struct plan *p, const struct node *n) {
  const struct tensor *x;
  struct diagonal d = {0};
  uint32_t dims[RANK_MAX], rank = 0;
  TRY(arg_tensor(p, n, 0, &x));
  TRY(diagonal_of(p, n, x, &d));
  for (uint32_t i = 0; i < x->rank; i++)
    if (i != d.dim[0] && i != d.dim[1]) dims[rank++] = x->dim_live[i];
  dims[rank++] = d.length;
  return set_dims(p, out_id(n), dims, rank);
}

static sconce_status diagonal_emit(struct plan *p, const struct node *n) {
  const struct tensor *x;
  struct diagonal d = {0};
  int64_t strides[RANK_MAX] = {0};
  TRY(arg_tensor(p, n, 0, &x));
  TRY(diagonal_of(p, n, x, &d));
  strides_of(x, strides);
  const int64_t down = strides[d.dim[0]], along = strides[d.dim[1]];
  struct move m = {.base = d.first[0] * down + d.first[1] * along};
  for (uint32_t i = 0; i < x->rank; i++)
    if (i != d.dim[0] && i != d.dim[1]) TRY(move_push(p, &m, x->dim_live[i], strides[i]));
  TRY(move_push(p, &m, d.length, down + along));
  return move_emit(p, n, &m, arg_id(n, 0), out_id(n));
}

/* ---- copy into ------------------------------------------------------------------------------- */

/* What lives in x's memory has its elements already. */
static sconce_status copy_to(struct plan *p, const struct node *n, uint32_t x, uint32_t y) {
  const struct tensor *from = tensor_at(p, x), *to = tensor_at(p, y);
  if (!from || !to || from->rank > to->rank)
    return fail(p->err, SCONCE_BAD_GRAPH, "the target has a smaller rank or is no tensor");
  return from->root == to->root ? SCONCE_OK : emit_broadcast(p, n, x, y);
}

static sconce_status copy_shape(struct plan *p, const struct node *n) {
  const struct tensor *self, *source;
  char one[120], two[120];
  TRY(arg_tensor(p, n, 0, &self));
  TRY(arg_tensor(p, n, 1, &source));
  bool fits = source->rank <= self->rank;
  for (uint32_t i = 1; fits && i <= source->rank; i++) {
    uint32_t from = source->dim_live[source->rank - i];
    fits = from == 1 || from == self->dim_live[self->rank - i];
  }
  if (!fits)
    return fail(p->err, SCONCE_BAD_ARGUMENT, "%s does not broadcast to %s",
                tensor_text(source, one), tensor_text(self, two));
  return shape_same(p, n);
}

/* [self, source, non_blocking, out]: self, which is also the result, takes the source's elements.
 */
static sconce_status copy_into(struct plan *p, const struct node *n) {
  const struct tensor *self, *source, *out = out_tensor(p, n);
  TRY(arg_tensor(p, n, 0, &self));
  TRY(arg_tensor(p, n, 1, &source));
  TRY(copy_to(p, n, arg_id(n, 1), arg_id(n, 0)));
  return out->root == self->root ? SCONCE_OK : copy_to(p, n, arg_id(n, 1), out_id(n));
}

/* [self, source, non_blocking, out]: the same into a tensor of its own. */
static sconce_status copy_emit(struct plan *p, const struct node *n) {
  return copy_to(p, n, arg_id(n, 1), out_id(n));
}

#define MOVE(NAME, PORTABLE, SHAPE, EMIT, N_ARGS)                                                  \
  {NAME, SHAPE, EMIT, .also = PORTABLE, .n_args = N_ARGS, .tables = TABLES(move_kernels)}
#define PERMUTE(NAME, ALSO, CODE, N_ARGS)                                                          \
  {NAME,                                                                                           \
   permute_shape,                                                                                  \
   permute_emit,                                                                                   \
   .also = ALSO,                                                                                   \
   .code = CODE,                                                                                   \
   .n_args = N_ARGS,                                                                               \
   .tables = TABLES(move_kernels)}

/* Dims of 1 change places, and nothing else: the elements stay in their order. */
#define STILL(NAME, CODE, N_ARGS)                                                                  \
  {NAME,                                                                                           \
   permute_shape,                                                                                  \
   permute_emit,                                                                                   \
   .code = CODE,                                                                                   \
   .n_args = N_ARGS,                                                                               \
   .flags = OP_OWN | OP_VIEW,                                                                      \
   .tables = TABLES(move_kernels)}
static const struct op still[] = {[BY_LIST] = STILL("sconce.permute_still", BY_LIST, 3),
                                  [BY_PAIR] = STILL("sconce.transpose_still", BY_PAIR, 4),
                                  [BY_TWO] = STILL("sconce.t_still", BY_TWO, 2)};

static sconce_status still_at(struct rewrite *r, uint32_t i) {
  struct node *n = &r->g->nodes[i];
  sconce_error err = {0};
  struct plan p = {r->g, n, &err};
  const struct tensor *x = n->n_args ? tensor_at(&p, n->args[0]) : NULL;
  uint32_t order[RANK_MAX], last = 0;
  if (n->op->shape != permute_shape || !x || !tensor_at(&p, out_id(n)) ||
      permute_order(&p, n, x, order) != SCONCE_OK)
    return SCONCE_OK;
  for (uint32_t k = 0; k < x->rank; k++) {
    if (x->dim_max[order[k]] == 1) continue;
    if (order[k] < last) return SCONCE_OK;
    last = order[k];
  }
  n->op = &still[n->op->code];
  return SCONCE_OK;
}

const struct pass passes_move[] = {{"still", still_at}, {0}};

const struct op ops_permute[] = {
    PERMUTE("aten.permute_copy.default", "aten::permute_copy.out aten.permute.default", BY_LIST, 3),
    PERMUTE("aten.transpose_copy.int", "aten::transpose_copy.int_out aten.transpose.int", BY_PAIR,
            4),
    PERMUTE("aten.t_copy.default", "aten::t_copy.out", BY_TWO, 2),
    MOVE("aten.expand_copy.default", "aten::expand_copy.out", expand_shape, expand_emit, 4),
    MOVE("aten.repeat.default", "aten::repeat.out", repeat_shape, repeat_emit, 3),
    MOVE("aten.flip.default", "aten::flip.out", shape_same, flip_emit, 3),
    MOVE("aten.pixel_shuffle.default", "aten::pixel_shuffle.out", shuffle_shape, shuffle_emit, 3),
    MOVE("aten.pixel_unshuffle.default", "aten::pixel_unshuffle.out", unshuffle_shape,
         unshuffle_emit, 3),
    MOVE("aten.as_strided_copy.default", "aten::as_strided_copy.out", strided_shape, strided_emit,
         5),
    MOVE("aten.diagonal_copy.default", "aten::diagonal_copy.out", diagonal_shape, diagonal_emit, 5),
    MOVE("aten.copy.default", "aten::copy.out", copy_shape, copy_emit, 4),
    {"aten::copy_", copy_shape, copy_into, .n_args = 4, .writes = 1, .flags = OP_SELF,
     .tables = TABLES(move_kernels)},
    {0},
};
