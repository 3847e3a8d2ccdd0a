/* What sconce_write.h writes, opened and run: example_written of tests/examples.h. */
#include "gpu.h"

#include "examples.h"
#include "sconce.h"

struct opened {
  sconce_device *device;
  sconce_model *model;
  sconce_method *method[4];
  sconce_error err;
};
enum { PUT, ADD, READ, PARTS };

static bool start(struct opened *o) {
  static const char *const names[] = {"put", "add", "read", "parts"};
  char pte[TEST_PATH_MAX], ptd[TEST_PATH_MAX];
  *o = (struct opened){0};
  test_temporary(pte, ".pte");
  test_temporary(ptd, ".ptd");
  CHECK_OK(example_written(pte, ptd, &o->err), o->err);
  const sconce_file weights = {.path = ptd};
  const sconce_model_desc desc = {.program.path = pte, .data_files = &weights, .n_data_files = 1};
  CHECK_OK(sconce_device_open(&o->device, NULL, &o->err), o->err);
  if (o->device) CHECK_OK(sconce_model_open(&o->model, o->device, &desc, &o->err), o->err);
  for (int i = 0; o->model && i < 4; i++)
    CHECK_OK(sconce_method_open(&o->method[i], o->model, names[i], &o->err), o->err);
  remove(pte);
  remove(ptd);
  return o->method[PARTS] != NULL;
}

static void end(struct opened *o) {
  for (int i = 0; i < 4; i++) sconce_method_close(o->method[i]);
  sconce_model_close(o->model);
  sconce_device_close(o->device);
}

/* Runs and compares output 0 with the numbers, those of a cache. */
static void run(struct opened *o, sconce_state *s, const float *want, size_t n) {
  sconce_tensor y = {0};
  CHECK_OK(sconce_state_run(s, NULL, &o->err), o->err);
  CHECK_OK(sconce_state_output(s, 0, &y, &o->err), o->err);
  CHECK_EQ(y.size, n * sizeof *want);
  for (size_t i = 0; y.data && i < n; i++) CHECK_NEAR(((const float *)y.data)[i], want[i], 0);
}

/* One cache: it begins as the file says, `put` writes rows of it in place, `add` as a whole, and
 * `read`, which has no inputs but the cache, multiplies it with (2, 3). */
static void methods_have_one_cache(void) {
  struct opened o;
  sconce_state *put = NULL, *add = NULL, *read = NULL;
  if (start(&o)) {
    CHECK_OK(sconce_state_open(&put, o.method[PUT], &o.err), o.err);
    CHECK_OK(sconce_state_join(&add, o.method[ADD], put, &o.err), o.err);
    CHECK_OK(sconce_state_join(&read, o.method[READ], put, &o.err), o.err);
  }
  if (read) {
    run(&o, read, (const float[]){2, 3, 4, 6, 6, 9, 8, 12}, 8);
    const float rows[] = {10, 20, 30, 40}, all[] = {1, 0, 0, 0, 0, 0, 0, 1};
    const int64_t at = 1;
    const sconce_tensor x = {SCONCE_FLOAT32, 4, {1, 2, 1, 2}, rows, sizeof rows};
    const sconce_tensor where = {SCONCE_INT64, 1, {1}, &at, sizeof at};
    const sconce_tensor more = {SCONCE_FLOAT32, 4, {1, 4, 1, 2}, all, sizeof all};
    CHECK_OK(sconce_state_set_input(put, 0, &x, &o.err), o.err);
    CHECK_OK(sconce_state_set_input(put, 1, &where, &o.err), o.err);
    run(&o, put, rows, 4);
    run(&o, read, (const float[]){2, 3, 20, 60, 60, 120, 8, 12}, 8);
    CHECK_OK(sconce_state_set_input(add, 0, &more, &o.err), o.err);
    run(&o, add, (const float[]){2, 1, 10, 20, 30, 40, 4, 5}, 8);
    run(&o, add, (const float[]){3, 1, 10, 20, 30, 40, 4, 6}, 8);
    run(&o, read, (const float[]){6, 3, 20, 60, 60, 120, 8, 18}, 8);
  }
  sconce_state_close(put);
  sconce_state_close(add);
  sconce_state_close(read);
  end(&o);
}

static void lists_and_live_integers_run(void) {
  struct opened o;
  sconce_state *s = NULL;
  int64_t x[18];
  for (int64_t i = 0; i < 18; i++) x[i] = i;
  if (start(&o)) CHECK_OK(sconce_state_open(&s, o.method[PARTS], &o.err), o.err);
  if (s) {
    const sconce_tensor in = {SCONCE_INT64, 2, {3, 6}, x, sizeof x};
    sconce_tensor two = {0}, four = {0}, rows = {0};
    CHECK_OK(sconce_state_set_input(s, 0, &in, &o.err), o.err);
    CHECK_OK(sconce_state_run(s, NULL, &o.err), o.err);
    CHECK_OK(sconce_state_output(s, 0, &two, &o.err), o.err);
    CHECK_OK(sconce_state_output(s, 1, &four, &o.err), o.err);
    CHECK_OK(sconce_state_output(s, 2, &rows, &o.err), o.err);
    CHECK(two.dtype == SCONCE_INT64 && two.dims[0] == 3 && two.dims[1] == 2 && four.dims[1] == 4);
    for (int64_t i = 0; two.data && four.data && i < 3; i++) {
      CHECK_EQ(((const int64_t *)two.data)[2 * i + 1], 6 * i + 1);
      CHECK_EQ(((const int64_t *)four.data)[4 * i], 6 * i + 2);
    }
    CHECK(rows.data && *(const int64_t *)rows.data == 3);
  }
  sconce_state_close(s);
  end(&o);
}

static void the_program_states_its_numbers(void) {
  struct opened o;
  sconce_number n = {0};
  if (start(&o)) {
    CHECK_OK(sconce_model_constant(o.model, "get_eos_ids", 1, &n, &o.err), o.err);
    CHECK_EQ(n.i, 7);
    CHECK_OK(sconce_model_constant(o.model, "get_scale", 0, &n, &o.err), o.err);
    CHECK_NEAR(n.d, 0.25, 0);
    CHECK_OK(sconce_model_constant(o.model, "use_kv_cache", 0, &n, &o.err), o.err);
    CHECK_EQ(n.i, 1);
    CHECK(sconce_method_describe(o.method[PUT])->dynamic[0]);
    CHECK(!sconce_method_describe(o.method[ADD])->dynamic[0]);
    CHECK_EQ(sconce_method_describe(o.method[READ])->n_inputs, 0);
  }
  end(&o);
}

const struct test suite_written[] = {
    TEST(methods_have_one_cache),
    TEST(lists_and_live_integers_run),
    TEST(the_program_states_its_numbers),
    {0},
};
