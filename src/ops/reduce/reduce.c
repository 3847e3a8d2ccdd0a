/* Reductions over any set of dims. */
#include "ops/parts/parts.h"
#include "ops/strides/strides.h"

#include "reduce.wgsl.h"
#include "reduce_join.wgsl.h"
#include "reduce_part.wgsl.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct problem {
  uint64_t outputs, count;
  bool contiguous; /* the reduced elements follow each other */
};

/* One thread per output: where there are outputs enough to fill a device, and its threads would
 * read side by side, or where there is next to nothing to share. */
static bool alone(const void *problem) {
  const struct problem *q = problem;
  return q->count <= 16 || (q->outputs >= 4096 && !q->contiguous);
}

/* The same for parts, of which there are enough. */
static bool apart(const void *problem) {
  const struct problem *q = problem;
  return q->outputs >= 64 && !q->contiguous;
}

/* tile[0]: words of the output that one workgroup computes, or parts. A family has three tables:
 * all at once, parts of the elements, and from parts. */
#define SHARED .workgroup_bytes = 64 * 8
#define PAIR(NAME, SHADER, FITS, SET, DTYPE)                                                       \
  {NAME "_thread", &SHADER, "GROUP=false " SET, DTYPE, .fits = FITS, .tile = {64}}, {              \
    NAME, &SHADER, SET, DTYPE, .tile = {1}, .reference = true, SHARED                              \
  }
#define ROWS(FAMILY, SET)                                                                          \
  static const struct kernel FAMILY##_kernels[] = {                                                \
      PAIR(#FAMILY "_f32", reduce_wgsl, alone, SET " use=elem_f32", OF_F32),                       \
      PAIR(#FAMILY "_f16", reduce_wgsl, alone, SET " use=elem_f16", OF_F16),                       \
      PAIR(#FAMILY "_i32", reduce_wgsl, alone, SET " FLOATS=false use=elem_i32", OF_I32),          \
      {0}};                                                                                        \
  static const struct kernel FAMILY##_part_kernels[] = {                                           \
      PAIR(#FAMILY "_part_f32", reduce_part_wgsl, apart, SET " use=elem_f32", OF_F32),             \
      PAIR(#FAMILY "_part_f16", reduce_part_wgsl, apart, SET " use=elem_f16", OF_F16),             \
      PAIR(#FAMILY "_part_i32", reduce_part_wgsl, apart, SET " FLOATS=false use=elem_i32",         \
           OF_I32),                                                                                \
      {0}};                                                                                        \
  static const struct kernel FAMILY##_join_kernels[] = {                                           \
      {#FAMILY "_join_f32", &reduce_join_wgsl, SET " use=elem_f32", OF_F32, SHARED},               \
      {#FAMILY "_join_f16", &reduce_join_wgsl, SET " use=elem_f16", OF_F16, SHARED},               \
      {#FAMILY "_join_i32", &reduce_join_wgsl, SET " FLOATS=false use=elem_i32", OF_I32, SHARED},  \
      {0}}

ROWS(sum, "SUMS=true");
ROWS(prod, "SUMS=true PRODUCTS=true");
ROWS(max, "SUMS=false LARGEST=true");
ROWS(min, "SUMS=false LARGEST=false");
ROWS(argmax, "SUMS=false LARGEST=true PLACES=true OUT=1u");
ROWS(argmin, "SUMS=false LARGEST=false PLACES=true OUT=1u");

/* ---- arguments ------------------------------------------------------------------------------- */

/* Those with ONE take one dim. */
enum { SUM, MEAN, PRODUCT_ALL, PRODUCT_ONE, EXTREMUM, PLACE_ONE };

static bool takes_one(const struct node *n) {
  return n->op->code == PLACE_ONE || n->op->code == PRODUCT_ONE;
}

/* [x, dims, keepdim, …, out]: a bit for each dim; no list, or an empty one, means all.
 * A product or mean of all is [x, dtype, out]. */
static sconce_status dims_of(struct plan *p, const struct node *n, const struct tensor *x,
                             uint32_t *reduced, bool *keep) {
  int64_t list[RANK_MAX];
  uint32_t count = 0;
  *reduced = 0;
  *keep = false;
  if (n->n_args > 3) TRY(arg_bool(p, n, 2, keep));
  if (n->n_args == 3 || arg_is_null(p, n, 1)) {
  } else if (takes_one(n)) {
    TRY(arg_int(p, n, 1, &list[count++]));
  } else {
    TRY(arg_ints(p, n, 1, list, RANK_MAX, &count));
  }
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t rank = x->rank ? x->rank : 1; /* a number is its own only element */
    int64_t dim = list[i] < 0 ? list[i] + rank : list[i];
    if (dim < 0 || dim >= rank)
      return fail(p->err, SCONCE_BAD_GRAPH, "dim %" PRId64 " of a tensor of rank %u", list[i],
                  x->rank);
    *reduced |= 1u << dim;
  }
  if (count == 0) *reduced = (1u << RANK_MAX) - 1;
  return SCONCE_OK;
}

static sconce_status shape(struct plan *p, const struct node *n) {
  const struct tensor *x;
  TRY(arg_tensor(p, n, 0, &x));
  uint32_t reduced, dims[RANK_MAX], rank = 0;
  uint64_t count = 1;
  bool keep;
  TRY(dims_of(p, n, x, &reduced, &keep));
  for (uint32_t i = 0; i < x->rank; i++) {
    bool gone = reduced >> i & 1;
    if (gone) count *= x->dim_live[i];
    if (!gone || keep) dims[rank++] = gone ? 1 : x->dim_live[i];
  }
  if (count == 0 && n->op->code >= EXTREMUM)
    return fail(p->err, SCONCE_BAD_ARGUMENT, "the extremum of no elements");
  return set_dims(p, out_id(n), dims, rank);
}

/* For parts of any live shape. */
static sconce_status prepare(struct plan *p, struct node *n) {
  const struct tensor *x;
  uint32_t reduced;
  uint64_t outputs = 1, count = 1;
  bool keep;
  TRY(arg_tensor(p, n, 0, &x));
  TRY(dims_of(p, n, x, &reduced, &keep));
  for (uint32_t i = 0; i < x->rank; i++) *(reduced >> i & 1 ? &count : &outputs) *= x->dim_max[i];
  if (count <= PART_SPARSE) return SCONCE_OK;
  return graph_scratch(p->g, VK_INT32, 2 * parts_most(outputs, count, PART_SPARSE), &n->extra[0],
                       p->err);
}

/* ---- emit ------------------------------------------------------------------------------------ */

static struct reduce_params params_of(const struct node *n, const struct tensor *x,
                                      const struct tensor *y, uint32_t reduced,
                                      struct problem *problem) {
  uint32_t strides[RANK_MAX];
  struct nest kept = {.n_operands = 1}, inner = {.n_operands = 1};
  uint64_t count = 1;
  dense_strides(x->dim_live, x->rank, strides);
  for (uint32_t i = 0; i < x->rank; i++) {
    bool gone = reduced >> i & 1;
    nest_push(gone ? &inner : &kept, x->dim_live[i], strides[i], 0);
    if (gone) count *= x->dim_live[i];
  }
  nest_merge(&kept);
  nest_merge(&inner);
  struct reduce_params u = {.numel = (uint32_t)tensor_numel(y),
                            .count = (uint32_t)count,
                            .kept = kept.rank,
                            .reduced = inner.rank,
                            .scale = n->op->code == MEAN ? 1 / (float)count : 1};
  memcpy(u.kept_dims, kept.size, sizeof u.kept_dims);
  memcpy(u.kept_stride, kept.stride[0], sizeof u.kept_stride);
  memcpy(u.reduced_dims, inner.size, sizeof u.reduced_dims);
  memcpy(u.reduced_stride, inner.stride[0], sizeof u.reduced_stride);
  *problem = (struct problem){u.numel, count, inner.stride[0][inner.rank - 1] == 1};
  u.each = problem->contiguous ? PART_DENSE : PART_SPARSE;
  u.parts = parts_of(u.numel, count, u.each);
  return u;
}

static sconce_status emit_parts_of(struct plan *p, const struct node *n, enum vk_dtype dtype,
                                   const struct reduce_params *u, const struct problem *whole,
                                   uint64_t words) {
  const struct reduce_join_params j = {.numel = u->numel, .parts = u->parts, .scale = u->scale};
  const struct kernel *first, *second;
  TRY(choose(p, n, n->op->tables[1], dtype, whole, &first));
  TRY(choose(p, n, n->op->tables[2], dtype, whole, &second));
  TRY(dispatch(p, first, u, div_up((uint64_t)u->numel * u->parts, first->tile[0]),
               OPERANDS({arg_id(n, 0)}, {n->extra[0]})));
  return dispatch(p, second, &j, words, OPERANDS({n->extra[0]}, {out_id(n)}));
}

static sconce_status emit(struct plan *p, const struct node *n) {
  const struct tensor *x, *y = out_tensor(p, n);
  TRY(arg_tensor(p, n, 0, &x));
  uint32_t reduced;
  bool keep, place = n->op->code == PLACE_ONE;
  char one[120], two[120];
  TRY(dims_of(p, n, x, &reduced, &keep));
  if (place ? y->dtype != VK_INT32 : y->dtype != x->dtype)
    return fail(p->err, SCONCE_UNSUPPORTED, "%s becomes %s", tensor_text(x, one),
                tensor_text(y, two));
  struct problem problem;
  const struct reduce_params u = params_of(n, x, y, reduced, &problem);
  const struct kernel *row = row_for(p, n, n->op->tables[0], x->dtype, &problem);
  if (!row) return fail(p->err, SCONCE_UNSUPPORTED, "a reduction of %s", tensor_text(x, one));
  const uint64_t words = div_up(u.numel, place ? 1 : 4 / vk_dtype_size(y->dtype));
  if (u.parts > 1) return emit_parts_of(p, n, x->dtype, &u, &problem, words);
  return dispatch(p, row, &u, div_up(words, row->tile[0]), OPERANDS({arg_id(n, 0)}, {out_id(n)}));
}

#define REDUCE(NAME, PORTABLE, CODE, N_ARGS, FAMILY)                                               \
  {NAME,                                                                                           \
   shape,                                                                                          \
   emit,                                                                                           \
   prepare,                                                                                        \
   .also = PORTABLE,                                                                               \
   .code = CODE,                                                                                   \
   .n_args = N_ARGS,                                                                               \
   .flags = (CODE) == PLACE_ONE ? OP_WIDENS : OP_FOLLOWS,                                          \
   .tables = TABLES(FAMILY##_kernels, FAMILY##_part_kernels, FAMILY##_join_kernels)}

const struct op ops_reduce[] = {
    REDUCE("aten.sum.dim_IntList", "aten::sum.IntList_out", SUM, 5, sum),
    REDUCE("aten.mean.dim", "aten::mean.out", MEAN, 5, sum),
    REDUCE("aten.mean.default", "aten::mean.dtype_out", MEAN, 3, sum),
    REDUCE("aten.prod.dim_int", "aten::prod.int_out", PRODUCT_ONE, 5, prod),
    REDUCE("aten.prod.default", "aten::prod.out", PRODUCT_ALL, 3, prod),
    REDUCE("aten.amax.default", "aten::amax.out", EXTREMUM, 4, max),
    REDUCE("aten.amin.default", "aten::amin.out", EXTREMUM, 4, min),
    REDUCE("aten.argmax.default", "aten::argmax.out", PLACE_ONE, 4, argmax),
    REDUCE("aten.argmin.default", "aten::argmin.out", PLACE_ONE, 4, argmin),
    {0},
};
