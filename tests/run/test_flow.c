/* Programs that branch and loop: results, submits of a call, and the bound on its steps. */
#include "base/arena.h"
#include "examples.h"
#include "gpu.h"
#include "run/device.h"
#include "run/state.h"
#include "sconce.h"
#include "write/write.h"

#include <string.h>

typedef sconce_status build(struct arena *arena, struct span *out, sconce_error *err);

struct opened {
  struct arena arena;
  sconce_device *device;
  sconce_model *model;
  sconce_method *method;
  sconce_state *state;
};

static void open_on(struct opened *o, struct span bytes) {
  sconce_error err = {0};
  const sconce_model_desc desc = {.program = {.data = bytes.data, .size = bytes.size}};
  CHECK_OK(sconce_model_open(&o->model, o->device, &desc, &err), err);
  if (o->model) CHECK_OK(sconce_method_open(&o->method, o->model, NULL, &err), err);
  if (o->method) CHECK_OK(sconce_state_open(&o->state, o->method, &err), err);
}

/* Nothing is so long that it is cut: submits are those of a device that is quick. */
static void open_bytes(struct opened *o, struct span bytes) {
  sconce_error err = {0};
  REQUIRE_OK(sconce_device_open(&o->device, NULL, &err), err);
  o->device->piece_ns = UINT64_MAX / 4;
  open_on(o, bytes);
}

static void open_built(struct opened *o, build *make) {
  sconce_error err = {0};
  struct span bytes = {0};
  *o = (struct opened){0};
  arena_init(&o->arena, NULL);
  REQUIRE_OK(make(&o->arena, &bytes, &err), err);
  open_bytes(o, bytes);
}

static void close_all(struct opened *o) {
  sconce_state_close(o->state);
  sconce_method_close(o->method);
  sconce_model_close(o->model);
  sconce_device_close(o->device);
  arena_free(&o->arena);
}

static uint32_t submits_of(const struct opened *o) {
  sconce_stats stats;
  sconce_state_stats(o->state, &stats);
  return stats.submits;
}

static int32_t tensor(struct write_pte *w, int type, bool dynamic, const int32_t *sizes,
                      uint32_t rank) {
  return write_pte_tensor(w, &(struct write_pte_tensor){.scalar_type = type,
                                                        .dynamism = dynamic ? PTE_DYNAMIC_BOUND : 0,
                                                        .sizes = sizes,
                                                        .rank = rank});
}

static sconce_status finish(struct write_pte *w, struct arena *arena, struct span *out,
                            sconce_error *err) {
  struct write_blob file;
  TRY(write_pte_finish(w, &file, err));
  return write_blob_to_memory(&file, arena, out, err);
}

/* ---- branches -------------------------------------------------------------------------------- */

/* forward(x, flag) = flag ? 2 x : 3 x. The host knows the flag: nothing splits the call. */
static void a_branch_that_the_host_decides(void) {
  struct opened o = {0};
  sconce_error err = {0};
  arena_init(&o.arena, NULL);
  open_bytes(&o, example_bytes(&o.arena, "branch.pte"));
  static const bool flags[] = {true, false, false, true};
  for (size_t i = 0; o.state && i < sizeof flags; i++) {
    const float data[6] = {1, -2, 3, 4, 5, (float)i};
    const sconce_tensor x = {SCONCE_FLOAT32, 2, {2, 3}, data, sizeof data};
    const sconce_tensor flag = {SCONCE_BOOL, 1, {1}, &flags[i], 1};
    sconce_tensor y = {0};
    CHECK_OK(sconce_state_set_input(o.state, 0, &x, &err), err);
    CHECK_OK(sconce_state_set_input(o.state, 1, &flag, &err), err);
    CHECK_OK(sconce_state_run(o.state, NULL, &err), err);
    CHECK_OK(sconce_state_output(o.state, 0, &y, &err), err);
    for (uint32_t k = 0; y.data && k < 6; k++)
      CHECK_NEAR(((const float *)y.data)[k], data[k] * (flags[i] ? 2 : 3), 0);
    CHECK_EQ(submits_of(&o), 1);
  }
  close_all(&o);
}

/* ---- loops ----------------------------------------------------------------------------------- */

enum { ROWS = 400 };

/* As torch.map: row i of the result is twice row i of x; x has 1 to ROWS rows. */
static sconce_status build_map(struct arena *arena, struct span *out, sconce_error *err) {
  static const int32_t matrix[] = {ROWS, 3}, vector[] = {3};
  struct write_pte w;
  write_pte_init(&w, arena);
  write_pte_method(&w, "forward");
  const int32_t x = tensor(&w, SCALAR_FLOAT, true, matrix, 2);
  const int32_t row = tensor(&w, SCALAR_FLOAT, false, vector, 1);
  const int32_t twice = tensor(&w, SCALAR_FLOAT, false, vector, 1);
  const int32_t y = tensor(&w, SCALAR_FLOAT, true, matrix, 2);
  const int32_t zero = write_pte_value(&w, literal_int(0)),
                one = write_pte_value(&w, literal_int(1));
  const int32_t i = write_pte_value(&w, literal_int(0)), n = write_pte_value(&w, literal_int(0));
  const int32_t done = write_pte_value(&w, literal_bool(false));
  write_pte_inputs(&w, ID_LIST(x));
  write_pte_outputs(&w, ID_LIST(y));
  const int32_t size = write_pte_operator(&w, "aten::sym_size", "int");
  const int32_t select = write_pte_operator(&w, "aten::select_copy", "int_out");
  const int32_t add = write_pte_operator(&w, "aten::add", "out");
  const int32_t put = write_pte_operator(&w, "executorch_prim::et_copy_index", "tensor");
  const int32_t plus = write_pte_operator(&w, "executorch_prim::add", "Scalar");
  const int32_t minus = write_pte_operator(&w, "executorch_prim::sub", "Scalar");
  const int32_t equal = write_pte_operator(&w, "executorch_prim::eq", "Scalar");
  write_pte_call_kernel(&w, size, ID_LIST(x, zero, n));                 /* 0 */
  write_pte_call_kernel(&w, select, ID_LIST(x, zero, i, row, row));     /* 1 */
  write_pte_call_kernel(&w, add, ID_LIST(row, row, one, twice, twice)); /* 2 */
  write_pte_call_kernel(&w, put, ID_LIST(y, twice, i));                 /* 3 */
  write_pte_call_kernel(&w, plus, ID_LIST(i, one, i));                  /* 4 */
  write_pte_call_kernel(&w, equal, ID_LIST(i, n, done));                /* 5 */
  write_pte_jump_false(&w, done, 1);                                    /* 6 */
  write_pte_call_kernel(&w, minus, ID_LIST(i, n, i));                   /* 7 */
  return finish(&w, arena, out, err);
}

/* The host counts the rounds, so they go in one submit, and beyond some hundred dispatches in
 * more. */
static void a_loop_over_rows(void) {
  static const struct {
    uint32_t rows, submits;
    const char *why;
  } calls[] = {
      {5, 1, "a few rows"},
      {5, 1, "again, from row 0"},
      {1, 1, "one round"},
      {15, 1, "as many as fit one submit"},
      {ROWS, 6, "1200 dispatches: twice some 500, and a rest in four as in any long call"},
      {2, 1, "few again"},
  };
  static float data[ROWS * 3];
  struct opened o;
  sconce_error err = {0};
  open_built(&o, build_map);
  for (size_t c = 0; o.state && c < sizeof calls / sizeof *calls; c++) {
    const uint32_t n = calls[c].rows;
    for (uint32_t i = 0; i < 3 * n; i++) data[i] = (float)i - (float)c;
    const sconce_tensor x = {SCONCE_FLOAT32, 2, {n, 3}, data, 12 * n};
    sconce_tensor y = {0};
    uint32_t wrong = 0;
    CHECK_OK(sconce_state_set_input(o.state, 0, &x, &err), err);
    CHECK_OK(sconce_state_run(o.state, NULL, &err), err);
    CHECK_OK(sconce_state_output(o.state, 0, &y, &err), err);
    CHECK_EQ(y.dims[0], n);
    for (uint32_t i = 0; y.data && i < 3 * n; i++)
      wrong += ((const float *)y.data)[i] != 2 * data[i];
    if (wrong || submits_of(&o) != calls[c].submits)
      test_fail(__FILE__, __LINE__, "%s: %u wrong, %u submits, want %u", calls[c].why, wrong,
                submits_of(&o), calls[c].submits);
  }
  close_all(&o);
}

/* As torch.while_loop: y = 2 x, then twice that again until its first element is at least 100. */
static sconce_status build_while(struct arena *arena, struct span *out, sconce_error *err) {
  static const int32_t vector[] = {3};
  struct write_pte w;
  write_pte_init(&w, arena);
  write_pte_method(&w, "forward");
  const int32_t x = tensor(&w, SCALAR_FLOAT, false, vector, 1);
  const int32_t y = tensor(&w, SCALAR_FLOAT, false, vector, 1);
  const int32_t first = write_pte_value(&w, literal_double(0));
  const int32_t less = write_pte_value(&w, literal_bool(false));
  const int32_t bound = write_pte_value(&w, literal_double(100));
  const int32_t never = write_pte_value(&w, literal_bool(false));
  const int32_t one = write_pte_value(&w, literal_int(1));
  write_pte_inputs(&w, ID_LIST(x));
  write_pte_outputs(&w, ID_LIST(y));
  const int32_t add = write_pte_operator(&w, "aten::add", "out");
  const int32_t item = write_pte_operator(&w, "aten::_local_scalar_dense", "");
  const int32_t lt = write_pte_operator(&w, "executorch_prim::lt", "Scalar");
  write_pte_call_kernel(&w, add, ID_LIST(x, x, one, y, y));   /* 0 */
  write_pte_call_kernel(&w, item, ID_LIST(y, first));         /* 1 */
  write_pte_call_kernel(&w, lt, ID_LIST(first, bound, less)); /* 2 */
  write_pte_jump_false(&w, less, 6);                          /* 3 */
  write_pte_call_kernel(&w, add, ID_LIST(y, y, one, y, y));   /* 4 */
  write_pte_jump_false(&w, never, 1);                         /* 5 */
  return finish(&w, arena, out, err);
}

/* Each look at the condition waits for the device; nothing else splits the call. */
static void a_loop_that_the_device_decides(void) {
  static const struct {
    float x, y;
    uint32_t submits;
  } calls[] = {{1, 128, 7 + 1}, {60, 120, 1 + 1}, {-1, 0, 0}, {3, 192, 6 + 1}};
  struct opened o;
  sconce_error err = {0};
  open_built(&o, build_while);
  for (size_t c = 0; o.state && c < sizeof calls / sizeof *calls; c++) {
    const float data[3] = {calls[c].x, 1, -5};
    const sconce_tensor x = {SCONCE_FLOAT32, 1, {3}, data, sizeof data};
    const sconce_call call = {.max_steps = 200};
    sconce_tensor y = {0};
    CHECK_OK(sconce_state_set_input(o.state, 0, &x, &err), err);
    if (calls[c].submits == 0) { /* -2, -4, -8 … */
      CHECK_FAILS(sconce_state_run(o.state, &call, &err), SCONCE_UNSUPPORTED, err,
                  "the call takes more than 200 steps: set max_steps if that is meant");
      continue;
    }
    CHECK_OK(sconce_state_run(o.state, &call, &err), err);
    CHECK_OK(sconce_state_output(o.state, 0, &y, &err), err);
    if (y.data) CHECK_NEAR(((const float *)y.data)[0], calls[c].y, 0);
    if (y.data) CHECK_NEAR(((const float *)y.data)[2], -5 * calls[c].y / calls[c].x, 0);
    CHECK_EQ(submits_of(&o), calls[c].submits);
  }
  close_all(&o);
}

static sconce_status build_endless(struct arena *arena, struct span *out, sconce_error *err) {
  static const int32_t vector[] = {3};
  struct write_pte w;
  write_pte_init(&w, arena);
  write_pte_method(&w, "forward");
  const int32_t x = tensor(&w, SCALAR_FLOAT, false, vector, 1);
  write_pte_inputs(&w, ID_LIST(x));
  write_pte_outputs(&w, ID_LIST(x));
  write_pte_jump_false(&w, write_pte_value(&w, literal_bool(false)), 0);
  return finish(&w, arena, out, err);
}

static void a_loop_without_an_end(void) {
  struct opened o;
  sconce_error err = {0};
  open_built(&o, build_endless);
  const float data[3] = {0};
  const sconce_tensor x = {SCONCE_FLOAT32, 1, {3}, data, sizeof data};
  if (o.state) {
    CHECK_OK(sconce_state_set_input(o.state, 0, &x, &err), err);
    CHECK_FAILS(sconce_state_run(o.state, NULL, &err), SCONCE_UNSUPPORTED, err,
                "the call takes more than 10000000 steps");
  }
  close_all(&o);
}

/* y = relu(x), again and again. */
static sconce_status build_busy(struct arena *arena, struct span *out, sconce_error *err) {
  static const int32_t vector[] = {3};
  struct write_pte w;
  write_pte_init(&w, arena);
  write_pte_method(&w, "forward");
  const int32_t x = tensor(&w, SCALAR_FLOAT, false, vector, 1);
  const int32_t y = tensor(&w, SCALAR_FLOAT, false, vector, 1);
  write_pte_inputs(&w, ID_LIST(x));
  write_pte_outputs(&w, ID_LIST(y));
  write_pte_call_kernel(&w, write_pte_operator(&w, "aten::relu", "out"), ID_LIST(x, y, y));
  write_pte_jump_false(&w, write_pte_value(&w, literal_bool(false)), 0);
  return finish(&w, arena, out, err);
}

/* Beginning it is back while it has hardly begun; polls send it on, two pieces at a time; what is
 * given up is not sent. */
static void a_loop_without_an_end_can_be_left(void) {
  static const uint64_t pieces[] = {1, 50000000}; /* ns */
  for (size_t i = 0; i < sizeof pieces / sizeof *pieces && !test_failed(); i++) {
    struct opened o = {0};
    struct span bytes = {0};
    sconce_error err = {0};
    bool done = false;
    arena_init(&o.arena, NULL);
    CHECK_OK(build_busy(&o.arena, &bytes, &err), err);
    REQUIRE_OK(sconce_device_open(&o.device, NULL, &err), err);
    o.device->piece_ns = pieces[i];
    open_on(&o, bytes);
    if (o.state) {
      const float data[3] = {-1, 0, 2};
      const sconce_tensor x = {SCONCE_FLOAT32, 1, {3}, data, sizeof data};
      const uint64_t *submits = &gpu_stats(o.device->gpu)->submits;
      uint64_t sent = *submits;
      CHECK_OK(sconce_state_set_input(o.state, 0, &x, &err), err);
      CHECK_OK(sconce_state_begin(o.state, NULL, &err), err);
      CHECK(*submits <= sent + 64); /* 10,000,000 steps would be 10,000 */
      for (int k = 0; k < 8; k++) {
        CHECK_OK(gpu_finish(o.device->gpu, &err), err);
        CHECK_OK(sconce_state_poll(o.state, &done, &err), err);
        CHECK(!done);
      }
      CHECK(*submits > sent);
      sconce_state_cancel(o.state);
      sent = *submits;
      CHECK_FAILS(sconce_state_poll(o.state, &done, &err), SCONCE_BAD_ARGUMENT, err, "nothing");
      const sconce_call few = {.max_steps = 3000};
      CHECK_FAILS(sconce_state_run(o.state, &few, &err), SCONCE_UNSUPPORTED, err,
                  "the call takes more than 3000 steps");
      CHECK(*submits > sent); /* some of it went */
      CHECK_OK(sconce_state_begin(o.state, NULL, &err), err);
    }
    close_all(&o); /* while it is under way */
  }
}

/* Cut at every dispatch a loop gives the same; two states of a method do not get in each other's
 * way. */
static void a_loop_in_pieces_gives_the_same(void) {
  enum { N = 60 };
  struct opened o = {0};
  struct span bytes = {0};
  sconce_error err = {0};
  sconce_state *states[2] = {NULL};
  arena_init(&o.arena, NULL);
  CHECK_OK(build_map(&o.arena, &bytes, &err), err);
  REQUIRE_OK(sconce_device_open(&o.device, NULL, &err), err);
  o.device->piece_ns = 1;
  open_on(&o, bytes);
  if (o.state) CHECK_OK(sconce_state_open(&states[1], o.method, &err), err);
  states[0] = o.state;
  for (int round = 0; states[1] && round < 3; round++) {
    float data[2][3 * N];
    bool done[2] = {false, false};
    for (int k = 0; k < 2; k++) {
      for (int i = 0; i < 3 * N; i++) data[k][i] = (float)(i * (k + 1) - round);
      const sconce_tensor x = {SCONCE_FLOAT32, 2, {N, 3}, data[k], sizeof data[k]};
      CHECK_OK(sconce_state_set_input(states[k], 0, &x, &err), err);
      CHECK_OK(sconce_state_begin(states[k], NULL, &err), err);
      CHECK(states[k]->pending);
    }
    while (!(done[0] && done[1]) && !test_failed())
      for (int k = 0; k < 2; k++)
        if (!done[k]) CHECK_OK(sconce_state_poll(states[k], &done[k], &err), err);
    for (int k = 0; k < 2; k++) {
      sconce_tensor y = {0};
      uint32_t wrong = 0;
      CHECK_OK(sconce_state_output(states[k], 0, &y, &err), err);
      for (int i = 0; y.data && i < 3 * N; i++)
        wrong += ((const float *)y.data)[i] != 2 * data[k][i];
      CHECK_EQ(wrong, 0);
    }
    CHECK(submits_of(&o) > N);
  }
  sconce_state_close(states[1]);
  close_all(&o);
}

/* ---- calls in parts -------------------------------------------------------------------------- */

/* As on a browser's page: what would wait fails. */
static void never_wait(sconce_device *device) {
  struct gpu *fresh = NULL;
  sconce_error err = {0};
  bool done = false;
  REQUIRE_OK(gpu_open_begin(&fresh, &(struct gpu_desc){.no_blocking = true}, &err), err);
  while (!done && !test_failed()) CHECK_OK(gpu_open_poll(fresh, &done, &err), err);
  gpu_close(device->gpu);
  device->gpu = fresh;
}

static sconce_status set_first(sconce_state *s, float first, sconce_error *err) {
  const float data[3] = {first, 1, -5};
  const sconce_tensor x = {SCONCE_FLOAT32, 1, {3}, data, sizeof data};
  return sconce_state_set_input(s, 0, &x, err);
}

static sconce_status poll_to_the_end(sconce_state *s, uint32_t *polls, sconce_error *err) {
  *polls = 0;
  for (bool done = false; !done; (*polls)++) TRY(sconce_state_poll(s, &done, err));
  return SCONCE_OK;
}

static void check_first(sconce_state *s, float want) {
  sconce_tensor y = {0};
  sconce_error err = {0};
  CHECK_OK(sconce_state_output(s, 0, &y, &err), err);
  if (y.data) CHECK_NEAR(((const float *)y.data)[0], want, 0);
}

/* Seven times the device says whether the loop goes on: polls plan what follows. */
static void a_poll_goes_on_where_begin_may_not_wait(void) {
  const sconce_call few = {.max_steps = 200};
  struct opened o = {0};
  struct span bytes = {0};
  sconce_error err = {0};
  uint32_t polls;
  arena_init(&o.arena, NULL);
  CHECK_OK(build_while(&o.arena, &bytes, &err), err);
  REQUIRE_OK(sconce_device_open(&o.device, NULL, &err), err);
  never_wait(o.device);
  open_on(&o, bytes);
  if (o.state) {
    CHECK_OK(set_first(o.state, 1, &err), err);
    CHECK_OK(sconce_state_begin(o.state, NULL, &err), err);
    CHECK_FAILS(sconce_state_begin(o.state, NULL, &err), SCONCE_BAD_ARGUMENT, err,
                "the call before is still being planned: poll it first");
    CHECK_FAILS(set_first(o.state, 5, &err), SCONCE_BAD_ARGUMENT, err, "still being planned");
    CHECK_FAILS(sconce_state_reset(o.state, &err), SCONCE_BAD_ARGUMENT, err, "1 calls are running");
    CHECK_OK(poll_to_the_end(o.state, &polls, &err), err);
    CHECK(polls >= 7);
    check_first(o.state, 128);
    CHECK_EQ(submits_of(&o), 8);
    CHECK_OK(set_first(o.state, -1, &err), err); /* without an end */
    CHECK_OK(sconce_state_begin(o.state, &few, &err), err);
    CHECK_FAILS(poll_to_the_end(o.state, &polls, &err), SCONCE_UNSUPPORTED, err,
                "the call takes more than 200 steps");
    CHECK_OK(set_first(o.state, 3, &err), err);
    CHECK_OK(sconce_state_begin(o.state, NULL, &err), err);
    sconce_state_cancel(o.state);
    CHECK_FAILS(poll_to_the_end(o.state, &polls, &err), SCONCE_BAD_ARGUMENT, err, "nothing");
    CHECK_OK(set_first(o.state, 60, &err), err);
    CHECK_OK(sconce_state_begin(o.state, NULL, &err), err);
    CHECK_OK(poll_to_the_end(o.state, &polls, &err), err);
    check_first(o.state, 120);
    CHECK_OK(sconce_state_begin(o.state, NULL, &err), err); /* closed while it is being planned */
  }
  close_all(&o);
}

/* Where one may wait, the next call can be set and begun at once. */
static void calls_behind_one_that_the_device_decides(void) {
  struct opened o;
  sconce_error err = {0};
  open_built(&o, build_while);
  if (o.state) {
    for (int i = 0; i < 3; i++) {
      CHECK_OK(set_first(o.state, (float)(1 + 2 * i), &err), err);
      CHECK_OK(sconce_state_begin(o.state, NULL, &err), err);
    }
    static const float want[] = {128, 192, 160}; /* of 1, 3 and 5 */
    for (int i = 0; i < 3; i++) {
      CHECK_OK(sconce_state_wait(o.state, &err), err);
      check_first(o.state, want[i]);
    }
    CHECK_OK(set_first(o.state, -1, &err), err);
    CHECK_OK(sconce_state_begin(o.state, &(sconce_call){.max_steps = 200}, &err), err);
    CHECK_FAILS(set_first(o.state, 1, &err), SCONCE_UNSUPPORTED, err,
                "the call before: the call takes more than 200 steps");
    CHECK_OK(set_first(o.state, 1, &err), err);
    CHECK_OK(sconce_state_run(o.state, NULL, &err), err);
    check_first(o.state, 128);
  }
  close_all(&o);
}

const struct test suite_flow[] = {TEST(a_branch_that_the_host_decides),
                                  TEST(a_loop_over_rows),
                                  TEST(a_loop_that_the_device_decides),
                                  TEST(a_loop_without_an_end),
                                  TEST(a_loop_without_an_end_can_be_left),
                                  TEST(a_loop_in_pieces_gives_the_same),
                                  TEST(a_poll_goes_on_where_begin_may_not_wait),
                                  TEST(calls_behind_one_that_the_device_decides),
                                  {0}};
