/* What sessions allocate: nothing once each shape was seen, and any allocation may fail. */
#include "session_fixture.h"

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
    CHECK_EQ(alloc.calls, calls);
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

const struct test suite_session_memory[] = {
    TEST(a_thousand_steps_allocate_nothing), TEST(every_failing_allocation_is_survived), {0}};
