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
};
int bench_llm(const struct bench_llm *bench);

/* At one depth; `ids` has room for the context. */
int bench_profile(struct llm *llm, const struct bench_llm *bench, int32_t *ids, long depth,
                  bool first);
/* Brings the session to a depth; the same ids again cost nothing. */
sconce_status bench_go_to(struct llm *llm, int32_t *ids, long depth, sconce_error *err);
/* Decoding as a caller sees it: choose, append, with the device's work waited for. */
sconce_status bench_decode(struct llm *llm, long n, sconce_error *err);

struct bench_kernels {
  const struct cli_device *device;
  const char *filter, *format;
  bool quick;
  long repeats;
};
int bench_kernels(const struct bench_kernels *bench);

/* Bytes per second that kernels read here; 0 (and a complaint) if it cannot be measured. */
double bench_bandwidth(sconce_device *device);

#endif
