/* What callers have and what the graph computes with: 64 bits outside, 32 inside. */
#include "gpu.h"

#include "sconce.h"
#include "write/write.h"

#include <float.h>
#include <inttypes.h>
#include <stdlib.h>

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

/* ---- numbers --------------------------------------------------------------------------------- */

/* Inputs of int64 and of float64, each returned in a copy. */
static sconce_status wide_copies(struct arena *arena, struct span *out, sconce_error *err) {
  static const int32_t dims_3[] = {3};
  static const int types[] = {SCALAR_LONG, SCALAR_DOUBLE};
  struct write_pte w;
  struct write_blob file;
  write_pte_init(&w, arena);
  write_pte_method(&w, "forward");
  const uint32_t memory = (uint32_t)write_pte_buffer(&w, 256);
  int32_t ids[4];
  for (uint32_t i = 0; i < 4; i++)
    ids[i] = write_pte_tensor(&w, &(struct write_pte_tensor){.scalar_type = types[i % 2],
                                                             .sizes = dims_3,
                                                             .rank = 1,
                                                             .memory_id = memory,
                                                             .memory_offset = 64 * i});
  write_pte_inputs(&w, ids, 2);
  write_pte_outputs(&w, ids + 2, 2);
  const int32_t clone = write_pte_operator(&w, "aten::clone", "out");
  const int32_t none = write_pte_value(&w, literal_null());
  for (uint32_t i = 0; i < 2; i++)
    write_pte_call_kernel(&w, clone, ID_LIST(ids[i], none, ids[i + 2], ids[i + 2]));
  TRY(write_pte_finish(&w, &file, err));
  return write_blob_to_memory(&file, arena, out, err);
}

static sconce_status give_wide(sconce_state *s, const int64_t *whole, const double *real,
                               sconce_error *err) {
  const sconce_tensor a = {SCONCE_INT64, 1, {3}, whole, 24}, b = {SCONCE_FLOAT64, 1, {3}, real, 24};
  if (whole) TRY(sconce_state_set_input(s, 0, &a, err));
  if (real) TRY(sconce_state_set_input(s, 1, &b, err));
  return sconce_state_run(s, NULL, err);
}

static void check_wide(sconce_state *s, const int64_t *whole, const double *real) {
  sconce_error err = {0};
  sconce_tensor y[2] = {{0}};
  for (uint32_t k = 0; k < 2; k++) CHECK_OK(sconce_state_output(s, k, &y[k], &err), err);
  for (uint32_t i = 0; y[0].data && y[1].data && i < 3; i++) {
    const double got = ((const double *)y[1].data)[i], want = (double)(float)real[i];
    CHECK_EQ(((const int64_t *)y[0].data)[i], whole[i]);
    CHECK_SAYS(got == want || (isnan(got) && isnan(want)), "%g, want %g", got, want);
  }
}

/* Each row: what is given in place of the values before, NULL for none, and what is said. */
static void what_does_not_fit_is_an_error_of_its_call(void) {
  static const int64_t ends[] = {INT32_MIN, -1, INT32_MAX};
  static const double reals[] = {FLT_MAX, -1e-300, 0x1.fffffefp127}; /* the last rounds down */
  static const double odd[] = {(double)INFINITY, (double)-INFINITY, (double)NAN};
  static const struct {
    const char *says;
    int64_t whole[3];
    double real[3];
  } rows[] = {
      {"input 0: element 2 is 2147483648, the method takes", {1, 2, INT64_C(1) << 31}, {0}},
      {"input 0: element 0 is -2147483649, the method takes", {-(INT64_C(1) << 31) - 1}, {0}},
      {"input 0: element 1 is 4294967297, the method takes", {1, (INT64_C(1) << 32) + 1}, {0}},
      {"input 1: element 1 is 1.0000000000000001e+300, the method computes with", {0}, {1, 1e300}},
      {"input 1: element 2 is -3.5", {0}, {1, 2, -3.5e38}},
      {"input 1: element 0 is 3.4028235677973366e+38", {0}, {0x1.ffffffp127}}, /* rounds up */
  };
  struct opened o;
  sconce_error err = {0};
  open_program(&o, wide_copies);
  if (o.state) {
    CHECK_OK(give_wide(o.state, ends, reals, &err), err);
    check_wide(o.state, ends, reals);
  }
  for (size_t i = 0; o.state && i < sizeof rows / sizeof *rows; i++) {
    const bool real = strncmp(rows[i].says, "input 1", 7) == 0;
    CHECK_FAILS(give_wide(o.state, real ? NULL : rows[i].whole, real ? rows[i].real : NULL, &err),
                SCONCE_BAD_ARGUMENT, err, rows[i].says);
    CHECK_OK(sconce_state_run(o.state, NULL, &err), err); /* with what the inputs had */
    check_wide(o.state, ends, reals);
  }
  if (o.state) {
    CHECK_OK(give_wide(o.state, NULL, odd, &err), err);
    check_wide(o.state, ends, odd);
  }
  close_program(&o);
}

/* ---- constants ------------------------------------------------------------------------------- */

struct kind {
  const char *why;
  int scalar_type;
  const uint8_t *dim_order;
  bool half; /* what reads it is a delegate with float16 */
};

/* What the constants of a file under test are. */
static const struct kind *kind;
static const void *elements;
static int32_t sizes[4];

static uint32_t numel_of_sizes(void) {
  return (uint32_t)sizes[0] * (uint32_t)sizes[1] * (uint32_t)sizes[2] * (uint32_t)sizes[3];
}

/* z = a + b in float16. */
static sconce_status half_sum(struct arena *arena, struct write_blob *out, sconce_error *err) {
  struct write_vk *g = arena_new(arena, struct write_vk, 1);
  write_vk_init(g, arena);
  int32_t ids[3];
  for (int i = 0; i < 3; i++)
    ids[i] = write_vk_tensor(g, VK_FLOAT16, DIM_LIST(sizes[0], sizes[1], sizes[2], sizes[3]));
  const int32_t one = write_vk_value(g, literal_int(1));
  write_vk_call(g, "aten.add.Tensor", ID_LIST(ids[0], ids[1], one, ids[2]));
  write_vk_inputs(g, ids, 2);
  write_vk_outputs(g, ids + 2, 1);
  return write_vk_finish(g, out, err);
}

/* y = x + c, x and y of the same dtype as c, in rows. */
static void add_sum(struct write_pte *w, const char *name, int32_t bytes, int32_t segment) {
  write_pte_method(w, name);
  const uint32_t size = numel_of_sizes() * scalar_size(kind->scalar_type);
  const uint32_t memory = (uint32_t)write_pte_buffer(w, 2 * (int64_t)size);
  struct write_pte_tensor t = {
      .scalar_type = kind->scalar_type, .sizes = sizes, .rank = 4, .memory_id = memory};
  const int32_t x = write_pte_tensor(w, &t);
  t.memory_offset = size;
  const int32_t y = write_pte_tensor(w, &t);
  const int32_t c = write_pte_tensor(w, &(struct write_pte_tensor){
                                            .scalar_type = kind->scalar_type,
                                            .sizes = sizes,
                                            .rank = 4,
                                            .dim_order = kind->dim_order,
                                            .data_buffer_idx = bytes,
                                        });
  write_pte_inputs(w, &x, 1);
  write_pte_outputs(w, &y, 1);
  if (kind->half) {
    write_pte_call_delegate(w, write_pte_delegate(w, VK_BACKEND_ID, segment), ID_LIST(x, c, y));
    return;
  }
  const int32_t one = write_pte_value(w, literal_int(1));
  write_pte_call_kernel(w, write_pte_operator(w, "aten::add", "out"), ID_LIST(x, c, one, y, y));
}

/* Two methods with one constant. */
static sconce_status two_sums(struct arena *arena, struct write_blob *out, sconce_error *err) {
  struct write_pte *w = arena_new(arena, struct write_pte, 1);
  struct write_blob *inside = arena_new(arena, struct write_blob, 1);
  TRY(half_sum(arena, inside, err));
  write_pte_init(w, arena);
  const uint32_t size = numel_of_sizes() * scalar_size(kind->scalar_type);
  const int32_t bytes = write_pte_constant(w, write_bytes(elements, size));
  const int32_t segment = write_pte_segment(w, inside, 0);
  add_sum(w, "forward", bytes, segment);
  add_sum(w, "again", bytes, segment);
  return write_pte_finish(w, out, err);
}

static sconce_status two_sums_in_memory(struct arena *arena, struct span *out, sconce_error *err) {
  struct write_blob file;
  TRY(two_sums(arena, &file, err));
  return write_blob_to_memory(&file, arena, out, err);
}

static void an_integer_beyond_32_bits_is_an_error_at_load(void) {
  static const struct kind whole = {.scalar_type = SCALAR_LONG};
  static const struct {
    int64_t last;
    const char *says; /* NULL: it fits */
  } rows[] = {
      {INT32_MAX, NULL},
      {INT32_MIN, NULL},
      {INT64_C(1) << 31, "a constant of 2147483648 does not fit 32 bits"},
      {-(INT64_C(1) << 31) - 1, "a constant of -2147483649 does not fit 32 bits"},
      {INT64_MAX, "a constant of 9223372036854775807 does not fit 32 bits"},
      {INT64_C(1) << 32, "a constant of 4294967296 does not fit 32 bits"}, /* whose low word is 0 */
  };
  sconce_device *device = NULL;
  sconce_error err = {0};
  REQUIRE_OK(sconce_device_open(&device, NULL, &err), err);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const int64_t numbers[4] = {1, -2, 3, rows[i].last};
    struct arena arena;
    struct span file = {0};
    sconce_model *model = NULL;
    sconce_method *method = NULL;
    arena_init(&arena, NULL);
    memcpy(sizes, (int32_t[]){1, 1, 2, 2}, sizeof sizes);
    kind = &whole;
    elements = numbers;
    CHECK_OK(two_sums_in_memory(&arena, &file, &err), err);
    const sconce_model_desc desc = {.program = {.data = file.data, .size = file.size}};
    CHECK_OK(sconce_model_open(&model, device, &desc, &err), err);
    if (rows[i].says)
      CHECK_FAILS(sconce_method_open(&method, model, NULL, &err), SCONCE_UNSUPPORTED, err,
                  rows[i].says);
    else
      CHECK_OK(sconce_method_open(&method, model, NULL, &err), err);
    sconce_method_close(method);
    sconce_model_close(model);
    arena_free(&arena);
  }
  sconce_device_close(device);
}

/* Bytes of weights on the device. */
static uint64_t weights_of(const sconce_state *s) {
  sconce_stats stats;
  sconce_state_stats(s, &stats);
  return stats.gpu_weights;
}

static const uint8_t channels_last[] = {0, 2, 3, 1};

static void methods_share_what_is_made_of_a_constant(void) {
  static const struct kind kinds[] = {
      {"int64", SCALAR_LONG, NULL, false},
      {"float64", SCALAR_DOUBLE, NULL, false},
      {"channels-last", SCALAR_FLOAT, channels_last, false},
      {"float16 in a delegate", SCALAR_FLOAT, NULL, true},
  };
  static const int64_t numbers[64] = {1, 2, 3, 4};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    struct opened o;
    sconce_error err = {0};
    sconce_method *again = NULL;
    sconce_state *state = NULL;
    memcpy(sizes, (int32_t[]){2, 2, 4, 4}, sizeof sizes);
    kind = &kinds[i];
    elements = numbers;
    open_program(&o, two_sums_in_memory);
    if (o.state) {
      const uint64_t one = weights_of(o.state);
      CHECK_SAYS(one >= 64 * (kind->half ? 2 : 4), "%s: %" PRIu64 " bytes", kind->why, one);
      CHECK_OK(sconce_method_open(&again, o.model, "again", &err), err);
      CHECK_OK(sconce_state_open(&state, again, &err), err);
      if (state)
        CHECK_SAYS(weights_of(state) == one, "%s: %" PRIu64 " bytes, with one method %" PRIu64,
                   kind->why, weights_of(state), one);
    }
    sconce_state_close(state);
    sconce_method_close(again);
    close_program(&o);
  }
}

/* Bytes of host memory that are held, and at the peak. */
struct held_bytes {
  size_t now, most;
};
static void *count_resize(void *user, void *block, size_t old_size, size_t size) {
  struct held_bytes *held = user;
  held->now += size - old_size;
  if (held->now > held->most) held->most = held->now;
  if (size) return realloc(block, size);
  free(block);
  return NULL;
}

/* An element by its place in rows. */
static double element(uint32_t i) { return (double)(i % 1000003) - 500000; }

/* In the order of the file. */
static double *channels_last_elements(uint32_t n) {
  double *out = malloc(n * sizeof *out);
  const uint32_t c = (uint32_t)sizes[1], plane = (uint32_t)(sizes[2] * sizes[3]);
  for (uint32_t i = 0; out && i < n; i++)
    out[(i / (c * plane) * plane + i % plane) * c + i / plane % c] = element(i);
  return out;
}

/* y = x + c, and how many of its elements are wrong. */
static uint32_t wrong_sums(sconce_method *m, const double *x, uint32_t n, sconce_error *err) {
  sconce_state *s = NULL;
  sconce_tensor in = {SCONCE_FLOAT64, 4, {0}, x, n * sizeof *x}, y = {0};
  for (int d = 0; d < 4; d++) in.dims[d] = (uint32_t)sizes[d];
  sconce_status status = sconce_state_open(&s, m, err);
  if (status == SCONCE_OK) status = sconce_state_set_input(s, 0, &in, err);
  if (status == SCONCE_OK) status = sconce_state_run(s, NULL, err);
  if (status == SCONCE_OK) status = sconce_state_output(s, 0, &y, err);
  CHECK_OK(status, *err);
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < n; i++)
    wrong += !y.data || ((const double *)y.data)[i] != x[i] + element(i);
  sconce_state_close(s);
  return wrong;
}

static void open_two(sconce_device *device, const char *path, const struct held_bytes *held,
                     const double *x, uint32_t n) {
  enum { SLACK = 1 << 20 };
  sconce_model *model = NULL;
  sconce_method *methods[2] = {NULL};
  sconce_error err = {0};
  const size_t made = n * sizeof(float), before = held->now;
  const sconce_model_desc desc = {.program = {.path = path}};
  CHECK_OK(sconce_model_open(&model, device, &desc, &err), err);
  for (int i = 0; model && i < 2; i++) {
    CHECK_OK(sconce_method_open(&methods[i], model, i ? "again" : NULL, &err), err);
    CHECK_SAYS(held->most < before + made + SCONCE_PIECE_MAX + SLACK, "%zu bytes, of method %d",
               held->most - before, i);
  }
  if (methods[1]) CHECK_EQ(wrong_sums(methods[1], x, n, &err), 0);
  sconce_method_close(methods[0]);
  if (methods[1]) CHECK_EQ(wrong_sums(methods[1], x, n, &err), 0);
  sconce_method_close(methods[1]);
  CHECK(held->now < before + SCONCE_PIECE_MAX + SLACK); /* the model is still open */
  sconce_model_close(model);
}

/* What is made counts among the host's bytes. */
static void refuse_one(sconce_device *device, const char *path) {
  sconce_model *model = NULL;
  sconce_method *method = NULL;
  sconce_error err = {0};
  const sconce_model_desc desc = {.program = {.path = path}, .max_host_bytes = 8 << 20};
  CHECK_OK(sconce_model_open(&model, device, &desc, &err), err);
  if (model)
    CHECK_FAILS(sconce_method_open(&method, model, NULL, &err), SCONCE_UNSUPPORTED, err,
                "max_host_bytes is 8388608");
  sconce_model_close(model);
}

/* 40 MiB of float64 in a file become 20: that, and a piece of the file, is all there is. */
static void a_constant_is_converted_piece_by_piece(void) {
  static const struct kind real = {.scalar_type = SCALAR_DOUBLE, .dim_order = channels_last};
  struct held_bytes held = {0};
  const sconce_device_desc on = {.allocator = {.resize = count_resize, .user = &held}};
  sconce_device *device = NULL;
  struct arena arena;
  struct write_blob file = {0};
  sconce_error err = {0};
  char path[TEST_PATH_MAX];
  arena_init(&arena, NULL);
  memcpy(sizes, (int32_t[]){2, 5, 512, 1024}, sizeof sizes);
  const uint32_t n = numel_of_sizes();
  double *numbers = channels_last_elements(n), *x = calloc(n, sizeof *x);
  kind = &real;
  elements = numbers;
  CHECK_OK(two_sums(&arena, &file, &err), err);
  test_temporary(path, ".pte");
  CHECK_OK(write_blob_to_file(&file, path, &err), err);
  CHECK_OK(sconce_device_open(&device, &on, &err), err);
  for (uint32_t i = 0; x && i < n; i++) x[i] = (double)(i % 7);
  if (numbers && x && !test_failed()) open_two(device, path, &held, x, n);
  if (device) refuse_one(device, path);
  sconce_device_close(device);
  CHECK_EQ(held.now, 0);
  test_remove(path);
  arena_free(&arena);
  free(numbers);
  free(x);
}

const struct test suite_border[] = {
    TEST(what_does_not_fit_is_an_error_of_its_call),
    TEST(an_integer_beyond_32_bits_is_an_error_at_load),
    TEST(methods_share_what_is_made_of_a_constant),
    TEST(a_constant_is_converted_piece_by_piece),
    {0},
};
