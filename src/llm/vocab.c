/* Vocabulary, matcher and pair table: see vocab.h. */
#include "llm/vocab.h"

#include "base/hash.h"

/* Slots for n entries at most half full; 0 if there are more than 32 bits address. */
static uint32_t slots_for(uint32_t n) {
  uint32_t slots = 16;
  while (slots < (uint64_t)n * 2) {
    if (slots > UINT32_MAX / 2) return 0;
    slots *= 2;
  }
  return slots;
}

bool vocab_init(struct vocab *vocab, struct arena *arena, uint32_t n) {
  uint32_t slots = slots_for(n);
  *vocab = (struct vocab){.n = n, .mask = slots - 1};
  for (int b = 0; b < 256; b++) vocab->byte[b] = -1;
  if (!slots || n > INT32_MAX) return false;
  vocab->pieces = arena_new(arena, struct piece, n);
  vocab->slots = arena_new(arena, uint32_t, slots);
  return vocab->pieces && vocab->slots;
}

void vocab_index(struct vocab *vocab, uint32_t id) {
  struct text text = vocab->pieces[id].text;
  if (text.size == 0) return;
  uint32_t at = (uint32_t)hash_key(text.data, text.size) & vocab->mask;
  for (; vocab->slots[at]; at = (at + 1) & vocab->mask)
    if (text_equal(vocab->pieces[vocab->slots[at] - 1].text, text)) return;
  vocab->slots[at] = id + 1;
  if (text.size > vocab->size_max) vocab->size_max = text.size;
}

int32_t vocab_find(const struct vocab *vocab, const char *data, size_t size) {
  if (size > vocab->size_max) return -1;
  struct text text = {data, size};
  uint32_t at = (uint32_t)hash_key(data, size) & vocab->mask;
  for (; vocab->slots[at]; at = (at + 1) & vocab->mask)
    if (text_equal(vocab->pieces[vocab->slots[at] - 1].text, text))
      return (int32_t)(vocab->slots[at] - 1);
  return -1;
}

uint32_t rank_of_score(float score) {
  uint32_t bits;
  score += 0.0f; /* -0 and 0 are one score */
  memcpy(&bits, &score, sizeof bits);
  return bits & 0x80000000u ? bits : ~bits & 0x7fffffffu;
}

/* ---- matcher --------------------------------------------------------------------------------- */

static bool key_less(struct text a, struct text b) {
  size_t common = a.size < b.size ? a.size : b.size;
  int order = common ? memcmp(a.data, b.data, common) : 0;
  return order ? order < 0 : a.size < b.size;
}

static void sift_down(struct match_key *keys, uint32_t at, uint32_t n) {
  struct match_key key = keys[at];
  for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
    if (child + 1 < n && key_less(keys[child].text, keys[child + 1].text)) child++;
    if (!key_less(key.text, keys[child].text)) break;
    keys[at] = keys[child];
  }
  keys[at] = key;
}

/* Heap sort: in place, and no input makes it slow (the C library's qsort promises neither). */
static void sort_keys(struct match_key *keys, uint32_t n) {
  for (uint32_t i = n / 2; i-- > 0;) sift_down(keys, i, n);
  for (uint32_t i = n; i-- > 1;) {
    struct match_key top = keys[0];
    keys[0] = keys[i];
    keys[i] = top;
    sift_down(keys, 0, i);
  }
}

void matcher_init(struct matcher *m, struct match_key *keys, uint32_t n) {
  *m = (struct matcher){.keys = keys};
  sort_keys(keys, n);
  for (uint32_t i = 0; i < n; i++) {
    if (keys[i].text.size == 0) continue;
    if (m->n && text_equal(keys[i].text, keys[m->n - 1].text)) {
      if (keys[i].id < keys[m->n - 1].id) keys[m->n - 1].id = keys[i].id;
      continue;
    }
    keys[m->n++] = keys[i];
  }
  for (uint32_t i = 0; i < m->n; i++) m->first[(uint8_t)keys[i].text.data[0] + 1]++;
  for (uint32_t b = 0; b < 256; b++) m->first[b + 1] += m->first[b];
}

bool matcher_start(const struct matcher *m, struct match_walk *w, uint8_t byte) {
  *w = (struct match_walk){m->first[byte], m->first[byte + 1], 1};
  return w->low < w->high;
}

/* First key of the walk's range whose byte at its depth is at least `byte`; a key that ends there
 * comes first. */
static uint32_t lower_bound(const struct matcher *m, const struct match_walk *w, uint32_t byte) {
  uint32_t low = w->low, high = w->high;
  while (low < high) {
    uint32_t mid = low + (high - low) / 2;
    struct text key = m->keys[mid].text;
    if (key.size == w->depth || (uint8_t)key.data[w->depth] < byte)
      low = mid + 1;
    else
      high = mid;
  }
  return low;
}

bool matcher_step(const struct matcher *m, struct match_walk *w, uint8_t byte) {
  uint32_t low = lower_bound(m, w, byte);
  w->high = low == w->high ? low : lower_bound(m, w, byte + 1u);
  w->low = low;
  w->depth++;
  return w->low < w->high;
}

int32_t matcher_here(const struct matcher *m, const struct match_walk *w) {
  return m->keys[w->low].text.size == w->depth ? m->keys[w->low].id : -1;
}

int32_t matcher_longest(const struct matcher *m, struct text text, size_t *size) {
  int32_t best = -1;
  struct match_walk w;
  if (!text.size || !matcher_start(m, &w, (uint8_t)text.data[0])) return -1;
  for (;;) {
    int32_t id = matcher_here(m, &w);
    if (id >= 0) {
      best = id;
      *size = w.depth;
    }
    if (w.depth == text.size || !matcher_step(m, &w, (uint8_t)text.data[w.depth])) return best;
  }
}

int32_t matcher_find(const struct matcher *m, struct text text) {
  size_t size = 0;
  int32_t id = matcher_longest(m, text, &size);
  return size == text.size ? id : -1;
}

/* ---- pairs ----------------------------------------------------------------------------------- */

bool pair_table_init(struct pair_table *t, struct arena *arena, uint32_t n) {
  uint32_t slots = slots_for(n);
  *t = (struct pair_table){.mask = slots - 1};
  return slots && (t->slots = arena_new(arena, struct pair, slots));
}

/* The slot of a pair, or the free one where it belongs. */
static struct pair *pair_slot(const struct pair_table *t, uint32_t left, uint32_t right) {
  uint32_t at = hash_number((uint64_t)left << 32 | right) & t->mask;
  while (t->slots[at].left && (t->slots[at].left != left || t->slots[at].right != right))
    at = (at + 1) & t->mask;
  return &t->slots[at];
}

void pair_table_add(struct pair_table *t, int32_t left, int32_t right, uint32_t rank, int32_t id) {
  struct pair *pair = pair_slot(t, (uint32_t)left + 1, (uint32_t)right + 1);
  *pair = (struct pair){(uint32_t)left + 1, (uint32_t)right + 1, rank, id};
}

const struct pair *pair_table_find(const struct pair_table *t, int32_t left, int32_t right) {
  const struct pair *pair = pair_slot(t, (uint32_t)left + 1, (uint32_t)right + 1);
  return pair->left ? pair : NULL;
}
