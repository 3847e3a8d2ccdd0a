/* Committed models with each fusion switched off: the same results as with all of them. */
#include "gpu.h"

#include "run/device.h"
#include "sconce_llm.h"

#define STORIES "models/stories15M/stories15M-4w.pte"

static const char *const off[] = {NULL,   "join",   "swiglu", "residual",
                                  "norm", "rotary", "all",    "join,rotary"};
enum { OFF = sizeof off / sizeof *off };

struct fixture {
  sconce_device *device;
  sconce_model *model;
  sconce_method *method;
  sconce_state *state;
};

static sconce_status open_model(struct fixture *f, const char *name, const char *data,
                                const char *no_fusion, sconce_error *err) {
  *f = (struct fixture){0};
  char path[1024], data_path[1024];
  snprintf(path, sizeof path, "%s/%s", SCONCE_SOURCE_DIR, name);
  snprintf(data_path, sizeof data_path, "%s/%s", SCONCE_SOURCE_DIR, data ? data : "");
  TRY(sconce_device_open(&f->device, &(sconce_device_desc){.no_fusion = no_fusion}, err));
  const sconce_file extra = {.path = data_path};
  sconce_model_desc desc = {
      .program.path = path, .data_files = &extra, .n_data_files = data != NULL};
  TRY(sconce_model_open(&f->model, f->device, &desc, err));
  TRY(sconce_method_open(&f->method, f->model, NULL, err));
  return sconce_state_open(&f->state, f->method, err);
}

static void close_model(struct fixture *f) {
  sconce_state_close(f->state);
  sconce_method_close(f->method);
  sconce_model_close(f->model);
  if (f->device) {
    CHECK_EQ(gpu_stats(f->device->gpu)->buffers, 0);
    CHECK_EQ(gpu_stats(f->device->gpu)->groups, 0);
    test_note_kernels(f->device->gpu);
  }
  sconce_device_close(f->device);
}

static uint32_t nodes_of(const struct fixture *f) {
  sconce_stats stats = {0};
  sconce_state_stats(f->state, &stats);
  return stats.nodes;
}

/* ---- methods --------------------------------------------------------------------------------- */

enum { NUMBERS = 4096 };

/* All inputs at their largest dims, with small numbers that any dtype has. */
static sconce_status set_inputs(struct fixture *f, sconce_error *err) {
  const sconce_method_info *info = sconce_method_describe(f->method);
  static uint8_t zeros[NUMBERS * 8];
  static float floats[NUMBERS];
  for (uint32_t i = 0; i < NUMBERS; i++) floats[i] = (float)(i % 13) / 4 - 1;
  for (uint32_t i = 0; i < info->n_inputs; i++) {
    sconce_tensor t = info->inputs[i];
    if (t.rank == 0) continue; /* as it was exported */
    t.size = sconce_dtype_size(t.dtype);
    for (uint32_t d = 0; d < t.rank; d++) t.size *= t.dims[d];
    if (t.size > sizeof floats) return fail(err, SCONCE_UNSUPPORTED, "a large input");
    t.data = t.dtype == SCONCE_FLOAT32 ? (const void *)floats : zeros;
    TRY(sconce_state_set_input(f->state, i, &t, err));
  }
  return SCONCE_OK;
}

/* Appends what the outputs hold, as doubles; other dtypes than float32 by their bytes. */
static sconce_status run_once(struct fixture *f, double *out, size_t *n, sconce_error *err) {
  TRY(set_inputs(f, err));
  TRY(sconce_state_run(f->state, NULL, err));
  for (uint32_t i = 0; i < sconce_method_describe(f->method)->n_outputs; i++) {
    sconce_tensor t;
    TRY(sconce_state_output(f->state, i, &t, err));
    const size_t step = t.dtype == SCONCE_FLOAT32 ? 4 : 1;
    for (size_t at = 0; t.data && at < t.size && *n < NUMBERS; at += step) {
      float number;
      if (step == 4) memcpy(&number, (const uint8_t *)t.data + at, 4);
      out[(*n)++] = step == 4 ? (double)number : ((const uint8_t *)t.data)[at];
    }
  }
  return SCONCE_OK;
}

static void small_models(void) {
  static const char *const models[][2] = {
      {"tests/data/goldens/mul.pte", NULL},
      {"tests/data/goldens/toy.pte", NULL},
      {"tests/data/goldens/toy-static.pte", NULL},
      {"tests/data/cases/right/add/model.pte", NULL},
      {"tests/data/cases/right/add_int64/model.pte", NULL},
      {"tests/data/cases/right/chain/model.pte", NULL},
      {"tests/data/cases/right/mul_dynamic/model.pte", NULL},
      {"tests/data/format/delegated.pte", NULL},
      {"tests/data/format/delegated_ext.pte", "tests/data/format/delegated_ext.ptd"},
      {"tests/data/format/inline.pte", NULL},
      {"tests/data/format/every_kind.pte", NULL},
      {"tests/data/format/expansion.pte", NULL},
      {"tests/data/format/control.pte", NULL},
      {"tests/data/format/portable.pte", NULL},
      {"tests/data/format/weights.pte", "tests/data/format/weights.ptd"},
  };
  static const char *const some[] = {NULL, "join,swiglu,residual,norm,rotary", "all"};
  uint32_t ran = 0;
  for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
    double *want = calloc(2 * NUMBERS, sizeof *want), *got = want + NUMBERS;
    size_t n_want = 0;
    sconce_status first = SCONCE_OK;
    for (size_t k = 0; k < 3; k++) {
      struct fixture f;
      sconce_error err = {0};
      size_t n = 0;
      sconce_status status = open_model(&f, models[i][0], models[i][1], some[k], &err);
      if (status == SCONCE_OK) status = run_once(&f, k ? got : want, k ? &n : &n_want, &err);
      if (k == 0) first = status;
      if (status != first || (k && n != n_want))
        test_fail(__FILE__, __LINE__, "%s without '%s': %s (%s), %zu numbers, want %s, %zu",
                  models[i][0], some[k] ? some[k] : "", sconce_status_name(status), err.text, n,
                  sconce_status_name(first), n_want);
      for (size_t e = 0; k && e < n && !test_failed(); e++)
        if (got[e] != want[e]) CHECK_NEAR(got[e], want[e], 1e-4);
      close_model(&f);
    }
    ran += first == SCONCE_OK && n_want;
    free(want);
  }
  CHECK(ran >= 8);
}

/* ---- a language model ------------------------------------------------------------------------ */

enum { VOCAB = 32000, STEPS = 3, LOGITS = STEPS + 1 };

/* A prompt, steps of one id, and ids that the device chooses; the logits of each step. */
static sconce_status tell(struct fixture *f, float *logits, int32_t ids[2 * STEPS],
                          sconce_error *err) {
  static const int32_t story[] = {1, 9038, 2501, 263, 931};
  sconce_session *s = NULL;
  sconce_session_desc desc = {.model = f->model};
  TRY(sconce_session_open(&s, &desc, err));
  sconce_status status = sconce_session_prompt(s, story, 5, NULL, NULL, err);
  for (int i = 0; i <= STEPS && status == SCONCE_OK; i++) {
    sconce_choice c = {.id = -1};
    memcpy(logits + (size_t)i * VOCAB, sconce_session_logits(s), VOCAB * sizeof *logits);
    if (i == STEPS) break;
    status = sconce_session_choose(s, &c, err);
    if (status == SCONCE_OK) status = sconce_session_append(s, c.id, err);
    ids[i] = c.id;
  }
  for (int i = 0; i < STEPS && status == SCONCE_OK; i++) {
    sconce_choice c = {.id = -1};
    status = sconce_session_next(s, &c, err);
    ids[STEPS + i] = c.id;
  }
  sconce_session_close(s);
  return status;
}

static void a_language_model(void) {
  float *want = malloc(2 * (size_t)LOGITS * VOCAB * sizeof *want), *got = want + LOGITS * VOCAB;
  int32_t ids[2][2 * STEPS] = {{0}, {0}};
  uint32_t nodes = 0;
  REQUIRE(want != NULL);
  for (size_t i = 0; i < OFF && !test_failed(); i++) {
    struct fixture f;
    sconce_error err = {0};
    if (test_gpu_is_slow() && off[i] && strcmp(off[i], "all") != 0) continue;
    CHECK_OK(open_model(&f, STORIES, NULL, off[i], &err), err);
    if (f.state) CHECK_OK(tell(&f, i ? got : want, ids[i != 0], &err), err);
    if (f.state && i == 0) nodes = nodes_of(&f);
    const char *variable = getenv("SCONCE_NO_FUSION");
    const bool all_on = !variable || !*variable;
    /* Without swiglu its two projections are still joined: more nodes, but not in every model. */
    if (f.state && off[i] && all_on && strcmp(off[i], "swiglu") != 0) CHECK(nodes_of(&f) > nodes);
    double worst = 0;
    for (size_t e = 0; i && e < (size_t)LOGITS * VOCAB; e++)
      worst = fmax(worst, fabs((double)got[e] - (double)want[e]));
    if (!(worst <= 1e-4))
      test_fail(__FILE__, __LINE__, "without '%s': logits differ by %g", off[i], worst);
    if (i) CHECK(memcmp(ids[1], ids[0], sizeof *ids) == 0);
    close_model(&f);
  }
  free(want);
}

/* The environment's words and the descriptor's add up; the environment's are checked too. */
static void the_environment_switches_fusions_off(void) {
  if (test_gpu_is_slow()) {
    test_skip("five loads of a model take half a minute here");
    return;
  }
  const char *before = getenv("SCONCE_NO_FUSION");
  char kept[256];
  snprintf(kept, sizeof kept, "%s", before ? before : "");
  static const struct {
    const char *variable, *desc;
  } rows[] = {{"", NULL}, {"", "norm"}, {"norm", NULL}, {"residual", "norm"}, {"all", ""}};
  uint32_t nodes[5] = {0};
  for (size_t i = 0; i < 5; i++) {
    struct fixture f;
    sconce_error err = {0};
    test_set_env("SCONCE_NO_FUSION", rows[i].variable);
    CHECK_OK(open_model(&f, STORIES, NULL, rows[i].desc, &err), err);
    if (f.state) nodes[i] = nodes_of(&f);
    close_model(&f);
  }
  CHECK(nodes[0] < nodes[1] && nodes[1] == nodes[2] && nodes[2] < nodes[3] && nodes[3] < nodes[4]);
  sconce_device *device;
  sconce_error err = {0};
  test_set_env("SCONCE_NO_FUSION", "norm,gravity");
  CHECK_FAILS(sconce_device_open(&device, NULL, &err), SCONCE_BAD_ARGUMENT, err,
              "no fusion is called 'gravity'");
  test_set_env("SCONCE_NO_FUSION", before ? kept : NULL);
}

const struct test suite_fusion[] = {
    TEST(small_models), TEST(a_language_model), TEST(the_environment_switches_fusions_off), {0}};
