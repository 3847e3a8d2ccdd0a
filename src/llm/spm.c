/* SentencePiece encoding of normalized text: merge by score, or find the best path. */
#include "llm/tokenizer.h"

/* A character or more that no piece covers: its bytes, or one unknown id for a run of them. */
static bool push_unknown(sconce_tokenizer *t, struct text text, bool after_unknown) {
  if (!t->spm.byte_fallback) return after_unknown || push_id(t, t->spm.unknown);
  for (size_t i = 0; i < text.size; i++)
    if (!push_id(t, t->vocab.byte[(uint8_t)text.data[i]])) return false;
  return true;
}

/* ---- merging --------------------------------------------------------------------------------- */

static bool add_characters(sconce_tokenizer *t, struct text word) {
  t->bpe.symbols.n = 0;
  for (size_t at = 0; at < word.size;) {
    struct text rest = {word.data + at, word.size - at};
    size_t size = 0;
    int32_t id = matcher_longest(&t->spm.pieces, rest, &size);
    struct symbol s = {.at = (uint32_t)at, .id = id, .frozen = id >= 0};
    if (id < 0) {
      size = utf8_decode(rest.data, rest.data + rest.size).size;
      s.id = vocab_find(&t->vocab, rest.data, size);
    }
    s.size = (uint32_t)size;
    if (!bpe_add(&t->bpe, s)) return false;
    at += size;
  }
  return true;
}

static bool merge_word(sconce_tokenizer *t, struct text word, bool *unknown) {
  struct bpe_rules rules = {&t->vocab, NULL};
  if (!add_characters(t, word) || !bpe_merge(&t->bpe, &rules, word.data)) return false;
  const struct symbol *symbols = t->bpe.symbols.data;
  for (uint32_t i = 0; i != BPE_END; i = symbols[i].next) {
    const struct symbol *s = &symbols[i];
    bool known = s->id >= 0;
    struct text text = {word.data + s->at, s->size};
    if (!(known ? push_id(t, s->id) : push_unknown(t, text, *unknown))) return false;
    *unknown = !known;
  }
  return true;
}

static size_t word_size(const sconce_tokenizer *t, struct text rest) {
  if (!t->spm.cut_words) return rest.size;
  for (size_t i = 1; i < rest.size; i++)
    if (rest.data[i] == ' ' && rest.data[i - 1] != ' ') return i;
  return rest.size;
}

static bool merge_text(sconce_tokenizer *t, struct text text) {
  bool unknown = false;
  for (size_t at = 0, size; at < text.size; at += size) {
    struct text rest = {text.data + at, text.size - at};
    size = word_size(t, rest);
    if (!merge_word(t, (struct text){rest.data, size}, &unknown)) return false;
  }
  return true;
}

/* ---- best path ------------------------------------------------------------------------------- */

/* The best way to reach a byte of the text; after the walk back `next` leads forward. Scores add up
 * in float as in the original: paths with equal sums are common, and rounding decides. */
struct spm_node {
  float score;
  int32_t id;
  uint32_t from, next; /* from NOWHERE: not reached */
};
#define NOWHERE UINT32_MAX

static void reach(struct spm_node *nodes, size_t from, size_t to, float score, int32_t id) {
  if (nodes[to].from != NOWHERE && !(score > nodes[to].score)) return;
  nodes[to] = (struct spm_node){score, id, (uint32_t)from, 0};
}

/* Extends the path that ends at `at` by every piece that starts there. */
static void extend(const sconce_tokenizer *t, struct text text, struct spm_node *nodes, size_t at) {
  const struct matcher *m = &t->spm.pieces;
  const char *p = text.data + at;
  size_t room = text.size - at, character = utf8_decode(p, p + room).size;
  bool single = false;
  float here = nodes[at].score;
  struct match_walk w;
  bool more = matcher_start(m, &w, (uint8_t)*p);
  while (more) {
    int32_t id = matcher_here(m, &w);
    if (id >= 0) {
      const struct piece *piece = &t->vocab.pieces[id];
      float score = piece->score;
      if (piece->type == PIECE_USER)
        score = (float)((double)((float)w.depth * t->spm.score_max) - 0.1);
      reach(nodes, at, at + w.depth, here + score, id);
      if (w.depth == character) single = true;
    }
    more = w.depth < room && matcher_step(m, &w, (uint8_t)p[w.depth]);
  }
  if (single) return;
  reach(nodes, at, at + character, here + (t->spm.score_min - 10.0f), -1);
}

static bool best_path(sconce_tokenizer *t, struct text text) {
  t->path.n = 0;
  if (!list_reserve(&t->path, text.size + 1)) return false;
  struct spm_node *nodes = t->path.data;
  for (size_t i = 0; i <= text.size; i++) nodes[i] = (struct spm_node){.from = NOWHERE};
  nodes[0].from = 0;
  for (size_t at = 0; at < text.size; at++)
    if (nodes[at].from != NOWHERE) extend(t, text, nodes, at);
  for (uint32_t at = (uint32_t)text.size; at > 0; at = nodes[at].from)
    nodes[nodes[at].from].next = at;
  bool unknown = false;
  for (uint32_t at = 0; at < text.size;) {
    uint32_t to = nodes[at].next;
    int32_t id = nodes[to].id;
    struct text part = {text.data + at, to - at};
    if (!(id >= 0 ? push_id(t, id) : push_unknown(t, part, unknown))) return false;
    unknown = id < 0;
    at = to;
  }
  return true;
}

bool spm_encode(sconce_tokenizer *t, struct text text, bool prefix) {
  if (!spm_normalize(t, text, prefix)) return false;
  struct text normal = {t->normal.data, t->normal.n};
  if (normal.size == 0) return true;
  return t->spm.unigram ? best_path(t, normal) : merge_text(t, normal);
}
