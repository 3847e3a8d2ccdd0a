/* Normalization form C: decompose, order marks by class, compose. The tables hold canonical pairs;
 * a character's whole decomposition follows the first parts, Hangul syllables are arithmetic. */
#include "llm/unicode.h"

enum {
  HANGUL = 0xac00,
  N_SYLLABLES = 11172,
  LEAD = 0x1100,
  VOWEL = 0x1161,
  TAIL = 0x11a7, /* one before the first tail: no tail is tail 0 */
  N_LEADS = 19,
  N_VOWELS = 21,
  N_TAILS = 28,
};

static uint32_t combining_class(uint32_t code) {
  if (code < 0x300) return 0;
  uint32_t low = 0, high = unicode_n_classes;
  while (low < high) {
    uint32_t mid = low + (high - low) / 2;
    const uint32_t *row = unicode_classes + 3 * mid;
    if (code < row[0])
      high = mid;
    else if (code > row[1])
      low = mid + 1;
    else
      return row[2];
  }
  return 0;
}

/* The row {code, first, second} that decomposes a character, or NULL. */
static const uint32_t *decomposition(uint32_t code) {
  uint32_t low = 0, high = unicode_n_pairs;
  while (low < high) {
    uint32_t mid = low + (high - low) / 2;
    const uint32_t *row = unicode_pairs + 3 * mid;
    if (code == row[0]) return row;
    if (code < row[0])
      high = mid;
    else
      low = mid + 1;
  }
  return NULL;
}

static uint32_t compose_hangul(uint32_t a, uint32_t b) {
  if (a - LEAD < N_LEADS && b - VOWEL < N_VOWELS)
    return HANGUL + ((a - LEAD) * N_VOWELS + (b - VOWEL)) * N_TAILS;
  if (a - HANGUL < N_SYLLABLES && (a - HANGUL) % N_TAILS == 0 && b - TAIL - 1 < N_TAILS - 1)
    return a + (b - TAIL);
  return 0;
}

/* The character that a pair composes to, or 0. */
static uint32_t composition(uint32_t a, uint32_t b) {
  uint32_t low = 0, high = unicode_n_composed;
  while (low < high) {
    uint32_t mid = low + (high - low) / 2;
    const uint32_t *row = unicode_pairs + 3 * (size_t)unicode_composed[mid];
    if (a == row[1] && b == row[2]) return row[0];
    if (a < row[1] || (a == row[1] && b < row[2]))
      high = mid;
    else
      low = mid + 1;
  }
  return compose_hangul(a, b);
}

static bool append_decomposed(struct list *codes, uint32_t code) {
  uint32_t parts[8], n = 0; /* in reverse; the longest decomposition has four */
  if (code - HANGUL < N_SYLLABLES) {
    uint32_t s = code - HANGUL;
    if (s % N_TAILS) parts[n++] = TAIL + s % N_TAILS;
    parts[n++] = VOWEL + s / N_TAILS % N_VOWELS;
    parts[n++] = LEAD + s / (N_TAILS * N_VOWELS);
  } else {
    const uint32_t *row;
    for (; n < 7 && (row = decomposition(code)); code = row[1])
      if (row[2]) parts[n++] = row[2];
    parts[n++] = code;
  }
  if (!list_reserve(codes, n)) return false;
  while (n) ((uint32_t *)codes->data)[codes->n++] = parts[--n];
  return true;
}

/* Stable order by class, by counting: a run of marks may be as long as the text. */
static void order_run(uint32_t *codes, uint32_t *scratch, size_t n) {
  size_t start[257] = {0};
  for (size_t i = 0; i < n; i++) start[combining_class(codes[i]) + 1]++;
  for (uint32_t c = 0; c < 256; c++) start[c + 1] += start[c];
  for (size_t i = 0; i < n; i++) scratch[start[combining_class(codes[i])]++] = codes[i];
  memcpy(codes, scratch, n * sizeof *codes);
}

static bool order_marks(struct list *list) {
  size_t n = list->n;
  if (!list_reserve(list, n)) return false; /* the scratch of order_run */
  uint32_t *codes = list->data;
  for (size_t i = 0; i < n;) {
    uint32_t last = 0, class = 0;
    bool ordered = true;
    size_t end = i;
    for (; end < n && (class = combining_class(codes[end])); end++, last = class)
      if (class < last) ordered = false;
    if (!ordered) order_run(codes + i, codes + n, end - i);
    i = end + 1;
  }
  return true;
}

static void compose(struct list *list) {
  uint32_t *codes = list->data, last = 0; /* class of the mark before, if it did not compose */
  size_t n = 0, starter = SIZE_MAX;
  for (size_t i = 0; i < list->n; i++) {
    uint32_t code = codes[i], class = combining_class(code);
    bool adjacent = starter != SIZE_MAX && starter + 1 == n;
    bool blocked = starter == SIZE_MAX || (!adjacent && last >= class);
    uint32_t whole = blocked ? 0 : composition(codes[starter], code);
    if (whole) {
      codes[starter] = whole;
      continue;
    }
    if (class == 0) starter = n;
    last = class;
    codes[n++] = code;
  }
  list->n = n;
}

bool unicode_nfc(struct text *text, struct list *codes, struct list *out) {
  size_t i = 0; /* U+0300 starts with the byte 0xCC */
  while (i < text->size && (uint8_t)text->data[i] < 0xcc) i++;
  if (i == text->size) return true;
  codes->n = out->n = 0;
  const char *p = text->data, *end = p + text->size;
  while (p < end) {
    struct utf8_char c = utf8_decode(p, end);
    if (!append_decomposed(codes, c.code)) return false;
    p += c.size;
  }
  if (!order_marks(codes)) return false;
  compose(codes);
  for (i = 0; i < codes->n; i++) {
    if (!list_reserve(out, 4)) return false;
    out->n += utf8_encode(((uint32_t *)codes->data)[i], (char *)out->data + out->n);
  }
  *text = (struct text){out->data, out->n};
  return true;
}
