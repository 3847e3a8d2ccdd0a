/* What a session is made of; for src/llm only. */
#ifndef LLM_SESSION_H
#define LLM_SESSION_H

#include "base/arena.h"
#include "base/status.h"
#include "sconce_llm.h"

struct sconce_session {
  struct arena arena;
  sconce_method *method;
  sconce_tokenizer *tokenizer;
  sconce_sampler *sampler;
  sconce_session_info info;
  bool has_position;   /* the method takes the position as its second input */
  bool many_positions; /* …one per id */
  int32_t *ids;        /* (context) */
  int64_t *feed;       /* (2 chunk) ids and positions of one call */
  float *logits;       /* (n_vocab) behind the last id */
  bool has_logits;
  int32_t ends[16]; /* ids that the program names as ends */
  uint32_t n_ends;
};

/* How many of the first ids a prompt need not compute again; the last one's logits count. */
size_t session_reused(const sconce_session *s, const int32_t *ids, size_t n);
bool session_is_end(const sconce_session *s, int32_t id);

#endif
