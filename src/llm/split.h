/* Pre-tokenizers: where text may be cut before merging. The files name them by regular expression;
 * the known ones are written by hand here, each in one pass over the text. */
#ifndef LLM_SPLIT_H
#define LLM_SPLIT_H

#include "base/span.h"

enum split_kind {
  SPLIT_GPT2,
  SPLIT_LLAMA3,
  SPLIT_QWEN,
  SPLIT_DIGITS,     /* every digit by itself */
  SPLIT_DIGIT_RUNS, /* digits apart from the rest */
};

enum { SPLIT_STAGES_MAX = 8 };

/* Each stage cuts the pieces of the stage before; no stage leaves text whole. */
struct split {
  enum split_kind stages[SPLIT_STAGES_MAX];
  uint32_t n_stages;
};

bool split_find(struct text regex, enum split_kind *out); /* false: not one of the known ones */

struct split_walk {
  const struct split *split;
  struct text text; /* valid UTF-8 */
  size_t at, ends[SPLIT_STAGES_MAX + 1];
};
void split_begin(struct split_walk *w, const struct split *split, struct text text);
bool split_next(struct split_walk *w, struct text *piece); /* pieces are never empty */

#endif
