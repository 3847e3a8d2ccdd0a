/* sconce: text on standard input to ids on standard output, or back. */
#include "cli.h"
#include "sconce_llm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct options {
  const char *path;
  bool bos, special, decode;
};

static int failed(const char *text) {
  fprintf(stderr, "sconce: %s\n", text);
  return 1;
}

static int encode(sconce_tokenizer *tokenizer, const struct options *o, const char *input,
                  size_t size) {
  uint32_t flags = (o->bos ? SCONCE_ENCODE_BOS : 0u) | (o->special ? SCONCE_ENCODE_SPECIAL : 0u);
  const int32_t *ids;
  size_t n;
  sconce_error err;
  if (sconce_tokenizer_encode(tokenizer, input, size, flags, &ids, &n, &err) != SCONCE_OK)
    return failed(err.text);
  for (size_t i = 0; i < n; i++) printf(i ? " %d" : "%d", (int)ids[i]);
  putchar('\n');
  return 0;
}

/* Writes text as it comes: any number of ids in constant memory. */
static int decode(sconce_tokenizer *tokenizer, const struct options *o, const char *input,
                  size_t input_size) {
  sconce_stream stream = {.tokenizer = tokenizer, .flags = o->special ? SCONCE_DECODE_SPECIAL : 0u};
  uint32_t n_vocab = sconce_tokenizer_describe(tokenizer)->n_vocab;
  const char *p = input, *end = input + input_size, *text;
  size_t size;
  for (;;) {
    while (p < end && strchr(" \t\r\n", *p) && *p) p++;
    if (p == end) break;
    char *after;
    errno = 0;
    long id = strtol(p, &after, 10);
    if (after == p || errno || id < 0 || id >= (long)n_vocab) {
      fprintf(stderr, "sconce: '%.*s' is no id below %u\n", (int)strcspn(p, " \t\r\n"), p, n_vocab);
      return 1;
    }
    text = sconce_stream_push(&stream, (int32_t)id, &size);
    fwrite(text, 1, size, stdout);
    p = after;
  }
  text = sconce_stream_end(&stream, &size);
  fwrite(text, 1, size, stdout);
  return 0;
}

static int convert(const struct options *o) {
  sconce_tokenizer *tokenizer;
  sconce_error err;
  sconce_tokenizer_desc desc = {.path = o->path};
  if (sconce_tokenizer_open(&tokenizer, &desc, &err) != SCONCE_OK) return failed(err.text);
  size_t size;
  char *input = cli_read_file("-", CLI_TEXT_MAX, &size);
  int status = !input      ? CLI_FAILED
               : o->decode ? decode(tokenizer, o, input, size)
                           : encode(tokenizer, o, input, size);
  free(input);
  sconce_tokenizer_close(tokenizer);
  return status;
}

int cli_tokenize(int argc, char **argv) {
  struct options o = {0};
  const struct cli_option options[] = {
      {"-t, --tokenizer", "FILE",
       "SentencePiece .model, llama2.c .bin, Hugging Face tokenizer.json or tiktoken .model; its "
       "content shows which",
       .value = &o.path},
      {"--bos", NULL, "put the begin token in front", .flag = &o.bos},
      {"--special", NULL, "names of special tokens in the text are those tokens",
       .flag = &o.special},
      {"--decode", NULL,
       "the other way: ids on standard input, text on standard output (with --special special "
       "tokens are written out)",
       .flag = &o.decode},
      {0}};
  const struct cli_verb verb = {
      "tokenize", "-t FILE [--bos] [--special] [--decode] < input",
      "Prints the token ids of the bytes on standard input, separated by spaces.", options};
  int result;
  if (!cli_parse(argc, argv, &verb, &result)) return result;
  return o.path ? convert(&o) : cli_usage(&verb, "no tokenizer: give one with -t");
}
