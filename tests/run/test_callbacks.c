/* Functions of the caller's that a session calls, and that call it: they are refused with a
 * sentence, and what is under way goes on as if they had not. */
#include "session_fixture.h"

struct caller {
  struct fixture *f;
  uint32_t refused, calls;
};

static void refuses(struct caller *c, sconce_status status) {
  c->calls++;
  c->refused += status == SCONCE_BAD_ARGUMENT;
}

static void call_all(struct caller *c) {
  sconce_session *s = c->f->session;
  static const int32_t ids[] = {1, 2, 3};
  const sconce_generate_desc desc = {.prompt = ids, .n_prompt = 3, .max_new = 2};
  sconce_generate_result result;
  sconce_choice choice;
  bool done;
  refuses(c, sconce_session_generate_poll(s, &done, &result, NULL));
  refuses(c, sconce_session_generate(s, &desc, &result, NULL));
  refuses(c, sconce_session_prompt(s, ids, 3, NULL, NULL, NULL));
  refuses(c, sconce_session_append(s, 1, NULL));
  refuses(c, sconce_session_next(s, &choice, NULL));
  refuses(c, sconce_session_choose(s, &choice, NULL));
  refuses(c, sconce_session_rewind(s, 0, NULL));
  refuses(c, sconce_session_set_sampler(s, &(sconce_sampler_desc){0}, NULL));
}

static bool on_text(void *user, const char *text, size_t size, sconce_choice choice) {
  (void)text, (void)size, (void)choice;
  call_all(user);
  return true;
}

static bool on_progress(void *user, size_t done, size_t all) {
  (void)done, (void)all;
  call_all(user);
  return true;
}

static void a_session_is_not_changed_from_inside(void) {
  struct fixture f;
  struct caller c = {&f, 0, 0};
  static const int32_t ids[] = {1, 3, 4};
  sconce_generate_desc desc = {.prompt = ids, .n_prompt = 3, .max_new = 4, .ignore_end = true};
  sconce_generate_result result = {0};
  sconce_error err = {0};
  int32_t want[7];
  size_t n;
  if (open_all(&f, TOY)) {
    CHECK_OK(sconce_session_generate(f.session, &desc, &result, &err), err);
    const int32_t *got = sconce_session_ids(f.session, &n);
    CHECK_EQ(n, 7);
    if (n == 7) memcpy(want, got, sizeof want);
    CHECK_OK(sconce_session_rewind(f.session, 0, &err), err);
    desc.on_text = on_text, desc.progress = on_progress, desc.user = &c;
    CHECK_OK(sconce_session_generate(f.session, &desc, &result, &err), err);
    got = sconce_session_ids(f.session, &n);
    CHECK_EQ(n, 7);
    CHECK(n == 7 && memcmp(want, got, sizeof want) == 0);
    CHECK(c.calls > 8);
    CHECK_EQ(c.refused, c.calls);
    c.refused = c.calls = 0;
    CHECK_OK(sconce_session_rewind(f.session, 0, &err), err);
    CHECK_OK(sconce_session_prompt(f.session, ids, 3, on_progress, &c, &err), err);
    CHECK_EQ(position(&f), 3);
    CHECK(c.calls >= 8);
    CHECK_EQ(c.refused, c.calls);
  }
  close_all(&f);
}

const struct test suite_callbacks[] = {TEST(a_session_is_not_changed_from_inside), {0}};
