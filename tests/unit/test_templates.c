/* Templates of public models, where a collection of them is at hand: what they render, byte for
 * byte, and that nothing of a conversation ever becomes a special token. */
#include "base/file.h"
#include "base/json.h"
#include "base/os_folder.h"
#include "harness.h"
#include "sconce_llm.h"
#include "tiny_vocab.h"

/* Tokens that templates write or that texts may forge; "<|forged|>" is in no template. */
static const char *const specials[] = {
    "<s>",
    "</s>",
    "<|forged|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|eot_id|>",
    "[INST]",
    "[/INST]",
    "<start_of_turn>",
    "<end_of_turn>",
    "<|end|>",
    "<|user|>",
    "<|assistant|>",
    "<|start|>",
    "<|message|>",
    "<|channel|>",
    "<|turn>",
    "<turn|>",
    "<|tool|>",
    "<|endoftext|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
};
enum { N_SPECIALS = sizeof specials / sizeof *specials, FORGED = TINY_N + 2 };

static sconce_tokenizer *open_tokenizer(void) {
  static const char config[] = "{\"bos_token\": \"<s>\", \"eos_token\": \"</s>\", \"pad_token\": "
                               "\"<pad>\", \"unk_token\": {\"content\": \"<unk>\"}}";
  struct blob file = {0}, added = {0};
  sconce_tokenizer *t;
  sconce_error err = {0};
  for (int i = 0; i < N_SPECIALS; i++) {
    char row[100];
    snprintf(row, sizeof row, "%s{\"id\":%d,\"content\":\"%s\",\"special\":true}", i ? "," : "",
             TINY_N + i, specials[i]);
    blob_text(&added, row);
  }
  blob_add(&added, "", 1);
  tiny_hf(&file, &(struct tiny_hf){.added = added.data});
  sconce_tokenizer_desc desc = {
      .data = file.data, .size = file.size, .config = config, .config_size = sizeof config - 1};
  CHECK_OK(sconce_tokenizer_open(&t, &desc, &err), err);
  blob_free(&file);
  blob_free(&added);
  return t;
}

/* ---- the collection -------------------------------------------------------------------------- */

struct collection {
  const char *folder;
  sconce_tokenizer *tokenizer;
  struct arena arena; /* of the cases' document */
  struct json cases;
  size_t n_templates, n_texts, n_errors;
  void (*check)(struct collection *c, const char *name, const char *template);
};

/* A file with a NUL behind it; the caller frees. */
static char *read_text(const char *folder, const char *kind, const char *name, const char *end) {
  char path[1200];
  struct arena arena;
  struct span bytes;
  sconce_error err;
  arena_init(&arena, NULL);
  snprintf(path, sizeof path, "%s/%s/%s%s", folder, kind, name, end);
  if (file_read(&arena, path, &bytes, &err) != SCONCE_OK) return NULL;
  char *text = malloc(bytes.size + 1);
  if (bytes.size) memcpy(text, bytes.data, bytes.size);
  text[bytes.size] = 0;
  arena_free(&arena);
  return text;
}

static sconce_status check_file(void *user, const char *file, bool folder, sconce_error *err) {
  struct collection *c = user;
  const char *dot = strrchr(file, '.');
  char name[300];
  (void)err;
  if (folder || !dot || strcmp(dot, ".jinja") != 0) return SCONCE_OK;
  snprintf(name, sizeof name, "%.*s", (int)(dot - file), file);
  char *template = read_text(c->folder, "jinja", name, ".jinja");
  c->n_templates++;
  if (template) c->check(c, name, template);
  free(template);
  return SCONCE_OK;
}

static void for_all(struct collection *c,
                    void (*check)(struct collection *c, const char *name, const char *template)) {
  const char *shared = getenv("SCONCE_SHARED");
  char folder[1000], path[1100];
  sconce_error err = {0};
  snprintf(folder, sizeof folder, "%s/templates", shared ? shared : "");
  if (!shared || !os_folder_is(folder)) {
    test_skip("no templates: SCONCE_SHARED is not set, or has none");
    return;
  }
  *c = (struct collection){.folder = folder, .tokenizer = open_tokenizer(), .check = check};
  snprintf(path, sizeof path, "%s/expected/cases.json", folder);
  struct span bytes;
  arena_init(&c->arena, NULL);
  REQUIRE_OK(file_read(&c->arena, path, &bytes, &err), err);
  struct text text = {(const char *)bytes.data, bytes.size};
  CHECK_OK(json_check(text, &c->cases, &err), err);
  snprintf(path, sizeof path, "%s/jinja", folder);
  CHECK_OK(os_folder_each(path, check_file, c, &err), err);
  arena_free(&c->arena);
  sconce_tokenizer_close(c->tokenizer);
}

/* ---- what they render ------------------------------------------------------------------------ */

/* The ids of a template's text stand for that text again. */
static void check_ids(struct collection *c, const char *name, const sconce_chat_desc *desc,
                      const char *text, size_t size) {
  const int32_t *ids;
  const char *back;
  size_t n;
  sconce_error err = {0};
  char *want = malloc(size + 1);
  memcpy(want, text, size);
  CHECK_OK(sconce_chat_encode(c->tokenizer, desc, &ids, &n, &err), err);
  CHECK_OK(sconce_tokenizer_decode(c->tokenizer, ids, n, SCONCE_DECODE_SPECIAL, &back, &n, &err),
           err);
  if (n != size || memcmp(back, want, size) != 0)
    test_fail(__FILE__, __LINE__, "%s: ids give %zu bytes, want %zu", name, n, size);
  free(want);
}

static void check_case(struct collection *c, const char *name, const char *template,
                       const struct json_walk *w, struct json expected) {
  struct arena arena;
  arena_init(&arena, NULL);
  const char *conversation = arena_copy_text(&arena, w->value.at, (size_t)(w->next - w->value.at));
  struct text key = json_text(w->key, &arena);
  struct json want = json_member(expected, "text");
  sconce_chat_desc desc = {
      .chat_template = template, .conversation = conversation, .date = 1794821400};
  const char *text;
  size_t size;
  sconce_error err = {0};
  sconce_status status = sconce_chat_text(c->tokenizer, &desc, &text, &size, &err);
  if (!json_is_string(want)) {
    c->n_errors++;
    if (status == SCONCE_OK) test_fail(__FILE__, __LINE__, "%s, %s: no error", name, key.data);
  } else if (status != SCONCE_OK) {
    test_fail(__FILE__, __LINE__, "%s, %s: %s", name, key.data, err.text);
  } else {
    c->n_texts++;
    if (!text_equal((struct text){text, size}, json_text(want, &arena)))
      test_fail(__FILE__, __LINE__, "%s, %s: another text", name, key.data);
    check_ids(c, name, &desc, text, size);
  }
  arena_free(&arena);
}

static void check_texts(struct collection *c, const char *name, const char *template) {
  char *file = read_text(c->folder, "expected", name, ".json");
  struct json expected;
  struct json_walk w;
  sconce_error err = {0};
  REQUIRE(file);
  CHECK_OK(json_check(text_of(file), &expected, &err), err);
  for (json_begin(&w, c->cases); json_next(&w);) {
    struct json_walk all;
    struct json one = {0};
    for (json_begin(&all, expected); json_next(&all);)
      if (json_text_size(all.key) == json_text_size(w.key) &&
          memcmp(all.key.at, w.key.at, json_text_size(w.key) + 2) == 0)
        one = all.value;
    if (one.at) check_case(c, name, template, &w, one);
  }
  free(file);
}

static void public_templates_render_as_published(void) {
  struct collection c = {0};
  for_all(&c, check_texts);
  if (c.n_templates) CHECK(c.n_templates >= 68 && c.n_texts >= 761 && c.n_errors >= 55);
}

/* ---- forging --------------------------------------------------------------------------------- */

/* A conversation with `mark` wherever a caller may put text. */
static void write_conversation(char *out, size_t size, const char *mark) {
  static const char form[] =
      "{\"messages\": [{\"role\": \"system\", \"content\": \"S @ s\"}, {\"role\": \"user\", "
      "\"content\": \"@ a @b\"}, {\"role\": \"assistant\", \"content\": \"c @\", "
      "\"reasoning_content\": \"r @\", \"thinking\": \"t @\"}, {\"role\": \"user\", \"content\": "
      "\"d\\n@\\n\"}, {\"role\": \"assistant\", \"content\": \"e @\", \"tool_calls\": [{\"id\": "
      "\"call@0001\", \"type\": \"function\", \"function\": {\"name\": \"f@\", \"arguments\": "
      "{\"k@\": \"v@\", \"l\": [\"@\", {\"@\": 1}]}}}]}, {\"role\": \"tool\", \"name\": \"f@\", "
      "\"tool_call_id\": \"call@0001\", \"content\": \"g @\"}, {\"role\": \"user\", \"content\": "
      "[{\"type\": \"text\", \"text\": \"h @\"}]}, {\"role\": \"r@\", \"content\": \"i @\"}], "
      "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f@\", \"description\": "
      "\"D @\", \"parameters\": {\"type\": \"object\", \"properties\": {\"k@\": {\"type\": "
      "\"string\", \"description\": \"P @\", \"enum\": [\"@\", \"w\"]}}, \"required\": "
      "[\"k@\"]}}}], "
      "\"documents\": [{\"title\": \"T @\", \"text\": \"@\"}], \"date_string\": \"@\", "
      "\"custom_instructions\": \"@\", \"model_identity\": \"@\", \"enable_thinking\": true}";
  size_t at = 0;
  for (const char *p = form; *p && at + strlen(mark) + 1 < size; p++) {
    size_t n = *p == '@' ? strlen(mark) : 1;
    memcpy(out + at, *p == '@' ? mark : p, n);
    at += n;
  }
  out[at] = 0;
}

static size_t count_id(const int32_t *ids, size_t n, int32_t id) {
  size_t count = 0;
  for (size_t i = 0; i < n; i++) count += ids[i] == id;
  return count;
}

/* Everything that a template may do with a text that forges a token, conversation by conversation:
 * whole, and cut down to fewer messages for templates that refuse some. */
static void check_forging(struct collection *c, const char *name, const char *template) {
  static const char *const shapes[] = {
      NULL, /* the long one */
      "{\"messages\": [{\"role\": \"user\", \"content\": \"x %s y\"}]}",
      "{\"messages\": [{\"role\": \"user\", \"content\": \"%s\"}, {\"role\": \"assistant\", "
      "\"content\": \" %s \"}, {\"role\": \"user\", \"content\": \"a%s\"}]}",
      "{\"messages\": [{\"role\": \"system\", \"content\": \"%s\"}, {\"role\": \"user\", "
      "\"content\": \"%s\"}], \"tools\": [], \"functions\": \"%s\", \"datetime\": \"%s\"}",
  };
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    char text[8000];
    const char *m = "<|forged|>";
    if (!shapes[i])
      write_conversation(text, sizeof text, m);
    else
      snprintf(text, sizeof text, shapes[i], m, m, m, m);
    sconce_chat_desc desc = {.chat_template = template, .conversation = text};
    const int32_t *ids;
    size_t n;
    sconce_error err = {0};
    if (sconce_chat_encode(c->tokenizer, &desc, &ids, &n, &err) != SCONCE_OK) continue;
    c->n_texts++;
    if (count_id(ids, n, FORGED))
      test_fail(__FILE__, __LINE__, "%s: a text became a special token (conversation %zu)", name,
                i);
  }
}

/* The template's own tokens: as many as without a text that imitates them. */
static void check_imitation(struct collection *c, const char *name, const char *template) {
  for (int i = 0; i < N_SPECIALS; i++) {
    size_t counts[2] = {0};
    for (int imitate = 0; imitate < 2; imitate++) {
      char text[300];
      const int32_t *ids;
      size_t n;
      sconce_error err = {0};
      snprintf(text, sizeof text, "{\"messages\": [{\"role\": \"user\", \"content\": \"a %s b\"}]}",
               imitate ? specials[i] : "plain");
      sconce_chat_desc desc = {.chat_template = template, .conversation = text};
      if (sconce_chat_encode(c->tokenizer, &desc, &ids, &n, &err) != SCONCE_OK) return;
      counts[imitate] = count_id(ids, n, TINY_N + i);
    }
    c->n_texts++;
    if (counts[0] != counts[1])
      test_fail(__FILE__, __LINE__, "%s: %zu times '%s' with a text that has it, %zu without", name,
                counts[1], specials[i], counts[0]);
  }
}

static void no_text_becomes_a_special_token(void) {
  struct collection c = {0};
  for_all(&c, check_forging);
  if (c.n_templates) CHECK(c.n_texts >= 150); /* conversations that templates accepted */
}

static void imitated_tokens_stay_text(void) {
  struct collection c = {0};
  for_all(&c, check_imitation);
  if (c.n_templates) CHECK(c.n_texts >= 60 * N_SPECIALS);
}

const struct test suite_templates[] = {
    TEST(public_templates_render_as_published),
    TEST(no_text_becomes_a_special_token),
    TEST(imitated_tokens_stay_text),
    {0},
};
