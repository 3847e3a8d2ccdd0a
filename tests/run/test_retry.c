/* What a call that failed leaves behind: the next one computes what it would have without it. */
#include "session_fixture.h"

#include "sconce_write.h"

#include <stdlib.h>

/* ---- inputs that the host reads -------------------------------------------------------------- */

/* Behind what only the device knows, the sum a + a, b becomes a number, and then six elements must
 * divide into rows of that sum: a failure that comes after the inputs were written. */
static sconce_status write_split(const char *path, sconce_error *err) {
  sconce_writer *w = NULL;
  TRY(sconce_writer_open(&w, NULL, err));
  sconce_graph *g = sconce_writer_graph(w);
  const int32_t a = sconce_graph_tensor(g, SCONCE_INT32, SCONCE_DIMS(1));
  const int32_t b = sconce_graph_tensor(g, SCONCE_INT32, SCONCE_DIMS(1));
  const int32_t z = sconce_graph_tensor(g, SCONCE_FLOAT32, SCONCE_DIMS(6));
  const int32_t sum = sconce_graph_tensor(g, SCONCE_INT32, SCONCE_DIMS(1));
  const int32_t rows = sconce_graph_symint(g), number = sconce_graph_symint(g);
  const int32_t zero = sconce_graph_int(g, 0), one = sconce_graph_int(g, 1);
  const int32_t rest = sconce_graph_int(g, -1);
  const int32_t dims = sconce_graph_values(g, SCONCE_IDS(rows, rest));
  const int32_t y = sconce_graph_tensor(g, SCONCE_FLOAT32, SCONCE_DIMS(6, 6));
  sconce_graph_input(g, a, false);
  sconce_graph_input(g, b, false);
  sconce_graph_input(g, z, false);
  sconce_graph_call(g, "aten.add.Tensor", SCONCE_IDS(a, a, one, sum));
  sconce_graph_call(g, "et_vk.select_as_symint.default", SCONCE_IDS(sum, zero, zero, rows));
  sconce_graph_call(g, "et_vk.select_as_symint.default", SCONCE_IDS(b, zero, zero, number));
  sconce_graph_call(g, "aten.view_copy.default", SCONCE_IDS(z, dims, y));
  sconce_graph_output(g, number, false);
  sconce_graph_output(g, y, true);
  sconce_writer_method(w, "forward", g);
  const sconce_status status = sconce_writer_save(w, path, err);
  sconce_writer_close(w);
  return status;
}

static void set_number(sconce_state *s, uint32_t input, int32_t value) {
  sconce_error err = {0};
  const sconce_tensor t = {SCONCE_INT32, 1, {1}, &value, sizeof value};
  CHECK_OK(sconce_state_set_input(s, input, &t, &err), err);
}

static void check_number(sconce_state *s, int64_t want) {
  sconce_error err = {0};
  sconce_tensor y = {0};
  CHECK_OK(sconce_state_run(s, NULL, &err), err);
  CHECK_OK(sconce_state_output(s, 0, &y, &err), err);
  CHECK(y.data != NULL);
  if (y.data) CHECK_EQ(*(const int64_t *)y.data, want);
}

static void an_input_that_was_sent_is_read_again(void) {
  static const float six[6] = {1, 2, 3, 4, 5, 6};
  const sconce_tensor z = {SCONCE_FLOAT32, 1, {6}, six, sizeof six};
  char path[TEST_PATH_MAX];
  sconce_error err = {0};
  struct fixture f = {0};
  sconce_state *s = NULL;
  test_temporary(path, ".pte");
  REQUIRE_OK(write_split(path, &err), err);
  const sconce_model_desc desc = {.program.path = path};
  CHECK_OK(sconce_device_open(&f.device, NULL, &err), err);
  if (f.device) CHECK_OK(sconce_model_open(&f.model, f.device, &desc, &err), err);
  if (f.model) CHECK_OK(sconce_method_open(&f.method, f.model, NULL, &err), err);
  if (f.method) CHECK_OK(sconce_state_open(&s, f.method, &err), err);
  if (s) {
    CHECK_OK(sconce_state_set_input(s, 2, &z, &err), err);
    set_number(s, 0, 1);
    set_number(s, 1, 5);
    check_number(s, 5);
    set_number(s, 0, 2); /* rows of 4 */
    set_number(s, 1, 7);
    const sconce_status status = sconce_state_run(s, NULL, &err);
    CHECK(status != SCONCE_OK && strstr(err.text, "view_copy") != NULL);
    set_number(s, 0, 3);
    check_number(s, 7);
  }
  sconce_state_close(s);
  remove(path);
  close_all(&f);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static void logits_of(sconce_state *s, const sconce_call *call, float out[8]) {
  sconce_error err = {0};
  sconce_tensor y = {0};
  CHECK_OK(sconce_state_run(s, call, &err), err);
  CHECK_OK(sconce_state_output(s, 0, &y, &err), err);
  CHECK(y.size >= 8 * sizeof *out);
  if (y.data) memcpy(out, (const char *)y.data + y.size - 8 * sizeof *out, 8 * sizeof *out);
}

/* The ids are again those that were set, and a token can still be fed. */
static void a_token_that_was_fed_for_nothing(void) {
  const int64_t ids[3] = {1, 2, 3}, position = 0;
  const sconce_tensor x = {SCONCE_INT64, 2, {1, 3}, ids, sizeof ids};
  const sconce_tensor at = {SCONCE_INT64, 1, {1}, &position, sizeof position};
  const sconce_draw draw = {.position = 3};
  float want[8] = {0}, got[8] = {1};
  struct fixture f;
  sconce_error err = {0};
  sconce_state *s = NULL;
  CHECK_OK(open_method(&f, STORIES, NULL, &err), err);
  if (f.method) CHECK_OK(sconce_state_open(&s, f.method, &err), err);
  if (s) {
    const sconce_call call = {.draw = &draw};
    CHECK_OK(sconce_state_set_input(s, 0, &x, &err), err);
    CHECK_OK(sconce_state_set_input(s, 1, &at, &err), err);
    logits_of(s, &call, want);
    const sconce_call no_time = {.feed_token = true, .max_steps = 1};
    CHECK_FAILS(sconce_state_run(s, &no_time, &err), SCONCE_UNSUPPORTED, err, "more than 1 steps");
    logits_of(s, &call, got);
    CHECK(memcmp(got, want, sizeof want) == 0);
    CHECK_FAILS(sconce_state_run(s, &no_time, &err), SCONCE_UNSUPPORTED, err, "more than 1 steps");
    CHECK_OK(sconce_state_run(s, &(sconce_call){.feed_token = true}, &err), err);
  }
  sconce_state_close(s);
  close_all(&f);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Refuses what is asked for while it is told to, also a smaller block for what is there. */
static bool refuses;

static void *resize(void *user, void *block, size_t old_size, size_t size) {
  (void)user, (void)old_size;
  if (size) return refuses ? NULL : realloc(block, size);
  free(block);
  return NULL;
}

static void a_generation_without_memory_leaves_the_timeline(void) {
  static const int32_t said[] = {1, 2}, prompt[] = {1, 3, 5};
  const sconce_allocator allocator = {resize, NULL};
  const sconce_generate_desc desc = {.prompt = prompt, .n_prompt = 3, .max_new = 2};
  struct fixture f;
  sconce_error err = {0};
  bool done;
  CHECK_OK(open_method(&f, TOY, NULL, &err), err);
  if (f.method) CHECK_OK(open_session(&f, 0, 0, &allocator, &err), err);
  if (f.session) {
    CHECK_OK(sconce_session_prompt(f.session, said, 2, NULL, NULL, &err), err);
    refuses = true;
    CHECK_FAILS(sconce_session_generate_begin(f.session, &desc, &err), SCONCE_NO_MEMORY, err,
                "no memory for a generation");
    refuses = false;
    CHECK_EQ(sconce_session_describe(f.session)->position, 2);
    CHECK(sconce_session_logits(f.session) != NULL);
    CHECK_OK(sconce_session_generate_begin(f.session, &desc, &err), err);
    CHECK_OK(sconce_session_generate_poll(f.session, &done, NULL, &err), err);
  }
  close_all(&f);
}

const struct test suite_retry[] = {
    TEST(a_generation_without_memory_leaves_the_timeline),
    TEST(an_input_that_was_sent_is_read_again),
    TEST(a_token_that_was_fed_for_nothing),
    {0},
};
