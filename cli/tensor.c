/* Sizes and elements: see tensor.h. */
#include "tensor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

uint64_t cli_numel(const sconce_tensor *t) {
  uint64_t n = 1;
  for (uint32_t d = 0; d < t->rank; d++) n *= t->dims[d];
  return n;
}

bool cli_size(const sconce_tensor *t, size_t *out) {
  size_t size = sconce_dtype_size(t->dtype);
  for (uint32_t d = 0; d < t->rank; d++) {
    if (t->dims[d] && size > SIZE_MAX / t->dims[d]) return false;
    size *= t->dims[d];
  }
  *out = size;
  return true;
}

/* A half: 1 bit sign, 5 bits exponent, 10 bits fraction. */
static double half_value(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
  double v = exponent == 31 ? (fraction ? NAN : INFINITY)
             : exponent     ? ldexp(1024 + fraction, exponent - 25)
                            : ldexp(fraction, -24);
  return bits & 0x8000 ? -v : v;
}

double cli_element(const sconce_tensor *t, uint64_t i) {
  union {
    uint8_t u8;
    int8_t i8;
    int16_t i16;
    uint16_t half;
    int32_t i32;
    int64_t i64;
    float f32;
    double f64;
  } v = {0};
  size_t size = sconce_dtype_size(t->dtype);
  memcpy(&v, (const uint8_t *)t->data + i * size, size);
  switch (t->dtype) {
  case SCONCE_INT8:
    return v.i8;
  case SCONCE_INT16:
    return v.i16;
  case SCONCE_INT32:
    return v.i32;
  case SCONCE_INT64:
    return (double)v.i64;
  case SCONCE_FLOAT16:
    return half_value(v.half);
  case SCONCE_FLOAT32:
    return (double)v.f32;
  case SCONCE_FLOAT64:
    return v.f64;
  default:
    return v.u8;
  }
}

const char *cli_dims(char out[128], const sconce_tensor *t) {
  int n = snprintf(out, 128, "(");
  for (uint32_t d = 0; d < t->rank; d++)
    n += snprintf(out + n, 128 - (size_t)n, "%s%u", d ? ", " : "", t->dims[d]);
  snprintf(out + n, 128 - (size_t)n, t->rank == 1 ? ",)" : ")");
  return out;
}
