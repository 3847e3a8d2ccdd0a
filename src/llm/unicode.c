/* UTF-8 and character classes: see unicode.h. */
#include "llm/unicode.h"

/* Size of the longest valid prefix. */
static size_t valid_prefix(struct text text) {
  const char *p = text.data, *end = p + text.size;
  while (p < end) {
    struct utf8_char c = utf8_decode(p, end);
    if (c.state != UTF8_OK) break;
    p += c.size;
  }
  return (size_t)(p - text.data);
}

bool utf8_clean(struct text *text, struct list *scratch) {
  if (text->size == 0) return true;
  size_t valid = valid_prefix(*text);
  if (valid == text->size) return true;
  scratch->n = 0;
  if (!list_append(scratch, text->data, valid)) return false;
  const char *p = text->data + valid, *end = text->data + text->size;
  while (p < end) {
    struct utf8_char c = utf8_decode(p, end);
    bool ok = c.state == UTF8_OK;
    if (!list_append(scratch, ok ? p : "\xef\xbf\xbd", ok ? c.size : 3)) return false;
    p += c.size;
  }
  *text = (struct text){scratch->data, scratch->n};
  return true;
}

bool unicode_in_ranges(const uint32_t *ranges, uint32_t n, uint32_t code) {
  uint32_t low = 0, high = n; /* the answer, if any, is in [low, high) */
  while (low < high) {
    uint32_t mid = low + (high - low) / 2;
    if (code < ranges[2 * mid])
      high = mid;
    else if (code > ranges[2 * mid + 1])
      low = mid + 1;
    else
      return true;
  }
  return false;
}

bool unicode_is_letter(uint32_t code) {
  if (code < 0x80) return (code | 0x20) - 'a' < 26;
  return unicode_in_ranges(unicode_letters, unicode_n_letters, code);
}

bool unicode_is_number(uint32_t code) {
  if (code < 0x80) return code - '0' < 10;
  return unicode_in_ranges(unicode_numbers, unicode_n_numbers, code);
}

bool unicode_is_space(uint32_t code) {
  if (code < 0x80) return code == ' ' || code - '\t' < 5;
  return code == 0x85 || code == 0xa0 || code == 0x1680 || code - 0x2000 < 11 || code == 0x2028 ||
         code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

struct text unicode_trim_start(struct text text) {
  while (text.size) {
    struct utf8_char c = utf8_decode(text.data, text.data + text.size);
    if (!unicode_is_space(c.code)) break;
    text = (struct text){text.data + c.size, text.size - c.size};
  }
  return text;
}

struct text unicode_trim_end(struct text text) {
  while (text.size) {
    size_t at = text.size - 1; /* back over at most three continuation bytes to the lead */
    while (at > 0 && text.size - at < 4 && ((uint8_t)text.data[at] & 0xc0) == 0x80) at--;
    if (!unicode_is_space(utf8_decode(text.data + at, text.data + text.size).code)) break;
    text.size = at;
  }
  return text;
}
