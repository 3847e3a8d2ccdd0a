/* Where the time of one call goes on the device: each dispatch by its clock, added up by kernel. */
#include "bench.h"
#include "sconce_dev.h"

#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double bench_median(double *values, size_t n) {
  qsort(values, n, sizeof *values, by_value);
  return n ? values[n / 2] : 0;
}

static void note(void *user, const char *node, const char *kernel, uint64_t from, uint64_t to) {
  struct bench_where *p = user;
  (void)node;
  if (p->repeat >= 0 && p->at < p->n) {
    p->us[(size_t)p->repeat * p->n + p->at] = (double)(to - from) * 1e-3;
    snprintf(p->labels[p->at], BENCH_LABEL, "%s", kernel);
  }
  p->at++;
}

/* A pass per dispatch. The first run, which may compile kernels, tells how many there are. */
static sconce_status time_kernels(sconce_state *state, struct bench_where *p, long repeats,
                                  sconce_error *err) {
  sconce_status status = SCONCE_OK;
  for (p->repeat = -1; p->repeat < repeats && status == SCONCE_OK; p->repeat++) {
    p->at = 0;
    status = sconce_state_profile(state, note, p, err);
    if (status != SCONCE_OK || p->repeat >= 0) continue;
    p->n = p->at;
    p->labels = calloc(p->n + 1, sizeof *p->labels);
    p->us = calloc((p->n + 1) * (size_t)repeats, sizeof *p->us);
    p->lines = calloc(p->n + 1, sizeof *p->lines);
    if (p->labels && p->us && p->lines) continue;
    *err = (sconce_error){SCONCE_NO_MEMORY, "no memory for the times of kernels"};
    return SCONCE_NO_MEMORY;
  }
  return status;
}

static struct bench_line *line_of(struct bench_where *p, const char *label) {
  for (size_t i = 0; i < p->n_lines; i++)
    if (!strcmp(p->lines[i].label, label)) return &p->lines[i];
  struct bench_line *line = &p->lines[p->n_lines++]; /* there is one for each dispatch */
  memcpy(line->label, label, BENCH_LABEL);
  return line;
}

static int longest_first(const void *a, const void *b) {
  double x = ((const struct bench_line *)a)->us, y = ((const struct bench_line *)b)->us;
  return (x < y) - (x > y);
}

/* Medians of each dispatch, added up by kernel. */
static void add_up(struct bench_where *p, long repeats, double *scratch) {
  for (size_t i = 0; i < p->n; i++) {
    for (long r = 0; r < repeats; r++) scratch[r] = p->us[(size_t)r * p->n + i];
    double us = bench_median(scratch, (size_t)repeats);
    struct bench_line *line = line_of(p, p->labels[i]);
    line->dispatches++;
    line->us += us;
    p->kernels_us += us;
  }
  qsort(p->lines, p->n_lines, sizeof *p->lines, longest_first);
}

static sconce_status time_pass(sconce_state *state, struct bench_where *p, long repeats,
                               double *scratch, sconce_error *err) {
  for (long i = -1; i < repeats; i++) { /* once to warm up */
    uint64_t ns;
    sconce_status status = sconce_state_time_pass(state, &ns, err);
    if (status != SCONCE_OK) return status;
    if (i >= 0) scratch[i] = (double)ns * 1e-3;
  }
  p->pass_us = bench_median(scratch, (size_t)repeats);
  return SCONCE_OK;
}

sconce_status bench_where(sconce_state *state, struct bench_where *p, long repeats, double *scratch,
                          sconce_error *err) {
  sconce_status status = time_kernels(state, p, repeats, err);
  if (status != SCONCE_OK) return status;
  add_up(p, repeats, scratch);
  return time_pass(state, p, repeats, scratch, err);
}

void bench_where_free(struct bench_where *p) {
  free(p->labels);
  free(p->us);
  free(p->lines);
}
