/* Texts: see text.h. */
#include "llm/jinja/text.h"

/* ---- looking --------------------------------------------------------------------------------- */

size_t j_count_characters(struct text text) {
  size_t n = 0;
  for (size_t i = 0; i < text.size; i++) n += ((uint8_t)text.data[i] & 0xc0) != 0x80;
  return n;
}

size_t j_character_at(struct text text, size_t n) {
  size_t at = 0;
  for (; n && at < text.size; n--) at += j_character_size(text.data + at);
  return at;
}

bool j_is_space(uint32_t code) { return unicode_is_space(code) || code - 0x1c < 4; }

size_t j_space_before(struct text text) {
  size_t at = 0;
  while (at < text.size) {
    struct utf8_char c = utf8_decode(text.data + at, text.data + text.size);
    if (!j_is_space(c.code)) break;
    at += c.size;
  }
  return at;
}

/* Where the last character in front of `at` starts. */
static size_t character_before(struct text text, size_t at) {
  do at--;
  while (at && ((uint8_t)text.data[at] & 0xc0) == 0x80);
  return at;
}

size_t j_space_behind(struct text text) {
  size_t at = text.size;
  while (at) {
    size_t last = character_before(text, at);
    if (!j_is_space(utf8_decode(text.data + last, text.data + text.size).code)) break;
    at = last;
  }
  return text.size - at;
}

/* Costs as much as it looks at, so that finding one thing after another is linear. */
sconce_status j_find(struct jrun *run, struct text text, struct text what, size_t *at) {
  *at = what.size ? SIZE_MAX : 0;
  if (what.size == 0 || what.size > text.size) return SCONCE_OK;
  const char *p = text.data, *end = text.data + (text.size - what.size) + 1;
  while (p < end && *at == SIZE_MAX) {
    const char *found = memchr(p, *what.data, (size_t)(end - p));
    TRY(j_spend(run, 1 + what.size / 64));
    if (found && memcmp(found, what.data, what.size) == 0) *at = (size_t)(found - text.data);
    p = found ? found + 1 : end;
  }
  return j_spend(run, (size_t)(p - text.data) / 64);
}

sconce_status j_find_last(struct jrun *run, struct text text, struct text what, size_t *at) {
  *at = SIZE_MAX;
  if (what.size > text.size) return SCONCE_OK;
  size_t last = text.size - what.size;
  for (size_t i = last + 1; i-- > 0 && *at == SIZE_MAX;) {
    if (i % 16 == 0) TRY(j_spend(run, 1));
    if (what.size && text.data[i] != *what.data) continue;
    TRY(j_spend(run, 1 + what.size / 64));
    if (what.size == 0 || memcmp(text.data + i, what.data, what.size) == 0) *at = i;
  }
  return SCONCE_OK;
}

/* ---- taking apart ---------------------------------------------------------------------------- */

struct jvalue j_part(const struct jvalue *string, size_t at, size_t size) {
  struct jvalue part = *string;
  part.size = (uint32_t)size;
  if (size == 0) {
    part.marks = NULL;
    return part;
  }
  part.text += at;
  if (part.marks) part.marks += at;
  return part;
}

static bool has_character(struct text set, const char *at, size_t size) {
  for (size_t i = 0; i < set.size;) {
    size_t here = j_character_size(set.data + i);
    if (here == size && memcmp(set.data + i, at, size) == 0) return true;
    i += here;
  }
  return false;
}

sconce_status j_strip(struct jrun *run, const struct jvalue *string, const struct jvalue *of,
                      unsigned sides, struct jvalue *out) {
  struct text text = j_text(string);
  size_t from = 0, to = text.size;
  TRY(j_spend(run, 1 + text.size / 64));
  if (!of) {
    if (sides & J_LEFT) from = j_space_before(text);
    if (sides & J_RIGHT) to -= j_space_behind((struct text){text.data + from, to - from});
    *out = j_part(string, from, to - from);
    return j_spend(run, (text.size - (to - from)) / 4);
  }
  for (; (sides & J_LEFT) && from < to; from += j_character_size(text.data + from)) {
    TRY(j_spend(run, 1 + of->size / 16));
    if (!has_character(j_text(of), text.data + from, j_character_size(text.data + from))) break;
  }
  while ((sides & J_RIGHT) && from < to) {
    size_t last = character_before(text, to);
    TRY(j_spend(run, 1 + of->size / 16));
    if (!has_character(j_text(of), text.data + last, to - last)) break;
    to = last;
  }
  *out = j_part(string, from, to - from);
  return SCONCE_OK;
}

/* Parts in the order they are found. */
struct parts {
  struct jvalue *items;
  size_t n, cap;
};

static sconce_status add_part(struct jrun *run, struct parts *p, struct jvalue part) {
  TRY(j_spend(run, 1));
  if (p->n == p->cap) {
    size_t cap = p->cap ? 2 * p->cap : 8;
    struct jvalue *items = j_new(run, struct jvalue, cap);
    if (!items) return J_NO_ROOM;
    if (p->n) memcpy(items, p->items, p->n * sizeof *items);
    p->items = items;
    p->cap = cap;
  }
  p->items[p->n++] = part;
  return SCONCE_OK;
}

static void reverse_parts(struct parts *p) {
  for (size_t i = 0, k = p->n; i + 1 < k; i++) {
    struct jvalue swap = p->items[--k];
    p->items[k] = p->items[i];
    p->items[i] = swap;
  }
}

static sconce_status split_by(struct jrun *run, const struct jvalue *string, struct text by,
                              int64_t most, bool from_right, struct parts *p) {
  size_t from = 0, to = string->size, at;
  for (; most != 0; most--) {
    struct text rest = {string->text + from, to - from};
    TRY(from_right ? j_find_last(run, rest, by, &at) : j_find(run, rest, by, &at));
    if (at == SIZE_MAX) break;
    if (from_right) {
      TRY(add_part(run, p, j_part(string, at + by.size, to - at - by.size)));
      to = at;
    } else {
      TRY(add_part(run, p, j_part(string, from, at)));
      from += at + by.size;
    }
  }
  TRY(add_part(run, p, j_part(string, from, to - from)));
  if (from_right) reverse_parts(p);
  return SCONCE_OK;
}

static size_t word_end(struct text text, size_t at) {
  while (at < text.size) {
    struct utf8_char c = utf8_decode(text.data + at, text.data + text.size);
    if (j_is_space(c.code)) break;
    at += c.size;
  }
  return at;
}

static size_t word_start(struct text text, size_t at) {
  while (at) {
    size_t last = character_before(text, at);
    if (j_is_space(utf8_decode(text.data + last, text.data + text.size).code)) break;
    at = last;
  }
  return at;
}

static sconce_status split_words(struct jrun *run, const struct jvalue *string, int64_t most,
                                 struct parts *p) {
  struct text text = j_text(string);
  TRY(j_spend(run, text.size / 4));
  for (size_t at = 0;; most--) {
    at += j_space_before((struct text){text.data + at, text.size - at});
    if (at == text.size) return SCONCE_OK;
    if (most == 0) return add_part(run, p, j_part(string, at, text.size - at));
    size_t end = word_end(text, at);
    TRY(add_part(run, p, j_part(string, at, end - at)));
    at = end;
  }
}

static sconce_status split_words_back(struct jrun *run, const struct jvalue *string, int64_t most,
                                      struct parts *p) {
  struct text text = j_text(string);
  TRY(j_spend(run, text.size / 4));
  for (;; most--) {
    text.size -= j_space_behind(text);
    if (text.size == 0) break;
    size_t start = most == 0 ? 0 : word_start(text, text.size);
    TRY(add_part(run, p, j_part(string, start, text.size - start)));
    if (most == 0) break;
    text.size = start;
  }
  reverse_parts(p);
  return SCONCE_OK;
}

sconce_status j_split(struct jrun *run, const struct jvalue *string, const struct jvalue *by,
                      int64_t most, bool from_right, struct jvalue *out) {
  struct parts p = {0};
  if (most < 0) most = -1;
  if (by && by->size == 0) return j_fail(run, "split by an empty text");
  if (by)
    TRY(split_by(run, string, j_text(by), most, from_right, &p));
  else if (from_right)
    TRY(split_words_back(run, string, most, &p));
  else
    TRY(split_words(run, string, most, &p));
  return j_list(run, JL_LIST, p.items, p.n, out);
}

/* The size of the line end at p, or 0. */
static size_t line_end_size(const char *p, const char *end) {
  if (*p == '\r') return p + 1 < end && p[1] == '\n' ? 2 : 1;
  if (*p == '\n' || *p == '\v' || *p == '\f' || (*p >= 0x1c && *p <= 0x1e)) return 1;
  if ((uint8_t)*p < 0x80) return 0;
  struct utf8_char c = utf8_decode(p, end);
  return c.code == 0x85 || c.code == 0x2028 || c.code == 0x2029 ? c.size : 0;
}

sconce_status j_split_lines(struct jrun *run, const struct jvalue *string, bool keep_ends,
                            struct jvalue *out) {
  struct parts p = {0};
  const char *data = string->text;
  size_t from = 0, size = string->size;
  TRY(j_spend(run, size / 32));
  for (size_t at = 0; at < size;) {
    size_t end = line_end_size(data + at, data + size);
    if (!end) {
      at++;
      continue;
    }
    TRY(add_part(run, &p, j_part(string, from, at - from + (keep_ends ? end : 0))));
    from = at += end;
  }
  if (from < size) TRY(add_part(run, &p, j_part(string, from, size - from)));
  return j_list(run, JL_LIST, p.items, p.n, out);
}
