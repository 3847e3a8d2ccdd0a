/* Tokenizers: the ids that the originals give, round trips, streams, long texts. */
#include "harness.h"
#include "sconce_llm.h"
#include "tiny_vocab.h"

#define LLAMA2 SCONCE_SOURCE_DIR "/models/stories15M/tokenizer.bin"

static sconce_tokenizer *open_path(const char *path) {
  sconce_tokenizer *t;
  sconce_error err = {0};
  CHECK_OK(sconce_tokenizer_open(&t, &(sconce_tokenizer_desc){.path = path}, &err), err);
  return t;
}

static sconce_tokenizer *open_blob(struct blob *b) {
  sconce_tokenizer *t;
  sconce_error err = {0};
  sconce_tokenizer_desc desc = {.data = b->data, .size = b->size};
  CHECK_OK(sconce_tokenizer_open(&t, &desc, &err), err);
  blob_free(b);
  return t;
}

/* The ids of a text, separated by spaces; the caller frees. */
static char *ids_text(sconce_tokenizer *t, const char *text, size_t size, uint32_t flags) {
  const int32_t *ids;
  size_t n, at = 0;
  sconce_error err = {0};
  CHECK_OK(sconce_tokenizer_encode(t, text, size, flags, &ids, &n, &err), err);
  char *out = calloc(n + 1, 12);
  for (size_t i = 0; i < n; i++)
    at += (size_t)snprintf(out + at, 12, i ? " %d" : "%d", (int)ids[i]);
  return out;
}

static void check_ids(int line, sconce_tokenizer *t, const char *text, size_t size, uint32_t flags,
                      const char *want) {
  char *got = ids_text(t, text, size, flags);
  if (strcmp(got, want) != 0)
    test_fail(__FILE__, line, "\"%.*s\" is %s, want %s", (int)size, text, got, want);
  free(got);
}
#define CHECK_IDS(t, text, flags, want) check_ids(__LINE__, t, text, strlen(text), flags, want)

/* ---- ids of the originals -------------------------------------------------------------------- */

/* vectors.inp: texts, each followed by a line of its own; vectors.out: a line of ids each. */
static void check_vectors(sconce_tokenizer *t, char *inp, char *out) {
  static const char mark[] = "\n__ggml_vocab_test__\n";
  int n = 0;
  for (char *end; (end = strstr(inp, mark)); inp = end + sizeof mark - 1, n++) {
    char *newline = strchr(out, '\n'), *line = out;
    REQUIRE(newline);
    out = newline + 1;
    while (newline > line && (newline[-1] == ' ' || newline[-1] == '\r')) newline--;
    *newline = 0;
    check_ids(n + 1, t, inp, (size_t)(end - inp), 0, line + strspn(line, " "));
  }
  CHECK_EQ(n, 46);
}

static void vectors_of(const char *folder, const char *file) {
  const char *shared = getenv("SCONCE_SHARED");
  if (!shared) {
    test_skip("SCONCE_SHARED is not set");
    return;
  }
  char path[3][1000];
  size_t size[2];
  const char *names[] = {"vectors.inp", "vectors.out", file};
  for (int i = 0; i < 3; i++)
    snprintf(path[i], sizeof path[i], "%s/tokenizers/%s/%s", shared, folder, names[i]);
  char *inp = (char *)test_read_path(path[0], &size[0]);
  char *out = (char *)test_read_path(path[1], &size[1]);
  sconce_tokenizer *t = inp && out ? open_path(path[2]) : NULL;
  if (t) {
    inp[size[0]] = out[size[1]] = 0;
    check_vectors(t, inp, out);
  } else {
    test_fail(__FILE__, __LINE__, "%s: not readable", path[0]);
  }
  sconce_tokenizer_close(t);
  free(inp);
  free(out);
}

static void vectors_llama2_model(void) { vectors_of("llama2", "tokenizer.model"); }
static void vectors_llama2_bin(void) { vectors_of("llama2", "tokenizer.bin"); }
static void vectors_llama3(void) { vectors_of("llama3", "tokenizer.model"); }
static void vectors_smollm2(void) { vectors_of("smollm2", "tokenizer.json"); }

/* \xHH in place; the size that remains. */
static size_t unescape(char *text) {
  char *q = text;
  for (char *p = text; *p; q++) {
    unsigned byte = (unsigned char)*p;
    if (*p == '\\' && sscanf(p, "\\x%2x", &byte) == 1)
      p += 4;
    else
      p++;
    *q = (char)byte;
  }
  return (size_t)(q - text);
}

static void llama2_ids_equal_sentencepiece(void) {
  size_t size;
  int n = 0;
  char *cases = (char *)test_read("tokenizer_llama2.txt", &size);
  sconce_tokenizer *t = open_path(LLAMA2);
  REQUIRE(cases && t);
  cases[size] = 0;
  for (char *line = cases, *end; (end = strchr(line, '\n')); line = end + 1, n++) {
    char *tab = strchr(line, '\t');
    REQUIRE(tab && tab < end);
    *tab = *end = 0;
    check_ids(n + 1, t, line, unescape(line), 0, tab + 1);
  }
  CHECK(n > 80);
  sconce_tokenizer_close(t);
  free(cases);
}

static void flags_add_tokens_and_drop_the_prefix(void) {
  sconce_tokenizer *t = open_path(LLAMA2);
  REQUIRE(t);
  CHECK_IDS(t, "hello", 0, "22172");
  CHECK_IDS(t, "hello", SCONCE_ENCODE_BOS, "1 22172");
  CHECK_IDS(t, "hello", SCONCE_ENCODE_CONTINUES, "12199");
  CHECK_IDS(t, "<s>hello</s>", SCONCE_ENCODE_SPECIAL, "1 22172 2");
  CHECK_IDS(t, "", SCONCE_ENCODE_BOS, "1");
  CHECK_EQ(sconce_tokenizer_special(t, "</s>"), 2);
  CHECK_EQ(sconce_tokenizer_special(t, "hello"), -1);
  CHECK(sconce_tokenizer_is_special(t, 1) && !sconce_tokenizer_is_special(t, 0));
  CHECK(sconce_tokenizer_is_end(t, 2) && !sconce_tokenizer_is_end(t, 1));
  const sconce_tokenizer_info *info = sconce_tokenizer_describe(t);
  CHECK_TEXT(info->kind, "llama2.c");
  CHECK_EQ(info->n_vocab, 32000);
  CHECK(info->bos == 1 && info->eos == 2 && info->add_bos && !info->chat_template);
  sconce_tokenizer_close(t);
}

/* ---- decoding -------------------------------------------------------------------------------- */

static void check_round_trip(sconce_tokenizer *t, const char *text, size_t size, uint32_t flags) {
  const int32_t *ids;
  const char *back;
  size_t n, back_size;
  sconce_error err = {0};
  REQUIRE_OK(sconce_tokenizer_encode(t, text, size, flags, &ids, &n, &err), err);
  REQUIRE_OK(sconce_tokenizer_decode(t, ids, n, SCONCE_DECODE_SPECIAL, &back, &back_size, &err),
             err);
  if (back_size != size || memcmp(back, text, size) != 0)
    test_fail(__FILE__, __LINE__, "\"%.*s\" came back as \"%s\"", (int)size, text, back);
  CHECK_EQ(back[back_size], 0);
}

/* Random text of every kind that is valid UTF-8. */
static size_t random_text(uint64_t *state, char *out, size_t room) {
  static const uint32_t ranges[][2] = {
      {32, 95},      {0, 32},        {0x300, 0x70},  {0x400, 0x100}, {0x4e00, 5000}, {0x1f600, 80},
      {0xac00, 900}, {0x2000, 0x70}, {0x590, 0x500}, {0x10000, 900}, {'a', 26},      {' ', 1}};
  size_t n = 0, want = test_random(state) % (room - 4);
  while (n < want) {
    uint32_t row = test_random(state) % 12, run = 1 + test_random(state) % 4, code;
    for (; run && n < want; run--) {
      code = ranges[row][0] + test_random(state) % ranges[row][1];
      char c[4];
      size_t k = 0;
      if (code < 0x80)
        c[k++] = (char)code;
      else if (code < 0x800)
        c[k++] = (char)(0xc0 | code >> 6);
      else if (code < 0x10000)
        c[k++] = (char)(0xe0 | code >> 12), c[k++] = (char)(0x80 | (code >> 6 & 63));
      else
        c[k++] = (char)(0xf0 | code >> 18), c[k++] = (char)(0x80 | (code >> 12 & 63)),
        c[k++] = (char)(0x80 | (code >> 6 & 63));
      if (code >= 0x80) c[k++] = (char)(0x80 | (code & 63));
      memcpy(out + n, c, k);
      n += k;
    }
  }
  return n;
}

static void texts_come_back(void) {
  struct blob b = {0};
  sconce_tokenizer *all[3] = {open_path(LLAMA2)};
  tiny_tiktoken(&b);
  all[1] = open_blob(&b);
  tiny_hf(&b, &(struct tiny_hf){0});
  all[2] = open_blob(&b);
  uint64_t state = 7;
  for (int i = 0; i < 900 && !test_failed(); i++) {
    char text[120];
    check_round_trip(all[i % 3], text, random_text(&state, text, sizeof text), 0);
  }
  check_round_trip(all[1], "a<|eot_id|>b", 12, SCONCE_ENCODE_SPECIAL);
  for (int i = 0; i < 3; i++) sconce_tokenizer_close(all[i]);
}

static bool is_whole_utf8(const char *text, size_t size) {
  for (size_t i = 0, n; i < size; i += n) {
    unsigned char c = (unsigned char)text[i];
    n = c < 0x80 ? 1 : c < 0xc0 ? 9 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    if (i + n > size) return false;
  }
  return true;
}

/* Any ids at all: every part is whole, and the parts together are what decoding at once gives. */
static void streams_never_cut_characters(void) {
  struct blob b = {0};
  sconce_error err = {0};
  tiny_tiktoken(&b);
  sconce_tokenizer *t = open_blob(&b);
  uint64_t state = 3;
  for (int round = 0; round < 300 && !test_failed(); round++) {
    int32_t ids[40];
    char together[40 * 3 * 4 + 16];
    size_t n = 0, size;
    sconce_stream stream = {.tokenizer = t};
    for (int i = 0; i < 40; i++) {
      ids[i] = (int32_t)(test_random(&state) % (TINY_N + 3));
      if (i % 3) ids[i] = 0x80 + (int32_t)(test_random(&state) % 0x80);
      const char *part = sconce_stream_push(&stream, ids[i], &size);
      CHECK(is_whole_utf8(part, size) && part[size] == 0);
      memcpy(together + n, part, size);
      n += size;
    }
    const char *part = sconce_stream_end(&stream, &size), *whole;
    memcpy(together + n, part, size);
    n += size;
    REQUIRE_OK(sconce_tokenizer_decode(t, ids, 40, 0, &whole, &size, &err), err);
    CHECK(size == n && memcmp(whole, together, n) == 0);
  }
  sconce_tokenizer_close(t);
}

static void streams_hold_back_and_let_go(void) {
  sconce_tokenizer *t = open_path(LLAMA2);
  REQUIRE(t);
  size_t size;
  sconce_stream s = {.tokenizer = t};
  CHECK_TEXT(sconce_stream_push(&s, 1, &size), "");           /* <s> is no text */
  CHECK_TEXT(sconce_stream_push(&s, 22172, &size), "hello");  /* the prefix's space goes */
  CHECK_TEXT(sconce_stream_push(&s, 22172, &size), " hello"); /* others stay */
  CHECK_TEXT(sconce_stream_push(&s, 3 + 0xf0, &size), "");
  CHECK_TEXT(sconce_stream_push(&s, 3 + 0x9f, &size), "");
  CHECK_TEXT(sconce_stream_push(&s, 3 + 0x98, &size), "");
  CHECK_TEXT(sconce_stream_push(&s, 3 + 0x80, &size), "\xf0\x9f\x98\x80");
  CHECK_TEXT(sconce_stream_push(&s, 3 + 0xe2, &size), "");
  CHECK_TEXT(sconce_stream_push(&s, 22172, &size), "\xef\xbf\xbd hello");
  CHECK_TEXT(sconce_stream_push(&s, 99999, &size), "");
  CHECK_TEXT(sconce_stream_push(&s, -1, &size), "");
  CHECK_TEXT(sconce_stream_push(&s, 3 + 0xc3, &size), "");
  CHECK_TEXT(sconce_stream_end(&s, &size), "\xef\xbf\xbd");
  CHECK_TEXT(sconce_stream_end(&s, &size), "");
  s = (sconce_stream){.tokenizer = t, .flags = SCONCE_DECODE_CONTINUES | SCONCE_DECODE_SPECIAL};
  CHECK_TEXT(sconce_stream_push(&s, 22172, &size), " hello");
  CHECK_TEXT(sconce_stream_push(&s, 2, &size), "</s>");
  CHECK_TEXT(sconce_stream_push(&s, 0, &size), " \xe2\x81\x87 ");
  sconce_error err = {0};
  const char *text;
  CHECK_FAILS(sconce_tokenizer_decode(t, (int32_t[]){1, 32000}, 2, 0, &text, &size, &err),
              SCONCE_BAD_ARGUMENT, err, "id 32000 at 1, the vocabulary has 32000");
  CHECK_TEXT(sconce_tokenizer_piece(t, 3 + 'A', &size), "A");
  CHECK_TEXT(sconce_tokenizer_piece(t, 32000, &size), "");
  sconce_tokenizer_close(t);
}

/* ---- size and memory ------------------------------------------------------------------------- */

/* A quadratic encoder would take minutes here, and hours at 10 MB. */
static void long_runs_do_not_hang(void) {
  static const char *const runs[] = {"a",  " ",        "\n ",    "\xff",
                                     "12", "\xc3\xa9", "hello ", "e\xcc\x81"};
  struct blob b = {0};
  sconce_tokenizer *all[2] = {open_path(LLAMA2)};
  tiny_hf(&b, &(struct tiny_hf){.normalizer = "{\"type\": \"NFC\"}"});
  all[1] = open_blob(&b);
  size_t size = 200000;
  char *text = malloc(size);
  for (size_t r = 0; r < sizeof runs / sizeof *runs; r++) {
    for (size_t i = 0; i < size; i++) text[i] = runs[r][i % strlen(runs[r])];
    for (int k = 0; k < 2; k++) free(ids_text(all[k], text, size, 0));
  }
  free(text);
  for (int k = 0; k < 2; k++) sconce_tokenizer_close(all[k]);
}

static sconce_status open_and_use(const struct blob *file, struct test_allocator *a) {
  static const char text[] = "hello  the w\xc3\xa9rld \xff e\xcc\x81 12345 hello hello <|eot_id|>";
  sconce_tokenizer *t;
  sconce_error err = {0};
  const int32_t *ids;
  const char *back;
  size_t n;
  sconce_tokenizer_desc desc = {.data = file->data, .size = file->size, .allocator = a->hook};
  sconce_status status = sconce_tokenizer_open(&t, &desc, &err);
  if (status == SCONCE_OK)
    status =
        sconce_tokenizer_encode(t, text, sizeof text - 1, SCONCE_ENCODE_SPECIAL, &ids, &n, &err);
  if (status == SCONCE_OK) status = sconce_tokenizer_decode(t, ids, n, 0, &back, &n, &err);
  sconce_message hi = {.role = "user", .content = "hi"};
  sconce_chat_desc chat = {.family = "plain", .messages = &hi, .n_messages = 1};
  if (status == SCONCE_OK) status = sconce_chat_encode(t, &chat, &ids, &n, &err);
  sconce_tokenizer_close(t);
  return status;
}

static void every_allocation_may_fail(void) {
  struct blob files[5] = {{0}};
  tiny_tiktoken(&files[0]);
  tiny_hf(&files[1], &(struct tiny_hf){
                         .normalizer = "{\"type\": \"NFC\"}",
                         .added = "{\"id\": 300, \"content\": \"<|eot_id|>\", \"special\": true}"});
  tiny_spm(&files[2], &(struct tiny_spm){.model_type = 1, .user = "w"});
  tiny_spm(&files[3], &(struct tiny_spm){.model_type = 2});
  tiny_llama2c(&files[4], true);
  for (int i = 0; i < 5; i++) {
    sconce_status status = SCONCE_NO_MEMORY;
    for (uint64_t nth = 1; status != SCONCE_OK && !test_failed(); nth++) {
      struct test_allocator a;
      test_allocator_init(&a, nth);
      status = open_and_use(&files[i], &a);
      CHECK_EQ(a.live, 0);
      CHECK(status == SCONCE_NO_MEMORY || status == SCONCE_OK);
      if (status == SCONCE_OK) CHECK(nth > 8 && a.calls < nth);
    }
    blob_free(&files[i]);
  }
}

const struct test suite_tokenizer[] = {
    TEST(vectors_llama2_model),
    TEST(vectors_llama2_bin),
    TEST(vectors_llama3),
    TEST(vectors_smollm2),
    TEST(llama2_ids_equal_sentencepiece),
    TEST(flags_add_tokens_and_drop_the_prefix),
    TEST(texts_come_back),
    TEST(streams_never_cut_characters),
    TEST(streams_hold_back_and_let_go),
    TEST(long_runs_do_not_hang),
    TEST(every_allocation_may_fail),
    {0},
};
