/* See constant_set.h. Slots hold ids + 1; at least half of them are free. */
#include "graph/constant_set.h"

#include "base/hash.h"

#include <string.h>

static uint32_t hash_of(const struct tensor *t, const struct packing *packing) {
  uint64_t key[5 + RANK_MAX] = {(uintptr_t)t->bytes.data, t->bytes.offset, t->bytes.size,
                                t->bytes.file, (uintptr_t)packing};
  for (uint32_t i = 0; packing && i < t->rank; i++) key[5 + i] = t->dim_max[i];
  return (uint32_t)hash_key(key, (packing ? 5 + RANK_MAX : 5) * sizeof *key);
}

/* Plain bytes mean the same whatever their dims are; another layout depends on dims and dtype. */
static bool same(const struct tensor *a, const struct tensor *t, const struct packing *packing) {
  if (!extent_equal(a->bytes, t->bytes) || a->packing != packing) return false;
  return !packing || (a->dtype == t->dtype && a->rank == t->rank &&
                      memcmp(a->dim_max, t->dim_max, a->rank * sizeof *a->dim_max) == 0);
}

uint32_t constant_find(const struct graph *g, const struct constant_set *set,
                       const struct tensor *t, const struct packing *packing) {
  if (set->cap == 0) return NO_VALUE;
  for (uint32_t at = hash_of(t, packing) & (set->cap - 1); set->slots[at];
       at = (at + 1) & (set->cap - 1))
    if (same(&g->values[set->slots[at] - 1].tensor, t, packing)) return set->slots[at] - 1;
  return NO_VALUE;
}

static void put(const struct graph *g, struct constant_set *set, uint32_t id) {
  const struct tensor *t = &g->values[id].tensor;
  uint32_t at = hash_of(t, t->packing) & (set->cap - 1);
  while (set->slots[at]) at = (at + 1) & (set->cap - 1);
  set->slots[at] = id + 1;
  set->n++;
}

bool constant_add(struct graph *g, struct constant_set *set, uint32_t id) {
  if (2 * (set->n + 1) > set->cap) {
    struct constant_set bigger = {.cap = set->cap ? 2 * set->cap : 64};
    bigger.slots = arena_new(&g->arena, uint32_t, bigger.cap);
    if (!bigger.slots) return false;
    for (uint32_t i = 0; i < set->cap; i++)
      if (set->slots[i]) put(g, &bigger, set->slots[i] - 1);
    *set = bigger;
  }
  put(g, set, id);
  return true;
}
