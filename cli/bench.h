/* Parts of `sconce bench`. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "llm.h"

struct bench_llm {
  struct llm_options options;
  const char *prompts, *depths; /* lists with commas */
  const char *format;           /* md, csv, json */
  long n_decode, repeats;
  bool profile; /* where one token's time goes, instead of tokens per second */
  const char
      *lookup; /* a text to go on with, with lookup and without, instead of all that; or NULL */
};
int bench_llm(const struct bench_llm *bench);
int bench_lookup(struct llm *llm, const struct bench_llm *bench);

/* At one depth; `ids` has room for the context. */
int bench_profile(struct llm *llm, const struct bench_llm *bench, int32_t *ids, long depth,
                  bool first);
/* Brings the session to a depth; the same ids again cost nothing. */
sconce_status bench_go_to(struct llm *llm, int32_t *ids, long depth, sconce_error *err);
/* Decoding as a caller sees it: choose, append, with the device's work waited for. */
sconce_status bench_decode(struct llm *llm, long n, sconce_error *err);

/* Where the time of one call goes; zero-initialise. */
enum { BENCH_LABEL = 80 };
struct bench_line { /* one kernel over all its dispatches */
  char label[BENCH_LABEL];
  unsigned dispatches;
  double us;
};
struct bench_where {
  struct bench_line *lines; /* longest first */
  size_t n_lines;
  double kernels_us, pass_us; /* a pass for each dispatch, all in one pass: medians */
  size_t n;                   /* dispatches */
  char (*labels)[BENCH_LABEL];
  double *us;  /* (repeats, n) */
  size_t at;   /* dispatches of the running repeat so far */
  long repeat; /* -1: only counts */
};
/* Runs the state as it is set; scratch has room for `repeats`. Needs timestamps. */
sconce_status bench_where(sconce_state *state, struct bench_where *where, long repeats,
                          double *scratch, sconce_error *err);
void bench_where_free(struct bench_where *where);
double bench_median(double *values, size_t n); /* sorts them */

/* Any other model: one call, with made-up inputs of the largest dims. */
int bench_call(struct llm *llm, const struct bench_llm *bench);

struct bench_kernels {
  const struct cli_device *device;
  const char *filter, *format;
  bool quick;
  long repeats;
};
int bench_kernels(const struct bench_kernels *bench);

/* Bytes per second that kernels read here; 0 where that limits nothing, with shaders in software,
 * and (with a complaint) if it cannot be measured. */
double bench_bandwidth(sconce_device *device);

#endif
