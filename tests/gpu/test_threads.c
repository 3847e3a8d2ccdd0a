/* Several threads on one device: whoever holds its lock works, whoever waits lets others work. */
#include "gpu.h"

#include "base/os.h"
#include "gpu/probe.h"
#include "graph/op.h"

#include "chain.wgsl.h"

#include <stdatomic.h>
#include <stdio.h>

enum { THREADS = 4, N = 64 };

/* What a thread has on the device, and what went wrong: the harness is for one thread. */
struct worker {
  struct gpu *gpu;
  uint32_t id, n_rounds;
  struct gpu_buffer *x, *y, *params;
  struct gpu_kernel *kernel;
  struct gpu_group *group;
  struct gpu_read *read;
  sconce_status status;
  sconce_error err;
};

static sconce_status worker_open(struct worker *w, sconce_error *err) {
  static const char *const sets[THREADS] = {"WG=64u", "WG=32u", "WG=16u", NULL};
  struct kernel row = probe_kernels[PROBE_CHAIN];
  row.set = sets[w->id % THREADS];
  TRY(gpu_kernel_get(w->gpu, &row, &w->kernel, err));
  TRY(gpu_buffer_open(w->gpu, GPU_TRANSIENT, 4 * N, "x", &w->x, err));
  TRY(gpu_buffer_open(w->gpu, GPU_TRANSIENT, 4 * N, "y", &w->y, err));
  TRY(gpu_buffer_open(w->gpu, GPU_PARAMS, sizeof(struct chain_params), "p", &w->params, err));
  return gpu_read_open(w->gpu, 4 * N, &w->read, err);
}

static void worker_close(struct worker *w) {
  gpu_read_close(w->read);
  gpu_group_close(w->group);
  gpu_buffer_close(w->x);
  gpu_buffer_close(w->y);
  gpu_buffer_close(w->params);
}

static sconce_status bind(struct worker *w, sconce_error *err) {
  struct gpu_binding b[] = {{.buffer = w->x}, {.buffer = w->y}, {.buffer = w->params}};
  gpu_group_close(w->group);
  w->group = NULL;
  return gpu_group_open(w->kernel, b, 3, &w->group, err);
}

static sconce_status get_data(struct worker *w, bool wait, const void **data, sconce_error *err) {
  if (wait) return gpu_read_wait(w->read, data, err);
  for (;;) {
    TRY(gpu_read_poll(w->read, data, err));
    if (*data) return SCONCE_OK;
    gpu_unlock(w->gpu);
    os_sleep_ns(20000);
    gpu_lock(w->gpu);
  }
}

static sconce_status compile_some(struct worker *w, uint32_t round, sconce_error *err) {
  char set[20];
  snprintf(set, sizeof set, "WG=%uu", 1 + (w->id + THREADS * round) % 60);
  struct kernel row = probe_kernels[PROBE_CHAIN];
  row.set = set;
  const struct kernel *rows[] = {&row, &probe_kernels[PROBE_READ]};
  struct gpu_compile *c;
  TRY(gpu_compile_begin(w->gpu, rows, 2, &c, err));
  sconce_status status = SCONCE_OK;
  bool done = false;
  for (uint32_t n; status == SCONCE_OK && !done && round % 3;) {
    status = gpu_compile_poll(c, &n, &done, err);
    gpu_unlock(w->gpu);
    os_sleep_ns(20000);
    gpu_lock(w->gpu);
  }
  gpu_compile_end(c, false); /* `set` is gone after this */
  return status;
}

/* The lock is given away in get_data, so everything may be mixed with what others do. */
static sconce_status one_round(struct worker *w, uint32_t round, sconce_error *err) {
  const struct chain_params p = {.n = N, .add = 1000 * w->id + round};
  uint32_t x[N];
  for (uint32_t i = 0; i < N; i++) x[i] = i * (w->id + 1);
  if (round % 8 == 0) TRY(bind(w, err));
  TRY(gpu_write(w->params, 0, &p, sizeof p, err));
  TRY(gpu_write(w->x, 0, x, sizeof x, err));
  struct gpu_dispatch d[] = {{w->group, {4, 1, 1}}, {w->group, {4, 1, 1}}};
  struct gpu_copy copy = {.from = w->y, .to = w->read, .size = 4 * N};
  TRY(gpu_submit(w->gpu, &(struct gpu_batch){d, 2, &copy, 1}, err));
  TRY(gpu_read_begin(w->read, err));
  if (round % 16 == 5) { /* given up */
    gpu_read_end(w->read);
    return round % 32 == 5 ? gpu_finish(w->gpu, err) : SCONCE_OK;
  }
  const void *data = NULL;
  TRY(get_data(w, round % 2, &data, err));
  uint32_t y[N];
  memcpy(y, data, sizeof y);
  gpu_read_end(w->read);
  for (uint32_t i = 0; i < N; i++)
    if (y[i] != x[i] + p.add)
      return fail(err, SCONCE_BAD_ARGUMENT, "thread %u, round %u: y[%u] is %u, want %u", w->id,
                  round, i, y[i], x[i] + p.add);
  return round % 10 == 7 ? compile_some(w, round, err) : SCONCE_OK;
}

static void work(void *user) {
  struct worker *w = user;
  gpu_lock(w->gpu);
  w->status = worker_open(w, &w->err);
  for (uint32_t r = 0; r < w->n_rounds && w->status == SCONCE_OK; r++) {
    w->status = one_round(w, r, &w->err);
    if (r % 4) continue;
    gpu_unlock(w->gpu);
    gpu_lock(w->gpu);
  }
  worker_close(w);
  gpu_unlock(w->gpu);
}

/* A team of one for each, since each has work of its own. */
static void run_all(struct worker *workers, uint32_t n, void (*each)(void *user)) {
  struct os_team teams[THREADS];
  for (uint32_t i = 0; i < n; i++) os_team_start(&teams[i], 1, each, &workers[i]);
  for (uint32_t i = 0; i < n; i++) {
    CHECK_EQ(teams[i].n, 1);
    os_team_join(&teams[i]);
  }
}

static void each_gets_its_own_results(void) {
  struct gpu *gpu;
  sconce_error err = {0};
  REQUIRE_OK(gpu_open(&gpu, &(struct gpu_desc){0}, &err), err);
  struct worker workers[THREADS];
  for (uint32_t i = 0; i < THREADS; i++)
    workers[i] = (struct worker){.gpu = gpu, .id = i, .n_rounds = 100};
  run_all(workers, THREADS, work);
  for (uint32_t i = 0; i < THREADS; i++) CHECK_OK(workers[i].status, workers[i].err);
  CHECK_OK(gpu_settle(gpu, &err), err);
  CHECK_EQ(gpu_stats(gpu)->buffers, 0);
  CHECK_EQ(gpu_stats(gpu)->groups, 0);
  gpu_close(gpu);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static atomic_bool others_work;

/* Errors of every kind that a call can have: all must be this thread's own. */
static void make_errors(void *user) {
  struct worker *w = user;
  struct wgsl broken = chain_wgsl;
  broken.uses = "";
  broken.text = "@compute @workgroup_size(1) fn main() { let a: u32 = nothing; }\n";
  struct kernel row = {"row", &broken, NULL, 0};
  gpu_lock(w->gpu);
  struct gpu_buffer *closed = NULL;
  w->status = gpu_buffer_open(w->gpu, GPU_QUERIES, 256, "closed", &closed, &w->err);
  for (uint32_t i = 0; w->status == SCONCE_OK && (i < 20 || others_work); i++) {
    sconce_error err = {0};
    struct gpu_kernel *kernel;
    if (gpu_write(closed, 0, "abcd", 4, &err) != SCONCE_GPU_ERROR ||
        !strstr(err.text, "writing 4 bytes") ||
        gpu_kernel_get(w->gpu, &row, &kernel, &err) != SCONCE_GPU_ERROR ||
        !strstr(err.text, "compiling shader"))
      w->status = fail(&w->err, SCONCE_BAD_ARGUMENT, "round %u: not this error: %s", i, err.text);
    gpu_unlock(w->gpu);
    os_sleep_ns(50000);
    gpu_lock(w->gpu);
  }
  gpu_buffer_close(closed);
  gpu_unlock(w->gpu);
}

static void work_among_errors(void *user) {
  work(user);
  others_work = false;
}

static void an_error_is_its_threads_own(void) {
  struct gpu *gpu;
  sconce_error err = {0};
  REQUIRE_OK(gpu_open(&gpu, &(struct gpu_desc){0}, &err), err);
  if (strcmp(gpu_info(gpu)->library, "wgpu-native") != 0) {
    test_skip("errors come late, and are the device's");
    gpu_close(gpu);
    return;
  }
  struct worker good = {.gpu = gpu, .id = 1, .n_rounds = 60}, bad = {.gpu = gpu};
  struct os_team teams[2];
  others_work = true;
  os_team_start(&teams[0], 1, work_among_errors, &good);
  os_team_start(&teams[1], 1, make_errors, &bad);
  os_team_join(&teams[0]);
  others_work = false;
  os_team_join(&teams[1]);
  CHECK_OK(good.status, good.err);
  CHECK_OK(bad.status, bad.err);
  CHECK_OK(gpu_check(gpu, &err), err);
  gpu_close(gpu);
}

/* ---- waiting --------------------------------------------------------------------------------- */

struct watch {
  struct gpu *gpu;
  atomic_bool waiting, over;
  uint32_t turns; /* while the other one waited */
};

static void take_turns(void *user) {
  struct watch *watch = user;
  while (!watch->over) {
    gpu_lock(watch->gpu);
    if (watch->waiting) watch->turns++;
    gpu_unlock(watch->gpu);
    os_sleep_ns(10000);
  }
}

enum { TURNS = 3 };

/* Enough work that the device is busy for a while; again where the other one slept through it, as
 * on a busy machine. The lock is this thread's but while it waits. */
static sconce_status keep_busy(struct worker *w, struct watch *watch, sconce_error *err) {
  TRY(worker_open(w, err));
  TRY(bind(w, err));
  struct gpu_dispatch d[500];
  for (uint32_t i = 0; i < 500; i++) d[i] = (struct gpu_dispatch){w->group, {32, 4, 1}};
  for (int round = 0; round < 40 && watch->turns < TURNS; round++) {
    TRY(gpu_submit(w->gpu, &(struct gpu_batch){d, 500, NULL, 0}, err));
    watch->waiting = true;
    sconce_status status = gpu_finish(w->gpu, err);
    watch->waiting = false;
    TRY(status);
  }
  return SCONCE_OK;
}

static void who_waits_lets_others_work(void) {
  struct gpu *gpu;
  sconce_error err = {0};
  REQUIRE_OK(gpu_open(&gpu, &(struct gpu_desc){0}, &err), err);
  struct watch watch = {.gpu = gpu};
  atomic_init(&watch.waiting, false);
  atomic_init(&watch.over, false);
  struct worker w = {.gpu = gpu};
  struct os_team team;
  os_team_start(&team, 1, take_turns, &watch);
  CHECK_EQ(team.n, 1);
  gpu_lock(gpu);
  CHECK_OK(keep_busy(&w, &watch, &err), err);
  worker_close(&w);
  gpu_unlock(gpu);
  watch.over = true;
  os_team_join(&team);
  CHECK(watch.turns >= TURNS);
  gpu_close(gpu);
}

/* ---- loss ------------------------------------------------------------------------------------ */

static void a_loss_reaches_every_thread(void) {
  struct gpu *gpu;
  sconce_error err = {0};
  REQUIRE_OK(gpu_open(&gpu, &(struct gpu_desc){0}, &err), err);
  struct worker workers[THREADS];
  struct os_team teams[THREADS];
  for (uint32_t i = 0; i < THREADS; i++) {
    workers[i] = (struct worker){.gpu = gpu, .id = i, .n_rounds = UINT32_MAX};
    os_team_start(&teams[i], 1, work, &workers[i]);
  }
  os_sleep_ns(20000000);
  gpu_lock(gpu);
  gpu_lose(gpu);
  gpu_unlock(gpu);
  for (uint32_t i = 0; i < THREADS; i++) {
    os_team_join(&teams[i]);
    CHECK_EQ(workers[i].status, SCONCE_DEVICE_LOST);
  }
  CHECK_EQ(gpu_stats(gpu)->buffers, 0);
  gpu_close(gpu);
}

const struct test suite_threads[] = {
    TEST(each_gets_its_own_results),
    TEST(an_error_is_its_threads_own),
    TEST(who_waits_lets_others_work),
    TEST(a_loss_reaches_every_thread),
    {0},
};
