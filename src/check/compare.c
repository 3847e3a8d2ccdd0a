/* What was computed against what was expected: every rule is here, and needs no device. */
#include "check/check.h"

#include "base/half.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* Below this a golden is no scale for a relative error. */
static const double FLOOR = 1e-6;

bool check_is_float(sconce_dtype d) {
  return d == SCONCE_FLOAT16 || d == SCONCE_FLOAT32 || d == SCONCE_FLOAT64;
}

static int64_t integer_at(const sconce_tensor *t, uint64_t i) {
  const uint8_t *p = (const uint8_t *)t->data + i * sconce_dtype_size(t->dtype);
  switch (t->dtype) {
  case SCONCE_INT8:
    return (int8_t)*p;
  case SCONCE_INT16:
    return (int16_t)load_u16(p);
  case SCONCE_INT32:
    return (int32_t)load_u32(p);
  case SCONCE_INT64:
    return (int64_t)load_u64(p);
  default:
    return *p;
  }
}

double check_element(const sconce_tensor *t, uint64_t i) {
  const uint8_t *p = (const uint8_t *)t->data + i * sconce_dtype_size(t->dtype);
  float single;
  double wide;
  switch (t->dtype) {
  case SCONCE_FLOAT16:
    return (double)half_to_float(load_u16(p));
  case SCONCE_FLOAT32:
    memcpy(&single, p, sizeof single);
    return (double)single;
  case SCONCE_FLOAT64:
    memcpy(&wide, p, sizeof wide);
    return wide;
  default:
    return (double)integer_at(t, i);
  }
}

/* ---- sentences ------------------------------------------------------------------------------- */

enum { INDEX_TEXT = SCONCE_MAX_RANK * 12 + 4 };

static size_t append(char *out, size_t at, size_t size, const char *before, uint32_t n) {
  int more = snprintf(out + at, size - at, "%s%" PRIu32, before, n);
  return more > 0 && (size_t)more < size - at ? at + (size_t)more : at;
}

/* 7 of (2, 3, 4) -> "[0, 1, 3]"; of a scalar -> "[]". */
static const char *index_text(char out[INDEX_TEXT], const sconce_tensor *t, uint64_t flat) {
  uint32_t at[SCONCE_MAX_RANK];
  for (uint32_t d = t->rank; d-- > 0; flat /= t->dims[d]) at[d] = (uint32_t)(flat % t->dims[d]);
  size_t n = 0;
  out[n++] = '[';
  for (uint32_t d = 0; d < t->rank; d++) n = append(out, n, INDEX_TEXT - 2, d ? ", " : "", at[d]);
  out[n++] = ']';
  out[n] = 0;
  return out;
}

static const char *shape_text(char out[INDEX_TEXT], const sconce_tensor *t) {
  size_t n = 0;
  out[n++] = '[';
  for (uint32_t d = 0; d < t->rank; d++)
    n = append(out, n, INDEX_TEXT - 2, d ? ", " : "", t->dims[d]);
  out[n++] = ']';
  out[n] = 0;
  return out;
}

static uint64_t numel_of(const sconce_tensor *t) {
  uint64_t n = 1;
  for (uint32_t d = 0; d < t->rank; d++) n *= t->dims[d];
  return n;
}

static sconce_status check_shapes(const sconce_tensor *got, const sconce_tensor *want,
                                  sconce_error *err) {
  bool same = got->rank == want->rank;
  for (uint32_t d = 0; same && d < got->rank; d++) same = got->dims[d] == want->dims[d];
  char a[INDEX_TEXT], b[INDEX_TEXT];
  if (!same)
    return fail(err, SCONCE_WRONG_RESULT, "the shape is %s, want %s", shape_text(a, got),
                shape_text(b, want));
  if (check_is_float(got->dtype) != check_is_float(want->dtype))
    return fail(err, SCONCE_WRONG_RESULT, "the dtype is %s, want %s", sconce_dtype_name(got->dtype),
                sconce_dtype_name(want->dtype));
  return SCONCE_OK;
}

/* ---- integers -------------------------------------------------------------------------------- */

static void note(struct check_worst *worst, double error, double want) {
  double scale = fabs(want) > FLOOR ? fabs(want) : FLOOR;
  double relative = isinf(error) ? INFINITY : error / scale;
  if (error > worst->abs) worst->abs = error;
  if (error > 0 && relative > worst->rel) worst->rel = relative;
}

static sconce_status compare_integers(const sconce_tensor *got, const sconce_tensor *want,
                                      struct check_worst *worst, sconce_error *err) {
  uint64_t n = numel_of(want), n_wrong = 0, first = 0;
  for (uint64_t i = 0; i < n; i++) {
    int64_t a = integer_at(got, i), b = integer_at(want, i);
    if (a == b) continue;
    note(worst, fabs((double)a - (double)b), (double)b);
    if (n_wrong++ == 0) first = i;
  }
  char at[INDEX_TEXT];
  if (n_wrong)
    return fail(err, SCONCE_WRONG_RESULT,
                "element %s is %" PRId64 ", want %" PRId64 " (%" PRIu64 " of %" PRIu64 " wrong)",
                index_text(at, want, first), integer_at(got, first), integer_at(want, first),
                n_wrong, n);
  return SCONCE_OK;
}

/* ---- floats ---------------------------------------------------------------------------------- */

/* Infinite where a value that is not finite does not meet its like. */
static double error_of(double got, double want) {
  if (isfinite(got) && isfinite(want)) return fabs(got - want);
  if (isnan(got) || isnan(want)) return isnan(got) && isnan(want) ? 0 : INFINITY;
  return got == want ? 0 : INFINITY;
}

static double largest(const sconce_tensor *t) {
  double most = 0;
  for (uint64_t i = 0, n = numel_of(t); i < n; i++) {
    const double size = fabs(check_element(t, i));
    if (isfinite(size) && size > most) most = size;
  }
  return most;
}

static bool is_wrong(const struct check_rule *rule, double error, double want) {
  if (isinf(error)) return true;
  if (!rule->elements || error <= rule->atol) return false;
  double scale = fabs(want) > FLOOR ? fabs(want) : FLOOR;
  return rule->rtol == 0 || error / scale > rule->rtol;
}

static sconce_status compare_elements(const sconce_tensor *got, const sconce_tensor *want,
                                      const struct check_rule *rule, struct check_worst *worst,
                                      sconce_error *err) {
  uint64_t n = numel_of(want), n_wrong = 0, at = 0;
  double most = 0;
  for (uint64_t i = 0; i < n; i++) {
    double w = check_element(want, i), error = error_of(check_element(got, i), w);
    note(worst, error, w);
    if (!is_wrong(rule, error, w)) continue;
    if (n_wrong++ == 0 || error > most) {
      most = error;
      at = i;
    }
  }
  char where[INDEX_TEXT];
  if (n_wrong)
    return fail(err, SCONCE_WRONG_RESULT,
                "element %s is %.9g, want %.9g (%" PRIu64 " of %" PRIu64
                " wrong; atol %g, rtol %g)",
                index_text(where, want, at), check_element(got, at), check_element(want, at),
                n_wrong, n, rule->atol, rule->rtol);
  return SCONCE_OK;
}

/* From element `from` on; pairs that are not finite have been compared and carry no length. */
static double nrmse_of(const sconce_tensor *got, const sconce_tensor *want, uint64_t from) {
  double apart = 0, length = 0;
  for (uint64_t i = from, n = numel_of(want); i < n; i++) {
    double g = check_element(got, i), w = check_element(want, i);
    if (!isfinite(w)) continue;
    apart += (g - w) * (g - w);
    length += w * w;
  }
  if (apart == 0) return 0;
  return length > 0 ? sqrt(apart / length) : INFINITY;
}

static sconce_status compare_norm(const sconce_tensor *got, const sconce_tensor *want,
                                  const char *what, uint64_t from, double limit,
                                  sconce_error *err) {
  if (limit <= 0) return SCONCE_OK;
  double nrmse = nrmse_of(got, want, from);
  if (nrmse <= limit) return SCONCE_OK;
  return fail(err, SCONCE_WRONG_RESULT, "the %s is %.3g, at most %g", what, nrmse, limit);
}

sconce_status check_compare(const sconce_tensor *got, const sconce_tensor *want,
                            const struct check_rule *rule, struct check_worst *worst,
                            sconce_error *err) {
  TRY(check_shapes(got, want, err));
  if (!check_is_float(want->dtype)) return compare_integers(got, want, worst, err);
  struct check_rule scaled = *rule;
  if (rule->scale > 0) scaled.atol = fmax(rule->atol, rule->scale * largest(want));
  if (rule->nrmse > 0) scaled.nrmse = fmax(rule->nrmse, rule->scale);
  if (rule->tail_nrmse > 0) scaled.tail_nrmse = fmax(rule->tail_nrmse, rule->scale);
  rule = &scaled;
  TRY(compare_elements(got, want, rule, worst, err));
  TRY(compare_norm(got, want, "nrmse", 0, rule->nrmse, err));
  uint64_t n = numel_of(want), row = want->rank ? want->dims[want->rank - 1] : 1;
  return compare_norm(got, want, "nrmse of the last row", n - (row < n ? row : n), rule->tail_nrmse,
                      err);
}
