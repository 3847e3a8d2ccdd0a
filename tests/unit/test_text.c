/* What tokenizers stand on: UTF-8, NFC, splitters, JSON. */
#include "harness.h"

#include "base/json.h"
#include "llm/split.h"
#include "llm/unicode.h"

static const sconce_allocator libc_allocator;

static void invalid_utf8_is_replaced(void) {
  static const struct {
    const char *in, *out, *why;
  } rows[] = {
      {"", "", "nothing"},
      {"a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "valid"},
      {"\xff", "\xef\xbf\xbd", "no lead byte"},
      {"\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd", "continuations alone: one each"},
      {"\xe2\x82", "\xef\xbf\xbd", "a cut character is one sequence"},
      {"\xf0\x9f\x98z", "\xef\xbf\xbdz", "so it is before other text"},
      {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd", "overlong: no prefix is valid"},
      {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", "surrogate"},
      {"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", "past U+10FFFF"},
      {"\xe2\xe2\x82\xac", "\xef\xbf\xbd\xe2\x82\xac", "a new lead ends the old one"},
  };
  struct list scratch;
  list_init(&scratch, &libc_allocator, 1);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct text text = text_of(rows[i].in);
    CHECK(utf8_clean(&text, &scratch));
    if (!text_is(text, rows[i].out)) test_fail(__FILE__, __LINE__, "%s", rows[i].why);
  }
  list_free(&scratch);
}

static void every_code_point_survives_utf8(void) {
  for (uint32_t code = 0; code < 0x110000; code++) {
    if (code - 0xd800 < 0x800) continue;
    char bytes[4];
    size_t size = utf8_encode(code, bytes);
    struct utf8_char c = utf8_decode(bytes, bytes + size);
    CHECK_SAYS(c.code == code && c.size == size && c.state == UTF8_OK, "U+%04X came back as U+%04X",
               code, c.code);
    CHECK_SAYS(size == 1 || utf8_decode(bytes, bytes + size - 1).state == UTF8_CUT,
               "U+%04X cut is not seen as cut", code);
  }
}

static void nfc_composes(void) {
  static const struct {
    const char *in, *out, *why;
  } rows[] = {
      {"plain", "plain", "below U+0300"},
      {"e\xcc\x81", "\xc3\xa9", "a pair"},
      {"\xe2\x84\xab", "\xc3\x85", "a singleton: angstrom"},
      {"\xe1\xba\x9b\xcc\xa3", "\xe1\xba\x9b\xcc\xa3", "long s with dots: stays"},
      {"a\xcc\xa3\xcc\x82", "\xe1\xba\xad", "two marks, both compose"},
      {"a\xcc\x82\xcc\xa3", "\xe1\xba\xad", "in the other order as well"},
      {"a\xcc\x96\xcc\x80", "\xc3\xa0\xcc\x96", "over a mark of another class"},
      {"a\xcc\x81\xcc\x80", "\xc3\xa1\xcc\x80", "not over one of the same class"},
      {"\xcd\x84", "\xcc\x88\xcc\x81", "excluded from composition"},
      {"\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab", "\xed\x95\x9c", "Hangul, three parts"},
      {"\xed\x95\x98\xe1\x86\xab", "\xed\x95\x9c", "Hangul, syllable and tail"},
      {"\xed\x95\x9c\xe1\x86\xab", "\xed\x95\x9c\xe1\x86\xab", "a tail behind a tail"},
      {"\xe0\xa5\x98", "\xe0\xa4\x95\xe0\xa4\xbc", "Devanagari qa decomposes"},
      {"\xcc\x81", "\xcc\x81", "a mark alone"},
      {"\xf0\x91\x84\xb1\xf0\x91\x84\xa7", "\xf0\x91\x84\xae", "beyond the first plane"},
  };
  struct list codes, out;
  list_init(&codes, &libc_allocator, sizeof(uint32_t));
  list_init(&out, &libc_allocator, 1);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct text text = text_of(rows[i].in);
    CHECK(unicode_nfc(&text, &codes, &out));
    if (!text_is(text, rows[i].out)) test_fail(__FILE__, __LINE__, "%s", rows[i].why);
  }
  list_free(&codes);
  list_free(&out);
}

/* Pieces with bars between them. */
static void check_split(struct split split, const char *text, const char *want) {
  char got[400] = "";
  struct split_walk w;
  struct text piece;
  split_begin(&w, &split, text_of(text));
  while (split_next(&w, &piece)) {
    size_t n = strlen(got);
    snprintf(got + n, sizeof got - n, "%s%.*s", n ? "|" : "", (int)piece.size, piece.data);
  }
  CHECK_SAYS(strcmp(got, want) == 0, "splitter %d cuts \"%s\" into \"%s\", want \"%s\"",
             (int)split.stages[0], text, got, want);
}

static void splitters_cut_like_their_expressions(void) {
  static const struct {
    struct split split;
    const char *text, *want;
  } rows[] = {
#define GPT2 {{SPLIT_GPT2}, 1}
#define LLAMA3 {{SPLIT_LLAMA3}, 1}
#define QWEN {{SPLIT_QWEN}, 1}
#define SMOL {{SPLIT_DIGITS, SPLIT_GPT2}, 2}
      {GPT2, "", ""},
      {GPT2, "a  b", "a| | b"},
      {GPT2, "it's we'LL", "it|'s| we|'|LL"},
      {GPT2, "x=1234;\n\n y ", "x|=|1234|;|\n\n| y| "},
      {GPT2, "a \t b", "a| \t| b"},
      {GPT2, "a\tb", "a|\t|b"},
      {GPT2, "\xc3\xa9t\xc3\xa9\xc2\xa0x", "\xc3\xa9t\xc3\xa9|\xc2\xa0|x"},
      {GPT2, "  ", "  "},
      {LLAMA3, "", ""},
      {LLAMA3, "it's we'LL 'sO", "it|'s| we|'LL| '|sO"},
      {LLAMA3, "'\xc5\xbf", "'\xc5\xbf"}, /* the long s is an s */
      {LLAMA3, "x=12345;\n\n y ", "x|=|123|45|;\n\n| y| "},
      {LLAMA3, "a\tb\t\tc", "a|\tb|\t|\tc"},
      {LLAMA3, "(a) !b", "(a|)| !|b"},
      {LLAMA3, " \n \n  x", " \n \n| | x"},
      {LLAMA3, "a\r\nb", "a|\r\n|b"},
      {LLAMA3, "\n\n", "\n\n"},
      {LLAMA3, " 1", " |1"},
      {LLAMA3, "\xd9\xa3\xd9\xa4\xd9\xa5\xd9\xa6", "\xd9\xa3\xd9\xa4\xd9\xa5|\xd9\xa6"},
      {LLAMA3, "\xe2\x80\x8dx", "\xe2\x80\x8dx"}, /* any one character leads a word */
      {QWEN, "a 12b", "a| |1|2|b"},
      {SMOL, "a  1 b22", "a|  |1| b|2|2"},
      {SMOL,
       "\xc2\xbd"
       "x",
       "\xc2\xbd|x"},
      {{{SPLIT_DIGIT_RUNS, SPLIT_GPT2}, 2}, "a 12b", "a| |12|b"},
      {{.n_stages = 0}, "a 12b", "a 12b"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    check_split(rows[i].split, rows[i].text, rows[i].want);
}

static void json_accepts_and_refuses(void) {
  static const struct {
    const char *text;
    bool ok;
  } rows[] = {
      {"{}", true},
      {" [ ] ", true},
      {"\"x\"", true},
      {"-0.5e+3", true},
      {"{\"a\": [1, {\"b\": null}], \"c\": true, \"d\": \"\\u00e9\\ud83d\\ude00\\n\"}", true},
      {"", false},
      {" ", false},
      {"{", false},
      {"[1,]", false},
      {"[,1]", false},
      {"[1 2]", false},
      {"[1}", false},
      {"{\"a\" 1}", false},
      {"{\"a\":1,}", false},
      {"{a:1}", false},
      {"{1:1}", false},
      {"01", false},
      {"1.", false},
      {"1e", false},
      {"-", false},
      {"+1", false},
      {"nul", false},
      {"truex", false},
      {"\"", false},
      {"\"\\", false},
      {"\"\\x\"", false},
      {"\"\\u12g4\"", false},
      {"\"\\ud800\"", false},
      {"\"\\udc00\\ud800\"", false},
      {"\"\\ud800\\u0041\"", false},
      {"\"\n\"", false},
      {"\"\xff\"", false},
      {"{} {}", false},
      {"]", false},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct json root;
    sconce_error err;
    bool ok = json_check(text_of(rows[i].text), &root, &err) == SCONCE_OK;
    CHECK_SAYS(ok == rows[i].ok, "%s is %s", rows[i].text, ok ? "accepted" : "refused");
  }
}

static void json_depth_is_bounded(void) {
  char deep[2 * JSON_DEPTH_MAX + 4] = "";
  struct json root;
  sconce_error err = {0};
  memset(deep, '[', JSON_DEPTH_MAX);
  memset(deep + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
  CHECK_OK(json_check(text_of(deep), &root, &err), err);
  memset(deep, '[', JSON_DEPTH_MAX + 1);
  memset(deep + JSON_DEPTH_MAX + 1, ']', JSON_DEPTH_MAX + 1);
  CHECK_FAILS(json_check(text_of(deep), &root, &err), SCONCE_BAD_FILE, err, "nested deeper");
}

static void json_navigates(void) {
  struct arena arena;
  struct json root;
  sconce_error err = {0};
  arena_init(&arena, NULL);
  const char *text =
      " {\"a]\": [\"}\\\"\", [], {}], \"n\": -12, \"s\": \"\\u00e9\\t\\ud83d\\ude00\","
      " \"big\": 1234567890123456789, \"f\": 1.5, \"o\": {\"x\" : {\"y\":true}}} ";
  REQUIRE_OK(json_check(text_of(text), &root, &err), err);
  CHECK_EQ(json_count(root), 6);
  CHECK_EQ(json_count(json_member(root, "a]")), 3);
  int64_t n = 0;
  CHECK(json_integer(json_member(root, "n"), &n) && n == -12);
  CHECK(!json_integer(json_member(root, "big"), &n));
  CHECK(!json_integer(json_member(root, "f"), &n));
  CHECK(json_is_true(json_member(json_member(json_member(root, "o"), "x"), "y")));
  CHECK(json_is_null(json_member(json_member(root, "no"), "x")));
  struct text s = json_text(json_member(root, "s"), &arena);
  CHECK(text_is(s, "\xc3\xa9\t\xf0\x9f\x98\x80"));
  CHECK_EQ(json_text(json_member(root, "n"), &arena).size, 0);
  struct json_walk w;
  json_begin(&w, json_member(root, "a]"));
  CHECK(json_next(&w) && text_is(json_text(w.value, &arena), "}\""));
  arena_free(&arena);
}

const struct test suite_text[] = {
    TEST(invalid_utf8_is_replaced),
    TEST(every_code_point_survives_utf8),
    TEST(nfc_composes),
    TEST(splitters_cut_like_their_expressions),
    TEST(json_accepts_and_refuses),
    TEST(json_depth_is_bounded),
    TEST(json_navigates),
    {0},
};
