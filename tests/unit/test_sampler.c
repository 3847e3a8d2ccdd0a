/* The sampler against sorting and summing in double, and its generator against known answers. */
#include "harness.h"
#include "sconce_llm.h"

static int32_t choose(const sconce_sampler_desc *desc, const float *logits, uint64_t position,
                      const int32_t *history, size_t n_history) {
  sconce_sampler *s;
  sconce_choice c = {.id = -2};
  sconce_error err = {0};
  CHECK_OK(sconce_sampler_open(&s, desc, &err), err);
  if (s) CHECK_OK(sconce_sampler_choose(s, logits, position, history, n_history, &c, &err), err);
  sconce_sampler_close(s);
  return c.id;
}

/* Threefry-2x32-20's published answers: key and counter 0, all ones, digits of pi. */
static void generator_has_the_known_answers(void) {
  CHECK_EQ(sconce_random(0, 0), 0x6b200159);
  CHECK_EQ(sconce_random(UINT64_MAX, UINT64_MAX), 0x1cb996fc);
  CHECK_EQ(sconce_random(0x0370734413198a2e, 0x85a308d3243f6a88), 0xc4923a9c);
}

static void greedy_takes_the_first_of_equals(void) {
  float logits[] = {-1, 3, NAN, 3, 2, -INFINITY};
  CHECK_EQ(choose(&(sconce_sampler_desc){.n_vocab = 6}, logits, 0, NULL, 0), 1);
  CHECK_EQ(choose(&(sconce_sampler_desc){.n_vocab = 6, .temperature = 1, .top_k = 1}, logits, 9,
                  NULL, 0),
           1);
  logits[4] = INFINITY;
  CHECK_EQ(choose(&(sconce_sampler_desc){.n_vocab = 6, .temperature = 1}, logits, 9, NULL, 0), 4);
  float one[] = {-5};
  CHECK_EQ(choose(&(sconce_sampler_desc){.n_vocab = 1, .temperature = 2}, one, 0, NULL, 0), 0);
}

/* Which of n tokens were ever drawn, as a mask. */
static uint32_t drawn(sconce_sampler_desc desc, const float *logits) {
  uint32_t mask = 0;
  for (uint64_t position = 0; position < 600; position++) {
    int32_t id = choose(&desc, logits, position, NULL, 0);
    if (id >= 0) mask |= 1u << id;
  }
  return mask;
}

static void cuts_keep_whom_they_should(void) {
  /* probabilities 0.4, 0.3, 0.1, 0.1, 0.1 in the order 2, 0, then 1, 3, 4 equal */
  const float logits[] = {logf(0.3f), logf(0.1f), logf(0.4f), logf(0.1f), logf(0.1f)};
  static const struct {
    uint32_t top_k;
    float top_p, min_p;
    uint32_t mask;
    const char *why;
  } rows[] = {
      {0, 0, 0, 0x1f, "no cut"},
      {9, 0, 0, 0x1f, "more than there are"},
      {2, 0, 0, 0x05, "the best two"},
      {3, 0, 0, 0x07, "equals by lowest id"},
      {0, 0.39f, 0, 0x04, "the best one is enough"},
      {0, 0.5f, 0, 0x05, "the token that reaches the share stays"},
      {0, 0.75f, 0, 0x07, "equals by lowest id"},
      {0, 1, 0, 0x1f, "a share of 1 is no cut"},
      {0, 0, 0.7f, 0x05, "0.3 is 0.75 of 0.4"},
      {0, 0, 0.8f, 0x04, "and not 0.8"},
      {0, 0, 1, 0x04, "the best always stays"},
      {2, 0.55f, 0, 0x04, "the share is of what top-k left: 4/7"},
      {4, 0.9f, 0.2f, 0x0f, "all together"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    sconce_sampler_desc desc = {.n_vocab = 5,
                                .temperature = 1,
                                .top_k = rows[i].top_k,
                                .top_p = rows[i].top_p,
                                .min_p = rows[i].min_p};
    uint32_t got = drawn(desc, logits);
    if (got != rows[i].mask)
      test_fail(__FILE__, __LINE__, "%s: kept %x, want %x", rows[i].why, got, rows[i].mask);
  }
}

/* Frequencies over many positions follow the softmax at each temperature. */
static void draws_follow_the_softmax(void) {
  const float logits[] = {1, 0, 2, -1, 0.5f};
  static const float temperatures[] = {0.5f, 1, 3};
  enum { N = 5, DRAWS = 20000 };
  for (int t = 0; t < 3; t++) {
    double want[N], sum = 0;
    int count[N] = {0};
    for (int i = 0; i < N; i++) sum += want[i] = exp((double)logits[i] / (double)temperatures[t]);
    sconce_sampler *s;
    sconce_error err = {0};
    sconce_sampler_desc desc = {.n_vocab = N, .temperature = temperatures[t], .seed = 42};
    REQUIRE_OK(sconce_sampler_open(&s, &desc, &err), err);
    for (uint64_t p = 0; p < DRAWS; p++) {
      sconce_choice c;
      CHECK_OK(sconce_sampler_choose(s, logits, p, NULL, 0, &c, &err), err);
      count[c.id]++;
    }
    sconce_sampler_close(s);
    for (int i = 0; i < N; i++) /* four standard deviations at most */
      CHECK_NEAR((double)count[i] / (double)DRAWS, want[i] / sum, 4 * 0.5 / sqrt((double)DRAWS));
  }
}

/* The same seed and position: the same token, whatever was drawn before. Others differ. */
static void choices_depend_on_seed_and_position_only(void) {
  float logits[100] = {0};
  uint64_t state = 5;
  int changed = 0;
  for (int i = 0; i < 100; i++) logits[i] = test_random_float(&state);
  sconce_sampler *a, *b;
  sconce_error err = {0};
  sconce_sampler_desc desc = {
      .n_vocab = 100, .temperature = 1, .top_k = 60, .top_p = 0.95f, .seed = 1};
  REQUIRE_OK(sconce_sampler_open(&a, &desc, &err), err);
  desc.seed = 2;
  REQUIRE_OK(sconce_sampler_open(&b, &desc, &err), err);
  for (uint64_t p = 0; p < 50; p++) {
    sconce_choice first, again, other;
    CHECK_OK(sconce_sampler_choose(a, logits, p, NULL, 0, &first, &err), err);
    CHECK_OK(sconce_sampler_choose(a, logits, 49 - p, NULL, 0, &other, &err), err);
    CHECK_OK(sconce_sampler_choose(a, logits, p, NULL, 0, &again, &err), err);
    CHECK_EQ(first.id, again.id);
    CHECK_OK(sconce_sampler_choose(b, logits, p, NULL, 0, &other, &err), err);
    changed += first.id != other.id;
  }
  CHECK(changed > 40);
  sconce_sampler_close(a);
  sconce_sampler_close(b);
}

static void penalties_push_repeats_down(void) {
  const float logits[] = {2, 1.9f, -1, -1.1f};
  sconce_sampler_desc desc = {.n_vocab = 4, .repetition_penalty = 2};
  CHECK_EQ(choose(&desc, logits, 0, NULL, 0), 0);
  CHECK_EQ(choose(&desc, logits, 0, (int32_t[]){0}, 1), 1);
  CHECK_EQ(choose(&desc, logits, 0, (int32_t[]){0, 0, 0, 1}, 4), 0); /* once, not thrice */
  CHECK_EQ(choose(&desc, logits, 0, (int32_t[]){-1, 99, 0}, 3), 1);  /* foreign ids are ignored */
  desc.penalty_window = 2;
  CHECK_EQ(choose(&desc, logits, 0, (int32_t[]){0, 3, 3}, 3), 0);
  const float negative[] = {-1, -1.5f};
  desc.n_vocab = 2;
  CHECK_EQ(choose(&desc, negative, 0, (int32_t[]){0}, 1), 1);
}

static void logprobs_are_the_models_own(void) {
  const float logits[] = {1, 3, NAN, 2};
  sconce_sampler_desc desc = {
      .n_vocab = 4, .temperature = 0.3f, .top_k = 1, .logprobs = true, .repetition_penalty = 100};
  sconce_sampler *s;
  sconce_choice c;
  sconce_error err = {0};
  REQUIRE_OK(sconce_sampler_open(&s, &desc, &err), err);
  CHECK_OK(sconce_sampler_choose(s, logits, 0, (int32_t[]){1}, 1, &c, &err), err);
  CHECK_EQ(c.id, 3);
  CHECK_NEAR(c.logprob, 2 - log(exp(1) + exp(2) + exp(3)), 1e-6);
  sconce_sampler_close(s);
}

static void bad_descriptors_and_rows(void) {
  static const struct {
    sconce_sampler_desc desc;
    const char *fragment;
  } rows[] = {
      {{.n_vocab = 0}, "needs the number of logits"},
      {{.n_vocab = 4, .temperature = -1}, "temperature -1"},
      {{.n_vocab = 4, .temperature = NAN}, "temperature nan"},
      {{.n_vocab = 4, .top_p = 1.5f}, "top_p 1.5"},
      {{.n_vocab = 4, .min_p = -0.5f}, "min_p -0.5"},
      {{.n_vocab = 4, .repetition_penalty = -2}, "repetition_penalty -2"},
  };
  sconce_sampler *s;
  sconce_error err = {0};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    CHECK_FAILS(sconce_sampler_open(&s, &rows[i].desc, &err), SCONCE_BAD_ARGUMENT, err,
                rows[i].fragment);
  REQUIRE_OK(sconce_sampler_open(&s, &(sconce_sampler_desc){.n_vocab = 2}, &err), err);
  sconce_choice c;
  CHECK_FAILS(sconce_sampler_choose(s, (float[]){NAN, -INFINITY}, 0, NULL, 0, &c, &err),
              SCONCE_BAD_ARGUMENT, err, "none of 2 logits");
  CHECK_EQ(c.id, -1);
  sconce_sampler_close(s);
  sconce_sampler_close(NULL);
}

static void memory_is_taken_at_open_only(void) {
  struct test_allocator a;
  float logits[1000];
  uint64_t state = 1;
  sconce_error err = {0};
  sconce_sampler *s = NULL;
  for (int i = 0; i < 1000; i++) logits[i] = test_random_float(&state);
  for (uint64_t nth = 1; !s; nth++) {
    test_allocator_init(&a, nth);
    sconce_sampler_desc desc = {
        .n_vocab = 1000, .temperature = 1, .top_p = 0.9f, .allocator = a.hook};
    sconce_status status = sconce_sampler_open(&s, &desc, &err);
    CHECK_EQ(status, s ? SCONCE_OK : SCONCE_NO_MEMORY);
    if (!s) CHECK_EQ(a.live, 0);
  }
  uint64_t calls = a.calls;
  sconce_choice c;
  for (uint64_t p = 0; p < 20; p++)
    CHECK_OK(sconce_sampler_choose(s, logits, p, NULL, 0, &c, &err), err);
  CHECK_EQ(a.calls, calls);
  sconce_sampler_close(s);
  CHECK_EQ(a.live, 0);
}

const struct test suite_sampler[] = {
    TEST(generator_has_the_known_answers),
    TEST(greedy_takes_the_first_of_equals),
    TEST(cuts_keep_whom_they_should),
    TEST(draws_follow_the_softmax),
    TEST(choices_depend_on_seed_and_position_only),
    TEST(penalties_push_repeats_down),
    TEST(logprobs_are_the_models_own),
    TEST(bad_descriptors_and_rows),
    TEST(memory_is_taken_at_open_only),
    {0},
};
