/* status, arena, spans, checked arithmetic, the platform layer. */
#include "harness.h"

#include "base/arena.h"
#include "base/checked.h"
#include "base/file.h"
#include "base/log.h"
#include "base/os.h"
#include "base/os_folder.h"
#include "base/path.h"

static void every_status_has_a_name(void) {
  for (int s = SCONCE_OK; s <= SCONCE_WRONG_RESULT; s++)
    CHECK(strcmp(sconce_status_name((sconce_status)s), "unknown status") != 0);
  CHECK_TEXT(sconce_status_name((sconce_status)999), "unknown status");
  CHECK_TEXT(sconce_status_name((sconce_status)-1), "unknown status");
}

static void fail_sets_and_returns(void) {
  sconce_error err = {0};
  CHECK_EQ(fail(&err, SCONCE_BAD_FILE, "%u of %s", 3u, "x"), SCONCE_BAD_FILE);
  CHECK_TEXT(err.text, "3 of x");
  error_prefix(&err, "node %d: ", 7);
  CHECK_TEXT(err.text, "node 7: 3 of x");
  CHECK_EQ(err.status, SCONCE_BAD_FILE);
  CHECK_EQ(fail(NULL, SCONCE_BAD_FILE, "nobody listens"), SCONCE_BAD_FILE);
}

static void long_errors_are_cut_not_overrun(void) {
  char big[3000];
  memset(big, 'a', sizeof big - 1);
  big[sizeof big - 1] = 0;
  sconce_error err = {0};
  fail(&err, SCONCE_BAD_FILE, "%s", big);
  CHECK_EQ(strlen(err.text), sizeof err.text - 1);
  error_prefix(&err, "%s", "in: ");
  CHECK_EQ(strlen(err.text), sizeof err.text - 1);
  CHECK(strncmp(err.text, "in: aaa", 7) == 0);
  error_prefix(&err, "%s", big);
  CHECK_EQ(strlen(err.text), sizeof err.text - 1);
}

static void errors_carry_no_escape_sequences(void) {
  sconce_error err = {0};
  fail(&err, SCONCE_BAD_FILE, "operator '%s'", "\x1b[2J\x07");
  CHECK_TEXT(err.text, "operator '?[2J?'");
  fail(&err, SCONCE_BAD_FILE, "operator '%s'", "a\nok: b\tc");
  CHECK_TEXT(err.text, "operator 'a ok: b c'");
  fail(&err, SCONCE_BAD_FILE, "operator '%s'",
       "\x9b"
       "2J \xc2\x9b"
       "3J \xe2\x80\xae \xc3\xa9 \xc3");
  CHECK_TEXT(err.text, "operator '?2J ??3J ??? \xc3\xa9 ?'");
  fail(&err, SCONCE_GPU_ERROR, "line 1\nline\x1b 2");
  error_prefix(&err, "node 1 (%s): ", "a\nb");
  CHECK_TEXT(err.text, "node 1 (a b): line 1\nline? 2");
  fail(&err, SCONCE_BAD_FILE, "%1017s\xc3\xa9", "");
  error_prefix(&err, ":");
  CHECK_EQ(err.text[sizeof err.text - 2], '?');
}

static void arena_gives_zeroed_aligned_memory(void) {
  struct test_allocator alloc;
  test_allocator_init(&alloc, 0);
  struct arena arena;
  arena_init(&arena, &alloc.hook);
  for (size_t i = 1; i < 2000; i += 37) {
    unsigned char *p = arena_alloc(&arena, i, 3, 64);
    REQUIRE(p);
    CHECK_EQ((uintptr_t)p % 64, 0);
    for (size_t k = 0; k < i * 3; k++)
      if (p[k]) test_fail(__FILE__, __LINE__, "byte %zu of %zu not zero", k, i * 3);
    memset(p, 0xee, i * 3);
  }
  CHECK(arena_new(&arena, double, 0) != NULL);
  CHECK(arena_alloc(&arena, SIZE_MAX / 2, 3, 8) == NULL);
  CHECK(arena_alloc(&arena, SIZE_MAX - 8, 1, 8) == NULL);
  CHECK_EQ(arena.held, alloc.live);
  arena_free(&arena);
  CHECK_EQ(alloc.live, 0);
}

static void arena_rewinds_to_a_mark(void) {
  struct arena arena;
  arena_init(&arena, NULL);
  char *keep = arena_copy_text(&arena, "keep", 4);
  struct arena_mark mark = arena_mark(&arena);
  char *first = arena_alloc(&arena, 100, 1, 1);
  memset(first, 1, 100);
  arena_alloc(&arena, 100000, 1, 1);
  arena_rewind(&arena, mark);
  char *second = arena_alloc(&arena, 100, 1, 1);
  CHECK(first == second);
  CHECK_EQ(second[99], 0);
  CHECK_TEXT(keep, "keep");
  arena_free(&arena);
}

static void arena_survives_a_refusing_allocator(void) {
  struct test_allocator alloc;
  test_allocator_init(&alloc, 2);
  struct arena arena;
  arena_init(&arena, &alloc.hook);
  CHECK(arena_alloc(&arena, 10, 1, 1) != NULL);
  CHECK(arena_alloc(&arena, 1 << 20, 1, 1) == NULL);
  CHECK(arena_alloc(&arena, 10, 1, 1) != NULL);
  arena_free(&arena);
  CHECK_EQ(alloc.live, 0);
}

static void checked_arithmetic_refuses_overflow(void) {
  size_t n = 0;
  uint64_t u = 0;
  int64_t i = 0;
  CHECK(mul_size(3, 4, &n) && n == 12);
  CHECK(!mul_size(SIZE_MAX, 2, &n));
  CHECK(!add_u64(UINT64_MAX, 1, &u));
  CHECK(!sub_i64(INT64_MIN, 1, &i));
  CHECK(!mul_i64(INT64_MIN, -1, &i));
  CHECK_EQ(round_up(0, 16), 0);
  CHECK_EQ(round_up(17, 16), 32);
}

static void slices_stay_inside(void) {
  const uint8_t bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  struct span all = {bytes, 8}, part;
  CHECK(span_slice(all, 8, 0, &part) && part.size == 0);
  CHECK(span_slice(all, 2, 3, &part) && part.data[0] == 3 && part.size == 3);
  CHECK(!span_slice(all, 9, 0, &part));
  CHECK(!span_slice(all, 2, UINT64_MAX, &part));
  CHECK_EQ(load_u32(bytes), 0x04030201);
  CHECK_EQ(load_u64(bytes) >> 32, 0x08070605);
}

static void keep_last(void *user, sconce_log_level level, const char *text) {
  snprintf(user, 100, "%d %s", (int)level, text);
}

static void log_obeys_its_level(void) {
  char last[100] = "";
  sconce_log log = {.write = keep_last, .user = last};
  log_write(NULL, SCONCE_LOG_ERROR, "nobody listens");
  log_write(&log, SCONCE_LOG_INFO, "not by default");
  CHECK_TEXT(last, "");
  log_write(&log, SCONCE_LOG_WARNING, "%d", 5);
  CHECK_TEXT(last, "2 5");
  log.level = SCONCE_LOG_INFO;
  log_write(&log, SCONCE_LOG_INFO, "now");
  CHECK_TEXT(last, "3 now");
}

static void reads_files_and_says_why_not(void) {
  struct arena arena;
  struct span bytes;
  sconce_error err = {0};
  arena_init(&arena, NULL);
  CHECK_FAILS(file_read(&arena, "/nonexistent/x.pte", &bytes, &err), SCONCE_IO_ERROR, err,
              "/nonexistent/x.pte: No such file");
  CHECK_FAILS(file_read(&arena, "/", &bytes, &err), SCONCE_IO_ERROR, err, "not a regular file");
  CHECK_OK(file_read(&arena, SCONCE_SOURCE_DIR "/LICENSE", &bytes, &err), err);
  CHECK(bytes.size > 100 && memcmp(bytes.data, "BSD", 3) == 0);
  arena_free(&arena);
}

/* ---- readers and mutexes --------------------------------------------------------------------- */

static void a_reader_gives_ranges(void) {
  struct os_reader r;
  sconce_error err = {0};
  CHECK_FAILS(os_reader_open(&r, "/nonexistent/x.pte", &err), SCONCE_IO_ERROR, err,
              "/nonexistent/x.pte: No such file");
  CHECK_FAILS(os_reader_open(&r, "/", &err), SCONCE_IO_ERROR, err, "not a regular file");
  os_reader_close(&r);
  CHECK_OK(os_reader_open(&r, SCONCE_SOURCE_DIR "/LICENSE", &err), err);
  const uint64_t size = os_reader_size(&r);
  char text[4] = {0};
  CHECK(size > 100);
  CHECK_OK(os_reader_read(&r, 0, text, 3, &err), err);
  CHECK_TEXT(text, "BSD");
  CHECK_OK(os_reader_read(&r, 1, text, 2, &err), err);
  CHECK_TEXT(text, "SDD");
  CHECK_OK(os_reader_read(&r, size, text, 0, &err), err);
  CHECK_FAILS(os_reader_read(&r, size - 1, text, 2, &err), SCONCE_IO_ERROR, err,
              "LICENSE: 2 bytes at");
  CHECK_FAILS(os_reader_read(&r, UINT64_MAX, text, 2, &err), SCONCE_IO_ERROR, err, "2 bytes at");
  os_reader_close(&r);
  os_reader_close(&r);
}

enum { A_TICK = 20000000 }; /* ns: longer than the step of a file system's clock */

/* A mapped file would end the process here. */
static void a_file_that_shrinks_is_an_error(void) {
  char path[TEST_PATH_MAX], bytes[8192];
  test_temporary(path, "");
  memset(bytes, 7, sizeof bytes);
  REQUIRE(test_write_path(path, bytes, sizeof bytes));
  struct os_reader r;
  sconce_error err = {0};
  CHECK_OK(os_reader_open(&r, path, &err), err);
  CHECK_EQ(os_reader_size(&r), sizeof bytes);
  os_sleep_ns(A_TICK);
  CHECK(test_write_path(path, bytes, 100));
  CHECK_FAILS(os_reader_read(&r, 0, bytes, 100, &err), SCONCE_IO_ERROR, err,
              "changed since it was opened");
  CHECK_FAILS(os_reader_read(&r, 0, bytes, sizeof bytes, &err), SCONCE_IO_ERROR, err,
              "ends at 100, it had 8192 bytes when it was opened");
  CHECK_FAILS(os_reader_read(&r, 4096, bytes, 1, &err), SCONCE_IO_ERROR, err, "ends at 4096");
  os_reader_close(&r);
  remove(path);
}

/* In its place and as long as before; a file that takes its name is another one. */
static void a_file_that_changes_is_an_error(void) {
  char path[TEST_PATH_MAX], other[TEST_PATH_MAX], bytes[100] = {1};
  struct os_reader r, s;
  sconce_error err = {0};
  test_temporary(path, "");
  test_temporary(other, "");
  REQUIRE(test_write_path(path, bytes, sizeof bytes));
  REQUIRE(test_write_path(other, bytes, sizeof bytes));
  CHECK_OK(os_reader_open(&r, path, &err), err);
  CHECK_OK(os_reader_open(&s, path, &err), err);
  CHECK_OK(os_reader_read(&r, 0, bytes, 100, &err), err);
  os_sleep_ns(A_TICK);
  bytes[0] = 2;
  CHECK(test_write_path(path, bytes, sizeof bytes));
  CHECK_FAILS(os_reader_read(&r, 0, bytes, 1, &err), SCONCE_IO_ERROR, err,
              "changed since it was opened");
  CHECK_FAILS(os_reader_read(&s, 99, bytes, 1, &err), SCONCE_IO_ERROR, err, "changed since");
  os_reader_close(&r);
  os_reader_close(&s);
#ifndef _WIN32 /* which keeps the name of an open file */
  CHECK_OK(os_reader_open(&r, path, &err), err);
  os_sleep_ns(A_TICK);
  CHECK(rename(other, path) == 0);
  CHECK_OK(os_reader_read(&r, 0, bytes, 1, &err), err);
  CHECK_EQ(bytes[0], 2);
  remove(path);
  CHECK_OK(os_reader_read(&r, 0, bytes, 1, &err), err);
  os_reader_close(&r);
#endif
  remove(other);
  remove(path);
}

/* ---- paths ----------------------------------------------------------------------------------- */

struct seen {
  const char *want;
  bool found, folder;
};

static sconce_status look(void *user, const char *name, bool folder, sconce_error *err) {
  struct seen *seen = user;
  (void)err;
  if (strcmp(name, seen->want) != 0) return SCONCE_OK;
  seen->found = true;
  seen->folder = folder;
  return SCONCE_OK;
}

static void use_path(const char *folder, const char *name) {
  char path[2 * TEST_PATH_MAX];
  sconce_error err = {0};
  struct os_reader reader;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  struct os_file file;
  REQUIRE_OK(os_file_create(&file, path, &err), err);
  CHECK_OK(os_file_write(&file, "text", 4, &err), err);
  CHECK_OK(os_file_close(&file, &err), err);
  CHECK_OK(os_reader_open(&reader, path, &err), err);
  CHECK_EQ(os_reader_size(&reader), 4);
  os_reader_close(&reader);
  struct seen seen = {.want = name};
  CHECK_OK(os_folder_each(folder, look, &seen, &err), err);
  CHECK_SAYS(seen.found && !seen.folder, "%s: not listed", path);
  CHECK(os_folder_is(folder) && !os_folder_is(path));
  test_remove(path);
  CHECK_FAILS(os_reader_open(&reader, path, &err), SCONCE_IO_ERROR, err, "No such file");
  CHECK_FAILS(os_reader_open(&reader, folder, &err), SCONCE_IO_ERROR, err, "not a regular file");
}

static void any_path_can_be_used(void) {
  static const char *const names[] = {
      "two words.pte",                /* a space */
      "Gru\xc3\x9f.pte",              /* two bytes a letter */
      "\xe6\x97\xa5\xe6\x9c\xac.pte", /* three */
      "\xf0\x9f\x94\xa5.pte",         /* outside the first plane: two units on Windows */
  };
  char folder[TEST_PATH_MAX];
  test_temporary(folder, " \xc3\xa4");
  REQUIRE(test_make_folder(folder));
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) use_path(folder, names[i]);
  test_remove(folder);
}

/* Longer than the 260 units that Windows grants to those who do not ask. */
static void long_paths_can_be_used(void) {
  enum { DEPTH = 4 };
  char path[TEST_PATH_MAX];
  size_t ends[DEPTH + 1];
  static const char part[] =
      "/a-folder-whose-name-alone-takes-eighty-bytes-so-that-four-of-them-make-a-long-path";
  test_temporary(path, "");
  REQUIRE(test_make_folder(path) && strlen(path) < 128);
  ends[0] = strlen(path);
  for (int i = 0; i < DEPTH; i++) {
    memcpy(path + ends[i], part, sizeof part);
    ends[i + 1] = ends[i] + sizeof part - 1;
    CHECK(test_make_folder(path));
  }
  CHECK(strlen(path) > 320);
  use_path(path, "x.pte");
  for (int i = DEPTH; i >= 0; i--) {
    path[ends[i]] = 0;
    test_remove(path);
  }
  CHECK(!os_folder_is(path));
}

static void let_go_soon(void *held) {
  os_sleep_ns(100000000);
  test_let_go(held);
}

/* Writes a file anew while somebody has it open, for a while or until afterwards. */
static sconce_status replace_held(const char *path, bool soon, sconce_error *err) {
  struct os_file file;
  struct os_team team = {0};
  void *held = test_hold(path);
  if (!held) return fail(err, SCONCE_IO_ERROR, "%s: not there to hold", path);
  if (soon) os_team_start(&team, 1, let_go_soon, held);
  CHECK_EQ(team.n, soon);
  sconce_status status = os_file_create(&file, path, err);
  if (status == SCONCE_OK) status = os_file_write(&file, "new", 3, err);
  if (status == SCONCE_OK) status = os_file_close(&file, err);
  if (!team.n) test_let_go(held);
  os_team_join(&team);
  return status;
}

static void check_text(const char *path, const char *want) {
  size_t size;
  unsigned char *bytes = test_read_path(path, &size);
  REQUIRE(bytes);
  CHECK(size == strlen(want) && !memcmp(bytes, want, size));
  free(bytes);
}

static void a_file_that_is_held_is_replaced_soon(void) {
  char path[TEST_PATH_MAX];
  sconce_error err = {0};
  test_temporary(path, "");
  REQUIRE(test_write_path(path, "old", 3));
#ifdef _WIN32
  CHECK_FAILS(replace_held(path, false, &err), SCONCE_IO_ERROR, err, "Permission denied");
  check_text(path, "old");
#endif
  CHECK_OK(replace_held(path, true, &err), err);
  check_text(path, "new");
  test_remove(path);
}

static void a_path_has_a_name(void) {
  static const struct {
    const char *path, *posix, *windows;
  } rows[] = {
      {"", "", ""},          {"x", "x", "x"},     {"a/b/x", "x", "x"},           {"a/", "", ""},
      {"a\\x", "a\\x", "x"}, {"C:x", "C:x", "x"}, {"C:\\a\\b/x:y", "x:y", "x:y"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
#ifdef _WIN32
    CHECK_TEXT(path_name(rows[i].path), rows[i].windows);
#else
    CHECK_TEXT(path_name(rows[i].path), rows[i].posix);
#endif
  }
}

static void the_environment_is_utf8(void) {
  char room[OS_ENV_MAX];
  test_set_env("SCONCE_TEST", "a b");
  const char *value = os_env("SCONCE_TEST", room, sizeof room);
  CHECK_TEXT(value ? value : "(none)", "a b");
  test_set_env("SCONCE_TEST", NULL);
  CHECK(os_env("SCONCE_TEST", room, sizeof room) == NULL);
}

struct counter {
  struct os_mutex mutex;
  uint32_t n;
};

static void count(void *user) {
  struct counter *c = user;
  for (int i = 0; i < 10000; i++) {
    os_mutex_lock(&c->mutex);
    c->n++;
    os_mutex_unlock(&c->mutex);
  }
}

static void a_mutex_keeps_threads_apart(void) {
  struct counter c = {.n = 0};
  struct os_team team;
  CHECK(os_mutex_init(&c.mutex));
  os_team_start(&team, 4, count, &c);
  const uint32_t n = team.n;
  os_team_join(&team);
  CHECK_EQ(c.n, 10000 * n);
  os_mutex_free(&c.mutex);
}

const struct test suite_base[] = {
    TEST(every_status_has_a_name),
    TEST(fail_sets_and_returns),
    TEST(long_errors_are_cut_not_overrun),
    TEST(errors_carry_no_escape_sequences),
    TEST(arena_gives_zeroed_aligned_memory),
    TEST(arena_rewinds_to_a_mark),
    TEST(arena_survives_a_refusing_allocator),
    TEST(checked_arithmetic_refuses_overflow),
    TEST(slices_stay_inside),
    TEST(log_obeys_its_level),
    TEST(reads_files_and_says_why_not),
    TEST(a_reader_gives_ranges),
    TEST(a_file_that_shrinks_is_an_error),
    TEST(a_file_that_changes_is_an_error),
    TEST(any_path_can_be_used),
    TEST(long_paths_can_be_used),
    TEST(a_file_that_is_held_is_replaced_soon),
    TEST(a_path_has_a_name),
    TEST(the_environment_is_utf8),
    TEST(a_mutex_keeps_threads_apart),
    {0},
};
