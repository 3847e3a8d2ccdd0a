/* What sconce inspect promises and what a load takes, and every real file in every form. */
#include "examples.h"
#include "report.h"

/* ---- GPU memory ------------------------------------------------------------------------------ */

static void compare_load(const char *path, const void *data, size_t size) {
  struct report r;
  sconce_device *device;
  sconce_model *model = NULL;
  sconce_method *method = NULL;
  sconce_state *state = NULL;
  sconce_error err = {0};
  const sconce_file file = {.path = path, .data = data, .size = size};
  sconce_inspect_desc desc = {.file = file, .format = SCONCE_INSPECT_JSON};
  /* The promise is made for the default limits without options, so that is what is loaded. */
  sconce_device_desc plain = {.limits = "default", .disable = "f16,subgroups,matrix"};
  REQUIRE_OK(report_make(&r, &desc), r.err);
  REQUIRE_OK(sconce_device_open(&device, &plain, &err), err);
  sconce_model_desc files = {.program = file};
  CHECK_OK(sconce_model_open(&model, device, &files, &err), err);
  if (model) CHECK_OK(sconce_method_open(&method, model, "forward", &err), err);
  if (method) CHECK_OK(sconce_state_open(&state, method, &err), err);
  if (state) {
    sconce_stats stats;
    sconce_state_stats(state, &stats);
    CHECK_EQ(stats.gpu_weights + stats.gpu_state, report_number(&r, "persistent"));
    CHECK_EQ(stats.gpu_transient, report_number(&r, "transient"));
  }
  sconce_state_close(state);
  sconce_method_close(method);
  sconce_model_close(model);
  sconce_device_close(device);
  report_free(&r);
}

static void a_load_takes_what_was_said(void) {
  static const char *const names[] = {"delegate.pte", "delegate_inline.pte"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    struct arena arena;
    arena_init(&arena, NULL);
    struct span file = example_bytes(&arena, names[i]);
    compare_load(NULL, file.data, file.size);
    arena_free(&arena);
  }
}

/* ---- real files ------------------------------------------------------------------------------ */

static uint32_t n_files, n_planned;
static char some_planned[1024]; /* a real program that runs here, the last that was seen */

/* With every limit that a desktop has, unless the environment lowers them. */
static void plan_file(const char *path) {
  struct report r;
  sconce_inspect_desc desc = {
      .file = {.path = path}, .format = SCONCE_INSPECT_PLAN, .device = "full"};
  sconce_status status = report_make(&r, &desc);
  if (status == SCONCE_OK)
    CHECK(r.text && strstr(r.text, " dispatches, GPU memory "));
  else if (strstr(path, "/hostile/"))
    CHECK(*r.err.text); /* made to be refused, with a sentence */
  else if (status != SCONCE_UNSUPPORTED || !getenv("SCONCE_LIMITS"))
    test_fail(__FILE__, __LINE__, "%s", r.err.text);
  report_free(&r);
}

static void inspect_file(const char *path) {
  for (int f = 0; f < 4; f++) {
    struct report r;
    sconce_inspect_desc desc = {.file = {.path = path}, .format = report_formats[f]};
    if (report_make(&r, &desc) != SCONCE_OK && !strstr(path, "/hostile/"))
      test_fail(__FILE__, __LINE__, "%s: %s", path, r.err.text);
    if (report_formats[f] == SCONCE_INSPECT_JSON && report_number(&r, "persistent") >= 0) {
      snprintf(some_planned, sizeof some_planned, "%s", path);
      n_planned++;
      plan_file(path);
    }
    report_free(&r);
  }
  n_files++;
}

static void every_real_file_in_every_form(void) {
  n_files = n_planned = 0;
  if (!test_each_shared_file(inspect_file)) return;
  CHECK(n_files > 600);
  CHECK(n_planned > 0);
  if (n_planned) compare_load(some_planned, NULL, 0);
}

const struct test suite_inspect_load[] = {
    TEST(a_load_takes_what_was_said),
    TEST(every_real_file_in_every_form),
    {0},
};
