/* Tokens that a language model's calls choose on the device, and the rows of logits that a call
 * wants. */
#include "gpu.h"

#include "sconce_llm.h"

#include <string.h>

#define STORIES SCONCE_SOURCE_DIR "/models/stories15M/stories15M-4w.pte"
enum { STEPS = 5, N_STORY = 4 };
static const int32_t story[N_STORY] = {1, 9038, 2501, 263};

struct story {
  sconce_device *device;
  sconce_model *model;
  sconce_method *method;
  sconce_state *state;
};

static void open_story(struct story *s) {
  sconce_error err = {0};
  *s = (struct story){0};
  CHECK_OK(sconce_device_open(&s->device, NULL, &err), err);
  const sconce_model_desc desc = {.program.path = STORIES};
  if (s->device) CHECK_OK(sconce_model_open(&s->model, s->device, &desc, &err), err);
  if (s->model) CHECK_OK(sconce_method_open(&s->method, s->model, NULL, &err), err);
  if (s->method) CHECK_OK(sconce_state_open(&s->state, s->method, &err), err);
}

static void close_story(struct story *s) {
  sconce_state_close(s->state);
  sconce_method_close(s->method);
  sconce_model_close(s->model);
  sconce_device_close(s->device);
}

/* The one that was chosen; -1: none. */
static int32_t token_of(const sconce_state *s) {
  uint32_t n;
  const int32_t *tokens = sconce_state_tokens(s, &n);
  return n ? tokens[n - 1] : -1;
}

static sconce_status set_ids(sconce_state *m, const int32_t *ids, uint32_t n, int64_t position,
                             sconce_error *err) {
  int64_t wide[N_STORY];
  for (uint32_t i = 0; i < n; i++) wide[i] = ids[i];
  sconce_tensor t = {SCONCE_INT64, 2, {1, n}, wide, 8 * (size_t)n};
  if (n) TRY(sconce_state_set_input(m, 0, &t, err));
  sconce_tensor p = {SCONCE_INT64, 1, {1}, &position, 8};
  return sconce_state_set_input(m, 1, &p, err);
}

/* Logits come to the host, which chooses. */
static sconce_status choose_on_the_host(sconce_state *m, sconce_sampler *sampler, int32_t *out,
                                        sconce_error *err) {
  for (uint32_t i = 0; i < STEPS; i++) {
    uint32_t position = i ? N_STORY + i - 1 : 0;
    TRY(i ? set_ids(m, &out[i - 1], 1, position, err) : set_ids(m, story, N_STORY, 0, err));
    TRY(sconce_state_run(m, NULL, err));
    CHECK_EQ(token_of(m), -1);
    sconce_tensor y;
    TRY(sconce_state_output(m, 0, &y, err));
    sconce_choice c;
    const float *last = (const float *)y.data + (y.size / 4 - 32000);
    TRY(sconce_sampler_choose(sampler, last, N_STORY + i, NULL, 0, &c, err));
    out[i] = c.id;
  }
  return SCONCE_OK;
}

/* The device chooses and goes on; `ahead` calls are begun before the first is waited for. */
static sconce_status choose_on_the_device(sconce_state *m, sconce_draw draw, uint32_t ahead,
                                          bool keep, int32_t *out, sconce_error *err) {
  for (uint32_t i = 0; i < STEPS + ahead - 1; i++) {
    if (i < STEPS) {
      draw.position = N_STORY + i;
      TRY(i ? set_ids(m, NULL, 0, N_STORY + i - 1, err) : set_ids(m, story, N_STORY, 0, err));
      const sconce_call how = {.keep_outputs = keep, .draw = &draw, .feed_token = i > 0};
      TRY(sconce_state_begin(m, &how, err));
    }
    if (i + 1 < ahead) continue;
    TRY(sconce_state_wait(m, err));
    out[i + 1 - ahead] = token_of(m);
    sconce_tensor y;
    TRY(sconce_state_output(m, 0, &y, err));
    CHECK((y.data == NULL) == keep);
  }
  return SCONCE_OK;
}

/* The rows of a call that wants `rows`, each against the last one of a call that ends there. */
static void check_rows(sconce_state *m, uint32_t rows, float want[N_STORY][32000]) {
  sconce_error err = {0};
  sconce_tensor y = {0};
  uint32_t n;
  CHECK_OK(set_ids(m, story, N_STORY, 0, &err), err);
  const sconce_draw greedy = {.position = N_STORY, .top_p = 1};
  CHECK_OK(sconce_state_run(m, &(sconce_call){.last_rows = rows, .draw = &greedy}, &err), err);
  CHECK_OK(sconce_state_output(m, 0, &y, &err), err);
  CHECK_EQ(y.dims[0], rows);
  CHECK_EQ(y.dims[1], 32000);
  const int32_t *tokens = sconce_state_tokens(m, &n);
  CHECK_EQ(n, rows);
  for (uint32_t r = 0; r < rows && !test_failed(); r++) {
    const float *got = (const float *)y.data + (size_t)r * 32000, *row = want[N_STORY - rows + r];
    uint32_t best = 0;
    for (uint32_t i = 0; i < 32000 && !test_failed(); i++) {
      CHECK_NEAR(got[i], row[i], 1e-3);
      if (got[i] > got[best]) best = i;
    }
    CHECK_EQ(tokens[r], (int32_t)best);
  }
}

/* The file takes the last row in front of its head; a call may want more of them. */
static void more_rows_than_the_file_gives(void) {
  static float want[N_STORY][32000];
  struct story f;
  sconce_error err = {0};
  sconce_tensor y;
  open_story(&f);
  if (f.state) {
    CHECK_EQ(sconce_method_describe(f.method)->max_rows, 8);
    CHECK_EQ(sconce_method_describe(f.method)->outputs[0].dims[0], 1);
    for (uint32_t n = 1; n <= N_STORY && !test_failed(); n++) {
      CHECK_OK(set_ids(f.state, story, n, 0, &err), err);
      CHECK_OK(sconce_state_run(f.state, NULL, &err), err);
      CHECK_OK(sconce_state_output(f.state, 0, &y, &err), err);
      CHECK_EQ(y.size, sizeof want[0]);
      if (!test_failed()) memcpy(want[n - 1], y.data, sizeof want[0]);
    }
    for (uint32_t rows = 1; rows <= N_STORY && !test_failed(); rows++)
      check_rows(f.state, rows, want);
    const sconce_draw early = {.position = 1, .top_p = 1};
    CHECK_FAILS(sconce_state_begin(f.state, &(sconce_call){.last_rows = 9, .draw = &early}, &err),
                SCONCE_BAD_ARGUMENT, err, "tokens of 9 rows up to position 1, at most 8");
    CHECK_FAILS(sconce_state_begin(f.state, &(sconce_call){.last_rows = 3, .draw = &early}, &err),
                SCONCE_BAD_ARGUMENT, err, "tokens of 3 rows up to position 1");
  }
  close_story(&f);
}

static void tokens_on_the_device_are_the_hosts(void) {
  static const sconce_draw draws[] = {
      {.top_p = 1},
      {.seed = 5, .temperature = 0.8f, .top_p = 1},
      {.seed = 6, .temperature = 1.2f, .top_k = 40, .top_p = 1},
      {.seed = 7, .temperature = 1, .top_p = 0.9f},
      {.seed = 8, .temperature = 1.5f, .top_k = 100, .top_p = 0.95f, .min_p = 0.02f}};
  struct story f;
  sconce_error err = {0};
  open_story(&f);
  if (f.state) {
    CHECK(sconce_method_describe(f.method)->can_draw);
    const sconce_draw wrong = {.top_p = 2};
    CHECK_FAILS(sconce_state_begin(f.state, &(sconce_call){.draw = &wrong}, &err),
                SCONCE_BAD_ARGUMENT, err, "top_p 2");
    CHECK_FAILS(sconce_state_begin(f.state, &(sconce_call){.feed_token = true}, &err),
                SCONCE_BAD_ARGUMENT, err, "no call");
  }
  for (size_t i = 0; f.state && i < sizeof draws / sizeof *draws && !test_failed(); i++) {
    const sconce_draw *d = &draws[i];
    sconce_sampler *sampler = NULL;
    if (test_gpu_is_slow() && i) continue; /* sample/ has them all, without a model */
    sconce_sampler_desc desc = {.n_vocab = 32000,
                                .temperature = d->temperature,
                                .top_k = d->top_k,
                                .top_p = d->top_p,
                                .min_p = d->min_p,
                                .seed = d->seed};
    CHECK_OK(sconce_sampler_open(&sampler, &desc, &err), err);
    int32_t want[STEPS] = {0}, got[STEPS];
    CHECK_OK(choose_on_the_host(f.state, sampler, want, &err), err);
    for (uint32_t ahead = 1 + (uint32_t)i % 4; ahead <= SCONCE_CALLS_MAX; ahead += 3) {
      memset(got, 0xff, sizeof got);
      CHECK_OK(choose_on_the_device(f.state, *d, ahead, ahead % 2, got, &err), err);
      for (int k = 0; k < STEPS; k++)
        if (got[k] != want[k])
          test_fail(__FILE__, __LINE__, "draw %zu, %u ahead: token %d is %d, want %d", i, ahead, k,
                    (int)got[k], (int)want[k]);
    }
    sconce_sampler_close(sampler);
  }
  close_story(&f);
}

const struct test suite_tokens[] = {
    TEST(more_rows_than_the_file_gives),
    TEST(tokens_on_the_device_are_the_hosts),
    {0},
};
