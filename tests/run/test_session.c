/* Sessions on the toy models (logits = token row + position row, no state) and, where keys and
 * values matter, on the shipped stories15M. */
#include "session_fixture.h"

#include "base/utf8.h"

/* ---- ids in, logits out ---------------------------------------------------------------------- */

/* The toy's golden: the rows of `prompt` lie at the start of its .bin, 8 floats a token. */
static void check_golden(struct fixture *f, const char *bin, size_t row) {
  size_t size;
  unsigned char *golden = test_read(bin, &size);
  const float *logits = sconce_session_logits(f->session);
  CHECK(logits != NULL);
  for (size_t i = 0; golden && logits && i < 8; i++) {
    float want;
    memcpy(&want, golden + (row * 8 + i) * 4, 4);
    CHECK_NEAR(logits[i], want, 1e-5);
  }
  free(golden);
}

static void logits_are_the_goldens(void) {
  struct fixture f;
  sconce_error err = {0};
  if (open_all(&f, TOY)) {
    const sconce_session_info *info = sconce_session_describe(f.session);
    CHECK(info->n_vocab == 8 && info->chunk == 7 && info->context == 8 && info->position == 0);
    CHECK(sconce_session_logits(f.session) == NULL);
    CHECK_OK(sconce_session_prompt(f.session, (int32_t[]){1, 5, 2}, 3, NULL, NULL, &err), err);
    check_golden(&f, "goldens/toy.golden.bin", 2);
    CHECK_OK(sconce_session_append(f.session, 7, &err), err);
    check_golden(&f, "goldens/toy.golden.bin", 3);
    CHECK_EQ(position(&f), 4);
  }
  close_all(&f);
}

static void a_static_model_takes_one_id_a_call(void) {
  struct fixture f;
  sconce_error err = {0};
  if (open_all(&f, TOY_STATIC)) {
    CHECK_EQ(sconce_session_describe(f.session)->chunk, 1);
    CHECK_OK(sconce_session_prompt(f.session, (int32_t[]){1, 5}, 2, NULL, NULL, &err), err);
    check_golden(&f, "goldens/toy-static.golden.bin", 1);
    CHECK_FAILS(sconce_session_append(f.session, 2, &err), SCONCE_BAD_ARGUMENT, err,
                "the context is full: 1 ids at position 2 of 2");
    check_golden(&f, "goldens/toy-static.golden.bin", 1);
  }
  close_all(&f);
}

struct seen {
  size_t calls, done, all;
};
static bool note(void *user, size_t done, size_t all) {
  struct seen *seen = user;
  *seen = (struct seen){seen->calls + 1, done, all};
  return true;
}

static void a_prompt_longer_than_a_call_comes_in_chunks(void) {
  static const int32_t ids[8] = {1, 2, 3, 4, 5, 6, 7, 0};
  struct fixture f;
  sconce_error err = {0};
  if (open_all(&f, TOY)) {
    struct seen seen = {0};
    CHECK_OK(sconce_session_prompt(f.session, ids, 8, note, &seen, &err), err);
    CHECK(seen.calls == 2 && seen.done == 8 && seen.all == 8);
    float chunked[8], single[8];
    memcpy(chunked, sconce_session_logits(f.session), sizeof chunked);
    CHECK_OK(sconce_session_rewind(f.session, 0, &err), err);
    for (int i = 0; i < 8; i++) CHECK_OK(sconce_session_append(f.session, ids[i], &err), err);
    memcpy(single, sconce_session_logits(f.session), sizeof single);
    CHECK(memcmp(chunked, single, sizeof single) == 0);
    CHECK_FAILS(sconce_session_append(f.session, 1, &err), SCONCE_BAD_ARGUMENT, err,
                "the context is full: 1 ids at position 8 of 8");
    CHECK_EQ(position(&f), 8);
  }
  close_all(&f);
}

static void what_two_prompts_share_is_kept(void) {
  static const struct {
    size_t n;
    int32_t ids[6];
    size_t fed; /* ids that the model must see again */
    const char *why;
  } rows[] = {
      {3, {1, 5, 2}, 3, "the first"},
      {5, {1, 5, 2, 7, 3}, 2, "goes on"},
      {5, {1, 5, 2, 7, 3}, 0, "the same, its logits are there"},
      {4, {1, 5, 2, 7}, 1, "shorter: the last id's logits are gone"},
      {4, {1, 5, 6, 7}, 2, "turns off in the middle"},
      {2, {3, 3}, 2, "nothing in common"},
  };
  struct fixture f;
  sconce_error err = {0};
  bool ok = open_all(&f, TOY);
  for (size_t i = 0; ok && i < sizeof rows / sizeof *rows; i++) {
    struct seen seen = {0};
    CHECK_OK(sconce_session_prompt(f.session, rows[i].ids, rows[i].n, note, &seen, &err), err);
    if (seen.all != rows[i].fed)
      test_fail(__FILE__, __LINE__, "%s: %zu ids fed, want %zu", rows[i].why, seen.all,
                rows[i].fed);
    size_t n;
    const int32_t *ids = sconce_session_ids(f.session, &n);
    CHECK(n == rows[i].n && memcmp(ids, rows[i].ids, n * sizeof *ids) == 0);
    CHECK(sconce_session_logits(f.session) != NULL);
  }
  close_all(&f);
}

static void a_rewind_forgets_and_draws_the_same_again(void) {
  struct fixture f;
  sconce_error err = {0};
  if (open_all(&f, TOY)) {
    reopen_session(&f, 1.5f, 9);
    int32_t first[6] = {0};
    for (int round = 0; round < 3; round++) {
      CHECK_OK(sconce_session_prompt(f.session, (int32_t[]){1, 5}, 2, NULL, NULL, &err), err);
      for (int i = 0; i < 6; i++) {
        sconce_choice c = {0};
        CHECK_OK(sconce_session_choose(f.session, &c, &err), err);
        if (round == 0) first[i] = c.id;
        CHECK_EQ(c.id, first[i]);
        CHECK_OK(sconce_session_append(f.session, c.id, &err), err);
      }
      CHECK_FAILS(sconce_session_rewind(f.session, 9, &err), SCONCE_BAD_ARGUMENT, err,
                  "rewind to 9, the session is at 8");
      CHECK_OK(sconce_session_rewind(f.session, 1, &err), err);
      CHECK(position(&f) == 1 && sconce_session_logits(f.session) == NULL);
      sconce_choice c;
      CHECK_FAILS(sconce_session_choose(f.session, &c, &err), SCONCE_BAD_ARGUMENT, err,
                  "there are no logits to choose from");
      CHECK_OK(sconce_session_rewind(f.session, 0, &err), err);
    }
  }
  close_all(&f);
}

static void wrong_calls_change_nothing(void) {
  struct fixture f;
  sconce_error err = {0};
  if (open_all(&f, TOY)) {
    sconce_session *s = f.session;
    CHECK_OK(sconce_session_prompt(s, (int32_t[]){1, 5, 2}, 3, NULL, NULL, &err), err);
    CHECK_FAILS(sconce_session_append(s, 8, &err), SCONCE_BAD_ARGUMENT, err,
                "id 0 is 8, the vocabulary has 8");
    CHECK_FAILS(sconce_session_append(s, -1, &err), SCONCE_BAD_ARGUMENT, err, "id 0 is -1");
    CHECK_FAILS(sconce_session_prompt(s, (int32_t[]){1, 3, 99}, 3, NULL, NULL, &err),
                SCONCE_BAD_ARGUMENT, err, "id 2 is 99");
    CHECK_FAILS(sconce_session_prompt(s, (int32_t[9]){0}, 9, NULL, NULL, &err), SCONCE_BAD_ARGUMENT,
                err, "a prompt of 9 ids, the context has 8 positions");
    CHECK_FAILS(sconce_session_prompt(s, NULL, 0, NULL, NULL, &err), SCONCE_BAD_ARGUMENT, err,
                "at least one id");
    CHECK_EQ(position(&f), 3);
    check_golden(&f, "goldens/toy.golden.bin", 2);
    sconce_session *none;
    CHECK_FAILS(sconce_session_open(&none, &(sconce_session_desc){0}, &err), SCONCE_BAD_ARGUMENT,
                err, "NULL");
  }
  close_all(&f);
}

static void other_methods_are_no_language_models(void) {
  struct fixture f;
  sconce_error err = {0};
  CHECK_OK(open_method(&f, "tests/data/goldens/mul.pte", NULL, &err), err);
  if (f.method) {
    CHECK_FAILS(open_session(&f, 0, 0, NULL, &err), SCONCE_UNSUPPORTED, err, "input 0 is no row");
    CHECK(f.session == NULL);
  }
  close_all(&f);
}

/* ---- generation ------------------------------------------------------------------------------ */

struct shown {
  char bytes[512];
  size_t size, calls, refuse_at;
};

static bool is_whole(const char *text, size_t size) {
  for (const char *p = text, *end = text + size; p < end;) {
    struct utf8_char c = utf8_decode(p, end);
    if (c.state != UTF8_OK) return false;
    p += c.size;
  }
  return true;
}

static bool collect(void *user, const char *text, size_t size, sconce_choice choice) {
  (void)choice;
  struct shown *t = user;
  CHECK(is_whole(text, size));
  if (t->size + size < sizeof t->bytes) memcpy(t->bytes + t->size, text, size), t->size += size;
  return ++t->calls != t->refuse_at;
}

static sconce_generate_result generate(struct fixture *f, struct shown *t, uint32_t max_new,
                                       const char *const *stops, size_t n_stops) {
  sconce_error err = {0};
  sconce_generate_result r = {0};
  sconce_generate_desc desc = {.prompt = (int32_t[]){1},
                               .n_prompt = 1,
                               .max_new = max_new,
                               .stops = stops,
                               .n_stops = n_stops,
                               .on_text = collect,
                               .user = t};
  CHECK_OK(sconce_session_generate(f->session, &desc, &r, &err), err);
  t->bytes[t->size] = 0;
  return r;
}

static void generation_stops_at_the_context_the_count_and_the_caller(void) {
  struct fixture f;
  if (open_all(&f, TOY)) {
    reopen_session(&f, 2, 5);
    struct shown all = {0}, some = {0}, again = {0}, refused = {.refuse_at = 1};
    sconce_generate_result r = generate(&f, &all, 0, NULL, 0);
    CHECK_EQ(r.stop, SCONCE_STOP_CONTEXT);
    CHECK(r.n_new == 8 && position(&f) == 8 && r.n_prompt == 1 && r.n_reused == 0);
    r = generate(&f, &some, 4, NULL, 0);
    CHECK(r.stop == SCONCE_STOP_COUNT && r.n_new == 4);
    r = generate(&f, &again, 0, NULL, 0);
    CHECK_TEXT(again.bytes, all.bytes);
    r = generate(&f, &refused, 0, NULL, 0);
    CHECK(r.stop == SCONCE_STOP_CALLER && refused.calls == 1);
  }
  close_all(&f);
}

static bool collect_id(void *user, const char *text, size_t size, sconce_choice choice) {
  int32_t *told = user; /* how many, and they */
  CHECK(text && size == 0);
  told[++told[0]] = choice.id;
  return told[0] != 3;
}

static void generation_without_a_tokenizer_tells_ids(void) {
  struct fixture f;
  sconce_error err = {0};
  int32_t told[9] = {0};
  size_t n = 0;
  CHECK_OK(open_method(&f, TOY, NULL, &err), err);
  if (f.method) CHECK_OK(open_session(&f, 2, 5, NULL, &err), err);
  if (f.session) {
    sconce_generate_desc desc = {
        .prompt = (int32_t[]){1}, .n_prompt = 1, .on_text = collect_id, .user = told};
    CHECK_OK(sconce_session_generate(f.session, &desc, NULL, &err), err);
    const int32_t *ids = sconce_session_ids(f.session, &n);
    CHECK(n == 4 && told[0] == 3 && memcmp(told + 1, ids + 1, 3 * sizeof *ids) == 0);
    desc.stops = (const char *const[]){"x"}, desc.n_stops = 1;
    CHECK_FAILS(sconce_session_generate(f.session, &desc, NULL, &err), SCONCE_BAD_ARGUMENT, err,
                "stop strings need a tokenizer");
  }
  close_all(&f);
}

/* Polls and never waits, as a browser's page must. */
static sconce_status generate_in_steps(struct fixture *f, struct shown *out, uint32_t max_new,
                                       sconce_generate_result *r, sconce_error *err) {
  const int32_t prompt[] = {1};
  sconce_generate_desc desc = {
      .prompt = prompt, .n_prompt = 1, .max_new = max_new, .on_text = collect, .user = out};
  TRY(sconce_session_generate_begin(f->session, &desc, err));
  for (bool done = false; !done;) TRY(sconce_session_generate_poll(f->session, &done, r, err));
  return SCONCE_OK;
}

static void generation_in_steps_is_the_same(void) {
  struct fixture f;
  sconce_error err = {0};
  if (open_all(&f, TOY)) {
    for (int penalty = 0; penalty < 2; penalty++) { /* the device chooses, then the host */
      struct shown whole = {0}, steps = {0};
      sconce_generate_result a = {0}, b = {0};
      const sconce_sampler_desc sampler = {
          .temperature = 2, .seed = 5, .repetition_penalty = penalty ? 1.5f : 0};
      REQUIRE_OK(sconce_session_set_sampler(f.session, &sampler, &err), err);
      REQUIRE_OK(sconce_session_rewind(f.session, 0, &err), err);
      a = generate(&f, &whole, 0, NULL, 0);
      REQUIRE_OK(generate_in_steps(&f, &steps, 0, &b, &err), err);
      CHECK_TEXT(steps.bytes, whole.bytes);
      CHECK(a.stop == b.stop && a.n_new == b.n_new && b.n_new == 8);
    }
  }
  close_all(&f);
}

static void a_generation_keeps_others_out_until_it_ends(void) {
  struct fixture f;
  sconce_error err = {0};
  if (open_all(&f, TOY)) {
    const int32_t prompt[] = {1};
    const sconce_generate_desc desc = {.prompt = prompt, .n_prompt = 1};
    sconce_choice choice;
    bool done;
    sconce_session *s = f.session;
    CHECK_EQ(sconce_session_generate_poll(s, &done, NULL, &err), SCONCE_BAD_ARGUMENT);
    CHECK_TEXT(err.text, "no generation is under way");
    REQUIRE_OK(sconce_session_generate_begin(s, &desc, &err), err);
    CHECK_EQ(sconce_session_next(s, &choice, &err), SCONCE_BAD_ARGUMENT);
    CHECK_TEXT(err.text, "a generation is under way: poll it to its end, or cancel");
    CHECK_EQ(sconce_session_rewind(s, 0, &err), SCONCE_BAD_ARGUMENT);
    CHECK_EQ(sconce_session_generate_begin(s, &desc, &err), SCONCE_BAD_ARGUMENT);
    sconce_session_cancel(s);
    CHECK_EQ(sconce_session_generate_poll(s, &done, NULL, &err), SCONCE_CANCELLED);
    REQUIRE_OK(sconce_session_next(s, &choice, &err), err);
    /* Closed in the middle of one, nothing leaks. */
    REQUIRE_OK(sconce_session_generate_begin(s, &desc, &err), err);
    REQUIRE_OK(sconce_session_generate_poll(s, &done, NULL, &err), err);
  }
  close_all(&f);
}

static void the_seed_decides_the_text(void) {
  struct fixture f;
  if (open_all(&f, TOY)) {
    struct shown first = {0}, same = {0};
    reopen_session(&f, 3, 1);
    generate(&f, &first, 0, NULL, 0);
    reopen_session(&f, 3, 1);
    generate(&f, &same, 0, NULL, 0);
    CHECK_TEXT(same.bytes, first.bytes);
    size_t other = 0;
    for (uint64_t seed = 2; seed < 6; seed++) {
      struct shown t = {0};
      reopen_session(&f, 3, seed);
      generate(&f, &t, 0, NULL, 0);
      other += strcmp(t.bytes, first.bytes) != 0;
    }
    CHECK(other > 0);
  }
  close_all(&f);
}

/* Whatever the text is: each of its parts as a stop string cuts it where that part starts. */
static void check_stop(struct fixture *f, const char *whole, size_t from, size_t to) {
  char stop[64];
  memcpy(stop, whole + from, to - from);
  stop[to - from] = 0;
  const char *stops[] = {"never", stop, ""};
  struct shown t = {0};
  sconce_generate_result r = generate(f, &t, 0, stops, 3);
  size_t first = (size_t)(strstr(whole, stop) - whole);
  if (r.stop != SCONCE_STOP_TEXT || t.size != first || memcmp(t.bytes, whole, first) != 0)
    test_fail(__FILE__, __LINE__, "'%s' with stop '%s' gave '%s'", whole, stop, t.bytes);
}

/* It has a sentence that it will say again. */
static const char lily[] =
    "Once upon a time, there was a little girl named Lily. She loved to eat candy, especially mint "
    "candy. Lily asked the store owner, \"Can you please help me get the mint candy?\" The store "
    "owner "
    "said, \"Sure, but first you have to pay for it.\" Lily went to the cashier and said, \"Excuse "
    "me, "
    "can you please";

/* n ids behind the story, with this lookup; returns how many guesses were right. */
static uint64_t tell_on(struct fixture *f, const sconce_sampler_desc *way, sconce_lookup lookup,
                        const int32_t *story, size_t n_story, int32_t *out, uint32_t n) {
  sconce_error err = {0};
  sconce_session *session = NULL;
  const sconce_session_desc desc = {.model = f->model, .sampler = *way, .lookup = lookup};
  CHECK_OK(sconce_session_open(&session, &desc, &err), err);
  if (!session) return 0;
  CHECK_OK(sconce_session_prompt(session, story, n_story, NULL, NULL, &err), err);
  for (uint32_t i = 0; i < n && !test_failed(); i++) {
    sconce_choice choice = {.id = -1};
    CHECK_OK(sconce_session_next(session, &choice, &err), err);
    out[i] = choice.id;
  }
  const uint64_t accepted = sconce_session_describe(session)->accepted;
  sconce_session_close(session);
  return accepted;
}

static void a_story_that_repeats_itself(void) {
  enum { MOST = 12 };
  static const sconce_sampler_desc ways[] = {
      {.temperature = 0},
      {.temperature = 0.2f, .seed = 5, .top_p = 0.9f},
      {.temperature = 0.2f, .seed = 6, .repetition_penalty = 1.02f, .logprobs = true},
  };
  struct fixture f;
  sconce_error err = {0};
  sconce_tokenizer *tokenizer = NULL;
  const sconce_tokenizer_desc words = {.path =
                                           SCONCE_SOURCE_DIR "/models/stories15M/tokenizer.bin"};
  CHECK_OK(sconce_tokenizer_open(&tokenizer, &words, &err), err);
  const int32_t *story = NULL;
  size_t n_story = 0;
  if (tokenizer)
    CHECK_OK(sconce_tokenizer_encode(tokenizer, lily, strlen(lily), SCONCE_ENCODE_BOS, &story,
                                     &n_story, &err),
             err);
  uint64_t accepted = 0;
  const bool open = open_all(&f, STORIES);
  for (size_t i = 0; open && i < (test_gpu_is_slow() ? 1 : 3) && !test_failed(); i++) {
    const uint32_t n = test_gpu_is_slow() ? 10 : MOST;
    int32_t want[MOST], got[MOST];
    CHECK_EQ(tell_on(&f, &ways[i], SCONCE_LOOKUP_OFF, story, n_story, want, n), 0);
    accepted += tell_on(&f, &ways[i], SCONCE_LOOKUP_ALWAYS, story, n_story, got, n);
    for (uint32_t k = 0; k < n && !test_failed(); k++)
      CHECK_SAYS(got[k] == want[k], "way %u: id %u is %d, want %d", (unsigned)i, k, (int)got[k],
                 (int)want[k]);
  }
  CHECK_SAYS(accepted > 4, "%u guesses were right", (unsigned)accepted);
  sconce_tokenizer_close(tokenizer);
  close_all(&f);
}

static void stop_strings_are_held_back(void) {
  struct fixture f;
  bool ok = open_all(&f, TOY);
  for (uint64_t seed = 1; ok && seed <= 4; seed++) {
    reopen_session(&f, 3, seed);
    struct shown whole = {0};
    generate(&f, &whole, 0, NULL, 0);
    size_t n = whole.size < 12 ? whole.size : 12;
    for (size_t from = 0; from < n; from++)
      for (size_t to = from + 1; to <= n; to++)
        if (is_whole(whole.bytes + from, to - from)) check_stop(&f, whole.bytes, from, to);
    struct shown almost = {0};
    char longer[520]; /* the whole text is held as the start of this, and comes at the end */
    snprintf(longer, sizeof longer, "%s!", whole.bytes);
    generate(&f, &almost, 0, (const char *[]){longer}, 1);
    CHECK_TEXT(almost.bytes, whole.bytes);
  }
  close_all(&f);
}

static void wrong_generations_say_what(void) {
  struct fixture f;
  sconce_error err = {0};
  if (open_all(&f, TOY)) {
    static char big[1026];
    memset(big, 'x', sizeof big - 1);
    sconce_generate_desc desc = {
        .prompt = (int32_t[]){1}, .n_prompt = 1, .stops = (const char *[]){big}, .n_stops = 1};
    CHECK_FAILS(sconce_session_generate(f.session, &desc, NULL, &err), SCONCE_BAD_ARGUMENT, err,
                "stop string 0 is NULL or longer than 1024 bytes");
    desc.n_stops = 0;
    desc.n_prompt = 0;
    CHECK_FAILS(sconce_session_generate(f.session, &desc, NULL, &err), SCONCE_BAD_ARGUMENT, err,
                "at least one id");
    desc.prompt = NULL;
    desc.n_prompt = 2;
    CHECK_FAILS(sconce_session_generate(f.session, &desc, NULL, &err), SCONCE_BAD_ARGUMENT, err,
                "prompt is NULL");
  }
  close_all(&f);
}

/* An end id stops the text and is not part of it, unless the caller wants to go on. */
static void end_ids_stop(void) {
  struct fixture f;
  sconce_error err = {0};
  if (open_all(&f, TOY)) {
    CHECK_OK(sconce_session_prompt(f.session, (int32_t[]){1}, 1, NULL, NULL, &err), err);
    sconce_choice next = {0};
    CHECK_OK(sconce_session_choose(f.session, &next, &err), err);
    sconce_tokenizer_close(f.tokenizer);
    f.tokenizer = NULL;
    CHECK_OK(open_tokenizer(&f.tokenizer, next.id, &err), err);
    reopen_session(&f, 0, 0);
    struct shown t = {0};
    sconce_generate_result r = generate(&f, &t, 0, NULL, 0);
    CHECK(r.stop == SCONCE_STOP_END && r.n_new == 0 && t.size == 0 && position(&f) == 1);
    sconce_generate_desc on = {.prompt = (int32_t[]){1}, .n_prompt = 1, .ignore_end = true};
    CHECK_OK(sconce_session_generate(f.session, &on, &r, &err), err);
    CHECK(r.stop == SCONCE_STOP_CONTEXT && r.n_new == 8);
    CHECK_EQ(r.n_reused, 1); /* the first generation's prompt and its logits */
  }
  close_all(&f);
}

/* ---- with keys and values -------------------------------------------------------------------- */

static const int32_t story[] = {1, 9038, 2501, 263, 931, 29892, 727, 471};
enum { N_STORY = sizeof story / sizeof *story };

static int32_t choose(struct fixture *f) {
  sconce_error err = {0};
  sconce_choice c = {.id = -1};
  CHECK_OK(sconce_session_choose(f->session, &c, &err), err);
  return c.id;
}

static double distance(const float *a, const float *b, size_t n) {
  double worst = 0;
  for (size_t i = 0; i < n; i++) worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
  return worst;
}

static void parts_of_a_prompt_give_the_logits_of_the_whole(void) {
  struct fixture f;
  sconce_error err = {0};
  float *whole = malloc(32000 * sizeof *whole);
  if (whole && open_all(&f, STORIES)) {
    CHECK_EQ(sconce_session_describe(f.session)->n_vocab, 32000);
    CHECK_OK(sconce_session_prompt(f.session, story, N_STORY, NULL, NULL, &err), err);
    memcpy(whole, sconce_session_logits(f.session), 32000 * sizeof *whole);
    CHECK_EQ(choose(&f), 263); /* the golden's next id */
    CHECK_OK(sconce_session_rewind(f.session, 0, &err), err);
    static const size_t parts[] = {3, 4, 7, N_STORY};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
      CHECK_OK(sconce_session_prompt(f.session, story, parts[i], NULL, NULL, &err), err);
    CHECK_EQ(choose(&f), 263);
    /* Kernels for one row and for many add in different orders. */
    CHECK_NEAR(distance(whole, sconce_session_logits(f.session), 32000), 0, 1e-3);
  }
  close_all(&f);
  free(whole);
}

static void a_saved_session_goes_on_the_same(void) {
  struct fixture f;
  sconce_error err = {0};
  char path[TEST_PATH_MAX];
  test_temporary(path, "");
  if (open_all(&f, STORIES)) {
    CHECK_OK(sconce_session_prompt(f.session, story, 5, NULL, NULL, &err), err);
    CHECK_OK(sconce_session_save(f.session, path, &err), err);
    for (size_t i = 5; i < N_STORY; i++) {
      CHECK_EQ(choose(&f), story[i]);
      CHECK_OK(sconce_session_append(f.session, story[i], &err), err);
    }
    CHECK_OK(sconce_session_rewind(f.session, 0, &err), err); /* and write over the state */
    CHECK_OK(sconce_session_prompt(f.session, (int32_t[]){1, 3118, 2462}, 3, NULL, NULL, &err),
             err);
    CHECK_OK(sconce_session_load(f.session, path, &err), err);
    CHECK(position(&f) == 5 && sconce_session_logits(f.session) == NULL);
    struct seen seen = {0};
    CHECK_OK(sconce_session_prompt(f.session, story, 6, note, &seen, &err), err);
    CHECK_EQ(seen.all, 1);
    CHECK_EQ(choose(&f), story[6]);
  }
  close_all(&f);
  remove(path);
}

/* Up to the last position, after a call that took more than half; one more id is refused. */
static void the_context_can_be_filled(void) {
  enum { CONTEXT = 256, MOST = 250, KEPT = 251 };
  if (test_gpu_is_slow()) {
    test_skip("a prompt of 250 ids takes minutes here");
    return;
  }
  struct fixture f;
  sconce_error err = {0};
  int32_t ids[CONTEXT + 1];
  float *stepwise = malloc(32000 * sizeof *stepwise);
  for (int i = 0; i <= CONTEXT; i++) ids[i] = i < N_STORY ? story[i] : 300 + i * 37 % 4000;
  if (stepwise && open_all(&f, STORIES)) {
    CHECK_EQ(sconce_session_describe(f.session)->context, CONTEXT);
    const uint32_t kernels = gpu_stats(f.device->gpu)->kernels;
    CHECK_OK(sconce_session_prompt(f.session, ids, MOST, NULL, NULL, &err), err);
    for (int i = MOST; i < CONTEXT; i++)
      CHECK_OK(sconce_session_append(f.session, ids[i], &err), err);
    CHECK_EQ(position(&f), CONTEXT);
    CHECK_FAILS(sconce_session_append(f.session, 1, &err), SCONCE_BAD_ARGUMENT, err,
                "the context is full: 1 ids at position 256 of 256");
    CHECK_FAILS(sconce_session_prompt(f.session, ids, CONTEXT + 1, NULL, NULL, &err),
                SCONCE_BAD_ARGUMENT, err, "a prompt of 257 ids, the context has 256 positions");
    memcpy(stepwise, sconce_session_logits(f.session), 32000 * sizeof *stepwise);
    CHECK_OK(sconce_session_rewind(f.session, KEPT, &err), err); /* the last few in one call */
    CHECK_OK(sconce_session_prompt(f.session, ids, CONTEXT, NULL, NULL, &err), err);
    CHECK_NEAR(distance(stepwise, sconce_session_logits(f.session), 32000), 0, 1e-3);
    CHECK_EQ(gpu_stats(f.device->gpu)->kernels, kernels); /* the load foresaw all */
  }
  close_all(&f);
  free(stepwise);
}

/* Prompts of any length, steps at any depth, tokens chosen in any way: the load foresaw them. */
/* The position is a scalar of the plan, the id is there already: only parameters are sent. */
static void check_writes(struct fixture *f) {
  sconce_error err = {0};
  sconce_choice c;
  CHECK_OK(sconce_session_next(f->session, &c, &err), err);
  const uint64_t before = gpu_stats(f->device->gpu)->writes;
  for (int i = 0; i < 3 && !test_failed(); i++)
    CHECK_OK(sconce_session_next(f->session, &c, &err), err);
  CHECK_EQ(gpu_stats(f->device->gpu)->writes, before + 3);
}

/* A software device leaves the kernels of long prompts to the first one. */
static void a_software_device_compiles_for_short_prompts(void) {
  sconce_error err = {0};
  struct fixture f = {0};
  const sconce_model_desc desc = {.program.path = SCONCE_SOURCE_DIR "/" STORIES};
  REQUIRE_OK(sconce_device_open(&f.device, NULL, &err), err);
  const bool few = gpu_compiles_slowly(f.device->gpu);
  CHECK_OK(sconce_model_open(&f.model, f.device, &desc, &err), err);
  if (f.model) CHECK_OK(open_session(&f, 0, 0, NULL, &err), err);
  if (f.session) {
    int32_t ids[100];
    for (int i = 0; i < 100; i++) ids[i] = 300 + i;
    const uint32_t kernels = gpu_stats(f.device->gpu)->kernels;
    CHECK_OK(sconce_session_prompt(f.session, ids, 16, NULL, NULL, &err), err);
    CHECK_OK(sconce_session_append(f.session, ids[16], &err), err);
    CHECK_EQ(gpu_stats(f.device->gpu)->kernels, kernels);
    CHECK_OK(sconce_session_rewind(f.session, 0, &err), err);
    CHECK_OK(sconce_session_prompt(f.session, ids, 100, NULL, NULL, &err), err);
    CHECK_EQ(gpu_stats(f.device->gpu)->kernels > kernels, few);
  }
  close_all(&f);
}

static void nothing_is_compiled_after_the_load_and_little_written(void) {
  struct fixture f;
  sconce_error err = {0};
  if (open_all(&f, STORIES)) {
    const uint32_t kernels = gpu_stats(f.device->gpu)->kernels;
    CHECK(kernels > 10);
    for (int drawn = 0; drawn < 2; drawn++) {
      reopen_session(&f, drawn ? 0.8f : 0, 15);
      for (size_t n = 1; n <= N_STORY && !test_failed(); n += test_gpu_is_slow() ? 9 : 3) {
        sconce_choice c;
        CHECK_OK(sconce_session_rewind(f.session, 0, &err), err);
        CHECK_OK(sconce_session_prompt(f.session, story, n, NULL, NULL, &err), err);
        CHECK_OK(sconce_session_next(f.session, &c, &err), err);
        CHECK_OK(sconce_session_next(f.session, &c, &err), err);
      }
    }
    CHECK_EQ(gpu_stats(f.device->gpu)->kernels, kernels);
    check_writes(&f);
  }
  close_all(&f);
}

const struct test suite_session[] = {
    TEST(logits_are_the_goldens),
    TEST(a_static_model_takes_one_id_a_call),
    TEST(a_prompt_longer_than_a_call_comes_in_chunks),
    TEST(what_two_prompts_share_is_kept),
    TEST(a_rewind_forgets_and_draws_the_same_again),
    TEST(wrong_calls_change_nothing),
    TEST(other_methods_are_no_language_models),
    TEST(generation_stops_at_the_context_the_count_and_the_caller),
    TEST(generation_without_a_tokenizer_tells_ids),
    TEST(generation_in_steps_is_the_same),
    TEST(a_generation_keeps_others_out_until_it_ends),
    TEST(the_seed_decides_the_text),
    TEST(a_story_that_repeats_itself),
    TEST(stop_strings_are_held_back),
    TEST(wrong_generations_say_what),
    TEST(end_ids_stop),
    TEST(parts_of_a_prompt_give_the_logits_of_the_whole),
    TEST(a_saved_session_goes_on_the_same),
    TEST(the_context_can_be_filled),
    TEST(a_software_device_compiles_for_short_prompts),
    TEST(nothing_is_compiled_after_the_load_and_little_written),
    {0},
};
