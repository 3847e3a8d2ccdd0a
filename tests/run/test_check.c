/* The comparison rules, cases and goldens, and what damaged ones say. */
#include "check/check.h"
#include "harness.h"

#include "run/device.h"

/* ---- comparing ------------------------------------------------------------------------------- */

static sconce_tensor floats(const float *data, uint32_t n) {
  return (sconce_tensor){SCONCE_FLOAT32, 1, {n}, data, n * sizeof *data};
}

static void elements_are_wrong_only_beyond_both_tolerances(void) {
  const float nan = NAN, inf = INFINITY;
  const struct {
    const char *why;
    float got, want;
    double atol, rtol;
    bool ok;
  } rows[] = {
      {"equal", 2, 2, 0, 0, true},
      {"within atol, far beyond rtol", 0.001f, 0, 0.01, 1e-6, true},
      {"within rtol, beyond atol", 101, 100, 0.1, 0.02, true},
      {"beyond both", 103, 100, 0.1, 0.02, false},
      {"rtol 0 means atol alone", 100.5f, 100, 0.1, 0, false},
      {"a golden near zero is no scale: 1e-6 is", 2e-6f, 0, 1e-7, 1.9, false},
      {"the same, just allowed", 2e-6f, 0, 1e-7, 2.1, true},
      {"NaN where NaN is wanted", nan, nan, 0, 0, true},
      {"NaN for a number", nan, 1, 1e9, 1e9, false},
      {"a number for NaN", 1, nan, 1e9, 1e9, false},
      {"infinity of the same sign", inf, inf, 0, 0, true},
      {"infinity of the other sign", -inf, inf, 1e9, 1e9, false},
      {"infinity for a large number", inf, 3e38f, 1e9, 1e9, false},
      {"NaN for infinity", nan, inf, 1e9, 1e9, false},
      {"minus zero is zero", -0.0f, 0, 0, 0, true},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    sconce_error err = {0};
    struct check_worst worst = {0};
    struct check_rule rule = {.elements = true, .atol = rows[i].atol, .rtol = rows[i].rtol};
    sconce_tensor got = floats(&rows[i].got, 1), want = floats(&rows[i].want, 1);
    sconce_status status = check_compare(&got, &want, &rule, &worst, &err);
    CHECK_SAYS(status == (rows[i].ok ? SCONCE_OK : SCONCE_WRONG_RESULT), "%s: %s", rows[i].why,
               sconce_status_name(status));
  }
}

/* What products in f16 are held to: a part of the largest value that is wanted. */
static void an_error_may_be_a_part_of_the_scale(void) {
  const float want[3] = {100, 1, NAN}, near[3] = {100.1f, 1.15f, NAN}, far[3] = {100, 1.25f, NAN};
  struct check_rule rule = {.elements = true, .atol = 1e-3, .scale = CHECK_FAST};
  struct check_worst worst = {0};
  sconce_error err = {0};
  sconce_tensor w = floats(want, 3), n = floats(near, 3), f = floats(far, 3);
  CHECK_OK(check_compare(&n, &w, &rule, &worst, &err), err);
  CHECK_FAILS(check_compare(&f, &w, &rule, &worst, &err), SCONCE_WRONG_RESULT, err, "atol 0.2");
  rule.scale = 0;
  CHECK_FAILS(check_compare(&n, &w, &rule, &worst, &err), SCONCE_WRONG_RESULT, err, "atol 0.001");
  rule = (struct check_rule){.nrmse = 1e-5, .scale = CHECK_FAST};
  CHECK_OK(check_compare(&n, &w, &rule, &worst, &err), err);
}

static void the_sentence_names_the_worst_element(void) {
  const float got[6] = {0, 1, 2.5f, 3, 9, 5}, want[6] = {0, 1, 2, 3, 4, 5};
  sconce_tensor a = {SCONCE_FLOAT32, 2, {2, 3}, got, sizeof got}, b = a;
  b.data = want;
  sconce_error err = {0};
  struct check_worst worst = {0};
  struct check_rule rule = {.elements = true, .atol = 0.1};
  CHECK_FAILS(check_compare(&a, &b, &rule, &worst, &err), SCONCE_WRONG_RESULT, err,
              "element [1, 1] is 9, want 4 (2 of 6 wrong; atol 0.1, rtol 0)");
  CHECK_NEAR(worst.abs, 5, 0);
  CHECK_NEAR(worst.rel, 1.25, 0);
  b.dims[0] = 3, b.dims[1] = 2;
  CHECK_FAILS(check_compare(&a, &b, &rule, &worst, &err), SCONCE_WRONG_RESULT, err,
              "the shape is [2, 3], want [3, 2]");
  b.rank = 1, b.dims[0] = 6;
  CHECK_FAILS(check_compare(&a, &b, &rule, &worst, &err), SCONCE_WRONG_RESULT, err, "want [6]");
}

static void norms_are_of_all_and_of_the_last_row(void) {
  const float want[4] = {3, 4, 0, 5}, got[4] = {3, 4, 1, 5};
  sconce_tensor a = {SCONCE_FLOAT32, 2, {2, 2}, got, sizeof got}, b = a;
  b.data = want;
  const struct {
    double nrmse, tail;
    sconce_status status;
  } rows[] = {
      {0.15, 0, SCONCE_OK},           /* 1 / sqrt(50) = 0.1414 */
      {0.14, 0, SCONCE_WRONG_RESULT}, /* and no element rule to save it */
      {0.15, 0.21, SCONCE_OK},        /* 1 / 5 */
      {0.15, 0.19, SCONCE_WRONG_RESULT},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    sconce_error err = {0};
    struct check_worst worst = {0};
    struct check_rule rule = {.nrmse = rows[i].nrmse, .tail_nrmse = rows[i].tail};
    CHECK_EQ(check_compare(&a, &b, &rule, &worst, &err), rows[i].status);
  }
  const float zeros[4] = {0};
  struct check_rule rule = {.nrmse = 0.5};
  struct check_worst worst = {0};
  sconce_error err = {0};
  a.data = b.data = zeros;
  CHECK_OK(check_compare(&a, &b, &rule, &worst, &err), err);
  a.data = got;
  CHECK_FAILS(check_compare(&a, &b, &rule, &worst, &err), SCONCE_WRONG_RESULT, err,
              "the nrmse is inf, at most 0.5");
}

static void integers_and_halves_are_read_as_they_are(void) {
  /* Beyond 2^53 doubles are the same and integers are not. */
  const int64_t got[2] = {1, (1ll << 60) + 1}, want[2] = {1, 1ll << 60};
  sconce_tensor a = {SCONCE_INT64, 1, {2}, got, sizeof got}, b = a;
  b.data = want;
  sconce_error err = {0};
  struct check_worst worst = {0};
  struct check_rule rule = {.elements = true, .atol = 1e9, .rtol = 1e9};
  CHECK_FAILS(check_compare(&a, &b, &rule, &worst, &err), SCONCE_WRONG_RESULT, err,
              "element [1] is 1152921504606846977, want 1152921504606846976 (1 of 2 wrong)");
  const uint16_t half[2] = {0x3c00, 0xfc00};
  const float same[2] = {1, -INFINITY};
  sconce_tensor h = {SCONCE_FLOAT16, 1, {2}, half, sizeof half}, f = floats(same, 2);
  CHECK_OK(check_compare(&h, &f, &(struct check_rule){.elements = true}, &worst, &err), err);
  CHECK_FAILS(check_compare(&a, &f, &rule, &worst, &err), SCONCE_WRONG_RESULT, err,
              "the dtype is int64, want float32");
  const int8_t bytes[2] = {-1, 127};
  sconce_tensor c = {SCONCE_INT8, 1, {2}, bytes, sizeof bytes};
  CHECK_NEAR(check_element(&c, 0), -1, 0);
}

/* ---- whole cases ----------------------------------------------------------------------------- */

static sconce_device *open_device(void) {
  sconce_device *device;
  sconce_error err = {0};
  CHECK_OK(sconce_device_open(&device, NULL, &err), err);
  return device;
}

struct seen {
  unsigned passed, failed, calls;
  sconce_check_result last;
  char name[1024]; /* of the last one */
};

static void see(void *user, const sconce_check_result *result) {
  struct seen *seen = user;
  *(result->why.status ? &seen->failed : &seen->passed) += 1;
  seen->calls += result->calls;
  seen->last = *result;
  snprintf(seen->name, sizeof seen->name, "%s", result->name);
}

static void right_cases_pass_and_wrong_ones_do_not(void) {
  sconce_device *device = open_device();
  REQUIRE(device);
  struct seen seen = {0};
  sconce_error err = {0};
  sconce_check_desc desc = {.path = SCONCE_SOURCE_DIR "/tests/data/cases/right", .each = see};
  desc.user = &seen;
  CHECK_OK(sconce_check(device, &desc, &err), err);
  CHECK_EQ(seen.passed, 4);
  CHECK_EQ(seen.failed, 0);
  CHECK_EQ(seen.calls, 3 + 1 + 4 + 7);
  desc.path = SCONCE_SOURCE_DIR "/tests/data/cases/wrong/"; /* a slash more is no other name */
  CHECK_OK(sconce_check(device, &desc, &err), err);
  CHECK_EQ(seen.failed, 1);
  CHECK_TEXT(seen.name, SCONCE_SOURCE_DIR "/tests/data/cases/wrong/add_golden");
  CHECK_NEAR(seen.last.worst_abs, 0.5, 0);
  CHECK_FAILS(seen.last.why.status, SCONCE_WRONG_RESULT, seen.last.why,
              "call 0: output 0: element [1, 2] is 7, want 7.5");
  desc.path = "/nonexistent";
  CHECK_FAILS(sconce_check(device, &desc, &err), SCONCE_BAD_ARGUMENT, err, "no such folder");
  desc.each = NULL;
  CHECK_FAILS(sconce_check(device, &desc, &err), SCONCE_BAD_ARGUMENT, err, "is missing");
  CHECK_EQ(gpu_stats(device->gpu)->buffers, 0);
  sconce_device_close(device);
}

static void goldens_pass_within_their_tolerance(void) {
  sconce_device *device = open_device();
  REQUIRE(device);
  struct seen seen = {0};
  sconce_error err = {0};
  sconce_check_desc desc = {.path = SCONCE_SOURCE_DIR "/tests/data/goldens", .each = see};
  desc.user = &seen;
  CHECK_OK(sconce_check(device, &desc, &err), err);
  CHECK_EQ(seen.passed, 6);
  CHECK_EQ(seen.failed, 0);
  desc.filter = "toy.golden.json#long";
  CHECK_OK(sconce_check(device, &desc, &err), err);
  CHECK_EQ(seen.passed, 7);
  /* A model that is another: every case fails, and says so. */
  desc = (sconce_check_desc){.path = SCONCE_SOURCE_DIR "/tests/data/goldens/mul.pte",
                             .golden = SCONCE_SOURCE_DIR "/tests/data/goldens/toy.golden.json",
                             .each = see,
                             .user = &seen};
  CHECK_OK(sconce_check(device, &desc, &err), err);
  CHECK_EQ(seen.failed, 2);
  CHECK_FAILS(seen.last.why.status, SCONCE_BAD_FILE, seen.last.why,
              "call 0: the method's inputs are not tokens (1, S) and input_pos");
  sconce_device_close(device);
}

/* ---- damage ---------------------------------------------------------------------------------- */

struct folder {
  char path[512], json[600], pte[600];
};

static bool make_folder(struct folder *f, const char *json_name, const char *model) {
  test_temporary(f->path, "");
  if (!test_make_folder(f->path)) return false;
  snprintf(f->json, sizeof f->json, "%s/%s", f->path, json_name);
  snprintf(f->pte, sizeof f->pte, "%s/model.pte", f->path);
  size_t size = 0;
  unsigned char *bytes = test_read_path(model, &size);
  const bool ok = bytes && test_write_path(f->pte, bytes, size);
  free(bytes);
  return ok;
}

static void remove_folder(const struct folder *f) {
  remove(f->json);
  remove(f->pte);
  test_remove(f->path);
}

static bool write_text(const char *path, const char *text) {
  return test_write_path(path, text, strlen(text));
}

#define CALL(x) "{\"calls\": [{\"inputs\": [" x "], \"outputs\": [{\"file\": null}]}]}"
#define ONES "{\"fill\": 1, \"dtype\": \"float32\", \"shape\": [5]}"
#define IN(x) CALL("{" x ", \"dtype\": \"float32\", \"shape\": [3, 5]}, " ONES)

static void damaged_cases_fail_with_a_sentence(void) {
  const struct {
    const char *json, *sentence;
  } rows[] = {
      {"", "case.json: "},
      {"[]", "no JSON object"},
      {"{}", "no calls"},
      {"{\"calls\": 7}", "no calls"},
      {"{\"calls\": [7]}", "call 0: 0 inputs, the method has 2"},
      {"{\"calls\": [{\"inputs\": [" ONES "]}]}", "call 0: 1 inputs, the method has 2"},
      {CALL("7, " ONES), "input 0: no object"},
      {CALL("{}, " ONES), "input 0: no dtype"},
      {CALL("{\"dtype\": \"float32\"}, " ONES), "input 0: no shape"},
      {CALL("{\"dtype\": \"float32\", \"shape\": [-1]}, " ONES), "dim 0 of a shape is no size"},
      {CALL("{\"dtype\": \"float32\", \"shape\": [1,1,1,1,1,1,1,1,1]}, " ONES), "more than 8 dims"},
      {CALL("{\"fill\": 0, \"dtype\": \"float32\", \"shape\": [4000000000, 4000000000, 4]}, " ONES),
       "too many bytes"},
      {CALL("{\"fill\": 0, \"dtype\": \"float32\", \"shape\": [1000000000]}, " ONES),
       "an input of 4000000000 bytes that is in no file, at most"},
      {CALL("{\"fill\": 300, \"dtype\": \"uint8\", \"shape\": [5]}, " ONES), "a value is no uint8"},
      {CALL("{\"fill\": \"x\", \"dtype\": \"float32\", \"shape\": [5]}, " ONES), "no float32"},
      {CALL("{\"scalar\": 1, \"type\": \"text\"}, " ONES), "a scalar's type is int, float or bool"},
      {IN("\"file\": \"../x\""), "'../x' is no name of a file in the same folder"},
      {IN("\"file\": \"..\""), "is no name of a file"},
      {IN("\"file\": \"..\\\\x\""), "is no name of a file"},
      {IN("\"file\": \"c:x\""), "'c:x' is no name of a file in the same folder"},
      {IN("\"file\": \"\""), "is no name of a file"},
      {IN("\"file\": 7"), "is no name of a file"},
      {IN("\"file\": \"a\\u0000b\""), "is no name of a file"},
      {IN("\"file\": \"none.bin\""), "none.bin: No such file"},
      {IN("\"file\": \"model.pte\""), "bytes, its shape needs 60"},
      {IN("\"offset\": 0"), "60 bytes at its offset are not in the file of 0 bytes"},
      {IN("\"file\": \"model.pte\", \"offset\": 1000000000"),
       "60 bytes at its offset are not in the file of"},
      {IN("\"file\": \"model.pte\", \"offset\": -4"), "60 bytes at its offset are not in the file"},
      {IN("\"file\": \"model.pte\", \"offset\": \"x\""), "60 bytes at its offset are not in"},
      {IN("\"data\": [1, 2]"), "2 values, its shape needs 15"},
      {IN("\"prev_output\": 0"), "no call has finished"},
      {IN("\"prev_output\": -1"), "prev_output is no index"},
      {IN("\"gen\": \"noise\""), "gen is something else than a ramp"},
      {IN("\"gen\": \"ramp\", \"mod\": 0"), "a ramp without mod"},
      {IN("\"other\": 0"), "no file, offset, data, fill, gen or prev_output"},
      {"{\"calls\": [{\"inputs\": [{\"fill\": 1, \"dtype\": \"float32\", \"shape\": [3, 5]}, " ONES
       "], \"outputs\": []}]}",
       "call 0: 0 outputs, the method has 1"},
      {"{\"calls\": [{\"inputs\": [{\"fill\": 1, \"dtype\": \"float32\", \"shape\": [3, 5]}, " ONES
       "], \"outputs\": [{\"name\": \"sum\", \"file\": \"model.pte\", \"offset\": 8, \"dtype\": "
       "\"float32\", \"shape\": [3, 5]}]}]}",
       "call 0: output 0: sum: element ["},
      {"{\"calls\": [{\"expect\": \"error\", \"inputs\": [{\"fill\": 1, \"dtype\": \"float32\", "
       "\"shape\": [3, 5]}, " ONES "]}]}",
       "call 0: succeeded, an error was expected"},
      {"{\"peer_expect\": \"load_error\"}", "the file was loaded, want it refused"},
      {"{\"method\": \"backward\", \"calls\": [{}]}", "no method 'backward'"},
  };
  sconce_device *device = open_device();
  struct folder f;
  REQUIRE(device);
  REQUIRE(make_folder(&f, "case.json", SCONCE_SOURCE_DIR "/tests/data/cases/right/add/model.pte"));
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct seen seen = {0};
    sconce_error err = {0};
    sconce_check_desc desc = {.path = f.path, .each = see, .user = &seen};
    CHECK(write_text(f.json, rows[i].json));
    CHECK_OK(sconce_check(device, &desc, &err), err);
    if (seen.failed != 1 || !strstr(seen.last.why.text, rows[i].sentence))
      test_fail(__FILE__, __LINE__, "%s: \"%s\", want \"…%s…\"", rows[i].json, seen.last.why.text,
                rows[i].sentence);
  }
  remove_folder(&f);
  sconce_device_close(device);
}

#define TOKENS(x) "{\"vocab\": 8, \"cases\": [{\"calls\": [{" x "}]}]}"
#define TOP5(x) TOKENS("\"tokens\": [1], \"pos\": 0, \"top5\": [" x "]")

static void damaged_goldens_fail_with_a_sentence(void) {
  const struct {
    const char *json, *sentence;
  } rows[] = {
      {"{}", "no cases"},
      {"{\"cases\": []}", "no cases"},
      {"{\"cases\": [{\"calls\": []}]}", "no calls"},
      {"{\"tolerance\": \"x\", \"cases\": [{}]}", "tolerance is no number"},
      {"{\"output_bin\": \"none.bin\", \"cases\": [{}]}", "none.bin: No such file"},
      {"{\"cases\": [{}]}", "0 inputs, the method has 2"},
      {TOKENS("\"pos\": 0"), "no tokens"},
      {TOKENS("\"tokens\": [\"a\"], \"pos\": 0"), "a token is no integer"},
      {TOKENS("\"tokens\": [1]"), "pos is no position"},
      {TOKENS("\"tokens\": [1], \"pos\": 0"), "neither top5 nor logits"},
      {TOP5("7"), "top5 holds no pair"},
      {TOP5("[8, 1.0]"), "top5 holds no pair of a token below 8"},
      {TOP5("[1, 1e9]"), "logit of token 1: element [] is "},
      {TOKENS("\"tokens\": [1,1,1,1,1,1,1,1,1], \"pos\": 0, \"top5\": [[1, 1]]"),
       "dim 1 is 9, at most 7"},
      {"{\"vocab\": 9, \"cases\": [{\"calls\": [{\"tokens\": [1], \"pos\": 0, \"top5\": [[1, "
       "1]]}]}]}",
       "1 rows of 8 logits, want 9"},
      /* Every logit is within the tolerance, yet the golden leaves no doubt about the top. */
      {"{\"tolerance\": 90, \"vocab\": 8, \"cases\": [{\"calls\": [{\"tokens\": [1], \"pos\": 0, "
       "\"top5\": [[0, 0.5]]}]}]}",
       "the top token is "},
  };
  sconce_device *device = open_device();
  struct folder f;
  REQUIRE(device);
  REQUIRE(make_folder(&f, "model.golden.json", SCONCE_SOURCE_DIR "/tests/data/goldens/toy.pte"));
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct seen seen = {0};
    sconce_error err = {0};
    sconce_check_desc desc = {.path = f.path, .each = see, .user = &seen};
    CHECK(write_text(f.json, rows[i].json));
    CHECK_OK(sconce_check(device, &desc, &err), err);
    if (seen.failed != 1 || !strstr(seen.last.why.text, rows[i].sentence))
      test_fail(__FILE__, __LINE__, "%s: \"%s\", want \"…%s…\"", rows[i].json, seen.last.why.text,
                rows[i].sentence);
  }
  remove_folder(&f);
  sconce_device_close(device);
}

/* Every refused allocation ends in an error or a failed case, and nothing is kept. */
static void any_allocation_may_fail(void) {
  sconce_device *device = open_device();
  REQUIRE(device);
  sconce_allocator own = device->allocator;
  bool clean = false;
  for (uint64_t n = 1; n < 5000 && !clean; n++) {
    struct test_allocator alloc;
    test_allocator_init(&alloc, n);
    device->allocator = alloc.hook;
    struct seen seen = {0};
    sconce_error err = {0};
    sconce_check_desc desc = {.path = SCONCE_SOURCE_DIR "/tests/data", .each = see, .user = &seen};
    desc.filter = "toy-static";
    sconce_status status = sconce_check(device, &desc, &err);
    clean = alloc.calls < n;
    if ((status == SCONCE_OK && seen.failed == 0) != clean)
      test_fail(__FILE__, __LINE__, "allocation %llu: %s, %u passed, %u failed",
                (unsigned long long)n, sconce_status_name(status), seen.passed, seen.failed);
    CHECK_EQ(alloc.live, 0);
  }
  CHECK(clean);
  device->allocator = own;
  sconce_device_close(device);
}

const struct test suite_check[] = {TEST(elements_are_wrong_only_beyond_both_tolerances),
                                   TEST(an_error_may_be_a_part_of_the_scale),
                                   TEST(the_sentence_names_the_worst_element),
                                   TEST(norms_are_of_all_and_of_the_last_row),
                                   TEST(integers_and_halves_are_read_as_they_are),
                                   TEST(right_cases_pass_and_wrong_ones_do_not),
                                   TEST(goldens_pass_within_their_tolerance),
                                   TEST(damaged_cases_fail_with_a_sentence),
                                   TEST(damaged_goldens_fail_with_a_sentence),
                                   TEST(any_allocation_may_fail),
                                   {0}};
