/* What templates cost: steps go with the bytes that an operation walks or builds, so that no short
 * template is a long computation, and limits go with what the caller gives. Numbers at the ends of
 * 64 bits give what Python gives, or a sentence. */
#include "harness.h"
#include "llm/jinja/jinja.h"

static sconce_status render(const char *template, struct text content, uint64_t steps, char *out,
                            size_t room, sconce_error *err) {
  const struct jinja_message message = {{"user", 4}, content};
  const struct jinja_variable messages = {
      .name = "messages", .kind = JINJA_MESSAGES, .messages = &message, .n_messages = 1};
  const struct jinja_input input = {.variables = &messages, .n_variables = 1, .steps = steps};
  struct jinja_output made = {0};
  struct jinja_program *program;
  struct arena arena;
  arena_init(&arena, NULL);
  sconce_status status = jinja_parse(&program, text_of(template), &arena, err);
  if (status == SCONCE_OK) status = jinja_render(program, &input, &arena, &made, err);
  if (status == SCONCE_OK) snprintf(out, room, "%.*s", (int)made.text.size, made.text.data);
  arena_free(&arena);
  return status;
}

/* Each goes through a text of 200 KB, or two that are equal, a thousand times. */
static void walking_a_text_costs_its_bytes(void) {
  static const char *const uses[] = {
      "a == b",
      "a < b",
      "a in ['x', b]",
      "loop.changed(a)",
      "d[a]",
      "d.get(a)",
      "a in d",
      "[a, b]|sort(case_sensitive=true)|length",
      "[[1, a]] == [[1, b]]",
      "a.rfind('x')",
      "a.count('')",
      "a.removeprefix(b)|length",
      "a.removesuffix(b)|length",
      "zeros|int",
      "blanks|float",
      "[1]|map(attribute=zeros)|list|length",
      "[1]|groupby(zeros)|length",
      "a.split()|length",
      "a.rsplit()|length",
      "blanks.strip()|length",
      "blanks|trim|length",
      "a.splitlines()|length",
  };
  for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
    char template[600], out[100];
    sconce_error err = {0};
    snprintf(template, sizeof template,
             "{%% set a = 'x' * 200000 %%}{%% set b = 'x' * 200000 %%}"
             "{%% set zeros = '0' * 200000 %%}{%% set blanks = ' ' * 200000 %%}"
             "{%% set d = {b: 1, 2: 3, 3: 4, 4: 5, 5: 6, 6: 7, 7: 8, 8: 9, 9: 1} %%}"
             "{%% for i in range(1000) %%}{%% if %s %%}{%% endif %%}{%% endfor %%}",
             uses[i]);
    const sconce_status status = render(template, text_of("hello"), 2000000, out, sizeof out, &err);
    CHECK_SAYS(status == SCONCE_BAD_FILE && strstr(err.text, "takes more than 2000000 steps"),
               "%s: %s", uses[i], status ? err.text : "");
  }
}

/* These make texts, and end at the limit of memory if nothing else does. */
static void making_a_text_costs_its_bytes(void) {
  static const char *const uses[] = {"'x' * 1000000", "'x'.ljust(1000000)",
                                     "(('x' * 1000) * 300)|urlencode",
                                     "(('x' * 1000) * 400).replace('', '')"};
  for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
    char template[200], out[100];
    sconce_error err = {0};
    snprintf(template, sizeof template, "{%% set a = %s %%}", uses[i]);
    const sconce_status status = render(template, text_of("hello"), 100000, out, sizeof out, &err);
    CHECK_SAYS(status == SCONCE_BAD_FILE && strstr(err.text, "takes more than 100000 steps"),
               "%s: %s", uses[i], status ? err.text : "");
  }
}

/* Keys that all fall into the same few slots: the bits of these numbers cancel each other. */
static void keys_that_collide_cost_their_search(void) {
  enum { KEYS = 3000, ROOM = KEYS * 40 };
  char *template = malloc(ROOM), out[100];
  size_t at = (size_t)snprintf(template, ROOM, "{%% set d = {");
  for (uint32_t i = 0; i < KEYS; i++) {
    const uint64_t high = 0x7fe00000u - 4096 * (uint64_t)i; /* bits 31 and on: 2^1023 and below */
    const uint64_t bits = high << 31 | (high & 0x7fffffff);
    double number;
    memcpy(&number, &bits, sizeof number);
    at += (size_t)snprintf(template + at, ROOM - at, "%.17g:0,", number);
  }
  snprintf(template + at, ROOM - at, "} %%}{{ d|length }}");
  sconce_error err = {0};
  CHECK_OK(render(template, text_of("hello"), 0, out, sizeof out, &err), err);
  CHECK(strcmp(out, "3000") == 0);
  CHECK_FAILS(render(template, text_of("hello"), 100000, out, sizeof out, &err), SCONCE_BAD_FILE,
              err, "steps");
  free(template);
}

/* A long conversation may be gone through as often as a short one. */
static void limits_grow_with_the_conversation(void) {
  enum { SIZE = 1000000 };
  char *content = malloc(SIZE), out[100];
  sconce_error err = {0};
  memset(content, 'x', SIZE);
  CHECK_FAILS(render("{% set a = 'x' * 10000000 %}{% set b = 'x' * 10000000 %}"
                     "{% for i in range(1000) %}{% if a < b %}{% endif %}{% endfor %}",
                     (struct text){content, SIZE}, 0, out, sizeof out, &err),
              SCONCE_BAD_FILE, err, "takes more than 29000016 steps");
  static const char doubles[] = "{% set ns = namespace(a=[1]) %}{% for i in range(60) %}"
                                "{% set ns.a = ns.a + ns.a %}{% endfor %}";
  CHECK_FAILS(render(doubles, text_of("hello"), 0, out, sizeof out, &err), SCONCE_NO_MEMORY, err,
              "needs more than 134218304 bytes");
  CHECK_FAILS(render(doubles, (struct text){content, SIZE}, 0, out, sizeof out, &err),
              SCONCE_NO_MEMORY, err, "needs more than 198217984 bytes");
  static const char long_text[] = "{% for i in range(20000) %}{{ 'x' * 1000 }}{% endfor %}";
  CHECK_FAILS(render(long_text, text_of("hello"), 0, out, sizeof out, &err), SCONCE_BAD_FILE, err,
              "writes more than 1048720 bytes");
  CHECK_FAILS(render(long_text, (struct text){content, SIZE}, 0, out, sizeof out, &err),
              SCONCE_BAD_FILE, err, "writes more than 17048640 bytes");
  free(content);
}

/* Texts in a row are one text: what they take goes with their bytes. */
static void texts_in_a_row_are_copied_seldom(void) {
  enum { TEXTS = 50000, ROOM = TEXTS * 4 + 40 };
  char *template = malloc(ROOM), out[100];
  size_t at = (size_t)snprintf(template, ROOM, "{%% set a = ");
  for (int i = 0; i < TEXTS; i++) at += (size_t)snprintf(template + at, ROOM - at, "'x' ");
  snprintf(template + at, ROOM - at, "%%}{{ a|length }}");
  struct jinja_program *program;
  struct arena arena;
  sconce_error err = {0};
  arena_init(&arena, NULL);
  CHECK_OK(jinja_parse(&program, text_of(template), &arena, &err), err);
  CHECK(arena.held < 50 * TEXTS);
  arena_free(&arena);
  CHECK_OK(render(template, text_of("hello"), 0, out, sizeof out, &err), err);
  CHECK_TEXT(out, "50000");
  free(template);
}

/* Each `if` moves the code of all before it. */
static void conditions_in_a_row_take_little_memory(void) {
  enum { CONDITIONS = 20000, ROOM = CONDITIONS * 5 + 40 };
  char *template = malloc(ROOM);
  size_t at = (size_t)snprintf(template, ROOM, "{{ 0");
  for (int i = 0; i < CONDITIONS; i++) at += (size_t)snprintf(template + at, ROOM - at, " if 0");
  snprintf(template + at, ROOM - at, "}}");
  struct jinja_program *program;
  struct arena arena;
  sconce_error err = {0};
  arena_init(&arena, NULL);
  CHECK_FAILS(jinja_parse(&program, text_of(template), &arena, &err), SCONCE_BAD_FILE, err,
              "conditions in conditions take too long to read");
  CHECK(arena.held < 80 << 20);
  arena_free(&arena);
  free(template);
}

static void numbers_at_the_ends_of_64_bits(void) {
#define LEAST "(-9223372036854775807 - 1)"
  static const struct {
    const char *template, *want; /* in an error: its last words */
  } rows[] = {
      {"{{ " LEAST " % 10 }}", "2"},
      {"{{ " LEAST " % -1 }}", "0"},
      {"{{ " LEAST " % -10 }}", "-8"},
      {"{{ 9223372036854775807 % " LEAST " }}", "-1"},
      {"{{ 9223372036854775807 % -10 }}", "-3"},
      {"{{ -7 % 3 }} {{ 7 % -3 }} {{ -6 % 3 }} {{ 7 % 3 }} {{ -7 % -3 }}", "2 -2 0 1 -1"},
      {"{{ " LEAST " // -1 }}", "a result of more than 64 bits"},
      {"{{ " LEAST "|abs }}", "a result of more than 64 bits"},
      {"{{ - " LEAST " }}", "a result of more than 64 bits"},
      {"{{ 9223372036854775807|round }}", "9223372036854775807"},
      {"{{ 9007199254740993|round(2) }} {{ true|round }}", "9007199254740993 1"},
      {"{{ 9223372036854775807|round(-19) }}", "a result of more than 64 bits"},
      {"{{ 25|round(-1) }} {{ 35|round(-1) }}", "20 40"},
      {"{{ 'aaa'.replace('a', 'b', " LEAST ") }}", "bbb"},
      {"{{ 'aaa'.replace('a', 'b', 2) }}{{ 'aaa'.replace('a', 'b', 0) }}", "bbaaaa"},
      {"{{ 'abc'[::9223372036854775807] }} {{ 'abc'[::" LEAST "] }}", "a c"},
      {"{{ 'abc'[" LEAST ":9223372036854775807] }}", "abc"},
      {"{{ range(" LEAST ", 9223372036854775807, 9223372036854775807)|list }}",
       "[-9223372036854775808, -1, 9223372036854775806]"},
      {"{{ '' * 9223372036854775807 }}{{ [] * 9223372036854775807 }}{{ 'x' * " LEAST " }}", "[]"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char out[100] = "";
    sconce_error err = {0};
    const sconce_status status =
        render(rows[i].template, text_of("hello"), 0, out, sizeof out, &err);
    CHECK_SAYS(status ? strstr(err.text, rows[i].want) != NULL : strcmp(out, rows[i].want) == 0,
               "%s: %s, want %s", rows[i].template, status ? err.text : out, rows[i].want);
  }
}

const struct test suite_jinja_cost[] = {
    TEST(walking_a_text_costs_its_bytes),      TEST(making_a_text_costs_its_bytes),
    TEST(keys_that_collide_cost_their_search), TEST(limits_grow_with_the_conversation),
    TEST(texts_in_a_row_are_copied_seldom),    TEST(conditions_in_a_row_take_little_memory),
    TEST(numbers_at_the_ends_of_64_bits),      {0},
};
