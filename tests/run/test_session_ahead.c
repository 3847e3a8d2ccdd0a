/* Sessions whose device works ahead, against others that choose and append: a small model with
 * caches made with the writer, where a step costs little. */
#include "ahead_fixture.h"
#include "tiny_vocab.h"

#include "run/device.h"
#include "sconce_dev.h"
#include "sconce_llm.h"
#include "system.h"
#include "write/write.h"

/* The file gives all logits. A call that wants fewer rows has only those computed, and they are the
 * same. */
static void only_the_rows_that_are_wanted(void) {
  struct arena arena;
  struct span file = {0};
  sconce_error err = {0};
  sconce_device *device = NULL;
  sconce_model *model = NULL;
  sconce_method *method = NULL;
  sconce_state *state = NULL;
  arena_init(&arena, NULL);
  CHECK_OK(build(&arena, &file, &err), err);
  CHECK_OK(sconce_device_open(&device, NULL, &err), err);
  const sconce_model_desc desc = {.program = {.data = file.data, .size = file.size}};
  if (device) CHECK_OK(sconce_model_open(&model, device, &desc, &err), err);
  if (model) CHECK_OK(sconce_method_open(&method, model, NULL, &err), err);
  if (method) CHECK_OK(sconce_state_open(&state, method, &err), err);
  if (method) CHECK_EQ(sconce_method_describe(method)->max_rows, CHUNK);
  float all[CHUNK * VOCAB];
  static const int32_t ids[CHUNK] = {3, 1, 4, 1, 5, 9}, zero[] = {0};
  const sconce_tensor x = {SCONCE_INT32, 2, {1, CHUNK}, ids, sizeof ids},
                      at = {SCONCE_INT32, 1, {1}, zero, sizeof zero};
  for (uint32_t rows = 0; state && rows <= CHUNK && !test_failed(); rows++) {
    sconce_tensor y = {0};
    CHECK_OK(sconce_state_set_input(state, 0, &x, &err), err);
    CHECK_OK(sconce_state_set_input(state, 1, &at, &err), err);
    CHECK_OK(sconce_state_run(state, &(sconce_call){.last_rows = rows}, &err), err);
    CHECK_OK(sconce_state_output(state, 0, &y, &err), err);
    const uint32_t want = rows ? rows : CHUNK;
    CHECK_EQ(y.dims[1], want);
    CHECK_EQ(y.size, (size_t)want * VOCAB * sizeof(float));
    if (test_failed()) break;
    if (!rows) memcpy(all, y.data, sizeof all);
    const float *got = y.data, *last = all + (size_t)(CHUNK - want) * VOCAB;
    for (uint32_t i = 0; i < want * VOCAB && !test_failed(); i++) CHECK_NEAR(got[i], last[i], 1e-5);
  }
  sconce_state_close(state);
  sconce_method_close(method);
  sconce_model_close(model);
  sconce_device_close(device);
  arena_free(&arena);
}

static uint32_t position(const struct pair *p) {
  return sconce_session_describe(p->session[PLAIN])->position;
}

static void compare(const struct pair *p, const char *after) {
  size_t n[2];
  const int32_t *a = sconce_session_ids(p->session[PLAIN], &n[0]),
                *b = sconce_session_ids(p->session[AHEAD], &n[1]);
  if (n[0] != n[1]) {
    test_fail(__FILE__, __LINE__, "after %s: %zu ids, want %zu", after, n[1], n[0]);
    return;
  }
  for (size_t i = 0; i < n[0] && !test_failed(); i++)
    if (a[i] != b[i])
      test_fail(__FILE__, __LINE__, "after %s: id %zu of %zu is %d, want %d", after, i, n[0],
                (int)b[i], (int)a[i]);
}

static void next(struct pair *p, uint32_t n) {
  sconce_error err = {0};
  for (uint32_t i = 0; i < n && !test_failed(); i++) {
    sconce_choice a = {.id = -1}, b = {.id = -1};
    const bool full = position(p) == CONTEXT;
    if (full) {
      CHECK_FAILS(sconce_session_next(p->session[AHEAD], &b, &err), SCONCE_BAD_ARGUMENT, err,
                  "the context is full: 48 ids");
      return;
    }
    CHECK_OK(sconce_session_choose(p->session[PLAIN], &a, &err), err);
    CHECK_OK(sconce_session_append(p->session[PLAIN], a.id, &err), err);
    CHECK_OK(sconce_session_next(p->session[AHEAD], &b, &err), err);
    CHECK_EQ(b.id, a.id);
    if (a.logprob != b.logprob) CHECK_NEAR(b.logprob, a.logprob, 1e-5);
    CHECK(sconce_session_logits(p->session[AHEAD]) == NULL);
  }
  compare(p, "next");
}

static void append(struct pair *p, int32_t id) {
  sconce_error err = {0};
  for (int i = 0; i < 2; i++) CHECK_OK(sconce_session_append(p->session[i], id, &err), err);
  compare(p, "append");
}

static void prompt(struct pair *p, const int32_t *ids, size_t n) {
  sconce_error err = {0};
  for (int i = 0; i < 2; i++)
    CHECK_OK(sconce_session_prompt(p->session[i], ids, n, NULL, NULL, &err), err);
  compare(p, "prompt");
}

/* The first `same` ids of the timeline, then others. */
static void prompt_from(struct pair *p, uint32_t same, uint32_t more, uint64_t *seed) {
  size_t n;
  int32_t ids[CONTEXT];
  const int32_t *old = sconce_session_ids(p->session[PLAIN], &n);
  for (uint32_t i = 0; i < CONTEXT; i++)
    ids[i] = i < same && i < n ? old[i] : (int32_t)(test_random(seed) % VOCAB);
  if (same > n) same = (uint32_t)n;
  prompt(p, ids, same + more > CONTEXT ? CONTEXT : same + more);
}

static void rewind_to(struct pair *p, uint32_t to) {
  sconce_error err = {0};
  for (int i = 0; i < 2; i++) CHECK_OK(sconce_session_rewind(p->session[i], to, &err), err);
  compare(p, "rewind");
}

/* Choosing shows the logits, and adds nothing. */
static void choose(struct pair *p) {
  sconce_error err = {0};
  sconce_choice c[2] = {{.id = -1}, {.id = -2}};
  for (int i = 0; i < 2; i++) CHECK_OK(sconce_session_choose(p->session[i], &c[i], &err), err);
  CHECK_EQ(c[AHEAD].id, c[PLAIN].id);
  const float *a = sconce_session_logits(p->session[PLAIN]),
              *b = sconce_session_logits(p->session[AHEAD]);
  CHECK(a && b);
  for (int i = 0; a && b && i < VOCAB && !test_failed(); i++) CHECK_NEAR(b[i], a[i], 1e-4);
  compare(p, "choose");
}

/* Both are saved, go on, and come back to what they were. */
static void save_and_load(struct pair *p, uint32_t between) {
  sconce_error err = {0};
  char path[2][TEST_PATH_MAX];
  for (int i = 0; i < 2; i++) {
    test_temporary(path[i], "");
    CHECK_OK(sconce_session_save(p->session[i], path[i], &err), err);
  }
  next(p, between);           /* a save is no end of the text */
  for (int i = 0; i < 2; i++) /* either's serves both */
    CHECK_OK(sconce_session_load(p->session[i], path[1 - i], &err), err);
  for (int i = 0; i < 2; i++) remove(path[i]);
  compare(p, "load");
}

/* ---- the same ids ---------------------------------------------------------------------------- */

/* What a session does does not depend on the device: a slow one sees the first two. */
static size_t n_samplers(void) {
  return test_gpu_is_slow() ? 2 : sizeof samplers / sizeof *samplers;
}

static void next_is_choose_and_append(void) {
  struct pair p;
  bool ok = open_pair(&p, &samplers[0]);
  for (size_t i = 0; ok && i < 2 * n_samplers() && !test_failed(); i++) {
    p.lookup = lookups[i % 2];
    open_sessions(&p, &samplers[i / 2]);
    prompt(&p, (int32_t[]){7}, 1);
    next(&p, CONTEXT); /* to the end, and one more is refused */
    CHECK_EQ(position(&p), CONTEXT);
    choose(&p);
  }
  close_pair(&p);
}

static void a_session_without_ids_has_no_next(void) {
  struct pair p;
  sconce_error err = {0};
  sconce_choice c;
  if (open_pair(&p, &samplers[1])) {
    CHECK_FAILS(sconce_session_next(p.session[AHEAD], &c, &err), SCONCE_BAD_ARGUMENT, err,
                "there are no logits to choose from");
    CHECK_FAILS(sconce_session_next(p.session[AHEAD], NULL, &err), SCONCE_BAD_ARGUMENT, err,
                "NULL");
    CHECK_FAILS(sconce_session_next(NULL, &c, &err), SCONCE_BAD_ARGUMENT, err, "NULL");
    prompt(&p, (int32_t[]){1, 2, 3}, 3);
    next(&p, 5);
    rewind_to(&p, 4);
    CHECK_FAILS(sconce_session_next(p.session[AHEAD], &c, &err), SCONCE_BAD_ARGUMENT, err,
                "there are no logits to choose from");
    compare(&p, "a next that failed");
    append(&p, 9);
    next(&p, 5);
  }
  close_pair(&p);
}

/* Whatever comes in the middle of the work ahead. */
static void other_calls_end_the_work_ahead(void) {
  struct pair p;
  bool ok = open_pair(&p, &samplers[0]);
  for (size_t i = 0; ok && i < 2 * n_samplers() && !test_failed(); i++) {
    uint64_t seed = 9;
    p.lookup = lookups[i % 2];
    open_sessions(&p, &samplers[i / 2]);
    prompt(&p, (int32_t[]){1, 2, 3, 4, 5, 6, 7, 8}, 8);
    next(&p, 3);
    choose(&p);
    next(&p, 1);
    choose(&p);
    choose(&p);
    append(&p, 11);
    next(&p, 2);
    append(&p, 12);
    append(&p, 13);
    next(&p, 2);
    rewind_to(&p, position(&p)); /* nothing */
    next(&p, 2);
    rewind_to(&p, position(&p) - 1);
    append(&p, 14);
    next(&p, 4);
    prompt_from(&p, position(&p), 0, &seed); /* the same again */
    next(&p, 2);
    prompt_from(&p, position(&p), 3, &seed);
    next(&p, 2);
    prompt_from(&p, 5, 9, &seed);
    next(&p, 4);
    save_and_load(&p, 3);
    append(&p, 15);
    next(&p, 3);
    save_and_load(&p, 0);
    prompt_from(&p, position(&p), 0, &seed);
    next(&p, CONTEXT);
    save_and_load(&p, 0); /* full */
    prompt_from(&p, CONTEXT, 0, &seed);
    choose(&p);
  }
  close_pair(&p);
}

static void any_mixture_of_calls(void) {
  struct pair p;
  bool ok = open_pair(&p, &samplers[0]);
  for (size_t i = 0; ok && i < 2 * n_samplers() && !test_failed(); i++) {
    uint64_t seed = 100 + i / 2;
    p.lookup = lookups[i % 2];
    open_sessions(&p, &samplers[i / 2]);
    prompt(&p, (int32_t[]){1}, 1);
    for (int k = 0; k < 60 && !test_failed(); k++) {
      const uint32_t dice = test_random(&seed) % 8, at = position(&p);
      const int32_t id = (int32_t)(test_random(&seed) % VOCAB);
      if (at + 8 > CONTEXT) {
        rewind_to(&p, test_random(&seed) % 8);
        append(&p, id);
      } else if (dice < 4) {
        next(&p, 1 + dice);
      } else if (dice == 4) {
        append(&p, id);
      } else if (dice == 5) {
        prompt_from(&p, test_random(&seed) % (at + 1), 1 + dice % 3, &seed);
      } else if (dice == 6) {
        choose(&p);
      } else {
        rewind_to(&p, at - 1);
        append(&p, id);
      }
    }
  }
  close_pair(&p);
}

/* The device cannot: the host chooses, and nothing else changes. */
static void a_penalty_and_logprobs_are_the_hosts(void) {
  static const sconce_sampler_desc hosts[] = {
      {.temperature = 1, .seed = 8, .repetition_penalty = 1.4f},
      {.temperature = 0, .repetition_penalty = 2, .penalty_window = 4},
      {.temperature = 0.9f, .seed = 9, .logprobs = true},
      {.temperature = 1, .seed = 10, .repetition_penalty = 1},
  };
  struct pair p;
  bool ok = open_pair(&p, &hosts[0]);
  for (size_t i = 0; ok && i < 2 * sizeof hosts / sizeof *hosts && !test_failed(); i++) {
    p.host_chooses = i / 2 == 3;
    p.lookup = lookups[i % 2];
    open_sessions(&p, &hosts[i / 2]);
    prompt(&p, (int32_t[]){3, 4}, 2);
    next(&p, 6);
    choose(&p);
    next(&p, 3);
    rewind_to(&p, 4);
    append(&p, 20);
    next(&p, 4);
    save_and_load(&p, 2);
    append(&p, 21);
    next(&p, CONTEXT);
  }
  close_pair(&p);
}

/* Text that goes round in a circle is guessed right, whoever chooses: in fewer calls than ids. */
static void repetition_is_accepted(void) {
  static const sconce_sampler_desc ways[] = {
      {.temperature = 0}, {.temperature = 0, .logprobs = true}, {.temperature = 0.02f, .seed = 7}};
  struct pair p;
  bool ok = open_pair(&p, &ways[0]);
  for (size_t i = 0; ok && i < sizeof ways / sizeof *ways && !test_failed(); i++) {
    p.lookup = SCONCE_LOOKUP_ALWAYS;
    open_sessions(&p, &ways[i]);
    sconce_call_times before, after;
    prompt(&p, (int32_t[]){7, 9, 11, 7, 9, 11}, 6);
    sconce_state_times(sconce_session_state(p.session[AHEAD]), &before);
    next(&p, CONTEXT);
    sconce_state_times(sconce_session_state(p.session[AHEAD]), &after);
    const sconce_session_info *info = sconce_session_describe(p.session[AHEAD]);
    CHECK_SAYS(info->accepted > 8 && info->accepted <= info->guessed, "%u of %u guesses were right",
               (unsigned)info->accepted, (unsigned)info->guessed);
    CHECK_SAYS(after.calls - before.calls + info->accepted <= CONTEXT - 6, "%u calls",
               (unsigned)(after.calls - before.calls));
  }
  close_pair(&p);
}

/* Every seed, temperature and penalty: the ids do not show whether they were guessed. */
static void guesses_change_no_ids(void) {
  struct pair p;
  bool ok = open_pair(&p, &samplers[0]);
  uint64_t accepted = 0;
  const uint32_t runs = test_gpu_is_slow() ? 6 : 24;
  for (uint32_t i = 0; ok && i < runs && !test_failed(); i++) {
    const sconce_sampler_desc way = {.temperature = 0.05f * (float)(i % 8),
                                     .seed = i,
                                     .top_k = i % 3 ? 0 : 10,
                                     .top_p = i % 5 ? 0 : 0.9f,
                                     .repetition_penalty = i % 4 == 3 ? 1.1f : 0,
                                     .logprobs = i % 6 == 5};
    p.lookup = SCONCE_LOOKUP_ALWAYS;
    p.host_chooses = i % 7 == 6;
    open_sessions(&p, &way);
    prompt(&p, (int32_t[]){(int32_t)i, 4, 5, 6, (int32_t)i, 4, 5}, 7);
    next(&p, CONTEXT);
    accepted += sconce_session_describe(p.session[AHEAD])->accepted;
  }
  CHECK_SAYS(accepted > runs, "%u guesses were right", (unsigned)accepted);
  close_pair(&p);
}

/* ---- text ------------------------------------------------------------------------------------ */

/* A letter or two for each id of the model, then the bytes. */
static sconce_status open_tokenizer(sconce_tokenizer **out, int32_t eos, sconce_error *err) {
  struct blob b = {0};
  int32_t head[4] = {VOCAB + 256, -1, eos, 8};
  blob_add(&b, head, sizeof head);
  for (unsigned i = 0; i < VOCAB + 256; i++) {
    char piece[8];
    if (i < VOCAB)
      snprintf(piece, sizeof piece, i < 26 ? "%c" : "%c%c", 'a' + i % 26, 'A' + i % 26);
    else
      snprintf(piece, sizeof piece, "<0x%02X>", i - VOCAB);
    int32_t score_and_size[2] = {0, (int32_t)strlen(piece)};
    blob_add(&b, score_and_size, 8);
    blob_text(&b, piece);
  }
  sconce_status status =
      sconce_tokenizer_open(out, &(sconce_tokenizer_desc){.data = b.data, .size = b.size}, err);
  blob_free(&b);
  return status;
}

struct shown {
  char bytes[256];
  size_t size, calls, refuse_at;
};

static bool collect(void *user, const char *text, size_t size, sconce_choice choice) {
  (void)choice;
  struct shown *t = user;
  if (t->size + size < sizeof t->bytes) memcpy(t->bytes + t->size, text, size), t->size += size;
  return ++t->calls != t->refuse_at;
}

/* Both generate; the same text, end and timeline. Returns the text. */
static struct shown generate(struct pair *p, sconce_generate_desc desc, size_t refuse_at) {
  sconce_error err = {0};
  struct shown shown[2] = {{.refuse_at = refuse_at}, {.refuse_at = refuse_at}};
  sconce_generate_result r[2] = {{0}, {0}};
  for (int i = 0; i < 2; i++) {
    desc.on_text = collect;
    desc.user = &shown[i];
    CHECK_OK(sconce_session_generate(p->session[i], &desc, &r[i], &err), err);
  }
  CHECK_TEXT(shown[AHEAD].bytes, shown[PLAIN].bytes);
  CHECK_EQ(r[AHEAD].stop, r[PLAIN].stop);
  CHECK_EQ(r[AHEAD].n_new, r[PLAIN].n_new);
  compare(p, "generate");
  return shown[AHEAD];
}

static void a_stop_leaves_the_timeline_right(void) {
  static const int32_t start[] = {7, 8, 9};
  struct pair p;
  sconce_error err = {0};
  sconce_tokenizer *tokenizer = NULL;
  CHECK_OK(open_tokenizer(&tokenizer, 30, &err), err);
  bool ok = open_pair(&p, &samplers[0]);
  for (size_t i = 0; ok && i < 2 * n_samplers() && !test_failed(); i++) {
    for (int k = 0; k < 2; k++) { /* with logprobs the host chooses */
      sconce_session_close(p.session[k]);
      sconce_session_desc desc = {.model = p.model,
                                  .tokenizer = tokenizer,
                                  .sampler = samplers[i / 2],
                                  .lookup = k == AHEAD ? lookups[i % 2] : SCONCE_LOOKUP_OFF};
      desc.sampler.logprobs = k == PLAIN;
      CHECK_OK(sconce_session_open(&p.session[k], &desc, &err), err);
    }
    sconce_generate_desc desc = {.prompt = start, .n_prompt = 3, .ignore_end = true};
    struct shown whole = generate(&p, desc, 0); /* to the end of the context */
    desc.max_new = 6;
    generate(&p, desc, 0);
    desc.max_new = 0;
    generate(&p, desc, 5); /* the caller has enough */
    desc.ignore_end = false;
    generate(&p, desc, 0); /* an end id, if it comes */
    char stop[3] = {whole.bytes[7], whole.bytes[8], 0};
    desc.ignore_end = true;
    desc.stops = (const char *[]){stop};
    desc.n_stops = 1;
    generate(&p, desc, 0);
    desc.n_stops = 0;
    size_t n;
    int32_t ids[CONTEXT];
    const int32_t *so_far = sconce_session_ids(p.session[AHEAD], &n);
    memcpy(ids, so_far, n * sizeof *ids);
    desc.prompt = ids; /* and on from there */
    desc.n_prompt = n;
    desc.max_new = 4;
    generate(&p, desc, 0);
    desc.prompt = start;
    desc.n_prompt = 3;
    desc.max_new = 0;
    struct shown again = generate(&p, desc, 0);
    CHECK_TEXT(again.bytes, whole.bytes);
  }
  close_pair(&p);
  sconce_tokenizer_close(tokenizer);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static sconce_status around(sconce_session *s, int steps, sconce_error *err) {
  static const int32_t ids[] = {1, 5, 2, 3, 6, 7};
  TRY(sconce_session_prompt(s, ids, 1, NULL, NULL, err));
  for (int i = 0; i < steps; i++) {
    sconce_choice c;
    TRY(sconce_session_next(s, &c, err));
    if (i % 11 == 10) TRY(sconce_session_append(s, i % VOCAB, err));
    if (i % 17 == 16) TRY(sconce_session_choose(s, &c, err));
    if (sconce_session_describe(s)->position + 2 < CONTEXT && i % 13 != 12) continue;
    TRY(sconce_session_rewind(s, (uint32_t)i % 5, err));
    TRY(sconce_session_prompt(s, ids, 1 + (size_t)i % 6, NULL, NULL, err));
  }
  return SCONCE_OK;
}

static void a_thousand_steps(sconce_lookup lookup) {
  struct arena arena;
  struct span file = {0};
  sconce_error err = {0};
  struct test_allocator alloc;
  test_allocator_init(&alloc, 0);
  arena_init(&arena, NULL);
  sconce_device *device = NULL;
  sconce_model *model = NULL;
  sconce_session *session = NULL;
  sconce_device_desc on = {.allocator = alloc.hook};
  CHECK_OK(build(&arena, &file, &err), err);
  CHECK_OK(sconce_device_open(&device, &on, &err), err);
  sconce_model_desc desc = {.program = {.data = file.data, .size = file.size}};
  if (device) CHECK_OK(sconce_model_open(&model, device, &desc, &err), err);
  sconce_session_desc how = {.model = model,
                             .sampler = {.temperature = 1, .seed = 3, .allocator = alloc.hook},
                             .lookup = lookup,
                             .allocator = alloc.hook};
  if (model) CHECK_OK(sconce_session_open(&session, &how, &err), err);
  if (session) {
    CHECK_OK(around(session, 400, &err), err); /* each shape at least once */
    sconce_stats before, after;
    sconce_state_stats(sconce_session_state(session), &before);
    const uint64_t calls = alloc.calls;
    CHECK_OK(around(session, test_gpu_is_slow() ? 200 : 1000, &err), err);
    sconce_state_stats(sconce_session_state(session), &after);
    CHECK(alloc.calls - calls < IN_FLIGHT);
    CHECK_EQ(after.gpu_objects_made, before.gpu_objects_made);
    CHECK_EQ(after.gpu_kernels, before.gpu_kernels);
  }
  sconce_session_close(session);
  sconce_model_close(model);
  if (device) test_note_kernels(device->gpu);
  sconce_device_close(device);
  arena_free(&arena);
  CHECK_EQ(alloc.live, 0);
}

static void a_thousand_steps_allocate_nothing(void) {
  for (int i = 0; i < 2; i++) a_thousand_steps(lookups[i]);
}

static void a_lost_device_fails_the_next(void) {
  struct pair p;
  sconce_error err = {0};
  sconce_choice c;
  if (open_pair(&p, &samplers[1])) {
    prompt(&p, (int32_t[]){1, 2}, 2);
    next(&p, 3);
    gpu_lose(p.device->gpu);
    sconce_status status = SCONCE_OK;
    for (int i = 0; i < 4 && status == SCONCE_OK; i++) /* what was under way may still arrive */
      status = sconce_session_next(p.session[AHEAD], &c, &err);
    CHECK_EQ(status, SCONCE_DEVICE_LOST);
    CHECK_EQ(sconce_session_append(p.session[AHEAD], 1, &err), SCONCE_DEVICE_LOST);
  }
  close_pair(&p);
}

const struct test suite_session_ahead[] = {
    TEST(only_the_rows_that_are_wanted),
    TEST(next_is_choose_and_append),
    TEST(a_session_without_ids_has_no_next),
    TEST(other_calls_end_the_work_ahead),
    TEST(any_mixture_of_calls),
    TEST(a_penalty_and_logprobs_are_the_hosts),
    TEST(repetition_is_accepted),
    TEST(guesses_change_no_ids),
    TEST(a_stop_leaves_the_timeline_right),
    TEST(a_thousand_steps_allocate_nothing),
    TEST(a_lost_device_fails_the_next),
    {0},
};
