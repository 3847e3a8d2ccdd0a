/* Long calls in pieces: the numbers are those of whole calls, whatever is asked meanwhile, and what
 * is given up is not sent. A piece's time is set, so that nothing here depends on the device. */
#include "gpu.h"

#include "run/state.h"
#include "sconce_llm.h"

#define STORIES SCONCE_SOURCE_DIR "/models/stories15M/stories15M-4w.pte"

enum { SESSIONS = 2, STEPS = 3 };
static const uint64_t WHOLE = UINT64_MAX / 4, SMALLEST = 1; /* ns */

static sconce_status tell(sconce_session *s, int32_t id, int32_t out[STEPS], sconce_error *err) {
  const int32_t prompt[] = {1, 9038, id};
  TRY(sconce_session_prompt(s, prompt, 3, NULL, NULL, err));
  for (int i = 0; i < STEPS; i++) {
    sconce_choice c;
    TRY(sconce_session_next(s, &c, err));
    out[i] = c.id;
  }
  return SCONCE_OK;
}

/* Each alone, then all of them a token each in turn: the device works ahead of every one. */
static void tell_all(sconce_device *device, uint64_t piece_ns, int32_t out[2][SESSIONS][STEPS]) {
  sconce_error err = {0};
  sconce_model *model = NULL;
  device->piece_ns = piece_ns;
  CHECK_OK(sconce_model_open(&model, device, &(sconce_model_desc){.program.path = STORIES}, &err),
           err);
  for (int together = 0; together < 2; together++) {
    sconce_session *s[SESSIONS] = {NULL};
    const sconce_session_desc desc = {.model = model, .lookup = SCONCE_LOOKUP_OFF};
    for (int i = 0; i < SESSIONS && model; i++) {
      const int32_t prompt[] = {1, 9038, 2501 + 13 * i};
      CHECK_OK(sconce_session_open(&s[i], &desc, &err), err);
      if (s[i] && !together) CHECK_OK(tell(s[i], prompt[2], out[0][i], &err), err);
      if (s[i] && together) CHECK_OK(sconce_session_prompt(s[i], prompt, 3, NULL, NULL, &err), err);
    }
    for (int k = 0; k < STEPS && together; k++)
      for (int i = 0; i < SESSIONS && s[i]; i++) {
        sconce_choice c = {.id = -1};
        CHECK_OK(sconce_session_next(s[i], &c, &err), err);
        out[1][i][k] = c.id;
      }
    for (int i = 0; i < SESSIONS; i++) sconce_session_close(s[i]);
  }
  sconce_model_close(model);
}

static void cut_calls_give_the_same(void) {
  sconce_error err = {0};
  sconce_device *device;
  int32_t whole[2][SESSIONS][STEPS] = {{{0}}}, cut[2][SESSIONS][STEPS] = {{{0}}};
  REQUIRE_OK(sconce_device_open(&device, NULL, &err), err);
  tell_all(device, WHOLE, whole);
  tell_all(device, SMALLEST, cut);
  for (int together = 0; together < 2; together++)
    for (int i = 0; i < SESSIONS; i++)
      for (int k = 0; k < STEPS; k++) {
        CHECK_EQ(whole[together][i][k], whole[0][i][k]);
        CHECK_EQ(cut[together][i][k], whole[0][i][k]);
      }
  test_note_kernels(device->gpu);
  sconce_device_close(device);
}

/* ---- giving up ------------------------------------------------------------------------------- */

struct bench {
  sconce_device *device;
  sconce_model *model;
  sconce_method *method;
  sconce_state *state;
};

static bool start(struct bench *b) {
  sconce_error err = {0};
  *b = (struct bench){0};
  CHECK_OK(sconce_device_open(&b->device, NULL, &err), err);
  if (!b->device) return false;
  b->device->piece_ns = SMALLEST;
  const sconce_model_desc desc = {.program.path = SCONCE_SOURCE_DIR
                                  "/tests/data/programs/swin_small/model.pte"};
  CHECK_OK(sconce_model_open(&b->model, b->device, &desc, &err), err);
  if (b->model) CHECK_OK(sconce_method_open(&b->method, b->model, NULL, &err), err);
  if (b->method) CHECK_OK(sconce_state_open(&b->state, b->method, &err), err);
  return b->state && !test_failed();
}

static void set_inputs(sconce_state *s, const sconce_method_info *info, int fill) {
  sconce_error err = {0};
  for (uint32_t i = 0; i < info->n_inputs; i++) {
    sconce_tensor x = info->inputs[i];
    x.size = sconce_dtype_size(x.dtype);
    for (uint32_t d = 0; d < x.rank; d++) x.size *= x.dims[d];
    unsigned char *bytes = calloc(1, x.size + 1);
    x.data = bytes;
    for (size_t k = 0; bytes && fill && x.dtype == SCONCE_FLOAT32 && k < x.size / 4; k++)
      memcpy(bytes + 4 * k, &(float){0.01f * (float)(k % 97)}, 4);
    CHECK_OK(sconce_state_set_input(s, i, &x, &err), err);
    free(bytes);
  }
}

static void end(struct bench *b) {
  sconce_state_close(b->state);
  sconce_method_close(b->method);
  sconce_model_close(b->model);
  if (b->device) test_note_kernels(b->device->gpu);
  sconce_device_close(b->device);
}

/* Two pieces are sent, and no more than was waited for until it is cancelled or closed. */
static void what_is_given_up_is_not_sent(void) {
  struct bench b;
  sconce_error err = {0};
  bool done = true;
  if (!start(&b)) {
    end(&b);
    return;
  }
  set_inputs(b.state, sconce_method_describe(b.method), 1);
  CHECK_OK(sconce_state_run(b.state, NULL, &err), err);
  const uint32_t all = b.state->exec.submits;
  CHECK(all > 20);
  const uint64_t *submits = &gpu_stats(b.device->gpu)->submits;
  for (int round = 0; round < 2; round++) {
    const uint64_t before = *submits;
    CHECK_OK(sconce_state_begin(b.state, NULL, &err), err);
    CHECK_EQ(b.state->exec.submits, 2);
    CHECK_OK(gpu_finish(b.device->gpu, &err), err);
    CHECK_OK(sconce_state_poll(b.state, &done, &err), err);
    CHECK(!done);
    CHECK(b.state->exec.submits >= 4 && b.state->exec.submits < all);
    const uint32_t sent = b.state->exec.submits;
    if (round) break;
    sconce_state_cancel(b.state);
    CHECK_OK(gpu_finish(b.device->gpu, &err), err);
    CHECK_EQ(*submits, before + sent);
    CHECK_FAILS(sconce_state_poll(b.state, &done, &err), SCONCE_BAD_ARGUMENT, err, "nothing is");
  }
  const uint64_t before = *submits;
  sconce_state_close(b.state); /* under way */
  b.state = NULL;
  CHECK_EQ(*submits, before);
  end(&b);
}

/* Another call, of this state or of one with which it has memory in common, comes behind. */
static void whatever_is_asked_meanwhile_comes_behind(void) {
  struct bench b;
  sconce_error err = {0};
  sconce_state *other = NULL;
  sconce_tensor y = {0};
  if (start(&b)) CHECK_OK(sconce_state_open(&other, b.method, &err), err);
  if (other) {
    const sconce_method_info *info = sconce_method_describe(b.method);
    float first[4][2];
    for (int round = 0; round < 2; round++) { /* one after another, then begun at once */
      set_inputs(b.state, info, 1);
      set_inputs(other, info, 0);
      CHECK_OK(sconce_state_begin(b.state, NULL, &err), err);
      if (round == 0) CHECK_OK(sconce_state_wait(b.state, &err), err);
      CHECK_OK(sconce_state_begin(other, NULL, &err), err);
      if (round) set_inputs(b.state, info, 0); /* for the next call */
      CHECK_OK(sconce_state_wait(other, &err), err);
      if (round) CHECK_OK(sconce_state_wait(b.state, &err), err);
      for (int i = 0; i < 2; i++) {
        CHECK_OK(sconce_state_output(i ? other : b.state, 0, &y, &err), err);
        REQUIRE(y.data && y.size >= sizeof first[0]);
        memcpy(first[2 * round + i], y.data, sizeof first[0]);
      }
    }
    CHECK(memcmp(first[0], first[1], sizeof first[0]) != 0);
    CHECK(memcmp(first[0], first[2], 2 * sizeof first[0]) == 0);
  }
  sconce_state_close(other);
  end(&b);
}

/* A prompt of one chunk ends in the middle of it: whoever is asked for memory while the call is
 * begun cancels, as a signal handler would. */
static sconce_session *to_cancel;

static void *resize(void *user, void *block, size_t old_size, size_t size) {
  (void)user, (void)old_size;
  if (to_cancel && sconce_session_state(to_cancel)->exec.held.flight)
    sconce_session_cancel(to_cancel);
  if (size) return realloc(block, size);
  free(block);
  return NULL;
}

/* true: it was. A device's first pieces need memory for fences, unless the device is quicker. */
static bool is_cancelled(const int32_t *prompt, size_t n) {
  sconce_error err = {0};
  sconce_device *device;
  sconce_model *model = NULL;
  sconce_session *s = NULL;
  bool cancelled = false;
  const sconce_device_desc desc = {.allocator = {resize, NULL}};
  CHECK_OK(sconce_device_open(&device, &desc, &err), err);
  if (!device) return false;
  device->piece_ns = SMALLEST;
  CHECK_OK(sconce_model_open(&model, device, &(sconce_model_desc){.program.path = STORIES}, &err),
           err);
  const sconce_session_desc one = {.model = model, .lookup = SCONCE_LOOKUP_OFF};
  if (model) CHECK_OK(sconce_session_open(&s, &one, &err), err);
  if (s) {
    sconce_choice c = {0}, want = {0};
    to_cancel = s;
    const sconce_status status = sconce_session_prompt(s, prompt, n, NULL, NULL, &err);
    to_cancel = NULL;
    cancelled = status == SCONCE_CANCELLED;
    CHECK(cancelled ? strstr(err.text, "cancelled at position 0") != NULL : status == SCONCE_OK);
    const struct exec *x = &sconce_session_state(s)->exec;
    if (cancelled) CHECK(x->submits >= 2 && x->submits < x->n_dispatches / 2);
    if (cancelled) CHECK_OK(sconce_session_prompt(s, prompt, n, NULL, NULL, &err), err);
    CHECK_OK(sconce_session_choose(s, &c, &err), err);
    CHECK_OK(sconce_session_rewind(s, 0, &err), err); /* the same, whole */
    CHECK_OK(sconce_session_prompt(s, prompt, n, NULL, NULL, &err), err);
    CHECK_OK(sconce_session_choose(s, &want, &err), err);
    CHECK_EQ(c.id, want.id);
  }
  test_note_kernels(device->gpu);
  sconce_session_close(s);
  sconce_model_close(model);
  sconce_device_close(device);
  return cancelled;
}

static void a_prompt_stops_between_submits(void) {
  int32_t prompt[24] = {1};
  for (int i = 1; i < 24; i++) prompt[i] = 400 + 31 * i;
  bool cancelled = false;
  for (int i = 0; i < 8 && !cancelled && !test_failed(); i++) cancelled = is_cancelled(prompt, 24);
  CHECK(cancelled);
}

const struct test suite_piece[] = {
    TEST(cut_calls_give_the_same),
    TEST(what_is_given_up_is_not_sent),
    TEST(whatever_is_asked_meanwhile_comes_behind),
    TEST(a_prompt_stops_between_submits),
    {0},
};
