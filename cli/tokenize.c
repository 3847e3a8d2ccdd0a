/* sconce tokenize: text on standard input to ids on standard output, or back. */
#include "cli.h"
#include "sconce_llm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: sconce tokenize -t FILE [--bos] [--special] [--decode] < input\n"
    "\n"
    "Prints the token ids of the bytes on standard input, separated by spaces.\n"
    "\n"
    "  -t FILE     tokenizer: SentencePiece .model, llama2.c .bin, Hugging Face\n"
    "              tokenizer.json or tiktoken .model; its content shows which\n"
    "  --bos       put the begin token in front\n"
    "  --special   names of special tokens in the text are those tokens\n"
    "  --decode    the other way: ids on standard input, text on standard output\n"
    "              (with --special special tokens are written out)\n";

struct options {
  const char *path;
  bool bos, special, decode, help;
};

static bool parse(int argc, char **argv, struct options *o) {
  for (int i = 0; i < argc; i++) {
    if ((!strcmp(argv[i], "-t") || !strcmp(argv[i], "--tokenizer")) && i + 1 < argc)
      o->path = argv[++i];
    else if (!strcmp(argv[i], "--bos"))
      o->bos = true;
    else if (!strcmp(argv[i], "--special"))
      o->special = true;
    else if (!strcmp(argv[i], "--decode"))
      o->decode = true;
    else if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
      o->help = true;
    else {
      fprintf(stderr, "sconce tokenize: '%s' is not an option or needs a value\n", argv[i]);
      return false;
    }
  }
  if (!o->path && !o->help) fprintf(stderr, "sconce tokenize: -t FILE is missing\n");
  return o->path || o->help;
}

/* All of standard input with a NUL behind it; the caller frees. */
static char *read_input(size_t *size) {
  size_t cap = 1 << 16, n = 0;
  char *data = malloc(cap);
  while (data) {
    n += fread(data + n, 1, cap - n - 1, stdin);
    if (n < cap - 1) break;
    char *grown = realloc(data, cap *= 2);
    if (!grown) free(data);
    data = grown;
  }
  if (data && ferror(stdin)) {
    free(data);
    data = NULL;
  }
  if (data) data[n] = 0;
  *size = n;
  return data;
}

static int failed(const char *text) {
  fprintf(stderr, "sconce tokenize: %s\n", text);
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
      fprintf(stderr, "sconce tokenize: '%.*s' is no id below %u\n", (int)strcspn(p, " \t\r\n"), p,
              n_vocab);
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

int cli_tokenize(int argc, char **argv) {
  struct options o = {0};
  if (!parse(argc, argv, &o)) {
    fputs(usage, stderr);
    return 2;
  }
  if (o.help) {
    fputs(usage, stdout);
    return 0;
  }
  sconce_tokenizer *tokenizer;
  sconce_error err;
  sconce_tokenizer_desc desc = {.path = o.path};
  if (sconce_tokenizer_open(&tokenizer, &desc, &err) != SCONCE_OK) return failed(err.text);
  size_t size;
  char *input = read_input(&size);
  int status = !input     ? failed("cannot read standard input")
               : o.decode ? decode(tokenizer, &o, input, size)
                          : encode(tokenizer, &o, input, size);
  if (fflush(stdout) != 0 || ferror(stdout)) status = failed("cannot write standard output");
  free(input);
  sconce_tokenizer_close(tokenizer);
  return status;
}
