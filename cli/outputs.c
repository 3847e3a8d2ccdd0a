/* See outputs.h. */
#include "outputs.h"

#include "cli.h"
#include "tensor.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the whole ------------------------------------------------------------------------------- */

static void print_range(const sconce_tensor *t) {
  double low = INFINITY, high = -INFINITY, sum = 0;
  uint64_t n = cli_numel(t), n_finite = 0;
  for (uint64_t i = 0; i < n; i++) {
    double v = cli_element(t, i);
    if (!isfinite(v)) continue;
    if (v < low) low = v;
    if (v > high) high = v;
    sum += v;
    n_finite++;
  }
  if (n_finite) printf("  min %.6g  max %.6g  mean %.6g", low, high, sum / (double)n_finite);
  if (n_finite < n) printf("  %llu not finite", (unsigned long long)(n - n_finite));
}

/* The sign of what is no number says nothing. */
static double unsigned_nan(double v) { return isnan(v) ? fabs(v) : v; }

static void print_first(const sconce_tensor *t) {
  enum { SHOWN = 8 };
  const uint64_t n = cli_numel(t);
  fputs(n ? "\n " : "\n", stdout);
  for (uint64_t i = 0; i < n && i < SHOWN; i++) printf(" %.6g", unsigned_nan(cli_element(t, i)));
  if (n) puts(n > SHOWN ? " …" : "");
}

/* ---- the largest ----------------------------------------------------------------------------- */

/* Line i of a text that has no other newlines; its length in *size, 0 past the end. */
static const char *line_of(const char *text, uint64_t i, int *size) {
  for (; text && i; i--) {
    text = strchr(text, '\n');
    if (text) text++;
  }
  *size = text ? (int)strcspn(text, "\r\n") : 0;
  return text ? text : "";
}

/* What the values of a row would be as shares of one; nothing if they are that already. */
static double softmax_sum(const sconce_tensor *t, uint64_t from, uint64_t n, double *high) {
  double sum = 0, plain = 0;
  bool shares = true;
  *high = -INFINITY;
  for (uint64_t i = 0; i < n; i++) {
    const double v = cli_element(t, from + i);
    if (v > *high) *high = v;
    shares = shares && v >= 0 && v <= 1;
    plain += v;
  }
  if (shares && fabs(plain - 1) < 0.01) return 0;
  for (uint64_t i = 0; i < n; i++) sum += exp(cli_element(t, from + i) - *high);
  return sum;
}

/* Of what comes after (value, index) in the order largest first, the first; n: none. */
static uint64_t next_best(const sconce_tensor *t, uint64_t from, uint64_t n, uint64_t after) {
  uint64_t best = n;
  const double bar = after < n ? cli_element(t, from + after) : INFINITY;
  for (uint64_t i = 0; i < n; i++) {
    const double v = cli_element(t, from + i);
    const bool later = after >= n || v < bar || (v == bar && i > after);
    if (later && !isnan(v) && (best == n || v > cli_element(t, from + best))) best = i;
  }
  return best;
}

static void print_top(const sconce_tensor *t, uint64_t from, uint64_t n, uint32_t top,
                      const char *labels) {
  double high;
  const double sum = softmax_sum(t, from, n, &high);
  uint64_t at = n;
  for (uint32_t k = 0; k < top && k < n; k++) {
    int size;
    at = next_best(t, from, n, at);
    if (at == n) break;
    const double v = cli_element(t, from + at), share = sum > 0 ? exp(v - high) / sum : v;
    const char *label = line_of(labels, at, &size);
    printf("  %5.1f %%  %-8.6g  %llu%s%.*s\n", 100 * share, v, (unsigned long long)at,
           size ? "  " : "", size, label);
  }
}

static void print_tops(const sconce_tensor *t, uint32_t top, const char *labels) {
  const uint64_t n = t->rank ? t->dims[t->rank - 1] : 1, all = cli_numel(t);
  putchar('\n');
  for (uint64_t from = 0; n && from < all; from += n) {
    if (all > n) printf("  row %llu\n", (unsigned long long)(from / n));
    print_top(t, from, n, top, labels);
  }
}

/* ---- all of them ----------------------------------------------------------------------------- */

static bool save(const char *folder, uint32_t i, const sconce_tensor *t) {
  char path[4096];
  int n = snprintf(path, sizeof path, "%s/output%u.npy", folder, i);
  if (n > 0 && (size_t)n < sizeof path) return npy_write(path, t);
  fputs("sconce: --output-dir is too long\n", stderr);
  return false;
}

static bool show(sconce_state *state, uint32_t i, const struct outputs_desc *desc,
                 const char *labels) {
  sconce_tensor t;
  sconce_error err = {0};
  char dims[128];
  if (sconce_state_output(state, i, &t, &err) != SCONCE_OK) return !cli_fail(&err);
  printf("output %u: %s %s", i, sconce_dtype_name(t.dtype), cli_dims(dims, &t));
  print_range(&t);
  if (desc->top)
    print_tops(&t, desc->top, labels);
  else
    print_first(&t);
  return !desc->folder || save(desc->folder, i, &t);
}

bool outputs_show(sconce_state *state, uint32_t n, const struct outputs_desc *desc) {
  size_t size;
  char *labels = NULL;
  if (desc->folder && !console_make_folder(desc->folder)) {
    fprintf(stderr, "sconce: cannot make the folder %s: %s\n", desc->folder, strerror(errno));
    return false;
  }
  if (desc->labels_path && !(labels = cli_read_file(desc->labels_path, CLI_TEXT_MAX, &size)))
    return false;
  bool ok = true;
  for (uint32_t i = 0; i < n && ok; i++) ok = show(state, i, desc, labels);
  free(labels);
  return ok;
}
