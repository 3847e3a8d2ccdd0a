/* Tokenizer files: every format with a tiny vocabulary of our own, and files that lie. The ids are
 * those of SentencePiece, tiktoken and tokenizers for these very files; only the character map is
 * too small for SentencePiece to accept. */
#include "harness.h"
#include "sconce_llm.h"
#include "tiny_vocab.h"

static sconce_status open_bytes(sconce_tokenizer **t, const void *data, size_t size,
                                const char *config, sconce_error *err) {
  sconce_tokenizer_desc desc = {
      .data = data, .size = size, .config = config, .config_size = config ? strlen(config) : 0};
  return sconce_tokenizer_open(t, &desc, err);
}

struct id_row {
  const char *text, *ids;
  uint32_t flags;
};

static void check_rows(int line, struct blob *b, const char *kind, const struct id_row *rows,
                       size_t n_rows) {
  sconce_tokenizer *t;
  sconce_error err = {0};
  REQUIRE_OK(open_bytes(&t, b->data, b->size, NULL, &err), err);
  CHECK_TEXT(sconce_tokenizer_describe(t)->kind, kind);
  for (size_t r = 0; r < n_rows; r++) {
    const int32_t *ids;
    size_t n, at = 0;
    char got[400] = "";
    REQUIRE_OK(sconce_tokenizer_encode(t, rows[r].text, strlen(rows[r].text), rows[r].flags, &ids,
                                       &n, &err),
               err);
    for (size_t i = 0; i < n && at < sizeof got - 12; i++)
      at += (size_t)snprintf(got + at, 12, i ? " %d" : "%d", (int)ids[i]);
    if (strcmp(got, rows[r].ids) != 0)
      test_fail(__FILE__, line, "\"%s\" is %s, want %s", rows[r].text, got, rows[r].ids);
  }
  sconce_tokenizer_close(t);
  blob_free(b);
}
#define CHECK_ROWS(b, kind, ...)                                                                   \
  check_rows(__LINE__, b, kind, (const struct id_row[]){__VA_ARGS__},                              \
             sizeof((const struct id_row[]){__VA_ARGS__}) / sizeof(struct id_row))

/* ---- formats --------------------------------------------------------------------------------- */

static void tiktoken_file(void) {
  struct blob b = {0};
  tiny_tiktoken(&b);
  CHECK_ROWS(&b, "tiktoken", {"hello world's", "259 262 263 271", 0}, {"  hello", "32 32 259", 0},
             {"hhello 1234", "104 259 32 268 51 52", 0},
             {"a\n\n\nb \xc3\xa9", "97 267 10 98 32 269", 0},
             {"he<|eot_id|>", "256 281", SCONCE_ENCODE_SPECIAL},
             {"<|eot_id|>", "60 124 101 111 116 95 105 100 124 62", 0},
             {"he", "272 256", SCONCE_ENCODE_BOS},
             {"<|reserved_special_token_246|>", "527", SCONCE_ENCODE_SPECIAL});
}

static void hf_file(void) {
  struct blob b = {0};
  for (int arrays = 0; arrays < 2; arrays++) {
    tiny_hf(&b, &(struct tiny_hf){.merge_arrays = arrays});
    CHECK_ROWS(&b, "hugging face bpe", {"hello world's", "259 262 263 271", 0},
               {"  hello", "32 32 259", 0}, {"hhello 1234", "104 259 32 268 51 52", 0},
               {"a\n\n\nb \xc3\xa9", "97 267 10 98 32 269", 0});
  }
  tiny_hf(&b, &(struct tiny_hf){.pre_tokenizer = "{\"type\":\"ByteLevel\",\"use_regex\":false}"});
  CHECK_ROWS(&b, "hugging face bpe", {"hello", "32 259", 0}, {" hello", "32 259", 0}, {"", "", 0});
}

static void hf_known_splitters(void) {
  struct blob b = {0};
  tiny_hf(&b,
          &(struct tiny_hf){
              .normalizer = "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"}]}",
              .pre_tokenizer =
                  "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":"
                  "{\"Regex\":\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?"
                  "\\\\p{L}+|\\\\p{N}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|"
                  "\\\\s+(?!\\\\S)|\\\\s+\"},\"behavior\":\"Isolated\",\"invert\":false},"
                  "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}]}"});
  CHECK_ROWS(&b, "hugging face bpe", {"12", "49 50", 0}, {"e\xcc\x81", "269", 0});
  tiny_hf(&b, &(struct tiny_hf){
                  .pre_tokenizer =
                      "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\","
                      "\"individual_digits\":true},{\"type\":\"ByteLevel\",\"add_prefix_space\":"
                      "false,\"use_regex\":true}]}"});
  CHECK_ROWS(&b, "hugging face bpe", {"12  1", "49 50 265 49", 0});
}

static void hf_added_tokens(void) {
  struct blob b = {0};
  tiny_hf(&b, &(struct tiny_hf){.added = "{\"id\":272,\"content\":\"<|im_end|>\",\"special\":true},"
                                         "{\"id\":273,\"content\":\"<x>\",\"special\":false},"
                                         "{\"id\":274,\"content\":\"<x>y\",\"normalized\":true},"
                                         "{\"id\":275,\"content\":\"[L]\",\"lstrip\":true},"
                                         "{\"id\":276,\"content\":\"[R]\",\"rstrip\":true}"});
  CHECK_ROWS(&b, "hugging face bpe", {"he<|im_end|>he", "256 272 256", SCONCE_ENCODE_SPECIAL},
             {"<|im_end|>", "60 124 105 109 95 101 110 100 124 62", 0},
             {"he<x>y", "256 273 121", 0},
             {"he \t [L] he [R] \n he", "256 275 32 256 32 276 256", 0});
}

static void configuration_beside_a_file(void) {
  struct blob b = {0};
  sconce_tokenizer *t;
  sconce_error err = {0};
  tiny_hf(&b, &(struct tiny_hf){.added = "{\"id\":272,\"content\":\"<b>\",\"special\":true},"
                                         "{\"id\":273,\"content\":\"<e>\",\"special\":true}"});
  const char *config = "{\"bos_token\": {\"content\": \"<b>\"}, \"eos_token\": \"<e>\","
                       "\"add_bos_token\": true, \"chat_template\": \"{{ '<|im_start|>' }}\"}";
  REQUIRE_OK(open_bytes(&t, b.data, b.size, config, &err), err);
  const sconce_tokenizer_info *info = sconce_tokenizer_describe(t);
  CHECK(info->bos == 272 && info->eos == 273 && info->add_bos);
  CHECK_TEXT(info->chat_template, "{{ '<|im_start|>' }}");
  CHECK_TEXT(sconce_chat_family(t), "chatml");
  CHECK(sconce_tokenizer_is_end(t, 273));
  sconce_tokenizer_close(t);
  CHECK_FAILS(open_bytes(&t, b.data, b.size, "{", &err), SCONCE_BAD_FILE, err,
              "tokenizer_config.json: no valid JSON at byte");
  blob_free(&b);
  tiny_spm(&b, &(struct tiny_spm){.model_type = 2});
  config = "{\"chat_template\": \"{{ '[INST] ' }}\", \"bos_token\": \"<x>\"}";
  REQUIRE_OK(open_bytes(&t, b.data, b.size, config, &err), err);
  CHECK_TEXT(sconce_chat_family(t), "llama2");
  CHECK_EQ(sconce_tokenizer_describe(t)->bos, 1);
  sconce_tokenizer_close(t);
  blob_free(&b);
}

static void sentencepiece_files(void) {
  struct blob b = {0};
  tiny_spm(&b, &(struct tiny_spm){.model_type = 2});
  CHECK_ROWS(&b, "sentencepiece bpe", {"hello the hello", "265 261 265", 0},
             {"  the x", "266 261 267 123", 0}, {"\xc3\xa9\xe4\xbd\xa0!", "267 273 278 36", 0},
             {"\xe2\x96\x81t", "267 259", 0}, {"", "", 0}, {"", "1", SCONCE_ENCODE_BOS});
  tiny_spm(&b,
           &(struct tiny_spm){2, .no_byte_fallback = true, .strip_spaces = true, .user = "[x y]"});
  CHECK_ROWS(&b, "sentencepiece bpe", {"  hello   the ", "265 261", 0},
             {"q[x y]qq z", "267 0 279 0 267 0", 0}, {"zzz", "267 0", 0}, {"  ", "", 0});
  tiny_spm(&b, &(struct tiny_spm){.model_type = 1});
  CHECK_ROWS(&b, "sentencepiece unigram", {"hello the hello", "265 261 265", 0},
             {" the lo q", "267 261 267 262 267 116", 0}, {"\xc3\xa9!", "267 273 36", 0});
  tiny_spm(&b,
           &(struct tiny_spm){1, .no_byte_fallback = true, .strip_spaces = true, .user = "[x y]"});
  CHECK_ROWS(&b, "sentencepiece unigram", {"  hello  [x y]qq ", "265 267 279 0", 0});
  tiny_spm(&b, &(struct tiny_spm){.model_type = 2, .strip_spaces = true, .suffix = true});
  CHECK_ROWS(&b, "sentencepiece bpe", {"hello the", "264 261 267", 0}, {"  the", "269 260 267", 0});
  tiny_spm(&b, &(struct tiny_spm){.model_type = 2, .no_dummy_prefix = true, .user = "ell"});
  CHECK_ROWS(&b, "sentencepiece bpe", {"hello", "270 279 272", 0}, {"the", "269 260", 0});
}

static void sentencepiece_rewrites_characters(void) {
  struct blob b = {0};
  for (int type = 1; type <= 2; type++) {
    tiny_spm(&b, &(struct tiny_spm){.model_type = type, .user = "Ah", .rewrite = true});
    CHECK_ROWS(&b, type == 1 ? "sentencepiece unigram" : "sentencepiece bpe", {"A A", "261 261", 0},
               {"Ah A", "267 279 261", 0}, {"a", "267 100", 0});
  }
}

static void llama2c_files(void) {
  struct blob b = {0};
  for (int long_header = 0; long_header < 2; long_header++) {
    tiny_llama2c(&b, long_header);
    CHECK_ROWS(&b, "llama2.c", {"hello the hello", "265 261 265", 0}, {"x", "1 267 123", 1},
               {"\xc3\xa9\xe4\xbd\xa0!", "267 273 278 36", 0});
  }
}

/* ---- files that lie -------------------------------------------------------------------------- */

static void paths_and_descriptors(void) {
  sconce_tokenizer *t;
  sconce_error err = {0};
  CHECK_FAILS(sconce_tokenizer_open(&t, NULL, &err), SCONCE_BAD_ARGUMENT, err, "a path or data");
  CHECK_FAILS(sconce_tokenizer_open(&t, &(sconce_tokenizer_desc){.path = "/nonexistent"}, &err),
              SCONCE_IO_ERROR, err, "/nonexistent: No such file");
  CHECK_FAILS(sconce_tokenizer_open(
                  &t, &(sconce_tokenizer_desc){.path = SCONCE_SOURCE_DIR "/LICENSE"}, &err),
              SCONCE_BAD_FILE, err, "bytes that are no tokenizer");
  CHECK(t == NULL);
  sconce_tokenizer_close(NULL);
}

static void hostile_files_get_a_sentence(void) {
#define BPE "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"
#define BYTES(text) text, sizeof text - 1
  static const struct {
    const char *data;
    size_t size;
    sconce_status status;
    const char *fragment;
  } rows[] = {
      {BYTES("x"), SCONCE_BAD_FILE, "1 bytes that are no tokenizer"},
      {BYTES("{"), SCONCE_BAD_FILE, "no valid JSON at byte 0 of 1"},
      {BYTES("{}"), SCONCE_BAD_FILE, "JSON without a \"model\""},
      {BYTES("{\"model\":{\"type\":\"WordPiece\"}}"), SCONCE_UNSUPPORTED, "not BPE"},
      {BYTES("{\"model\":{\"dropout\":0.1}}"), SCONCE_UNSUPPORTED, "\"dropout\""},
      {BYTES("{\"model\":{\"byte_fallback\":true}}"), SCONCE_UNSUPPORTED, "use its .model file"},
      {BYTES("{\"model\":{}}"), SCONCE_BAD_FILE, "no \"vocab\""},
      {BYTES("{\"model\":{\"vocab\":{}}}"), SCONCE_UNSUPPORTED, "not byte-level"},
      {BYTES("{\"normalizer\":{\"type\":\"NFKC\"},\"model\":{\"vocab\":{}}}"), SCONCE_UNSUPPORTED,
       "normalizer 'NFKC' is not supported"},
      {BYTES("{\"pre_tokenizer\":{\"type\":\"Metaspace\"},\"model\":{\"vocab\":{}}}"),
       SCONCE_UNSUPPORTED, "pre-tokenizer 'Metaspace'"},
      {BYTES("{\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Isolated\",\"pattern\":"
             "{\"Regex\":\"[ab]+\"}},\"model\":{\"vocab\":{}}}"),
       SCONCE_UNSUPPORTED, "expression '[ab]+' is not a known one"},
      {BYTES("{" BPE "\"model\":{\"vocab\":{}}}"), SCONCE_BAD_FILE, "no list of merges"},
      {BYTES("{" BPE "\"model\":{\"vocab\":{\"a\":\"b\"}}}"), SCONCE_BAD_FILE, "no integer"},
      {BYTES("{" BPE "\"model\":{\"vocab\":{\"a\":-1}}}"), SCONCE_BAD_FILE, "id -1"},
      {BYTES("{" BPE "\"model\":{\"vocab\":{\"a\":4000000000}}}"), SCONCE_BAD_FILE,
       "id 4000000000"},
      {BYTES("{" BPE "\"model\":{\"vocab\":{\"a\":1,\"b\":1}}}"), SCONCE_BAD_FILE, "two pieces"},
      {BYTES("{" BPE "\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"a\"]}}"), SCONCE_BAD_FILE,
       "merge 0 is not a pair"},
      {BYTES("{" BPE "\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"a a\"]}}"), SCONCE_BAD_FILE,
       "merge 0 of 'a' and 'a': not in the vocabulary"},
      {BYTES("{" BPE "\"model\":{\"vocab\":{\"a\":0},\"merges\":[[\"a\"]]}}"), SCONCE_BAD_FILE,
       "merge 0 is not a pair"},
      {BYTES("{" BPE "\"added_tokens\":[{\"id\":5}],\"model\":{\"vocab\":{},\"merges\":[]}}"),
       SCONCE_BAD_FILE, "added token 5 has 0 bytes"},
      {BYTES("{" BPE "\"added_tokens\":[{\"id\":5,\"content\":\"x\",\"single_word\":true}],"
             "\"model\":{\"vocab\":{},\"merges\":[]}}"),
       SCONCE_UNSUPPORTED, "single_word"},
      {BYTES("YQ== 0\n"), SCONCE_BAD_FILE, "no rank for byte 0x00"},
      {BYTES("YQ== 1\n"), SCONCE_BAD_FILE, "rank 1 in line 1, there are 1 lines"},
      {BYTES("YQ== 0\nYg== 0\n"), SCONCE_BAD_FILE, "rank 0 again in line 2"},
      {BYTES("YQ== 0\nYg= 1\n"), SCONCE_BAD_FILE, "line 2 has malformed base64"},
      {BYTES("YQ== 0\nYg==\n"), SCONCE_BAD_FILE, "line 2 is not base64, a space and a rank"},
      {BYTES("YQ== 0\n\n"), SCONCE_BAD_FILE, "line 2"},
      {BYTES("\n\x03\n\x01"
             "a\x1a\x05\x12\x03xyz"),
       SCONCE_BAD_FILE, "charsmap of 3 bytes is malformed"},
      {BYTES("\n\x03\n\x01"
             "a\x12\x02\x18\x03"),
       SCONCE_UNSUPPORTED, "model type 3"},
      {BYTES("\n\x03\n\x01"
             "a\x1a\x02\x28\x00"),
       SCONCE_UNSUPPORTED, "escape white space"},
      {BYTES("\n\x03\n\x01"
             "a"),
       SCONCE_BAD_FILE, "neither an unknown piece nor"},
      {BYTES("\n\x03\n\x01"
             "a\xff"),
       SCONCE_BAD_FILE, "malformed protobuf in the model near byte 5"},
      {BYTES("\n\x03\n\x09"
             "a"),
       SCONCE_BAD_FILE, "malformed protobuf in the piece near byte 2"},
      {BYTES("\n\x05\n\x01"
             "a\x18\x09"),
       SCONCE_BAD_FILE, "piece 0 has type 9"},
      {BYTES("\n\x08\n\x01"
             "a\x15\x00\x00\xc0\x7f"),
       SCONCE_BAD_FILE, "no finite score"},
      {BYTES("\n\x05\n\x01"
             "a\x18\x06"),
       SCONCE_BAD_FILE, "byte piece 0 is 'a', not <0xHH>"},
      {BYTES("\n\x05\n\x01"
             "a\x18\x05\x12\x02\x18\x02"),
       SCONCE_UNSUPPORTED, "piece 0 is unused"},
      {BYTES("\x01\0\0\0\0\0\xc0\x7f\x01\0\0\0a"), SCONCE_BAD_FILE, "no finite score"},
      {BYTES("\xff\xff\xff\x7f\1\0\0\0\2\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0a"), SCONCE_BAD_FILE,
       "a vocabulary of 2147483647 with 1 pieces in 25 bytes"},
      {BYTES("\2\0\0\0\1\0\0\0\7\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0a"), SCONCE_BAD_FILE,
       "bos 1 and eos 7, the vocabulary has 2"},
      {BYTES("\1\0\0\0\0\0\0\0\xff\xff\xff\xff"
             "a"),
       SCONCE_BAD_FILE, "no tokenizer"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    sconce_tokenizer *t;
    sconce_error err = {0};
    CHECK_FAILS(open_bytes(&t, rows[i].data, rows[i].size, NULL, &err), rows[i].status, err,
                rows[i].fragment);
    if (t) test_fail(__FILE__, __LINE__, "row %zu opened", i);
  }
}

/* Truncated at every byte, and with every byte changed: a status, never a crash. */
static void damaged_files_fail_or_work(void) {
  struct blob b = {0};
  for (int format = 0; format < 4; format++) {
    if (format == 0) tiny_tiktoken(&b);
    if (format == 1) tiny_hf(&b, &(struct tiny_hf){0});
    if (format == 2) tiny_spm(&b, &(struct tiny_spm){.model_type = 2});
    if (format == 3) tiny_llama2c(&b, false);
    uint64_t state = 11;
    for (size_t i = 0; i < b.size; i += 7) {
      sconce_tokenizer *t;
      const int32_t *ids;
      size_t n;
      char was = b.data[i];
      if (open_bytes(&t, b.data, i, NULL, NULL) == SCONCE_OK) sconce_tokenizer_close(t);
      b.data[i] = (char)test_random(&state);
      if (open_bytes(&t, b.data, b.size, NULL, NULL) == SCONCE_OK) {
        CHECK(sconce_tokenizer_encode(t, "hello the\xff\n", 11, 3, &ids, &n, NULL) == SCONCE_OK);
        sconce_tokenizer_close(t);
      }
      b.data[i] = was;
    }
    blob_free(&b);
  }
}

const struct test suite_tokenizer_files[] = {
    TEST(tiktoken_file),
    TEST(hf_file),
    TEST(hf_known_splitters),
    TEST(hf_added_tokens),
    TEST(configuration_beside_a_file),
    TEST(sentencepiece_files),
    TEST(sentencepiece_rewrites_characters),
    TEST(llama2c_files),
    TEST(paths_and_descriptors),
    TEST(hostile_files_get_a_sentence),
    TEST(damaged_files_fail_or_work),
    {0},
};
