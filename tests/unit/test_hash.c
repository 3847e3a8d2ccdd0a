/* Sums for tables: whatever the keys are, few share a slot. */
#include "harness.h"

#include "base/hash.h"

enum { KEYS = 1 << 16, SLOTS = 1 << 16 };

static uint8_t taken[SLOTS];

static void keys_of_any_pattern_are_spread(void) {
  for (int shift = 0; shift <= 48; shift += 8) {
    uint32_t most = 0;
    memset(taken, 0, sizeof taken);
    for (uint64_t i = 0; i < KEYS; i++) {
      const uint64_t key = i << shift;
      uint8_t *slot = &taken[hash_key(&key, sizeof key) % SLOTS];
      if (*slot < UINT8_MAX) ++*slot;
      if (*slot > most) most = *slot;
    }
    CHECK_SAYS(most < 40, "%u of %d multiples of 2^%d are in one slot", most, KEYS, shift);
  }
}

/* With multiplications alone, two changed words cancel each other whatever the secret is. */
static void no_change_of_a_key_is_cancelled_by_another(void) {
  uint64_t key[2] = {1, 2};
  const uint64_t before = hash_key(key, sizeof key);
  for (int i = 0; i < 64; i++)
    for (int k = 0; k < 64; k++) {
      const uint64_t changed[2] = {key[0] ^ UINT64_C(1) << 63,
                                   key[1] ^ UINT64_C(1) << i ^ UINT64_C(1) << k};
      CHECK(hash_key(changed, sizeof changed) != before);
    }
  CHECK_EQ(hash_key(key, sizeof key), before);
  CHECK(hash_key("abc", 3) != hash_key("abc\0", 4));
}

const struct test suite_hash[] = {
    TEST(keys_of_any_pattern_are_spread),
    TEST(no_change_of_a_key_is_cancelled_by_another),
    {0},
};
