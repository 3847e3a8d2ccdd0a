/* SentencePiece's normalizer: rewrite characters by the model's own map, then tidy spaces. Its
 * result holds plain spaces where SentencePiece writes U+2581. */
#include "llm/tokenizer.h"

/* ---- the map of characters ------------------------------------------------------------------- */

/* precompiled_charsmap: u32 size of a double-array trie, the trie, then strings that end with NUL.
 * A unit of the trie is 32 bits: label 0-7, has a leaf 8, offset 10-30 (shifted by 8 if bit 9 is
 * set), is a leaf 31; a leaf's other bits are the place of a string. */
bool spm_charsmap_init(struct spm_charsmap *map, struct arena *arena, struct span bytes) {
  struct span trie, strings;
  *map = (struct spm_charsmap){0};
  if (bytes.size < 4 || !span_slice(bytes, 4, load_u32(bytes.data), &trie)) return false;
  if (!span_slice(bytes, 4 + trie.size, bytes.size - 4 - trie.size, &strings)) return false;
  if (trie.size == 0 || trie.size % 4 || !strings.size || strings.data[strings.size - 1])
    return false;
  map->n_units = (uint32_t)(trie.size / 4);
  map->units = arena_new(arena, uint32_t, map->n_units);
  map->strings.data = arena_copy_text(arena, (const char *)strings.data, strings.size);
  map->strings.size = strings.size;
  for (uint32_t i = 0; map->units && i < map->n_units; i++)
    map->units[i] = load_u32(trie.data + 4 * (size_t)i);
  return true;
}

static uint32_t unit_offset(uint32_t unit) { return (unit >> 10) << ((unit & 1u << 9) >> 6); }

/* What the longest key at the start of text becomes; false if there is none. */
static bool rewrite(const struct spm_charsmap *map, struct text text, struct text *out,
                    size_t *consumed) {
  bool found = false;
  if (map->n_units == 0) return false;
  uint32_t at = unit_offset(map->units[0]);
  for (size_t i = 0; i < text.size; i++) {
    uint8_t byte = (uint8_t)text.data[i];
    at ^= byte;
    if (at >= map->n_units || (map->units[at] & 0x800000ffu) != byte) break;
    bool leaf = map->units[at] >> 8 & 1;
    at ^= unit_offset(map->units[at]);
    if (at >= map->n_units) break;
    uint32_t place = map->units[at] & 0x7fffffffu;
    if (!leaf || place >= map->strings.size) continue;
    *out = text_of(map->strings.data + place);
    *consumed = i + 1;
    found = true;
  }
  return found;
}

/* ---- spaces ---------------------------------------------------------------------------------- */

/* What the next few bytes of a text become: a user-defined piece stays, a key of the map is
 * rewritten, any other character is itself. */
static struct text next_part(const struct spm_rules *rules, struct text rest, size_t *consumed) {
  struct text part;
  if (rules->kept.n && matcher_longest(&rules->kept, rest, consumed) >= 0)
    return (struct text){rest.data, *consumed};
  if (rewrite(&rules->charsmap, rest, &part, consumed)) return part;
  *consumed = utf8_decode(rest.data, rest.data + rest.size).size;
  return (struct text){rest.data, *consumed};
}

/* U+2581 in a text is a space too, but never an extra one; a character comes alone. */
static bool append_part(struct list *out, struct text part) {
  if (part.size == 3 && memcmp(part.data, "\xe2\x96\x81", 3) == 0) part = (struct text){" ", 1};
  return list_append(out, part.data, part.size);
}

static struct text drop(struct text text, size_t size) {
  return (struct text){text.data + size, text.size - size};
}

/* The space that lets the first word look like the others. */
static bool append_dummy(const struct spm_rules *rules, bool prefix, bool at_end,
                         struct list *out) {
  if (!rules->dummy_prefix || !prefix || rules->suffix != at_end) return true;
  return list_append(out, " ", 1);
}

bool spm_normalize(sconce_tokenizer *t, struct text text, bool prefix) {
  const struct spm_rules *rules = &t->spm;
  struct list *out = &t->normal;
  size_t used = 0;
  out->n = 0;
  while (rules->strip_spaces && text.size && text_is(next_part(rules, text, &used), " "))
    text = drop(text, used);
  if (text.size == 0) return true;
  if (!list_reserve(out, text.size + 2) || !append_dummy(rules, prefix, false, out)) return false;
  for (bool after_space = rules->strip_spaces; text.size; text = drop(text, used)) {
    struct text part = next_part(rules, text, &used);
    while (after_space && part.size && part.data[0] == ' ') part = drop(part, 1);
    if (part.size == 0) continue;
    if (!append_part(out, part)) return false;
    after_space = rules->strip_spaces && part.data[part.size - 1] == ' ';
  }
  const char *data = out->data;
  while (rules->strip_spaces && out->n && data[out->n - 1] == ' ') out->n--;
  return append_dummy(rules, prefix, true, out) && out->n < INT32_MAX; /* positions are 32 bits */
}
