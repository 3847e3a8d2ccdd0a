/* The parts of a Hugging Face tokenizer.json. */
#ifndef LLM_HF_H
#define LLM_HF_H

#include "base/json.h"
#include "llm/tokenizer.h"

/* hf_steps.c: normalizer and pre_tokenizer -> t->bytes. */
SCONCE_CHECK sconce_status hf_read_steps(sconce_tokenizer *t, struct json root, sconce_error *err);

/* hf_special.c: added_tokens -> t->added, then which of them are bos and eos. */
SCONCE_CHECK sconce_status hf_read_added(sconce_tokenizer *t, struct json root, sconce_error *err);
void hf_read_names(sconce_tokenizer *t, struct json root, struct json config);

#endif
