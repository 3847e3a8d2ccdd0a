/* Inputs made from a word of the command line: see tensor.h. */
#include "cli.h"
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
  /* Rounded; what would be subnormal is zero. */
  if (v == 0) return 0;
  int exponent;
  double fraction = frexp(fabs(v), &exponent); /* [0.5, 1) */
  if (exponent < -13) return 0;
  if (exponent > 16) return (uint16_t)(v < 0 ? 0xfc00 : 0x7c00);
  unsigned bits = (unsigned)(exponent + 14) << 10;
  bits += (unsigned)(fraction * 2048 + 0.5) - 1024;
  return (uint16_t)(v < 0 ? bits | 0x8000 : bits);
}

void input_store(sconce_dtype dtype, void *p, double v) {
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

bool cli_is_float(sconce_dtype d) {
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

static void fill(char kind, sconce_tensor *t, void *data) {
  uint64_t n = kind == 'z' ? 0 : cli_numel(t), state = 1;
  const size_t step = sconce_dtype_size(t->dtype);
  for (uint64_t i = 0; i < n; i++) {
    const double v = kind == 'o'   ? 1
                     : kind == 'n' ? (double)i
                                   : next_random(&state, !cli_is_float(t->dtype));
    input_store(t->dtype, (uint8_t *)data + i * step, v);
  }
}

static bool is_number(const char *list, const char **end, double *d, long long *whole) {
  char *after, *after_whole;
  errno = 0;
  *whole = strtoll(list, &after_whole, 10);
  const bool fits = !errno;
  *d = strtod(list, &after);
  *end = after;
  if (after == list || (*after && *after != ',') || !isfinite(*d)) return false;
  if (after_whole != after || !fits) *whole = (long long)*d;
  return true;
}

/* As many as the input has elements fill it; else all lie along the last dim, the others are 1. */
static bool make_numbers(const char *word, const char *list, const sconce_tensor *bound,
                         sconce_tensor *t, void **data) {
  uint32_t n = 1;
  for (const char *p = list; *p; p++) n += *p == ',';
  *t = *bound;
  for (uint32_t d = 0; d < t->rank && cli_numel(bound) != n; d++)
    t->dims[d] = d + 1 < t->rank ? 1 : n;
  if (t->rank == 0 && n != 1) return complain(word, "the input is a scalar");
  if (!allocate(word, t, data)) return false;
  const size_t step = sconce_dtype_size(t->dtype);
  for (uint32_t i = 0; i < n; i++) {
    double v;
    long long whole;
    if (!is_number(list, &list, &v, &whole)) return complain(word, "expected numbers with commas");
    uint8_t *p = (uint8_t *)*data + i * step;
    input_store(t->dtype, p, v);
    if (t->dtype == SCONCE_INT64) memcpy(p, &whole, 8); /* exact beyond 2^53 */
    if (!cli_is_float(t->dtype) && cli_element(t, i) != v)
      return complain(word, "a value does not fit the input's dtype");
    list++;
  }
  return true;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Bytes as they lie in the file, in the input's dims; where these are upper bounds, one of them may
 * be less. */
static bool read_raw(const char *path, const sconce_tensor *bound, sconce_tensor *t, void **data) {
  size_t size, want;
  *t = *bound;
  if (!cli_size(t, &want)) return complain(path, "out of memory");
  *data = cli_read_file(path, want, &size);
  if (!*data) return false;
  for (uint32_t d = 0; d < t->rank && cli_size(t, &want) && want != size; d++) {
    const size_t rest = t->dims[d] ? want / t->dims[d] : 0;
    if (rest && size % rest == 0 && size / rest < t->dims[d]) t->dims[d] = (uint32_t)(size / rest);
  }
  char dims[128];
  t->data = *data;
  t->size = size;
  if (cli_size(t, &want) && want == size) return true;
  fprintf(stderr, "sconce: %s: %zu bytes, the input is %s %s\n", path, size,
          sconce_dtype_name(bound->dtype), cli_dims(dims, bound));
  return false;
}

static bool ends_with(const char *word, const char *end) {
  const size_t n = strlen(word), m = strlen(end);
  return n > m && !strcmp(word + n - m, end);
}

/* ---- any word -------------------------------------------------------------------------------- */

static const struct {
  const char *name;
  char kind;
} kinds[] = {{"zeros", 'z'}, {"ones", 'o'}, {"rand", 'r'}, {"range", 'n'}};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* The row whose name the word begins with, or KINDS. */
static int kind_of(const char *word) {
  int i = 0;
  for (; i < KINDS; i++) {
    const size_t n = strlen(kinds[i].name);
    if (!strncmp(word, kinds[i].name, n) && (!word[n] || word[n] == ':')) break;
  }
  return i;
}

bool input_filled(const char *kind, const sconce_tensor *bound, sconce_tensor *out, void **data) {
  *out = *bound;
  *data = NULL;
  if (!allocate(kind, out, data)) return false;
  fill(kinds[kind_of(kind)].kind, out, *data);
  return true;
}

static bool make_filled(const char *word, int kind, const sconce_tensor *bound, sconce_tensor *t,
                        void **data) {
  const char *dims = word + strlen(kinds[kind].name);
  if (!*dims) return input_filled(word, bound, t, data);
  if (!read_dims(dims + 1, t)) return complain(word, "expected at most 8 sizes, like 1x3x224x224");
  if (!allocate(word, t, data)) return false;
  fill(kinds[kind].kind, t, *data);
  return true;
}

int input_make(const char *word, const sconce_tensor *bound, sconce_tensor *out, void **data) {
  *out = (sconce_tensor){.dtype = bound->dtype};
  *data = NULL;
  const int kind = kind_of(word);
  const bool file = ends_with(word, ".npy") || ends_with(word, ".bin");
  bool ok;
  if (kind < KINDS)
    ok = make_filled(word, kind, bound, out, data);
  else if (ends_with(word, ".npy"))
    ok = npy_read(word, out, data);
  else if (file)
    ok = read_raw(word, bound, out, data);
  else if (strspn(word, "0123456789.,+-eE") == strlen(word))
    ok = make_numbers(word, word, bound, out, data);
  else
    ok = complain(word, "neither a .npy or .bin file, numbers, zeros, ones, rand nor range");
  if (ok) return CLI_DONE;
  free(*data);
  *data = NULL;
  return file ? CLI_FAILED : CLI_USAGE;
}
