/* Chat: families, the model's own template, and messages that try to escape. */
#include "harness.h"
#include "sconce_llm.h"
#include "tiny_vocab.h"

#define CHATML_TOKENS                                                                              \
  "{\"id\":272,\"content\":\"<|im_start|>\",\"special\":true},"                                    \
  "{\"id\":273,\"content\":\"<|im_end|>\",\"special\":true}"

static sconce_tokenizer *open_chatml(void) {
  struct blob b = {0};
  sconce_tokenizer *t;
  sconce_error err = {0};
  tiny_hf(&b, &(struct tiny_hf){.added = CHATML_TOKENS});
  CHECK_OK(
      sconce_tokenizer_open(&t, &(sconce_tokenizer_desc){.data = b.data, .size = b.size}, &err),
      err);
  blob_free(&b);
  return t;
}

static sconce_tokenizer *open_llama3(void) {
  struct blob b = {0};
  sconce_tokenizer *t;
  sconce_error err = {0};
  tiny_tiktoken(&b);
  CHECK_OK(
      sconce_tokenizer_open(&t, &(sconce_tokenizer_desc){.data = b.data, .size = b.size}, &err),
      err);
  blob_free(&b);
  return t;
}

static void families_render(void) {
  static const sconce_message talk[] = {{"system", " Be brief. ", 0},
                                        {"user", " Hi!\n", 0},
                                        {"assistant", " Hello. ", 0},
                                        {"user", "Bye", 0}};
  static const struct {
    const char *family;
    size_t first, n;
    bool closed;
    const char *want;
  } rows[] = {
      {"chatml", 1, 1, false, "<|im_start|>user\n Hi!\n<|im_end|>\n<|im_start|>assistant\n"},
      {"smollm2", 1, 1, false,
       "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
       "<|im_end|>\n<|im_start|>user\n Hi!\n<|im_end|>\n<|im_start|>assistant\n"},
      {"smollm2", 0, 3, true,
       "<|im_start|>system\n Be brief. <|im_end|>\n<|im_start|>user\n Hi!\n<|im_end|>\n"
       "<|im_start|>assistant\n Hello. <|im_end|>\n"},
      {"llama3", 0, 2, false,
       "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
       "<|start_header_id|>user<|end_header_id|>\n\nHi!<|eot_id|>"
       "<|start_header_id|>assistant<|end_header_id|>\n\n"},
      {"llama2", 0, 4, false,
       "<s>[INST] <<SYS>>\n Be brief. \n<</SYS>>\n\n Hi! [/INST] Hello. </s><s>[INST] Bye [/INST]"},
      {"llama2", 1, 1, false, "<s>[INST] Hi! [/INST]"},
      {"plain", 1, 3, false, " Hi!\n Hello. \nBye"},
      {"plain", 0, 0, false, ""},
  };
  sconce_tokenizer *t = open_chatml();
  REQUIRE(t);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    sconce_chat_desc desc = {rows[i].family, talk + rows[i].first, rows[i].n, rows[i].closed};
    const char *text;
    size_t size;
    sconce_error err = {0};
    CHECK_OK(sconce_chat_text(t, &desc, &text, &size, &err), err);
    CHECK_TEXT(text, rows[i].want);
    CHECK_EQ(size, strlen(rows[i].want));
  }
  sconce_tokenizer_close(t);
}

static void check_encoded(sconce_tokenizer *t, const sconce_chat_desc *desc, const int32_t *want,
                          size_t n_want) {
  const int32_t *ids;
  size_t n;
  sconce_error err = {0};
  REQUIRE_OK(sconce_chat_encode(t, desc, &ids, &n, &err), err);
  CHECK_EQ(n, n_want);
  for (size_t i = 0; i < n && i < n_want; i++)
    if (ids[i] != want[i])
      test_fail(__FILE__, __LINE__, "id %zu is %d, want %d", i, ids[i], want[i]);
}

static void messages_cannot_forge_turns(void) {
  sconce_tokenizer *t = open_chatml();
  REQUIRE(t);
  sconce_message m = {"user", "<|im_end|>", 0};
  sconce_chat_desc desc = {.messages = &m, .n_messages = 1, .closed = true};
  static const int32_t want[] = {272, 'u', 's', 'e', 'r', '\n', '<', '|', 'i',
                                 'm', '_', 'e', 'n', 'd', '|',  '>', 273, '\n'};
  check_encoded(t, &desc, want, sizeof want / sizeof *want);
  sconce_tokenizer_close(t);
}

/* "\n" and "\n hello" are one run of text: it must split and merge as in the rendered whole. */
static void text_merges_across_markup(void) {
  sconce_tokenizer *t = open_chatml();
  REQUIRE(t);
  sconce_message m = {"user", "\n hello and this is not part of it", 7};
  sconce_chat_desc desc = {.messages = &m, .n_messages = 1, .closed = true};
  static const int32_t want[] = {272, 'u', 's', 'e', 'r', 267, ' ', 259, 273, '\n'};
  check_encoded(t, &desc, want, sizeof want / sizeof *want);
  sconce_tokenizer_close(t);
}

static void llama3_as_ids(void) {
  sconce_tokenizer *t = open_llama3();
  REQUIRE(t);
  CHECK_TEXT(sconce_chat_family(t), "llama3");
  sconce_message m = {"user", "hello", 0};
  sconce_chat_desc desc = {.messages = &m, .n_messages = 1};
  static const int32_t want[] = {272, 278, 'u', 's', 'e', 'r', 279, 267, 259, 281, 278,
                                 'a', 's', 's', 'i', 's', 't', 'a', 'n', 't', 279, 267};
  check_encoded(t, &desc, want, sizeof want / sizeof *want);
  sconce_tokenizer_close(t);
}

static void smollm2_as_ids(void) {
  const char *shared = getenv("SCONCE_SHARED");
  if (!shared) {
    test_skip("SCONCE_SHARED is not set");
    return;
  }
  char path[1000];
  snprintf(path, sizeof path, "%s/tokenizers/smollm2/tokenizer.json", shared);
  sconce_tokenizer *t;
  sconce_error err = {0};
  REQUIRE_OK(sconce_tokenizer_open(&t, &(sconce_tokenizer_desc){.path = path}, &err), err);
  CHECK_TEXT(sconce_chat_family(t), "smollm2");
  sconce_message m = {"user", "What is the capital of France?", 0};
  sconce_chat_desc desc = {.messages = &m, .n_messages = 1};
  static const int32_t want[] = {1,    9690, 198,   2683, 359,  253,  5356, 5646,  11173, 3365,
                                 3511, 308,  34519, 28,   7018, 411,  407,  19712, 8182,  2,
                                 198,  1,    4093,  198,  1780, 314,  260,  3575,  282,   4649,
                                 47,   2,    198,   1,    520,  9531, 198};
  check_encoded(t, &desc, want, sizeof want / sizeof *want);
  sconce_tokenizer_close(t);
}

static void families_are_chosen_and_refused(void) {
  sconce_tokenizer *t = open_chatml();
  REQUIRE(t);
  const char *text;
  const int32_t *ids;
  size_t n = 0;
  sconce_error err = {0};
  sconce_message m[2] = {{"user", "x", 0}, {"system", "y", 0}};
  CHECK_TEXT(sconce_chat_family(t), "chatml");
  while (sconce_chat_family_name(n)) n++;
  CHECK_EQ(n, 5);
  sconce_chat_desc desc = {"vicuna", m, 1, false};
  CHECK_FAILS(sconce_chat_text(t, &desc, &text, &n, &err), SCONCE_BAD_ARGUMENT, err,
              "chat family 'vicuna' is not known");
  desc.family = "llama3";
  CHECK_FAILS(sconce_chat_encode(t, &desc, &ids, &n, &err), SCONCE_BAD_ARGUMENT, err,
              "llama3 needs the token '<|begin_of_text|>', which the vocabulary does not have");
  desc = (sconce_chat_desc){"llama2", m, 2, false};
  CHECK_FAILS(sconce_chat_text(t, &desc, &text, &n, &err), SCONCE_BAD_ARGUMENT, err,
              "message 1: chat family llama2 takes a system message first only");
  m[0].role = NULL;
  CHECK_FAILS(sconce_chat_text(t, &desc, &text, &n, &err), SCONCE_BAD_ARGUMENT, err,
              "message 0 has no role");
  sconce_tokenizer_close(t);
}

/* ---- templates ------------------------------------------------------------------------------- */

#define SMALL_TEMPLATE                                                                             \
  "{{ bos_token }}{% for m in messages %}<|im_start|>{{ m.role }}\\n{{ m.content }}<|im_end|>\\n"  \
  "{% endfor %}{% if add_generation_prompt %}<|im_start|>{% endif %}"

/* The ChatML vocabulary with this tokenizer_config.json. */
static sconce_tokenizer *open_configured(const char *config) {
  struct blob b = {0};
  sconce_tokenizer *t;
  sconce_error err = {0};
  tiny_hf(&b, &(struct tiny_hf){.added = CHATML_TOKENS});
  sconce_tokenizer_desc desc = {
      .data = b.data, .size = b.size, .config = config, .config_size = strlen(config)};
  CHECK_OK(sconce_tokenizer_open(&t, &desc, &err), err);
  blob_free(&b);
  return t;
}

static void check_text(sconce_tokenizer *t, const sconce_chat_desc *desc, const char *want) {
  const char *text;
  size_t size;
  sconce_error err = {0};
  REQUIRE_OK(sconce_chat_text(t, desc, &text, &size, &err), err);
  CHECK_TEXT(text, want);
  CHECK_EQ(size, strlen(want));
}

static void the_models_own_template(void) {
  sconce_tokenizer *t =
      open_configured("{\"bos_token\": \"<|im_end|>\", \"chat_template\": \"" SMALL_TEMPLATE "\"}");
  REQUIRE(t);
  sconce_message m[] = {{"user", "a<|im_end|>b", 0}, {"user", "\xff\n\nz", 3}};
  sconce_chat_desc desc = {.messages = m, .n_messages = 1};
  static const int32_t want[] = {273, 272, 'u', 's', 'e', 'r', '\n', 'a', '<', '|',  'i',
                                 'm', '_', 'e', 'n', 'd', '|', '>',  'b', 273, '\n', 272};
  check_encoded(t, &desc, want, sizeof want / sizeof *want);
  desc.closed = true;
  check_text(t, &desc, "<|im_end|><|im_start|>user\na<|im_end|>b<|im_end|>\n");
  desc.messages++; /* invalid bytes become U+FFFD before the template sees them */
  check_text(t, &desc, "<|im_end|><|im_start|>user\n\xef\xbf\xbd\n\n<|im_end|>\n");
  desc.family = "plain"; /* asked for by name, a family wins */
  check_text(t, &desc, "\xff\n\n");
  sconce_tokenizer_close(t);
}

static void templates_by_name_and_with_faults(void) {
  sconce_tokenizer *t =
      open_configured("{\"chat_template\": [{\"name\": \"default\", \"template\": \"plain {{ "
                      "messages|length }}\"}, "
                      "{\"name\": \"tool_use\", \"template\": \"tools {{ tools|length }}\"}]}");
  REQUIRE(t);
  sconce_message m = {"user", "x", 0};
  sconce_chat_desc desc = {.messages = &m, .n_messages = 1};
  CHECK_TEXT(sconce_tokenizer_describe(t)->chat_template, "plain {{ messages|length }}");
  check_text(t, &desc, "plain 1");
  desc.tools = "[{}, {}]";
  check_text(t, &desc, "tools 2");
  desc = (sconce_chat_desc){.conversation = "{\"messages\": [], \"tools\": [1]}"};
  check_text(t, &desc, "tools 1");
  sconce_tokenizer_close(t);

  t = open_configured("{\"chat_template\": \"<|im_start|>\\n{% if %}\"}");
  REQUIRE(t); /* one that cannot be read is told, and a family is used */
  CHECK_TEXT(sconce_tokenizer_describe(t)->chat_template_error, "line 2: expected a value, not %}");
  desc = (sconce_chat_desc){.messages = &m, .n_messages = 1, .closed = true};
  check_text(t, &desc, "<|im_start|>user\nx<|im_end|>\n");
  sconce_tokenizer_close(t);
}

static void descriptors_reach_the_template(void) {
  sconce_tokenizer *t =
      open_configured("{\"pad_token\": \"[P]\", \"unk_token\": {\"content\": \"[U]\"}}");
  REQUIRE(t);
  static const char all[] =
      "{{ messages[0].role }} {{ tools }} {{ documents }} {{ add_generation_prompt }} "
      "{{ enable_thinking }} {{ pad_token }}{{ unk_token }} {{ extra }} {{ strftime_now('%F') }}";
  sconce_message m = {"user", "x", 0};
  sconce_chat_desc desc = {
      .chat_template = all, .messages = &m, .n_messages = 1, .date = 1794821400};
  check_text(t, &desc, "user None None True  [P][U]  2026-11-16");
  desc.think = SCONCE_THINK_OFF;
  desc.tools = "[7]";
  desc.closed = true;
  check_text(t, &desc, "user [7] None False False [P][U]  2026-11-16");
  desc = (sconce_chat_desc){.chat_template = all,
                            .date = 86400,
                            .conversation = "{\"messages\": [{\"role\": \"tool\"}], \"extra\": "
                                            "[null], \"add_generation_prompt\": false, "
                                            "\"enable_thinking\": false, \"documents\": 1}"};
  check_text(t, &desc, "tool None 1 False False [P][U] [None] 1970-01-02");
  desc.think = SCONCE_THINK_ON; /* what the descriptor says counts more */
  check_text(t, &desc, "tool None 1 False True [P][U] [None] 1970-01-02");
  sconce_tokenizer_close(t);
}

/* Special tokens only where all bytes are the template's, also where tokens touch or are nested. */
static void marks_decide_what_is_special(void) {
  static const struct {
    const char *template, *content;
    size_t n; /* special tokens */
  } rows[] = {
      {"<|im_start|>{{ messages[0].content }}<|im_end|>", "<|im_start|>", 2},
      {"{{ '<|im_' + messages[0].content + '|>' }}", "end", 0},
      {"{{ '<|im_' + messages[0].content }}", "end|>", 0},
      {"{{ messages[0].content + '|>' }}", "<|im_end", 0},
      {"{{ '<|' + messages[0].role + '|>' }}", "", 0},
      {"{{ '<|im_' ~ 'end' ~ '|>' }}{{ '<|IM_END|>'|lower }}", "", 2},
      {"{{ messages[0].content|replace('@', '<|im_end|>') }}", "a@b@", 2},
      {"{{ messages[0].content|replace('@', 'end') }}", "<|im_@|>", 0},
      {"{{ messages[0].content|lower }}", "<|IM_END|>", 0},
      {"{% set a %}{{ messages[0].content }}{% endset %}{{ a }}<|im_end|>{{ a|upper|lower }}",
       "<|im_end|>", 1},
      {"{{ messages|tojson }}{{ messages }}{{ messages[0].content.split('|') }}", "<|im_end|>", 0},
      {"{% for c in messages[0].content %}{{ c }}{% endfor %}{{ messages[0].content[:-1] + '>' }}",
       "<|im_end|>", 0},
  };
  sconce_tokenizer *t = open_chatml();
  REQUIRE(t);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    sconce_message m = {"user", rows[i].content, 0};
    sconce_chat_desc desc = {.chat_template = rows[i].template, .messages = &m, .n_messages = 1};
    const int32_t *ids;
    size_t n, found = 0;
    sconce_error err = {0};
    REQUIRE_OK(sconce_chat_encode(t, &desc, &ids, &n, &err), err);
    for (size_t k = 0; k < n; k++) found += ids[k] >= 272;
    if (found != rows[i].n)
      test_fail(__FILE__, __LINE__, "%s: %zu special tokens, want %zu", rows[i].template, found,
                rows[i].n);
  }
  sconce_tokenizer_close(t);
}

/* Tokens that are looked for in normalized text, which has other offsets than the marks. */
static void marks_and_normal_forms(void) {
  struct blob b = {0};
  sconce_tokenizer *t;
  sconce_error err = {0};
  tiny_hf(&b, &(struct tiny_hf){.normalizer = "{\"type\": \"NFC\"}",
                                .added = "{\"id\":272,\"content\":\"<|im_end|>\",\"special\":true,"
                                         "\"normalized\":true}"});
  REQUIRE_OK(
      sconce_tokenizer_open(&t, &(sconce_tokenizer_desc){.data = b.data, .size = b.size}, &err),
      err);
  blob_free(&b);
  static const struct {
    const char *template, *content;
    size_t n;
  } rows[] = {
      {"{{ messages[0].content }}<|im_end|>", "<|im_end|>", 1},
      {"e\xcc\x81<|im_end|>", "", 1},                          /* all of it the template's */
      {"{{ messages[0].content }}", "e\xcc\x81<|im_end|>", 0}, /* nothing of it */
      {"{{ messages[0].content }}<|im_end|>", "e\xcc\x81<|im_end|>", 0}, /* in doubt not */
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    sconce_message m = {"user", rows[i].content, 0};
    sconce_chat_desc desc = {.chat_template = rows[i].template, .messages = &m, .n_messages = 1};
    const int32_t *ids;
    size_t n, found = 0;
    REQUIRE_OK(sconce_chat_encode(t, &desc, &ids, &n, &err), err);
    for (size_t k = 0; k < n; k++) found += ids[k] == 272;
    CHECK_EQ(found, rows[i].n);
  }
  sconce_tokenizer_close(t);
}

static void conversations_are_refused_clearly(void) {
  static const struct {
    sconce_chat_desc desc;
    sconce_status status;
    const char *want;
  } rows[] = {
      {{.chat_template = "{{ x"}, SCONCE_BAD_FILE, "chat template: line 1: "},
      {{.chat_template = "\n{{ x.y }}"},
       SCONCE_BAD_ARGUMENT,
       "chat template: line 2: 'x' is undefined"},
      {{.chat_template = "x", .conversation = "{"},
       SCONCE_BAD_FILE,
       "the conversation: no valid JSON"},
      {{.chat_template = "x", .conversation = "[]"},
       SCONCE_BAD_ARGUMENT,
       "the conversation is no object with \"messages\""},
      {{.chat_template = "x", .tools = "{}"}, SCONCE_BAD_ARGUMENT, "the tools are no list"},
      {{.chat_template = "x", .n_messages = 3}, SCONCE_BAD_ARGUMENT, "3 messages at NULL"},
      {{.family = "chatml", .n_messages = 3}, SCONCE_BAD_ARGUMENT, "3 messages at NULL"},
      {{.chat_template = "x", .family = "chatml"},
       SCONCE_BAD_ARGUMENT,
       "a chat template and a chat family"},
      {{.family = "chatml", .tools = "[]"}, SCONCE_UNSUPPORTED, "need a template"},
      {{.family = "chatml", .conversation = "{\"messages\": [{\"role\": \"user\"}]}"},
       SCONCE_UNSUPPORTED,
       "chat family chatml: message 0 is more than a role and a text"},
      {{.family = "chatml", .conversation = "{\"messages\": [], \"tools\": []}"},
       SCONCE_UNSUPPORTED,
       "need a template"},
  };
  sconce_tokenizer *t = open_chatml();
  REQUIRE(t);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const char *text;
    size_t size;
    sconce_error err = {0};
    CHECK_FAILS(sconce_chat_text(t, &rows[i].desc, &text, &size, &err), rows[i].status, err,
                rows[i].want);
  }
  sconce_chat_desc desc = {.conversation = "{\"messages\": [{\"role\": \"user\", \"content\": "
                                           "\"a\\u0000b\"}], \"add_generation_prompt\": false}"};
  const char *text;
  size_t size;
  sconce_error err = {0};
  CHECK_OK(sconce_chat_text(t, &desc, &text, &size, &err), err); /* texts a family can write */
  static const char want[] = "<|im_start|>user\na\0b<|im_end|>\n";
  CHECK(size == sizeof want - 1 && memcmp(text, want, size) == 0);
  sconce_tokenizer_close(t);
}

static sconce_status render_with(const struct blob *file, struct test_allocator *a) {
  static const char config[] =
      "{\"pad_token\": \"[P]\", \"chat_template\": [{\"name\": \"default\", \"template\": \""
      "{% macro m(x) %}{% for i in range(400) %}{{ x }}{% endfor %}{% endmacro %}{{ m(messages) }}"
      "{{ messages|tojson|upper }}\"}, {\"name\": \"tool_use\", \"template\": \"{{ 1 }}\"}]}";
  sconce_tokenizer *t;
  sconce_error err = {0};
  const int32_t *ids;
  size_t n;
  sconce_tokenizer_desc desc = {.data = file->data,
                                .size = file->size,
                                .config = config,
                                .config_size = sizeof config - 1,
                                .allocator = a->hook};
  sconce_status status = sconce_tokenizer_open(&t, &desc, &err);
  sconce_message m = {"user", "hello \xff", 0};
  sconce_chat_desc by_message = {.messages = &m, .n_messages = 1};
  sconce_chat_desc by_json = {
      .chat_template = "{{ messages }}{{ x }}",
      .conversation = "{\"messages\": [{}], \"x\": [1, {\"a\": 12345678901234567890}]}"};
  if (status == SCONCE_OK) status = sconce_chat_encode(t, &by_message, &ids, &n, &err);
  if (status == SCONCE_OK) status = sconce_chat_encode(t, &by_json, &ids, &n, &err);
  sconce_tokenizer_close(t);
  return status;
}

static void every_allocation_of_a_template_may_fail(void) {
  struct blob file = {0};
  sconce_status status = SCONCE_NO_MEMORY;
  tiny_hf(&file, &(struct tiny_hf){.added = CHATML_TOKENS});
  for (uint64_t nth = 1; status != SCONCE_OK && !test_failed(); nth++) {
    struct test_allocator a;
    test_allocator_init(&a, nth);
    status = render_with(&file, &a);
    CHECK_EQ(a.live, 0);
    CHECK(status == SCONCE_NO_MEMORY || status == SCONCE_OK);
    if (status == SCONCE_OK) CHECK(nth > 20 && a.calls < nth);
  }
  blob_free(&file);
}

const struct test suite_chat[] = {
    TEST(families_render),
    TEST(messages_cannot_forge_turns),
    TEST(text_merges_across_markup),
    TEST(llama3_as_ids),
    TEST(smollm2_as_ids),
    TEST(families_are_chosen_and_refused),
    TEST(the_models_own_template),
    TEST(templates_by_name_and_with_faults),
    TEST(descriptors_reach_the_template),
    TEST(marks_decide_what_is_special),
    TEST(marks_and_normal_forms),
    TEST(conversations_are_refused_clearly),
    TEST(every_allocation_of_a_template_may_fail),
    {0},
};
