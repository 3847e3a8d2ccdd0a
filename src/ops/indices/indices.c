/* Several index tensors at once: see indices.h. */
#include "ops/indices/indices.h"

#include "ops/strides/strides.h"

#include "indices.wgsl.h"

#include <inttypes.h>
#include <string.h>

/* problem: is it the first index? */
static bool is_first(const void *first) { return *(const bool *)first; }

const struct kernel indices_kernels[] = {
    {"mask", &indices_wgsl, "MASK=true", OF_BOOL | OF_U8},
    {"first", &indices_wgsl, "", OF_I32, .fits = is_first},
    {"more", &indices_wgsl, "FIRST=false", OF_I32},
    {0},
};

/* ---- arguments ------------------------------------------------------------------------------- */

static bool is_mask(const struct tensor *t) { return t->dtype == VK_BOOL || t->dtype == VK_UINT8; }

static sconce_status add(struct plan *p, const struct tensor *x, uint32_t id, uint32_t dim,
                         struct indices *ix) {
  const struct tensor *t = tensor_at(p, id);
  const uint32_t covers = is_mask(t) ? t->rank : 1;
  char one[120], two[120];
  bool fits = dim + covers <= x->rank && (t->dtype == VK_INT32 || is_mask(t));
  for (uint32_t i = 0; fits && is_mask(t) && i < covers; i++)
    fits = t->dim_live[i] == x->dim_live[dim + i];
  if (!fits)
    return fail(p->err, SCONCE_BAD_ARGUMENT, "an index of %s for dim %u of %s", tensor_text(t, one),
                dim, tensor_text(x, two));
  ix->id[ix->n] = id;
  ix->dim[ix->n++] = dim;
  ix->covered |= ((1u << covers) - 1) << dim;
  ix->last = dim + covers - 1;
  ix->mask = is_mask(t);
  return SCONCE_OK;
}

sconce_status indices_of(struct plan *p, const struct node *n, uint32_t i, const struct tensor *x,
                         struct indices *out) {
  const struct tensor *tensors[RANK_MAX] = {0};
  *out = (struct indices){0};
  for (uint32_t k = 0; k < arg_count(p, n, i); k++) {
    const uint32_t id = arg_item(p, n, i, k);
    if (!tensor_at(p, id)) continue;
    if (out->n && (out->mask || is_mask(tensor_at(p, id))))
      return fail(p->err, SCONCE_UNSUPPORTED, "an index of booleans beside another one");
    if (k >= x->rank) return fail(p->err, SCONCE_BAD_GRAPH, "index %u of rank %u", k, x->rank);
    TRY(add(p, x, id, k, out));
    tensors[out->n - 1] = tensor_at(p, id);
  }
  if (out->n == 0) return fail(p->err, SCONCE_UNSUPPORTED, "no index tensor");
  const uint32_t run = out->covered >> out->dim[0]; /* of ones, if they are neighbours */
  out->first = run & (run + 1) ? 0 : out->dim[0];
  return broadcast_dims(p, tensors, out->n, out->dims, &out->rank);
}

sconce_status indices_check(struct plan *p, const struct tensor *x, const struct indices *ix) {
  for (uint32_t k = 0; k < ix->n && !ix->mask; k++) {
    const struct tensor *index = tensor_at(p, ix->id[k]);
    const int64_t size = x->dim_live[ix->dim[k]];
    for (uint64_t i = 0; index->host && i < tensor_numel(index); i++) {
      int32_t at;
      memcpy(&at, (const uint8_t *)index->host + 4 * i, 4);
      if (at < -size || at >= size)
        return fail(p->err, SCONCE_BAD_ARGUMENT, "index %" PRId32 " of a dim of %" PRId64, at,
                    size);
    }
  }
  return SCONCE_OK;
}

/* ---- loops ----------------------------------------------------------------------------------- */

static sconce_status push(struct plan *p, struct index_loops *l, uint32_t dim, uint32_t stride,
                          uint32_t step) {
  if (l->rank == RANK_MAX)
    return fail(p->err, SCONCE_UNSUPPORTED, "a result of more than %d dims", RANK_MAX);
  l->dims[l->rank] = dim;
  l->stride[l->rank] = stride;
  l->step[l->rank++] = step;
  return SCONCE_OK;
}

sconce_status indices_loops(struct plan *p, const struct tensor *x, const struct indices *ix,
                            struct index_loops *out) {
  uint32_t strides[RANK_MAX], steps[RANK_MAX];
  dense_strides(x->dim_live, x->rank, strides);
  dense_strides(ix->dims, ix->rank, steps);
  *out = (struct index_loops){0};
  for (uint32_t i = 0; i <= x->rank; i++) {
    for (uint32_t k = 0; i == ix->first && k < ix->rank; k++)
      TRY(push(p, out, ix->dims[k], 0, steps[k]));
    if (i < x->rank && !(ix->covered >> i & 1)) TRY(push(p, out, x->dim_live[i], strides[i], 0));
  }
  return SCONCE_OK;
}

uint32_t indices_row(const struct tensor *x, const struct indices *ix) {
  uint32_t strides[RANK_MAX];
  dense_strides(x->dim_live, x->rank, strides);
  return strides[ix->last];
}

uint32_t indices_rows(const struct tensor *x, const struct indices *ix) {
  const uint32_t row = indices_row(x, ix);
  const uint64_t rows = row ? tensor_numel(x) / row : 0;
  return rows < INT32_MAX ? (uint32_t)rows : INT32_MAX;
}

/* ---- emit ------------------------------------------------------------------------------------ */

/* For the largest of each dim: live ones broadcast to no more. */
sconce_status indices_scratch(struct plan *p, struct node *n, uint32_t i, uint32_t k) {
  uint64_t most = 1;
  for (uint32_t d = 0; d < RANK_MAX; d++) {
    uint32_t largest = 1;
    for (uint32_t m = 0; m < arg_count(p, n, i); m++) {
      const struct tensor *t = tensor_at(p, arg_item(p, n, i, m));
      if (t && d < t->rank && t->dim_max[t->rank - 1 - d] > largest)
        largest = t->dim_max[t->rank - 1 - d];
    }
    if (largest > UINT32_MAX / most)
      return fail(p->err, SCONCE_UNSUPPORTED, "indices of more than %u elements", UINT32_MAX);
    most *= largest;
  }
  return graph_scratch(p->g, VK_INT32, most, &n->extra[k], p->err);
}

sconce_status indices_emit(struct plan *p, const struct node *n, const struct tensor *x,
                           const struct indices *ix, uint32_t rows) {
  struct nest nest = {.rank = ix->rank, .n_operands = ix->n};
  uint32_t strides[RANK_MAX];
  uint64_t count = 1;
  for (uint32_t i = 0; i < ix->rank; i++) count *= nest.size[i] = ix->dims[i];
  dense_strides(x->dim_live, x->rank, strides);
  for (uint32_t k = 0; k < ix->n; k++) {
    const struct tensor *index = tensor_at(p, ix->id[k]);
    const uint32_t row = strides[ix->last];
    struct indices_params u = {.n = (uint32_t)count,
                               .size = x->dim_live[ix->dim[k]],
                               .stride = row ? strides[ix->dim[k]] / row : 0,
                               .rank = ix->rank};
    nest_broadcast(&nest, 0, index);
    memcpy(u.dims, ix->dims, sizeof u.dims);
    memcpy(u.step, nest.stride[0], sizeof u.step);
    const bool first = k == 0;
    const struct kernel *kernel;
    TRY(choose(p, n, indices_kernels, index->dtype, &first, &kernel));
    TRY(dispatch(p, kernel, &u, div_up(count, 64), OPERANDS({ix->id[k]}, {rows})));
  }
  return SCONCE_OK;
}
