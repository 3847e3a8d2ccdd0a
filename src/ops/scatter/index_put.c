/* Elements replaced or added where several index tensors, or a mask, say. */
#include "ops/compound/expand.h"
#include "ops/halves/halves.h"
#include "ops/indices/indices.h"
#include "ops/places/places.h"
#include "ops/scatter/scatter.h"
#include "ops/strides/strides.h"

#include <string.h>

/* [x, [indices], values, accumulate, out]: values broadcast to what x[indices] would be. */
enum { X, INDICES, VALUES, ACCUMULATE, OUT, ARGS };

/* How values step through the loops. A mask that stands here has the same ones for all that is true
 * in it: others are counted (see places.h). */
static sconce_status steps_of(struct plan *p, const struct indices *ix,
                              const struct index_loops *loops, const struct tensor *values,
                              uint32_t out[RANK_MAX]) {
  uint32_t strides[RANK_MAX], result[RANK_MAX], at[RANK_MAX], rank = 0;
  char text[120];
  for (uint32_t i = 0; i < loops->rank; i++) { /* a mask's dims are one of the result's */
    bool inside = ix->mask && i > ix->first && i < ix->first + ix->rank;
    if (!inside) at[rank] = i, result[rank++] = loops->dims[i];
    out[i] = 0;
  }
  dense_strides(values->dim_live, values->rank, strides);
  bool fits = values->rank <= rank;
  for (uint32_t i = 1; fits && i <= values->rank; i++) {
    const uint32_t dim = values->dim_live[values->rank - i];
    const bool by_mask = ix->mask && rank - i == ix->first;
    if (dim == 1) continue;
    fits = dim == result[rank - i] && !by_mask;
    out[at[rank - i]] = strides[values->rank - i];
  }
  if (fits) return SCONCE_OK;
  return fail(p->err, SCONCE_UNSUPPORTED, "values of %s do not broadcast to %u dims by %s",
              tensor_text(values, text), rank, ix->mask ? "a mask" : "their indices");
}

static sconce_status read_call(struct plan *p, const struct node *n, struct indices *ix,
                               struct scatter *s) {
  const struct tensor *x, *values;
  struct index_loops loops;
  bool accumulate;
  TRY(arg_tensor(p, n, X, &x));
  TRY(arg_tensor(p, n, VALUES, &values));
  TRY(arg_bool(p, n, ACCUMULATE, &accumulate));
  TRY(indices_of(p, n, INDICES, x, ix));
  TRY(indices_loops(p, x, ix, &loops));
  char one[120], two[120];
  if (values->dtype != x->dtype)
    return fail(p->err, SCONCE_UNSUPPORTED, "values of %s in %s", tensor_text(values, one),
                tensor_text(x, two));
  uint64_t updates = 1;
  for (uint32_t i = 0; i < loops.rank; i++) updates *= loops.dims[i];
  *s = (struct scatter){.kind = accumulate ? SCATTER_ADD : SCATTER_REPLACE,
                        .x = arg_id(n, X),
                        .index = n->extra[0],
                        .source = arg_id(n, VALUES),
                        .scratch = n->extra[1]};
  s->u = (struct scatter_params){.n = (uint32_t)updates,
                                 .numel = (uint32_t)tensor_numel(x),
                                 .rank = loops.rank,
                                 .axis = indices_rows(x, ix),
                                 .axis_stride = indices_row(x, ix)};
  memcpy(s->u.dims, loops.dims, sizeof s->u.dims);
  memcpy(s->u.stride, loops.stride, sizeof s->u.stride);
  memcpy(s->u.step, loops.step, sizeof s->u.step);
  return steps_of(p, ix, &loops, values, s->u.source);
}

static sconce_status shape(struct plan *p, const struct node *n) {
  const struct tensor *x;
  struct indices ix;
  struct scatter s;
  TRY(read_call(p, n, &ix, &s));
  TRY(arg_tensor(p, n, X, &x));
  TRY(indices_check(p, x, &ix));
  return shape_same(p, n);
}

static sconce_status prepare(struct plan *p, struct node *n) {
  bool accumulate;
  TRY(arg_bool(p, n, ACCUMULATE, &accumulate));
  TRY(indices_scratch(p, n, INDICES, 0));
  return scatter_scratch(p, n, accumulate ? SCATTER_ADD : SCATTER_REPLACE, 1);
}

static sconce_status emit(struct plan *p, const struct node *n) {
  const struct tensor *x;
  struct indices ix;
  struct scatter s;
  TRY(read_call(p, n, &ix, &s));
  TRY(arg_tensor(p, n, X, &x));
  TRY(indices_emit(p, n, x, &ix, n->extra[0]));
  return scatter_emit(p, n, &s);
}

static bool adds_bytes(const struct expansion *x) {
  int64_t accumulate;
  sconce_error quiet = {0};
  const struct expansion asks = {x->g, x->index, x->args, x->n_args, &quiet};
  return expand_int(&asks, ACCUMULATE, &accumulate) == SCONCE_OK && accumulate &&
         expand_gives_bytes(x);
}

static bool expands(const struct expansion *x) { return places_tell_values(x) || adds_bytes(x); }

static sconce_status expand(const struct expansion *x) {
  return places_tell_values(x) ? places_index_put(x)
                               : expand_wide(x, "aten.index_put.default", VK_INT32);
}

const struct op ops_index_put[] = {
    {"aten.index_put.default", shape, emit, prepare, .also = "aten::index_put.out aten::index_put_",
     .expand = expand, .expands = expands, .n_args = ARGS, .flags = OP_SELF_WORDS,
     .tables = TABLES(indices_kernels, SCATTER_REPLACE_TABLES, scatter_puts, SCATTER_ADD_TABLES)},
    {0},
};
