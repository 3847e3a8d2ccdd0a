/* Eight threads on one device, each with states of two models: results are those of one thread.
 *
 * One model's loop is the host's to count, its states share intermediate results; the other's
 * branch only the device knows, so that its calls are split and each state has its own. */
#include "gpu.h"

#include "base/os.h"
#include "sconce.h"

#include <stdio.h>

#define FOLDER SCONCE_SOURCE_DIR "/tests/data/programs/"
enum { THREADS = 8, ROUNDS = 12, ROWS = 9, WIDTH = 8, OUT = ROWS * 4 + 2 * WIDTH };

/* A model of its own, or handles that another opened. */
struct tenant {
  sconce_model *models[2]; /* loop, branch */
  sconce_method *methods[2];
  sconce_state *states[2];
};

struct worker {
  sconce_device *device;
  uint32_t id;
  bool opens; /* its models itself, while the others run */
  struct tenant tenant;
  float got[ROUNDS][OUT];
  sconce_status status;
  sconce_error err;
};

static sconce_status open_models(struct tenant *t, sconce_device *device, sconce_error *err) {
  static const char *const paths[2] = {FOLDER "map/model.pte", FOLDER "cond/model.pte"};
  for (int i = 0; i < 2; i++) {
    const sconce_model_desc desc = {.program = {.path = paths[i]}};
    TRY(sconce_model_open(&t->models[i], device, &desc, err));
    TRY(sconce_method_open(&t->methods[i], t->models[i], NULL, err));
  }
  return SCONCE_OK;
}

static sconce_status open_states(struct tenant *t, sconce_method *const methods[2],
                                 sconce_error *err) {
  for (int i = 0; i < 2; i++) TRY(sconce_state_open(&t->states[i], methods[i], err));
  return SCONCE_OK;
}

static void close_tenant(struct tenant *t) {
  for (int i = 0; i < 2; i++) {
    sconce_state_close(t->states[i]);
    sconce_method_close(t->methods[i]);
    sconce_model_close(t->models[i]);
  }
}

static sconce_status set(sconce_state *s, uint32_t i, uint32_t rank, uint32_t rows, uint32_t cols,
                         float seed, sconce_error *err) {
  float x[ROWS * WIDTH];
  const uint32_t n = rows * cols;
  for (uint32_t k = 0; k < n; k++) x[k] = seed + 0.25f * (float)(k * 7 % 11) - 1;
  sconce_tensor t = {SCONCE_FLOAT32, rank, {rows, cols}, x, n * sizeof *x};
  if (rank == 1) t.dims[0] = n;
  return sconce_state_set_input(s, i, &t, err);
}

static sconce_status take(sconce_state *s, float *out, size_t size, sconce_error *err) {
  sconce_tensor y;
  TRY(sconce_state_run(s, NULL, err));
  TRY(sconce_state_output(s, 0, &y, err));
  if (y.size > size) return fail(err, SCONCE_BAD_ARGUMENT, "%zu bytes", y.size);
  memcpy(out, y.data, y.size);
  return SCONCE_OK;
}

/* Other rows and another branch in each round. */
static sconce_status one_round(struct worker *w, uint32_t round, sconce_error *err) {
  sconce_state *const *s = w->tenant.states;
  const uint32_t rows = 1 + (3 * w->id + 5 * round) % ROWS;
  const float seed = (float)w->id * 0.125f, sign = (w->id + round) % 3 ? 1 : -1;
  TRY(set(s[0], 0, 2, rows, WIDTH, seed, err));
  TRY(set(s[0], 1, 1, 1, 4, (float)round, err));
  TRY(take(s[0], w->got[round], ROWS * 4 * sizeof(float), err));
  TRY(set(s[1], 0, 2, 2, WIDTH, sign * (1 + seed), err));
  return take(s[1], w->got[round] + (size_t)ROWS * 4, sizeof(float) * 2 * WIDTH, err);
}

static void work(void *user) {
  struct worker *w = user;
  if (w->opens) w->status = open_models(&w->tenant, w->device, &w->err);
  if (w->opens && w->status == SCONCE_OK)
    w->status = open_states(&w->tenant, w->tenant.methods, &w->err);
  for (uint32_t r = 0; r < ROUNDS && w->status == SCONCE_OK; r++)
    w->status = one_round(w, r, &w->err);
}

static void eight_threads_and_two_models(void) {
  static struct worker alone[THREADS], workers[THREADS];
  struct os_team teams[THREADS];
  struct tenant house = {0};
  sconce_device *device = NULL;
  sconce_error err = {0};
  memset(alone, 0, sizeof alone);
  memset(workers, 0, sizeof workers);
  CHECK_OK(sconce_device_open(&device, NULL, &err), err);
  CHECK_OK(open_models(&house, device, &err), err);
  REQUIRE(house.methods[1]);
  for (uint32_t i = 0; i < THREADS; i++) {
    alone[i] = (struct worker){.device = device, .id = i};
    CHECK_OK(open_states(&alone[i].tenant, house.methods, &err), err);
    work(&alone[i]);
    CHECK_OK(alone[i].status, alone[i].err);
    close_tenant(&alone[i].tenant);
    workers[i] = (struct worker){.device = device, .id = i, .opens = i % 4 == 3};
    if (!workers[i].opens) CHECK_OK(open_states(&workers[i].tenant, house.methods, &err), err);
  }
  for (uint32_t i = 0; i < THREADS; i++) os_team_start(&teams[i], 1, work, &workers[i]);
  for (uint32_t i = 0; i < THREADS; i++) {
    CHECK_EQ(teams[i].n, 1);
    os_team_join(&teams[i]);
    CHECK_OK(workers[i].status, workers[i].err);
    CHECK(memcmp(workers[i].got, alone[i].got, sizeof alone[i].got) == 0);
    close_tenant(&workers[i].tenant);
  }
  close_tenant(&house);
  sconce_device_close(device);
}

const struct test suite_parallel[] = {TEST(eight_threads_and_two_models), {0}};
