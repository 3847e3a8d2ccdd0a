/* See hash.h. */
#include "base/hash.h"

#include "base/os.h"
#include "base/span.h"

#include <stdatomic.h>

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

/* ---- tables ---------------------------------------------------------------------------------- */

/* What no file knows beforehand: when the process first asked, and where it was loaded. */
static uint64_t secret(void) {
  static _Atomic uint64_t kept;
  uint64_t known = atomic_load_explicit(&kept, memory_order_relaxed), none = 0;
  if (known) return known;
  const uint64_t given[] = {os_clock_ns(), (uint64_t)os_local_seconds(), (uintptr_t)&kept,
                            (uintptr_t)&given};
  known = hash_bytes(0, given, sizeof given) | 1;
  return atomic_compare_exchange_strong(&kept, &none, known) ? known : none;
}

static uint64_t turn(uint64_t x, int by) { return x << by | x >> (64 - by); }

static void sip_round(uint64_t v[4]) {
  v[0] += v[1], v[2] += v[3];
  v[1] = turn(v[1], 13) ^ v[0], v[3] = turn(v[3], 16) ^ v[2];
  v[0] = turn(v[0], 32);
  v[2] += v[1], v[0] += v[3];
  v[1] = turn(v[1], 17) ^ v[2], v[3] = turn(v[3], 21) ^ v[0];
  v[2] = turn(v[2], 32);
}

uint64_t hash_key(const void *data, size_t size) {
  const uint64_t k0 = secret(), k1 = mix(k0, 1);
  uint64_t v[4] = {k0 ^ UINT64_C(0x736f6d6570736575), k1 ^ UINT64_C(0x646f72616e646f6d),
                   k0 ^ UINT64_C(0x6c7967656e657261), k1 ^ UINT64_C(0x7465646279746573)};
  const uint8_t *at = data;
  uint64_t word = (uint64_t)size << 56;
  for (size_t left = size; left >= 8; at += 8, left -= 8) {
    const uint64_t whole = load_u64(at);
    v[3] ^= whole;
    sip_round(v);
    v[0] ^= whole;
  }
  for (size_t i = 0; i < size % 8; i++) word |= (uint64_t)at[i] << (8 * i);
  v[3] ^= word;
  sip_round(v);
  v[0] ^= word;
  v[2] ^= 0xff;
  for (int i = 0; i < 3; i++) sip_round(v);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint32_t hash_number(uint64_t number) {
  const uint64_t a = secret(), b = mix(a, 2), c = mix(a, 3);
  return (uint32_t)(((a + (uint32_t)number) * (b + (number >> 32)) + c) >> 32);
}
