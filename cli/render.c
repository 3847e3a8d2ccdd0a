/* sconce chat --render: what would be sent to the model, without a model. */
#include "render.h"

#include "llm.h"

#include <stdlib.h>
#include <string.h>

/* A text file; NULL after a complaint. The caller frees. */
static char *read_text(const char *path) {
  size_t size;
  char *data = cli_read_file(path, CLI_TEXT_MAX, &size);
  if (!data || !memchr(data, 0, size)) return data;
  fprintf(stderr, "sconce: %s is no text\n", path);
  free(data);
  return NULL;
}

int render_options_read(const struct render_options *o, sconce_chat_desc *desc) {
  if (o->think && o->no_think) {
    fputs("sconce: --think and --no-think at once\n", stderr);
    return CLI_USAGE;
  }
  if (o->template_path && desc->family) {
    fputs("sconce: --template and --chat at once\n", stderr);
    return CLI_USAGE;
  }
  if (o->think) desc->think = SCONCE_THINK_ON;
  if (o->no_think) desc->think = SCONCE_THINK_OFF;
  if (o->template_path && !(desc->chat_template = read_text(o->template_path))) return CLI_FAILED;
  if (o->tools_path && !(desc->tools = read_text(o->tools_path))) return CLI_FAILED;
  return CLI_DONE;
}

void render_options_free(sconce_chat_desc *desc) {
  free((void *)(uintptr_t)desc->chat_template);
  free((void *)(uintptr_t)desc->tools);
  desc->chat_template = desc->tools = NULL;
}

/* "2026-11-16 09:30:00", "T" instead of the blank, or without the time -> seconds since 1970. */
static bool read_date(const char *text, int64_t *out) {
  int y, mo, d, h = 0, mi = 0, s = 0, used = 0;
  if (sscanf(text, "%4d-%2d-%2d%n", &y, &mo, &d, &used) != 3) return false;
  if (text[used] && sscanf(text + used, "%*1[T ]%2d:%2d:%2d", &h, &mi, &s) != 3) return false;
  if (y < 1970 || mo < 1 || mo > 12 || d < 1 || d > 31 || h > 23 || mi > 59 || s > 60) return false;
  int64_t years = mo <= 2 ? y - 1 : y, month = (mo + 9) % 12; /* years that start in March */
  int64_t days =
      365 * years + years / 4 - years / 100 + years / 400 + (153 * month + 2) / 5 + d - 1;
  *out = (days - 719468) * 86400 + h * 3600 + mi * 60 + s;
  return true;
}

/* Without a tokenizer the names of tokens are these; there is nothing to encode with. */
static sconce_status open_names(sconce_tokenizer **out, sconce_error *err) {
  static const char file[] = "{\"pre_tokenizer\": {\"type\": \"ByteLevel\"}, "
                             "\"model\": {\"type\": \"BPE\", \"vocab\": {}, \"merges\": []}, "
                             "\"added_tokens\": ["
                             "{\"id\": 0, \"content\": \"<s>\", \"special\": true}, "
                             "{\"id\": 1, \"content\": \"</s>\", \"special\": true}]}";
  static const char config[] = "{\"bos_token\": \"<s>\", \"eos_token\": \"</s>\", "
                               "\"pad_token\": \"<pad>\", \"unk_token\": \"<unk>\"}";
  sconce_tokenizer_desc desc = {
      .data = file, .size = sizeof file - 1, .config = config, .config_size = sizeof config - 1};
  return sconce_tokenizer_open(out, &desc, err);
}

static int print(sconce_tokenizer *tokenizer, const sconce_chat_desc *desc) {
  const char *text;
  size_t size;
  sconce_error err = {0};
  if (sconce_chat_text(tokenizer, desc, &text, &size, &err) != SCONCE_OK) return cli_fail(&err);
  return fwrite(text, 1, size, stdout) == size && !fflush(stdout) ? CLI_DONE : CLI_FAILED;
}

static int render(const struct render_options *o, const char *tokenizer_path,
                  sconce_chat_desc *desc) {
  sconce_error err = {0};
  sconce_tokenizer *tokenizer;
  sconce_tokenizer_desc from = {.path = tokenizer_path};
  if (!tokenizer_path && !desc->chat_template && !desc->family) {
    fputs("sconce: --render needs a template: --template, --chat, or a tokenizer with -t\n",
          stderr);
    return CLI_USAGE;
  }
  sconce_status status = tokenizer_path ? sconce_tokenizer_open(&tokenizer, &from, &err)
                                        : open_names(&tokenizer, &err);
  if (status != SCONCE_OK) return cli_fail(&err);
  char *conversation = read_text(o->conversation_path);
  desc->conversation = conversation;
  render_warn(tokenizer, desc);
  int result = conversation ? print(tokenizer, desc) : CLI_FAILED;
  free(conversation);
  sconce_tokenizer_close(tokenizer);
  return result;
}

int render_conversation(const struct render_options *o, const struct llm_options *llm,
                        const char *family) {
  sconce_chat_desc desc = {.family = family};
  int result = CLI_USAGE;
  char beside[1200];
  const char *tokenizer = llm->tokenizer;
  if (!tokenizer && llm->model && llm_find_tokenizer(llm->model, beside, sizeof beside))
    tokenizer = beside;
  if (o->date && !read_date(o->date, &desc.date))
    fprintf(stderr, "sconce: --date is '%s', expected YYYY-MM-DD hh:mm:ss\n", o->date);
  else if ((result = render_options_read(o, &desc)) == CLI_DONE)
    result = render(o, tokenizer, &desc);
  render_options_free(&desc);
  return result;
}

void render_warn(const sconce_tokenizer *tokenizer, const sconce_chat_desc *desc) {
  const char *why = sconce_tokenizer_describe(tokenizer)->chat_template_error;
  if (!why || desc->family || desc->chat_template) return;
  fprintf(stderr, "sconce: the model's chat template cannot be used (%s); instead: --chat %s\n",
          why, sconce_chat_family(tokenizer));
}
