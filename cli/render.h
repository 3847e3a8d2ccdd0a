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
  {"--template", "FILE", "a chat template, Jinja (default: the tokenizer's own, then --chat)",     \
   .value = &(o).template_path},                                                                   \
      {"--tools", "FILE", "what the model may call, a JSON list", .value = &(o).tools_path},       \
      {"--think", NULL, "the model is to think first, where its template can say so",              \
       .flag = &(o).think},                                                                        \
      {"--no-think", NULL, "it is not to", .flag = &(o).no_think},                                 \
      {"--render", "FILE",                                                                         \
       "print the conversation in this JSON file as the model would get it, and leave; needs no "  \
       "model",                                                                                    \
       .value = &(o).conversation_path},                                                           \
  {                                                                                                \
    "--date", "DATE", "with --render: what is now, \"2026-11-16 09:30:00\"", .value = &(o).date    \
  }

/* Fills in template, tools and thinking; else CLI_USAGE or CLI_FAILED, after a complaint. Free in
 * any case. */
int render_options_read(const struct render_options *o, sconce_chat_desc *desc);
void render_options_free(sconce_chat_desc *desc);

/* The verb's whole job where --render is given. */
int render_conversation(const struct render_options *o, const struct llm_options *llm,
                        const char *family);
/* Says so if the tokenizer's own template would be taken, but cannot be read. */
void render_warn(const sconce_tokenizer *tokenizer, const sconce_chat_desc *desc);

#endif
