/* Methods through the public API, on files made by the writer: calls with changing shapes, errors
 * that leave everything usable, constants, faults. */
#include "gpu.h"

#include "run/device.h"
#include "sconce_dev.h"
#include "sconce_llm.h"
#include "write/write.h"

/* ---- files ----------------------------------------------------------------------------------- */

static const float scale[4] = {1, 2, 3, 4}, offset[4] = {10, 20, 30, 40};
static const int32_t dims_8x4[] = {8, 4}, dims_4[] = {4};

static sconce_status wrap(struct arena *arena, struct write_vk *g,
                          const struct write_pte_tensor *io, uint32_t n_in, uint32_t n_out,
                          struct span *out, sconce_error *err) {
  struct write_blob blob, file;
  TRY(write_vk_finish(g, &blob, err));
  struct write_pte w;
  write_pte_init(&w, arena);
  write_pte_named_data(&w, "scale", write_bytes(scale, sizeof scale));
  write_pte_named_data(&w, "offset", write_bytes(offset, sizeof offset));
  write_pte_delegated(&w, "forward", &blob, io, n_in, n_out);
  write_pte_constant_method(&w, "get_answer", (struct literal[]){literal_int(42)}, 1);
  TRY(write_pte_finish(&w, &file, err));
  return write_blob_to_memory(&file, arena, out, err);
}

/* y = x * scale + offset and `offset` itself: x dynamic up to [8, 4]; both constants prepacked. */
static sconce_status affine(struct arena *arena, struct span *out, sconce_error *err) {
  struct write_vk g;
  write_vk_init(&g, arena);
  int32_t x = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(8, 4));
  int32_t s0 = write_vk_constant(&g, VK_FLOAT32, DIM_LIST(4), write_vk_named(&g, "scale", 16));
  int32_t c0 = write_vk_constant(&g, VK_FLOAT32, DIM_LIST(4), write_vk_named(&g, "offset", 16));
  int32_t s1 = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(4));
  int32_t c1 = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(4));
  int32_t t = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(8, 4));
  int32_t y = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(8, 4));
  write_vk_call(&g, "et_vk.prepack.default", ID_LIST(s0, s1));
  write_vk_call(&g, "et_vk.prepack.default", ID_LIST(c0, c1));
  write_vk_call(&g, "aten.mul.Tensor", ID_LIST(x, s1, t));
  write_vk_call(&g, "aten.add.Tensor", ID_LIST(t, c1, write_vk_value(&g, literal_double(1)), y));
  write_vk_inputs(&g, ID_LIST(x));
  write_vk_outputs(&g, ID_LIST(y, c1));
  struct write_pte_tensor io[] = {
      {.scalar_type = SCALAR_FLOAT, .dynamism = PTE_DYNAMIC_BOUND, .sizes = dims_8x4, .rank = 2},
      {.scalar_type = SCALAR_FLOAT, .dynamism = PTE_DYNAMIC_BOUND, .sizes = dims_8x4, .rank = 2},
      {.scalar_type = SCALAR_FLOAT, .sizes = dims_4, .rank = 1},
  };
  return wrap(arena, &g, io, 1, 2, out, err);
}

struct fixture {
  struct arena arena;
  sconce_device *device;
  sconce_model *model;
  sconce_method *method;
  sconce_state *state;
};

typedef sconce_status file_maker(struct arena *arena, struct span *out, sconce_error *err);

static sconce_status open_file(struct fixture *f, file_maker *make,
                               const sconce_allocator *allocator, sconce_error *err) {
  *f = (struct fixture){0};
  arena_init(&f->arena, NULL);
  struct span file;
  TRY(make(&f->arena, &file, err));
  sconce_device_desc desc = {0};
  if (allocator) desc.allocator = *allocator;
  TRY(sconce_device_open(&f->device, &desc, err));
  sconce_model_desc model = {.program = {.data = file.data, .size = file.size}};
  TRY(sconce_model_open(&f->model, f->device, &model, err));
  TRY(sconce_method_open(&f->method, f->model, NULL, err));
  return sconce_state_open(&f->state, f->method, err);
}

static void close_file(struct fixture *f) {
  sconce_state_close(f->state);
  sconce_method_close(f->method);
  sconce_model_close(f->model);
  if (f->device) {
    CHECK_EQ(gpu_stats(f->device->gpu)->buffers, 0);
    CHECK_EQ(gpu_stats(f->device->gpu)->groups, 0);
    test_note_kernels(f->device->gpu);
  }
  sconce_device_close(f->device);
  arena_free(&f->arena);
}

static sconce_status call(sconce_state *m, uint32_t rows, float first, sconce_error *err) {
  float x[32];
  for (uint32_t i = 0; i < rows * 4 && i < 32; i++) x[i] = first + (float)i;
  sconce_tensor t = {SCONCE_FLOAT32, 2, {rows, 4}, x, rows * 16};
  TRY(sconce_state_set_input(m, 0, &t, err));
  return sconce_state_run(m, NULL, err);
}

static void check_result(sconce_state *m, uint32_t rows, float first) {
  sconce_tensor y;
  sconce_error err = {0};
  REQUIRE_OK(sconce_state_output(m, 0, &y, &err), err);
  CHECK_EQ(y.rank, 2);
  CHECK_EQ(y.dims[0], rows);
  CHECK_EQ(y.dims[1], 4);
  CHECK_EQ(y.size, rows * 16);
  for (uint32_t i = 0; i < rows * 4; i++)
    CHECK_NEAR(((const float *)y.data)[i], (first + (float)i) * scale[i % 4] + offset[i % 4], 1e-5);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void one_graph_serves_every_shape(void) {
  struct fixture f;
  sconce_error err = {0};
  CHECK_OK(open_file(&f, affine, NULL, &err), err);
  static const uint32_t rows[] = {8, 3, 1, 0, 5, 8, 8, 2};
  for (size_t i = 0; f.state && i < sizeof rows / sizeof *rows; i++) {
    CHECK_OK(call(f.state, rows[i], (float)i, &err), err);
    check_result(f.state, rows[i], (float)i);
  }
  close_file(&f);
}

static void a_prepacked_constant_can_be_an_output(void) {
  struct fixture f;
  sconce_error err = {0};
  CHECK_OK(open_file(&f, affine, NULL, &err), err);
  sconce_tensor c = {0};
  if (f.state) {
    CHECK_OK(call(f.state, 2, 0, &err), err);
    CHECK_OK(sconce_state_output(f.state, 1, &c, &err), err);
  }
  if (c.data) CHECK(c.size == 16 && memcmp(c.data, offset, 16) == 0);
  close_file(&f);
}

static void the_same_call_again_rewrites_nothing(void) {
  struct fixture f;
  sconce_error err = {0};
  CHECK_OK(open_file(&f, affine, NULL, &err), err);
  sconce_stats first, second, third;
  if (f.state) {
    CHECK_OK(call(f.state, 3, 1, &err), err);
    CHECK_OK(call(f.state, 5, 1, &err), err);
    sconce_state_stats(f.state, &first);
    CHECK_OK(sconce_state_run(f.state, NULL, &err), err); /* nothing set */
    sconce_state_stats(f.state, &second);
    CHECK_EQ(second.nodes_planned, 0);
    CHECK_EQ(second.params_written, first.params_written);
    CHECK_OK(call(f.state, 5, 7, &err), err); /* other numbers, the same shape */
    check_result(f.state, 5, 7);
    sconce_state_stats(f.state, &third);
    CHECK_EQ(third.params_written, first.params_written);
    CHECK_EQ(third.gpu_objects_made, first.gpu_objects_made);
    CHECK(first.nodes == 2 && first.dispatches == 2);
  }
  close_file(&f);
}

static void wrong_inputs_name_what_is_allowed(void) {
  struct fixture f;
  sconce_error err = {0};
  CHECK_OK(open_file(&f, affine, NULL, &err), err);
  if (f.state) {
    float x[64] = {0};
    sconce_tensor t = {SCONCE_FLOAT32, 2, {9, 4}, x, 9 * 16};
    CHECK_FAILS(sconce_state_run(f.state, NULL, &err), SCONCE_BAD_ARGUMENT, err,
                "input 0 was never set");
    CHECK_FAILS(sconce_state_set_input(f.state, 0, &t, &err), SCONCE_BAD_ARGUMENT, err,
                "input 0: dim 0 is 9, at most 8");
    t.dims[0] = 2;
    CHECK_FAILS(sconce_state_set_input(f.state, 0, &t, &err), SCONCE_BAD_ARGUMENT, err,
                "144 bytes of data, its dims need 32");
    t.rank = 1;
    CHECK_FAILS(sconce_state_set_input(f.state, 0, &t, &err), SCONCE_BAD_ARGUMENT, err,
                "input 0 has rank 2, given 1");
    t = (sconce_tensor){SCONCE_INT64, 2, {1, 4}, x, 32};
    CHECK_FAILS(sconce_state_set_input(f.state, 0, &t, &err), SCONCE_BAD_ARGUMENT, err,
                "the data is int64, the method takes float32");
    CHECK_FAILS(sconce_state_set_input(f.state, 1, &t, &err), SCONCE_BAD_ARGUMENT, err,
                "input 1 of 1");
    sconce_tensor y;
    CHECK_FAILS(sconce_state_output(f.state, 0, &y, &err), SCONCE_BAD_ARGUMENT, err,
                "no call has finished");
    CHECK_OK(call(f.state, 2, 3, &err), err);
    check_result(f.state, 2, 3);
  }
  sconce_method *other;
  CHECK_FAILS(sconce_method_open(&other, f.model, "backward", &err), SCONCE_BAD_ARGUMENT, err,
              "no method 'backward'");
  close_file(&f);
}

static sconce_status begin_with(sconce_state *m, uint32_t rows, float first, const sconce_call *how,
                                sconce_error *err) {
  float x[32];
  for (uint32_t i = 0; i < rows * 4 && i < 32; i++) x[i] = first + (float)i;
  sconce_tensor t = {SCONCE_FLOAT32, 2, {rows, 4}, x, rows * 16};
  TRY(sconce_state_set_input(m, 0, &t, err));
  return sconce_state_begin(m, how, err);
}

static sconce_status begin_call(sconce_state *m, uint32_t rows, float first, sconce_error *err) {
  return begin_with(m, rows, first, NULL, err);
}

static void poll_to_the_end(sconce_state *m) {
  sconce_error err = {0};
  bool done = false;
  for (int i = 0; i < 10000000 && !done && !test_failed(); i++)
    CHECK_OK(sconce_state_poll(m, &done, &err), err);
  CHECK(done);
}

static void calls_can_be_begun_polled_and_cancelled(void) {
  struct fixture f;
  sconce_error err = {0};
  CHECK_OK(open_file(&f, affine, NULL, &err), err);
  if (f.state) {
    sconce_tensor y;
    bool done;
    CHECK_FAILS(sconce_state_wait(f.state, &err), SCONCE_BAD_ARGUMENT, err, "nothing is running");
    CHECK_OK(call(f.state, 4, 1, &err), err);
    CHECK_OK(sconce_state_begin(f.state, NULL, &err), err);
    CHECK_FAILS(sconce_state_output(f.state, 0, &y, &err), SCONCE_BAD_ARGUMENT, err, "no call");
    poll_to_the_end(f.state);
    check_result(f.state, 4, 1);
    CHECK_OK(sconce_state_poll(f.state, &done, &err), err); /* it stays finished */
    CHECK(done);
    check_result(f.state, 4, 1);
    CHECK_OK(sconce_state_begin(f.state, NULL, &err), err);
    sconce_state_cancel(f.state);
    CHECK_FAILS(sconce_state_output(f.state, 0, &y, &err), SCONCE_BAD_ARGUMENT, err, "no call");
    CHECK_FAILS(sconce_state_wait(f.state, &err), SCONCE_BAD_ARGUMENT, err, "nothing is running");
    CHECK_OK(call(f.state, 2, 9, &err), err);
    check_result(f.state, 2, 9);
  }
  close_file(&f);
}

/* Each call's outputs are as they were when it was begun, in that order. */
static void calls_in_flight_come_back_in_order(void) {
  static const uint32_t rows[SCONCE_CALLS_MAX] = {5, 1, 8, 3};
  struct fixture f;
  sconce_error err = {0};
  CHECK_OK(open_file(&f, affine, NULL, &err), err);
  for (int round = 0; f.state && round < 3 && !test_failed(); round++) {
    for (int i = 0; i < SCONCE_CALLS_MAX; i++)
      CHECK_OK(begin_call(f.state, rows[i], (float)(10 * round + i), &err), err);
    CHECK_FAILS(begin_call(f.state, 2, 0, &err), SCONCE_BAD_ARGUMENT, err, "4 calls are running");
    CHECK_FAILS(sconce_state_feed(f.state, 0, f.state, 0, &err), SCONCE_BAD_ARGUMENT, err,
                "4 calls are running");
    CHECK_FAILS(sconce_state_reset(f.state, &err), SCONCE_BAD_ARGUMENT, err, "4 calls are running");
    for (int i = 0; i < SCONCE_CALLS_MAX; i++) {
      if (i % 2)
        poll_to_the_end(f.state);
      else
        CHECK_OK(sconce_state_wait(f.state, &err), err);
      check_result(f.state, rows[i], (float)(10 * round + i));
    }
    CHECK_OK(sconce_state_wait(f.state, &err), err); /* the last one stays */
    check_result(f.state, rows[SCONCE_CALLS_MAX - 1], (float)(10 * round + SCONCE_CALLS_MAX - 1));
  }
  close_file(&f);
}

/* A window of calls that moves on, one waited for and one begun; kept outputs have dims only. */
static void a_window_of_calls_moves_on(void) {
  struct fixture f;
  sconce_error err = {0};
  CHECK_OK(open_file(&f, affine, NULL, &err), err);
  sconce_stats before = {0}, after;
  for (uint32_t i = 0; f.state && i < 120 + SCONCE_CALLS_MAX && !test_failed(); i++) {
    if (i >= SCONCE_CALLS_MAX) {
      const uint32_t old = i - SCONCE_CALLS_MAX;
      sconce_tensor y = {0};
      CHECK_OK(sconce_state_wait(f.state, &err), err);
      CHECK_OK(sconce_state_output(f.state, 0, &y, &err), err);
      CHECK_EQ(y.dims[0], old % 9);
      if (old % 3 != 2) check_result(f.state, old % 9, (float)old);
      if (old % 3 == 2) CHECK(y.data == NULL);
    }
    if (i == 80) sconce_state_stats(f.state, &before);
    if (i >= 120) continue;
    CHECK_OK(begin_with(f.state, i % 9, (float)i, &(sconce_call){.keep_outputs = i % 3 == 2}, &err),
             err);
  }
  if (f.state) {
    sconce_state_stats(f.state, &after);
    CHECK_EQ(after.gpu_objects_made, before.gpu_objects_made);
  }
  close_file(&f);
}

static void cancel_ends_all_calls(void) {
  struct fixture f;
  sconce_error err = {0};
  CHECK_OK(open_file(&f, affine, NULL, &err), err);
  for (int n = 1; f.state && n <= SCONCE_CALLS_MAX && !test_failed(); n++) {
    for (int i = 0; i < n; i++) CHECK_OK(begin_call(f.state, 8, 1, &err), err);
    if (n > 2) CHECK_OK(sconce_state_wait(f.state, &err), err);
    sconce_state_cancel(f.state);
    CHECK_FAILS(sconce_state_wait(f.state, &err), SCONCE_BAD_ARGUMENT, err, "nothing is running");
    CHECK_OK(call(f.state, 3, (float)n, &err), err);
    check_result(f.state, 3, (float)n);
  }
  if (f.state) CHECK_OK(begin_call(f.state, 8, 1, &err), err); /* closed while one runs */
  close_file(&f);
}

/* What cannot be begun leaves those that run, and the inputs, as they were. */
static void a_call_that_fails_leaves_those_in_flight(void) {
  struct fixture f;
  sconce_error err = {0};
  CHECK_OK(open_file(&f, affine, NULL, &err), err);
  if (f.state) {
    CHECK_OK(begin_call(f.state, 5, 1, &err), err);
    sconce_tensor wrong = {SCONCE_FLOAT32, 2, {9, 4}, scale, 9 * 16};
    CHECK_FAILS(sconce_state_set_input(f.state, 0, &wrong, &err), SCONCE_BAD_ARGUMENT, err,
                "dim 0 is 9");
    CHECK_OK(sconce_state_begin(f.state, NULL, &err), err);
    for (int i = 0; i < 2; i++) {
      CHECK_OK(sconce_state_wait(f.state, &err), err);
      check_result(f.state, 5, 1);
    }
    CHECK(!sconce_method_describe(f.method)->can_draw);
    CHECK_FAILS(sconce_state_begin(f.state, &(sconce_call){.draw = &(sconce_draw){0}}, &err),
                SCONCE_UNSUPPORTED, err, "no language model");
    CHECK_FAILS(sconce_state_begin(f.state, &(sconce_call){.feed_token = true}, &err),
                SCONCE_BAD_ARGUMENT, err, "no call");
    uint32_t n = 1;
    CHECK(!sconce_state_tokens(f.state, &n) && n == 0);
  }
  close_file(&f);
}

/* ---- borders --------------------------------------------------------------------------------- */

/* y of one call is x of the next; the host sees nothing of it until the end. */
static void outputs_feed_inputs_on_the_device(void) {
  struct fixture f;
  sconce_error err = {0};
  CHECK_OK(open_file(&f, affine, NULL, &err), err);
  if (f.state) {
    CHECK_FAILS(sconce_state_feed(f.state, 0, f.state, 0, &err), SCONCE_BAD_ARGUMENT, err,
                "no call");
    CHECK_OK(call(f.state, 3, 1, &err), err);
    CHECK_FAILS(sconce_state_feed(f.state, 0, f.state, 1, &err), SCONCE_BAD_ARGUMENT, err,
                "output 1 is float32 [4], input 0 is float32 [3, 4]");
    for (int i = 0; i < 2; i++) {
      CHECK_OK(sconce_state_feed(f.state, 0, f.state, 0, &err), err);
      CHECK_OK(sconce_state_run(f.state, &(sconce_call){.keep_outputs = i == 0}, &err), err);
    }
    sconce_tensor y;
    REQUIRE_OK(sconce_state_output(f.state, 0, &y, &err), err);
    CHECK_EQ(y.dims[0], 3);
    for (uint32_t i = 0; y.data && i < 12; i++) {
      double want = 1.0 + i;
      for (int k = 0; k < 3; k++) want = want * (double)scale[i % 4] + (double)offset[i % 4];
      CHECK_NEAR(((const float *)y.data)[i], want, 1e-3);
    }
    CHECK(y.data != NULL);
    CHECK_OK(call(f.state, 2, 5, &err), err); /* and back to the host's own */
    check_result(f.state, 2, 5);
  }
  close_file(&f);
}

static void constant_methods_have_values(void) {
  struct fixture f;
  sconce_error err = {0};
  CHECK_OK(open_file(&f, affine, NULL, &err), err);
  sconce_number n = {0};
  CHECK_OK(sconce_model_constant(f.model, "get_answer", 0, &n, &err), err);
  CHECK_EQ(n.i, 42);
  CHECK_FAILS(sconce_model_constant(f.model, "get_answer", 1, &n, &err), SCONCE_UNSUPPORTED, err,
              "output 1 of 'get_answer', which has 1");
  CHECK_FAILS(sconce_model_constant(f.model, "forward", 0, &n, &err), SCONCE_UNSUPPORTED, err,
              "no constant method 'forward'");
  CHECK_EQ(sconce_model_describe(f.model)->n_methods, 2);
  CHECK_TEXT(sconce_model_describe(f.model)->methods[1], "get_answer");
  close_file(&f);
}

/* A live integer goes into the delegate (7) and comes out: rows * 7. */
static sconce_status integers(struct arena *arena, struct span *out, sconce_error *err) {
  struct write_vk g;
  write_vk_init(&g, arena);
  int32_t x = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(8, 4));
  int32_t k = write_vk_value(&g, literal_symint(0)), rows = write_vk_value(&g, literal_symint(0));
  int32_t product = write_vk_value(&g, literal_symint(0));
  int32_t zero = write_vk_value(&g, literal_double(0)); /* a dim, as the exporter may write it */
  write_vk_call(&g, "sym_size.int", ID_LIST(x, zero, rows));
  write_vk_call(&g, "mul", ID_LIST(rows, k, product));
  write_vk_inputs(&g, ID_LIST(x, k));
  write_vk_outputs(&g, ID_LIST(product));
  struct write_blob blob, file;
  TRY(write_vk_finish(&g, &blob, err));
  struct write_pte w;
  write_pte_init(&w, arena);
  int32_t segment = write_pte_segment(&w, &blob, 0);
  write_pte_method(&w, "forward");
  int32_t memory = write_pte_buffer(&w, 256);
  int32_t px = write_pte_tensor(&w, &(struct write_pte_tensor){.scalar_type = SCALAR_FLOAT,
                                                               .dynamism = PTE_DYNAMIC_BOUND,
                                                               .sizes = dims_8x4,
                                                               .rank = 2,
                                                               .memory_id = (uint32_t)memory});
  int32_t pk = write_pte_value(&w, literal_int(7)), pr = write_pte_value(&w, literal_int(0));
  write_pte_inputs(&w, ID_LIST(px, pk));
  write_pte_outputs(&w, ID_LIST(pr));
  write_pte_call_delegate(&w, write_pte_delegate(&w, VK_BACKEND_ID, segment), ID_LIST(px, pk, pr));
  TRY(write_pte_finish(&w, &file, err));
  return write_blob_to_memory(&file, arena, out, err);
}

static void integers_cross_the_border(void) {
  struct fixture f;
  sconce_error err = {0};
  CHECK_OK(open_file(&f, integers, NULL, &err), err);
  static const uint32_t rows[] = {3, 8, 0, 1};
  for (int i = 0; f.state && i < 4; i++) {
    int64_t seven = 7, eight = 8;
    sconce_tensor k = {SCONCE_INT64, 0, {0}, &seven, 8}, other = {SCONCE_INT64, 0, {0}, &eight, 8};
    CHECK_OK(sconce_state_set_input(f.state, 1, &k, &err), err);
    CHECK_FAILS(sconce_state_set_input(f.state, 1, &other, &err), SCONCE_BAD_ARGUMENT, err,
                "input 1 was exported as 7, given 8");
    CHECK_OK(call(f.state, rows[i], 0, &err), err);
    sconce_tensor y = {0};
    CHECK_OK(sconce_state_output(f.state, 0, &y, &err), err);
    if (y.data) CHECK_EQ(*(const int64_t *)y.data, 7 * rows[i]);
    CHECK_EQ(y.size, 8);
  }
  close_file(&f);
}

/* The exporter leaves a placeholder without a reader out of the graph's inputs, but not out of the
 * call: here the second of three arguments. */
static sconce_status dropped(struct arena *arena, struct span *out, sconce_error *err) {
  struct write_vk g;
  write_vk_init(&g, arena);
  int32_t x = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(8, 4));
  int32_t b = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(4));
  int32_t y = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(8, 4));
  write_vk_call(&g, "aten.mul.Tensor", ID_LIST(x, b, y));
  write_vk_inputs(&g, ID_LIST(x, b));
  write_vk_outputs(&g, ID_LIST(y));
  static const int32_t dims_3[] = {3};
  struct write_pte_tensor io[] = {
      {.scalar_type = SCALAR_FLOAT, .dynamism = PTE_DYNAMIC_BOUND, .sizes = dims_8x4, .rank = 2},
      {.scalar_type = SCALAR_FLOAT, .sizes = dims_3, .rank = 1},
      {.scalar_type = SCALAR_FLOAT, .sizes = dims_4, .rank = 1},
      {.scalar_type = SCALAR_FLOAT, .dynamism = PTE_DYNAMIC_BOUND, .sizes = dims_8x4, .rank = 2}};
  return wrap(arena, &g, io, 3, 1, out, err);
}

static void dropped_placeholders_are_skipped(void) {
  struct fixture f;
  sconce_error err = {0};
  CHECK_OK(open_file(&f, dropped, NULL, &err), err);
  sconce_tensor y = {0};
  if (f.state) {
    CHECK_EQ(sconce_method_describe(f.method)->n_inputs, 3);
    sconce_tensor unused = {SCONCE_FLOAT32, 1, {3}, offset, 12};
    sconce_tensor b = {SCONCE_FLOAT32, 1, {4}, scale, 16};
    CHECK_OK(sconce_state_set_input(f.state, 1, &unused, &err), err);
    CHECK_OK(sconce_state_set_input(f.state, 2, &b, &err), err);
    CHECK_OK(call(f.state, 2, 1, &err), err);
    CHECK_OK(sconce_state_output(f.state, 0, &y, &err), err);
  }
  for (uint32_t i = 0; y.data && i < 8; i++)
    CHECK_NEAR(((const float *)y.data)[i], (1.0f + (float)i) * scale[i % 4], 1e-6);
  CHECK(y.data != NULL);
  close_file(&f);
}

/* ---- what cannot be loaded ------------------------------------------------------------------- */

static const char *odd_name;

static sconce_status odd_operator(struct arena *arena, struct span *out, sconce_error *err) {
  struct write_vk g;
  write_vk_init(&g, arena);
  int32_t x = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(4));
  int32_t y = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(4));
  write_vk_call(&g, odd_name, ID_LIST(x, y));
  write_vk_inputs(&g, ID_LIST(x));
  write_vk_outputs(&g, ID_LIST(y));
  struct write_pte_tensor io[] = {{.scalar_type = SCALAR_FLOAT, .sizes = dims_4, .rank = 1},
                                  {.scalar_type = SCALAR_FLOAT, .sizes = dims_4, .rank = 1}};
  return wrap(arena, &g, io, 1, 1, out, err);
}

/* Those that only passes make among them. */
static void unknown_operators_are_named(void) {
  static const char *const names[] = {"aten.teleport.default", "sconce.linear_q4",
                                      "sconce.attention_step", "sconce.sample.default"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    struct fixture f;
    sconce_error err = {0};
    char text[200];
    odd_name = names[i];
    snprintf(text, sizeof text,
             "node 0 (%s): this build has no such operator: replace it in the model before the "
             "export, or use a build that has it",
             odd_name);
    CHECK_FAILS(open_file(&f, odd_operator, NULL, &err), SCONCE_UNSUPPORTED, err, text);
    CHECK(f.state == NULL);
    close_file(&f);
  }
}

static void models_come_from_memory_path_or_callback(void) {
  struct fixture f;
  sconce_error err = {0};
  CHECK_OK(open_file(&f, affine, NULL, &err), err);
  sconce_model *m;
  CHECK_FAILS(sconce_model_open(&m, f.device, &(sconce_model_desc){0}, &err), SCONCE_BAD_ARGUMENT,
              err, "a file without a path, without data and without a size");
  CHECK_FAILS(sconce_model_open(&m, f.device,
                                &(sconce_model_desc){.program.path = "/nonexistent.pte"}, &err),
              SCONCE_IO_ERROR, err, "/nonexistent.pte");
  CHECK_FAILS(sconce_model_open(&m, f.device,
                                &(sconce_model_desc){.program = {.data = "no", .size = 2}}, &err),
              SCONCE_BAD_FILE, err, "2 bytes");
  CHECK(m == NULL);
  close_file(&f);
}

/* ---- faults ---------------------------------------------------------------------------------- */

static sconce_status load_and_call(struct fixture *f, const sconce_allocator *allocator,
                                   sconce_error *err) {
  TRY(open_file(f, affine, allocator, err));
  TRY(call(f->state, 8, 1, err));
  TRY(call(f->state, 2, 1, err));
  return call(f->state, 5, 1, err);
}

static void every_failing_allocation_is_survived(void) {
  for (uint64_t n = 1; n < 2000; n++) {
    struct test_allocator alloc;
    test_allocator_init(&alloc, n);
    struct fixture f;
    sconce_error err = {0};
    sconce_status status = load_and_call(&f, &alloc.hook, &err);
    bool reached = alloc.calls >= n;
    if (reached && status != SCONCE_NO_MEMORY)
      test_fail(__FILE__, __LINE__, "allocation %llu: %s (%s)", (unsigned long long)n,
                sconce_status_name(status), err.text);
    if (!reached) CHECK_OK(status, err);
    close_file(&f);
    CHECK_EQ(alloc.live, 0);
    if (!reached || test_failed()) return;
  }
  test_fail(__FILE__, __LINE__, "more than 2000 allocations");
}

static void a_device_lost_between_calls_fails_the_next(void) {
  struct fixture f;
  sconce_error err = {0};
  CHECK_OK(open_file(&f, affine, NULL, &err), err);
  if (f.state) {
    CHECK_OK(call(f.state, 8, 1, &err), err);
    gpu_lose(f.device->gpu);
    CHECK_FAILS(call(f.state, 3, 1, &err), SCONCE_DEVICE_LOST, err, "the device is lost");
    CHECK_FAILS(call(f.state, 3, 1, &err), SCONCE_DEVICE_LOST, err, "the device is lost");
    sconce_method *late;
    CHECK_FAILS(sconce_method_open(&late, f.model, NULL, &err), SCONCE_DEVICE_LOST, err, "lost");
  }
  close_file(&f);
}

/* The same handles on a new device: inputs that were set are there, outputs and calls are not. */
static void a_lost_device_is_opened_again(void) {
  struct fixture f;
  sconce_error err = {0};
  sconce_tensor y;
  CHECK_OK(open_file(&f, affine, NULL, &err), err);
  if (f.state) {
    const sconce_method_info *info = sconce_method_describe(f.method);
    CHECK_OK(sconce_device_recover(f.device, &err), err); /* nothing to do */
    CHECK_EQ(sconce_state_losses(f.state), 0);
    for (uint32_t round = 1; round <= 3; round++) {
      CHECK_OK(call(f.state, 8, 1, &err), err);
      CHECK_OK(sconce_state_begin(f.state, NULL, &err), err);
      gpu_lose(f.device->gpu);
      CHECK_OK(sconce_device_recover(f.device, &err), err);
      CHECK_EQ(sconce_state_losses(f.state), round);
      CHECK_FAILS(sconce_state_wait(f.state, &err), SCONCE_BAD_ARGUMENT, err, "nothing is running");
      CHECK_FAILS(sconce_state_output(f.state, 0, &y, &err), SCONCE_BAD_ARGUMENT, err, "no call");
      CHECK_OK(sconce_state_run(f.state, NULL, &err), err);
      check_result(f.state, 8, 1);
      CHECK_OK(call(f.state, 3, 2, &err), err);
      check_result(f.state, 3, 2);
      CHECK(info == sconce_method_describe(f.method));
    }
  }
  close_file(&f);
}

/* What fails on the way fails with a sentence, and may be tried again. */
static void every_failing_allocation_of_a_recovery_is_survived(void) {
  for (uint64_t n = 1; n < 2000; n += n < 20 || !test_gpu_is_slow() ? 1 : 7) {
    struct test_allocator alloc;
    test_allocator_init(&alloc, 0);
    struct fixture f;
    sconce_error err = {0};
    REQUIRE_OK(load_and_call(&f, &alloc.hook, &err), err);
    gpu_lose(f.device->gpu);
    alloc.fail_at = alloc.calls + n;
    sconce_status status = sconce_device_recover(f.device, &err);
    const bool reached = alloc.calls >= alloc.fail_at;
    if (reached)
      CHECK_SAYS(status == SCONCE_NO_MEMORY, "allocation %llu: %s (%s)", (unsigned long long)n,
                 sconce_status_name(status), err.text);
    if (reached && gpu_is_lost(f.device->gpu) == false)
      CHECK_EQ(sconce_state_run(f.state, NULL, &err), SCONCE_DEVICE_LOST);
    alloc.fail_at = 0;
    CHECK_OK(sconce_device_recover(f.device, &err), err);
    CHECK_OK(call(f.state, 5, 1, &err), err);
    check_result(f.state, 5, 1);
    close_file(&f);
    CHECK_EQ(alloc.live, 0);
    if (!reached || test_failed()) return;
  }
}

/* ---- clocks ---------------------------------------------------------------------------------- */

static void count_dispatch(void *user, const char *node, const char *kernel, uint64_t from,
                           uint64_t to) {
  ++*(uint32_t *)user;
  CHECK(node[0] && strchr(kernel, '/') && from <= to);
}

/* Timed runs are calls like others: what the method computes afterwards is right. */
static void calls_and_passes_are_timed(void) {
  struct fixture f;
  sconce_error err = {0};
  sconce_status status = open_file(&f, affine, NULL, &err);
  CHECK_OK(status, err);
  if (status == SCONCE_OK) {
    sconce_call_times before, after;
    sconce_stats stats;
    uint64_t ns = 0;
    uint32_t dispatches = 0;
    CHECK_OK(call(f.state, 3, 1, &err), err);
    sconce_state_times(f.state, &before);
    CHECK_EQ(before.calls, 1);
    CHECK_OK(call(f.state, 5, 1, &err), err);
    sconce_state_times(f.state, &after);
    CHECK_EQ(after.calls, 2);
    CHECK(after.plan_ns > before.plan_ns && after.bind_ns > before.bind_ns);
    CHECK(after.submit_ns > before.submit_ns && after.wait_ns > before.wait_ns);
    CHECK_FAILS(sconce_state_time_pass(f.state, NULL, &err), SCONCE_BAD_ARGUMENT, err, "NULL");
    if (sconce_device_describe(f.device)->timestamps) {
      sconce_state_stats(f.state, &stats);
      CHECK_OK(sconce_state_time_pass(f.state, &ns, &err), err);
      CHECK_OK(sconce_state_profile(f.state, count_dispatch, &dispatches, &err), err);
      CHECK_EQ(dispatches, stats.dispatches);
    } else {
      CHECK_FAILS(sconce_state_time_pass(f.state, &ns, &err), SCONCE_UNSUPPORTED, err,
                  "timestamps are not in use");
    }
    CHECK_OK(call(f.state, 5, 2, &err), err);
    check_result(f.state, 5, 2);
  }
  close_file(&f);
}

const struct test suite_method[] = {
    TEST(one_graph_serves_every_shape),
    TEST(a_prepacked_constant_can_be_an_output),
    TEST(the_same_call_again_rewrites_nothing),
    TEST(wrong_inputs_name_what_is_allowed),
    TEST(calls_can_be_begun_polled_and_cancelled),
    TEST(calls_in_flight_come_back_in_order),
    TEST(a_window_of_calls_moves_on),
    TEST(cancel_ends_all_calls),
    TEST(a_call_that_fails_leaves_those_in_flight),
    TEST(outputs_feed_inputs_on_the_device),
    TEST(constant_methods_have_values),
    TEST(calls_and_passes_are_timed),
    TEST(integers_cross_the_border),
    TEST(dropped_placeholders_are_skipped),
    TEST(unknown_operators_are_named),
    TEST(models_come_from_memory_path_or_callback),
    TEST(every_failing_allocation_is_survived),
    TEST(a_device_lost_between_calls_fails_the_next),
    TEST(a_lost_device_is_opened_again),
    TEST(every_failing_allocation_of_a_recovery_is_survived),
    {0},
};
