/* Planned memory by place: see places.h. */
#include "run/places.h"

#include "base/hash.h"

bool places_init(struct places *places, const struct pte_method *m, struct arena *arena) {
  uint32_t n = 16;
  while (n / 2 < m->n_values && n < 1u << 31) n *= 2;
  *places = (struct places){.m = m, .slots = arena_new(arena, uint32_t, n), .mask = n - 1};
  if (!places->slots) return false;
  for (uint32_t i = 0; i < n; i++) places->slots[i] = UINT32_MAX;
  return true;
}

static bool planned(const struct places *places, uint32_t index, struct pte_tensor *out) {
  const struct pte_value v = pte_value(places->m, index);
  if (v.kind != PTE_TENSOR || !v.tensor.planned) return false;
  *out = v.tensor;
  return true;
}

/* The slot of what lies at t's place, or a free one: a slot is never emptied, and there are twice
 * as many as values. */
static uint32_t *slot_of(const struct places *places, const struct pte_tensor *t) {
  const uint64_t key[] = {t->memory_id, t->memory_offset};
  for (uint32_t at = (uint32_t)hash_key(key, sizeof key);; at++) {
    uint32_t *slot = &places->slots[at & places->mask];
    struct pte_tensor other;
    if (*slot == UINT32_MAX) return slot;
    if (planned(places, *slot, &other) && other.memory_id == t->memory_id &&
        other.memory_offset == t->memory_offset)
      return slot;
  }
}

void places_wrote(struct places *places, uint32_t index) {
  struct pte_tensor t;
  if (planned(places, index, &t)) *slot_of(places, &t) = index;
}

uint32_t places_viewed(const struct places *places, uint32_t index) {
  struct pte_tensor t, other;
  if (!planned(places, index, &t)) return UINT32_MAX;
  const uint32_t last = *slot_of(places, &t);
  if (last == UINT32_MAX || last == index || !planned(places, last, &other)) return UINT32_MAX;
  const bool alike = other.shape.scalar_type == t.shape.scalar_type &&
                     other.shape.numel == t.shape.numel && t.dynamism == PTE_STATIC &&
                     other.dynamism == PTE_STATIC;
  return alike ? last : UINT32_MAX;
}
