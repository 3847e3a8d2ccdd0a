/* The self-check: the operators' own tests (trial/trial.h), which compare with loops in double, on
 * the device at hand, and which kernel rows they ran.
 *
 * A failed comparison has suspects: the rows that ran since the last one that was right. The guilty
 * one is found by avoiding each in turn and running the test again. It is avoided from then on, so
 * that the rest of the test is run too. */
#include "sconce_dev.h"

#include "base/os.h"
#include "check/tables.h"
#include "graph/op.h"
#include "run/device.h"
#include "trial/trial.h"

#include <stdatomic.h>

enum { ROWS_MAX = 4096, SUSPECTS_MAX = 64, AVOID_MAX = 16384, WHY_MAX = 400, ROUNDS_MAX = 64 };

struct row_state {
  const struct kernel *row;
  uint64_t runs;
  bool wrong, stays;
  char why[WHY_MAX]; /* of a wrong one */
};

struct suspects {
  uint32_t n, rows[SUSPECTS_MAX];
};

struct self {
  struct gpu *gpu;
  const sconce_self_desc *desc;
  sconce_self_result *out;
  struct row_state *rows;
  uint32_t n_rows;
  uint64_t start_ns;
  double until; /* seconds for this family; 0: as long as it takes */
  char avoid[AVOID_MAX];
  /* of one attempt at a test: */
  struct suspects now, last; /* ran since the last right comparison; by the last graph */
  uint32_t right;            /* comparisons before the failure */
  struct suspects at_failure;
};

static double seconds(const struct self *s) { return (double)(os_clock_ns() - s->start_ns) * 1e-9; }

static bool has(const struct suspects *set, uint32_t row) {
  for (uint32_t i = 0; i < set->n; i++)
    if (set->rows[i] == row) return true;
  return false;
}

static void add(struct suspects *set, uint32_t row) {
  if (set->n < SUSPECTS_MAX && !has(set, row)) set->rows[set->n++] = row;
}

/* ---- what the tests run ---------------------------------------------------------------------- */

/* One with fixed parameters is the table's row too. */
static uint32_t find_row(const struct self *s, const struct kernel *row) {
  uint32_t i = 0;
  while (i < s->n_rows && (s->rows[i].row->wgsl != row->wgsl || s->rows[i].row->name != row->name))
    i++;
  return i;
}

static struct gpu *device_of(void *user) { return ((struct self *)user)->gpu; }

static bool is_over(void *user) {
  const struct self *s = user;
  return s->until > 0 && seconds(s) > s->until;
}

static void note_runs(void *user, const struct graph *g) {
  struct self *s = user;
  if (is_over(s)) return;
  s->last.n = 0;
  for (uint32_t i = 0; i < g->n_nodes; i++)
    for (uint32_t k = 0; k < g->nodes[i].n_records; k++) {
      const uint32_t row = find_row(s, g->nodes[i].records[k].row);
      if (row == s->n_rows) continue;
      s->rows[row].runs++;
      add(&s->now, row);
      add(&s->last, row);
    }
}

static void note_right(void *user) {
  struct self *s = user;
  s->now.n = 0;
  s->right++;
}

static void note_failure(const struct trial *t, const char *text) {
  struct self *s = t->user;
  (void)text;
  if (t->outcome == TRIAL_FAILED) return; /* the first one tells */
  s->at_failure = s->now.n ? s->now : s->last;
}

static void attempt(struct self *s, struct trial *t, const struct test *test) {
  s->now.n = s->last.n = s->at_failure.n = s->right = 0;
  gpu_avoid(s->gpu, s->avoid);
  trial_run(t, test);
  sconce_error stray;
  if (t->outcome == TRIAL_FAILED && gpu_check(s->gpu, &stray) != SCONCE_OK)
    return; /* an error that came late is told once: it belongs to this test */
}

/* ---- who is wrong ---------------------------------------------------------------------------- */

/* Returns false if there is no more room. */
static bool avoid_row(struct self *s, uint32_t row) {
  const struct kernel *k = s->rows[row].row;
  const size_t at = strlen(s->avoid);
  const int n =
      snprintf(s->avoid + at, AVOID_MAX - at, "%s%s/%s", at ? "," : "", k->wgsl->name, k->name);
  if (n > 0 && (size_t)n < AVOID_MAX - at) return true;
  s->avoid[at] = 0;
  return false;
}

static void blame(struct self *s, uint32_t row, const struct trial *t, bool stays) {
  struct row_state *r = &s->rows[row];
  if (!r->wrong) s->out->wrong++;
  if (!r->wrong) snprintf(r->why, sizeof r->why, "%s/%s: %.300s", t->suite, t->test, t->text);
  r->wrong = true;
  r->stays |= stays;
}

/* Is the test better off without this row? Where the next one in its place fails there too, that
 * one is tried as well. *out: all that had to go. */
static bool is_guilty(struct self *s, const struct trial *first, const struct test *test,
                      uint32_t row, uint32_t right, struct suspects seen, struct suspects *out,
                      bool *served) {
  const size_t was = strlen(s->avoid);
  *out = (struct suspects){0};
  *served = false;
  for (uint32_t next = row; next < s->n_rows;) {
    struct trial t = {first->host, first->user, first->suite, first->test};
    add(out, next);
    if (!avoid_row(s, next)) break;
    attempt(s, &t, test);
    if (t.outcome != TRIAL_FAILED || s->right > right) return true;
    if (next == row) *served = has(&s->at_failure, row); /* nothing else fits */
    next = s->n_rows;
    for (uint32_t i = 0; i < s->at_failure.n; i++)
      if (!has(&seen, s->at_failure.rows[i])) next = s->at_failure.rows[i];
    if (next < s->n_rows) add(&seen, next);
    if (gpu_is_lost(s->gpu)) break;
  }
  s->avoid[was] = 0;
  return false;
}

static void blame_alone(struct self *s, const struct trial *t, const struct suspects *at,
                        const struct suspects *alone) {
  if (at->n == 1) blame(s, at->rows[0], t, true);
  if (at->n > 1 && alone->n == 1) blame(s, alone->rows[0], t, true);
}

/* One failure: finds rows without which it would not be. */
static bool explain(struct self *s, const struct trial *t, const struct test *test) {
  const struct suspects at = s->at_failure;
  const uint32_t right = s->right;
  struct suspects alone = {0}; /* rows that nothing else could stand in for */
  for (uint32_t i = 0; i < at.n && !gpu_is_lost(s->gpu); i++) {
    struct suspects guilty;
    bool served;
    if (s->rows[at.rows[i]].wrong) continue;
    if (is_guilty(s, t, test, at.rows[i], right, at, &guilty, &served)) {
      for (uint32_t k = 0; k < guilty.n; k++) blame(s, guilty.rows[k], t, false);
      return true;
    }
    if (served) add(&alone, at.rows[i]);
  }
  blame_alone(s, t, &at, &alone);
  s->at_failure = alone.n ? alone : at;
  return false;
}

/* Of a failure that no row explains its suspects are told. */
static void tell_check(struct self *s, const struct trial *t, bool explained) {
  char name[120], text[2048];
  snprintf(name, sizeof name, "%s/%s", t->suite, t->test);
  int n = snprintf(text, sizeof text, "%s", t->text);
  for (uint32_t i = 0; !explained && i < s->at_failure.n && n < (int)sizeof text; i++) {
    const struct kernel *row = s->rows[s->at_failure.rows[i]].row;
    n += snprintf(text + n, sizeof text - (size_t)n, "%s%s/%s", i ? ", " : "; it ran ",
                  row->wgsl->name, row->name);
  }
  if (s->desc->failed) s->desc->failed(s->desc->user, name, text);
}

static sconce_status check_one(struct self *s, const struct test_suite *suite,
                               const struct test *test, sconce_error *err) {
  static const struct trial_host host = {.gpu = device_of,
                                         .failed = note_failure,
                                         .runs = note_runs,
                                         .is_over = is_over,
                                         .right = note_right};
  for (uint32_t round = 0; round < ROUNDS_MAX; round++) {
    struct trial t = {&host, s, suite->name, test->name};
    attempt(s, &t, test);
    if (round == 0) s->out->checks += !is_over(s);
    if (t.outcome != TRIAL_FAILED) return SCONCE_OK;
    if (round == 0) s->out->checks_failed++;
    s->until = 0; /* who is wrong takes the time that it takes */
    const bool explained = !gpu_is_lost(s->gpu) && explain(s, &t, test);
    if (gpu_is_lost(s->gpu) && s->at_failure.n == 1) blame(s, s->at_failure.rows[0], &t, false);
    tell_check(s, &t, explained);
    if (gpu_is_lost(s->gpu)) return gpu_check(s->gpu, err);
    if (!explained) return SCONCE_OK;
  }
  return SCONCE_OK;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Tests of single rows come first where time is short. */
static bool is_of_rows(const struct test *test) { return strstr(test->name, "row") != NULL; }

static sconce_status check_suite(struct self *s, const struct test_suite *suite,
                                 sconce_error *err) {
  for (int pass = 0; pass < 2; pass++)
    for (const struct test *test = suite->tests; test->name; test++) {
      char name[120];
      snprintf(name, sizeof name, "%s/%s", suite->name, test->name);
      if (is_of_rows(test) != (pass == 0)) continue;
      if (s->desc->filter && !strstr(name, s->desc->filter)) continue;
      if (!is_over(s)) {
        if (s->desc->progress) s->desc->progress(s->desc->user, name);
        TRY(check_one(s, suite, test, err));
      }
      s->out->checks_left += is_over(s);
    }
  return SCONCE_OK;
}

static sconce_status check_suites(struct self *s, sconce_error *err) {
  uint32_t n = 0;
  while (trial_suites[n].name) n++;
  for (uint32_t i = 0; i < n; i++) { /* what one leaves of its time is the others' */
    const double now = seconds(s), left = s->desc->seconds - now;
    s->until = s->desc->seconds > 0 ? now + left / (n - i) : 0;
    TRY(check_suite(s, &trial_suites[i], err));
  }
  return SCONCE_OK;
}

static const char *why_not(const struct self *s, const struct row_state *r) {
  struct caps caps = gpu_caps(s->gpu);
  caps.avoid = NULL;
  if (!caps_offer(&caps, r->row->needs)) return "needs a feature that this device lacks";
  if (!kernel_runs(r->row, &caps)) return "needs larger limits than this device's";
  if (s->out->checks_left) return "its turn did not come in this time";
  return "none of the checks that were run takes it";
}

static void tell_rows(struct self *s) {
  for (uint32_t i = 0; i < s->n_rows; i++) {
    const struct row_state *r = &s->rows[i];
    char label[120];
    snprintf(label, sizeof label, "%s/%s", r->row->wgsl->name, r->row->name);
    sconce_self_row row = {.label = label, .runs = r->runs, .wrong = r->wrong, .stays = r->stays};
    row.why = r->wrong ? r->why : r->runs ? NULL : why_not(s, r);
    if (r->runs)
      s->out->tried++;
    else
      s->out->skipped++;
    s->desc->each(s->desc->user, &row);
  }
}

static void take_row(void *user, const struct kernel *row) {
  struct self *s = user;
  if (s->n_rows < ROWS_MAX && find_row(s, row) == s->n_rows) s->rows[s->n_rows++].row = row;
}

/* Every row that may run, on all cores: one after another, when its test comes, they are most of
 * the time that a check takes. What does not compile fails its test. */
static sconce_status compile_rows(struct self *s, const struct kernel **room, sconce_error *err) {
  const struct caps caps = gpu_caps(s->gpu);
  struct gpu_compile *compile;
  uint32_t n = 0;
  if (s->desc->filter || s->desc->seconds > 0) return SCONCE_OK; /* few of them are needed */
  for (uint32_t i = 0; i < s->n_rows; i++)
    if (kernel_runs(s->rows[i].row, &caps)) room[n++] = s->rows[i].row;
  if (s->desc->progress) s->desc->progress(s->desc->user, "compiling");
  TRY(gpu_compile_begin(s->gpu, room, n, &compile, err));
  gpu_compile_end(compile, true);
  return SCONCE_OK;
}

static atomic_flag busy = ATOMIC_FLAG_INIT; /* tests of one thread at a time */

static sconce_status check_self(struct self *s, const struct kernel **room, sconce_error *err) {
  tables_of_operators(take_row, s);
  const char *was = gpu_caps(s->gpu).avoid;
  gpu_avoid(s->gpu, NULL);
  sconce_status status = compile_rows(s, room, err);
  if (status == SCONCE_OK) status = check_suites(s, err);
  gpu_avoid(s->gpu, was);
  tell_rows(s);
  s->out->seconds = seconds(s);
  return status;
}

sconce_status sconce_check_self(sconce_device *device, const sconce_self_desc *desc,
                                sconce_self_result *out, sconce_error *err) {
  if (!device || !desc || !desc->each || !out)
    return fail(err, SCONCE_BAD_ARGUMENT, "device, desc, each or out is NULL");
  TRY(device_check_ready(device, err));
  if (atomic_flag_test_and_set(&busy))
    return fail(err, SCONCE_BAD_ARGUMENT, "a self-check is running on another thread");
  struct arena arena;
  arena_init(&arena, &device->allocator);
  *out = (sconce_self_result){0};
  struct self *s = arena_new(&arena, struct self, 1);
  struct row_state *rows = arena_new(&arena, struct row_state, ROWS_MAX);
  const struct kernel **room = arena_new(&arena, const struct kernel *, ROWS_MAX);
  sconce_status status = SCONCE_OK;
  if (!s || !rows || !room) {
    status = fail(err, SCONCE_NO_MEMORY, "no memory for a self-check");
  } else {
    s->gpu = device->gpu, s->desc = desc, s->out = out, s->rows = rows;
    s->start_ns = os_clock_ns();
    gpu_lock(device->gpu);
    status = check_self(s, room, err);
    gpu_unlock(device->gpu);
  }
  arena_free(&arena);
  atomic_flag_clear(&busy);
  return status;
}
