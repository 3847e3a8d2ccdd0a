/* What tests of sessions that work ahead, and of lost devices, open: a small model with caches made
 * with the writer, where a step costs little, and two sessions of it. */
#ifndef TESTS_RUN_AHEAD_FIXTURE_H
#define TESTS_RUN_AHEAD_FIXTURE_H

#include "gpu.h"

#include "run/device.h"
#include "sconce_llm.h"
#include "write/write.h"

enum { VOCAB = 40, HEADS = 2, DIM = 4, WIDTH = HEADS * DIM, CONTEXT = 48, CHUNK = 6 };

/* ---- the model ------------------------------------------------------------------------------- */

static inline int32_t table(struct write_vk *g, struct arena *arena, uint64_t seed, float loud,
                            int32_t rows) {
  float *data = arena_new(arena, float, (size_t)rows *WIDTH);
  for (int32_t i = 0; i < rows * WIDTH; i++) data[i] = loud * test_random_float(&seed);
  int32_t bytes = write_vk_inline(g, write_bytes(data, (size_t)rows * WIDTH * sizeof *data));
  return write_vk_constant(g, VK_FLOAT32, DIM_LIST(rows, WIDTH), bytes);
}

static inline int32_t cache(struct write_vk *g, struct arena *arena) {
  const size_t size = (size_t)CONTEXT * WIDTH * sizeof(float);
  int32_t bytes = write_vk_inline(g, write_bytes(arena_new(arena, uint8_t, size), size));
  return write_vk_constant(g, VK_FLOAT32, DIM_LIST(1, CONTEXT, HEADS, DIM), bytes);
}

/* logits = attention(x, x, x) · Wᵀ, where x is the row of each id plus that of its call's first
 * position. */
static inline sconce_status build(struct arena *arena, struct span *out, sconce_error *err) {
  struct write_vk g;
  struct write_blob graph, file;
  write_vk_init(&g, arena);
  int32_t ids = write_vk_tensor(&g, VK_INT32, DIM_LIST(1, CHUNK));
  int32_t position = write_vk_tensor(&g, VK_INT32, DIM_LIST(1));
  int32_t null = write_vk_value(&g, literal_null()), zero = write_vk_value(&g, literal_int(0));
  int32_t start = write_vk_value(&g, literal_symint(0));
  int32_t x = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(1, CHUNK, WIDTH));
  int32_t heads = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(1, CHUNK, HEADS, DIM));
  int32_t mixed = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(1, CHUNK, HEADS, DIM));
  int32_t flat = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(1, CHUNK, WIDTH));
  int32_t both = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(1, CHUNK, WIDTH));
  int32_t logits = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(1, CHUNK, VOCAB));
  int32_t by_head = write_vk_value(&g, literal_ints((int64_t[]){1, -1, HEADS, DIM}, 4));
  int32_t by_row = write_vk_value(&g, literal_ints((int64_t[]){1, -1, WIDTH}, 3));
  write_vk_call(&g, "et_vk.select_as_symint.default", ID_LIST(position, zero, zero, start));
  write_vk_call(&g, "aten.embedding.default",
                ID_LIST(table(&g, arena, 1, 2, VOCAB), ids, null, null, null, x));
  write_vk_call(&g, "aten.view_copy.default", ID_LIST(x, by_head, heads));
  write_vk_call(&g, "sdpa_with_kv_cache.default",
                ID_LIST(heads, heads, heads, cache(&g, arena), cache(&g, arena), start,
                        write_vk_value(&g, literal_int(1)), null, zero,
                        write_vk_value(&g, literal_bool(true)), null, mixed));
  write_vk_call(&g, "aten.view_copy.default", ID_LIST(mixed, by_row, flat));
  write_vk_call(&g, "aten.add.Tensor",
                ID_LIST(flat, x, write_vk_value(&g, literal_double(0.25)), both));
  write_vk_call(&g, "aten.linear.default",
                ID_LIST(both, table(&g, arena, 2, 3, VOCAB), null, logits));
  write_vk_inputs(&g, ID_LIST(ids, position));
  write_vk_outputs(&g, ID_LIST(logits));
  TRY(write_vk_finish(&g, &graph, err));
  static const int32_t rows[] = {1, CHUNK, VOCAB}, one[] = {1};
  struct write_pte_tensor io[] = {
      {.scalar_type = SCALAR_LONG, .dynamism = PTE_DYNAMIC_BOUND, .sizes = rows, .rank = 2},
      {.scalar_type = SCALAR_LONG, .sizes = one, .rank = 1},
      {.scalar_type = SCALAR_FLOAT, .dynamism = PTE_DYNAMIC_BOUND, .sizes = rows, .rank = 3}};
  struct write_pte w;
  write_pte_init(&w, arena);
  write_pte_delegated(&w, "forward", &graph, io, 2, 1);
  write_pte_constant_method(&w, "get_max_seq_len", (struct literal[]){literal_int(CONTEXT)}, 1);
  TRY(write_pte_finish(&w, &file, err));
  return write_blob_to_memory(&file, arena, out, err);
}

/* ---- two sessions ---------------------------------------------------------------------------- */

enum { PLAIN, AHEAD };
struct pair {
  struct arena arena;
  sconce_device *device;
  sconce_model *model;
  sconce_method *method;
  sconce_session *session[2];
  bool host_chooses, recovers; /* of the sessions that are opened */
  sconce_lookup lookup;
};

static inline void open_sessions(struct pair *p, const sconce_sampler_desc *sampler) {
  sconce_error err = {0};
  for (int i = 0; i < 2 && p->method; i++) {
    sconce_session_close(p->session[i]);
    p->session[i] = NULL;
    sconce_session_desc desc = {.model = p->model,
                                .sampler = *sampler,
                                .host_chooses = p->host_chooses,
                                .lookup = p->lookup,
                                .recovers = p->recovers};
    CHECK_OK(sconce_session_open(&p->session[i], &desc, &err), err);
  }
}

static inline bool open_pair(struct pair *p, const sconce_sampler_desc *sampler) {
  sconce_error err = {0};
  struct span file = {0};
  *p = (struct pair){0};
  arena_init(&p->arena, NULL);
  CHECK_OK(build(&p->arena, &file, &err), err);
  CHECK_OK(sconce_device_open(&p->device, NULL, &err), err);
  sconce_model_desc desc = {.program = {.data = file.data, .size = file.size}};
  if (p->device) p->device->piece_ns = UINT64_MAX / 4; /* as many submits each time */
  if (p->device) CHECK_OK(sconce_model_open(&p->model, p->device, &desc, &err), err);
  if (p->model) CHECK_OK(sconce_method_open(&p->method, p->model, NULL, &err), err);
  if (p->method) {
    CHECK(sconce_method_describe(p->method)->can_draw);
    open_sessions(p, sampler);
  }
  return p->session[0] && p->session[1];
}

static inline void close_pair(struct pair *p) {
  for (int i = 0; i < 2; i++) sconce_session_close(p->session[i]);
  sconce_method_close(p->method);
  sconce_model_close(p->model);
  if (p->device) {
    CHECK_EQ(gpu_stats(p->device->gpu)->buffers, 0);
    CHECK_EQ(gpu_stats(p->device->gpu)->groups, 0);
    test_note_kernels(p->device->gpu);
  }
  sconce_device_close(p->device);
  arena_free(&p->arena);
}

static const sconce_sampler_desc samplers[] = {
    {.temperature = 0},
    {.temperature = 2,
     .seed = UINT64_C(0x123456789abcdef),
     .top_k = 20,
     .top_p = 0.9f,
     .min_p = 0.05f},
    {.temperature = 1, .seed = 3},
    {.temperature = 0.7f, .seed = 4, .top_k = 5},
    {.temperature = 1.3f, .seed = 5, .top_p = 0.8f},
    {.temperature = 1, .seed = 6, .top_k = VOCAB + 1},
};

static const sconce_lookup lookups[] = {SCONCE_LOOKUP_OFF, SCONCE_LOOKUP_ALWAYS};

#endif
