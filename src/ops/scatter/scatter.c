/* Elements of a tensor replaced by others, or with others added, where an index tensor says. Of
 * several for one place the last counts. */
#include "ops/scatter/scatter.h"
#include "ops/compound/expand.h"
#include "ops/halves/halves.h"
#include "ops/strides/strides.h"

#include "base/half.h"

#include <inttypes.h>
#include <string.h>

/* ---- arguments ------------------------------------------------------------------------------- */

/* [x, dim, index, source or value, out] */
enum { X, DIM, INDEX, SOURCE, OUT, ARGS };

/* Indices that the host knows must lie within the dim. */
static sconce_status check_host(struct plan *p, const struct tensor *index, uint32_t size) {
  for (uint64_t i = 0; index->host && i < tensor_numel(index); i++) {
    int32_t at;
    memcpy(&at, (const uint8_t *)index->host + 4 * i, 4);
    if (at < 0 || (uint32_t)at >= size)
      return fail(p->err, SCONCE_BAD_ARGUMENT, "index %" PRId32 " of a dim of %u", at, size);
  }
  return SCONCE_OK;
}

/* The index has no dim larger than x, but for the indexed one, nor than the source. */
static sconce_status check_dims(struct plan *p, const struct tensor *x, const struct tensor *index,
                                const struct tensor *source, uint32_t dim) {
  bool fits = index->rank == x->rank && (!source || source->rank == x->rank);
  for (uint32_t i = 0; fits && i < x->rank; i++) {
    fits = i == dim || index->dim_live[i] <= x->dim_live[i];
    if (source && index->dim_live[i] > source->dim_live[i]) fits = false;
  }
  char one[120], two[120], three[120];
  if (fits) return SCONCE_OK;
  return fail(p->err, SCONCE_BAD_ARGUMENT, "an index of %s for %s from %s", tensor_text(index, one),
              tensor_text(x, two), source ? tensor_text(source, three) : "a number");
}

static sconce_status check(struct plan *p, const struct node *n, uint32_t *dim) {
  const struct tensor *x, *index, *source = NULL;
  char one[120], two[120];
  TRY(arg_tensor(p, n, X, &x));
  TRY(arg_tensor(p, n, INDEX, &index));
  if (n->op->code != SCATTER_VALUE) TRY(arg_tensor(p, n, SOURCE, &source));
  *dim = 0;
  if (x->rank) TRY(arg_dim(p, n, DIM, x->rank, dim));
  if (index->dtype != VK_INT32 || (source && source->dtype != x->dtype))
    return fail(p->err, SCONCE_UNSUPPORTED, "an index of %s, a source of %s",
                tensor_text(index, one), source ? tensor_text(source, two) : "a number");
  if (tensor_numel(index) == 0) return SCONCE_OK; /* no updates, whatever its dims */
  return check_dims(p, x, index, source, *dim);
}

static sconce_status shape(struct plan *p, const struct node *n) {
  const struct tensor *x, *index;
  uint32_t dim;
  TRY(check(p, n, &dim));
  TRY(arg_tensor(p, n, X, &x));
  TRY(arg_tensor(p, n, INDEX, &index));
  TRY(check_host(p, index, x->rank ? x->dim_live[dim] : 1));
  return shape_same(p, n);
}

static sconce_status prepare(struct plan *p, struct node *n) {
  return scatter_scratch(p, n, (enum scatter_kind)n->op->code, 0);
}

/* ---- emit ------------------------------------------------------------------------------------ */

static void loops_of(const struct tensor *x, const struct tensor *index,
                     const struct tensor *source, uint32_t dim, struct scatter_params *u) {
  uint32_t strides[RANK_MAX] = {0}, steps[RANK_MAX] = {0}, sources[RANK_MAX] = {0};
  dense_strides(x->dim_live, x->rank, strides);
  dense_strides(index->dim_live, index->rank, steps);
  if (source) dense_strides(source->dim_live, source->rank, sources);
  *u = (struct scatter_params){.n = (uint32_t)tensor_numel(index),
                               .numel = (uint32_t)tensor_numel(x),
                               .rank = x->rank,
                               .axis = x->rank ? x->dim_live[dim] : 1,
                               .axis_stride = x->rank ? strides[dim] : 1};
  for (uint32_t i = 0; i < x->rank; i++) {
    u->dims[i] = index->dim_live[i];
    u->stride[i] = i == dim ? 0 : strides[i];
    u->step[i] = steps[i];
    u->source[i] = sources[i];
  }
}

static uint32_t element_bits(enum vk_dtype dtype, double value) {
  float single = (float)value;
  uint32_t bits;
  if (dtype == VK_BOOL) return value != 0;
  if (dtype == VK_FLOAT16) return half_from_float(single);
  if (dtype != VK_FLOAT32) return (uint32_t)(int64_t)value;
  memcpy(&bits, &single, sizeof bits);
  return bits;
}

static sconce_status value_bits(struct plan *p, const struct node *n, uint32_t *bits) {
  const enum vk_dtype dtype = out_tensor(p, n)->dtype;
  double value;
  TRY(arg_float(p, n, SOURCE, &value));
  if (dtype != VK_FLOAT32 && dtype != VK_FLOAT16 && !(value >= INT32_MIN && value <= INT32_MAX))
    return fail(p->err, SCONCE_UNSUPPORTED, "%g in a tensor of %s", value, vk_dtype_name(dtype));
  *bits = element_bits(dtype, value);
  return SCONCE_OK;
}

static sconce_status emit(struct plan *p, const struct node *n) {
  const struct tensor *x, *index, *source = NULL;
  uint32_t dim;
  struct scatter s = {.kind = (enum scatter_kind)n->op->code,
                      .x = arg_id(n, X),
                      .index = arg_id(n, INDEX),
                      .source = arg_id(n, SOURCE),
                      .scratch = n->extra[0]};
  TRY(check(p, n, &dim));
  TRY(arg_tensor(p, n, X, &x));
  TRY(arg_tensor(p, n, INDEX, &index));
  if (s.kind != SCATTER_VALUE) TRY(arg_tensor(p, n, SOURCE, &source));
  loops_of(x, index, source, dim, &s.u);
  if (s.kind == SCATTER_VALUE) TRY(value_bits(p, n, &s.u.value));
  return scatter_emit(p, n, &s);
}

/* Sums of bytes wrap around, those of booleans are whether one is true. */
EXPAND_WIDE(add_words, "aten.scatter_add.default", VK_INT32)

#define SCATTER(NAME, ALSO, CODE, ...)                                                             \
  {NAME,         shape,        emit,           prepare,                                            \
   .also = ALSO, .code = CODE, .n_args = ARGS, .tables = TABLES(__VA_ARGS__)}

const struct op ops_scatter[] = {
    SCATTER("aten.scatter.src", "aten::scatter.src_out et_vk.scatter_src_unique.default",
            SCATTER_REPLACE, SCATTER_REPLACE_TABLES),
    SCATTER("aten.scatter.value", "aten::scatter.value_out", SCATTER_VALUE, SCATTER_REPLACE_TABLES),
    {"aten.scatter_add.default", shape, emit, prepare, add_words, expand_gives_bytes,
     .also = "aten::scatter_add.out", .code = SCATTER_ADD, .n_args = ARGS,
     .tables = TABLES(SCATTER_ADD_TABLES)},
    {0},
};
