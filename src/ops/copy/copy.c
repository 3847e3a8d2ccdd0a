/* Views, copies and casts: the same elements in the same order. A view costs nothing where it may
 * share its source's memory; else its live bytes are copied. The dtype of a cast is the output's.
 */
#include "ops/strides/strides.h"

#include "base/checked.h"
#include "unary.wgsl.h"

#include <inttypes.h>
#include <string.h>

/* ---- kernels --------------------------------------------------------------------------------- */

/* What the cast makes: booleans are read like unsigned bytes, and all bytes written alike. */
static enum vk_dtype stored(enum vk_dtype dtype) { return dtype == VK_INT8 ? VK_UINT8 : dtype; }

#define MAKES(NAME, DTYPE)                                                                         \
  static bool NAME(const void *dtype) { return *(const enum vk_dtype *)dtype == (DTYPE); }
MAKES(to_f32, VK_FLOAT32)
MAKES(to_f16, VK_FLOAT16)
MAKES(to_i32, VK_INT32)
MAKES(to_byte, VK_UINT8)
MAKES(to_bool, VK_BOOL)

#define ROW(FROM, TO, DTYPES)                                                                      \
  {#FROM "_to_" #TO, &unary_wgsl, "use=quad_" #FROM " use=to_" #TO, DTYPES, .fits = to_##TO}
static const struct kernel casts[] = {
    ROW(f32, f16, OF_F32),
    ROW(f32, i32, OF_F32),
    ROW(f32, byte, OF_F32),
    ROW(f32, bool, OF_F32),
    ROW(f16, f32, OF_F16),
    ROW(f16, i32, OF_F16),
    ROW(f16, byte, OF_F16),
    ROW(f16, bool, OF_F16),
    ROW(i32, f32, OF_I32),
    ROW(i32, f16, OF_I32),
    ROW(i32, byte, OF_I32),
    ROW(i32, bool, OF_I32),
    ROW(u8, f32, OF_U8 | OF_BOOL),
    ROW(u8, f16, OF_U8 | OF_BOOL),
    ROW(u8, i32, OF_U8 | OF_BOOL),
    ROW(u8, bool, OF_U8 | OF_BOOL),
    ROW(i8, f32, OF_I8),
    ROW(i8, f16, OF_I8),
    ROW(i8, i32, OF_I8),
    ROW(i8, bool, OF_I8),
    {0},
};
/* For equal elements: it moves words, four a thread. */
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
  const struct tensor *x;
  TRY(arg_tensor(p, n, 0, &x));
  int64_t sizes[RANK_MAX];
  uint32_t dims[RANK_MAX], rank;
  TRY(arg_ints(p, n, 1, sizes, RANK_MAX, &rank));
  TRY(resolve(p, sizes, rank, tensor_numel(x), dims));
  return set_dims(p, out_id(n), dims, rank);
}

/* [x, dims or a dim, out]: drops those of the dims that the file fixes at 1; a live 1 is still a
 * dim. */
static sconce_status squeeze(struct plan *p, const struct node *n) {
  const struct tensor *x;
  TRY(arg_tensor(p, n, 0, &x));
  int64_t list[RANK_MAX];
  uint32_t count, dims[RANK_MAX], rank = 0, drop = 0;
  if (arg_is_int(p, n, 1, list))
    count = 1;
  else
    TRY(arg_ints(p, n, 1, list, RANK_MAX, &count));
  for (uint32_t i = 0; i < count; i++) {
    int64_t dim = list[i] < 0 ? list[i] + x->rank : list[i];
    if (x->rank == 0 && (list[i] == 0 || list[i] == -1)) continue; /* a number has no dim to drop */
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
  const struct tensor *x;
  TRY(arg_tensor(p, n, 0, &x));
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

enum { VIEWS, CASTS };

static sconce_status emit(struct plan *p, const struct node *n) {
  const struct tensor *x, *y = out_tensor(p, n);
  TRY(arg_tensor(p, n, 0, &x));
  char one[120], two[120];
  const bool plain = same_bytes(x, y);
  const uint64_t numel = tensor_numel(x); /* at load the maximum of a view's dims may be more */
  if (!plain && n->op->code != CASTS)
    return fail(p->err, SCONCE_BAD_GRAPH, "%s becomes %s", tensor_text(x, one),
                tensor_text(y, two));
  const enum vk_dtype to = stored(y->dtype);
  const struct kernel *row;
  TRY(choose(p, n, plain ? words : casts, x->dtype, &to, &row));
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

#define VIEW(NAME, PORTABLE, SHAPE, N_ARGS)                                                        \
  {NAME, SHAPE, emit, .also = PORTABLE, .n_args = N_ARGS, .flags = OP_VIEW, .tables = TABLES(words)}
#define CAST(NAME, N_ARGS)                                                                         \
  {NAME,                                                                                           \
   shape_same,                                                                                     \
   emit,                                                                                           \
   .n_args = N_ARGS,                                                                               \
   .flags = OP_VIEW,                                                                               \
   .code = CASTS,                                                                                  \
   .tables = TABLES(casts, words)}

const struct op ops_copy[] = {
    VIEW("aten.view_copy.default", "aten::view_copy.out executorch_prim::et_view.default", view, 3),
    VIEW("aten.squeeze_copy.dims",
         "aten::squeeze_copy.dims_out aten.squeeze_copy.dim aten::squeeze_copy.dim_out", squeeze,
         3),
    VIEW("aten.unsqueeze_copy.default", "aten::unsqueeze_copy.out", unsqueeze, 3),
    VIEW("aten.clone.default", "aten::clone.out", shape_same, 3),
    VIEW("aten.alias_copy.default",
         "aten::alias_copy.out aten.detach_copy.default aten::detach_copy.out "
         "aten.lift_fresh_copy.default aten::lift_fresh_copy.out et_copy::_h2d_copy.out "
         "et_copy::_d2h_copy.out",
         shape_same, 2),
    VIEW("dim_order_ops._clone_dim_order.default", "dim_order_ops::_clone_dim_order.out",
         shape_same, 4),
    CAST("aten._to_copy.default", 8),
    CAST("dim_order_ops._to_dim_order_copy.default", 8),
    /* [x, non_blocking, dim_order or memory_format, out] */
    CAST("aten::_to_copy.out", 4),
    CAST("dim_order_ops::_to_dim_order_copy.out", 4),
    {0},
};
