/* See blocks.h. */
#include "ops/quantize/blocks.h"
#include "ops/strides/strides.h"

#include <inttypes.h>
#include <string.h>

const struct places *places_of(const struct node *n) {
  static const struct places places[] = {
      [NUMBERS] = {1, 2, 0, 3, 4},      [TENSORS] = {1, 2, 0, 3, 4},
      [CHANNELS] = {1, 2, 3, 4, 5},     [TOKENS] = {1, 2, 0, 3, 4, true},
      [GROUPS] = {1, 2, 6, 3, 4, true}, [BLOCKS] = {2, 3, 1, 5, 6},
  };
  return &places[n->op->code];
}

enum zero_storage zero_storage(enum vk_dtype dtype) {
  static const enum zero_storage storages[] = {[VK_INT8] = ZEROS_I8,
                                               [VK_UINT8] = ZEROS_U8,
                                               [VK_INT32] = ZEROS_I32,
                                               [VK_FLOAT16] = ZEROS_F16,
                                               [VK_FLOAT32] = ZEROS_F32};
  return dtype < sizeof storages / sizeof *storages ? storages[dtype] : ZEROS_NONE;
}

static void push(struct nest *nest, uint64_t size, uint32_t step) {
  nest_push(nest, (uint32_t)size, step, 0);
}

static uint64_t numel_of(const uint32_t *dims, uint32_t from, uint32_t to) {
  uint64_t numel = 1;
  for (uint32_t i = from; i < to; i++) numel *= dims[i];
  return numel;
}

static sconce_status channels(struct plan *p, const struct node *n, const struct tensor *x,
                              struct nest *nest) {
  uint32_t axis;
  TRY(arg_dim(p, n, places_of(n)->part, x->rank, &axis));
  push(nest, numel_of(x->dim_live, 0, axis), 0);
  push(nest, x->dim_live[axis], 1);
  push(nest, numel_of(x->dim_live, axis + 1, x->rank), 0);
  return SCONCE_OK;
}

/* A group that is larger than a row is the row. */
static sconce_status groups(struct plan *p, const struct node *n, const struct tensor *x,
                            struct nest *nest) {
  const int64_t cols = x->rank ? x->dim_live[x->rank - 1] : 1;
  int64_t group = cols;
  if (n->op->code == GROUPS) TRY(arg_int(p, n, places_of(n)->part, &group));
  if (group > cols) group = cols;
  if (x->rank == 0 || (cols && (group < 1 || cols % group)))
    return fail(p->err, SCONCE_BAD_GRAPH, "groups of %" PRId64 " in rows of %" PRId64 ", rank %u",
                group, cols, x->rank);
  push(nest, cols ? tensor_numel(x) / (uint64_t)group : 0, 1);
  push(nest, (uint64_t)group, 0);
  return SCONCE_OK;
}

static sconce_status blocks(struct plan *p, const struct node *n, const struct tensor *x,
                            struct nest *nest) {
  int64_t block[RANK_MAX];
  uint32_t rank;
  TRY(arg_ints(p, n, places_of(n)->part, block, RANK_MAX, &rank));
  if (rank != x->rank)
    return fail(p->err, SCONCE_BAD_GRAPH, "blocks of rank %u for a tensor of rank %u", rank,
                x->rank);
  uint32_t step[RANK_MAX], number[RANK_MAX];
  for (uint32_t i = 0; i < rank; i++) {
    if (block[i] < 1 || x->dim_live[i] % block[i])
      return fail(p->err, SCONCE_BAD_GRAPH, "blocks of %" PRId64 " along dim %u of %u", block[i], i,
                  x->dim_live[i]);
    number[i] = (uint32_t)(x->dim_live[i] / block[i]);
  }
  dense_strides(number, rank, step);
  for (uint32_t i = 0; i < rank; i++) {
    push(nest, number[i], step[i]);
    push(nest, (uint64_t)block[i], 0);
  }
  return SCONCE_OK;
}

static sconce_status nest_of(struct plan *p, const struct node *n, const struct tensor *x,
                             struct nest *nest) {
  *nest = (struct nest){.n_operands = 1};
  switch (n->op->code) {
  case CHANNELS:
    return channels(p, n, x, nest);
  case TOKENS:
  case GROUPS:
    return groups(p, n, x, nest);
  case BLOCKS:
    return blocks(p, n, x, nest);
  default:
    push(nest, tensor_numel(x), 0);
    return SCONCE_OK;
  }
}

/* How many scales a nest walks over. */
static uint64_t scales_of(const struct nest *nest) {
  uint64_t n = 1;
  for (uint32_t i = 0; i < nest->rank; i++)
    if (nest->stride[0][i]) n *= nest->size[i];
  return n;
}

static sconce_status zeros_of(struct plan *p, const struct node *n, uint64_t numel,
                              uint32_t *storage) {
  *storage = ZEROS_NONE;
  if (arg_is_null(p, n, places_of(n)->zero)) return SCONCE_OK;
  const struct tensor *zero;
  TRY(arg_tensor(p, n, places_of(n)->zero, &zero));
  char text[120];
  if (tensor_numel(zero) == 0) return SCONCE_OK; /* torchao's way to say none */
  *storage = zero_storage(zero->dtype);
  if (*storage == ZEROS_NONE)
    return fail(p->err, SCONCE_UNSUPPORTED, "zero points of %s", vk_dtype_name(zero->dtype));
  if (tensor_numel(zero) != numel)
    return fail(p->err, SCONCE_BAD_GRAPH, "zero points %s for %" PRIu64 " blocks",
                tensor_text(zero, text), numel);
  return SCONCE_OK;
}

sconce_status blocks_of(struct plan *p, const struct node *n, const struct tensor *x,
                        struct blocks_params *u) {
  const struct tensor *scale;
  TRY(arg_tensor(p, n, places_of(n)->scale, &scale));
  TRY(float_check(p, scale, "the scale"));
  struct nest nest;
  TRY(nest_of(p, n, x, &nest));
  const uint64_t numel = scales_of(&nest);
  char text[120];
  if (tensor_numel(scale) != numel)
    return fail(p->err, SCONCE_BAD_GRAPH, "scales %s for %" PRIu64 " blocks",
                tensor_text(scale, text), numel);
  TRY(zeros_of(p, n, numel, &u->zeros));
  nest_merge(&nest);
  u->rank = nest.rank;
  u->half = is_half(scale);
  u->late = places_of(n)->late;
  memcpy(u->size, nest.size, sizeof u->size);
  memcpy(u->step, nest.stride[0], sizeof u->step);
  return SCONCE_OK;
}
