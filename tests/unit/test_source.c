/* Ranges of a file on a disk: what is read ahead is the right bytes, or is not used. */
#include "base/random.h"
#include "harness.h"
#include "run/source.h"

enum { SIZE = 300000 };

static uint8_t byte_at(uint64_t i) { return (uint8_t)(i * 7 + (i >> 8) * 13); }

/* The path of a file of SIZE such bytes. */
static bool write_file(char path[TEST_PATH_MAX], size_t size) {
  static uint8_t bytes[SIZE];
  for (size_t i = 0; i < size; i++) bytes[i] = byte_at(i);
  return test_write_path(path, bytes, size);
}

static bool open_file(struct source *s, char path[TEST_PATH_MAX], const sconce_allocator *a) {
  sconce_error err = {0};
  test_temporary(path, ".bin");
  CHECK(write_file(path, SIZE));
  CHECK_OK(source_open(s, &(sconce_file){.path = path}, NULL, a, &err), err);
  return !test_failed();
}

static void check_range(struct source *s, uint64_t offset, size_t size) {
  sconce_error err = {0};
  struct span got;
  REQUIRE_OK(source_get(s, offset, size, &got, &err), err);
  CHECK_EQ(got.size, size);
  for (size_t i = 0; i < got.size; i++)
    if (got.data[i] != byte_at(offset + i)) {
      test_fail(__FILE__, __LINE__, "byte %zu at %llu is %u", i, (unsigned long long)offset,
                got.data[i]);
      return;
    }
}

/* Ranges in any order; the next one is foretold rightly, wrongly, beyond the end, or not at all. */
static void any_range_whatever_was_expected(void) {
  char path[TEST_PATH_MAX];
  struct source s = {0};
  sconce_error err = {0};
  struct test_allocator counting;
  test_allocator_init(&counting, 0);
  REQUIRE(open_file(&s, path, &counting.hook));
  uint32_t n = 0;
  for (int i = 0; i < 300; i++) {
    const uint64_t offset = random_bits(26, n++) % SIZE;
    const size_t size = 1 + (size_t)(random_bits(26, n++) % (SIZE - offset));
    switch (random_bits(26, n++) % 4) {
    case 0:
    case 1:
      CHECK_OK(source_expect(&s, offset, size, &err), err);
      break;
    case 2:
      CHECK_OK(source_expect(&s, offset / 2, size, &err), err);
      break;
    default:
      CHECK_OK(source_expect(&s, SIZE - 1, 2, &err), err);
    }
    check_range(&s, offset, size);
  }
  CHECK_OK(source_expect(&s, 0, 1000, &err), err); /* nobody comes for it */
  source_close(&s);
  CHECK_EQ(counting.live, 0);
  remove(path);
}

/* What could not be read ahead fails where it is asked for. */
static void a_file_that_ends_early_fails_where_it_is_read(void) {
  char path[TEST_PATH_MAX];
  struct source s = {0};
  struct span got;
  sconce_error err = {0};
  REQUIRE(open_file(&s, path, NULL));
  CHECK_OK(source_expect(&s, 0, 1000, &err), err);
  check_range(&s, 0, 1000);
  CHECK(write_file(path, 100000));
  CHECK_OK(source_expect(&s, 99000, 2000, &err), err);
  CHECK_FAILS(source_get(&s, 99000, 2000, &got, &err), SCONCE_IO_ERROR, err, "ends at 100000");
  source_close(&s);
  remove(path);
}

/* All of a range in memory of its own, with the piece in hand untouched. */
static void a_range_is_held(void) {
  char path[TEST_PATH_MAX];
  struct source s = {0};
  struct held held = {0};
  struct arena arena;
  sconce_error err = {0};
  bool done;
  arena_init(&arena, NULL);
  REQUIRE(open_file(&s, path, NULL));
  check_range(&s, 5, 10);
  REQUIRE_OK(source_hold(&s, &arena, 3, SIZE - 3, &held, &done, &err), err);
  CHECK(done);
  for (uint64_t i = 0; done && i < held.size; i++)
    if (held.bytes[i] != byte_at(3 + i)) test_fail(__FILE__, __LINE__, "byte %d", (int)i);
  check_range(&s, 5, 10);
  source_close(&s);
  arena_free(&arena);
  remove(path);
}

const struct test suite_source[] = {TEST(any_range_whatever_was_expected),
                                    TEST(a_file_that_ends_early_fails_where_it_is_read),
                                    TEST(a_range_is_held),
                                    {0}};
