/* What a session is made of; for src/llm only. */
#ifndef LLM_SESSION_H
#define LLM_SESSION_H

#include "base/alone.h"
#include "base/arena.h"
#include "base/span.h"
#include "base/status.h"
#include "llm/lookup.h"
#include "sconce_llm.h"

#include <stdatomic.h>

struct sconce_session {
  struct arena arena;
  sconce_model *model; /* as long as the method is open */
  sconce_method *method;
  sconce_state *state;
  sconce_tokenizer *tokenizer;
  sconce_sampler *sampler;
  sconce_session_info info;
  bool has_position;   /* the method takes the position as its second input */
  bool many_positions; /* …one per id */
  int32_t *ids;        /* (room) */
  uint32_t room;       /* grows with the timeline: a program may claim any context */
  int32_t *positions;  /* (chunk) of the ids of one call */
  float *logits;       /* (n_vocab) behind the first logits_at ids */
  uint32_t logits_at;  /* 0: none */
  uint32_t computed;   /* ids of the timeline that the caches hold */
  uint8_t *starts;     /* (room) not 0: a call began with this id; above 1: it had so many ids, of
                          which those up to the next start are the timeline's */
  uint32_t replay;     /* ids that a lost device held: computed again by calls cut as they were */
  uint32_t losses;     /* of the state, as far as is known here */
  uint32_t recoveries; /* since a call last came to its end */
  bool recovers;       /* opens a lost device again by itself */
  bool may_work_ahead; /* the device can choose as the sampler does */
  sconce_draw draw;    /* how it chooses */
  bool host_chooses;
  uint32_t n_running; /* ids of the call under way that computes what the caches lack; 0: none */
  uint32_t n_padded;  /* …and ids behind them that mean nothing */
  uint32_t n_ahead;   /* calls that are running, each of which chooses an id */
  uint32_t begun;     /* ids whose calls have been begun; those past the timeline are its guess */
  uint32_t ready;     /* ids behind the timeline that are chosen and not yet given to anybody */
  float logprobs[LOOKUP_ROWS]; /* …and theirs, if the host chose them */
  uint32_t guessed; /* ids of the call under way that lookup guessed; it is then the only one */
  struct lookup lookup;
  uint64_t began_ns; /* clock: the last call that is waited for alone was begun */
  uint64_t chain_ns; /* …an id of the work ahead came; 0: none */
  int32_t ends[16];  /* ids that the program names as ends */
  uint32_t n_ends;
  atomic_bool cancelled;
  struct generation *generation; /* under way, or NULL */
  bool calls_back;               /* one of the caller's functions is running */
  struct alone alone;
};

/* Where a function takes `block` it waits for the device, or returns with *done false and goes on
 * when it is called again. */

/* The oldest call under way: waits for it, or asks. */
SCONCE_CHECK sconce_status session_finish_call(sconce_session *s, bool block, bool *done,
                                               sconce_error *err);
/* The method's inputs: n ids of the timeline from `first` on; n 0: the one that the device chose.
 */
SCONCE_CHECK sconce_status session_set_inputs(sconce_session *s, uint32_t first, uint32_t n,
                                              sconce_error *err);
/* A call of n ids from there on; guessed: how many ids it has with those that may not stay, or 0.
 */
void session_note_call(sconce_session *s, uint32_t from, uint32_t n, uint32_t guessed);
/* Row i of the last call's logits, counted from the end, into s->logits. */
SCONCE_CHECK sconce_status session_read_logits(sconce_session *s, uint32_t i, sconce_error *err);
static inline bool session_is_ahead(const sconce_session *s) { return s->n_ahead || s->ready; }
/* Ends the work ahead: what was begun still runs, and rows past the timeline are overwritten before
 * they are attended. */
void session_halt(sconce_session *s);
/* The same where the timeline goes on from here: the last id's logits were left on the device, so
 * it is computed again. */
void session_halt_here(sconce_session *s);

/* How many of the first ids a prompt need not compute again; the last one's logits count. */
size_t session_reused(const sconce_session *s, const int32_t *ids, size_t n);
bool session_is_end(const sconce_session *s, int32_t id);
/* sconce_session_next, where nobody will ask for ids from position `until` on. */
SCONCE_CHECK sconce_status session_next(sconce_session *s, uint32_t until, bool block, bool *done,
                                        sconce_choice *out, sconce_error *err);
/* One call's worth of what the caches lack; *done: they lack nothing. */
SCONCE_CHECK sconce_status session_compute(sconce_session *s, bool block, bool *done,
                                           sconce_error *err);
/* Ends the work ahead and computes what the caches lack. */
SCONCE_CHECK sconce_status session_sync(sconce_session *s, bool block, bool *done,
                                        sconce_error *err);
/* Makes the timeline equal to these ids; what is new is yet to be computed. */
SCONCE_CHECK sconce_status session_prompt(sconce_session *s, const int32_t *ids, size_t n,
                                          sconce_error *err);
/* From the logits, which are here. */
SCONCE_CHECK sconce_status session_choose(sconce_session *s, sconce_choice *out, sconce_error *err);
void session_rewind(sconce_session *s, uint32_t position); /* which is not past the timeline */
/* Fails while a generation is under way. */
SCONCE_CHECK sconce_status session_idle(const sconce_session *s, sconce_error *err);
void generation_free(sconce_session *s);

/* After a call that ended with this status: true where the device was lost and is there again, so
 * that the call may be made once more. */
bool session_recovered(sconce_session *s, sconce_status status, sconce_error *err);
/* Notes what was lost while somebody else opened the device again. */
void session_look(sconce_session *s);

/* Room for so many ids. */
SCONCE_CHECK sconce_status session_reserve(sconce_session *s, uint32_t n, sconce_error *err);
/* SCONCE_CANCELLED, once, if somebody asked for it. */
SCONCE_CHECK sconce_status session_check_cancel(sconce_session *s, sconce_error *err);

/* What a saved session must have been made with. */
struct session_kind {
  uint32_t n_vocab, context;
  uint64_t state_size; /* bytes */
  uint64_t model;      /* its fingerprint */
};
/* What is in a file that fits; borrowed from its bytes. */
struct session_saved {
  uint32_t n_ids;
  const uint8_t *ids, *state; /* ids: n_ids times i32, little-endian */
};
/* session_file.c: reads untrusted bytes and says where they are wrong. */
SCONCE_CHECK sconce_status session_parse(const struct session_kind *kind, struct span file,
                                         struct session_saved *out, sconce_error *err);

#endif
