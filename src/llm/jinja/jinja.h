/* Chat templates: the part of Jinja that they are written in, as Hugging Face's environment reads
 * it (trim_blocks, lstrip_blocks, immutable sandbox). A template becomes a list of operations,
 * which a loop without recursion runs within limits. What comes out knows of every byte whether the
 * template wrote it or the caller did. */
#ifndef LLM_JINJA_H
#define LLM_JINJA_H

#include "base/arena.h"
#include "base/json.h"
#include "base/span.h"
#include "base/status.h"

struct jinja_program;

/* The source is copied. What it needs lives in the arena, also after a failure. An error names the
 * line. */
SCONCE_CHECK sconce_status jinja_parse(struct jinja_program **out, struct text source,
                                       struct arena *arena, sconce_error *err);

/* A variable of the caller: JSON that json_check has accepted, or text, or a truth. */
struct jinja_variable {
  const char *name;
  enum { JINJA_JSON, JINJA_TEXT, JINJA_TRUTH, JINJA_MESSAGES, JINJA_NULL } kind;
  struct json json;
  struct text text; /* valid UTF-8 */
  bool truth;
  bool trusted; /* may become special tokens, as what the template itself writes */
  const struct jinja_message *messages;
  size_t n_messages;
};

struct jinja_message {
  struct text role, content; /* valid UTF-8 */
};

struct jinja_input {
  const struct jinja_variable *variables; /* of equal names the last counts */
  size_t n_variables;
  int64_t date;   /* of strftime_now: seconds since 1970 by the local clock */
  uint64_t steps; /* limits; 0: the usual ones */
  size_t output;  /* bytes of text */
  size_t memory;  /* bytes from the arena */
};

struct jinja_output {
  struct text text;
  const uint8_t *own; /* (text.size): 1 where the template wrote the byte */
};

/* The output lives in the arena, as does everything that was needed on the way. */
SCONCE_CHECK sconce_status jinja_render(const struct jinja_program *program,
                                        const struct jinja_input *input, struct arena *arena,
                                        struct jinja_output *out, sconce_error *err);

#endif
