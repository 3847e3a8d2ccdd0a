/* Eight threads on one device, each with handles of two models: results are those of one thread.
 *
 * One model's loop is the host's to count, its states share intermediate results; the other's
 * branch only the device knows, so that its calls are split and each state has its own. Or it is a
 * language model, and each thread has a conversation, with the device's work ahead. */
#include "session_fixture.h"

#include "base/os.h"

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

static float seed_of(uint32_t id) { return (float)id * 0.125f; }

/* Other rows in each round. */
static sconce_status loop_round(sconce_state *s, uint32_t id, uint32_t round, float *out,
                                sconce_error *err) {
  const uint32_t rows = 1 + (3 * id + 5 * round) % ROWS;
  TRY(set(s, 0, 2, rows, WIDTH, seed_of(id), err));
  TRY(set(s, 1, 1, 1, 4, (float)round, err));
  return take(s, out, ROWS * 4 * sizeof(float), err);
}

/* And another branch. */
static sconce_status one_round(struct worker *w, uint32_t round, sconce_error *err) {
  sconce_state *const *s = w->tenant.states;
  const float sign = (w->id + round) % 3 ? 1 : -1;
  TRY(loop_round(s[0], w->id, round, w->got[round], err));
  TRY(set(s[1], 0, 2, 2, WIDTH, sign * (1 + seed_of(w->id)), err));
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

/* ---- conversations --------------------------------------------------------------------------- */

enum { TURNS = 2, NEW = 4, N_VOCAB = 32000 };

/* A conversation of stories15M, and a state of the loop that has calls in between. */
struct talker {
  sconce_model *model;
  sconce_method *loop;
  uint32_t id;
  bool opens; /* its handles itself, while the others talk */
  sconce_session *session;
  sconce_state *state;
  int32_t ids[TURNS][NEW];
  float logits[TURNS][N_VOCAB];
  float got[TURNS][NEW][ROWS * 4];
  sconce_status status;
  sconce_error err;
};

/* Every other one draws, each with another seed; the rest are greedy. */
static sconce_status open_talker(struct talker *t, sconce_error *err) {
  sconce_session_desc desc = {.model = t->model, .lookup = SCONCE_LOOKUP_OFF}; /* it has a clock */
  desc.sampler.temperature = t->id % 2 ? 0.9f : 0;
  desc.sampler.seed = t->id;
  TRY(sconce_session_open(&t->session, &desc, err));
  return sconce_state_open(&t->state, t->loop, err);
}

static void close_talker(struct talker *t) {
  sconce_session_close(t->session);
  sconce_state_close(t->state);
}

/* A prompt of its own length behind what was said, ids one by one, and the logits behind them. */
static sconce_status one_turn(struct talker *t, uint32_t turn, sconce_error *err) {
  int32_t ids[2 * (16 + NEW)] = {1};
  size_t n = 0;
  const int32_t *said = sconce_session_ids(t->session, &n);
  if (n) memcpy(ids, said, n * sizeof *ids);
  const size_t all = n + 2 + (3 * t->id + turn) % 9;
  for (size_t i = n ? n : 1; i < all; i++) ids[i] = 300 + (int32_t)(t->id * 97 + i * 31);
  TRY(sconce_session_prompt(t->session, ids, all, NULL, NULL, err));
  for (uint32_t i = 0; i < NEW; i++) {
    sconce_choice choice;
    TRY(i + 1 < NEW ? sconce_session_next(t->session, &choice, err)
                    : sconce_session_choose(t->session, &choice, err));
    t->ids[turn][i] = choice.id;
    TRY(loop_round(t->state, t->id, turn * NEW + i, t->got[turn][i], err));
  }
  TRY(sconce_session_append(t->session, t->ids[turn][NEW - 1], err));
  memcpy(t->logits[turn], sconce_session_logits(t->session), sizeof t->logits[turn]);
  return SCONCE_OK;
}

static void talk(void *user) {
  struct talker *t = user;
  if (t->opens) t->status = open_talker(t, &t->err);
  for (uint32_t i = 0; i < TURNS && t->status == SCONCE_OK; i++)
    t->status = one_turn(t, i, &t->err);
}

static void check_talkers(const struct talker *a, const struct talker *b) {
  CHECK(memcmp(a->ids, b->ids, sizeof a->ids) == 0);
  CHECK(memcmp(a->logits, b->logits, sizeof a->logits) == 0);
  CHECK(memcmp(a->got, b->got, sizeof a->got) == 0);
}

static void eight_conversations_and_a_loop(void) {
  static struct talker alone[THREADS], talkers[THREADS];
  struct os_team teams[THREADS];
  struct fixture f;
  sconce_model *loop_model = NULL;
  sconce_method *loop = NULL;
  sconce_error err = {0};
  memset(alone, 0, sizeof alone);
  memset(talkers, 0, sizeof talkers);
  CHECK_OK(open_method(&f, STORIES, NULL, &err), err);
  const sconce_model_desc desc = {.program = {.path = FOLDER "map/model.pte"}};
  if (f.method) CHECK_OK(sconce_model_open(&loop_model, f.device, &desc, &err), err);
  if (loop_model) CHECK_OK(sconce_method_open(&loop, loop_model, NULL, &err), err);
  REQUIRE(loop);
  for (uint32_t i = 0; i < THREADS; i++) {
    alone[i] = (struct talker){.model = f.model, .loop = loop, .id = i, .opens = true};
    talk(&alone[i]);
    CHECK_OK(alone[i].status, alone[i].err);
    close_talker(&alone[i]);
    talkers[i] = (struct talker){.model = f.model, .loop = loop, .id = i, .opens = i % 4 == 3};
    if (!talkers[i].opens) CHECK_OK(open_talker(&talkers[i], &err), err);
  }
  CHECK(memcmp(alone[0].ids, alone[1].ids, sizeof alone[0].ids) != 0);
  for (uint32_t i = 0; i < THREADS; i++) os_team_start(&teams[i], 1, talk, &talkers[i]);
  for (uint32_t i = 0; i < THREADS; i++) {
    CHECK_EQ(teams[i].n, 1);
    os_team_join(&teams[i]);
    CHECK_OK(talkers[i].status, talkers[i].err);
    check_talkers(&talkers[i], &alone[i]);
    close_talker(&talkers[i]);
  }
  sconce_method_close(loop);
  sconce_model_close(loop_model);
  close_all(&f);
}

/* ---- cancelling ------------------------------------------------------------------------------ */

struct canceller {
  sconce_session *session;
  _Atomic bool over;
};

static void cancel_again_and_again(void *user) {
  struct canceller *c = user;
  while (!c->over) {
    sconce_session_cancel(c->session);
    os_sleep_ns(100000);
  }
}

/* Prompts of which another thread ends some, each at a moment of its own; what is said behind them
 * is the same as ever. */
static void another_thread_cancels(void) {
  static const int32_t ids[] = {1, 2, 3, 4, 5};
  enum { PROMPTS = 40 };
  struct fixture f;
  struct os_team team;
  sconce_error err = {0};
  sconce_choice want = {0}, got = {0};
  if (!open_all(&f, TOY)) {
    close_all(&f);
    return;
  }
  CHECK_OK(sconce_session_prompt(f.session, ids, 5, NULL, NULL, &err), err);
  CHECK_OK(sconce_session_choose(f.session, &want, &err), err);
  struct canceller c = {.session = f.session};
  int cancelled = 0;
  os_team_start(&team, 1, cancel_again_and_again, &c);
  CHECK_EQ(team.n, 1);
  for (int i = 0; i < PROMPTS; i++) {
    CHECK_OK(sconce_session_rewind(f.session, 0, &err), err);
    const sconce_status status = sconce_session_prompt(f.session, ids, 5, NULL, NULL, &err);
    cancelled += status == SCONCE_CANCELLED;
    if (status != SCONCE_CANCELLED) CHECK_OK(status, err);
  }
  c.over = true;
  os_team_join(&team);
  CHECK(cancelled > 0);
  CHECK_OK(sconce_session_rewind(f.session, 0, &err), err);
  if (sconce_session_prompt(f.session, ids, 5, NULL, NULL, &err) != SCONCE_OK) /* the last one */
    CHECK_OK(sconce_session_prompt(f.session, ids, 5, NULL, NULL, &err), err);
  CHECK_OK(sconce_session_choose(f.session, &got, &err), err);
  CHECK_EQ(got.id, want.id);
  close_all(&f);
}

const struct test suite_parallel[] = {
    TEST(another_thread_cancels),
    TEST(eight_threads_and_two_models),
    TEST(eight_conversations_and_a_loop),
    {0},
};
