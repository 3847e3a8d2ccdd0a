/* Weights once, states apart, and openings that never block: through the public API. */
#include "gpu.h"

#include "base/os.h"
#include "run/device.h"
#include "sconce_llm.h"
#include "write/write.h"

#include <stdio.h>

#define STORIES SCONCE_SOURCE_DIR "/models/stories15M/stories15M-4w.pte"
enum { WIDE = 300, ROWS = 8 };

/* ---- a file with two methods ----------------------------------------------------------------- */

static float weight[WIDE];

/* `name`: y = x `op` weight, x and y up to [ROWS, WIDE]. */
static void add_method(struct write_pte *w, struct arena *arena, const char *name, const char *op,
                       sconce_error *err) {
  static const int32_t dims[] = {ROWS, WIDE};
  struct write_vk g;
  struct write_blob blob;
  write_vk_init(&g, arena);
  int32_t x = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(ROWS, WIDE));
  int32_t c = write_vk_constant(&g, VK_FLOAT32, DIM_LIST(WIDE),
                                write_vk_named(&g, "weight", sizeof weight));
  int32_t y = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(ROWS, WIDE));
  if (strcmp(op, "aten.mul.Tensor") == 0)
    write_vk_call(&g, op, ID_LIST(x, c, y));
  else
    write_vk_call(&g, op, ID_LIST(x, c, write_vk_value(&g, literal_int(1)), y));
  write_vk_inputs(&g, ID_LIST(x));
  write_vk_outputs(&g, ID_LIST(y));
  CHECK_OK(write_vk_finish(&g, &blob, err), *err);
  const struct write_pte_tensor io[] = {
      {.scalar_type = SCALAR_FLOAT, .dynamism = PTE_DYNAMIC_BOUND, .sizes = dims, .rank = 2},
      {.scalar_type = SCALAR_FLOAT, .dynamism = PTE_DYNAMIC_BOUND, .sizes = dims, .rank = 2}};
  write_pte_delegated(w, name, &blob, io, 1, 1);
}

static struct span two_methods(struct arena *arena) {
  struct write_pte w;
  struct write_blob file;
  struct span out = {0};
  sconce_error err = {0};
  for (int i = 0; i < WIDE; i++) weight[i] = (float)(i % 17) - 3;
  write_pte_init(&w, arena);
  write_pte_named_data(&w, "weight", write_bytes(weight, sizeof weight));
  add_method(&w, arena, "times", "aten.mul.Tensor", &err);
  add_method(&w, arena, "plus", "aten.add.Tensor", &err);
  CHECK_OK(write_pte_finish(&w, &file, &err), err);
  CHECK_OK(write_blob_to_memory(&file, arena, &out, &err), err);
  return out;
}

struct bench {
  struct arena arena;
  struct span file;
  sconce_device *device;
  sconce_model *model;
  sconce_error err;
};

static bool start(struct bench *b, const sconce_file *file) {
  *b = (struct bench){0};
  arena_init(&b->arena, NULL);
  b->file = two_methods(&b->arena);
  const sconce_file memory = {.data = b->file.data, .size = b->file.size};
  CHECK_OK(sconce_device_open(&b->device, NULL, &b->err), b->err);
  const sconce_model_desc desc = {.program = file ? *file : memory};
  if (b->device) CHECK_OK(sconce_model_open(&b->model, b->device, &desc, &b->err), b->err);
  return b->model != NULL;
}

/* The device's numbers when everything else was closed. */
static void check_empty(const sconce_device *device) {
  CHECK_EQ(gpu_stats(device->gpu)->buffers, 0);
  CHECK_EQ(gpu_stats(device->gpu)->groups, 0);
}

static void end(struct bench *b) {
  sconce_model_close(b->model);
  if (b->device) {
    check_empty(b->device);
    test_note_kernels(b->device->gpu);
  }
  sconce_device_close(b->device);
  arena_free(&b->arena);
}

static sconce_status set(sconce_state *s, float first, uint32_t rows, sconce_error *err) {
  float x[ROWS * WIDE];
  for (uint32_t i = 0; i < rows * WIDE; i++) x[i] = first + (float)i;
  sconce_tensor t = {SCONCE_FLOAT32, 2, {rows, WIDE}, x, rows * WIDE * sizeof *x};
  return sconce_state_set_input(s, 0, &t, err);
}

static void check_output(sconce_state *s, bool times, float first) {
  sconce_tensor y = {0};
  sconce_error err = {0};
  CHECK_OK(sconce_state_output(s, 0, &y, &err), err);
  for (uint32_t i = 0; y.data && i < y.dims[0] * WIDE; i++) {
    const float x = first + (float)i, w = weight[i % WIDE], want = times ? x * w : x + w;
    if (((const float *)y.data)[i] != want)
      test_fail(__FILE__, __LINE__, "element %u is %g, want %g", i,
                (double)((const float *)y.data)[i], (double)want);
  }
}

/* ---- weights once ---------------------------------------------------------------------------- */

static uint64_t device_bytes(const sconce_device *device) {
  uint64_t sum = 0;
  for (int i = 0; i < GPU_USES; i++) sum += gpu_stats(device->gpu)->bytes[i];
  return sum;
}

static void two_methods_share_their_constants(void) {
  struct bench b;
  sconce_method *m[3] = {NULL};
  static const char *const names[] = {"times", "plus", "times"};
  bool ok = start(&b, NULL);
  for (int i = 0; ok && i < 3; i++) {
    CHECK_OK(sconce_method_open(&m[i], b.model, names[i], &b.err), b.err);
    CHECK_EQ(gpu_stats(b.device->gpu)->bytes[GPU_WEIGHTS], sizeof weight);
  }
  CHECK(m[0] == m[2]);
  sconce_method_close(m[0]);
  sconce_method_close(m[2]);
  if (ok) CHECK_EQ(gpu_stats(b.device->gpu)->bytes[GPU_WEIGHTS], sizeof weight);
  sconce_method_close(m[1]);
  if (ok) check_empty(b.device);
  end(&b);
}

/* Whatever is closed first, what others need stays; the last one takes all with it. */
static void handles_close_in_any_order(void) {
  enum { N = 5 };
  static const int orders[][N] = {{0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {1, 0, 3, 2, 4},
                                  {2, 0, 4, 1, 3}, {3, 4, 0, 2, 1}, {0, 2, 4, 3, 1}};
  for (size_t o = 0; o < sizeof orders / sizeof *orders && !test_failed(); o++) {
    struct test_allocator alloc;
    test_allocator_init(&alloc, 0);
    struct arena arena;
    arena_init(&arena, NULL);
    struct span file = two_methods(&arena);
    sconce_error err = {0};
    sconce_device *device = NULL;
    sconce_model *model = NULL;
    sconce_method *method = NULL;
    sconce_state *state[2] = {NULL};
    const sconce_device_desc desc = {.allocator = alloc.hook};
    const sconce_model_desc from = {.program = {.data = file.data, .size = file.size}};
    CHECK_OK(sconce_device_open(&device, &desc, &err), err);
    if (device) CHECK_OK(sconce_model_open(&model, device, &from, &err), err);
    if (model) CHECK_OK(sconce_method_open(&method, model, "plus", &err), err);
    for (int i = 0; i < 2 && method; i++) CHECK_OK(sconce_state_open(&state[i], method, &err), err);
    for (int i = 0; i < N; i++) {
      const int which = orders[o][i];
      if (which == 0) sconce_device_close(device);
      if (which == 1) sconce_model_close(model);
      if (which == 2) sconce_method_close(method);
      if (which > 2) {
        CHECK_OK(set(state[which - 3], 2, 3, &err), err);
        CHECK_OK(sconce_state_run(state[which - 3], NULL, &err), err);
        check_output(state[which - 3], false, 2);
        sconce_state_close(state[which - 3]);
      }
    }
    CHECK_EQ(alloc.live, 0);
    arena_free(&arena);
  }
}

/* ---- states apart ---------------------------------------------------------------------------- */

static void states_do_not_see_each_other(void) {
  struct bench b;
  sconce_method *m = NULL;
  sconce_state *s[3] = {NULL};
  if (start(&b, NULL)) CHECK_OK(sconce_method_open(&m, b.model, "times", &b.err), b.err);
  for (int i = 0; m && i < 3; i++) CHECK_OK(sconce_state_open(&s[i], m, &b.err), b.err);
  for (uint32_t round = 0; s[2] && round < 4; round++) {
    for (uint32_t i = 0; i < 3; i++) {
      CHECK_OK(set(s[i], (float)(10 * i + round), 2 * (i + 1) + round % 2, &b.err), b.err);
      CHECK_OK(sconce_state_begin(s[i], NULL, &b.err), b.err);
    }
    for (uint32_t i = 3; i-- > 0;) { /* waited for in another order than begun */
      CHECK_OK(sconce_state_wait(s[i], &b.err), b.err);
      check_output(s[i], true, (float)(10 * i + round));
    }
  }
  for (int i = 0; i < 3; i++) sconce_state_close(s[i]);
  sconce_method_close(m);
  end(&b);
}

/* (x * weight) + weight: the first method's output is the second one's input. */
static void an_output_feeds_another_method(void) {
  struct bench b;
  sconce_method *m[2] = {NULL};
  sconce_state *s[2] = {NULL};
  bool ok = start(&b, NULL);
  for (int i = 0; ok && i < 2; i++) {
    CHECK_OK(sconce_method_open(&m[i], b.model, i ? "plus" : "times", &b.err), b.err);
    CHECK_OK(sconce_state_open(&s[i], m[i], &b.err), b.err);
  }
  if (s[1]) {
    CHECK_FAILS(sconce_state_feed(s[1], 0, s[0], 0, &b.err), SCONCE_BAD_ARGUMENT, b.err,
                "no call has finished");
    CHECK_OK(set(s[0], 1, 7, &b.err), b.err);
    CHECK_OK(sconce_state_run(s[0], &(sconce_call){.keep_outputs = true}, &b.err), b.err);
    CHECK_OK(sconce_state_feed(s[1], 0, s[0], 0, &b.err), b.err);
    CHECK_OK(sconce_state_run(s[1], NULL, &b.err), b.err);
    sconce_tensor y = {0};
    CHECK_OK(sconce_state_output(s[1], 0, &y, &b.err), b.err);
    CHECK_EQ(y.dims[0], 7);
    for (uint32_t i = 0; y.data && i < 7 * WIDE; i++)
      CHECK_NEAR(((const float *)y.data)[i], (2.0f + (float)i) * weight[i % WIDE], 1e-2);
  }
  for (int i = 0; i < 2; i++) {
    sconce_state_close(s[i]);
    sconce_method_close(m[i]);
  }
  end(&b);
}

/* Fetched twice, read, and fed all the same. */
static void an_output_that_stayed_can_be_fetched(void) {
  struct bench b;
  sconce_method *m = NULL;
  sconce_state *s = NULL;
  if (start(&b, NULL)) CHECK_OK(sconce_method_open(&m, b.model, "times", &b.err), b.err);
  if (m) CHECK_OK(sconce_state_open(&s, m, &b.err), b.err);
  if (s) {
    CHECK_OK(set(s, 1, 7, &b.err), b.err);
    CHECK_OK(sconce_state_run(s, &(sconce_call){.keep_outputs = true}, &b.err), b.err);
    sconce_tensor y = {0};
    CHECK_OK(sconce_state_output(s, 0, &y, &b.err), b.err);
    CHECK(y.data == NULL && y.size == 7 * WIDE * sizeof(float));
    for (int n = 0; n < 2; n++) CHECK_OK(sconce_state_fetch(s, &b.err), b.err);
    CHECK_OK(sconce_state_output(s, 0, &y, &b.err), b.err);
    CHECK(y.data != NULL && y.dims[0] == 7);
    for (uint32_t i = 0; y.data && i < 7 * WIDE; i++)
      CHECK_NEAR(((const float *)y.data)[i], (1.0f + (float)i) * weight[i % WIDE], 1e-2);
    CHECK_OK(sconce_state_feed(s, 0, s, 0, &b.err), b.err);
    CHECK_OK(sconce_state_begin(s, NULL, &b.err), b.err);
    CHECK_FAILS(sconce_state_fetch(s, &b.err), SCONCE_BAD_ARGUMENT, b.err, "running");
    CHECK_OK(sconce_state_wait(s, &b.err), b.err);
  }
  sconce_state_close(s);
  sconce_method_close(m);
  end(&b);
}

/* ---- eight conversations --------------------------------------------------------------------- */

enum { SESSIONS = 8, STEPS = 4 };

static sconce_status tell(sconce_session *s, int32_t start_id, int32_t *out, sconce_error *err) {
  const int32_t prompt[] = {1, 9038, start_id};
  TRY(sconce_session_prompt(s, prompt, 3, NULL, NULL, err));
  for (int i = 0; i < STEPS; i++) {
    sconce_choice c;
    TRY(sconce_session_next(s, &c, err));
    out[i] = c.id;
  }
  return SCONCE_OK;
}

/* All of them at once, a token each in turn. */
static void tell_together(sconce_session **s, int32_t out[][STEPS], sconce_error *err) {
  for (int i = 0; i < SESSIONS; i++) {
    const int32_t prompt[] = {1, 9038, 2501 + 13 * i};
    CHECK_OK(sconce_session_prompt(s[i], prompt, 3, NULL, NULL, err), *err);
  }
  for (int k = 0; k < STEPS; k++)
    for (int i = 0; i < SESSIONS; i++) {
      sconce_choice c = {.id = -1};
      CHECK_OK(sconce_session_next(s[i], &c, err), *err);
      out[i][k] = c.id;
    }
}

static void eight_sessions_are_the_weights_and_eight_states(void) {
  sconce_error err = {0};
  sconce_device *device = NULL;
  sconce_model *model = NULL;
  sconce_session *s[SESSIONS] = {NULL};
  int32_t alone[SESSIONS][STEPS], together[SESSIONS][STEPS];
  CHECK_OK(sconce_device_open(&device, NULL, &err), err);
  const sconce_model_desc file = {.program.path = STORIES};
  if (device) CHECK_OK(sconce_model_open(&model, device, &file, &err), err);
  uint64_t common = 0, weights = 0, one_state = 0;
  uint32_t kernels = 0;
  const int n = test_gpu_is_slow() ? 3 : SESSIONS;
  for (int i = 0; i < n && model && !test_failed(); i++) {
    const sconce_session_desc desc = {.model = model};
    CHECK_OK(sconce_session_open(&s[i], &desc, &err), err);
    if (!s[i]) break;
    CHECK_OK(tell(s[i], 2501 + 13 * i, alone[i], &err), err);
    sconce_stats stats;
    uint64_t own = 0;
    for (int k = 0; k <= i; k++) {
      sconce_state_stats(sconce_session_state(s[k]), &stats);
      own += stats.own;
    }
    if (i == 0) {
      common = device_bytes(device) - own;
      weights = stats.gpu_weights;
      one_state = sconce_state_size(sconce_session_state(s[0]));
      kernels = stats.gpu_kernels;
    }
    CHECK_EQ(device_bytes(device), common + own);
    CHECK_EQ(stats.gpu_weights, weights);
    CHECK_EQ(stats.gpu_state, (uint64_t)(i + 1) * one_state);
    CHECK_EQ(stats.gpu_kernels, kernels);
  }
  if (s[SESSIONS - 1] && !test_failed()) {
    tell_together(s, together, &err);
    CHECK(memcmp(alone, together, sizeof alone) == 0);
  }
  for (int i = 0; i < SESSIONS; i++) sconce_session_close(s[(i * 3 + 1) % SESSIONS]);
  if (device) check_empty(device);
  if (device) test_note_kernels(device->gpu);
  sconce_model_close(model);
  sconce_device_close(device);
}

static bool no_more(void *user, size_t done, size_t all) {
  (void)all;
  *(size_t *)user = done;
  return false;
}

static void a_prompt_that_is_cancelled_keeps_what_it_has(void) {
  sconce_error err = {0};
  sconce_device *device = NULL;
  sconce_model *model = NULL;
  sconce_session *s = NULL;
  CHECK_OK(sconce_device_open(&device, NULL, &err), err);
  const sconce_model_desc file = {.program.path = SCONCE_SOURCE_DIR "/tests/data/goldens/toy.pte"};
  if (device) CHECK_OK(sconce_model_open(&model, device, &file, &err), err);
  const sconce_session_desc desc = {.model = model};
  if (model) CHECK_OK(sconce_session_open(&s, &desc, &err), err);
  static const int32_t ids[8] = {1, 2, 3, 4, 5, 6, 7, 0};
  size_t done = 0;
  if (s) {
    CHECK_FAILS(sconce_session_prompt(s, ids, 8, no_more, &done, &err), SCONCE_CANCELLED, err,
                "cancelled at position 7 of 8");
    CHECK_EQ(done, 7);
    CHECK_EQ(sconce_session_describe(s)->position, 7);
    sconce_session_cancel(s);
    CHECK_FAILS(sconce_session_append(s, 3, &err), SCONCE_CANCELLED, err, "cancelled");
    CHECK_OK(sconce_session_prompt(s, ids, 8, NULL, NULL, &err), err);
    CHECK(sconce_session_logits(s) != NULL);
  }
  sconce_session_close(s);
  sconce_model_close(model);
  if (device) test_note_kernels(device->gpu);
  sconce_device_close(device);
}

/* ---- openings in steps ----------------------------------------------------------------------- */

/* Hands in what is wanted, in two parts; false: nothing is. */
static bool hand_in(struct bench *b, const sconce_progress *p, const struct span *file) {
  if (p->wants.size == 0) return false;
  CHECK(p->wants.size <= SCONCE_PIECE_MAX && p->wants.file == 0);
  CHECK(p->wants.offset + p->wants.size <= file->size);
  const size_t half = p->wants.size / 2;
  CHECK_FAILS(sconce_model_give(b->model, 0, p->wants.offset + 1, file->data, 1, &b->err),
              SCONCE_BAD_ARGUMENT, b->err, "are wanted");
  CHECK_OK(
      sconce_model_give(b->model, 0, p->wants.offset, file->data + p->wants.offset, half, &b->err),
      b->err);
  CHECK_OK(sconce_model_give(b->model, 0, p->wants.offset + half,
                             file->data + p->wants.offset + half, p->wants.size - half, &b->err),
           b->err);
  return true;
}

/* Opens from a file whose bytes are handed in; gives up after so many polls. */
static void open_by_hand(struct bench *b, unsigned polls, sconce_method **out) {
  sconce_progress p = {0};
  *out = NULL;
  for (; polls && !p.done && !test_failed(); polls--) {
    CHECK_OK(sconce_model_poll(b->model, &p, &b->err), b->err);
    (void)hand_in(b, &p, &b->file);
  }
  if (!p.done) return;
  CHECK_OK(sconce_method_begin(out, b->model, "plus", &b->err), b->err);
  for (p.done = false; *out && polls && !p.done && !test_failed(); polls--) {
    CHECK_OK(sconce_method_poll(*out, &p, &b->err), b->err);
    CHECK(p.bytes_done <= p.bytes_all && p.kernels_done <= p.kernels_all);
    if (p.done) CHECK_EQ(p.bytes_done, p.bytes_all);
    if (!p.done && !hand_in(b, &p, &b->file)) os_sleep_ns(500000); /* kernels are being compiled */
  }
}

/* The number of polls grows until everything is open: each step of the way was given up once. */
static void openings_can_be_given_up_at_every_step(void) {
  bool open = false;
  for (unsigned polls = 0; !open && polls < 2000 && !test_failed(); polls = polls * 5 / 4 + 1) {
    struct bench b = {0};
    struct test_allocator alloc;
    test_allocator_init(&alloc, 0);
    arena_init(&b.arena, NULL);
    b.file = two_methods(&b.arena);
    const sconce_device_desc with = {.allocator = alloc.hook};
    const sconce_model_desc desc = {.program.size = b.file.size};
    sconce_method *m = NULL;
    sconce_state *s = NULL;
    CHECK_OK(sconce_device_open(&b.device, &with, &b.err), b.err);
    CHECK_OK(sconce_model_begin(&b.model, b.device, &desc, &b.err), b.err);
    CHECK(sconce_model_describe(b.model) == NULL);
    if (!test_failed()) open_by_hand(&b, polls, &m);
    open = m && sconce_method_describe(m);
    if (m && !open)
      CHECK_FAILS(sconce_state_open(&s, m, &b.err), SCONCE_BAD_ARGUMENT, b.err, "being opened");
    if (open) {
      CHECK_OK(sconce_state_open(&s, m, &b.err), b.err);
      CHECK_OK(set(s, 5, ROWS, &b.err), b.err);
      CHECK_OK(sconce_state_run(s, NULL, &b.err), b.err);
      check_output(s, false, 5);
    }
    sconce_state_close(s);
    sconce_method_close(m);
    end(&b);
    CHECK_EQ(alloc.live, 0);
  }
  CHECK(open);
}

static void a_file_that_must_be_handed_in_cannot_be_waited_for(void) {
  struct bench b;
  sconce_model *m = NULL;
  if (start(&b, NULL)) {
    const sconce_model_desc desc = {.program.size = b.file.size};
    CHECK_FAILS(sconce_model_open(&m, b.device, &desc, &b.err), SCONCE_BAD_ARGUMENT, b.err,
                "sconce_model_begin");
    CHECK(m == NULL);
  }
  end(&b);
}

static sconce_status read_part(void *user, uint64_t offset, void *out, size_t size) {
  const struct span *file = user;
  if (size > SCONCE_PIECE_MAX || offset > file->size || size > file->size - offset)
    return SCONCE_IO_ERROR;
  memcpy(out, file->data + offset, size);
  return SCONCE_OK;
}

static sconce_status read_nothing(void *user, uint64_t offset, void *out, size_t size) {
  (void)user, (void)offset, (void)out, (void)size;
  return SCONCE_IO_ERROR;
}

static void a_file_comes_through_a_function(void) {
  struct arena arena;
  arena_init(&arena, NULL);
  struct span file = two_methods(&arena);
  const sconce_file from = {.read = read_part, .user = &file, .size = file.size};
  struct bench b;
  sconce_method *m = NULL;
  sconce_state *s = NULL;
  if (start(&b, &from)) CHECK_OK(sconce_method_open(&m, b.model, "times", &b.err), b.err);
  if (m) CHECK_OK(sconce_state_open(&s, m, &b.err), b.err);
  if (s) {
    CHECK_OK(set(s, 1, 2, &b.err), b.err);
    CHECK_OK(sconce_state_run(s, NULL, &b.err), b.err);
    check_output(s, true, 1);
    sconce_model *none;
    const sconce_model_desc desc = {.program = {.read = read_nothing, .size = 100}};
    CHECK_FAILS(sconce_model_open(&none, b.device, &desc, &b.err), SCONCE_IO_ERROR, b.err,
                "reading 64 bytes at 0 failed");
  }
  sconce_state_close(s);
  sconce_method_close(m);
  end(&b);
  arena_free(&arena);
}

/* A file that shrinks between the model's opening and the method's is an error of the latter. */
static void a_file_that_shrinks_is_an_error(void) {
  char path[TEST_PATH_MAX];
  test_temporary(path, ".pte");
  struct arena arena;
  arena_init(&arena, NULL);
  struct span file = two_methods(&arena);
  CHECK(test_write_path(path, file.data, file.size));
  struct bench b;
  sconce_method *m = NULL;
  if (start(&b, &(sconce_file){.path = path})) {
    CHECK(test_write_path(path, file.data, file.size / 4));
    CHECK_FAILS(sconce_method_open(&m, b.model, "times", &b.err), SCONCE_IO_ERROR, b.err, "it had");
    CHECK(m == NULL);
  }
  end(&b);
  remove(path);
  arena_free(&arena);
}

/* ---- parts of outputs ------------------------------------------------------------------------ */

static void only_the_last_rows_come_back(void) {
  sconce_error err = {0};
  sconce_device *device = NULL;
  sconce_model *model = NULL;
  sconce_method *m = NULL;
  sconce_state *s = NULL;
  CHECK_OK(sconce_device_open(&device, NULL, &err), err);
  const sconce_model_desc file = {.program.path = SCONCE_SOURCE_DIR "/tests/data/goldens/toy.pte"};
  if (device) CHECK_OK(sconce_model_open(&model, device, &file, &err), err);
  if (model) CHECK_OK(sconce_method_open(&m, model, NULL, &err), err);
  if (m) CHECK_OK(sconce_state_open(&s, m, &err), err);
  float all[5 * 8] = {0};
  for (uint32_t rows = 0; s && rows < 7; rows++) {
    static const int32_t ids[5] = {1, 5, 2, 7, 3}, position = 0;
    sconce_tensor t = {SCONCE_INT32, 2, {1, 5}, ids, 20}, p = {SCONCE_INT32, 1, {1}, &position, 4};
    CHECK_OK(sconce_state_set_input(s, 0, &t, &err), err);
    CHECK_OK(sconce_state_set_input(s, 1, &p, &err), err);
    CHECK_OK(sconce_state_run(s, &(sconce_call){.last_rows = rows}, &err), err);
    sconce_tensor y = {0};
    CHECK_OK(sconce_state_output(s, 0, &y, &err), err);
    const uint32_t want = rows == 0 || rows > 5 ? 5 : rows;
    CHECK(y.rank == 3 && y.dims[1] == want && y.size == want * 32);
    if (rows == 0) memcpy(all, y.data, sizeof all);
    CHECK(memcmp(y.data, all + (5 - want) * 8, want * 32) == 0);
  }
  sconce_state_close(s);
  sconce_method_close(m);
  sconce_model_close(model);
  if (device) test_note_kernels(device->gpu);
  sconce_device_close(device);
}

static void a_static_shape_is_kept(void) {
  sconce_error err = {0};
  sconce_device *device = NULL;
  sconce_model *model = NULL;
  sconce_method *m = NULL;
  sconce_state *s = NULL;
  CHECK_OK(sconce_device_open(&device, NULL, &err), err);
  const sconce_model_desc file = {.program.path = SCONCE_SOURCE_DIR "/tests/data/goldens/mul.pte"};
  if (device) CHECK_OK(sconce_model_open(&model, device, &file, &err), err);
  if (model) CHECK_OK(sconce_method_open(&m, model, NULL, &err), err);
  if (m) CHECK_OK(sconce_state_open(&s, m, &err), err);
  if (s) {
    static const float x[6] = {1, 2, 3};
    const sconce_tensor row = {SCONCE_FLOAT32, 2, {1, 3}, x, 12},
                        whole = {SCONCE_FLOAT32, 2, {2, 3}, x, 24};
    CHECK(!sconce_method_describe(m)->dynamic[1]);
    CHECK_OK(sconce_state_set_input(s, 0, &whole, &err), err);
    CHECK_FAILS(sconce_state_set_input(s, 1, &row, &err), SCONCE_BAD_ARGUMENT, err,
                "input 1: dim 0 is 1, it was exported with 2");
  }
  sconce_state_close(s);
  sconce_method_close(m);
  sconce_model_close(model);
  if (device) test_note_kernels(device->gpu);
  sconce_device_close(device);
}

const struct test suite_state[] = {
    TEST(a_static_shape_is_kept),
    TEST(two_methods_share_their_constants),
    TEST(handles_close_in_any_order),
    TEST(states_do_not_see_each_other),
    TEST(an_output_feeds_another_method),
    TEST(an_output_that_stayed_can_be_fetched),
    TEST(eight_sessions_are_the_weights_and_eight_states),
    TEST(a_prompt_that_is_cancelled_keeps_what_it_has),
    TEST(openings_can_be_given_up_at_every_step),
    TEST(a_file_that_must_be_handed_in_cannot_be_waited_for),
    TEST(a_file_comes_through_a_function),
    TEST(a_file_that_shrinks_is_an_error),
    TEST(only_the_last_rows_come_back),
    {0},
};
