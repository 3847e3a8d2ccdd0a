/* See hash.h. */
#include "base/hash.h"

#include "base/span.h"

enum { LANES = 4, STEP = 8 * LANES };
static const uint64_t PRIME = UINT64_C(0x9e3779b97f4a7c15);

static uint64_t mix(uint64_t sum, uint64_t word) {
  sum = (sum ^ word) * PRIME;
  return sum ^ sum >> 29;
}

uint64_t hash_bytes(uint64_t start, const void *data, size_t size) {
  const uint8_t *at = data;
  uint64_t lanes[LANES], sum = mix(start, size);
  for (uint32_t k = 0; k < LANES; k++) lanes[k] = k;
  for (; size >= STEP; at += STEP, size -= STEP)
    for (uint32_t k = 0; k < LANES; k++) lanes[k] = mix(lanes[k], load_u64(at + 8 * (size_t)k));
  for (uint32_t k = 0; k < LANES; k++) sum = mix(sum, lanes[k]);
  for (size_t i = 0; i < size; i++) sum = mix(sum, at[i]);
  return sum;
}
