/* Counts the ways, none, one or several, in which the first arguments can be outputs of which so
 * many were there before; one way through all of them is the answer. */
#include "run/returned.h"

#include <stddef.h>

static uint32_t repeats(const struct returned *r) { return r->n_args - r->n_outputs; }

uint64_t returned_ways(uint32_t n_args, uint32_t n_outputs) {
  return ((uint64_t)n_args + 1) * ((uint64_t)n_args - n_outputs + 1);
}

/* The ways in which `at` arguments can be outputs, `again` of them repeated. */
static uint8_t *ways(const struct returned *r, uint32_t at, uint32_t again) {
  return &r->ways[(size_t)at * (repeats(r) + 1) + again];
}

static bool fits(const struct returned *r, uint32_t at, uint32_t output) {
  return output < r->n_outputs && r->fits[(size_t)at * r->n_outputs + output];
}

/* How many of the outputs in front of `end` argument `at` could be once more, and the last such. */
static uint32_t earlier(const struct returned *r, uint32_t at, uint32_t end, uint32_t *last) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < end; i++)
    if (fits(r, at, i)) n++, *last = i;
  return n;
}

static uint8_t several(uint32_t n) { return (uint8_t)(n < 2 ? n : 2); }

/* What the state in front of argument `at` gives to those behind it. */
static void step(const struct returned *r, uint32_t at, uint32_t again) {
  const uint8_t before = *ways(r, at, again);
  if (!before) return;
  const uint32_t next = at - again;
  uint32_t last;
  if (fits(r, at, next))
    *ways(r, at + 1, again) = several(*ways(r, at + 1, again) + (uint32_t)before);
  if (again < repeats(r)) {
    const uint32_t n = several(earlier(r, at, next, &last)) * (uint32_t)before;
    *ways(r, at + 1, again + 1) = several(*ways(r, at + 1, again + 1) + n);
  }
}

static bool any_way(const struct returned *r, uint32_t at) {
  for (uint32_t again = 0; again <= repeats(r); again++)
    if (*ways(r, at, again)) return true;
  return false;
}

enum returned_found returned_find(const struct returned *r, uint32_t *which, uint32_t *at) {
  for (uint64_t i = 0; i < returned_ways(r->n_args, r->n_outputs); i++) r->ways[i] = i == 0;
  for (*at = 0; *at < r->n_args; ++*at) {
    for (uint32_t again = 0; again <= repeats(r) && again <= *at; again++) step(r, *at, again);
    if (!any_way(r, *at + 1)) return RETURNED_NONE;
  }
  if (!*ways(r, *at, repeats(r))) return --*at, RETURNED_NONE;
  uint32_t again = repeats(r);
  while (*at > 0) { /* back along the only way */
    const uint32_t next = --*at - again;
    const bool first = *at >= again && fits(r, *at, next) && *ways(r, *at, again);
    uint32_t n = 0;
    if (again && *ways(r, *at, again - 1)) n = earlier(r, *at, next + 1, &which[*at]);
    if (first + n != 1) return RETURNED_SEVERAL;
    if (first) which[*at] = next;
    again -= n;
  }
  return RETURNED_ONE;
}
