/* Chat families: the text that the models' own templates give, and messages that try to escape. */
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
      {"plain", 1, 2, false, " Hi!\n\n Hello. "},
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

const struct test suite_chat[] = {
    TEST(families_render),
    TEST(messages_cannot_forge_turns),
    TEST(text_merges_across_markup),
    TEST(llama3_as_ids),
    TEST(smollm2_as_ids),
    TEST(families_are_chosen_and_refused),
    {0},
};
