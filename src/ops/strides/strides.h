/* Loop nests: how operators that only move or pair up elements see their operands.
 *
 * A nest is a list of loop sizes, outermost first, and for each operand the distance in elements
 * that one step of a loop moves it: 0 where it is repeated, negative (modulo 2^32) where it runs
 * backwards. Loops that one operand-independent loop could replace are merged, so that a kernel
 * divides as little as possible, and what was contiguous shows as one long innermost loop. */
#ifndef OPS_STRIDES_H
#define OPS_STRIDES_H

#include "graph/op.h"

enum { NEST_MAX = 16, NEST_OPERANDS = 3 };

struct nest {
  uint32_t rank;       /* at least 1 after nest_merge */
  uint32_t n_operands; /* whose strides count */
  uint32_t size[NEST_MAX];
  uint32_t stride[NEST_OPERANDS][NEST_MAX];
};

/* Row-major strides of dims. */
void dense_strides(const uint32_t *dims, uint32_t rank, uint32_t *strides);

/* Appends a loop inside the others. */
void nest_push(struct nest *nest, uint32_t size, uint32_t s0, uint32_t s1);

/* The strides of operand k, a dense tensor that is broadcast to the nest's sizes. */
void nest_broadcast(struct nest *nest, uint32_t k, const struct tensor *x);

/* Drops loops of one step and merges neighbours. */
void nest_merge(struct nest *nest);

/* Live dims of operands that broadcast, right-aligned; *rank is the largest of their ranks. */
SCONCE_CHECK sconce_status broadcast_dims(struct plan *p, const struct tensor *const *x, uint32_t n,
                                          uint32_t dims[RANK_MAX], uint32_t *rank);

/* Elements that one dispatch of a flat loop may cover, if operands have at most elem_bytes an
 * element: all n, or as many as keep every binding within the limit and every offset aligned. */
uint64_t flat_part(const struct plan *p, uint64_t n, uint32_t elem_bytes);

/* The elements from `at` on, at most `part` of them, of a tensor as a binding. */
struct operand flat_operand(struct plan *p, uint32_t id, uint64_t at, uint64_t part);

/* ---- units ----------------------------------------------------------------------------------- */

/* Elements that move together as one. */
struct unit {
  uint32_t bytes;
};
bool unit_is_quad(const void *unit);
bool unit_is_word(const void *unit);
bool unit_is_half(const void *unit);
bool unit_is_byte(const void *unit);

/* The rows of a shader that moves whole T, or pieces of BITS in words. */
#define UNIT_KERNELS(wgsl)                                                                         \
  {"quads", &wgsl, "T=vec4<u32>", .fits = unit_is_quad},                                           \
      {"words", &wgsl, "T=u32", .fits = unit_is_word},                                             \
      {"halves", &wgsl, "BITS=16u", .fits = unit_is_half}, {                                       \
    "bytes", &wgsl, "BITS=8u", .fits = unit_is_byte                                                \
  }

#endif
