/* Sources that take their time: the device works for others meanwhile, and methods of one model do
 * not come between each other's pieces. */
#include "gpu.h"

#include "base/os.h"
#include "write/write.h"

#include <stdatomic.h>

enum { N = 1024 };

/* ---- a program ------------------------------------------------------------------------------- */

static float scale[N], offset[N]; /* in the file, and behind the caller's functions */

/* A method y = x op constant. */
static sconce_status add_method(struct write_pte *w, struct arena *arena, const char *name,
                                const char *op, const char *key, sconce_error *err) {
  static const int32_t dims[] = {N};
  struct write_vk g;
  struct write_blob blob;
  write_vk_init(&g, arena);
  int32_t x = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(N));
  int32_t c = write_vk_constant(&g, VK_FLOAT32, DIM_LIST(N), write_vk_named(&g, key, 4 * N));
  int32_t y = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(N));
  int32_t args[] = {x, c, write_vk_value(&g, literal_int(1)), y}, mul[] = {x, c, y};
  const bool adds = strcmp(op, "aten.add.Tensor") == 0;
  write_vk_call(&g, op, adds ? args : mul, adds ? 4 : 3);
  write_vk_inputs(&g, ID_LIST(x));
  write_vk_outputs(&g, ID_LIST(y));
  TRY(write_vk_finish(&g, &blob, err));
  const struct write_pte_tensor io[] = {{.scalar_type = SCALAR_FLOAT, .sizes = dims, .rank = 1},
                                        {.scalar_type = SCALAR_FLOAT, .sizes = dims, .rank = 1}};
  write_pte_delegated(w, name, &blob, io, 1, 1);
  return SCONCE_OK;
}

static sconce_status make(struct arena *arena, struct span *out, sconce_error *err) {
  struct write_pte w;
  struct write_blob file;
  for (uint32_t i = 0; i < N; i++) scale[i] = (float)(i % 13), offset[i] = 100 + (float)i;
  write_pte_init(&w, arena);
  write_pte_named_data(&w, "scale", write_bytes(scale, sizeof scale));
  TRY(add_method(&w, arena, "scaled", "aten.mul.Tensor", "scale", err));
  TRY(add_method(&w, arena, "moved", "aten.add.Tensor", "offset", err));
  TRY(write_pte_finish(&w, &file, err));
  return write_blob_to_memory(&file, arena, out, err);
}

static void fill(float x[N], float first) {
  for (uint32_t i = 0; i < N; i++) x[i] = first + (float)(i % 5);
}

static sconce_status call(sconce_state *s, float first, float y[N], sconce_error *err) {
  float x[N];
  fill(x, first);
  const sconce_tensor in = {SCONCE_FLOAT32, 1, {N}, x, sizeof x};
  sconce_tensor out;
  TRY(sconce_state_set_input(s, 0, &in, err));
  TRY(sconce_state_run(s, NULL, err));
  TRY(sconce_state_output(s, 0, &out, err));
  memcpy(y, out.data, sizeof x);
  return SCONCE_OK;
}

static void check_scaled(const float y[N], float first) {
  float x[N];
  double worst = 0;
  fill(x, first);
  for (uint32_t i = 0; i < N; i++)
    worst = fmax(worst, fabs((double)y[i] - (double)x[i] * (double)scale[i]));
  CHECK_NEAR(worst, 0, 1e-4);
}

static void check_moved(const float y[N], float first) {
  float x[N];
  double worst = 0;
  fill(x, first);
  for (uint32_t i = 0; i < N; i++)
    worst = fmax(worst, fabs((double)y[i] - ((double)x[i] + (double)offset[i])));
  CHECK_NEAR(worst, 0, 1e-4);
}

/* ---- a source -------------------------------------------------------------------------------- */

struct slow {
  struct span file;
  atomic_uint *calls; /* of another thread: a read waits for one more; NULL: it waits a little */
  sconce_state *own;  /* what a read computes with then */
  uint32_t n_reads, n_keys;
};

enum { PATIENCE = 50000 }; /* times 100 us */

static sconce_status take_time(struct slow *s) {
  float y[N];
  sconce_error err;
  if (!s->calls) {
    os_sleep_ns(1000000);
    return SCONCE_OK;
  }
  const unsigned before = *s->calls;
  for (uint32_t i = 0; i < PATIENCE && *s->calls == before; i++) os_sleep_ns(100000);
  if (*s->calls == before) return SCONCE_CANCELLED;
  return call(s->own, 3, y, &err);
}

static sconce_status read_file(void *user, uint64_t at, void *out, size_t size) {
  struct slow *s = user;
  s->n_reads++;
  TRY(take_time(s));
  memcpy(out, s->file.data + at, size);
  return SCONCE_OK;
}

static bool find(void *user, const char *key, uint64_t *size) {
  (void)user;
  *size = sizeof offset;
  return strcmp(key, "offset") == 0;
}

static sconce_status read_key(void *user, const char *key, uint64_t at, void *out, size_t size) {
  struct slow *s = user;
  (void)key;
  s->n_keys++;
  TRY(take_time(s));
  memcpy(out, (const char *)offset + at, size);
  return SCONCE_OK;
}

static sconce_model_desc desc_of(struct slow *s) {
  return (sconce_model_desc){.program = {.size = s->file.size, .read = read_file, .user = s},
                             .named_data = {find, read_key, s}};
}

/* ---- tests ----------------------------------------------------------------------------------- */

struct opener {
  sconce_device *device;
  struct slow slow;
  atomic_bool done;
  float scaled[N], moved[N];
  uint64_t fingerprint;
  sconce_status status;
  sconce_error err;
};

static sconce_status use(sconce_model *model, const char *name, float first, float y[N],
                         sconce_error *err) {
  sconce_method *method = NULL;
  sconce_state *state = NULL;
  sconce_status status = sconce_method_open(&method, model, name, err);
  if (status == SCONCE_OK) status = sconce_state_open(&state, method, err);
  if (status == SCONCE_OK) status = call(state, first, y, err);
  sconce_state_close(state);
  sconce_method_close(method);
  return status;
}

static void open_and_use(void *user) {
  struct opener *o = user;
  sconce_model *model = NULL;
  const sconce_model_desc desc = desc_of(&o->slow);
  o->status = sconce_model_open(&model, o->device, &desc, &o->err);
  if (o->status == SCONCE_OK) o->status = use(model, "scaled", 1, o->scaled, &o->err);
  if (o->status == SCONCE_OK) o->status = use(model, "moved", 2, o->moved, &o->err);
  if (o->status == SCONCE_OK) o->status = sconce_model_fingerprint(model, &o->fingerprint, &o->err);
  sconce_model_close(model);
  o->done = true;
}

/* A device, and a state on it of a method whose file is in memory. */
struct house {
  struct arena arena;
  struct span file;
  sconce_device *device;
  sconce_model *model;
  sconce_method *method;
  sconce_state *states[2];
};

static sconce_status open_house(struct house *h, sconce_error *err) {
  *h = (struct house){0};
  arena_init(&h->arena, NULL);
  TRY(make(&h->arena, &h->file, err));
  const sconce_model_desc desc = {.program = {.data = h->file.data, .size = h->file.size}};
  TRY(sconce_device_open(&h->device, NULL, err));
  TRY(sconce_model_open(&h->model, h->device, &desc, err));
  TRY(sconce_method_open(&h->method, h->model, "scaled", err));
  for (int i = 0; i < 2; i++) TRY(sconce_state_open(&h->states[i], h->method, err));
  return SCONCE_OK;
}

static void close_house(struct house *h) {
  for (int i = 0; i < 2; i++) sconce_state_close(h->states[i]);
  sconce_method_close(h->method);
  sconce_model_close(h->model);
  sconce_device_close(h->device);
  arena_free(&h->arena);
}

/* Every read, of the model, of its methods, of named data and for the fingerprint, ends only when
 * this thread has made a call since it began; and computes with a state of its own. */
static void others_work_while_a_thread_reads(void) {
  static struct opener o;
  atomic_uint calls = 0;
  struct os_team team;
  struct house h;
  sconce_error err = {0};
  float y[N];
  uint64_t fingerprint = 0;
  CHECK_OK(open_house(&h, &err), err);
  if (h.states[1]) {
    o = (struct opener){.device = h.device,
                        .slow = {.file = h.file, .own = h.states[1], .calls = &calls}};
    os_team_start(&team, 1, open_and_use, &o);
    CHECK_EQ(team.n, 1);
    while (!o.done && !test_failed()) {
      CHECK_OK(call(h.states[0], (float)(calls % 7), y, &err), err);
      check_scaled(y, (float)(calls % 7));
      calls++;
    }
    os_team_join(&team);
    CHECK_OK(o.status, o.err);
    CHECK(o.slow.n_reads >= 4 && o.slow.n_keys == 1); /* a head, its front, a constant, all again */
    check_scaled(o.scaled, 1);
    check_moved(o.moved, 2);
    CHECK_OK(sconce_model_fingerprint(h.model, &fingerprint, &err), err);
    CHECK(fingerprint == o.fingerprint);
  }
  close_house(&h);
}

struct poller {
  sconce_method *method;
  sconce_status status;
  sconce_error err;
};

static void poll_to_the_end(void *user) {
  struct poller *p = user;
  sconce_progress progress = {0};
  while (p->status == SCONCE_OK && !progress.done) {
    p->status = sconce_method_poll(p->method, &progress, &p->err);
    os_sleep_ns(10000);
  }
}

/* Two threads open methods of one model, and one of them twice, while the model's owner asks for
 * its fingerprint: they read through one piece. */
static void methods_of_a_model_take_turns_at_its_files(void) {
  static const char *const names[3] = {"scaled", "moved", "scaled"};
  struct poller pollers[3] = {{0}};
  struct os_team teams[3];
  struct house h;
  sconce_model *model = NULL;
  sconce_error err = {0};
  uint64_t want = 0, got = 1;
  CHECK_OK(open_house(&h, &err), err);
  struct slow slow = {.file = h.file};
  const sconce_model_desc desc = desc_of(&slow);
  CHECK_OK(sconce_model_open(&model, h.device, &desc, &err), err);
  for (int i = 0; model && i < 3; i++)
    CHECK_OK(sconce_method_begin(&pollers[i].method, model, names[i], &err), err);
  if (pollers[2].method) {
    for (int i = 0; i < 3; i++) os_team_start(&teams[i], 1, poll_to_the_end, &pollers[i]);
    CHECK_OK(sconce_model_fingerprint(model, &got, &err), err);
    for (int i = 0; i < 3; i++) os_team_join(&teams[i]);
    CHECK_OK(sconce_model_fingerprint(h.model, &want, &err), err);
    CHECK(got == want);
  }
  for (int i = 0; i < 3 && pollers[2].method; i++) {
    float y[N];
    sconce_state *s = NULL;
    CHECK_OK(pollers[i].status, pollers[i].err);
    CHECK_OK(sconce_state_open(&s, pollers[i].method, &err), err);
    CHECK_OK(call(s, 5, y, &err), err);
    if (i == 1)
      check_moved(y, 5);
    else
      check_scaled(y, 5);
    sconce_state_close(s);
  }
  for (int i = 0; i < 3; i++) sconce_method_close(pollers[i].method);
  sconce_model_close(model);
  close_house(&h);
}

const struct test suite_slow[] = {
    TEST(others_work_while_a_thread_reads),
    TEST(methods_of_a_model_take_turns_at_its_files),
    {0},
};
