/* A language model tells a story, token by token.
 *   ./story model.pte tokenizer.bin "Once upon a time" */
#include <sconce_llm.h>

#include <stdio.h>
#include <string.h>

static int failed(const sconce_error *err) {
  fprintf(stderr, "%s: %s\n", sconce_status_name(err->status), err->text);
  return 1;
}

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  sconce_device *device;
  sconce_model *model;
  sconce_tokenizer *tokenizer;
  sconce_session *session;
  sconce_error err;
  const sconce_model_desc file = {.program.path = argv[1]};
  const sconce_tokenizer_desc vocabulary = {.path = argv[2]};
  if (sconce_device_open(&device, NULL, &err) || sconce_model_open(&model, device, &file, &err) ||
      sconce_tokenizer_open(&tokenizer, &vocabulary, &err))
    return failed(&err);
  const sconce_session_desc desc = {.model = model, .tokenizer = tokenizer};
  if (sconce_session_open(&session, &desc, &err)) return failed(&err);

  const int32_t *ids;
  size_t n, size;
  if (sconce_tokenizer_encode(tokenizer, argv[3], strlen(argv[3]), SCONCE_ENCODE_BOS, &ids, &n,
                              &err) ||
      sconce_session_prompt(session, ids, n, NULL, NULL, &err))
    return failed(&err);
  fputs(argv[3], stdout);
  sconce_stream text = {.tokenizer = tokenizer, .flags = SCONCE_DECODE_CONTINUES};
  for (int i = 0; i < 40; i++) {
    sconce_choice next;
    if (sconce_session_next(session, &next, &err)) return failed(&err);
    if (sconce_tokenizer_is_end(tokenizer, next.id)) break;
    fputs(sconce_stream_push(&text, next.id, &size), stdout);
    fflush(stdout);
  }
  puts(sconce_stream_end(&text, &size));
  sconce_session_close(session);
  sconce_tokenizer_close(tokenizer);
  sconce_model_close(model);
  sconce_device_close(device);
  return 0;
}
