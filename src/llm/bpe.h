/* Byte-pair merging of one piece of text: symbols in a linked list, candidate merges in a heap, so
 * that n symbols cost O(n log n). The lowest rank merges first, the leftmost of equals. */
#ifndef LLM_BPE_H
#define LLM_BPE_H

#include "llm/list.h"
#include "llm/vocab.h"

/* What may merge: listed pairs, or without a list any two neighbours whose text is a piece. */
struct bpe_rules {
  const struct vocab *vocab;
  const struct pair_table *pairs; /* NULL: by text */
};

struct bpe {
  struct list symbols; /* struct symbol */
  struct list heap;    /* struct merge */
};

#define BPE_END UINT32_MAX

struct symbol {
  uint32_t at, size; /* bytes of the text; size 0: merged into its left neighbour */
  uint32_t prev, next;
  int32_t id; /* -1: not in the vocabulary */
  bool frozen;
};

void bpe_init(struct bpe *bpe, const sconce_allocator *allocator);
void bpe_free(struct bpe *bpe);
void bpe_shrink(struct bpe *bpe); /* gives back what only a huge word needed */

/* Symbols are added from left to right, then merged in place; the first one stays first, follow
 * `next` to BPE_END. False when out of memory. */
bool bpe_add(struct bpe *bpe, struct symbol symbol);
bool bpe_merge(struct bpe *bpe, const struct bpe_rules *rules, const char *text);

#endif
