/* status, arena, spans, checked arithmetic, the platform layer. */
#include "harness.h"

#include "base/arena.h"
#include "base/checked.h"
#include "base/log.h"
#include "base/os.h"

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

static void maps_files_and_says_why_not(void) {
  struct os_map map;
  sconce_error err = {0};
  CHECK_FAILS(os_map_open(&map, "/nonexistent/x.pte", &err), SCONCE_IO_ERROR, err,
              "/nonexistent/x.pte: No such file");
  CHECK_FAILS(os_map_open(&map, "/", &err), SCONCE_IO_ERROR, err, "not a regular file");
  CHECK_OK(os_map_open(&map, SCONCE_SOURCE_DIR "/LICENSE", &err), err);
  CHECK(map.bytes.size > 100 && memcmp(map.bytes.data, "BSD", 3) == 0);
  os_map_close(&map);
  os_map_close(&map);
}

/* ---- readers and mutexes --------------------------------------------------------------------- */

static bool write_file(const char *path, const void *data, size_t size) {
  struct os_file file;
  sconce_error err = {0};
  CHECK_OK(os_file_create(&file, path, &err), err);
  if (err.status != SCONCE_OK) return false;
  CHECK_OK(os_file_write(&file, data, size, &err), err);
  CHECK_OK(os_file_close(&file, &err), err);
  return err.status == SCONCE_OK;
}

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

/* A mapped file would end the process here. */
static void a_file_that_shrinks_is_an_error(void) {
  char path[64], bytes[8192];
  snprintf(path, sizeof path, "/tmp/sconce_reader_%llu", (unsigned long long)os_clock_ns());
  memset(bytes, 7, sizeof bytes);
  if (!write_file(path, bytes, sizeof bytes)) return;
  struct os_reader r;
  sconce_error err = {0};
  CHECK_OK(os_reader_open(&r, path, &err), err);
  CHECK_EQ(os_reader_size(&r), sizeof bytes);
  FILE *same = fopen(path, "wb"); /* os_file_create would put another file in its place */
  REQUIRE(same != NULL);
  CHECK(fwrite(bytes, 1, 100, same) == 100 && fclose(same) == 0);
  CHECK_OK(os_reader_read(&r, 0, bytes, 100, &err), err);
  CHECK_FAILS(os_reader_read(&r, 0, bytes, sizeof bytes, &err), SCONCE_IO_ERROR, err,
              "ends at 100, it had 8192 bytes when it was opened");
  CHECK_FAILS(os_reader_read(&r, 4096, bytes, 1, &err), SCONCE_IO_ERROR, err, "ends at 4096");
  os_reader_close(&r);
  remove(path);
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
    TEST(maps_files_and_says_why_not),
    TEST(a_reader_gives_ranges),
    TEST(a_file_that_shrinks_is_an_error),
    TEST(a_mutex_keeps_threads_apart),
    {0},
};
