/* Views, copies and casts: the same elements in the same order. A view costs nothing where it may
 * share its source's memory; else its live bytes are copied. The dtype of a cast is the output's.
 */
#include "ops/strides/strides.h"

#include "base/checked.h"
#include "unary.wgsl.h"

#include <inttypes.h>
#include <string.h>

/* ---- kernels --------------------------------------------------------------------------------- */

/* How elements are stored: booleans are read like unsigned bytes, and all bytes written alike. */
enum storage { AS_F32, AS_F16, AS_I32, AS_U8, AS_I8, AS_BOOL };

struct problem {
  enum storage from, to;
};

static enum storage storage_of(enum vk_dtype dtype) {
  switch (dtype) {
  case VK_FLOAT32:
    return AS_F32;
  case VK_FLOAT16:
    return AS_F16;
  case VK_INT32:
    return AS_I32;
  case VK_INT8:
    return AS_I8;
  default:
    return dtype == VK_BOOL ? AS_BOOL : AS_U8;
  }
}

#define CASTS(X)                                                                                   \
  X(f32, AS_F32, f16, AS_F16)                                                                      \
  X(f32, AS_F32, i32, AS_I32)                                                                      \
  X(f32, AS_F32, byte, AS_U8)                                                                      \
  X(f32, AS_F32, bool, AS_BOOL)                                                                    \
  X(f16, AS_F16, f32, AS_F32)                                                                      \
  X(f16, AS_F16, i32, AS_I32)                                                                      \
  X(f16, AS_F16, byte, AS_U8)                                                                      \
  X(f16, AS_F16, bool, AS_BOOL)                                                                    \
  X(i32, AS_I32, f32, AS_F32)                                                                      \
  X(i32, AS_I32, f16, AS_F16)                                                                      \
  X(i32, AS_I32, byte, AS_U8)                                                                      \
  X(i32, AS_I32, bool, AS_BOOL)                                                                    \
  X(u8, AS_U8, f32, AS_F32)                                                                        \
  X(u8, AS_U8, f16, AS_F16)                                                                        \
  X(u8, AS_U8, i32, AS_I32)                                                                        \
  X(u8, AS_U8, bool, AS_BOOL)                                                                      \
  X(i8, AS_I8, f32, AS_F32)                                                                        \
  X(i8, AS_I8, f16, AS_F16)                                                                        \
  X(i8, AS_I8, i32, AS_I32)                                                                        \
  X(i8, AS_I8, bool, AS_BOOL)

#define FITS(FROM, FROM_STORAGE, TO, TO_STORAGE)                                                   \
  static bool FROM##_to_##TO(const void *problem, const struct caps *caps) {                       \
    (void)caps;                                                                                    \
    const struct problem *q = problem;                                                             \
    return q->from == (FROM_STORAGE) && q->to == (TO_STORAGE);                                     \
  }
CASTS(FITS)

#define ROW(FROM, FROM_STORAGE, TO, TO_STORAGE)                                                    \
  {#FROM "_to_" #TO, &unary_wgsl, "use=quad_" #FROM " use=to_" #TO, .fits = FROM##_to_##TO},
/* The last row is for equal elements: it moves words, four a thread. */
static const struct kernel casts[] = {
    CASTS(ROW){"words", &unary_wgsl, "use=quad_i32 use=to_i32"},
    {0},
};
static const struct kernel words[] = {{"words", &unary_wgsl, "use=quad_i32 use=to_i32"}, {0}};

/* ---- shapes ---------------------------------------------------------------------------------- */

/* A size list with at most one -1, which takes what is left of `numel`. */
static sconce_status resolve(struct plan *p, int64_t *sizes, uint32_t n, uint64_t numel,
                             uint32_t *dims) {
  uint64_t known = 1;
  uint32_t open = n;
  for (uint32_t i = 0; i < n; i++) {
    if (sizes[i] == -1 && open == n) {
      open = i;
      continue;
    }
    if (sizes[i] < 0 || sizes[i] > UINT32_MAX)
      return fail(p->err, SCONCE_BAD_ARGUMENT, "size %" PRId64 " of dim %u", sizes[i], i);
    if (!mul_u64(known, (uint64_t)sizes[i], &known))
      return fail(p->err, SCONCE_BAD_ARGUMENT, "the sizes overflow");
    dims[i] = (uint32_t)sizes[i];
  }
  uint64_t rest = open < n && known ? numel / known : 0;
  if (open < n) dims[open] = (uint32_t)rest;
  if ((open < n ? known * rest : known) != numel || (open < n && known == 0) || rest > UINT32_MAX)
    return fail(p->err, SCONCE_BAD_ARGUMENT,
                "%" PRIu64 " elements do not fill sizes whose product is %" PRIu64 "%s", numel,
                known, open < n ? " times the open one" : "");
  return SCONCE_OK;
}

/* [x, size, out] */
static sconce_status view(struct plan *p, const struct node *n) {
  const struct tensor *x = arg_tensor(p, n, 0);
  if (!x) return SCONCE_BAD_GRAPH;
  int64_t sizes[RANK_MAX];
  uint32_t dims[RANK_MAX], rank;
  TRY(arg_ints(p, n, 1, sizes, RANK_MAX, &rank));
  TRY(resolve(p, sizes, rank, tensor_numel(x), dims));
  return set_dims(p, out_id(n), dims, rank);
}

/* [x, dims, out]: drops those of the dims that the file fixes at 1; a live 1 is still a dim. */
static sconce_status squeeze(struct plan *p, const struct node *n) {
  const struct tensor *x = arg_tensor(p, n, 0);
  if (!x) return SCONCE_BAD_GRAPH;
  int64_t list[RANK_MAX];
  uint32_t count, dims[RANK_MAX], rank = 0, drop = 0;
  TRY(arg_ints(p, n, 1, list, RANK_MAX, &count));
  for (uint32_t i = 0; i < count; i++) {
    int64_t dim = list[i] < 0 ? list[i] + x->rank : list[i];
    if (dim < 0 || dim >= x->rank)
      return fail(p->err, SCONCE_BAD_GRAPH, "dim %" PRId64 " of a tensor of rank %u", list[i],
                  x->rank);
    if (x->dim_max[dim] == 1) drop |= 1u << dim;
  }
  for (uint32_t i = 0; i < x->rank; i++)
    if (!(drop >> i & 1)) dims[rank++] = x->dim_live[i];
  return set_dims(p, out_id(n), dims, rank);
}

/* [x, dim, out]: a new dim of 1 before `dim`, which may be the end. */
static sconce_status unsqueeze(struct plan *p, const struct node *n) {
  const struct tensor *x = arg_tensor(p, n, 0);
  if (!x) return SCONCE_BAD_GRAPH;
  uint32_t at, dims[RANK_MAX];
  TRY(arg_dim(p, n, 1, x->rank + 1, &at));
  if (x->rank == RANK_MAX)
    return fail(p->err, SCONCE_UNSUPPORTED, "a tensor of rank %u", x->rank + 1);
  for (uint32_t i = 0; i < x->rank + 1; i++) dims[i] = i == at ? 1 : x->dim_live[i - (i > at)];
  return set_dims(p, out_id(n), dims, x->rank + 1);
}

/* ---- emit ------------------------------------------------------------------------------------ */

static bool same_bytes(const struct tensor *x, const struct tensor *y) {
  bool to_bool = y->dtype == VK_BOOL && x->dtype != VK_BOOL;
  return x->dtype == y->dtype ||
         (vk_dtype_size(x->dtype) == 1 && vk_dtype_size(y->dtype) == 1 && !to_bool);
}

static sconce_status emit(struct plan *p, const struct node *n) {
  const struct tensor *x = arg_tensor(p, n, 0), *y = arg_tensor(p, n, n->n_args - 1);
  if (!x || !y) return SCONCE_BAD_GRAPH;
  char one[120], two[120];
  bool plain = same_bytes(x, y);
  uint64_t numel = tensor_numel(x); /* at load the maximum of a view's dims may be more */
  if ((numel != tensor_numel(y) && !p->first) || (!plain && n->op->kernels[0] != casts))
    return fail(p->err, SCONCE_BAD_GRAPH, "%s becomes %s", tensor_text(x, one),
                tensor_text(y, two));
  struct problem problem = {storage_of(x->dtype), storage_of(y->dtype)};
  if (problem.from == AS_BOOL) problem.from = AS_U8;
  if (problem.to == AS_I8) problem.to = AS_U8;
  const struct kernel *row = choose(p, plain ? words : casts, &problem);
  uint32_t size = vk_dtype_size(y->dtype);
  uint64_t part = flat_part(p, tensor_numel_max(y), 4);
  if (part == 0) part = numel;
  for (uint64_t at = 0; at < numel; at += part) {
    uint64_t some = numel - at < part ? numel - at : part;
    struct unary_params u = {.n = (uint32_t)(plain ? div_up(some * size, 4) : some)};
    TRY(dispatch(
        p, row, &u, div_up(u.n, 256),
        OPERANDS(flat_operand(p, arg_id(n, 0), at, part), flat_operand(p, out_id(n), at, part))));
  }
  return SCONCE_OK;
}

#define VIEW(NAME, SHAPE, N_ARGS)                                                                  \
  {                                                                                                \
    NAME, SHAPE, emit, .n_args = N_ARGS, .flags = OP_VIEW, .kernels = { words }                    \
  }
#define CAST(NAME, N_ARGS)                                                                         \
  {                                                                                                \
    NAME, shape_same, emit, .n_args = N_ARGS, .flags = OP_VIEW, .kernels = { casts }               \
  }

const struct op ops_copy[] = {
    VIEW("aten.view_copy.default", view, 3),
    VIEW("aten::view_copy.out", view, 3),
    VIEW("aten.squeeze_copy.dims", squeeze, 3),
    VIEW("aten::squeeze_copy.dims_out", squeeze, 3),
    VIEW("aten.unsqueeze_copy.default", unsqueeze, 3),
    VIEW("aten::unsqueeze_copy.out", unsqueeze, 3),
    VIEW("aten.clone.default", shape_same, 3),
    VIEW("aten::clone.out", shape_same, 3),
    VIEW("aten.alias_copy.default", shape_same, 2),
    VIEW("aten::alias_copy.out", shape_same, 2),
    VIEW("dim_order_ops._clone_dim_order.default", shape_same, 4),
    VIEW("dim_order_ops::_clone_dim_order.out", shape_same, 4),
    CAST("aten._to_copy.default", 8),
    CAST("dim_order_ops._to_dim_order_copy.default", 8),
    /* [x, non_blocking, dim_order or memory_format, out] */
    CAST("aten::_to_copy.out", 4),
    CAST("dim_order_ops::_to_dim_order_copy.out", 4),
    {0},
};
