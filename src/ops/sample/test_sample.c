/* The sampler on the device against the one on the host: the same token, always. */
#include "op.h"

#include "base/half.h"
#include "sconce_llm.h"

struct settings {
  float temperature;
  uint32_t top_k;
  float top_p, min_p;
};

/* Greedy and drawn in turn: they share scratch memory. */
static const struct settings all_settings[] = {
    {0, 0, 0, 0},         {1, 0, 0, 0},     {0.8f, 40, 0, 0},       {0, 0, 0.9f, 0},
    {0.8f, 0, 0.9f, 0},   {1.5f, 1, 0, 0},  {0.7f, 0, 0, 0.05f},    {1.3f, 3, 0.6f, 0},
    {1, 50, 0.95f, 0.1f}, {30, 0, 0.5f, 0}, {0.05f, 0, 0.99f, 0},   {5, 1000, 0.999f, 0.001f},
    {1, 4, 1, 0},         {1, 0, 1e-9f, 0}, {1, 1u << 30, 0.1f, 0}, {1e6f, 0, 0.25f, 1},
};
enum { N_SETTINGS = sizeof all_settings / sizeof *all_settings, SCALARS = 8, TOKENS = 4 };

struct bench {
  struct op_test t;
  enum vk_dtype dtype;
  uint32_t vocab, rows;
  uint32_t x, ids, scalars[SCALARS], out, seen;
};

/* `binding`: bytes that a binding may have, or 0 for the device's own limit. as_gpu: on a software
 * device too the kernels are a GPU's. */
static bool bench_open_as(struct bench *b, enum vk_dtype dtype, uint32_t rows, uint32_t vocab,
                          uint64_t binding, bool as_gpu) {
  sconce_error err = {0};
  *b = (struct bench){.dtype = dtype, .vocab = vocab, .rows = rows};
  op_begin(&b->t);
  if (as_gpu) b->t.graph.caps.software = false;
  if (binding) b->t.graph.caps.max_storage_binding = binding;
  b->x = op_input(&b->t, dtype, DIMS(1, rows, vocab));
  b->ids = op_input(&b->t, VK_INT32, DIMS(1, 3));
  for (int i = 0; i < SCALARS; i++) b->scalars[i] = op_symint(&b->t);
  b->out = op_output(&b->t, VK_INT32, DIMS(1, TOKENS));
  b->seen = op_output(&b->t, VK_INT32, DIMS(1, 3));
  const uint32_t *s = b->scalars;
  op_node(&b->t, "sconce.sample.default",
          IDS(b->x, b->ids, s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], b->out));
  op_node(&b->t, "aten.clone.default", IDS(b->ids, op_null(&b->t), b->seen));
  sconce_status status = op_load(&b->t, NULL, &err);
  CHECK_OK(status, err);
  return status == SCONCE_OK;
}

static bool bench_open(struct bench *b, enum vk_dtype dtype, uint32_t rows, uint32_t vocab,
                       uint64_t binding) {
  return bench_open_as(b, dtype, rows, vocab, binding, false);
}

static int64_t bits_of(float value) {
  int32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* n: rows to choose from, 0: the last. */
static void set_scalars(struct bench *b, const struct settings *s, uint64_t seed, uint32_t at,
                        uint32_t n) {
  const int64_t numbers[SCALARS] = {(int32_t)(uint32_t)seed,
                                    (int32_t)(uint32_t)(seed >> 32),
                                    (int32_t)at,
                                    (int32_t)s->top_k,
                                    bits_of(s->temperature),
                                    bits_of(s->top_p),
                                    bits_of(s->min_p),
                                    n};
  for (int i = 0; i < SCALARS; i++) op_set_symint(&b->t, b->scalars[i], numbers[i]);
}

/* What the host chooses; -1: nothing. */
static int32_t expected(const struct bench *b, const double *logits, const struct settings *s,
                        uint64_t seed, uint32_t at) {
  sconce_error err = {0};
  sconce_sampler *sampler;
  sconce_choice choice = {.id = -2};
  sconce_sampler_desc desc = {b->vocab, s->temperature, s->top_k, s->top_p, s->min_p, .seed = seed};
  float *row = malloc(b->vocab * sizeof *row);
  for (uint32_t i = 0; i < b->vocab; i++) row[i] = (float)logits[i];
  CHECK_OK(sconce_sampler_open(&sampler, &desc, &err), err);
  (void)!sconce_sampler_choose(sampler, row, at, NULL, 0, &choice, &err);
  sconce_sampler_close(sampler);
  free(row);
  return choice.id;
}

/* Chooses from the last of `rows` rows of these logits, and compares. */
static void choose_one(struct bench *b, uint32_t rows, const double *logits,
                       const struct settings *s, uint64_t seed, uint32_t at, const char *why) {
  static const double ids[] = {-7, 11, 12};
  sconce_error err = {0};
  uint64_t n;
  int32_t want = expected(b, logits + (size_t)(rows - 1) * b->vocab, s, seed, at);
  op_set(&b->t, b->x, DIMS(1, rows, b->vocab), logits);
  op_set(&b->t, b->ids, DIMS(1, 3), ids);
  set_scalars(b, s, seed, at, 0);
  CHECK_OK(op_run(&b->t, &err), err);
  double got = *op_get(&b->t, b->out, &n);
  const double *seen = op_get(&b->t, b->seen, &n);
  if ((int32_t)got != want || (int32_t)seen[0] != (want < 0 ? 0 : want) || (int32_t)seen[1] != 11 ||
      (int32_t)seen[2] != 12)
    test_fail(
        __FILE__, __LINE__,
        "%s: %g, ids %g %g %g, want %d (%s, row %u of %u, temperature %g, top-k %u, top-p %g, "
        "min-p %g, seed %llu)",
        why, got, seen[0], seen[1], seen[2], want, b->dtype == VK_FLOAT16 ? "float16" : "float32",
        rows, b->vocab, (double)s->temperature, s->top_k, (double)s->top_p, (double)s->min_p,
        (unsigned long long)seed);
}

/* Few high ones and many low ones, as a model's, rounded to the dtype. */
static double *make_logits(enum vk_dtype dtype, uint64_t n, uint64_t seed) {
  double *values = test_values(dtype, n, seed);
  for (uint64_t i = 0; i < n; i++) {
    double v = 18 * values[i] * values[i] * values[i] - 2;
    values[i] = dtype == VK_FLOAT16 ? (double)half_to_float(half_from_float((float)v)) : (float)v;
  }
  return values;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void every_setting(void) {
  static const struct {
    uint32_t vocab, seeds, step; /* step: of the settings, since large ones take long */
  } sizes[] = {{1, 1, 1}, {5, 4, 1}, {257, 4, 1}, {4096, 2, 1}, {32000, 1, 2}, {128256, 1, 4}};
  for (size_t k = 0; k < 2 * sizeof sizes / sizeof *sizes && !test_failed(); k++) {
    struct bench b;
    enum vk_dtype dtype = k % 2 ? VK_FLOAT16 : VK_FLOAT32;
    uint32_t vocab = sizes[k / 2].vocab;
    double *logits = make_logits(dtype, vocab, k);
    bool open = bench_open(&b, dtype, 1, vocab, 0);
    const uint32_t step = sizes[k / 2].step * (test_gpu_is_slow() ? 2 : 1);
    for (uint32_t s = k % 2; open && s < N_SETTINGS; s += step)
      for (uint32_t seed = 0; seed < sizes[k / 2].seeds && !test_failed(); seed++)
        choose_one(&b, 1, logits, &all_settings[s], 0x9e3779b97f4a7c15u * (seed + k), seed + 5 * s,
                   "logits of a model");
    free(logits);
    op_end(&b.t);
  }
}

/* Whether and how many equal ones are kept depends on ids alone. */
static void equal_logits(void) {
  static const uint32_t levels[] = {1, 2, 7, 100};
  enum { VOCAB = 3003 };
  for (int half = 0; half < 2; half++) {
    struct bench b;
    double *logits = malloc(VOCAB * sizeof *logits);
    bool open = bench_open(&b, half ? VK_FLOAT16 : VK_FLOAT32, 1, VOCAB, 0);
    for (uint32_t l = 0; open && l < 4; l++) {
      for (uint32_t i = 0; i < VOCAB; i++)
        logits[i] = (double)(i * 2654435761u >> 7 & 0xffff) * levels[l] / 65536;
      for (uint32_t i = 0; i < VOCAB; i++) logits[i] = floor(logits[i]) - 3;
      for (uint32_t s = 0; s < N_SETTINGS && !test_failed(); s++)
        choose_one(&b, 1, logits, &all_settings[s], s * 77u + l, s, "equal logits");
    }
    free(logits);
    op_end(&b.t);
  }
}

static void last_row(void) {
  static const uint32_t lives[] = {5, 2, 3, 4};
  for (int k = 0; k < 8; k++) { /* 257: rows start at every alignment; 64 KiB: part of the tensor */
    struct bench b;
    enum vk_dtype dtype = k % 2 ? VK_FLOAT16 : VK_FLOAT32;
    uint32_t vocab = k % 4 < 2 ? 257 : 9001;
    double *logits = make_logits(dtype, 5 * (uint64_t)vocab, 31);
    bool open = bench_open_as(&b, dtype, 5, vocab, k % 4 < 2 ? 0 : 65536, k >= 4);
    for (uint32_t i = 0; open && i < 4; i++)
      for (uint32_t s = i; s < N_SETTINGS && !test_failed(); s += 3)
        choose_one(&b, lives[i], logits, &all_settings[s], i, s, "rows come and go");
    free(logits);
    op_end(&b.t);
  }
}

/* Each row has the bits of its own position, and the last one's token is the next id. */
static void choose_rows(struct bench *b, uint32_t rows, uint32_t n, const double *logits,
                        const struct settings *s, uint32_t at) {
  static const double ids[] = {-7, 11, 12};
  sconce_error err = {0};
  uint64_t n_out, n_seen;
  op_set(&b->t, b->x, DIMS(1, rows, b->vocab), logits);
  op_set(&b->t, b->ids, DIMS(1, 3), ids);
  set_scalars(b, s, 99, at, n);
  CHECK_OK(op_run(&b->t, &err), err);
  double got[TOKENS] = {0};
  const double *out = op_get(&b->t, b->out, &n_out);
  memcpy(got, out, (n_out < TOKENS ? n_out : TOKENS) * sizeof *got);
  const double *seen = op_get(&b->t, b->seen, &n_seen);
  const uint32_t there = rows < TOKENS ? rows : TOKENS, want_n = n < there ? n : there;
  CHECK_EQ(n_out, want_n);
  for (uint32_t i = 0; i < want_n && !test_failed(); i++) {
    const uint32_t row = rows - want_n + i;
    const int32_t want = expected(b, logits + (size_t)row * b->vocab, s, 99, at - (want_n - 1 - i));
    CHECK_EQ((int32_t)got[i], want);
    if (i + 1 == want_n) CHECK_EQ((int32_t)seen[0], want);
  }
}

static void several_rows(void) {
  static const uint32_t lives[][2] = {{5, 2}, {4, 4}, {2, 4}, {1, 3}, {5, 8}, {3, 1}};
  for (int k = 0; k < 4; k++) {
    struct bench b;
    enum vk_dtype dtype = k % 2 ? VK_FLOAT16 : VK_FLOAT32;
    uint32_t vocab = k < 2 ? 257 : 9001;
    double *logits = make_logits(dtype, 5 * (uint64_t)vocab, 13);
    bool open = bench_open(&b, dtype, 5, vocab, k < 2 ? 0 : 65536);
    for (uint32_t i = 0; open && i < sizeof lives / sizeof *lives; i++)
      for (uint32_t s = i % 4; s < N_SETTINGS && !test_failed(); s += 4)
        choose_rows(&b, lives[i][0], lives[i][1], logits, &all_settings[s], 7 + i);
    free(logits);
    op_end(&b.t);
  }
}

static void more_than_a_binding(void) {
  enum { VOCAB = 20001 };
  for (int half = 0; half < 2; half++) {
    struct bench b;
    enum vk_dtype dtype = half ? VK_FLOAT16 : VK_FLOAT32;
    double *logits = make_logits(dtype, 2 * VOCAB, 8);
    for (uint32_t i = VOCAB; i < 2 * VOCAB; i += 9) logits[i] = 14; /* equal ones in every part */
    bool open = bench_open(&b, dtype, 2, VOCAB, half ? 16384 : 32768);
    for (uint32_t s = (uint32_t)half; open && s < N_SETTINGS && !test_failed(); s += 2)
      choose_one(&b, 2 - s / 2 % 2, logits, &all_settings[s], s, s, "a row in parts");
    free(logits);
    op_end(&b.t);
  }
}

/* A vocabulary for which a capped device binds parts of 1 MiB, and a block is 2,048. */
static void largest_vocabulary(void) {
  enum { VOCAB = 300001 };
  struct bench b;
  double *logits = make_logits(VK_FLOAT32, VOCAB, 8);
  bool open = bench_open(&b, VK_FLOAT32, 1, VOCAB, 0);
  for (uint32_t s = 0; open && s < 10 && !test_failed(); s += 4)
    choose_one(&b, 1, logits, &all_settings[s], s, s, "300001 logits");
  free(logits);
  op_end(&b.t);
}

static void odd_numbers(void) {
  const double inf = (double)INFINITY, nan = (double)NAN;
  const struct {
    double logits[6]; /* among those of `rest` */
    double rest;
    float temperature;
    const char *why;
  } rows[] = {
      {{nan, nan, nan, nan, nan, nan}, nan, 1, "NaN alone"},
      {{-inf, nan, -inf, -inf, -inf, nan}, -inf, 1, "-inf and NaN alone"},
      {{nan, 2, 2, nan, 1, -inf}, nan, 1, "NaN never wins"},
      {{-inf, -inf, -inf, -5, -inf, -inf}, -inf, 1, "the only number"},
      {{0, 1, inf, 2, inf, 3}, 0, 1, "the first inf wins"},
      {{-0.0, 0, -0.0, 0, -0.0, 0}, -1, 1, "zeros are equal"},
      {{1, 3e38, 3e38, 0, 0, 0}, 0, 0.5f, "the temperature makes it inf"},
      {{-3e38, -3.1e38, -3e38, -inf, -inf, -inf}, -inf, 0.5f, "the temperature makes it -inf"},
      {{-3e38, 3e38, 2, 1, 0, -3e38}, -inf, 1, "differences beyond all numbers"},
      {{1, 1, 0.5, 1, 1, 1}, 0, 1e-40f, "a temperature that devices take for 0"},
      {{0, 1e-41, 0, 1e-41, 0, 0}, -1, 1e-3f, "logits that devices take for 0"},
      {{-90, -90, -2, -90, -90, -90}, -90, 1, "the others weigh nothing"},
  };
  static const uint8_t some[] = {0, 1, 2, 4, 8};
  enum { VOCAB = 3000 };
  for (int half = 0; half < 2; half++) {
    struct bench b;
    double *logits = malloc(VOCAB * sizeof *logits);
    bool open = bench_open(&b, half ? VK_FLOAT16 : VK_FLOAT32, 1, VOCAB, 0);
    for (size_t r = 0; open && r < sizeof rows / sizeof *rows; r++) {
      for (uint32_t i = 0; i < VOCAB; i++) logits[i] = rows[r].rest;
      for (uint32_t i = 0; i < 6; i++) logits[7 + i * 577] = rows[r].logits[i];
      for (uint32_t i = 0; half && i < VOCAB; i++) /* as the operator sees them */
        logits[i] = (double)half_to_float(half_from_float((float)logits[i]));
      for (uint32_t s = 0; s < sizeof some / sizeof *some && !test_failed(); s++) {
        struct settings settings = all_settings[some[s]];
        if (settings.temperature > 0) settings.temperature = rows[r].temperature;
        choose_one(&b, 1, logits, &settings, s + r, s, rows[r].why);
      }
    }
    free(logits);
    op_end(&b.t);
  }
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void refuses_numbers(void) {
  static const struct {
    struct settings s;
    const char *text;
  } rows[] = {
      {{-1, 0, 0, 0}, "temperature -1 is not in 0 to 1e+06"},
      {{NAN, 0, 0, 0}, "is not in 0 to 1e+06"},
      {{1, 0, 1.5f, 0}, "top_p 1.5 is not in 0 to 1"},
      {{1, 0, 0, -0.5f}, "min_p -0.5 is not in 0 to 1"},
  };
  struct bench b;
  const double logits[] = {0, 1, 2};
  sconce_error err = {0};
  if (bench_open(&b, VK_FLOAT32, 1, 3, 0)) {
    op_set(&b.t, b.x, DIMS(1, 1, 3), logits);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
      set_scalars(&b, &rows[i].s, 0, 0, 0);
      CHECK_EQ(op_run(&b.t, &err), SCONCE_BAD_ARGUMENT);
      CHECK(strstr(err.text, rows[i].text) != NULL);
    }
    op_set(&b.t, b.x, DIMS(1, 0, 3), logits);
    set_scalars(&b, &all_settings[0], 0, 0, 0);
    CHECK_EQ(op_run(&b.t, &err), SCONCE_BAD_ARGUMENT);
    CHECK(strstr(err.text, "nothing to choose from") != NULL);
    choose_one(&b, 1, logits, &all_settings[1], 3, 4, "after refusals");
  }
  op_end(&b.t);
}

static void refuses_tensors(void) {
  static const struct {
    enum vk_dtype x, ids;
    uint32_t vocab;
    uint64_t binding;
    const char *text;
  } rows[] = {
      {VK_INT32, VK_INT32, 4, 0,
       "a token of int32 [4] becomes int32 [1], and the first of int32 [2]"},
      {VK_FLOAT32, VK_FLOAT32, 4, 0, "and the first of float32 [2]"},
      {VK_FLOAT32, VK_INT32, 1 << 24, 0,
       "a vocabulary of 16777216, less than 16777216 are sampled"},
      {VK_FLOAT32, VK_INT32, 1 << 21, 16384, "in blocks of 8192, more than a binding holds"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    if (rows[i].binding) t.graph.caps.max_storage_binding = rows[i].binding;
    uint32_t x = op_input(&t, rows[i].x, DIMS(rows[i].vocab)), zero = op_int(&t, 0);
    uint32_t ids = op_input(&t, rows[i].ids, DIMS(2)), out = op_output(&t, VK_INT32, DIMS(1));
    op_node(&t, "sconce.sample.default",
            IDS(x, ids, zero, zero, zero, zero, zero, zero, zero, zero, out));
    CHECK_EQ(op_load(&t, NULL, &err), SCONCE_UNSUPPORTED);
    CHECK(strstr(err.text, rows[i].text) != NULL);
    op_end(&t);
  }
}

const struct test suite_sample[] = {TEST(every_setting),
                                    TEST(equal_logits),
                                    TEST(last_row),
                                    TEST(several_rows),
                                    TEST(more_than_a_binding),
                                    TEST(largest_vocabulary),
                                    TEST(odd_numbers),
                                    TEST(refuses_numbers),
                                    TEST(refuses_tensors),
                                    {0}};
