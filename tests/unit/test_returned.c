#include "run/returned.h"

#include "harness.h"

#include <string.h>

/* Outputs and arguments are letters by their shape. `which` is the only way, an output's number for
 * each argument; NULL where there is none, "" where there are several; `at`: the argument that
 * the error names. */
static const struct row {
  const char *why, *outputs, *args, *which;
  uint32_t at;
} rows[] = {
    {"nothing", "", "", "", 0},
    {"in order", "abc", "abc", "012", 0},
    {"equal ones in order", "aaa", "aaa", "012", 0},
    {"in another order", "ab", "ba", NULL, 0},
    {"one other", "abc", "abd", NULL, 2},
    {"one twice", "a", "aa", "00", 0},
    {"one three times", "ab", "abaa", "0100", 0},
    {"twice, with others between", "abcd", "abcad", "01203", 0},
    {"the second of two equal ones, as the third must come behind", "aab", "aaba", "", 3},
    {"a repetition or a new one: what comes behind decides", "abbcd", "abbcbd", "", 4},
    {"new, since it is needed behind", "abbc", "aabbc", "00123", 0},
    {"either of two is the repetition", "aab", "aaab", "", 2},
    {"a repetition of nothing", "ab", "bab", NULL, 0},
    {"too few repetitions", "ab", "abc", NULL, 2},
    {"an output that is left over", "abc", "aba", NULL, 2},
    {"an output that is left over, and a repetition", "abc", "abab", NULL, 3},
};

static void finds_what_is_returned_twice(void) {
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const struct row *row = &rows[i];
    bool fits[64] = {false};
    uint8_t ways[64];
    uint32_t which[8] = {0}, at = 0;
    const uint32_t n_args = (uint32_t)strlen(row->args), n_outputs = (uint32_t)strlen(row->outputs);
    CHECK(returned_ways(n_args, n_outputs) <= sizeof ways);
    memset(ways, 0xee, sizeof ways);
    for (uint32_t a = 0; a < n_args; a++)
      for (uint32_t o = 0; o < n_outputs; o++)
        fits[a * n_outputs + o] = row->args[a] == row->outputs[o];
    const struct returned r = {fits, n_args, n_outputs, ways};
    const enum returned_found found = returned_find(&r, which, &at);
    const bool one = row->which && strlen(row->which) == n_args;
    if (!one) CHECK_EQ(at, row->at);
    for (uint32_t a = 0; one && a < n_args; a++) CHECK_EQ(which[a], row->which[a] - '0');
    if (found != (one ? RETURNED_ONE : row->which ? RETURNED_SEVERAL : RETURNED_NONE))
      test_fail(__FILE__, __LINE__, "%s: %d at %u", row->why, (int)found, at);
  }
}

const struct test suite_returned[] = {TEST(finds_what_is_returned_twice), {0}};
