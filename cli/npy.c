/* NumPy's .npy: a magic number, a Python dict as text, then the elements. Reading trusts nothing:
 * the header's length is capped and the shape must account for exactly the bytes that follow. */
#include "tensor.h"

#include "console.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_MAX = 1 << 16 };

static const struct {
  sconce_dtype dtype;
  const char *name;
} descrs[] = {{SCONCE_FLOAT32, "<f4"}, {SCONCE_FLOAT16, "<f2"}, {SCONCE_FLOAT64, "<f8"},
              {SCONCE_INT64, "<i8"},   {SCONCE_INT32, "<i4"},   {SCONCE_INT16, "<i2"},
              {SCONCE_INT8, "|i1"},    {SCONCE_UINT8, "|u1"},   {SCONCE_BOOL, "|b1"}};
enum { DESCRS = sizeof descrs / sizeof *descrs };

static bool complain(const char *path, const char *what) {
  fprintf(stderr, "sconce: %s: %s\n", path, what);
  return false;
}

/* ---- the header ------------------------------------------------------------------------------ */

/* What follows 'key': in the dict, or NULL. */
static const char *value_of(const char *header, const char *key) {
  const char *p = strstr(header, key);
  if (!p) return NULL;
  p += strlen(key);
  p += strspn(p, " ");
  if (*p++ != ':') return NULL;
  return p + strspn(p, " ");
}

static bool read_descr(const char *value, sconce_dtype *out) {
  if (!value || (*value != '\'' && *value != '"') || !value[1]) return false;
  for (int i = 0; i < DESCRS; i++) {
    size_t n = strlen(descrs[i].name);
    /* One byte has no order, whatever the file says about it. */
    size_t from = sconce_dtype_size(descrs[i].dtype) == 1;
    if (strncmp(value + 1 + from, descrs[i].name + from, n - from) != 0) continue;
    if (value[1 + n] != *value) continue;
    *out = descrs[i].dtype;
    return true;
  }
  return false;
}

/* "(1, 3)", "(3,)", "()". */
static bool read_shape(const char *p, sconce_tensor *t) {
  if (!p || *p++ != '(') return false;
  for (t->rank = 0;;) {
    p += strspn(p, " ");
    if (*p == ')') return true;
    char *end;
    errno = 0;
    unsigned long long dim = strtoull(p, &end, 10);
    if (*p < '0' || *p > '9' || errno || dim > UINT32_MAX || t->rank == SCONCE_MAX_RANK)
      return false;
    t->dims[t->rank++] = (uint32_t)dim;
    p = end + strspn(end, " ");
    if (*p == ',')
      p++;
    else if (*p != ')')
      return false;
  }
}

/* Of a key that is there twice, in whatever quotes, readers take one or the other. */
static bool is_ambiguous(const char *header) {
  static const char *const keys[] = {"descr", "fortran_order", "shape"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    const char *first = strstr(header, keys[i]);
    if (first && strstr(first + 1, keys[i])) return true;
  }
  return false;
}

static bool read_header(FILE *file, const char *path, sconce_tensor *t) {
  unsigned char start[12];
  if (fread(start, 1, 8, file) != 8 || memcmp(start, "\x93NUMPY", 6) != 0)
    return complain(path, "no .npy file");
  if (start[6] < 1 || start[6] > 3) return complain(path, "unknown version of .npy");
  size_t n_length = start[6] == 1 ? 2 : 4, length = 0;
  if (fread(start + 8, 1, n_length, file) != n_length) return complain(path, "ends in its header");
  for (size_t i = n_length; i-- > 0;) length = length << 8 | start[8 + i];
  if (length > HEADER_MAX) return complain(path, "a header of more than 64 KiB");
  char *header = calloc(length + 1, 1);
  if (!header) return complain(path, "out of memory");
  const char *order, *problem = NULL;
  if (fread(header, 1, length, file) != length)
    problem = "ends in its header";
  else if (is_ambiguous(header))
    problem = "a key of its header is there twice";
  else if (!read_descr(value_of(header, "'descr'"), &t->dtype))
    problem = "its elements are none of f2 f4 f8 i1 i2 i4 i8 u1 b1, little-endian";
  else if (!(order = value_of(header, "'fortran_order'")) || strncmp(order, "False", 5) != 0)
    problem = "not in C order";
  else if (!read_shape(value_of(header, "'shape'"), t))
    problem = "no shape of at most 8 dims";
  free(header);
  return problem ? complain(path, problem) : true;
}

/* ---- whole files ----------------------------------------------------------------------------- */

static bool read_data(FILE *file, const char *path, sconce_tensor *t, void **data) {
  long at = ftell(file);
  if (at < 0 || fseek(file, 0, SEEK_END) != 0) return complain(path, "cannot be measured");
  long end = ftell(file);
  if (end < at || fseek(file, at, SEEK_SET) != 0) return complain(path, "cannot be measured");
  if (!cli_size(t, &t->size) || t->size != (size_t)(end - at))
    return complain(path, "the bytes after its header are not what its shape needs");
  *data = malloc(t->size ? t->size : 1);
  if (!*data) return complain(path, "out of memory");
  t->data = *data;
  return fread(*data, 1, t->size, file) == t->size ? true : complain(path, "cannot be read");
}

bool npy_read(const char *path, sconce_tensor *out, void **data) {
  *out = (sconce_tensor){0};
  *data = NULL;
  const char *why;
  FILE *file = console_open_regular(path, &why);
  if (!file) return complain(path, why);
  bool ok = read_header(file, path, out) && read_data(file, path, out, data);
  fclose(file);
  if (ok) return true;
  free(*data);
  *data = NULL;
  return false;
}

bool npy_write(const char *path, const sconce_tensor *t) {
  const char *descr = NULL;
  for (int i = 0; i < DESCRS; i++)
    if (descrs[i].dtype == t->dtype) descr = descrs[i].name;
  if (!descr) return complain(path, "a dtype that .npy does not have");
  char dims[128], header[384];
  int n = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
                   descr, cli_dims(dims, t));
  /* The elements begin at a multiple of 64 bytes, after a newline. */
  size_t length = ((size_t)n + 1 + 10 + 63) / 64 * 64 - 10;
  memset(header + n, ' ', length - (size_t)n - 1);
  header[length - 1] = '\n';
  const unsigned char start[10] = {
      0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)length, (unsigned char)(length >> 8)};
  FILE *file = console_open(path, "wb");
  if (!file) return complain(path, strerror(errno));
  bool ok = fwrite(start, 1, 10, file) == 10 && fwrite(header, 1, length, file) == length &&
            fwrite(t->data, 1, t->size, file) == t->size;
  if (fclose(file) != 0 || !ok) return complain(path, "cannot be written");
  return true;
}
