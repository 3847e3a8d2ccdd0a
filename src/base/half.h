/* 16-bit floats on the host: round to nearest, ties to even; NaN and infinities stay. */
#ifndef BASE_HALF_H
#define BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint16_t half_from_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  uint32_t sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
  if (rest > 0x7f800000) return (uint16_t)(sign | 0x7e00);  /* NaN */
  if (rest >= 0x477ff000) return (uint16_t)(sign | 0x7c00); /* rounds to infinity */
  if (rest < 0x33000001) return (uint16_t)sign;             /* rounds to zero */
  if (rest < 0x38800000) {                                  /* subnormal */
    uint32_t shift = 126 - (rest >> 23), mantissa = (rest & 0x7fffff) | 0x800000;
    uint32_t half = mantissa >> shift, left = mantissa & ((1u << shift) - 1);
    uint32_t tie = 1u << (shift - 1);
    return (uint16_t)(sign | (half + (left > tie || (left == tie && half & 1))));
  }
  uint32_t half = (rest >> 13) - (112u << 10), left = rest & 0x1fff;
  return (uint16_t)(sign | (half + (left > 0x1000 || (left == 0x1000 && half & 1))));
}

static inline float half_to_float(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31, rest = half & 0x3ff;
  float value;
  if (exponent == 0) {
    value = (float)rest * 5.9604644775390625e-8f; /* 2^-24 */
    return sign ? -value : value;
  }
  uint32_t bits = sign | (exponent == 31 ? 0x7f800000 : (exponent + 112) << 23) | rest << 13;
  memcpy(&value, &bits, 4);
  return value;
}

#endif
