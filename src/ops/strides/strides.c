/* Loop nests: see strides.h. */
#include "ops/strides/strides.h"

#include <string.h>

void dense_strides(const uint32_t *dims, uint32_t rank, uint32_t *strides) {
  uint32_t stride = 1;
  for (uint32_t i = rank; i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i];
  }
}

void nest_push(struct nest *nest, uint32_t size, uint32_t s0, uint32_t s1) {
  nest->size[nest->rank] = size;
  nest->stride[0][nest->rank] = s0;
  nest->stride[1][nest->rank] = s1;
  nest->rank++;
}

void nest_broadcast(struct nest *nest, uint32_t k, const struct tensor *x) {
  uint32_t strides[RANK_MAX];
  dense_strides(x->dim_live, x->rank, strides);
  uint32_t skip = nest->rank - x->rank;
  for (uint32_t i = 0; i < nest->rank; i++)
    nest->stride[k][i] = i < skip || x->dim_live[i - skip] == 1 ? 0 : strides[i - skip];
}

/* May loop i, and loop i + 1 inside it, become one? */
static bool mergeable(const struct nest *nest, uint32_t i) {
  for (uint32_t k = 0; k < nest->n_operands; k++)
    if (nest->stride[k][i] != nest->stride[k][i + 1] * nest->size[i + 1]) return false;
  return true;
}

static void drop(struct nest *nest, uint32_t i) {
  size_t left = nest->rank - 1 - i;
  memmove(&nest->size[i], &nest->size[i + 1], left * sizeof *nest->size);
  for (uint32_t k = 0; k < nest->n_operands; k++)
    memmove(&nest->stride[k][i], &nest->stride[k][i + 1], left * sizeof *nest->size);
  nest->rank--;
}

void nest_merge(struct nest *nest) {
  for (uint32_t i = nest->rank; i-- > 0;)
    if (nest->size[i] == 1) drop(nest, i);
  for (uint32_t i = nest->rank; i-- > 1;) {
    if (!mergeable(nest, i - 1)) continue;
    nest->size[i] *= nest->size[i - 1];
    drop(nest, i - 1);
  }
  if (nest->rank == 0) nest_push(nest, 1, 0, 0); /* one element */
}

sconce_status broadcast_dims(struct plan *p, const struct tensor *const *x, uint32_t n,
                             uint32_t dims[RANK_MAX], uint32_t *rank) {
  *rank = 0;
  for (uint32_t k = 0; k < n; k++)
    if (x[k]->rank > *rank) *rank = x[k]->rank;
  for (uint32_t i = 0; i < *rank; i++) dims[i] = 1;
  for (uint32_t k = 0; k < n; k++)
    for (uint32_t i = 0; i < x[k]->rank; i++) {
      uint32_t *dim = &dims[*rank - x[k]->rank + i], live = x[k]->dim_live[i];
      if (*dim == 1) *dim = live;
      if (live == 1 || live == *dim) continue;
      char one[120], two[120];
      return fail(p->err, SCONCE_BAD_ARGUMENT, "%s and %s do not broadcast", tensor_text(x[0], one),
                  tensor_text(x[k], two));
    }
  return SCONCE_OK;
}

/* Offsets of 256 elements are aligned whatever the element. */
enum { FLAT_STEP = 256 };

uint64_t flat_part(const struct plan *p, uint64_t n, uint32_t elem_bytes) {
  uint64_t rows = div_up(n, FLAT_STEP);
  uint64_t some = rows_per_binding(p, (uint64_t)elem_bytes * FLAT_STEP, rows);
  return some < rows ? some * FLAT_STEP : n;
}

struct operand flat_operand(struct plan *p, uint32_t id, uint64_t at, uint64_t part) {
  const struct tensor *t = tensor_at(p, id);
  uint64_t size = t ? vk_dtype_size(t->dtype) : 0, most = t ? tensor_numel_max(t) : 0;
  if (at == 0 && part >= most) return (struct operand){id, 0, 0};
  return (struct operand){id, at * size, (most - at < part ? most - at : part) * size};
}

#define UNIT_IS(NAME, BYTES)                                                                       \
  bool NAME(const void *unit) { return ((const struct unit *)unit)->bytes == (BYTES); }
UNIT_IS(unit_is_quad, 16)
UNIT_IS(unit_is_word, 4)
UNIT_IS(unit_is_half, 2)
UNIT_IS(unit_is_byte, 1)
