/* Moving elements: see move.h. Loops are merged and elements widened to words or quads of words as
 * far as the problem allows; that decides the kernel. */
#include "ops/move/move.h"

#include "ops/strides/strides.h"

#include "move.wgsl.h"

#include <string.h>

const struct kernel move_kernels[] = {
    UNIT_KERNELS(move_wgsl),
    {0},
};

sconce_status move_push(struct plan *p, struct move *m, uint32_t dim, int64_t stride) {
  if (dim == 1) return SCONCE_OK;
  if (m->rank == MOVE_MAX)
    return fail(p->err, SCONCE_UNSUPPORTED, "more than %d dims to move along", MOVE_MAX);
  m->dims[m->rank] = m->size[m->rank] = dim;
  m->from[m->rank] = 0;
  m->stride[m->rank++] = stride;
  return SCONCE_OK;
}

sconce_status move_begin(struct plan *p, struct move *m, const struct tensor *y,
                         const struct tensor *x) {
  *m = (struct move){.rank = y->rank};
  int64_t stride = 1;
  if (x->rank != y->rank)
    return fail(p->err, SCONCE_BAD_GRAPH, "ranks are %u and %u", x->rank, y->rank);
  for (uint32_t i = y->rank; i-- > 0;) {
    m->dims[i] = m->size[i] = y->dim_live[i];
    m->stride[i] = stride;
    stride *= x->dim_live[i];
  }
  return SCONCE_OK;
}

static bool is_whole(const struct move *m, uint32_t i) {
  return m->from[i] == 0 && m->size[i] == m->dims[i];
}

static void drop(struct move *m, uint32_t i) {
  for (uint32_t k = i; k + 1 < m->rank; k++) {
    m->dims[k] = m->dims[k + 1];
    m->size[k] = m->size[k + 1];
    m->from[k] = m->from[k + 1];
    m->stride[k] = m->stride[k + 1];
  }
  m->rank--;
}

/* A loop inside a loop becomes one where x runs through both alike; the outer may have a window. */
static void merge(struct move *m) {
  for (uint32_t i = m->rank; i-- > 0;)
    if (m->dims[i] == 1 && is_whole(m, i)) drop(m, i);
  for (uint32_t i = m->rank; i-- > 1;) {
    uint32_t inner = m->dims[i];
    if (!is_whole(m, i) || m->stride[i - 1] != m->stride[i] * inner) continue;
    m->dims[i] = m->dims[i - 1] * inner;
    m->size[i] = m->size[i - 1] * inner;
    m->from[i] = m->from[i - 1] * inner;
    drop(m, i - 1);
  }
}

/* May k elements that follow each other move as one? */
static bool divisible(const struct move *m, uint32_t k) {
  if (m->rank == 0) return k == 1;
  uint32_t last = m->rank - 1;
  if (m->stride[last] != 1 || m->dims[last] % k || m->size[last] % k || m->from[last] % k ||
      m->base % k)
    return false;
  for (uint32_t i = 0; i < last; i++)
    if (m->stride[i] % k) return false;
  return true;
}

static void widen(struct move *m, uint32_t k) {
  if (k == 1) return;
  uint32_t last = m->rank - 1;
  m->dims[last] /= k;
  m->size[last] /= k;
  m->from[last] /= k;
  m->base /= k;
  for (uint32_t i = 0; i < last; i++) m->stride[i] /= k;
}

/* The first element of y that the windows reach, and the one behind the last. */
static void reach(const struct move *m, uint64_t *first, uint64_t *end) {
  uint64_t stride = 1;
  *first = 0;
  *end = 1;
  for (uint32_t i = m->rank; i-- > 0;) {
    int64_t from = m->from[i] > 0 ? m->from[i] : 0, to = m->from[i] + m->size[i];
    if (to > m->dims[i]) to = m->dims[i];
    *first += (uint64_t)from * stride;
    *end += (uint64_t)(to > 0 ? to - 1 : 0) * stride;
    stride *= m->dims[i];
  }
}

static uint32_t repeated(uint32_t fill, uint32_t size) {
  if (size == 1) fill = (fill & 0xff) * 0x0101u;
  return size <= 2 ? (fill & 0xffff) * 0x00010001u : fill;
}

sconce_status move_emit(struct plan *p, const struct node *n, struct move *m, uint32_t x,
                        uint32_t y) {
  const struct tensor *from = tensor_at(p, x), *to = tensor_at(p, y);
  if (!from || !to) return fail(p->err, SCONCE_BAD_GRAPH, "what is moved is no tensor");
  char one[120], two[120];
  if (from->dtype != to->dtype)
    return fail(p->err, SCONCE_UNSUPPORTED, "%s becomes %s", tensor_text(from, one),
                tensor_text(to, two));
  uint32_t size = vk_dtype_size(to->dtype);
  if (!m->edge) merge(m); /* an edge is one of its dim alone */
  uint32_t unit = size;
  if (!m->edge) unit = divisible(m, 16 / size) ? 16 : divisible(m, 4 / size) ? 4 : size;
  widen(m, unit < 4 ? 1 : unit / size);
  uint64_t numel = 1, first, end;
  for (uint32_t i = 0; i < m->rank; i++) numel *= m->dims[i];
  reach(m, &first, &end);
  if (!m->keep) first = 0, end = numel;
  uint32_t elems = unit < 4 ? 4 / size : 1;
  struct move_params u = {.first = (uint32_t)(first / elems),
                          .n = (uint32_t)(div_up(end, elems) - first / elems),
                          .numel = (uint32_t)numel,
                          .rank = m->rank,
                          .base = (uint32_t)m->base,
                          .fill = repeated(m->fill, size),
                          .keep = m->keep,
                          .edge = m->edge};
  memcpy(u.dims, m->dims, sizeof u.dims);
  memcpy(u.size, m->size, sizeof u.size);
  for (uint32_t i = 0; i < m->rank; i++) {
    u.start[i] = (uint32_t)m->from[i];
    u.stride[i] = (uint32_t)m->stride[i];
  }
  const struct kernel *row;
  TRY(choose(p, n, move_kernels, to->dtype, &(struct unit){unit}, &row));
  return dispatch(p, row, &u, div_up(u.n, 64), OPERANDS({x}, {y}));
}
