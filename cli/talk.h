/* A conversation: its messages, and the session's timeline that belongs to them. */
#ifndef CLI_TALK_H
#define CLI_TALK_H

#include "llm.h"

struct talk {
  struct llm *llm;
  sconce_chat_desc how; /* family, template, tools: all but the messages */
  const char *system;
  uint32_t max_new; /* of an answer; 0: as many as fit */
  bool shift;       /* a full context loses its oldest turns */
  void (*show)(void *user, const char *text, size_t size);
  void *user;

  sconce_message *messages; /* contents are owned */
  size_t n_messages, cap;
  char *answer; /* being written */
  size_t n_answer, cap_answer;
  /* of the last answer */
  struct llm_cost cost;
  sconce_generate_result last;
  size_t n_forgotten; /* messages that made room for it */
  size_t n_alone;     /* tokens of a question that no room can be made for; else 0 */
};

bool talk_add(struct talk *t, const char *role, const char *text, size_t size);
/* Keeps the first `keep` messages. */
void talk_cut(struct talk *t, size_t keep);
/* Nothing but the system message. */
bool talk_start_over(struct talk *t);
void talk_free(struct talk *t);

/* Can a first message be written down at all, with this template and these tools? */
sconce_status talk_try(struct talk *t, sconce_error *err);
/* Answers the last message and adds the answer. Where the context is full, the status is OK,
 * last.stop says so, and there may be no answer at all; a conversation that does not even begin to
 * fit is n_new 0. After any failure the messages are as they were. */
sconce_status talk_answer(struct talk *t, sconce_error *err);
/* Computes what every conversation here begins with, and keeps it in the file of --cache. */
sconce_status talk_warm_up(struct talk *t, sconce_error *err);

/* The session in one file, the messages as text in another beside it; both are taken or none.
 * False after a complaint. `may_overwrite` tells first whether the files there are of this kind. */
bool talk_save(const struct talk *t, const char *path);
bool talk_load(struct talk *t, const char *path);
bool talk_may_overwrite(const char *path);

#endif
