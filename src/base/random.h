/* Random bits as a function: the same key and counter always give the same ones. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stdint.h>

static inline uint32_t random_rotate(uint32_t x, uint32_t by) { return x << by | x >> (32 - by); }

/* Threefry-2x32-20: the counter is the position, the key is the seed. */
static inline uint32_t random_bits(uint64_t seed, uint64_t position) {
  static const uint8_t turns[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  uint32_t key[3] = {(uint32_t)seed, (uint32_t)(seed >> 32), 0};
  key[2] = 0x1bd11bdau ^ key[0] ^ key[1];
  uint32_t a = (uint32_t)position + key[0], b = (uint32_t)(position >> 32) + key[1];
  for (uint32_t group = 1; group <= 5; group++) {
    for (uint32_t i = 0; i < 4; i++) {
      a += b;
      b = random_rotate(b, turns[(group - 1) % 2][i]) ^ a;
    }
    a += key[group % 3];
    b += key[(group + 1) % 3] + group;
  }
  return a;
}

#endif
