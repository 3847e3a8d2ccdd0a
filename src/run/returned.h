/* Which arguments of a delegate's call are which of its outputs.
 *
 * The exporter names what a delegate returns several times once, where it first comes, but every
 * time among the arguments of the call. */
#ifndef RUN_RETURNED_H
#define RUN_RETURNED_H

#include <stdbool.h>
#include <stdint.h>

struct returned {
  const bool *fits;           /* (n_args, n_outputs): could the argument be the output? */
  uint32_t n_args, n_outputs; /* n_args >= n_outputs */
  uint8_t *ways;              /* returned_ways(n_args, n_outputs), to work in */
};

uint64_t returned_ways(uint32_t n_args, uint32_t n_outputs);

enum returned_found { RETURNED_NONE, RETURNED_ONE, RETURNED_SEVERAL };

/* Fills which[n_args] where there is one way only; *at is an argument that has none or several. */
enum returned_found returned_find(const struct returned *r, uint32_t *which, uint32_t *at);

#endif
