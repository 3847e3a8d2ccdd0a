/* Byte-pair merging: see bpe.h. */
#include "llm/bpe.h"

/* A candidate: the symbol `left` and its right neighbour would become `id`. It is stale when the
 * two no longer cover `size` bytes: symbols only grow, so equal sizes mean the same two. */
struct merge {
  uint64_t order; /* rank, then left: what the heap compares */
  uint32_t size;
  int32_t id;
};

enum { KEPT_SYMBOLS = 1 << 18 }; /* 6 MB, and about as much for the heap */

void bpe_init(struct bpe *bpe, const sconce_allocator *allocator) {
  list_init(&bpe->symbols, allocator, sizeof(struct symbol));
  list_init(&bpe->heap, allocator, sizeof(struct merge));
}

void bpe_free(struct bpe *bpe) {
  list_free(&bpe->symbols);
  list_free(&bpe->heap);
}

void bpe_shrink(struct bpe *bpe) {
  if (bpe->symbols.cap > KEPT_SYMBOLS) bpe_free(bpe);
}

static struct symbol *symbol_at(const struct bpe *bpe, uint32_t index) {
  return (struct symbol *)bpe->symbols.data + index;
}

bool bpe_add(struct bpe *bpe, struct symbol symbol) {
  uint32_t n = (uint32_t)bpe->symbols.n;
  symbol.prev = n ? n - 1 : BPE_END;
  symbol.next = BPE_END;
  if (n) symbol_at(bpe, n - 1)->next = n;
  return list_append(&bpe->symbols, &symbol, 1);
}

/* A heap of four children a node: a megabyte of one word leaves the cache, and the four lie in one
 * line of it. */
enum { ARITY = 4 };

static void push(struct list *heap, struct merge m) {
  struct merge *merges = heap->data;
  size_t at = heap->n++;
  for (size_t up; at > 0 && m.order < merges[up = (at - 1) / ARITY].order; at = up)
    merges[at] = merges[up];
  merges[at] = m;
}

/* The child with the lowest order of a node that has one. */
static size_t first_child(const struct merge *merges, size_t at, size_t n) {
  size_t child = ARITY * at + 1, end = child + ARITY < n ? child + ARITY : n, best = child;
  for (child++; child < end; child++)
    if (merges[child].order < merges[best].order) best = child;
  return best;
}

static struct merge pop(struct list *heap) {
  struct merge *merges = heap->data, top = merges[0], last = merges[--heap->n];
  size_t at = 0, n = heap->n;
  for (size_t child; ARITY * at + 1 < n; at = child) {
    child = first_child(merges, at, n);
    if (last.order <= merges[child].order) break;
    merges[at] = merges[child];
  }
  merges[at] = last;
  return top;
}

/* Puts the pair that starts at `left` into the heap if it merges. */
static bool consider(struct bpe *bpe, const struct bpe_rules *rules, const char *text,
                     uint32_t left) {
  if (left == BPE_END) return true;
  const struct symbol *l = symbol_at(bpe, left);
  if (l->next == BPE_END) return true;
  const struct symbol *r = symbol_at(bpe, l->next);
  if (l->frozen || r->frozen) return true;
  struct merge m = {.size = l->size + r->size, .id = -1};
  uint32_t rank = 0;
  if (rules->pairs) {
    const struct pair *pair = pair_table_find(rules->pairs, l->id, r->id);
    if (pair) m.id = pair->id, rank = pair->rank;
  } else {
    m.id = vocab_find(rules->vocab, text + l->at, m.size);
    if (m.id >= 0) rank = rules->vocab->pieces[m.id].rank;
  }
  if (m.id < 0) return true;
  m.order = (uint64_t)rank << 32 | left;
  if (!list_reserve(&bpe->heap, 1)) return false;
  push(&bpe->heap, m);
  return true;
}

/* Makes one symbol of two if they are still the two that the candidate meant. */
static bool apply(struct bpe *bpe, struct merge m) {
  struct symbol *l = symbol_at(bpe, (uint32_t)m.order);
  if (l->size == 0 || l->next == BPE_END) return false;
  struct symbol *r = symbol_at(bpe, l->next);
  if (l->size + r->size != m.size) return false;
  l->size = m.size;
  l->id = m.id;
  l->next = r->next;
  r->size = 0;
  if (l->next != BPE_END) symbol_at(bpe, l->next)->prev = (uint32_t)m.order;
  return true;
}

bool bpe_merge(struct bpe *bpe, const struct bpe_rules *rules, const char *text) {
  bpe->heap.n = 0;
  for (uint32_t i = 0; i < bpe->symbols.n; i++)
    if (!consider(bpe, rules, text, i)) return false;
  while (bpe->heap.n) {
    struct merge m = pop(&bpe->heap);
    uint32_t left = (uint32_t)m.order;
    if (!apply(bpe, m)) continue;
    if (!consider(bpe, rules, text, symbol_at(bpe, left)->prev)) return false;
    if (!consider(bpe, rules, text, left)) return false;
  }
  return true;
}
