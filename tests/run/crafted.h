/* Programs of one delegate, built by hand for tests of what a load must refuse or survive. */
#ifndef TESTS_RUN_CRAFTED_H
#define TESTS_RUN_CRAFTED_H

#include "write/write.h"

static const int32_t four[] = {4};
static const struct write_pte_tensor float4 = {
    .scalar_type = SCALAR_FLOAT, .sizes = four, .rank = 1};

/* A program around one graph, whose inputs and outputs look like these. */
static inline sconce_status around(struct arena *arena, struct write_vk *g,
                                   const struct write_pte_tensor *tensors, uint32_t n_inputs,
                                   uint32_t n_outputs, struct span *out, sconce_error *err) {
  struct write_blob blob, file;
  struct write_pte w;
  TRY(write_vk_finish(g, &blob, err));
  write_pte_init(&w, arena);
  write_pte_delegated(&w, "forward", &blob, tensors, n_inputs, n_outputs);
  TRY(write_pte_finish(&w, &file, err));
  return write_blob_to_memory(&file, arena, out, err);
}

static inline sconce_status one_to_one(struct arena *arena, struct write_vk *g, int32_t x,
                                       int32_t y, struct span *out, sconce_error *err) {
  write_vk_inputs(g, ID_LIST(x));
  write_vk_outputs(g, ID_LIST(y));
  return around(arena, g, (struct write_pte_tensor[]){float4, float4}, 1, 1, out, err);
}

static inline int32_t tensor4(struct write_vk *g) {
  return write_vk_tensor(g, VK_FLOAT32, DIM_LIST(4));
}

#endif
