/* Lookup: what is guessed, and when that pays. */
#include "harness.h"

#include "llm/lookup.h"

static void guesses(void) {
  static const struct {
    int32_t ids[12];
    uint32_t n;
    int32_t guess[3]; /* -1: none */
    const char *why;
  } rows[] = {
      {{1, 2, 3, 4, 5, 1, 2, 3}, 8, {4, 5, 1}, "what followed before, into the end of the text"},
      {{1, 2, 3, 9, 1, 2, 3}, 7, {9, 1, 2}, "the text leads to itself"},
      {{7, 7, 7, 7}, 4, {7, 7, 7}, "one id again and again"},
      {{1, 2, 1, 2, 1, 2}, 6, {1, 2, 1}, "a circle goes on beyond the end"},
      {{1, 2, 3, 4, 1, 2, 3, 5, 1, 2, 3}, 11, {5, 1, 2}, "the latest of equals"},
      {{0, 1, 2, 3, 4, 9, 1, 2, 3, 0, 1, 2}, 12, {3, 4, 9}, "the longer one"},
      {{1, 2, 9, 1, 2}, 5, {-1}, "two ids are too few"},
      {{1, 2, 3, 4}, 4, {-1}, "nothing comes again"},
      {{1}, 1, {-1}, "one id"},
      {{0}, 0, {-1}, "none"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct lookup l;
    lookup_init(&l, SCONCE_LOOKUP_AUTO, 4);
    lookup_guess(&l, rows[i].ids, rows[i].n);
    CHECK_SAYS(l.n_guess == (rows[i].guess[0] < 0 ? 0u : 3u), "%s: %u guesses", rows[i].why,
               l.n_guess);
    for (uint32_t k = 0; k < l.n_guess; k++)
      CHECK_SAYS(l.guess[k] == rows[i].guess[k], "%s: guess %u is %d, want %d", rows[i].why, k,
                 (int)l.guess[k], (int)rows[i].guess[k]);
  }
}

static void off_guesses_nothing(void) {
  struct lookup l;
  for (uint32_t rows = 0; rows < 2; rows++) {
    lookup_init(&l, rows ? SCONCE_LOOKUP_OFF : SCONCE_LOOKUP_ALWAYS, rows ? 8 : 1);
    lookup_guess(&l, (int32_t[]){7, 7, 7, 7, 7}, 5);
    CHECK_EQ(l.n_guess, 0);
    CHECK_EQ(lookup_rows(&l, 8), 1);
  }
}

/* Times of calls with 1, 2, 4 and 8 rows; the first of each does not count. */
static struct lookup timed(const uint64_t ns[4], uint32_t right, uint32_t wrong) {
  struct lookup l;
  lookup_init(&l, SCONCE_LOOKUP_AUTO, 8);
  for (uint32_t size = 0; size < 4; size++)
    for (int i = 0; ns && i < 3; i++) lookup_time(&l, 1u << size, i ? ns[size] : 1000000);
  for (uint32_t i = 0; i < wrong; i++) lookup_saw(&l, 0, 7);
  for (uint32_t i = 0; i < right; i++) lookup_saw(&l, 1, 1);
  lookup_guess(&l, (int32_t[]){7, 7, 7, 7, 7}, 5);
  return l;
}

static void it_must_pay(void) {
  static const struct {
    uint64_t ns[4];
    uint32_t right, wrong, most, rows;
    const char *why;
  } rows[] = {
      {{100, 105, 110, 120}, 20, 0, 8, 8, "rows for nothing, guesses right: all of them"},
      {{100, 105, 110, 120}, 20, 0, 5, 4, "…as far as there is room"},
      {{100, 105, 110, 120}, 20, 0, 1, 1, "no room"},
      {{100, 120, 200, 400}, 20, 0, 8, 4, "eight cost too much"},
      {{100, 190, 390, 800}, 20, 0, 8, 1, "each row costs a call"},
      {{100, 105, 110, 120}, 0, 20, 8, 1, "guesses wrong"},
      {{100, 105, 110, 120}, 3, 20, 8, 4, "…and right again"},
      {{100, 150, 250, 400}, 0, 2, 8, 1, "wrong twice, and not for nothing"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const struct lookup l = timed(rows[i].ns, rows[i].right, rows[i].wrong);
    const uint32_t got = lookup_rows(&l, rows[i].most);
    CHECK_SAYS(got == rows[i].rows, "%s: %u rows, want %u", rows[i].why, got, rows[i].rows);
  }
}

/* What is not known is tried, in small steps, and a call that took long by chance is not believed.
 */
static void what_is_not_known(void) {
  struct lookup l = timed(NULL, 0, 0);
  CHECK_EQ(lookup_rows(&l, 8), 1); /* what one row costs must be known */
  for (int i = 0; i < 2; i++) lookup_time(&l, 1, 100);
  CHECK_EQ(lookup_rows(&l, 8), 2); /* small ones first */
  for (int i = 0; i < 2; i++) lookup_time(&l, 2, 105);
  CHECK_EQ(lookup_rows(&l, 8), 4);
  for (int i = 0; i < 2; i++) lookup_time(&l, 4, 600);
  CHECK_EQ(lookup_rows(&l, 8), 2);
  for (int i = 0; i < 400; i++) lookup_time(&l, 1, 100);
  CHECK_EQ(lookup_rows(&l, 8), 4); /* that was long ago */
  l = timed((uint64_t[]){100, 110, 120, 130}, 20, 0);
  const uint32_t rows = lookup_rows(&l, 8);
  lookup_time(&l, 8, 1000);
  CHECK_EQ(lookup_rows(&l, 8), rows);
  for (int i = 0; i < 60; i++) lookup_time(&l, 8, 1000); /* it is slow indeed */
  CHECK_EQ(lookup_rows(&l, 8), 4);
}

static void always_asks_nobody(void) {
  struct lookup l;
  lookup_init(&l, SCONCE_LOOKUP_ALWAYS, 6);
  for (int i = 0; i < 20; i++) lookup_saw(&l, 0, 1);
  lookup_guess(&l, (int32_t[]){7, 7, 7, 7, 7}, 5);
  CHECK_EQ(lookup_rows(&l, 8), 6);
  CHECK_EQ(lookup_rows(&l, 3), 3);
}

const struct test suite_lookup[] = {
    TEST(guesses),           TEST(off_guesses_nothing), TEST(it_must_pay),
    TEST(what_is_not_known), TEST(always_asks_nobody),  {0}};
