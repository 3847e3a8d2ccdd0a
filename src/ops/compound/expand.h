/* Nodes in place of another: values that they pass on, and the nodes themselves. */
#ifndef OPS_COMPOUND_EXPAND_H
#define OPS_COMPOUND_EXPAND_H

#include "graph/op.h"

/* Argument i as a tensor; the pointer is good until the next value is added. */
SCONCE_CHECK sconce_status expand_given(const struct expansion *x, uint32_t i,
                                        const struct tensor **out);
/* The value that argument i is, or NO_VALUE where it is Null. */
uint32_t expand_some(const struct expansion *x, uint32_t i);
/* Item k of the list that argument i is, or NO_VALUE. */
uint32_t expand_item(const struct expansion *x, uint32_t i, uint32_t k);

/* Argument i as an integer that the file fixes, of whichever kind. */
SCONCE_CHECK sconce_status expand_int(const struct expansion *x, uint32_t i, int64_t *out);
/* Argument i as integers that the file fixes; at most `cap`. */
SCONCE_CHECK sconce_status expand_ints(const struct expansion *x, uint32_t i, int64_t *out,
                                       uint32_t cap, uint32_t *count);

/* New values: a tensor with the dims of another, with those of two values that broadcast, or with
 * all elements of a value in one dim; a number of this kind; a list of values. */
SCONCE_CHECK sconce_status expand_tensor(const struct expansion *x, enum vk_dtype dtype,
                                         const struct tensor *like, uint32_t *out);
SCONCE_CHECK sconce_status expand_broadcast(const struct expansion *x, enum vk_dtype dtype,
                                            uint32_t a, uint32_t b, uint32_t *out);
SCONCE_CHECK sconce_status expand_flat(const struct expansion *x, enum vk_dtype dtype, uint32_t of,
                                       uint32_t *out);
SCONCE_CHECK sconce_status expand_number(const struct expansion *x, enum vk_kind kind, int64_t i,
                                         uint32_t *out);
SCONCE_CHECK sconce_status expand_list(const struct expansion *x, const uint32_t *ids, uint32_t n,
                                       uint32_t *out);

/* Are the results bytes (bool, uint8, int8)? Is argument 0 of halves, and another one, or the first
 * result, of floats? */
bool expand_gives_bytes(const struct expansion *x);
bool expand_mixes_floats(const struct expansion *x);
/* Operator `name`, the one that expands, between casts: of bytes to int32 and back, with
 * wrap-around, or of halves to float32. */
SCONCE_CHECK sconce_status expand_wide(const struct expansion *x, const char *name,
                                       enum vk_dtype wide);
#define EXPAND_WIDE(FUNCTION, NAME, WIDE)                                                          \
  static sconce_status FUNCTION(const struct expansion *x) { return expand_wide(x, NAME, WIDE); }

/* Adds a node; `x` is the expansion. */
#define ADD(name, ...)                                                                             \
  graph_add_node(x->g, text_of(name), x->index, (const uint32_t[]){__VA_ARGS__},                   \
                 (uint32_t)(sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)), x->err)

#endif
