/* Programs of several instructions: what delegates and portable calls hand each other. */
#include "base/arena.h"
#include "format/write.h"
#include "gpu.h"
#include "sconce.h"

static const int32_t dims_4[] = {4};

/* z = a * b in float16. */
static sconce_status half_product(struct arena *arena, struct write_blob *out, sconce_error *err) {
  struct write_vk *g = arena_new(arena, struct write_vk, 1);
  write_vk_init(g, arena);
  int32_t a = write_vk_tensor(g, VK_FLOAT16, DIM_LIST(4));
  int32_t b = write_vk_tensor(g, VK_FLOAT16, DIM_LIST(4));
  int32_t z = write_vk_tensor(g, VK_FLOAT16, DIM_LIST(4));
  write_vk_call(g, "aten.mul.Tensor", ID_LIST(a, b, z));
  write_vk_inputs(g, ID_LIST(a, b));
  write_vk_outputs(g, ID_LIST(z));
  return write_vk_finish(g, out, err);
}

static const float quarter[4] = {0.25f, 0.5f, 2, 4};
static bool changing; /* `quarter` is what a buffer begins with: the next call finds s there */

/* A force_fp16 export with a portable call in between: p = x * x and r = s * quarter inside, as
 * float16; s = p + x outside, as float32, like everything that the program declares. */
static sconce_status halves_and_floats(struct arena *arena, struct span *out, sconce_error *err) {
  struct write_blob inside, file;
  TRY(half_product(arena, &inside, err));
  struct write_pte w;
  write_pte_init(&w, arena);
  int32_t segment = write_pte_segment(&w, &inside, 0);
  write_pte_method(&w, "forward");
  const uint32_t memory = (uint32_t)write_pte_buffer(&w, 256);
  const struct write_source bytes = write_bytes(quarter, sizeof quarter);
  int32_t ids[4], initial = changing ? write_pte_mutable(&w, bytes) : write_pte_constant(&w, bytes);
  for (uint32_t i = 0; i < 4; i++)
    ids[i] = write_pte_tensor(&w, &(struct write_pte_tensor){.scalar_type = SCALAR_FLOAT,
                                                             .sizes = dims_4,
                                                             .rank = 1,
                                                             .memory_id = memory,
                                                             .memory_offset = 16 * i});
  int32_t c = write_pte_tensor(&w, &(struct write_pte_tensor){.scalar_type = SCALAR_FLOAT,
                                                              .sizes = dims_4,
                                                              .rank = 1,
                                                              .data_buffer_idx = initial,
                                                              .memory_id = changing ? memory : 0,
                                                              .memory_offset = 64});
  const int32_t x = ids[0], p = ids[1], s = ids[2], r = ids[3];
  write_pte_inputs(&w, ID_LIST(x));
  write_pte_outputs(&w, ID_LIST(p, s, r));
  const int32_t first = write_pte_delegate(&w, VK_BACKEND_ID, segment);
  const int32_t second = write_pte_delegate(&w, VK_BACKEND_ID, segment);
  const int32_t add = write_pte_operator(&w, "aten::add", "out");
  const int32_t one = write_pte_value(&w, literal_int(1));
  write_pte_call_delegate(&w, first, ID_LIST(x, x, p));
  write_pte_call_kernel(&w, add, ID_LIST(p, x, one, s, s));
  write_pte_call_delegate(&w, second, ID_LIST(s, c, r));
  if (changing) write_pte_call_kernel(&w, add, ID_LIST(p, x, one, c, c));
  TRY(write_pte_finish(&w, &file, err));
  return write_blob_to_memory(&file, arena, out, err);
}

static void check_call(sconce_method *method, float k, float factor[4]) {
  sconce_error err = {0};
  const float data[4] = {k, 2 * k, 0.5f * k, -3 * k};
  sconce_tensor x = {SCONCE_FLOAT32, 1, {4}, (void *)data, sizeof data}, y = {0};
  CHECK_OK(sconce_method_set_input(method, 0, &x, &err), err);
  CHECK_OK(sconce_method_run(method, &err), err);
  for (uint32_t o = 0; o < 3; o++) {
    CHECK_OK(sconce_method_output(method, o, &y, &err), err);
    CHECK(y.dtype == SCONCE_FLOAT32 && y.size == sizeof data);
    for (uint32_t i = 0; y.data && i < 4; i++) {
      const float p = data[i] * data[i], s = p + data[i];
      CHECK_NEAR(((const float *)y.data)[i], o == 0 ? p : o == 1 ? s : s * factor[i], 0);
    }
  }
  for (uint32_t i = 0; changing && i < 4; i++) factor[i] = data[i] * data[i] + data[i];
}

static void run_halves_and_floats(void) {
  sconce_error err = {0};
  struct arena arena;
  struct span file = {0};
  sconce_device *device = NULL;
  sconce_model *model = NULL;
  sconce_method *method = NULL;
  arena_init(&arena, NULL);
  CHECK_OK(halves_and_floats(&arena, &file, &err), err);
  CHECK_OK(sconce_device_open(&device, NULL, &err), err);
  const sconce_model_desc desc = {.data = file.data, .size = file.size};
  if (device) CHECK_OK(sconce_model_open(&model, device, &desc, &err), err);
  if (model) CHECK_OK(sconce_method_open(&method, model, NULL, &err), err);
  float factor[4];
  memcpy(factor, quarter, sizeof factor);
  for (int round = 0; method && round < 3; round++) check_call(method, round ? -1.0f : 1, factor);
  sconce_method_close(method);
  sconce_model_close(model);
  sconce_device_close(device);
  arena_free(&arena);
}

static void halves_and_floats_meet(void) {
  run_halves_and_floats();
  changing = true;
  run_halves_and_floats();
  changing = false;
}

const struct test suite_program[] = {TEST(halves_and_floats_meet), {0}};
