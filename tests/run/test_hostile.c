/* Small files that ask for too much, or contradict themselves: each must give a sentence, or the
 * right numbers, without a signal, within bounds of memory and time. A row is a generator; faults
 * of the formats themselves are in test_pte_damage, test_ptd and test_vkgraph;
 * what is much work for a little file is in test_amplify. */
#define _GNU_SOURCE
#include "crafted.h"
#include "gpu.h"

#include "base/arena.h"
#include "base/os.h"
#include "run/device.h"
#include "sconce_dev.h"
#include "sconce_llm.h"

#ifndef _WIN32
#include <unistd.h>
#endif

/* ---- files ----------------------------------------------------------------------------------- */

static const int32_t none[] = {0};

static sconce_status norm_of_a_list(struct arena *arena, struct span *out, sconce_error *err) {
  static const float ones[4] = {1, 1, 1, 1};
  struct write_vk g;
  write_vk_init(&g, arena);
  int32_t x = tensor4(&g), y = tensor4(&g), mean = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(1));
  int32_t w = write_vk_constant(&g, VK_FLOAT32, DIM_LIST(4),
                                write_vk_inline(&g, write_bytes(ones, sizeof ones)));
  int32_t dims = write_vk_value(&g, literal_ints((int64_t[]){4}, 1));
  int32_t both = write_vk_value(&g, literal_values(ID_LIST(y, mean)));
  write_vk_call(&g, "aten.native_layer_norm.default",
                ID_LIST(dims, dims, w, write_vk_value(&g, literal_double(1e-5)), w, both));
  return one_to_one(arena, &g, x, y, out, err);
}

/* y is empty, its mean is not. */
static sconce_status norm_of_nothing(struct arena *arena, struct span *out, sconce_error *err) {
  static const int32_t empty[] = {4, 0}, column[] = {4, 1};
  struct write_vk g;
  write_vk_init(&g, arena);
  int32_t x = write_vk_tensor(&g, VK_FLOAT32, empty, 2), null = write_vk_value(&g, literal_null());
  int32_t y = write_vk_tensor(&g, VK_FLOAT32, empty, 2);
  int32_t mean = write_vk_tensor(&g, VK_FLOAT32, column, 2);
  int32_t rstd = write_vk_tensor(&g, VK_FLOAT32, column, 2);
  int32_t dims = write_vk_value(&g, literal_ints((int64_t[]){0}, 1));
  int32_t all = write_vk_value(&g, literal_values(ID_LIST(y, mean, rstd)));
  write_vk_call(&g, "aten.native_layer_norm.default",
                ID_LIST(x, dims, null, null, write_vk_value(&g, literal_double(1e-5)), all));
  write_vk_inputs(&g, ID_LIST(x));
  write_vk_outputs(&g, ID_LIST(mean));
  const struct write_pte_tensor io[] = {{.scalar_type = SCALAR_FLOAT, .sizes = empty, .rank = 2},
                                        {.scalar_type = SCALAR_FLOAT, .sizes = column, .rank = 2}};
  return around(arena, &g, io, 1, 1, out, err);
}

static sconce_status embedding_of_rank_0(struct arena *arena, const char *name, bool numbers,
                                         struct span *out, sconce_error *err) {
  static const float table[64] = {0};
  struct write_vk g;
  write_vk_init(&g, arena);
  int32_t x = tensor4(&g), y = write_vk_tensor(&g, VK_FLOAT32, none, 0);
  int32_t c = write_vk_constant(&g, VK_FLOAT32, DIM_LIST(2, 4, 8),
                                write_vk_inline(&g, write_bytes(table, sizeof table)));
  int32_t null = write_vk_value(&g, literal_null());
  int32_t first = numbers ? write_vk_value(&g, literal_double(0.1)) : null;
  if (strncmp(name, "et_vk", 5) == 0)
    write_vk_call(&g, name, ID_LIST(first, c, null, null, null, y));
  else
    write_vk_call(&g, name, ID_LIST(x, c, null, null, null, null, null, y));
  write_vk_inputs(&g, ID_LIST(x));
  write_vk_outputs(&g, ID_LIST(y));
  const struct write_pte_tensor io[] = {float4, {.scalar_type = SCALAR_FLOAT, .sizes = none}};
  return around(arena, &g, io, 1, 1, out, err);
}

static sconce_status embedding_of_a_number(struct arena *a, struct span *out, sconce_error *err) {
  return embedding_of_rank_0(a, "et_vk.embedding_q4gsw.default", true, out, err);
}
static sconce_status embedding_of_nulls(struct arena *a, struct span *out, sconce_error *err) {
  return embedding_of_rank_0(a, "quantized_decomposed::embedding_4bit.dtype_out", false, out, err);
}

/* One delegate of 1,000 nodes that is called 101 times. */
static sconce_status many_calls(struct arena *arena, struct span *out, sconce_error *err) {
  struct write_vk g;
  struct write_blob blob, file;
  struct write_pte w;
  write_vk_init(&g, arena);
  int32_t x = tensor4(&g), y = x;
  for (int i = 0; i < 1000; i++) {
    int32_t next = tensor4(&g);
    write_vk_call(&g, "aten.relu.default", ID_LIST(y, next));
    y = next;
  }
  write_vk_inputs(&g, ID_LIST(x));
  write_vk_outputs(&g, ID_LIST(y));
  TRY(write_vk_finish(&g, &blob, err));
  write_pte_init(&w, arena);
  int32_t segment = write_pte_segment(&w, &blob, 0);
  write_pte_method(&w, "forward");
  const uint32_t memory = (uint32_t)write_pte_buffer(&w, 4096);
  int32_t ids[102];
  for (uint32_t i = 0; i < 102; i++) {
    struct write_pte_tensor t = float4;
    t.memory_id = memory;
    t.memory_offset = 16 * i;
    ids[i] = write_pte_tensor(&w, &t);
  }
  write_pte_inputs(&w, ids, 1);
  write_pte_outputs(&w, ids + 101, 1);
  int32_t delegate = write_pte_delegate(&w, VK_BACKEND_ID, segment);
  for (int i = 0; i < 101; i++) write_pte_call_delegate(&w, delegate, ids + i, 2);
  /* That many are refused; what then looks at the rest must not look at each call's graph. */
  for (int i = 0; i < 10000; i++) write_pte_call_delegate(&w, delegate, ids + 100, 2);
  TRY(write_pte_finish(&w, &file, err));
  return write_blob_to_memory(&file, arena, out, err);
}

/* Each constant is all of the same megabyte but for its first words. */
static sconce_status overlapping_constants(struct arena *arena, struct span *out,
                                           sconce_error *err) {
  enum { SIZE = 1 << 20, N = 100, WORDS = SIZE / 4 };
  static const int32_t dims[] = {WORDS};
  const struct write_pte_tensor io = {.scalar_type = SCALAR_FLOAT, .sizes = dims, .rank = 1};
  struct write_vk g;
  write_vk_init(&g, arena);
  const size_t all = SIZE + 4 * N;
  int32_t x = write_vk_tensor(&g, VK_FLOAT32, dims, 1), y = x;
  (void)write_vk_inline(&g, write_bytes(arena_new(arena, uint8_t, all), all));
  for (uint64_t i = 0; i < N; i++) {
    int32_t next = write_vk_tensor(&g, VK_FLOAT32, dims, 1);
    int32_t c =
        write_vk_constant(&g, VK_FLOAT32, dims, 1, write_vk_bytes_as(&g, 4 * i, SIZE, NULL));
    write_vk_call(&g, "aten.mul.Tensor", ID_LIST(y, c, next));
    y = next;
  }
  write_vk_inputs(&g, ID_LIST(x));
  write_vk_outputs(&g, ID_LIST(y));
  return around(arena, &g, (struct write_pte_tensor[]){io, io}, 1, 1, out, err);
}

static sconce_status pads_that_wrap(struct arena *arena, struct span *out, sconce_error *err) {
  struct write_vk g;
  write_vk_init(&g, arena);
  int32_t x = tensor4(&g), y = tensor4(&g);
  int32_t pads = write_vk_value(&g, literal_ints((int64_t[]){2, INT64_MAX}, 2));
  write_vk_call(&g, "aten.constant_pad_nd.default",
                ID_LIST(x, pads, write_vk_value(&g, literal_double(0)), y));
  return one_to_one(arena, &g, x, y, out, err);
}

static int64_t number_given;
static const char *name_given;

/* name(x of rank 0, number, …) */
static sconce_status scalar_and_dim(struct arena *arena, struct span *out, sconce_error *err) {
  struct write_vk g;
  write_vk_init(&g, arena);
  int32_t x = write_vk_tensor(&g, VK_FLOAT32, none, 0),
          y = write_vk_tensor(&g, VK_FLOAT32, none, 0);
  int32_t n = write_vk_value(&g, literal_int(number_given)),
          one = write_vk_value(&g, literal_int(1));
  int32_t list = write_vk_value(&g, literal_ints(&number_given, 1));
  if (strstr(name_given, "slice"))
    write_vk_call(&g, name_given, ID_LIST(x, n, one, one, one, y));
  else if (strstr(name_given, "select"))
    write_vk_call(&g, name_given, ID_LIST(x, n, n, y));
  else
    write_vk_call(&g, name_given,
                  ID_LIST(x, list, write_vk_value(&g, literal_bool(false)),
                          write_vk_value(&g, literal_null()), y));
  write_vk_inputs(&g, ID_LIST(x));
  write_vk_outputs(&g, ID_LIST(y));
  const struct write_pte_tensor io = {.scalar_type = SCALAR_FLOAT, .sizes = none};
  return around(arena, &g, (struct write_pte_tensor[]){io, io}, 1, 1, out, err);
}

/* A graph of two outputs, called with arguments for one. */
static sconce_status more_outputs_than_arguments(struct arena *arena, struct span *out,
                                                 sconce_error *err) {
  struct write_vk g;
  write_vk_init(&g, arena);
  int32_t x = tensor4(&g), y = tensor4(&g), z = tensor4(&g);
  write_vk_call(&g, "aten.relu.default", ID_LIST(x, y));
  write_vk_call(&g, "aten.neg.default", ID_LIST(x, z));
  write_vk_outputs(&g, ID_LIST(z));
  return one_to_one(arena, &g, x, y, out, err);
}

static sconce_status fewer_scales_than_channels(struct arena *arena, struct span *out,
                                                sconce_error *err) {
  static const int8_t weights[16] = {1};
  static const float scales[2] = {1, 1};
  struct write_vk g;
  write_vk_init(&g, arena);
  int32_t x = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(1, 4));
  int32_t y = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(1, 4));
  int32_t w = write_vk_constant(&g, VK_INT8, DIM_LIST(4, 4),
                                write_vk_inline(&g, write_bytes(weights, sizeof weights)));
  int32_t s = write_vk_constant(&g, VK_FLOAT32, DIM_LIST(2),
                                write_vk_inline(&g, write_bytes(scales, sizeof scales)));
  write_vk_call(&g, "et_vk.linear_q8csw.default",
                ID_LIST(x, w, s, write_vk_value(&g, literal_null()), y));
  write_vk_inputs(&g, ID_LIST(x));
  write_vk_outputs(&g, ID_LIST(y));
  static const int32_t row[] = {1, 4};
  const struct write_pte_tensor io = {.scalar_type = SCALAR_FLOAT, .sizes = row, .rank = 2};
  return around(arena, &g, (struct write_pte_tensor[]){io, io}, 1, 1, out, err);
}

/* ---- trying them ----------------------------------------------------------------------------- */

static sconce_status set_zeros(sconce_state *s, const sconce_method_info *info, sconce_error *err) {
  for (uint32_t i = 0; i < info->n_inputs; i++) {
    sconce_tensor t = info->inputs[i];
    t.size = sconce_dtype_size(t.dtype);
    for (uint32_t d = 0; d < t.rank; d++) t.size *= t.dims[d];
    void *zeros = calloc(t.size + 1, 1);
    t.data = zeros;
    sconce_status status = sconce_state_set_input(s, i, &t, err);
    free(zeros);
    TRY(status);
  }
  return SCONCE_OK;
}

static sconce_status open_and_run(sconce_device *device, struct span file, sconce_error *err) {
  sconce_model *model = NULL;
  sconce_method *method = NULL;
  sconce_state *state = NULL;
  const sconce_model_desc desc = {.program = {.data = file.data, .size = file.size}};
  sconce_status status = sconce_model_open(&model, device, &desc, err);
  if (status == SCONCE_OK) status = sconce_method_open(&method, model, NULL, err);
  if (status == SCONCE_OK) status = sconce_state_open(&state, method, err);
  if (status == SCONCE_OK) status = set_zeros(state, sconce_method_describe(method), err);
  if (status == SCONCE_OK) status = sconce_state_run(state, NULL, err);
  sconce_state_close(state);
  sconce_method_close(method);
  sconce_model_close(model);
  return status;
}

typedef sconce_status build_file(struct arena *arena, struct span *out, sconce_error *err);

/* fragment NULL: it runs. */
static void check_file(sconce_device *device, struct test_allocator *memory, const char *why,
                       build_file *build, const char *fragment) {
  enum { SECONDS = 10, MOST = 200 << 20 }; /* under sanitizers and beside others; else within one */
  struct arena arena;
  struct span file = {0};
  sconce_error err = {0};
  arena_init(&arena, NULL);
  CHECK_OK(build(&arena, &file, &err), err);
  memory->most = memory->live;
  const uint64_t start = os_clock_ns();
  sconce_status status = open_and_run(device, file, &err);
  const double seconds = (double)(os_clock_ns() - start) * 1e-9;
  if (fragment)
    CHECK_SAYS(status != SCONCE_OK && strstr(err.text, fragment), "%s: %s (\"%s\"), want \"%s\"",
               why, sconce_status_name(status), status ? err.text : "", fragment);
  else
    CHECK_SAYS(status == SCONCE_OK, "%s: %s", why, err.text);
  CHECK_SAYS(seconds < (double)SECONDS, "%s: %.1f s", why, seconds);
  CHECK_SAYS(memory->most < MOST, "%s: %zu bytes", why, memory->most);
  arena_free(&arena);
}

static void small_files_get_a_sentence_or_an_answer(void) {
  static const struct {
    const char *why;
    build_file *build;
    const char *fragment;
    const char *name;
    int64_t number;
  } rows[] = {
      {"an operand that is a list", norm_of_a_list, "argument 0 is IntList, expected a tensor", 0,
       0},
      {"rows of no elements", norm_of_nothing, NULL, 0, 0},
      {"rank 0 where a row is", embedding_of_a_number, "argument 0 is Double", 0, 0},
      {"nothing where a table is", embedding_of_nulls, "argument", 0, 0},
      {"one delegate, many calls", many_calls, "more than 100000 nodes", 0, 0},
      {"100 MiB of constants in 1 MiB", overlapping_constants, "the files have", 0, 0},
      {"a sum of pads past 2^63", pads_that_wrap, "pads of 2 and 9223372036854775807", 0, 0},
      {"more outputs than arguments", more_outputs_than_arguments, "argument", 0, 0},
      {"fewer scales than channels", fewer_scales_than_channels,
       "scales float32 [2] for a weight int8 [4, 4]", 0, 0},
      {"dim 31 of a scalar", scalar_and_dim, "dim 31 of a tensor of rank 0",
       "aten.slice_copy.Tensor", 31},
      {"dim -2^63 of a scalar", scalar_and_dim, "dim -9223372036854775808 of a tensor",
       "aten.slice_copy.Tensor", INT64_MIN},
      {"dim 2^63 - 1 of a scalar", scalar_and_dim, "dim 9223372036854775807 of a tensor",
       "aten.select_copy.int", INT64_MAX},
      {"sum over dim 64 of a scalar", scalar_and_dim, "dim 64 of a tensor of rank 0",
       "aten.sum.dim_IntList", 64},
      {"mean over dim -33 of a scalar", scalar_and_dim, "dim -33 of a tensor of rank 0",
       "aten.mean.dim", -33},
  };
  struct test_allocator memory;
  sconce_error err = {0};
  sconce_device *device;
  test_allocator_init(&memory, 0);
  const sconce_device_desc desc = {.allocator = memory.hook};
  REQUIRE_OK(sconce_device_open(&device, &desc, &err), err);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    name_given = rows[i].name;
    number_given = rows[i].number;
    check_file(device, &memory, rows[i].why, rows[i].build, rows[i].fragment);
  }
  sconce_device_close(device);
  CHECK_EQ(memory.live, 0);
}

/* ---- two writers of one value ---------------------------------------------------------------- */

/* input: y = view(x), y = relu(z), o = -x, o2 = -y. Else: h = relu(z), y = -x, w = -y, y = view(h).
 */
static sconce_status two_writers(struct arena *arena, bool input, struct span *out,
                                 sconce_error *err) {
  struct write_vk g;
  write_vk_init(&g, arena);
  int32_t x = tensor4(&g), z = tensor4(&g), y = tensor4(&g), a = tensor4(&g), b = tensor4(&g);
  int32_t size = write_vk_value(&g, literal_ints((int64_t[]){4}, 1));
  if (input) {
    write_vk_call(&g, "aten.view_copy.default", ID_LIST(x, size, y));
    write_vk_call(&g, "aten.relu.default", ID_LIST(z, y));
    write_vk_call(&g, "aten.neg.default", ID_LIST(x, a));
    write_vk_call(&g, "aten.neg.default", ID_LIST(y, b));
    write_vk_outputs(&g, ID_LIST(a, b));
  } else {
    write_vk_call(&g, "aten.relu.default", ID_LIST(z, a));
    write_vk_call(&g, "aten.neg.default", ID_LIST(x, y));
    write_vk_call(&g, "aten.neg.default", ID_LIST(y, b));
    write_vk_call(&g, "aten.view_copy.default", ID_LIST(a, size, y));
    write_vk_outputs(&g, ID_LIST(y, b));
  }
  write_vk_inputs(&g, ID_LIST(x, z));
  return around(arena, &g, (struct write_pte_tensor[]){float4, float4, float4, float4}, 2, 2, out,
                err);
}

static void check_writers(sconce_device *device, bool input) {
  static const float x[4] = {1, 2, 3, 4}, z[4] = {10, 20, 30, 40};
  struct arena arena;
  struct span file = {0};
  sconce_error err = {0};
  sconce_model *model = NULL;
  sconce_method *method = NULL;
  sconce_state *state = NULL;
  arena_init(&arena, NULL);
  CHECK_OK(two_writers(&arena, input, &file, &err), err);
  const sconce_model_desc desc = {.program = {.data = file.data, .size = file.size}};
  CHECK_OK(sconce_model_open(&model, device, &desc, &err), err);
  if (model) CHECK_OK(sconce_method_open(&method, model, NULL, &err), err);
  if (method) CHECK_OK(sconce_state_open(&state, method, &err), err);
  const sconce_tensor in[] = {{SCONCE_FLOAT32, 1, {4}, x, sizeof x},
                              {SCONCE_FLOAT32, 1, {4}, z, sizeof z}};
  for (uint32_t i = 0; state && i < 2; i++)
    CHECK_OK(sconce_state_set_input(state, i, &in[i], &err), err);
  if (state) CHECK_OK(sconce_state_run(state, NULL, &err), err);
  for (uint32_t o = 0; state && o < 2; o++) {
    sconce_tensor got = {0};
    CHECK_OK(sconce_state_output(state, o, &got, &err), err);
    for (int i = 0; got.data && i < 4; i++)
      CHECK_NEAR(((const float *)got.data)[i], input ? (o ? -z[i] : -x[i]) : (o ? x[i] : z[i]), 0);
  }
  sconce_state_close(state);
  sconce_method_close(method);
  sconce_model_close(model);
  arena_free(&arena);
}

static void a_value_with_two_writers_is_the_last_written(void) {
  sconce_error err = {0};
  sconce_device *device;
  REQUIRE_OK(sconce_device_open(&device, NULL, &err), err);
  check_writers(device, true);
  check_writers(device, false);
  test_note_kernels(device->gpu);
  sconce_device_close(device);
}

/* ---- names ----------------------------------------------------------------------------------- */

/* forward(x) = x + a constant whose bytes are in no file of ours. */
static sconce_status external_constant(struct arena *arena, const char *name, struct span *out,
                                       sconce_error *err) {
  struct write_pte w;
  struct write_blob file;
  struct write_pte_tensor outside = float4;
  outside.external = true;
  outside.fully_qualified_name = name;
  write_pte_init(&w, arena);
  write_pte_method(&w, "forward");
  const int32_t x = write_pte_tensor(&w, &float4), y = write_pte_tensor(&w, &float4);
  const int32_t c = write_pte_tensor(&w, &outside), one = write_pte_value(&w, literal_int(1));
  write_pte_inputs(&w, ID_LIST(x));
  write_pte_outputs(&w, ID_LIST(y));
  write_pte_call_kernel(&w, write_pte_operator(&w, "aten::add", "out"), ID_LIST(x, c, one, y, y));
  TRY(write_pte_finish(&w, &file, err));
  return write_blob_to_memory(&file, arena, out, err);
}

/* They name entries of the data files that the caller gave, and nothing in a file system: not even
 * where there is a file with the right number of bytes. */
static void names_of_external_data_are_no_paths(void) {
  char target[TEST_PATH_MAX], model[TEST_PATH_MAX], up[TEST_PATH_MAX + 8], link[TEST_PATH_MAX + 8];
  sconce_error err = {0};
  sconce_device *device;
  test_temporary(target, "");
  test_temporary(model, ".pte");
  CHECK(test_write_path(target, (float[4]){1, 2, 3, 4}, 16));
  const char *last = strrchr(target, '/') ? strrchr(target, '/') + 1 : target;
  snprintf(up, sizeof up, "../tmp/%s", last);
  snprintf(link, sizeof link, "%s.link", target);
#ifndef _WIN32
  CHECK(symlink(target, link) == 0);
#endif
  const char *const names[] = {target, link, last, up, "../../../../../../etc/passwd"};
  REQUIRE_OK(sconce_device_open(&device, NULL, &err), err);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char want[2 * TEST_PATH_MAX];
    struct arena arena;
    struct span file = {0};
    sconce_model *opened = NULL;
    arena_init(&arena, NULL);
    CHECK_OK(external_constant(&arena, names[i], &file, &err), err);
    CHECK(test_write_path(model, file.data, file.size));
    snprintf(want, sizeof want, "external tensor '%s' is in none of the 0 data files", names[i]);
    const sconce_model_desc desc = {.program.path = model};
    CHECK_FAILS(sconce_model_open(&opened, device, &desc, &err), SCONCE_BAD_FILE, err, want);
    CHECK(!opened);
    arena_free(&arena);
  }
  sconce_device_close(device);
  remove(link);
  remove(target);
  remove(model);
}

/* ---- files that change ----------------------------------------------------------------------- */

/* Cut after the program was read, before its weights are. */
static void a_file_that_shrinks_is_an_error_of_the_call(void) {
  char path[TEST_PATH_MAX];
  size_t size;
  sconce_error err = {0};
  sconce_device *device;
  sconce_model *model = NULL;
  sconce_method *method = NULL;
  unsigned char *bytes =
      test_read_path(SCONCE_SOURCE_DIR "/models/stories15M/stories15M-4w.pte", &size);
  REQUIRE(bytes);
  test_temporary(path, ".pte");
  CHECK(test_write_path(path, bytes, size));
  REQUIRE_OK(sconce_device_open(&device, NULL, &err), err);
  CHECK_OK(sconce_model_open(&model, device, &(sconce_model_desc){.program.path = path}, &err),
           err);
  CHECK(test_write_path(path, bytes, 4096));
  free(bytes);
  if (model)
    CHECK_FAILS(sconce_method_open(&method, model, NULL, &err), SCONCE_IO_ERROR, err, "ends at");
  sconce_method_close(method);
  sconce_model_close(model);
  sconce_device_close(device);
  remove(path);
}

/* One byte of the weights is another, before they are read, and before they are read again. */
static void a_file_that_changes_is_an_error_of_the_call(void) {
  enum { A_TICK = 20000000 }; /* ns: longer than the step of a file system's clock */
  char path[TEST_PATH_MAX];
  size_t size;
  sconce_error err = {0};
  sconce_device *device;
  unsigned char *bytes =
      test_read_path(SCONCE_SOURCE_DIR "/models/stories15M/stories15M-4w.pte", &size);
  REQUIRE(bytes);
  test_temporary(path, ".pte");
  REQUIRE_OK(sconce_device_open(&device, NULL, &err), err);
  for (int loaded = 0; loaded < 2; loaded++) {
    sconce_model *model = NULL;
    sconce_method *method = NULL;
    CHECK(test_write_path(path, bytes, size));
    CHECK_OK(sconce_model_open(&model, device, &(sconce_model_desc){.program.path = path}, &err),
             err);
    if (model && loaded) CHECK_OK(sconce_method_open(&method, model, NULL, &err), err);
    os_sleep_ns(A_TICK);
    bytes[size / 2] ^= 1;
    CHECK(test_write_path(path, bytes, size));
    if (loaded) gpu_lose(device->gpu);
    if (model)
      CHECK_FAILS(loaded ? sconce_device_recover(device, &err)
                         : sconce_method_open(&method, model, NULL, &err),
                  SCONCE_IO_ERROR, err, "changed since it was opened");
    sconce_method_close(method);
    sconce_model_close(model);
  }
  free(bytes);
  sconce_device_close(device);
  remove(path);
}

/* A file that is cut as soon as somebody allocates memory or writes: after it was opened. */
struct cut {
  const char *path;
  const unsigned char *bytes;
  bool done;
};

static void cut_now(struct cut *cut) {
  if (!cut->done) CHECK(test_write_path(cut->path, cut->bytes, 10));
  cut->done = true;
}

static void *cut_and_resize(void *user, void *block, size_t old_size, size_t size) {
  (void)old_size;
  cut_now(user);
  if (size) return realloc(block, size);
  free(block);
  return NULL;
}

static void cut_and_write(void *user, const char *text, size_t size) {
  (void)text, (void)size;
  cut_now(user);
}

static void begin_cut(struct cut *cut, const char *source, char path[TEST_PATH_MAX]) {
  size_t size;
  unsigned char *bytes = test_read_path(source, &size);
  REQUIRE(bytes);
  test_temporary(path, ".cut");
  CHECK(test_write_path(path, bytes, size));
  *cut = (struct cut){.path = path, .bytes = bytes};
}

static void end_cut(struct cut *cut) {
  CHECK(cut->done);
  remove(cut->path);
  free((void *)(uintptr_t)cut->bytes);
}

/* What is told was read before; a file that is read meanwhile is an error. */
static void a_file_may_shrink_while_it_is_looked_at(void) {
  char path[TEST_PATH_MAX];
  struct cut cut;
  sconce_error err = {0};
  sconce_tokenizer *tokenizer;
  begin_cut(&cut, SCONCE_SOURCE_DIR "/models/stories15M/stories15M-4w.pte", path);
  sconce_inspect_desc looks = {.file.path = path, .format = SCONCE_INSPECT_JSON};
  CHECK_OK(sconce_inspect(&looks, cut_and_write, &cut, &err), err);
  end_cut(&cut);
  begin_cut(&cut, SCONCE_SOURCE_DIR "/models/stories15M/stories15M-4w.pte", path);
  looks.allocator = (sconce_allocator){.resize = cut_and_resize, .user = &cut};
  CHECK_FAILS(sconce_inspect(&looks, cut_and_write, &cut, &err), SCONCE_IO_ERROR, err, "ends at");
  end_cut(&cut);
  begin_cut(&cut, SCONCE_SOURCE_DIR "/models/stories15M/tokenizer.bin", path);
  const sconce_tokenizer_desc opens = {.path = path,
                                       .allocator = {.resize = cut_and_resize, .user = &cut}};
  CHECK_FAILS(sconce_tokenizer_open(&tokenizer, &opens, &err), SCONCE_IO_ERROR, err, "ends at");
  end_cut(&cut);
}

const struct test suite_hostile[] = {
    TEST(small_files_get_a_sentence_or_an_answer),
    TEST(a_value_with_two_writers_is_the_last_written),
    TEST(names_of_external_data_are_no_paths),
    TEST(a_file_that_shrinks_is_an_error_of_the_call),
    TEST(a_file_that_changes_is_an_error_of_the_call),
    TEST(a_file_may_shrink_while_it_is_looked_at),
    {0},
};
