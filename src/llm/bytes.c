/* Byte-level encoding (tiktoken, Hugging Face): a splitter cuts, the bytes of a piece merge. */
#include "llm/tokenizer.h"

static bool add_bytes(sconce_tokenizer *t, struct text piece) {
  t->bpe.symbols.n = 0;
  for (uint32_t i = 0; i < piece.size; i++) {
    int32_t id = t->vocab.byte[(uint8_t)piece.data[i]];
    struct symbol s = {.at = i, .size = 1, .id = id};
    if (id < 0) { /* without an unknown id a byte that has none is left out */
      s.id = t->bytes.unknown;
      if (s.id < 0) continue;
    }
    if (!bpe_add(&t->bpe, s)) return false;
  }
  return true;
}

static bool encode_piece(sconce_tokenizer *t, struct text piece) {
  if (t->bytes.whole_first) {
    int32_t id = vocab_find(&t->vocab, piece.data, piece.size);
    if (id >= 0) return push_id(t, id);
  }
  struct bpe_rules rules = {&t->vocab, t->bytes.by_pairs ? &t->bytes.merges : NULL};
  if (!add_bytes(t, piece) || !bpe_merge(&t->bpe, &rules, piece.data)) return false;
  const struct symbol *symbols = t->bpe.symbols.data;
  for (uint32_t i = t->bpe.symbols.n ? 0 : BPE_END; i != BPE_END; i = symbols[i].next)
    if (!push_id(t, symbols[i].id)) return false;
  return true;
}

/* A space in front, unless there is one. The copy is made in `codes`, which NFC is done with; the
 * other lists may hold this very text. */
static bool put_space(sconce_tokenizer *t, struct text *text) {
  if (text->size == 0 || text->data[0] == ' ') return true;
  t->codes.n = 0;
  size_t words = text->size / sizeof(uint32_t) + 1;
  if (!list_reserve(&t->codes, words)) return false;
  char *copy = t->codes.data;
  copy[0] = ' ';
  memcpy(copy + 1, text->data, text->size);
  *text = (struct text){copy, text->size + 1};
  return true;
}

bool bytes_encode(sconce_tokenizer *t, struct text text) {
  if (t->bytes.prefix_space && !put_space(t, &text)) return false;
  struct split_walk walk;
  struct text piece;
  split_begin(&walk, &t->bytes.split, text);
  while (split_next(&walk, &piece))
    if (!encode_piece(t, piece)) return false;
  return true;
}
