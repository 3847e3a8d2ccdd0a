/* The part of `sconce bench` that runs a language model. */
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

#endif
