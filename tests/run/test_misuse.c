/* Callers who make mistakes: NULL where something must be, a count without its list, calls in the
 * wrong order. Each gets SCONCE_BAD_ARGUMENT and a sentence, and what was open stays usable. */
#include "gpu.h"

#include "base/os.h"
#include "sconce_llm.h"

#define REFUSED(expr)                                                                              \
  do {                                                                                             \
    err = (sconce_error){0};                                                                       \
    CHECK_FAILS(expr, SCONCE_BAD_ARGUMENT, err, "");                                               \
    CHECK_SAYS(err.text[0], "%s says nothing", #expr);                                             \
  } while (0)

/* Every function that can fail, with nothing. */
static void nothing_is_a_bad_argument(void) {
  sconce_error err;
  bool done;
  sconce_tensor tensor;
  sconce_number number;
  uint64_t print;
  sconce_progress progress;
  sconce_choice choice;
  sconce_generate_result result;
  REFUSED(sconce_device_begin(NULL, NULL, &err));
  REFUSED(sconce_device_open(NULL, NULL, &err));
  REFUSED(sconce_device_poll(NULL, &done, &err));
  REFUSED(sconce_device_recover(NULL, &err));
  REFUSED(sconce_adapters(NULL, NULL, NULL, &err));
  REFUSED(sconce_model_open(NULL, NULL, NULL, &err));
  REFUSED(sconce_model_begin(NULL, NULL, NULL, &err));
  REFUSED(sconce_model_poll(NULL, &progress, &err));
  REFUSED(sconce_model_give(NULL, 0, 0, NULL, 0, &err));
  REFUSED(sconce_model_constant(NULL, "forward", 0, &number, &err));
  REFUSED(sconce_model_fingerprint(NULL, &print, &err));
  REFUSED(sconce_method_open(NULL, NULL, NULL, &err));
  REFUSED(sconce_method_begin(NULL, NULL, NULL, &err));
  REFUSED(sconce_method_poll(NULL, &progress, &err));
  REFUSED(sconce_state_open(NULL, NULL, &err));
  REFUSED(sconce_state_set_input(NULL, 0, NULL, &err));
  REFUSED(sconce_state_feed(NULL, 0, NULL, 0, &err));
  REFUSED(sconce_state_run(NULL, NULL, &err));
  REFUSED(sconce_state_begin(NULL, NULL, &err));
  REFUSED(sconce_state_poll(NULL, &done, &err));
  REFUSED(sconce_state_wait(NULL, &err));
  REFUSED(sconce_state_output(NULL, 0, &tensor, &err));
  REFUSED(sconce_state_fetch(NULL, &err));
  REFUSED(sconce_state_reset(NULL, &err));
  REFUSED(sconce_state_save(NULL, NULL, 0, &err));
  REFUSED(sconce_state_restore(NULL, NULL, 0, &err));
  REFUSED(sconce_state_profile(NULL, NULL, NULL, &err));
  REFUSED(sconce_tokenizer_open(NULL, NULL, &err));
  REFUSED(sconce_tokenizer_encode(NULL, "a", 1, 0, NULL, NULL, &err));
  REFUSED(sconce_tokenizer_decode(NULL, NULL, 1, 0, NULL, NULL, &err));
  REFUSED(sconce_chat_text(NULL, NULL, NULL, NULL, &err));
  REFUSED(sconce_chat_encode(NULL, NULL, NULL, NULL, &err));
  REFUSED(sconce_sampler_open(NULL, NULL, &err));
  REFUSED(sconce_sampler_choose(NULL, NULL, 0, NULL, 0, &choice, &err));
  REFUSED(sconce_session_open(NULL, NULL, &err));
  REFUSED(sconce_session_set_sampler(NULL, NULL, &err));
  REFUSED(sconce_session_prompt(NULL, NULL, 0, NULL, NULL, &err));
  REFUSED(sconce_session_append(NULL, 1, &err));
  REFUSED(sconce_session_choose(NULL, &choice, &err));
  REFUSED(sconce_session_next(NULL, &choice, &err));
  REFUSED(sconce_session_rewind(NULL, 0, &err));
  REFUSED(sconce_session_save(NULL, "x", &err));
  REFUSED(sconce_session_load(NULL, "x", &err));
  REFUSED(sconce_session_generate(NULL, NULL, &result, &err));
  REFUSED(sconce_session_generate_begin(NULL, NULL, &err));
  REFUSED(sconce_session_generate_poll(NULL, &done, &result, &err));
  CHECK_EQ(sconce_state_run(NULL, NULL, NULL), SCONCE_BAD_ARGUMENT); /* no place for a sentence */
}

/* …and those that cannot. */
static void nothing_is_described_and_closed_quietly(void) {
  size_t n = 1;
  sconce_stats stats;
  CHECK(!sconce_device_describe(NULL) && !sconce_model_describe(NULL));
  CHECK(!sconce_method_describe(NULL) && !sconce_model_device(NULL));
  CHECK(!sconce_session_describe(NULL) && !sconce_session_state(NULL));
  CHECK(!sconce_session_ids(NULL, &n) && !sconce_session_logits(NULL));
  CHECK(!sconce_tokenizer_describe(NULL) && sconce_state_size(NULL) == 0);
  CHECK(sconce_tokenizer_special(NULL, "<s>") < 0 && !sconce_tokenizer_is_end(NULL, 1));
  CHECK(!sconce_tokenizer_is_special(NULL, 1) && sconce_chat_family(NULL));
  CHECK_TEXT(sconce_tokenizer_piece(NULL, 1, &n), "");
  CHECK_TEXT(sconce_stream_push(NULL, 1, &n), "");
  CHECK_TEXT(sconce_stream_push(&(sconce_stream){0}, 1, &n), "");
  CHECK_TEXT(sconce_stream_end(&(sconce_stream){0}, &n), "");
  CHECK_EQ(n, 0);
  uint32_t n_tokens = 1;
  CHECK(!sconce_state_tokens(NULL, &n_tokens) && n_tokens == 0);
  CHECK_EQ(sconce_state_losses(NULL), 0);
  sconce_state_stats(NULL, &stats);
  sconce_state_cancel(NULL);
  sconce_session_cancel(NULL);
  sconce_session_close(NULL);
  sconce_tokenizer_close(NULL);
  sconce_sampler_close(NULL);
  sconce_state_close(NULL);
  sconce_method_close(NULL);
  sconce_model_close(NULL);
  sconce_device_close(NULL);
}

struct opened {
  sconce_device *device;
  sconce_model *model;
  sconce_method *method;
  sconce_state *state;
  unsigned char *file;
};

static bool open_all(struct opened *o) {
  size_t size;
  sconce_error err = {0};
  *o = (struct opened){.file = test_read("cases/right/add/model.pte", &size)};
  if (!o->file) return false;
  const sconce_model_desc desc = {.program = {.data = o->file, .size = size}};
  CHECK_OK(sconce_device_open(&o->device, NULL, &err), err);
  if (o->device) CHECK_OK(sconce_model_open(&o->model, o->device, &desc, &err), err);
  if (o->model) CHECK_OK(sconce_method_open(&o->method, o->model, NULL, &err), err);
  if (o->method) CHECK_OK(sconce_state_open(&o->state, o->method, &err), err);
  return o->state != NULL;
}

/* Parents first: each keeps alive what it was opened from. */
static void close_all(struct opened *o) {
  sconce_device_close(o->device);
  sconce_model_close(o->model);
  sconce_method_close(o->method);
  sconce_state_close(o->state);
  free(o->file);
}

static void a_count_without_its_list_is_refused(void) {
  struct opened o;
  sconce_error err;
  sconce_model *model;
  if (open_all(&o)) {
    sconce_model_desc desc = {.n_data_files = 2};
    desc.program = (sconce_file){.data = o.file, .size = 100};
    REFUSED(sconce_model_open(&model, o.device, &desc, &err));
    CHECK(!model);
    desc = (sconce_model_desc){0};
    REFUSED(sconce_model_open(&model, o.device, &desc, &err)); /* no program at all */
    REFUSED(sconce_model_open(&model, o.device, NULL, &err));
    const sconce_tensor nowhere = {.dtype = SCONCE_FLOAT32, .rank = 1, .dims = {4}, .size = 16};
    REFUSED(sconce_state_set_input(o.state, 0, &nowhere, &err));
    const sconce_tensor deep = {.dtype = SCONCE_FLOAT32, .rank = 1000, .data = &o, .size = 4};
    REFUSED(sconce_state_set_input(o.state, 0, &deep, &err));
    REFUSED(sconce_state_restore(o.state, NULL, 8, &err));
    REFUSED(sconce_state_save(o.state, NULL, 8, &err));
  }
  close_all(&o);
}

static void set_ones(sconce_state *state, const sconce_method_info *info) {
  sconce_error err = {0};
  float ones[64];
  for (int i = 0; i < 64; i++) ones[i] = 1;
  for (uint32_t i = 0; i < info->n_inputs; i++) {
    sconce_tensor t = info->inputs[i];
    t.data = ones, t.size = 4;
    for (uint32_t d = 0; d < t.rank; d++) t.size *= t.dims[d];
    REQUIRE(t.size <= sizeof ones);
    CHECK_OK(sconce_state_set_input(state, i, &t, &err), err);
  }
}

static void calls_in_the_wrong_order_are_refused(void) {
  struct opened o;
  sconce_error err;
  sconce_tensor out;
  bool done;
  if (open_all(&o)) {
    const uint32_t n = sconce_method_describe(o.method)->n_inputs;
    REFUSED(sconce_state_output(o.state, 0, &out, &err)); /* before any call */
    REFUSED(sconce_state_fetch(o.state, &err));
    REFUSED(sconce_state_wait(o.state, &err));
    REFUSED(sconce_state_poll(o.state, &done, &err));
    REFUSED(sconce_state_set_input(o.state, n, &(sconce_tensor){0}, &err));
    REFUSED(sconce_state_feed(o.state, 0, o.state, 7, &err));
    REFUSED(sconce_state_begin(o.state, &(sconce_call){.feed_token = true}, &err));
    sconce_state_cancel(o.state); /* nothing to give up */
    const sconce_method_info *info = sconce_method_describe(o.method);
    set_ones(o.state, info);
    CHECK_OK(sconce_state_run(o.state, NULL, &err), err);
    CHECK_OK(sconce_state_output(o.state, 0, &out, &err), err);
    if (!test_failed()) CHECK(((const float *)out.data)[0] == 2);
    REFUSED(sconce_state_output(o.state, info->n_outputs, &out, &err));
    REFUSED(sconce_state_output(o.state, 0, NULL, &err));
  }
  close_all(&o);
}

/* ---- threads --------------------------------------------------------------------------------- */

#ifdef SCONCE_CHECK_THREADS
/* A second thread comes while the first is in a call: whoever is asked for memory there starts it
 * and waits for what it hears. */
static struct intruder {
  sconce_state *state;
  sconce_status status;
  sconce_error err;
} intruder;

static void intrude(void *user) {
  struct intruder *i = user;
  i->status = sconce_state_run(i->state, NULL, &i->err);
}

static void *let_in(void *user, void *block, size_t old_size, size_t size) {
  struct intruder *i = user;
  (void)old_size;
  if (i->state) {
    struct intruder comes = *i;
    struct os_team team;
    i->state = NULL;
    os_team_start(&team, 1, intrude, &comes);
    os_team_join(&team);
    *i = comes;
    i->state = NULL;
  }
  if (size) return realloc(block, size);
  free(block);
  return NULL;
}
#endif

static void a_second_thread_is_told(void) {
#ifndef SCONCE_CHECK_THREADS
  test_skip("handles are checked in builds with SCONCE_CHECK_THREADS");
#else
  sconce_error err = {0};
  sconce_device *device = NULL;
  sconce_model *model = NULL;
  sconce_method *method = NULL;
  sconce_state *state = NULL;
  size_t size;
  unsigned char *file = test_read("cases/right/add/model.pte", &size);
  intruder = (struct intruder){0};
  const sconce_device_desc on = {.allocator = {let_in, &intruder}};
  const sconce_model_desc desc = {.program = {.data = file, .size = size}};
  CHECK_OK(sconce_device_open(&device, &on, &err), err);
  if (device) CHECK_OK(sconce_model_open(&model, device, &desc, &err), err);
  if (model) CHECK_OK(sconce_method_open(&method, model, NULL, &err), err);
  if (method) CHECK_OK(sconce_state_open(&state, method, &err), err);
  if (state) {
    set_ones(state, sconce_method_describe(method));
    intruder.state = state;
    CHECK_OK(sconce_state_run(state, NULL, &err), err); /* the first is not disturbed */
    CHECK(!intruder.state);
    CHECK_EQ(intruder.status, SCONCE_BAD_ARGUMENT);
    CHECK_TEXT(intruder.err.text,
               "another thread is in a call with this state: one thread at a time");
    struct os_team team; /* one behind the other is fine */
    intruder.state = state;
    struct intruder comes = intruder;
    intruder.state = NULL;
    os_team_start(&team, 1, intrude, &comes);
    os_team_join(&team);
    CHECK_OK(comes.status, comes.err);
    CHECK_OK(sconce_state_run(state, NULL, &err), err);
  }
  sconce_state_close(state);
  sconce_method_close(method);
  sconce_model_close(model);
  sconce_device_close(device);
  free(file);
#endif
}

const struct test suite_misuse[] = {TEST(nothing_is_a_bad_argument),
                                    TEST(nothing_is_described_and_closed_quietly),
                                    TEST(a_count_without_its_list_is_refused),
                                    TEST(calls_in_the_wrong_order_are_refused),
                                    TEST(a_second_thread_is_told),
                                    {0}};
