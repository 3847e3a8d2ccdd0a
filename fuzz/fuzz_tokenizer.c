/* Any bytes as a tokenizer file; if they open, encode and decode a little with them. The input may
 * carry a configuration behind a line of its own. */
#include "sconce_llm.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(sconce_tokenizer *t) {
  static const char text[] =
      "A hello  the\n\n w\xc3\xa9rld's \xff e\xcc\x81 1234 <|im_end|></s> [x y]";
  const int32_t *ids;
  const char *back;
  size_t n;
  for (uint32_t flags = 0; flags < 8; flags++) {
    if (sconce_tokenizer_encode(t, text, sizeof text - 1, flags, &ids, &n, NULL) != SCONCE_OK)
      __builtin_trap();
    if (sconce_tokenizer_decode(t, ids, n, flags & 3, &back, &n, NULL) != SCONCE_OK)
      __builtin_trap();
  }
  sconce_message m[2] = {{"user", "hello", 0}, {"assistant", " the ", 0}};
  sconce_chat_desc desc = {.messages = m, .n_messages = 2};
  (void)!sconce_chat_encode(t, &desc, &ids, &n, NULL);
  sconce_stream stream = {.tokenizer = t};
  uint32_t n_vocab = sconce_tokenizer_describe(t)->n_vocab;
  for (uint32_t id = 0; id < n_vocab && id < 400; id++)
    sconce_stream_push(&stream, (int32_t)id, &n);
  sconce_stream_end(&stream, &n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char mark[] = "\n#config\n";
  sconce_tokenizer_desc desc = {.data = data, .size = size};
  for (size_t i = 0; i + sizeof mark - 1 <= size; i++) {
    if (data[i] != '\n' || memcmp(data + i, mark, sizeof mark - 1) != 0) continue;
    desc.size = i;
    desc.config = data + i + sizeof mark - 1;
    desc.config_size = size - i - (sizeof mark - 1);
    break;
  }
  sconce_tokenizer *t;
  sconce_error err;
  if (sconce_tokenizer_open(&t, &desc, &err) == SCONCE_OK)
    use(t);
  else if (t || !err.text[0])
    __builtin_trap();
  sconce_tokenizer_close(t);
  return 0;
}
