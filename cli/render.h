/* How a conversation is written down, as `sconce chat` is told by its options. */
#ifndef CLI_RENDER_H
#define CLI_RENDER_H

#include "llm.h"

/* Words of the command line, as given. */
struct render_options {
  const char *conversation_path, *template_path, *tools_path, *date;
  bool think, no_think;
};
#define RENDER_OPTIONS(o)                                                                          \
  {"--render", &(o).conversation_path, NULL}, {"--template", &(o).template_path, NULL},            \
      {"--tools", &(o).tools_path, NULL}, {"--date", &(o).date, NULL},                             \
      {"--think", NULL, &(o).think}, {                                                             \
    "--no-think", NULL, &(o).no_think                                                              \
  }
#define RENDER_OPTIONS_HELP                                                                        \
  "  --template FILE     a chat template, Jinja (default: the tokenizer's own, then --chat)\n"     \
  "  --tools FILE        what the model may call, a JSON list\n"                                   \
  "  --think, --no-think whether the model is to think first, where its template can say so\n"     \
  "  --render FILE       print the conversation in this JSON file as the model would get it,\n"    \
  "                      and leave; needs no model. --date \"2026-11-16 09:30:00\" is then now\n"

/* Fills in template, tools and thinking; false after a complaint. Free in any case. */
bool render_options_read(const struct render_options *o, sconce_chat_desc *desc);
void render_options_free(sconce_chat_desc *desc);

/* The verb's whole job where --render is given. */
int render_conversation(const struct render_options *o, const struct llm_options *llm,
                        const char *family);
/* Says so if the tokenizer's own template would be taken, but cannot be read. */
void render_warn(const sconce_tokenizer *tokenizer, const sconce_chat_desc *desc);

#endif
