/* What sessions allocate: nothing once each shape was seen, and any allocation may fail. */
#include "session_fixture.h"
#include "system.h"

static sconce_status decode_around(struct fixture *f, int steps, sconce_error *err) {
  for (int i = 0; i < steps; i++) {
    sconce_choice c;
    TRY(sconce_session_choose(f->session, &c, err));
    TRY(sconce_session_append(f->session, c.id, err));
    if (sconce_session_describe(f->session)->position < 8) continue;
    TRY(sconce_session_rewind(f->session, (uint32_t)i % 5, err));
    TRY(sconce_session_prompt(f->session, (int32_t[]){1, 5, 2, 3, 6}, 1 + (size_t)i % 5, NULL, NULL,
                              err));
  }
  return SCONCE_OK;
}

static void a_thousand_steps_allocate_nothing(void) {
  struct fixture f;
  sconce_error err = {0};
  struct test_allocator alloc;
  test_allocator_init(&alloc, 0);
  CHECK_OK(open_method(&f, TOY, &alloc.hook, &err), err);
  if (f.method) CHECK_OK(open_session(&f, 1, 3, &alloc.hook, &err), err);
  if (f.session) {
    for (uint32_t n = 7; n > 0; n--) { /* each shape once */
      CHECK_OK(sconce_session_rewind(f.session, 0, &err), err);
      CHECK_OK(sconce_session_prompt(f.session, (int32_t[7]){1}, n, NULL, NULL, &err), err);
    }
    sconce_stats before, after;
    sconce_state_stats(sconce_session_state(f.session), &before);
    uint64_t calls = alloc.calls;
    CHECK_OK(decode_around(&f, 1000, &err), err);
    sconce_state_stats(sconce_session_state(f.session), &after);
    CHECK(alloc.calls - calls < IN_FLIGHT);
    calls = alloc.calls;
    CHECK_OK(decode_around(&f, 1000, &err), err);
    CHECK(alloc.calls - calls < 3); /* and the second thousand hardly any */
    CHECK_EQ(after.gpu_objects_made, before.gpu_objects_made);
    CHECK_EQ(after.gpu_kernels, before.gpu_kernels);
  }
  close_all(&f);
  CHECK_EQ(alloc.live, 0);
}

static sconce_status use(struct fixture *f, const sconce_allocator *allocator, sconce_error *err) {
  TRY(open_session(f, 1, 3, allocator, err));
  TRY(sconce_session_prompt(f->session, (int32_t[]){1, 5, 2}, 3, NULL, NULL, err));
  return decode_around(f, 8, err);
}

static void every_failing_allocation_is_survived(void) {
  for (uint64_t n = 1; n < 500; n++) {
    struct fixture f;
    sconce_error err = {0};
    struct test_allocator alloc;
    test_allocator_init(&alloc, 0);
    CHECK_OK(open_method(&f, TOY, &alloc.hook, &err), err);
    alloc.fail_at = alloc.calls + n;
    sconce_status status = f.method ? use(&f, &alloc.hook, &err) : SCONCE_OK;
    bool reached = alloc.calls >= alloc.fail_at;
    if (reached && status != SCONCE_NO_MEMORY)
      test_fail(__FILE__, __LINE__, "allocation %llu: %s (%s)", (unsigned long long)n,
                sconce_status_name(status), err.text);
    if (!reached) CHECK_OK(status, err);
    close_all(&f);
    CHECK_EQ(alloc.live, 0);
    if (!reached || test_failed()) return;
  }
  test_fail(__FILE__, __LINE__, "more than 500 allocations");
}

/* ---- save, load, generate -------------------------------------------------------------------- */

enum { TOLD = 5 };

struct told {
  uint32_t n;
  int32_t ids[TOLD];
};

static bool take_id(void *user, const char *text, size_t size, sconce_choice choice) {
  struct told *t = user;
  (void)text, (void)size;
  if (t->n < TOLD) t->ids[t->n++] = choice.id;
  return true;
}

static sconce_status tell(struct fixture *f, struct told *out, sconce_error *err) {
  sconce_generate_result result;
  *out = (struct told){0};
  return sconce_session_generate(f->session,
                                 &(sconce_generate_desc){.prompt = (int32_t[]){1, 5, 2, 3},
                                                         .n_prompt = 4,
                                                         .max_new = TOLD,
                                                         .ignore_end = true,
                                                         .on_text = take_id,
                                                         .user = out},
                                 &result, err);
}

enum act { SAVE, LOAD, GENERATE, ACTS };

static sconce_status act(struct fixture *f, enum act what, const char *path, struct told *out,
                         sconce_error *err) {
  switch (what) {
  case SAVE:
    return sconce_session_save(f->session, path, err);
  case LOAD:
    return sconce_session_load(f->session, path, err);
  default:
    return tell(f, out, err);
  }
}

/* What was there before the failure is there behind it: the file, which a save leaves as it was,
 * and the session, which says what it would have said. */
static void check_nothing_is_lost(struct fixture *f, enum act what, const char *path,
                                  const struct told *want) {
  struct told got;
  sconce_error err = {0};
  if (what == SAVE) CHECK_OK(sconce_session_load(f->session, path, &err), err);
  if (what == SAVE) CHECK_EQ(position(f), 3);
  CHECK_OK(act(f, what, path, &got, &err), err);
  CHECK_OK(tell(f, &got, &err), err);
  CHECK_EQ(got.n, want->n);
  CHECK(memcmp(got.ids, want->ids, sizeof got.ids) == 0);
}

/* true: it has no allocation n. */
static bool fail_once(enum act what, uint64_t n, const char *path, const struct told *want) {
  struct fixture f;
  struct told got;
  sconce_error err = {0};
  struct test_allocator alloc;
  bool reached = false;
  test_allocator_init(&alloc, 0);
  CHECK_OK(open_method(&f, TOY, &alloc.hook, &err), err);
  if (f.method) CHECK_OK(open_session(&f, 0, 0, &alloc.hook, &err), err);
  if (f.session) {
    CHECK_OK(sconce_session_prompt(f.session, (int32_t[]){1, 5, 2}, 3, NULL, NULL, &err), err);
    CHECK_OK(sconce_session_save(f.session, path, &err), err);
    if (what == SAVE) /* another file than the one that is there */
      CHECK_OK(sconce_session_prompt(f.session, (int32_t[]){1, 5}, 2, NULL, NULL, &err), err);
    alloc.fail_at = alloc.calls + n;
    const sconce_status status = act(&f, what, path, &got, &err);
    reached = alloc.calls >= alloc.fail_at;
    alloc.fail_at = 0;
    if (reached)
      CHECK_SAYS(status == SCONCE_NO_MEMORY, "act %d, allocation %llu: %s (%s)", (int)what,
                 (unsigned long long)n, sconce_status_name(status), err.text);
    else
      CHECK_OK(status, err);
    if (reached) check_nothing_is_lost(&f, what, path, want);
  }
  close_all(&f);
  CHECK_EQ(alloc.live, 0);
  return !reached;
}

static void every_failing_allocation_of_acts_is_survived(void) {
  char path[TEST_PATH_MAX];
  struct fixture f;
  struct told want = {0};
  sconce_error err = {0};
  CHECK_OK(open_method(&f, TOY, NULL, &err), err);
  if (f.method) CHECK_OK(open_session(&f, 0, 0, NULL, &err), err);
  if (f.session) CHECK_OK(tell(&f, &want, &err), err);
  close_all(&f);
  test_temporary(path, "");
  for (int what = 0; what < ACTS && !test_failed(); what++) {
    uint64_t n = 1;
    while (n < 500 && !test_failed() && !fail_once((enum act)what, n, path, &want))
      n += test_gpu_is_slow() ? 3 : 1;
    CHECK(n > 1 && n < 500); /* each allocates something */
  }
  remove(path);
}

const struct test suite_session_memory[] = {TEST(a_thousand_steps_allocate_nothing),
                                            TEST(every_failing_allocation_is_survived),
                                            TEST(every_failing_allocation_of_acts_is_survived),
                                            {0}};
