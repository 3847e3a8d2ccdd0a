/* Sconce for language models: text to token ids and back, the choice of the next token, chat.
 *
 * The world in one paragraph. A *tokenizer* is opened from the file that a model came with; which
 * of the four formats it is shows in its content. It turns text into ids and ids into text. What it
 * returns by pointer (ids, text, names) it owns; the comment says until when. A *sampler* picks the
 * next id from a row of logits and remembers nothing: the same seed, position and input give the
 * same choice. *Chat* renders messages the way a model was trained, by its own template.
 *
 * Text is UTF-8 with an explicit size and may contain NUL. Bytes that are no valid UTF-8 are read
 * as U+FFFD, one per invalid sequence, as the tokenizers' originals do. Ids are int32_t; -1 is no
 * token. Errors, threads and descriptors: as in sconce.h. */
#ifndef SCONCE_LLM_H
#define SCONCE_LLM_H

#include "sconce.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- tokenizer ------------------------------------------------------------------------------- */

typedef struct sconce_tokenizer sconce_tokenizer;

typedef struct sconce_tokenizer_desc {
  const char *path; /* a file: SentencePiece .model, llama2.c .bin, Hugging Face tokenizer.json,
                       tiktoken .model of Llama 3; tokenizer_config.json and chat_template.jinja
                       beside it are read too */
  const void *data; /* or its bytes, borrowed during the call */
  size_t size;
  const void *config; /* with data: the bytes of a tokenizer_config.json, or NULL */
  size_t config_size;
  sconce_allocator allocator; /* default: the C library's */
} sconce_tokenizer_desc;

typedef struct sconce_tokenizer_info {
  const char *kind; /* "sentencepiece bpe", "sentencepiece unigram", "llama2.c", "tiktoken",
                       "hugging face bpe" */
  uint32_t n_vocab; /* ids are below this; a model's logits may have more */
  int32_t bos, eos; /* -1: none */
  bool add_bos;     /* the model expects bos in front of a text */
  const char *chat_template;       /* the model's own, Jinja text, or NULL */
  const char *chat_template_error; /* why chat cannot use it, or NULL */
} sconce_tokenizer_info;

/* On failure *out is NULL and nothing is kept. */
SCONCE_API SCONCE_CHECK sconce_status sconce_tokenizer_open(sconce_tokenizer **out,
                                                            const sconce_tokenizer_desc *desc,
                                                            sconce_error *err);
SCONCE_API void sconce_tokenizer_close(sconce_tokenizer *tokenizer); /* NULL is fine */

/* Valid until close. */
SCONCE_API const sconce_tokenizer_info *
sconce_tokenizer_describe(const sconce_tokenizer *tokenizer);

enum {
  SCONCE_ENCODE_BOS = 1,       /* bos first, if the vocabulary has one */
  SCONCE_ENCODE_SPECIAL = 2,   /* "<|im_end|>" and the like in the text are their ids, not text:
                                  never for text from someone else */
  SCONCE_ENCODE_CONTINUES = 4, /* the text follows other text: no space is put in front */
};

/* The ids of a text, valid until the next call with this tokenizer. Time grows with the size times
 * its logarithm at worst; texts of 1 GiB and more are refused. */
SCONCE_API SCONCE_CHECK sconce_status sconce_tokenizer_encode(sconce_tokenizer *tokenizer,
                                                              const char *text, size_t size,
                                                              uint32_t flags, const int32_t **ids,
                                                              size_t *n_ids, sconce_error *err);

/* What one id stands for, exactly: bytes that need not be whole characters; the name of a special
 * token; empty if there is no such id. Valid until close. */
SCONCE_API const char *sconce_tokenizer_piece(const sconce_tokenizer *tokenizer, int32_t id,
                                              size_t *size);
/* The id of a special token by its text ("<|im_end|>", "<s>"), or -1. */
SCONCE_API int32_t sconce_tokenizer_special(const sconce_tokenizer *tokenizer, const char *text);
SCONCE_API bool sconce_tokenizer_is_special(const sconce_tokenizer *tokenizer, int32_t id);
/* Does a model say with this id that its text or its turn is over? (eos, <|eot_id|>, …) */
SCONCE_API bool sconce_tokenizer_is_end(const sconce_tokenizer *tokenizer, int32_t id);

enum {
  SCONCE_DECODE_SPECIAL = 1,   /* special tokens give their text; else nothing */
  SCONCE_DECODE_CONTINUES = 2, /* other text is in front: a leading space stays */
};

/* The text of ids, always valid UTF-8 (what is none becomes U+FFFD) with a NUL behind it; valid
 * until the next call with this tokenizer. An id outside the vocabulary is an error. */
SCONCE_API SCONCE_CHECK sconce_status sconce_tokenizer_decode(sconce_tokenizer *tokenizer,
                                                              const int32_t *ids, size_t n_ids,
                                                              uint32_t flags, const char **text,
                                                              size_t *size, sconce_error *err);

/* The same text as it comes, id by id, never cut inside a character. A plain value, nothing to
 * close: set tokenizer and flags, the rest to zero. */
typedef struct sconce_stream {
  sconce_tokenizer *tokenizer;
  uint32_t flags; /* SCONCE_DECODE_… */
  bool started;
  uint8_t n_held;
  char held[4]; /* the start of a character that is not complete yet */
} sconce_stream;

/* What can be shown after this id, possibly nothing; valid until the next call with the tokenizer,
 * NUL-terminated. Cannot fail: an id outside the vocabulary gives nothing. */
SCONCE_API const char *sconce_stream_push(sconce_stream *stream, int32_t id, size_t *size);
/* At the end: U+FFFD if a character stayed incomplete, else nothing. */
SCONCE_API const char *sconce_stream_end(sconce_stream *stream, size_t *size);

/* ---- chat ------------------------------------------------------------------------------------ */

typedef struct sconce_message {
  const char *role; /* "system", "user", "assistant" */
  const char *content;
  size_t size; /* of content; 0: up to its NUL */
} sconce_message;

typedef enum sconce_think {
  SCONCE_THINK_DEFAULT = 0, /* as the template has it */
  SCONCE_THINK_ON,          /* enable_thinking is true */
  SCONCE_THINK_OFF,
} sconce_think;

/* How a conversation is written: by a family's rules, or by a template, the language of which is
 * the part of Jinja that models' own templates use. Without either it is the tokenizer's own
 * template if it has one that can be used, else a family. */
typedef struct sconce_chat_desc {
  const char *family; /* "chatml", "smollm2", "llama3", "llama2", "plain"; default: what the file's
                         chat template or its vocabulary shows */
  const sconce_message *messages;
  size_t n_messages;
  bool closed;               /* do not open the assistant's turn at the end */
  const char *chat_template; /* Jinja text */
  const char *conversation;  /* JSON, instead of messages: an object with "messages" as templates
                                expect them (also tool calls and results), and more variables of a
                                template: "tools", "enable_thinking", … */
  const char *tools;         /* JSON: a list of what the model may call */
  sconce_think think;
  int64_t date; /* what strftime_now shows, in seconds since 1970 on the local clock; 0: now */
} sconce_chat_desc;

/* The family that a descriptor without one gets where no template can be used; never NULL. */
SCONCE_API const char *sconce_chat_family(const sconce_tokenizer *tokenizer);
/* The name of the i-th known family, NULL past the last. */
SCONCE_API const char *sconce_chat_family_name(size_t i);

/* The rendered conversation as text with special tokens written out, or as ids; both valid until
 * the next call with this tokenizer. As ids, only what a family or a template itself wrote is a
 * special token; what came from messages, tools and other variables never is, whatever the template
 * did to it. (Well-known roles are no one's text: "<|" + role + "|>" may be a token.) Templates run
 * within limits: 25 million steps and 4 for each byte given; 1 MiB of text and 16 for each byte, at
 * most 64 MiB; 128 MiB of memory and 64 for each byte, at most 512 MiB. */
SCONCE_API SCONCE_CHECK sconce_status sconce_chat_text(sconce_tokenizer *tokenizer,
                                                       const sconce_chat_desc *desc,
                                                       const char **text, size_t *size,
                                                       sconce_error *err);
SCONCE_API SCONCE_CHECK sconce_status sconce_chat_encode(sconce_tokenizer *tokenizer,
                                                         const sconce_chat_desc *desc,
                                                         const int32_t **ids, size_t *n_ids,
                                                         sconce_error *err);

/* ---- sampler --------------------------------------------------------------------------------- */

typedef struct sconce_sampler sconce_sampler;

/* In this order: repetition penalty, temperature, top-k, top-p, min-p, draw. */
typedef struct sconce_sampler_desc {
  uint32_t n_vocab;         /* logits in a row; required */
  float temperature;        /* 0: the highest logit wins, nothing is drawn */
  uint32_t top_k;           /* keep the k best; 0: all */
  float top_p;              /* then the fewest that have this share together; 0 and 1: all */
  float min_p;              /* then those with this share of the best one's probability; 0: all */
  float repetition_penalty; /* divides positive and multiplies negative logits; 0 and 1: none */
  uint32_t penalty_window;  /* of the latest ids; default 64 */
  uint64_t seed;
  bool logprobs;              /* fill sconce_choice.logprob, which costs a pass over the logits */
  sconce_allocator allocator; /* default: the C library's */
} sconce_sampler_desc;

typedef struct sconce_choice {
  int32_t id;
  float logprob; /* of the model itself: before penalty, temperature and cuts; 0 if not asked for */
} sconce_choice;

SCONCE_API SCONCE_CHECK sconce_status sconce_sampler_open(sconce_sampler **out,
                                                          const sconce_sampler_desc *desc,
                                                          sconce_error *err);
SCONCE_API void sconce_sampler_close(sconce_sampler *sampler); /* NULL is fine */

/* Chooses from n_vocab logits for the token at `position`, after the ids before it (history, oldest
 * first; only the last penalty_window are read, may be NULL without a penalty). Equal logits: the
 * lowest id. NaN never wins; a row without any number above -inf is an error. Allocates nothing,
 * changes neither the logits nor the sampler: a rewound session draws the same again. */
SCONCE_API SCONCE_CHECK sconce_status sconce_sampler_choose(sconce_sampler *sampler,
                                                            const float *logits, uint64_t position,
                                                            const int32_t *history,
                                                            size_t n_history, sconce_choice *out,
                                                            sconce_error *err);

/* The sampler's random bits: Threefry-2x32 with 20 rounds of (seed, position), 32-bit additions,
 * rotations and exclusive ors only. The draw is (result >> 8) / 2^24. */
SCONCE_API uint32_t sconce_random(uint64_t seed, uint64_t position);

/* ---- session --------------------------------------------------------------------------------- */

/* One mutable timeline of a language model: the ids so far, their keys and values on the device. */
typedef struct sconce_session sconce_session;

/* Where the last ids have come before in the timeline, what followed them then is a guess at what
 * follows now, and one call verifies several ids. They are chosen by the same rule with the same
 * random bits as without; logits of a call with several rows may differ in their last bits. */
typedef enum sconce_lookup {
  SCONCE_LOOKUP_AUTO,   /* as far as it pays: the session measures that */
  SCONCE_LOOKUP_OFF,    /* never: then the clock has no part in which calls are made */
  SCONCE_LOOKUP_ALWAYS, /* wherever there is a guess */
} sconce_lookup;

typedef struct sconce_session_desc {
  sconce_model *model;         /* an exported language model; many sessions can share it */
  const char *method;          /* default "forward" */
  sconce_tokenizer *tokenizer; /* for text and for the ids that end it; may be NULL */
  sconce_sampler_desc sampler; /* n_vocab is filled in */
  bool host_chooses; /* no work ahead: where the device is the CPU, drawing there costs more
                        than the wait for the host */
  bool recovers; /* a lost device is opened again by the session itself (sconce_device_recover), the
                    ids so far are computed again, and the call goes on: with the same ids that it
                    would have had. For programs that use the device from one thread */
  sconce_lookup lookup;
  sconce_allocator allocator; /* default: the C library's */
} sconce_session_desc;

typedef struct sconce_session_info {
  uint32_t n_vocab;           /* logits in a row */
  uint32_t context;           /* positions that fit */
  uint32_t chunk;             /* ids that one call of the model takes at most */
  uint32_t position;          /* ids so far: the next one goes here */
  uint64_t guessed, accepted; /* ids that lookup had verified, and those that were right */
} sconce_session_info;

/* Opens the method, which takes long the first time only, and a state of its own. The tokenizer
 * must outlive the session. */
SCONCE_API SCONCE_CHECK sconce_status sconce_session_open(sconce_session **out,
                                                          const sconce_session_desc *desc,
                                                          sconce_error *err);
SCONCE_API void sconce_session_close(sconce_session *session);
/* Valid until close; `position` moves with the session. */
SCONCE_API const sconce_session_info *sconce_session_describe(const sconce_session *session);
/* Another way to choose from now on; the timeline stays. n_vocab is filled in. */
SCONCE_API SCONCE_CHECK sconce_status sconce_session_set_sampler(sconce_session *session,
                                                                 const sconce_sampler_desc *sampler,
                                                                 sconce_error *err);
/* The state that it runs on, for sconce_state_stats and the like; it belongs to the session. */
SCONCE_API sconce_state *sconce_session_state(sconce_session *session);
/* The ids so far, oldest first; valid until the session changes. */
SCONCE_API const int32_t *sconce_session_ids(const sconce_session *session, size_t *n);

/* Makes the timeline equal to these ids and computes the logits after the last one. What it has in
 * common with the timeline's beginning is kept, so that a chat's next turn costs only what is new.
 * `progress` (may be NULL) is called after each chunk with ids done and ids to do; where it returns
 * false the prompt ends there with SCONCE_CANCELLED, and what was computed stays. Functions that
 * the session calls may not change it, poll it or close it; sconce_session_cancel they may call. */
SCONCE_API SCONCE_CHECK sconce_status sconce_session_prompt(
    sconce_session *session, const int32_t *ids, size_t n,
    bool (*progress)(void *user, size_t done, size_t all), void *user, sconce_error *err);
/* Makes the prompt or generation that another thread is waiting for, or the next one, end as soon
 * as it can with SCONCE_CANCELLED. May be called from any thread and from a signal handler. */
SCONCE_API void sconce_session_cancel(sconce_session *session);
/* Adds one id behind the timeline. */
SCONCE_API SCONCE_CHECK sconce_status sconce_session_append(sconce_session *session, int32_t id,
                                                            sconce_error *err);
/* Chooses the next id from the logits; the timeline does not change. */
SCONCE_API SCONCE_CHECK sconce_status sconce_session_choose(sconce_session *session,
                                                            sconce_choice *out, sconce_error *err);
/* Chooses the next id and adds it behind the timeline: choose and append, but the device works
 * ahead where it can choose itself (no repetition penalty, no logprobs), so that ids come as fast
 * as it computes them, and lookup may give several a call. Any other call ends the work ahead; what
 * was computed too much costs nothing later. */
SCONCE_API SCONCE_CHECK sconce_status sconce_session_next(sconce_session *session,
                                                          sconce_choice *out, sconce_error *err);
/* The n_vocab logits behind the last id; NULL before the first, after a rewind and after next. */
SCONCE_API const float *sconce_session_logits(const sconce_session *session);
/* Forgets the ids from `position` on; 0 starts over. */
SCONCE_API SCONCE_CHECK sconce_status sconce_session_rewind(sconce_session *session,
                                                            uint32_t position, sconce_error *err);

/* The timeline with its state as a file, and back; the model must be the same. */
SCONCE_API SCONCE_CHECK sconce_status sconce_session_save(sconce_session *session, const char *path,
                                                          sconce_error *err);
SCONCE_API SCONCE_CHECK sconce_status sconce_session_load(sconce_session *session, const char *path,
                                                          sconce_error *err);

typedef enum sconce_stop {
  SCONCE_STOP_END = 1, /* the model said so */
  SCONCE_STOP_TEXT,    /* a stop string; it is not part of the text */
  SCONCE_STOP_COUNT,   /* max_new ids */
  SCONCE_STOP_CONTEXT, /* the context is full */
  SCONCE_STOP_CALLER,  /* on_text returned false */
} sconce_stop;

typedef struct sconce_generate_desc {
  const int32_t *prompt; /* ids; the timeline is made equal to them first. A copy of what encode
                            gave: showing text uses the tokenizer, and its ids with it */
  size_t n_prompt;
  uint32_t max_new; /* 0: as many as fit */
  const char *const *stops;
  size_t n_stops;
  bool ignore_end;                                       /* go on after an end id */
  bool (*progress)(void *user, size_t done, size_t all); /* of the prompt; false: stop */
  /* Text as it comes, without the prompt's: valid UTF-8, never a part of a stop string. id -1: text
   * held back earlier. Return false to stop. May be NULL. */
  bool (*on_text)(void *user, const char *text, size_t size, sconce_choice choice);
  void *user;
} sconce_generate_desc;

typedef struct sconce_generate_result {
  sconce_stop stop;
  size_t n_prompt, n_reused, n_new; /* ids */
  double prompt_s, new_s;           /* seconds */
} sconce_generate_result;

/* Prompt, then one id after another until something stops it. An id that ends the text is not part
 * of the timeline. Without a tokenizer none does, on_text gets each id with an empty text, and stop
 * strings are a bad argument. */
SCONCE_API SCONCE_CHECK sconce_status sconce_session_generate(sconce_session *session,
                                                              const sconce_generate_desc *desc,
                                                              sconce_generate_result *result,
                                                              sconce_error *err);
/* The same in steps. poll goes on until the device would have to be waited for, and calls progress
 * and on_text; *result is filled when it is *done. It ends with *done or with a failure
 * (sconce_session_cancel makes it one); until then the stop strings stay where they are, and the
 * session refuses everything that would change its timeline. */
SCONCE_API SCONCE_CHECK sconce_status sconce_session_generate_begin(
    sconce_session *session, const sconce_generate_desc *desc, sconce_error *err);
SCONCE_API SCONCE_CHECK sconce_status sconce_session_generate_poll(sconce_session *session,
                                                                   bool *done,
                                                                   sconce_generate_result *result,
                                                                   sconce_error *err);

#ifdef __cplusplus
}
#endif
#endif
