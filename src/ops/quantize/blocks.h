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
/* In what zero points are stored, as zero_storage.wgsl counts. */
enum zero_storage { ZEROS_NONE, ZEROS_I8, ZEROS_U8, ZEROS_I32, ZEROS_F16, ZEROS_F32 };
enum zero_storage zero_storage(enum vk_dtype dtype); /* ZEROS_NONE: they cannot be */

#endif
