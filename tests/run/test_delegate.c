/* A delegate's blob alone as a model, with named data from a caller's functions. */
#include "gpu.h"

#include "run/device.h"
#include "write/write.h"

/* ---- named data ------------------------------------------------------------------------------ */

static const float scale[4] = {1, 2, 3, 4}, offset[4] = {10, 20, 30, 40};

/* What the two functions were asked. */
struct store {
  const char *missing; /* this key is not there */
  const char *broken;  /* this one cannot be read */
  uint64_t size;       /* of every key; 0: as it is */
  uint32_t n_found, n_read;
};

static const void *bytes_of(const char *key) {
  return strcmp(key, "scale") == 0 ? scale : strcmp(key, "offset") == 0 ? offset : NULL;
}

static bool find(void *user, const char *key, uint64_t *size) {
  struct store *s = user;
  s->n_found++;
  *size = s->size ? s->size : sizeof scale;
  return bytes_of(key) && !(s->missing && strcmp(key, s->missing) == 0);
}

static sconce_status read(void *user, const char *key, uint64_t at, void *out, size_t size) {
  struct store *s = user;
  s->n_read++;
  if (s->broken && strcmp(key, s->broken) == 0) return SCONCE_IO_ERROR;
  CHECK(at <= sizeof scale && size <= sizeof scale - at);
  memcpy(out, (const char *)bytes_of(key) + at, size);
  return SCONCE_OK;
}

/* ---- graphs ---------------------------------------------------------------------------------- */

/* y = (x * scale + offset) * n and m = n + rows of x; x up to [8, 4], n a live scalar. */
static sconce_status affine(struct arena *arena, struct span *out, sconce_error *err) {
  struct write_vk g;
  struct write_blob blob;
  write_vk_init(&g, arena);
  int32_t x = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(8, 4));
  int32_t s0 = write_vk_constant(&g, VK_FLOAT32, DIM_LIST(4), write_vk_named(&g, "scale", 16));
  int32_t c0 = write_vk_constant(&g, VK_FLOAT32, DIM_LIST(4), write_vk_named(&g, "offset", 16));
  int32_t n = write_vk_value(&g, literal_symint(0)), m = write_vk_value(&g, literal_symint(0));
  int32_t rows = write_vk_value(&g, literal_symint(0));
  int32_t t = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(8, 4));
  int32_t u = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(8, 4));
  int32_t y = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(8, 4));
  int32_t k = write_vk_tensor(&g, VK_FLOAT32, NULL, 0), none = write_vk_value(&g, literal_null());
  write_vk_call(&g, "aten.mul.Tensor", ID_LIST(x, s0, t));
  write_vk_call(&g, "aten.add.Tensor", ID_LIST(t, c0, write_vk_value(&g, literal_double(1)), u));
  write_vk_call(&g, "aten.scalar_tensor.default", ID_LIST(n, none, none, none, none, k));
  write_vk_call(&g, "aten.mul.Tensor", ID_LIST(u, k, y));
  write_vk_call(&g, "sym_size.int", ID_LIST(x, write_vk_value(&g, literal_int(0)), rows));
  write_vk_call(&g, "add", ID_LIST(n, rows, m));
  write_vk_inputs(&g, ID_LIST(x, n));
  write_vk_outputs(&g, ID_LIST(y, m));
  TRY(write_vk_finish(&g, &blob, err));
  return write_blob_to_memory(&blob, arena, out, err);
}

struct fixture {
  struct arena arena;
  struct store store;
  sconce_device *device;
  sconce_model *model;
  sconce_method *method;
  sconce_state *state;
};

static sconce_status open_blob(struct fixture *f, struct store store,
                               const sconce_allocator *allocator, sconce_error *err) {
  *f = (struct fixture){.store = store};
  arena_init(&f->arena, NULL);
  struct span blob;
  TRY(affine(&f->arena, &blob, err));
  sconce_device_desc desc = {0};
  if (allocator) desc.allocator = *allocator;
  TRY(sconce_device_open(&f->device, &desc, err));
  sconce_model_desc model = {.program = {.data = blob.data, .size = blob.size},
                             .named_data = {find, read, &f->store}};
  TRY(sconce_model_open(&f->model, f->device, &model, err));
  TRY(sconce_method_open(&f->method, f->model, NULL, err));
  return sconce_state_open(&f->state, f->method, err);
}

static void close_blob(struct fixture *f) {
  sconce_state_close(f->state);
  sconce_method_close(f->method);
  sconce_model_close(f->model);
  if (f->device) {
    CHECK_EQ(gpu_stats(f->device->gpu)->buffers, 0);
    test_note_kernels(f->device->gpu);
  }
  sconce_device_close(f->device);
  arena_free(&f->arena);
}

static sconce_status call(sconce_state *s, uint32_t rows, int64_t n, sconce_error *err) {
  float x[32];
  for (uint32_t i = 0; i < 32; i++) x[i] = (float)i;
  const sconce_tensor t = {SCONCE_FLOAT32, 2, {rows, 4}, x, rows * 16};
  const sconce_tensor number = {.dtype = SCONCE_INT64, .data = &n, .size = sizeof n};
  TRY(sconce_state_set_input(s, 0, &t, err));
  TRY(sconce_state_set_input(s, 1, &number, err));
  return sconce_state_run(s, NULL, err);
}

static void check_result(sconce_state *s, uint32_t rows, int64_t n) {
  sconce_tensor y, m;
  sconce_error err = {0};
  REQUIRE_OK(sconce_state_output(s, 0, &y, &err), err);
  REQUIRE_OK(sconce_state_output(s, 1, &m, &err), err);
  CHECK_EQ(y.dims[0], rows);
  CHECK_EQ(y.size, rows * 16);
  for (uint32_t i = 0; i < rows * 4; i++)
    CHECK_NEAR(((const float *)y.data)[i],
               ((double)i * (double)scale[i % 4] + (double)offset[i % 4]) * (double)n, 1e-3);
  int64_t sum;
  CHECK_EQ(m.dtype, SCONCE_INT64);
  CHECK_EQ(m.size, sizeof sum);
  memcpy(&sum, m.data, sizeof sum);
  CHECK_EQ(sum, n + rows);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void a_blob_is_a_model_with_one_method(void) {
  struct fixture f;
  sconce_error err = {0};
  CHECK_OK(open_blob(&f, (struct store){0}, NULL, &err), err);
  if (f.state) {
    const sconce_model_info *model = sconce_model_describe(f.model);
    const sconce_method_info *info = sconce_method_describe(f.method);
    CHECK_EQ(model->n_methods, 1);
    CHECK_TEXT(model->methods[0], "forward");
    CHECK_EQ(info->n_inputs, 2);
    CHECK_EQ(info->n_outputs, 2);
    CHECK(info->dynamic[0] && info->dynamic[1]);
    CHECK_EQ(info->inputs[0].dtype, SCONCE_FLOAT32);
    CHECK_EQ(info->inputs[0].dims[0], 8);
    CHECK_EQ(info->inputs[1].dtype, SCONCE_INT64);
    CHECK_EQ(info->inputs[1].rank, 0);
    sconce_method *other;
    sconce_number number;
    CHECK_FAILS(sconce_method_open(&other, f.model, "backward", &err), SCONCE_BAD_ARGUMENT, err,
                "no method 'backward': a delegate alone has 'forward'");
    CHECK_FAILS(sconce_model_constant(f.model, "get_answer", 0, &number, &err), SCONCE_UNSUPPORTED,
                err, "no constant method 'get_answer'");
  }
  close_blob(&f);
}

static void dims_and_scalars_change_from_call_to_call(void) {
  static const struct {
    uint32_t rows;
    int64_t n;
  } calls[] = {{8, 1}, {3, 1}, {3, 7}, {0, 7}, {1, -2}, {8, 0}};
  struct fixture f;
  sconce_error err = {0};
  CHECK_OK(open_blob(&f, (struct store){0}, NULL, &err), err);
  for (size_t i = 0; f.state && i < sizeof calls / sizeof *calls; i++) {
    CHECK_OK(call(f.state, calls[i].rows, calls[i].n, &err), err);
    check_result(f.state, calls[i].rows, calls[i].n);
  }
  CHECK_EQ(f.store.n_found, 2); /* each key is asked for once */
  CHECK_EQ(f.store.n_read, 2);
  close_blob(&f);
}

static uint64_t written(const struct fixture *f) {
  return gpu_stats(f->device->gpu)->bytes_written;
}

/* Rows of x are 16 bytes; a call may write parameters too. */
static void what_an_input_has_is_not_sent_again(void) {
  struct fixture f;
  sconce_error err = {0};
  CHECK_OK(open_blob(&f, (struct store){0}, NULL, &err), err);
  if (f.state) {
    CHECK_OK(call(f.state, 8, 2, &err), err);
    uint64_t before = written(&f);
    CHECK_OK(call(f.state, 8, 2, &err), err);
    CHECK_EQ(written(&f), before);
    check_result(f.state, 8, 2);
    CHECK_OK(call(f.state, 3, 2, &err), err); /* the same bytes, fewer rows */
    CHECK(written(&f) >= before + 3 * 16);
    check_result(f.state, 3, 2);
    before = written(&f);
    CHECK_OK(call(f.state, 8, 2, &err), err);
    CHECK(written(&f) >= before + 8 * 16);
    check_result(f.state, 8, 2);
  }
  close_blob(&f);
}

/* A recovery asks for the data again. */
static void a_lost_device_reads_named_data_again(void) {
  struct fixture f;
  sconce_error err = {0};
  CHECK_OK(open_blob(&f, (struct store){0}, NULL, &err), err);
  if (f.state) {
    CHECK_OK(call(f.state, 8, 2, &err), err);
    gpu_lose(f.device->gpu);
    CHECK_OK(sconce_device_recover(f.device, &err), err);
    CHECK_EQ(f.store.n_found, 2);
    CHECK_EQ(f.store.n_read, 4);
    CHECK_OK(sconce_state_run(f.state, NULL, &err), err);
    check_result(f.state, 8, 2);
    CHECK_OK(call(f.state, 8, 2, &err), err);
    check_result(f.state, 8, 2);
  }
  close_blob(&f);
}

static void wrong_scalars_leave_the_last_one(void) {
  struct fixture f;
  sconce_error err = {0};
  CHECK_OK(open_blob(&f, (struct store){0}, NULL, &err), err);
  if (f.state) {
    const int64_t large = INT64_C(1) << 40;
    const float fraction = 0.5f;
    CHECK_FAILS(sconce_state_run(f.state, NULL, &err), SCONCE_BAD_ARGUMENT, err,
                "input 0 was never set");
    CHECK_OK(call(f.state, 2, 5, &err), err);
    CHECK_FAILS(call(f.state, 2, large, &err), SCONCE_BAD_ARGUMENT, err,
                "input 1: element 0 is 1099511627776, the method takes -2147483648 to 2147483647");
    const sconce_tensor wrong = {.dtype = SCONCE_FLOAT32, .data = &fraction, .size = 4};
    CHECK_FAILS(sconce_state_set_input(f.state, 1, &wrong, &err), SCONCE_BAD_ARGUMENT, err,
                "input 1: the data is float32, the method takes int32");
    const sconce_tensor many = {SCONCE_INT64, 1, {1}, &large, 8};
    CHECK_FAILS(sconce_state_set_input(f.state, 1, &many, &err), SCONCE_BAD_ARGUMENT, err,
                "input 1 is a scalar");
    CHECK_OK(sconce_state_run(f.state, NULL, &err), err);
    check_result(f.state, 2, 5);
  }
  close_blob(&f);
}

/* Each row: what is wrong with the named data, and what the opening says. */
static void bad_named_data_is_an_error_at_load(void) {
  static const struct {
    struct store store;
    sconce_status status;
    const char *says;
  } rows[] = {
      {{.missing = "offset"}, SCONCE_BAD_GRAPH, "'offset'"},
      {{.size = 12}, SCONCE_BAD_GRAPH, "12"},              /* fewer bytes than the dims need */
      {{.size = UINT64_MAX}, SCONCE_BAD_GRAPH, "'scale'"}, /* no such size */
      {{.broken = "offset"}, SCONCE_IO_ERROR, "reading 16 bytes"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct fixture f;
    sconce_error err = {0};
    CHECK_FAILS(open_blob(&f, rows[i].store, NULL, &err), rows[i].status, err, rows[i].says);
    CHECK(f.state == NULL);
    close_blob(&f);
  }
}

static void named_data_needs_both_functions(void) {
  struct fixture f;
  sconce_error err = {0};
  CHECK_OK(open_blob(&f, (struct store){0}, NULL, &err), err);
  sconce_model *m;
  const sconce_model_desc half = {.program = {.data = scale, .size = sizeof scale},
                                  .named_data.find = find};
  CHECK_FAILS(sconce_model_open(&m, f.device, &half, &err), SCONCE_BAD_ARGUMENT, err,
              "named_data has one of find and read, it needs both");
  close_blob(&f);
}

/* It stands for the files; what comes from elsewhere is not asked for. */
static void named_data_is_no_part_of_the_fingerprint(void) {
  struct fixture f;
  sconce_error err = {0};
  uint64_t print = 0;
  CHECK_OK(open_blob(&f, (struct store){0}, NULL, &err), err);
  CHECK_EQ(f.store.n_read, 2);
  CHECK_OK(sconce_model_fingerprint(f.model, &print, &err), err);
  CHECK(print != 0 && f.store.n_read == 2);
  close_blob(&f);
}

static void every_failing_allocation_is_survived(void) {
  for (uint64_t n = 1; n < 2000; n++) {
    struct test_allocator alloc;
    test_allocator_init(&alloc, n);
    struct fixture f;
    sconce_error err = {0};
    sconce_status status = open_blob(&f, (struct store){0}, &alloc.hook, &err);
    if (status == SCONCE_OK) status = call(f.state, 3, 2, &err);
    const bool reached = alloc.calls >= n;
    if (reached) CHECK_EQ(status, SCONCE_NO_MEMORY);
    if (!reached) CHECK_OK(status, err);
    close_blob(&f);
    CHECK_EQ(alloc.live, 0);
    if (!reached || test_failed()) return;
  }
  test_fail(__FILE__, __LINE__, "more than 2000 allocations");
}

const struct test suite_delegate[] = {
    TEST(a_blob_is_a_model_with_one_method),    TEST(dims_and_scalars_change_from_call_to_call),
    TEST(what_an_input_has_is_not_sent_again),  TEST(a_lost_device_reads_named_data_again),
    TEST(wrong_scalars_leave_the_last_one),     TEST(bad_named_data_is_an_error_at_load),
    TEST(named_data_needs_both_functions),      TEST(named_data_is_no_part_of_the_fingerprint),
    TEST(every_failing_allocation_is_survived), {0},
};
