/* Conversions at a method's border: see convert.h. */
#include "run/convert.h"

#include "base/half.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

bool convert_is_copy(enum vk_dtype inside, sconce_dtype outside) {
  switch (inside) {
  case VK_FLOAT32:
    return outside == SCONCE_FLOAT32;
  case VK_FLOAT16:
    return outside == SCONCE_FLOAT16;
  case VK_INT32:
    return outside == SCONCE_INT32;
  case VK_INT8:
    return outside == SCONCE_INT8;
  case VK_UINT8:
    return outside == SCONCE_UINT8;
  case VK_BOOL:
    return outside == SCONCE_BOOL;
  default:
    return false;
  }
}

static bool is_integer(sconce_dtype d) {
  return d == SCONCE_UINT8 || d == SCONCE_INT8 || d == SCONCE_INT16 || d == SCONCE_INT32 ||
         d == SCONCE_INT64 || d == SCONCE_BOOL;
}

static int64_t load_integer(sconce_dtype d, const uint8_t *p) {
  int64_t wide;
  int32_t word;
  int16_t half;
  switch (d) {
  case SCONCE_INT64:
    memcpy(&wide, p, 8);
    return wide;
  case SCONCE_INT32:
    memcpy(&word, p, 4);
    return word;
  case SCONCE_INT16:
    memcpy(&half, p, 2);
    return half;
  case SCONCE_INT8:
    return (int8_t)*p;
  default:
    return *p;
  }
}

static float load_float(sconce_dtype d, const uint8_t *p) {
  float single;
  double wide;
  uint16_t half;
  switch (d) {
  case SCONCE_FLOAT64:
    memcpy(&wide, p, 8);
    return (float)wide;
  case SCONCE_FLOAT16:
    memcpy(&half, p, 2);
    return half_to_float(half);
  default:
    memcpy(&single, p, 4);
    return single;
  }
}

static sconce_status integers_in(enum vk_dtype to, uint8_t *out, sconce_dtype from,
                                 const uint8_t *in, uint64_t n, sconce_error *err) {
  const int64_t low = to == VK_INT32 ? INT32_MIN : to == VK_INT8 ? INT8_MIN : 0;
  const int64_t high = to == VK_INT32  ? INT32_MAX
                       : to == VK_INT8 ? INT8_MAX
                       : to == VK_BOOL ? 1
                                       : UINT8_MAX;
  const size_t step = sconce_dtype_size(from);
  for (uint64_t i = 0; i < n; i++) {
    int64_t v = load_integer(from, in + i * step);
    if (v < low || v > high)
      return fail(err, SCONCE_BAD_ARGUMENT,
                  "element %" PRIu64 " is %" PRId64 ", the method takes %" PRId64 " to %" PRId64, i,
                  v, low, high);
    int32_t word = (int32_t)v;
    if (to == VK_INT32)
      memcpy(out + 4 * i, &word, 4);
    else
      out[i] = (uint8_t)v;
  }
  return SCONCE_OK;
}

/* Infinities and NaN pass; a finite double must not become an infinity on the way. */
static sconce_status doubles_fit(const uint8_t *in, uint64_t n, sconce_error *err) {
  const double first_beyond = 0x1.ffffffp127; /* FLT_MAX and half a unit of its last place */
  for (uint64_t i = 0; i < n; i++) {
    double v;
    memcpy(&v, in + 8 * i, 8);
    if (isfinite(v) && fabs(v) >= first_beyond)
      return fail(err, SCONCE_BAD_ARGUMENT,
                  "element %" PRIu64 " is %.17g, the method computes with float32, at most %.9g", i,
                  v, (double)FLT_MAX);
  }
  return SCONCE_OK;
}

sconce_status convert_in(enum vk_dtype to, void *out, sconce_dtype from, const void *in, uint64_t n,
                         sconce_error *err) {
  if (convert_is_copy(to, from)) {
    if (n) memcpy(out, in, (size_t)n * sconce_dtype_size(from));
    return SCONCE_OK;
  }
  bool integers = to != VK_FLOAT32 && to != VK_FLOAT16;
  if (integers != is_integer(from))
    return fail(err, SCONCE_BAD_ARGUMENT, "the data is %s, the method takes %s",
                sconce_dtype_name(from), vk_dtype_name(to));
  if (integers) return integers_in(to, out, from, in, n, err);
  if (from == SCONCE_FLOAT64) TRY(doubles_fit(in, n, err));
  const size_t step = sconce_dtype_size(from);
  for (uint64_t i = 0; i < n; i++) {
    float v = load_float(from, (const uint8_t *)in + i * step);
    uint16_t half = half_from_float(v);
    if (to == VK_FLOAT32)
      memcpy((uint8_t *)out + 4 * i, &v, 4);
    else
      memcpy((uint8_t *)out + 2 * i, &half, 2);
  }
  return SCONCE_OK;
}

sconce_status convert_out(sconce_dtype to, void *out, enum vk_dtype from, const void *in,
                          uint64_t n, sconce_error *err) {
  const uint8_t *p = in;
  for (uint64_t i = 0; i < n; i++) {
    if (from == VK_INT32 && to == SCONCE_INT64) {
      int32_t word;
      memcpy(&word, p + 4 * i, 4);
      ((int64_t *)out)[i] = word;
    } else if (from == VK_FLOAT32 && to == SCONCE_FLOAT64) {
      ((double *)out)[i] = (double)load_float(SCONCE_FLOAT32, p + 4 * i);
    } else if (from == VK_FLOAT16 && to == SCONCE_FLOAT32) {
      ((float *)out)[i] = load_float(SCONCE_FLOAT16, p + 2 * i);
    } else if (from == VK_FLOAT32 && to == SCONCE_FLOAT16) {
      ((uint16_t *)out)[i] = half_from_float(load_float(SCONCE_FLOAT32, p + 4 * i));
    } else {
      return fail(err, SCONCE_UNSUPPORTED, "an output of %s computed as %s", sconce_dtype_name(to),
                  vk_dtype_name(from));
    }
  }
  return SCONCE_OK;
}

size_t sconce_dtype_size(sconce_dtype d) {
  switch (d) {
  case SCONCE_UINT8:
  case SCONCE_INT8:
  case SCONCE_BOOL:
    return 1;
  case SCONCE_INT16:
  case SCONCE_FLOAT16:
    return 2;
  case SCONCE_INT32:
  case SCONCE_FLOAT32:
    return 4;
  case SCONCE_INT64:
  case SCONCE_FLOAT64:
    return 8;
  }
  return 0;
}

const char *sconce_dtype_name(sconce_dtype d) {
  switch (d) {
  case SCONCE_UINT8:
    return "uint8";
  case SCONCE_INT8:
    return "int8";
  case SCONCE_INT16:
    return "int16";
  case SCONCE_INT32:
    return "int32";
  case SCONCE_INT64:
    return "int64";
  case SCONCE_FLOAT16:
    return "float16";
  case SCONCE_FLOAT32:
    return "float32";
  case SCONCE_FLOAT64:
    return "float64";
  case SCONCE_BOOL:
    return "bool";
  }
  return "unknown";
}
