/* Blocks of a tensor that have a scale and a zero point each.
 *
 * Channels, tokens, groups and torchao's blocks are all loop nests in which the scale moves on in
 * some loops and stays in others. */
#ifndef OPS_QUANTIZE_BLOCKS_H
#define OPS_QUANTIZE_BLOCKS_H

#include "ops/linear/rows.h"

#include "blocks_params.wgsl.h"

/* What has a scale of its own: the tensor, whose numbers are arguments or tensors of one element;
 * an index along an axis; a row; so many neighbours in a row; a block. An operator's code. */
enum block_kind { NUMBERS, TENSORS, CHANNELS, TOKENS, GROUPS, BLOCKS };

/* Where the arguments are; `part` says how x is divided. */
struct places {
  uint32_t scale, zero, part, low, high;
  bool late; /* the zero point is added before rounding */
};
const struct places *places_of(const struct node *n);

/* All that the kernels for blocks are told about n's scales and zero points, checked. */
SCONCE_CHECK sconce_status blocks_of(struct plan *p, const struct node *n, const struct tensor *x,
                                     struct blocks_params *u);
/* How kernels are told in what zero points are stored: see blocks.wgsl. 0: they cannot be. */
uint32_t zero_storage(enum vk_dtype dtype);

#endif
