/* Vocabularies of a few hundred pieces in every format, written by the tests themselves. Each
 * function appends to a growing buffer that the caller frees with blob_free. */
#ifndef TINY_VOCAB_H
#define TINY_VOCAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct blob {
  char *data;
  size_t size, cap;
};
void blob_add(struct blob *b, const void *data, size_t size);
void blob_text(struct blob *b, const char *text);
void blob_free(struct blob *b);

/* Ids 0 to 255 are the bytes, then come the pieces of tiny_pieces in order. */
extern const char *const tiny_pieces[];
enum { TINY_N_PIECES = 16, TINY_N = 256 + TINY_N_PIECES };

/* Llama 3's 256 special tokens follow from TINY_N on. */
void tiny_tiktoken(struct blob *b);

struct tiny_hf {
  const char *normalizer, *pre_tokenizer; /* JSON; default null, ByteLevel */
  const char *added;                      /* elements of added_tokens */
  const char *model;                      /* more members of the model, with a comma behind */
  bool merge_arrays;                      /* ["a", "b"] instead of "a b" */
};
void tiny_hf(struct blob *b, const struct tiny_hf *options);

/* 0 <unk>, 1 <s>, 2 </s>, 3 to 258 the bytes, then tiny_words in order with falling scores. */
extern const char *const tiny_words[];
enum { TINY_N_WORDS = 20, TINY_SPM_N = 259 + TINY_N_WORDS };

void tiny_llama2c(struct blob *b, bool long_header);

struct tiny_spm {
  int model_type;        /* 1 unigram, 2 BPE */
  bool no_byte_fallback; /* the byte pieces become control pieces */
  bool strip_spaces, no_dummy_prefix, suffix;
  const char *user; /* a user-defined piece, the last id */
  bool rewrite;     /* a character map that makes "the" of "A" */
};
void tiny_spm(struct blob *b, const struct tiny_spm *options);

#endif
