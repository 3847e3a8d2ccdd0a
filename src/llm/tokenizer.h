/* Inside a tokenizer. Two ways of encoding share a vocabulary and the merging: SentencePiece's, by
 * score over characters, and byte level, by rank over pieces that a splitter cut. The loaders fill
 * the first part, encoding uses the lists. */
#ifndef LLM_TOKENIZER_H
#define LLM_TOKENIZER_H

#include "base/json.h"
#include "llm/bpe.h"
#include "llm/split.h"
#include "llm/unicode.h"
#include "sconce_llm.h"

#include "base/status.h"

/* What SentencePiece rewrites before anything else; without units nothing. */
struct spm_charsmap {
  uint32_t *units; /* (n_units) */
  uint32_t n_units;
  struct text strings;
};

/* How a SentencePiece model treats text. */
struct spm_rules {
  bool unigram;       /* best path by scores, else merging */
  bool byte_fallback; /* an unknown character becomes its bytes, else the unknown id */
  bool dummy_prefix;
  bool strip_spaces; /* remove_extra_whitespaces */
  bool suffix;       /* treat_whitespace_as_suffix: the dummy goes to the end */
  bool cut_words;    /* no piece has a space behind another character: words merge separately */
  float score_min, score_max;
  int32_t unknown;
  struct spm_charsmap charsmap;
  struct matcher kept;   /* user-defined pieces that the normalizer leaves alone */
  struct matcher pieces; /* user-defined pieces; of a unigram model all pieces */
};

/* How a byte-level model does. */
struct byte_rules {
  struct split split;
  bool nfc;
  bool prefix_space; /* a space in front of text that has none */
  bool whole_first;  /* a piece that is in the vocabulary is not merged */
  bool by_pairs;     /* merges lists what may merge */
  struct pair_table merges;
  int32_t unknown; /* for bytes without an id; -1: they vanish */
};

enum { ADDED_RAW, ADDED_NORMALIZED, N_ADDED_PASSES };

struct sconce_tokenizer {
  struct arena arena;
  sconce_tokenizer_info info;
  struct vocab vocab;
  bool is_spm;
  struct spm_rules spm;
  struct byte_rules bytes;
  /* The parsed chat templates of the model, or NULL; the second is for conversations with tools. */
  const struct jinja_program *template, *tool_template;
  struct text pad, unknown; /* names that templates may ask for; without data: none */
  /* Tokens that are cut out of the text before anything else: [pass][with special tokens?]. */
  struct matcher added[N_ADDED_PASSES][2];

  struct list ids;           /* int32_t: the result of encoding */
  struct list out;           /* char: the result of decoding and rendering */
  struct list clean, normal; /* char: the text made valid; normalized */
  struct list codes;         /* uint32_t: for NFC */
  struct list path;          /* struct spm_node: for unigram */
  struct bpe bpe;
};

/* Loaders: the file's bytes are borrowed during the call. */
SCONCE_CHECK sconce_status spm_load(sconce_tokenizer *t, struct span file, sconce_error *err);
SCONCE_CHECK sconce_status llama2c_load(sconce_tokenizer *t, struct span file, sconce_error *err);
SCONCE_CHECK sconce_status tiktoken_load(sconce_tokenizer *t, struct span file, sconce_error *err);
SCONCE_CHECK sconce_status hf_load(sconce_tokenizer *t, struct span file, struct json config,
                                   sconce_error *err);
bool spm_detect(struct span file);
bool llama2c_detect(struct span file);
bool tiktoken_detect(struct span file);
bool hf_detect(struct span file);

/* Sets a piece with a copy of its text; false when out of memory. */
bool tokenizer_set_piece(sconce_tokenizer *t, uint32_t id, enum piece_type type, struct text text);
/* Cuts `special` pieces (control, user) out of texts on request; for formats that have one list. */
SCONCE_CHECK sconce_status tokenizer_collect_special(sconce_tokenizer *t, sconce_error *err);
/* What both SentencePiece formats derive from their pieces once all are set. */
SCONCE_CHECK sconce_status spm_finish(sconce_tokenizer *t, sconce_error *err);
int32_t spm_byte_value(struct text text); /* of "<0xHH>", or -1 */
/* False if the bytes are malformed; out of memory shows as NULL units or strings. */
bool spm_charsmap_init(struct spm_charsmap *map, struct arena *arena, struct span bytes);
/* Fills t->normal; false when out of memory. */
bool spm_normalize(sconce_tokenizer *t, struct text text, bool prefix);

/* Append the ids of a text that contains no added tokens; false when out of memory. */
bool spm_encode(sconce_tokenizer *t, struct text text, bool prefix);
bool bytes_encode(sconce_tokenizer *t, struct text text);

static inline bool push_id(sconce_tokenizer *t, int32_t id) { return list_append(&t->ids, &id, 1); }

/* Appends the ids of a text to t->ids. */
SCONCE_CHECK sconce_status tokenizer_append(sconce_tokenizer *t, struct text text, uint32_t flags,
                                            sconce_error *err);
/* The same for text of two origins: only in bytes with a mark of 1 special tokens are found. */
SCONCE_CHECK sconce_status tokenizer_append_marked(sconce_tokenizer *t, struct text text,
                                                   const uint8_t *own, sconce_error *err);

/* template.c: the model's template from its configuration (may be absent) and from a file of its
 * own (may be empty), which counts more. One that cannot be used is no error. */
SCONCE_CHECK sconce_status template_load(sconce_tokenizer *t, struct json config, struct span file,
                                         sconce_error *err);
/* Does this descriptor ask for a template, or get the tokenizer's? */
bool template_wanted(const sconce_tokenizer *t, const sconce_chat_desc *desc);
/* Renders into t->out, or into t->ids. */
SCONCE_CHECK sconce_status template_render(sconce_tokenizer *t, const sconce_chat_desc *desc,
                                           bool as_ids, sconce_error *err);

#endif
