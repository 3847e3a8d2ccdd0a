/* The k best elements along a dim, and where they are. */
#include "ops/parts/parts.h"

#include "graph/op.h"

#include "topk_rank.wgsl.h"
#include "topk_select.wgsl.h"
#include "topk_small.wgsl.h"
#include "topk_take.wgsl.h"

#include <inttypes.h>
#include <string.h>

/* ---- kernels --------------------------------------------------------------------------------- */

#define ROWS(WGSL, ...)                                                                            \
  {{"f32", &WGSL, "IN=F32", OF_F32, __VA_ARGS__},                                                  \
   {"f16", &WGSL, "IN=F16", OF_F16, __VA_ARGS__},                                                  \
   {"i32", &WGSL, "IN=I32", OF_I32, __VA_ARGS__},                                                  \
   {"u8", &WGSL, "IN=BYTES", OF_U8 | OF_BOOL, __VA_ARGS__},                                        \
   {"i8", &WGSL, "IN=SIGNED_BYTES", OF_I8, __VA_ARGS__},                                           \
   {0}}
static const struct kernel small_kernels[] = ROWS(topk_small_wgsl, .threads = 64);
static const struct kernel select_kernels[] =
    ROWS(topk_select_wgsl, .threads = 256, .workgroup_bytes = 1060);
static const struct kernel again_kernels[] = {
    {"found", &topk_select_wgsl, "IN=FOUND", .threads = 256, .workgroup_bytes = 1060}, {0}};
static const struct kernel rank_kernels[] = {{"any", &topk_rank_wgsl, ""}, {0}};
static const struct kernel take_kernels[] = {
    {"words", &topk_take_wgsl, "", OF_F32 | OF_I32},
    {"halves", &topk_take_wgsl, "BITS=16u", OF_F16},
    {"bytes", &topk_take_wgsl, "BITS=8u", OF_U8 | OF_BOOL | OF_I8},
    {0},
};
/* Every element with every other one; longer lines are searched first: of lines longer than PART
 * first parts, then what was found there. A search reads its line up to nine times, and some
 * devices stop loops after 65,535 turns, so one workgroup may see SEARCH_MAX; likewise a thread
 * that compares one of the best with all others, 16 a turn. Of a sorted line all are the best: one
 * dispatch compares each with each, and a longer one would take a small GPU too long. */
enum { SMALL = 512, PART = 65536, SEARCH_MAX = 1 << 20, BEST_MAX = 1 << 19, SORT_MAX = 1 << 16 };

/* ---- arguments ------------------------------------------------------------------------------- */

/* SEVERAL: [x, k, dim, largest, sorted, …, out], sorted in any case
 * LARGEST, LEAST: [x, dim, keepdim, …, out], one of them
 * ALL: [x, dim, descending, …, out]
 * ALL_STABLE: [x, stable, dim, descending, …, out], stable in any case
 * out is [values, indices]; portable operators name both before it, too. */
enum { SEVERAL, LARGEST, LEAST, ALL, ALL_STABLE };

struct lines {
  uint32_t dim;
  bool keep; /* the dim */
  struct topk_params u;
};

static uint32_t result(struct plan *p, const struct node *n, uint32_t k) {
  return arg_item(p, n, n->n_args - 1, k);
}

static sconce_status lines_of(struct plan *p, const struct node *n, const uint32_t *dims,
                              struct lines *l) {
  const struct tensor *x;
  TRY(arg_tensor(p, n, 0, &x));
  const uint32_t code = n->op->code, dim_at = code == SEVERAL || code == ALL_STABLE ? 2 : 1;
  const bool one = code == LARGEST || code == LEAST;
  bool largest = code == LARGEST;
  *l = (struct lines){.keep = true};
  if (x->rank) TRY(arg_dim(p, n, dim_at, x->rank, &l->dim));
  TRY(arg_bool(p, n, dim_at + 1, one ? &l->keep : &largest));
  const uint32_t size = x->rank ? dims[l->dim] : 1, smallest = largest ? 0 : one ? 2 : 1;
  int64_t k = one ? 1 : size;
  if (code == SEVERAL) TRY(arg_int(p, n, 1, &k));
  if (!one && code != SEVERAL && size > SORT_MAX)
    return fail(p->err, SCONCE_UNSUPPORTED, "a line of %u elements to sort, at most %d", size,
                SORT_MAX);
  if (size > SMALL && k > BEST_MAX)
    return fail(p->err, SCONCE_UNSUPPORTED, "the %" PRId64 " best of %u elements, at most %d", k,
                size, BEST_MAX);
  if (k < 0 || k > size)
    return fail(p->err, SCONCE_BAD_ARGUMENT, "%" PRId64 " elements of %u", k, size);
  l->u = (struct topk_params){
      .lines = 1, .size = size, .inner = 1, .k = (uint32_t)k, .smallest = smallest};
  for (uint32_t i = 0; i < x->rank; i++) {
    if (i != l->dim) l->u.lines *= dims[i];
    if (i > l->dim) l->u.inner *= dims[i];
  }
  for (l->u.each = PART;; l->u.each *= 2) {
    l->u.parts = parts_of(l->u.lines, size, l->u.each);
    if (l->u.parts == 1) l->u.each = size;
    if ((uint64_t)l->u.parts * l->u.k <= SEARCH_MAX || l->u.parts == 1) return SCONCE_OK;
    if (l->u.each < SEARCH_MAX) continue;
    return fail(p->err, SCONCE_UNSUPPORTED, "the %" PRId64 " best of %u elements", k, size);
  }
}

static sconce_status shape(struct plan *p, const struct node *n) {
  const struct tensor *x;
  TRY(arg_tensor(p, n, 0, &x));
  struct lines l;
  uint32_t dims[RANK_MAX], rank = 0;
  if (arg_count(p, n, n->n_args - 1) != 2)
    return fail(p->err, SCONCE_BAD_GRAPH, "%u results, expected 2", arg_count(p, n, n->n_args - 1));
  TRY(lines_of(p, n, x->dim_live, &l));
  for (uint32_t i = 0; i < x->rank; i++)
    if (i != l.dim || l.keep) dims[rank++] = i == l.dim ? l.u.k : x->dim_live[i];
  TRY(set_dims(p, result(p, n, 0), dims, rank));
  return set_dims(p, result(p, n, 1), dims, rank);
}

/* extra[0]: the order; extra[1]: keys and indices that were found in long lines, extra[2]: in parts
 * of them. */
static sconce_status prepare(struct plan *p, struct node *n) {
  const struct tensor *x, *values = tensor_at(p, result(p, n, 0));
  struct lines l;
  TRY(arg_tensor(p, n, 0, &x));
  if (!values) return fail(p->err, SCONCE_BAD_GRAPH, "the result is no tensor");
  TRY(lines_of(p, n, x->dim_max, &l));
  const uint64_t most = tensor_numel_max(values);
  TRY(graph_scratch(p->g, VK_INT32, most, &n->extra[0], p->err));
  if (l.u.size <= SMALL) return SCONCE_OK;
  TRY(graph_scratch(p->g, VK_INT32, 2 * most, &n->extra[1], p->err));
  if (l.u.size <= PART) return SCONCE_OK;
  const uint64_t found = parts_most(most, l.u.size, PART), bound = (uint64_t)l.u.lines * SEARCH_MAX;
  return graph_scratch(p->g, VK_INT32, 2 * (found < bound ? found : bound), &n->extra[2], p->err);
}

/* ---- emit ------------------------------------------------------------------------------------ */

static sconce_status emit_order(struct plan *p, const struct node *n, const struct tensor *x,
                                const struct topk_params *u) {
  const struct operand from = {arg_id(n, 0)}, order = {n->extra[0]}, found = {n->extra[1]};
  char text[120];
  const bool small = u->size <= SMALL;
  const struct kernel *rank,
      *row = row_for(p, n, small ? small_kernels : select_kernels, x->dtype, NULL);
  if (!row) return fail(p->err, SCONCE_UNSUPPORTED, "the order of %s", tensor_text(x, text));
  if (small)
    return dispatch(p, row, u, div_up((uint64_t)u->lines * u->size, 64), OPERANDS(from, order));
  const struct operand part = {n->extra[2]};
  TRY(dispatch(p, row, u, (uint64_t)u->lines * u->parts,
               OPERANDS(from, u->parts > 1 ? part : found)));
  if (u->parts > 1) {
    const uint32_t size = u->parts * u->k;
    const struct topk_params v = {
        .lines = u->lines, .size = size, .inner = 1, .k = u->k, .parts = 1, .each = size};
    TRY(choose(p, n, again_kernels, x->dtype, NULL, &row));
    TRY(dispatch(p, row, &v, u->lines, OPERANDS(part, found)));
  }
  struct topk_rank_params r = {.lines = u->lines, .k = u->k};
  TRY(choose(p, n, rank_kernels, x->dtype, NULL, &rank));
  return dispatch(p, rank, &r, div_up((uint64_t)u->lines * u->k, 64), OPERANDS(found, order));
}

static sconce_status emit(struct plan *p, const struct node *n) {
  const struct tensor *x, *values = tensor_at(p, result(p, n, 0)),
                          *indices = tensor_at(p, result(p, n, 1));
  TRY(arg_tensor(p, n, 0, &x));
  if (!values || !indices) return fail(p->err, SCONCE_BAD_GRAPH, "a result is no tensor");
  char one[120], two[120];
  if (values->dtype != x->dtype || indices->dtype != VK_INT32)
    return fail(p->err, SCONCE_UNSUPPORTED, "values are %s, indices %s", tensor_text(values, one),
                tensor_text(indices, two));
  struct lines l;
  TRY(lines_of(p, n, x->dim_live, &l));
  TRY(emit_order(p, n, x, &l.u));
  const struct kernel *take;
  TRY(choose(p, n, take_kernels, x->dtype, NULL, &take));
  struct topk_take_params u = {
      .n = l.u.lines * l.u.k, .size = l.u.size, .inner = l.u.inner, .k = l.u.k};
  return dispatch(p, take, &u, div_up(div_up(u.n, 4 / vk_dtype_size(x->dtype)), 64),
                  OPERANDS({arg_id(n, 0)}, {n->extra[0]}, {result(p, n, 0)}, {result(p, n, 1)}));
}

#define TOPK(NAME, CODE, N_ARGS)                                                                   \
  {NAME,                                                                                           \
   shape,                                                                                          \
   emit,                                                                                           \
   prepare,                                                                                        \
   .code = CODE,                                                                                   \
   .n_args = N_ARGS,                                                                               \
   .flags = OP_LIST,                                                                               \
   .tables = TABLES(small_kernels, select_kernels, again_kernels, rank_kernels, take_kernels)}

const struct op ops_topk[] = {
    TOPK("aten.topk.default", SEVERAL, 6),
    TOPK("aten::topk.values", SEVERAL, 8),
    TOPK("aten.max.dim", LARGEST, 4),
    TOPK("aten::max.dim_max", LARGEST, 6),
    TOPK("aten.min.dim", LEAST, 4),
    TOPK("aten::min.dim_min", LEAST, 6),
    TOPK("aten::sort.values", ALL, 6),
    TOPK("aten::sort.values_stable", ALL_STABLE, 7),
    {0},
};
