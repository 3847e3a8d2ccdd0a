/* Inputs made from a word of the command line: see tensor.h. */
#include "tensor.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool complain(const char *word, const char *what) {
  fprintf(stderr, "sconce: --input %s: %s\n", word, what);
  return false;
}

/* ---- elements -------------------------------------------------------------------------------- */

static uint16_t half_of(double v) {
  /* Small whole numbers and fractions in [0, 1): normal or zero, never rounding up to infinity. */
  if (v == 0) return 0;
  int exponent;
  double fraction = frexp(fabs(v), &exponent); /* [0.5, 1) */
  if (exponent < -13) return 0;
  if (exponent > 16) return (uint16_t)(v < 0 ? 0xfc00 : 0x7c00);
  unsigned bits = (unsigned)(exponent + 14) << 10;
  bits += (unsigned)(fraction * 2048) - 1024;
  return (uint16_t)(v < 0 ? bits | 0x8000 : bits);
}

static void store(sconce_dtype dtype, void *p, double v) {
  int64_t whole = (int64_t)v;
  float single = (float)v;
  uint16_t half = half_of(v);
  if (dtype == SCONCE_FLOAT32)
    memcpy(p, &single, 4);
  else if (dtype == SCONCE_FLOAT64)
    memcpy(p, &v, 8);
  else if (dtype == SCONCE_FLOAT16)
    memcpy(p, &half, 2);
  else
    memcpy(p, &whole, sconce_dtype_size(dtype)); /* the low bytes come first */
}

/* The same numbers at every run: in [0, 1), and 0 or 1 for integers. */
static double next_random(uint64_t *state, bool whole) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  uint32_t high = (uint32_t)(*state >> 33);
  return whole ? high & 1 : high / 2147483648.0;
}

static bool is_float(sconce_dtype d) {
  return d == SCONCE_FLOAT16 || d == SCONCE_FLOAT32 || d == SCONCE_FLOAT64;
}

static bool allocate(const char *word, sconce_tensor *t, void **data) {
  if (!cli_size(t, &t->size) || !(*data = calloc(t->size ? t->size : 1, 1)))
    return complain(word, "out of memory");
  t->data = *data;
  return true;
}

/* ---- words ----------------------------------------------------------------------------------- */

/* "1x3x224"; an empty text is a scalar. */
static bool read_dims(const char *p, sconce_tensor *t) {
  while (*p) {
    char *end;
    errno = 0;
    unsigned long long dim = strtoull(p, &end, 10);
    if (*p < '0' || *p > '9' || errno || dim > UINT32_MAX || t->rank == SCONCE_MAX_RANK)
      return false;
    t->dims[t->rank++] = (uint32_t)dim;
    if (*end == 'x' && end[1])
      end++;
    else if (*end)
      return false;
    p = end;
  }
  return true;
}

static bool make_filled(const char *word, const char *dims, char kind, sconce_tensor *t,
                        void **data) {
  if (!read_dims(dims, t)) return complain(word, "expected dims like 1x3x224x224, at most 8");
  if (!allocate(word, t, data)) return false;
  uint64_t n = kind == 'z' ? 0 : cli_numel(t), state = 1;
  size_t step = sconce_dtype_size(t->dtype);
  for (uint64_t i = 0; i < n; i++)
    store(t->dtype, (uint8_t *)*data + i * step,
          kind == 'o' ? 1 : next_random(&state, !is_float(t->dtype)));
  return true;
}

/* All values lie along the last dim; the others are 1. */
static bool make_ints(const char *word, const char *list, uint32_t rank, sconce_tensor *t,
                      void **data) {
  uint32_t n = 1;
  for (const char *p = list; *p; p++) n += *p == ',';
  t->rank = rank;
  for (uint32_t d = 0; d < rank; d++) t->dims[d] = d + 1 < rank ? 1 : n;
  if (rank == 0 && n != 1) return complain(word, "the input is a scalar");
  if (!allocate(word, t, data)) return false;
  size_t step = sconce_dtype_size(t->dtype);
  for (uint32_t i = 0; i < n; i++) {
    char *end;
    errno = 0;
    long long v = strtoll(list, &end, 10);
    if (end == list || (*end && *end != ',') || errno) return complain(word, "expected integers");
    uint8_t *p = (uint8_t *)*data + i * step;
    store(t->dtype, p, (double)v);
    if (t->dtype == SCONCE_INT64) memcpy(p, &v, 8); /* exact beyond 2^53 */
    if (!is_float(t->dtype) && (long long)cli_element(t, i) != v && t->dtype != SCONCE_INT64)
      return complain(word, "a value does not fit the input's dtype");
    list = end + 1;
  }
  return true;
}

bool input_zeros(const sconce_tensor *bound, sconce_tensor *out, void **data) {
  *out = *bound;
  *data = NULL;
  return allocate("zeros", out, data);
}

bool input_make(const char *word, const sconce_tensor *bound, sconce_tensor *out, void **data) {
  static const char *const kinds[] = {"zeros:", "ones:", "rand:"};
  *out = (sconce_tensor){.dtype = bound->dtype};
  *data = NULL;
  bool known = false, ok = false;
  for (int i = 0; i < 3 && !known; i++)
    if ((known = !strncmp(word, kinds[i], strlen(kinds[i]))))
      ok = make_filled(word, word + strlen(kinds[i]), *word, out, data);
  if (!known && (known = !strncmp(word, "ints:", 5)))
    ok = make_ints(word, word + 5, bound->rank, out, data);
  if (!known) return npy_read(word, out, data);
  if (ok) return true;
  free(*data);
  *data = NULL;
  return false;
}
