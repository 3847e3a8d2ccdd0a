/* What a model's files hold and how they are put together: data files in any number and order,
 * offsets that 32 bits do not reach. */
#include "gpu.h"

#include "sconce.h"
#include "write/write.h"

#include <inttypes.h>

static const int32_t dims_4[] = {4};

/* x, then what is added to it in turn, from data files by name; returns their sum. */
static sconce_status sum_of(struct arena *arena, const char *const *names, uint32_t n,
                            struct span *out, sconce_error *err) {
  struct write_pte w;
  struct write_blob file;
  write_pte_init(&w, arena);
  write_pte_method(&w, "forward");
  const uint32_t memory = (uint32_t)write_pte_buffer(&w, 64 * (n + 1));
  struct write_pte_tensor t = {
      .scalar_type = SCALAR_FLOAT, .sizes = dims_4, .rank = 1, .memory_id = memory};
  int32_t sum = write_pte_tensor(&w, &t);
  write_pte_inputs(&w, ID_LIST(sum));
  const int32_t add = write_pte_operator(&w, "aten::add", "out");
  const int32_t one = write_pte_value(&w, literal_int(1));
  for (uint32_t i = 0; i < n; i++) {
    const int32_t term = write_pte_tensor(&w, &(struct write_pte_tensor){
                                                  .scalar_type = SCALAR_FLOAT,
                                                  .sizes = dims_4,
                                                  .rank = 1,
                                                  .external = true,
                                                  .fully_qualified_name = names[i],
                                              });
    t.memory_offset += 64;
    const int32_t next = write_pte_tensor(&w, &t);
    write_pte_call_kernel(&w, add, ID_LIST(sum, term, one, next, next));
    sum = next;
  }
  write_pte_outputs(&w, ID_LIST(sum));
  TRY(write_pte_finish(&w, &file, err));
  return write_blob_to_memory(&file, arena, out, err);
}

/* A data file that has one tensor. */
static sconce_status data_file(struct arena *arena, const char *key, const float value[4],
                               bool layout, sconce_file *out, sconce_error *err) {
  struct write_ptd w;
  struct write_blob file;
  struct span bytes;
  write_ptd_init(&w, arena);
  const struct write_ptd_layout as = {.scalar_type = SCALAR_FLOAT, .sizes = dims_4, .rank = 1};
  write_ptd_named(&w, key, write_ptd_segment(&w, write_bytes(value, 16)), layout ? &as : NULL);
  TRY(write_ptd_finish(&w, &file, err));
  TRY(write_blob_to_memory(&file, arena, &bytes, err));
  *out = (sconce_file){.data = bytes.data, .size = bytes.size};
  return SCONCE_OK;
}

/* Opens, runs once with x, compares. */
static sconce_status run_method(const sconce_model_desc *desc, const char *name, const float x[4],
                                const float want[4], sconce_error *err) {
  sconce_device *device = NULL;
  sconce_model *model = NULL;
  sconce_method *method = NULL;
  sconce_state *state = NULL;
  sconce_tensor in = {SCONCE_FLOAT32, 1, {4}, x, 16}, y = {0};
  sconce_status status = sconce_device_open(&device, NULL, err);
  if (status == SCONCE_OK) status = sconce_model_open(&model, device, desc, err);
  if (status == SCONCE_OK) status = sconce_method_open(&method, model, name, err);
  if (status == SCONCE_OK) status = sconce_state_open(&state, method, err);
  if (status == SCONCE_OK) status = sconce_state_set_input(state, 0, &in, err);
  if (status == SCONCE_OK) status = sconce_state_run(state, NULL, err);
  if (status == SCONCE_OK) status = sconce_state_output(state, 0, &y, err);
  for (uint32_t i = 0; y.data && i < 4; i++) CHECK_NEAR(((const float *)y.data)[i], want[i], 0);
  sconce_state_close(state);
  sconce_method_close(method);
  sconce_model_close(model);
  sconce_device_close(device);
  return status;
}

static sconce_status run_once(const sconce_model_desc *desc, const float x[4], const float want[4],
                              sconce_error *err) {
  return run_method(desc, NULL, x, want, err);
}

/* ---- data files ------------------------------------------------------------------------------ */

static const float x[4] = {0.5f, -1, 2, 0};
static const float terms[3][4] = {{1, 2, 3, 4}, {10, 20, 30, 40}, {100, 200, 300, 400}};
static const float sums[4] = {111.5f, 221, 335, 444};
static const char *const names[] = {"one", "two", "three"};

static void data_files_in_any_order(void) {
  static const uint32_t orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}};
  struct arena arena;
  struct span program = {0};
  sconce_error err = {0};
  sconce_file files[3] = {{0}};
  arena_init(&arena, NULL);
  CHECK_OK(sum_of(&arena, names, 3, &program, &err), err);
  for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
    for (uint32_t k = 0; k < 3; k++)
      CHECK_OK(data_file(&arena, names[orders[i][k]], terms[orders[i][k]], true, &files[k], &err),
               err);
    const sconce_model_desc desc = {.program = {.data = program.data, .size = program.size},
                                    .data_files = files,
                                    .n_data_files = 3};
    CHECK_OK(run_once(&desc, x, sums, &err), err);
  }
  const sconce_model_desc few = {.program = {.data = program.data, .size = program.size},
                                 .data_files = files,
                                 .n_data_files = 2};
  CHECK_FAILS(run_once(&few, x, sums, &err), SCONCE_BAD_FILE, err,
              "external tensor 'one' is in none of the 2 data files");
  arena_free(&arena);
}

/* ExecuTorch's merged map refuses it too, also where the bytes are the same. */
static void a_key_in_two_data_files_is_refused(void) {
  struct arena arena;
  struct span program = {0};
  sconce_error err = {0};
  sconce_file files[3] = {{0}};
  arena_init(&arena, NULL);
  CHECK_OK(sum_of(&arena, names, 2, &program, &err), err);
  const uint32_t holds[] = {0, 1, 0};
  for (uint32_t k = 0; k < 3; k++)
    CHECK_OK(data_file(&arena, names[holds[k]], terms[holds[k]], true, &files[k], &err), err);
  const sconce_model_desc desc = {.program = {.data = program.data, .size = program.size},
                                  .data_files = files,
                                  .n_data_files = 3};
  CHECK_FAILS(run_once(&desc, x, sums, &err), SCONCE_BAD_FILE, err,
              "the key 'one' is in data file 0 and in data file 2");
  arena_free(&arena);
}

/* y = x + named, the named data of a delegate. */
static sconce_status named_sum(struct arena *arena, struct write_pte *w, const char *method,
                               const char *key, sconce_error *err) {
  struct write_vk g;
  struct write_blob blob;
  write_vk_init(&g, arena);
  int32_t a = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(4));
  int32_t b = write_vk_constant(&g, VK_FLOAT32, DIM_LIST(4), write_vk_named(&g, key, 16));
  int32_t y = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(4));
  int32_t one = write_vk_value(&g, literal_int(1));
  write_vk_call(&g, "aten.add.Tensor", ID_LIST(a, b, one, y));
  write_vk_inputs(&g, ID_LIST(a));
  write_vk_outputs(&g, ID_LIST(y));
  TRY(write_vk_finish(&g, &blob, err));
  const struct write_pte_tensor io[] = {
      {.scalar_type = SCALAR_FLOAT, .sizes = dims_4, .rank = 1},
      {.scalar_type = SCALAR_FLOAT, .sizes = dims_4, .rank = 1},
  };
  write_pte_delegated(w, method, &blob, io, 1, 1);
  return SCONCE_OK;
}

/* A delegate's key in the program and in a data file is no error there, and the latter is meant. */
static void a_data_file_comes_before_the_programs_own_data(void) {
  static const float both[2][4] = {{1.5f, 1, 5, 4}, {10.5f, 19, 32, 40}};
  struct arena arena;
  struct write_pte w;
  struct write_blob file;
  struct span program = {0};
  sconce_error err = {0};
  sconce_file data = {0};
  arena_init(&arena, NULL);
  write_pte_init(&w, &arena);
  write_pte_named_data(&w, "one", write_bytes(terms[0], 16));
  CHECK_OK(named_sum(&arena, &w, "forward", "one", &err), err);
  CHECK_OK(write_pte_finish(&w, &file, &err), err);
  CHECK_OK(write_blob_to_memory(&file, &arena, &program, &err), err);
  CHECK_OK(data_file(&arena, "one", terms[1], false, &data, &err), err);
  for (uint32_t n = 0; n < 2; n++) {
    const sconce_model_desc desc = {.program = {.data = program.data, .size = program.size},
                                    .data_files = &data,
                                    .n_data_files = n};
    CHECK_OK(run_once(&desc, x, both[n], &err), err);
  }
  arena_free(&arena);
}

/* ---- beyond 32 bits -------------------------------------------------------------------------- */

enum { GAP = 128 << 20, N_FAR = 49 };

/* y = x + 49 constants of 16 bytes, each behind one of 128 MiB that no instruction uses: the last
 * lies 6 GiB into the constants. And named_sum, whose delegate and data lie behind them. */
static sconce_status far_constants(struct arena *arena, struct write_blob *file,
                                   sconce_error *err) {
  static const int32_t gap[] = {GAP / 4};
  static float far[N_FAR][4];
  struct write_pte w;
  write_pte_init(&w, arena);
  write_pte_method(&w, "forward");
  const uint32_t memory = (uint32_t)write_pte_buffer(&w, 64 * (N_FAR + 1));
  struct write_pte_tensor t = {
      .scalar_type = SCALAR_FLOAT, .sizes = dims_4, .rank = 1, .memory_id = memory};
  int32_t sum = write_pte_tensor(&w, &t);
  write_pte_inputs(&w, ID_LIST(sum));
  const int32_t add = write_pte_operator(&w, "aten::add", "out");
  const int32_t one = write_pte_value(&w, literal_int(1));
  for (uint32_t i = 0; i < N_FAR; i++) {
    for (uint32_t k = 0; k < 4; k++) far[i][k] = (float)((i + 1) * (k + 1));
    struct write_pte_tensor c = {.scalar_type = SCALAR_FLOAT, .sizes = gap, .rank = 1};
    c.data_buffer_idx = write_pte_constant(&w, write_zeros(GAP));
    (void)write_pte_tensor(&w, &c);
    c.sizes = dims_4;
    c.data_buffer_idx = write_pte_constant(&w, write_bytes(far[i], sizeof far[i]));
    const int32_t term = write_pte_tensor(&w, &c);
    t.memory_offset += 64;
    const int32_t next = write_pte_tensor(&w, &t);
    write_pte_call_kernel(&w, add, ID_LIST(sum, term, one, next, next));
    sum = next;
  }
  write_pte_outputs(&w, ID_LIST(sum));
  write_pte_named_data(&w, "one", write_bytes(terms[2], 16));
  TRY(named_sum(arena, &w, "named", "one", err));
  return write_pte_finish(&w, file, err);
}

/* Only what instructions use is read: neither memory nor the disk has the 6 GiB. */
static void constants_beyond_4_gigabytes(void) {
  enum { ROOM = 256 << 20 };
  const float all = (float)(N_FAR * (N_FAR + 1) / 2);
  const float want[4] = {0.5f + all, -1 + 2 * all, 2 + 3 * all, 4 * all};
  static const float named[4] = {100.5f, 199, 302, 400};
  struct arena arena;
  struct write_blob file = {0};
  sconce_error err = {0};
  char path[TEST_PATH_MAX];
  arena_init(&arena, NULL);
  CHECK_OK(far_constants(&arena, &file, &err), err);
  CHECK(file.size > UINT64_C(6) << 30);
  test_temporary(path, ".pte");
  if (write_blob_to_file(&file, path, &err) != SCONCE_OK) {
    test_skip("no sparse file of %" PRIu64 " bytes: %s", file.size, err.text);
  } else {
    const sconce_model_desc desc = {.program = {.path = path}};
    test_forget_peak();
    const uint64_t before = test_memory("VmRSS:");
    CHECK_OK(run_method(&desc, "forward", x, want, &err), err);
    CHECK_OK(run_method(&desc, "named", x, named, &err), err);
    CHECK(test_memory("VmHWM:") <= before + ROOM);
  }
  test_remove(path);
  arena_free(&arena);
}

const struct test suite_files[] = {
    TEST(data_files_in_any_order),
    TEST(a_key_in_two_data_files_is_refused),
    TEST(a_data_file_comes_before_the_programs_own_data),
    TEST(constants_beyond_4_gigabytes),
    {0},
};
