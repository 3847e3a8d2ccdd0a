/* Programs of several instructions: what delegates and portable calls hand each other. */
#include "base/arena.h"
#include "gpu.h"
#include "sconce.h"
#include "write/write.h"

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
  const sconce_bytes bytes = write_bytes(quarter, sizeof quarter);
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

static void check_call(sconce_state *method, float k, float factor[4]) {
  sconce_error err = {0};
  const float data[4] = {k, 2 * k, 0.5f * k, -3 * k};
  sconce_tensor x = {SCONCE_FLOAT32, 1, {4}, (void *)data, sizeof data}, y = {0};
  CHECK_OK(sconce_state_set_input(method, 0, &x, &err), err);
  CHECK_OK(sconce_state_run(method, NULL, &err), err);
  for (uint32_t o = 0; o < 3; o++) {
    CHECK_OK(sconce_state_output(method, o, &y, &err), err);
    CHECK(y.dtype == SCONCE_FLOAT32 && y.size == sizeof data);
    for (uint32_t i = 0; y.data && i < 4; i++) {
      const float p = data[i] * data[i], s = p + data[i];
      CHECK_NEAR(((const float *)y.data)[i], o == 0 ? p : o == 1 ? s : s * factor[i], 0);
    }
  }
  for (uint32_t i = 0; changing && i < 4; i++) factor[i] = data[i] * data[i] + data[i];
}

struct opened {
  struct arena arena;
  sconce_device *device;
  sconce_model *model;
  sconce_method *method;
  sconce_state *state; /* NULL: something failed */
};

static void open_program(struct opened *o,
                         sconce_status (*make)(struct arena *, struct span *, sconce_error *)) {
  sconce_error err = {0};
  struct span file = {0};
  *o = (struct opened){0};
  arena_init(&o->arena, NULL);
  CHECK_OK(make(&o->arena, &file, &err), err);
  CHECK_OK(sconce_device_open(&o->device, NULL, &err), err);
  const sconce_model_desc desc = {.program = {.data = file.data, .size = file.size}};
  if (o->device) CHECK_OK(sconce_model_open(&o->model, o->device, &desc, &err), err);
  if (o->model) CHECK_OK(sconce_method_open(&o->method, o->model, NULL, &err), err);
  if (o->method) CHECK_OK(sconce_state_open(&o->state, o->method, &err), err);
}

static void close_program(struct opened *o) {
  sconce_state_close(o->state);
  sconce_method_close(o->method);
  sconce_model_close(o->model);
  sconce_device_close(o->device);
  arena_free(&o->arena);
}

static void run_halves_and_floats(void) {
  struct opened o;
  float factor[4];
  open_program(&o, halves_and_floats);
  memcpy(factor, quarter, sizeof factor);
  for (int round = 0; o.state && round < 3; round++) check_call(o.state, round ? -1.0f : 1, factor);
  close_program(&o);
}

static void halves_and_floats_meet(void) {
  run_halves_and_floats();
  changing = true;
  run_halves_and_floats();
  changing = false;
}

/* ---- views without an instruction ------------------------------------------------------------ */

static int32_t planned(struct write_pte *w, const int32_t *sizes, uint32_t rank, uint32_t memory,
                       uint64_t offset) {
  return write_pte_tensor(w, &(struct write_pte_tensor){.scalar_type = SCALAR_FLOAT,
                                                        .sizes = sizes,
                                                        .rank = rank,
                                                        .memory_id = memory,
                                                        .memory_offset = offset});
}

/* As the exporter leaves static views: v is x as a matrix and z is y as a vector, by their memory
 * alone. y = v + v; then s = z + z at x's place, whose view u is not one of x any more. */
static sconce_status silent_views(struct arena *arena, struct span *out, sconce_error *err) {
  static const int32_t matrix[] = {2, 2};
  struct write_blob file;
  struct write_pte w;
  write_pte_init(&w, arena);
  write_pte_method(&w, "forward");
  const uint32_t memory = (uint32_t)write_pte_buffer(&w, 256);
  const int32_t x = planned(&w, dims_4, 1, memory, 0), v = planned(&w, matrix, 2, memory, 0);
  const int32_t y = planned(&w, matrix, 2, memory, 64), z = planned(&w, dims_4, 1, memory, 64);
  const int32_t s = planned(&w, dims_4, 1, memory, 0), u = planned(&w, matrix, 2, memory, 0);
  write_pte_inputs(&w, ID_LIST(x));
  write_pte_outputs(&w, ID_LIST(z, u));
  const int32_t add = write_pte_operator(&w, "aten::add", "out");
  const int32_t one = write_pte_value(&w, literal_int(1));
  write_pte_call_kernel(&w, add, ID_LIST(v, v, one, y, y));
  write_pte_call_kernel(&w, add, ID_LIST(z, z, one, s, s));
  TRY(write_pte_finish(&w, &file, err));
  return write_blob_to_memory(&file, arena, out, err);
}

static void views_without_an_instruction(void) {
  struct opened o;
  sconce_error err = {0};
  open_program(&o, silent_views);
  for (int round = 1; o.state && round < 3; round++) {
    const float data[4] = {1, -2, 3.0f * (float)round, 0.5f};
    sconce_tensor x = {SCONCE_FLOAT32, 1, {4}, (void *)data, sizeof data}, y = {0};
    CHECK_OK(sconce_state_set_input(o.state, 0, &x, &err), err);
    CHECK_OK(sconce_state_run(o.state, NULL, &err), err);
    for (uint32_t k = 0; k < 2; k++) {
      CHECK_OK(sconce_state_output(o.state, k, &y, &err), err);
      CHECK_EQ(y.rank, k + 1);
      for (uint32_t i = 0; y.data && i < 4; i++)
        CHECK_NEAR(((const float *)y.data)[i], data[i] * (k ? 4 : 2), 0);
    }
  }
  close_program(&o);
}

/* ---- one output under two names -------------------------------------------------------------- */

/* s = x + x, at a place that p has as well; then a delegate's product of x, or of s, and y, whose
 * call has p and q behind its inputs. */
static sconce_status product_behind(struct arena *arena, bool of_sum, struct span *out,
                                    sconce_error *err) {
  struct write_blob inside, file;
  TRY(half_product(arena, &inside, err));
  struct write_pte w;
  write_pte_init(&w, arena);
  const int32_t segment = write_pte_segment(&w, &inside, 0);
  write_pte_method(&w, "forward");
  const uint32_t memory = (uint32_t)write_pte_buffer(&w, 256);
  int32_t ids[4];
  for (uint32_t i = 0; i < 4; i++) ids[i] = planned(&w, dims_4, 1, memory, 64 * i);
  const int32_t x = ids[0], y = ids[1], p = ids[2], q = ids[3];
  const int32_t s = planned(&w, dims_4, 1, memory, 64 * 2);
  write_pte_inputs(&w, ID_LIST(x, y));
  write_pte_outputs(&w, ID_LIST(p, q));
  const int32_t add = write_pte_operator(&w, "aten::add", "out");
  const int32_t one = write_pte_value(&w, literal_int(1));
  write_pte_call_kernel(&w, add, ID_LIST(x, x, one, s, s));
  const int32_t delegate = write_pte_delegate(&w, VK_BACKEND_ID, segment);
  write_pte_call_delegate(&w, delegate, ID_LIST(of_sum ? s : x, y, p, q));
  TRY(write_pte_finish(&w, &file, err));
  return write_blob_to_memory(&file, arena, out, err);
}

/* A delegate that returns its product twice names it once; the call has both. What was written at
 * the first one's place before is no more than that. */
static sconce_status twice(struct arena *arena, struct span *out, sconce_error *err) {
  return product_behind(arena, false, out, err);
}

/* What is written at a place, and a view of it by its place alone, are both arguments of a delegate
 * that reads the first: the view stays one, though the delegate's output has its dims. */
static sconce_status beside_a_view(struct arena *arena, struct span *out, sconce_error *err) {
  return product_behind(arena, true, out, err);
}

static void check_product(sconce_status (*make)(struct arena *, struct span *, sconce_error *),
                          bool of_sum) {
  struct opened o;
  sconce_error err = {0};
  open_program(&o, make);
  const float data[2][4] = {{1, -2, 3, 0.5f}, {4, 3, 2, 1}};
  for (uint32_t k = 0; o.state && k < 2; k++) {
    sconce_tensor x = {SCONCE_FLOAT32, 1, {4}, (void *)data[k], sizeof data[k]};
    CHECK_OK(sconce_state_set_input(o.state, k, &x, &err), err);
  }
  if (o.state) CHECK_OK(sconce_state_run(o.state, NULL, &err), err);
  for (uint32_t k = 0; o.state && k < 2; k++) {
    sconce_tensor y = {0};
    CHECK_OK(sconce_state_output(o.state, k, &y, &err), err);
    for (uint32_t i = 0; y.data && i < 4; i++) {
      const float factor = of_sum ? 2 * data[0][i] : data[0][i];
      CHECK_NEAR(((const float *)y.data)[i], of_sum && k == 0 ? factor : factor * data[1][i], 0);
    }
  }
  close_program(&o);
}

static void one_output_under_two_names(void) { check_product(twice, false); }
static void a_view_of_an_argument_is_no_output(void) { check_product(beside_a_view, true); }

/* Three calls of two operators that nobody has, around one that everybody has. */
static sconce_status odd_calls(struct arena *arena, struct span *out, sconce_error *err) {
  struct write_pte w;
  struct write_blob file;
  write_pte_init(&w, arena);
  write_pte_method(&w, "forward");
  const uint32_t memory = (uint32_t)write_pte_buffer(&w, 64);
  int32_t ids[2];
  for (uint32_t i = 0; i < 2; i++)
    ids[i] = write_pte_tensor(&w, &(struct write_pte_tensor){.scalar_type = SCALAR_FLOAT,
                                                             .sizes = dims_4,
                                                             .rank = 1,
                                                             .memory_id = memory,
                                                             .memory_offset = 16 * i});
  write_pte_inputs(&w, ID_LIST(ids[0]));
  write_pte_outputs(&w, ID_LIST(ids[1]));
  const int32_t teleport = write_pte_operator(&w, "aten::teleport", "out");
  const int32_t relu = write_pte_operator(&w, "aten::relu", "out");
  const int32_t rand = write_pte_operator(&w, "aten::rand", "out");
  const int32_t calls[] = {relu, teleport, rand, teleport};
  for (int i = 0; i < 4; i++) write_pte_call_kernel(&w, calls[i], ID_LIST(ids[0], ids[1], ids[1]));
  TRY(write_pte_finish(&w, &file, err));
  return write_blob_to_memory(&file, arena, out, err);
}

static void all_missing_operators_are_named_at_once(void) {
  struct arena arena;
  struct span file;
  sconce_error err = {0};
  sconce_device *device = NULL;
  sconce_model *model = NULL;
  sconce_method *method = NULL;
  arena_init(&arena, NULL);
  CHECK_OK(odd_calls(&arena, &file, &err), err);
  CHECK_OK(sconce_device_open(&device, NULL, &err), err);
  const sconce_model_desc desc = {.program = {.data = file.data, .size = file.size}};
  CHECK_OK(sconce_model_open(&model, device, &desc, &err), err);
  CHECK_FAILS(
      sconce_method_open(&method, model, NULL, &err), SCONCE_UNSUPPORTED, err,
      "instruction 1: aten::teleport.out: this build has no such operator, and the exporter "
      "left it outside the delegate: change the model so that the partitioner takes it; "
      "all that are missing: aten::teleport.out (instruction 1), aten::rand.out (instruction 2)");
  sconce_model_close(model);
  sconce_device_close(device);
  arena_free(&arena);
}

/* y = relu(x), then a delegate of somebody else's. */
static sconce_status foreign_delegate(struct arena *arena, struct span *out, sconce_error *err) {
  struct write_pte w;
  struct write_blob file, inside;
  write_pte_init(&w, arena);
  TRY(half_product(arena, &inside, err));
  const int32_t segment = write_pte_segment(&w, &inside, 0);
  write_pte_method(&w, "forward");
  const uint32_t memory = (uint32_t)write_pte_buffer(&w, 64);
  const int32_t x = planned(&w, dims_4, 1, memory, 0), y = planned(&w, dims_4, 1, memory, 16);
  const int32_t z = planned(&w, dims_4, 1, memory, 32);
  write_pte_inputs(&w, ID_LIST(x));
  write_pte_outputs(&w, ID_LIST(z));
  const int32_t relu = write_pte_operator(&w, "aten::relu", "out");
  const int32_t other = write_pte_delegate(&w, "XnnpackBackend", segment);
  write_pte_call_kernel(&w, relu, ID_LIST(x, y, y));
  write_pte_call_delegate(&w, other, ID_LIST(y, y, z));
  TRY(write_pte_finish(&w, &file, err));
  return write_blob_to_memory(&file, arena, out, err);
}

static void a_foreign_delegate_is_named_with_its_place(void) {
  struct arena arena;
  struct span file;
  sconce_error err = {0};
  sconce_device *device = NULL;
  sconce_model *model = NULL;
  sconce_method *method = NULL;
  arena_init(&arena, NULL);
  CHECK_OK(foreign_delegate(&arena, &file, &err), err);
  CHECK_OK(sconce_device_open(&device, NULL, &err), err);
  const sconce_model_desc desc = {.program = {.data = file.data, .size = file.size}};
  CHECK_OK(sconce_model_open(&model, device, &desc, &err), err);
  CHECK_FAILS(sconce_method_open(&method, model, NULL, &err), SCONCE_UNSUPPORTED, err,
              "instruction 1: delegate 0 is for 'XnnpackBackend': export with the "
              "VulkanPartitioner or the WebGPUPartitioner");
  sconce_model_close(model);
  sconce_device_close(device);
  arena_free(&arena);
}

const struct test suite_program[] = {TEST(halves_and_floats_meet),
                                     TEST(views_without_an_instruction),
                                     TEST(one_output_under_two_names),
                                     TEST(a_view_of_an_argument_is_no_output),
                                     TEST(all_missing_operators_are_named_at_once),
                                     TEST(a_foreign_delegate_is_named_with_its_place),
                                     {0}};
