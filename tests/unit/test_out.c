/* The formatter: what names from files may and may not do. */
#include "harness.h"

#include "base/out.h"

static char got[20000];
static size_t n_got;

static void collect(void *user, const char *text, size_t size) {
  (void)user;
  if (n_got + size >= sizeof got) return;
  memcpy(got + n_got, text, size);
  n_got += size;
  got[n_got] = 0;
}

static struct out *begin(void) {
  static struct out o;
  n_got = 0;
  got[0] = 0;
  out_init(&o, collect, NULL);
  return &o;
}

enum form { TEXT_FORM, JSON_FORM, DOT_FORM };

static const struct {
  const char *why;
  const char *name;
  size_t size;
  enum form form;
  const char *want;
} names[] = {
    {"plain", "aten.add", 8, TEXT_FORM, "aten.add"},
    {"UTF-8 stays", "gr\xc3\xbc\xc3\x9f", 6, TEXT_FORM, "gr\xc3\xbc\xc3\x9f"},
    {"a terminal's escape", "a\x1b[31m", 6, TEXT_FORM, "a\\x1b[31m"},
    {"a line of its own", "a\nb\r", 4, TEXT_FORM, "a\\x0ab\\x0d"},
    {"a NUL inside", "a\0b", 3, TEXT_FORM, "a\\x00b"},
    {"C1 as UTF-8", "\xc2\x9b", 2, TEXT_FORM, "\\xc2\\x9b"},
    {"right to left override", "\xe2\x80\xae", 3, TEXT_FORM, "\\xe2\\x80\\xae"},
    {"no UTF-8", "\xff\x80", 2, TEXT_FORM, "\\xff\\x80"},
    {"a cut character", "\xe2\x82", 2, TEXT_FORM, "\\xe2\\x82"},
    {"JSON quotes", "a\"b\\", 4, JSON_FORM, "\"a\\\"b\\\\\""},
    {"JSON control", "\n\x7f", 2, JSON_FORM, "\"\\u000a\\u007f\""},
    {"JSON needs UTF-8", "a\xff", 2, JSON_FORM, "\"a\\ufffd\""},
    {"JSON, nothing", "", 0, JSON_FORM, "\"\""},
    {"a label's end", "a\"]; x", 6, DOT_FORM, "a\\\"]; x"},
    {"a label's escape", "a\\n", 3, DOT_FORM, "a\\\\n"},
    {"a label's line", "a\nb", 3, DOT_FORM, "a\\\\x0ab"},
};

static void names_are_harmless(void) {
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    struct out *o = begin();
    struct text name = {names[i].name, names[i].size};
    if (names[i].form == TEXT_FORM) out_text(o, name, SIZE_MAX);
    if (names[i].form == JSON_FORM) out_json(o, name);
    if (names[i].form == DOT_FORM) out_dot(o, name, SIZE_MAX);
    out_flush(o);
    CHECK_SAYS(strcmp(got, names[i].want) == 0, "%s: %s, want %s", names[i].why, got,
               names[i].want);
  }
}

static void numbers_come_back(void) {
  static const struct {
    double value;
    const char *want;
  } rows[] = {
      {0, "0.0"},
      {-0.25, "-0.25"},
      {1e-5, "1e-05"},
      {0.1, "0.1"},
      {1.0 / 3, "0.3333333333333333"},
      {1e300, "1e+300"},
      {INFINITY, "\"inf\""},
      {-INFINITY, "\"-inf\""},
      {NAN, "\"nan\""},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct out *o = begin();
    out_double(o, rows[i].value);
    out_flush(o);
    CHECK_TEXT(got, rows[i].want);
  }
}

static void cells_sizes_and_cuts(void) {
  struct out *o = begin();
  out_cell(o, text_of("\xc3\xbc"), 3);
  out_put(o, "|");
  out_text(o, text_of("abcdef"), 3);
  out_put(o, "|");
  out_size(o, 1023, 0);
  out_put(o, "|");
  out_size(o, 1536, 10);
  out_put(o, "|");
  out_size(o, UINT64_MAX, 0);
  out_flush(o);
  CHECK_TEXT(got, "\xc3\xbc  |abc…|1023 bytes|   1.5 KiB|16.0 EiB");
}

/* Pieces that straddle the buffer's end arrive whole and in order. */
static void long_texts_arrive_whole(void) {
  struct out *o = begin();
  for (int i = 0; i < 1500; i++) out_put(o, "%04d\n", i);
  out_flush(o);
  CHECK_EQ(n_got, 1500 * 5);
  for (int i = 0; i < 1500; i += 123) CHECK_EQ(strtol(got + 5 * i, NULL, 10), i);
}

const struct test suite_out[] = {
    TEST(names_are_harmless),
    TEST(numbers_come_back),
    TEST(cells_sizes_and_cuts),
    TEST(long_texts_arrive_whole),
    {0},
};
