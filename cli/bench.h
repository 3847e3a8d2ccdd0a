/* Parts of `sconce bench`. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "llm.h"

struct bench_llm {
  struct llm_options options;
  const char *prompts, *depths; /* lists with commas */
  const char *format;           /* md, csv, json */
  long n_decode, repeats;
};
int bench_llm(const struct bench_llm *bench);

struct bench_kernels {
  const char *filter, *format;
  bool quick;
  long repeats;
};
int bench_kernels(const struct bench_kernels *bench);

/* Bytes per second that kernels read here; 0 (and a complaint) if it cannot be measured. */
double bench_bandwidth(sconce_device *device);

#endif
