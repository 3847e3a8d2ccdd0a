/* Pre-tokenizers: see split.h. A splitter gets the rest of its text and returns where the first
 * match of its expression ends; alternatives are tried in the expression's order. */
#include "llm/split.h"

#include "llm/unicode.h"

/* A character with its class; at the end of the text everything is false. */
struct at {
  const char *p, *next;
  uint32_t code;
  bool letter, number, space, newline, other; /* other: [^\s\p{L}\p{N}] */
};

static struct at look(const char *p, const char *end) {
  struct at a = {.p = p, .next = p};
  if (p == end) return a;
  struct utf8_char c = utf8_decode(p, end);
  a.next = p + c.size;
  a.code = c.code;
  a.letter = unicode_is_letter(c.code);
  a.number = !a.letter && unicode_is_number(c.code);
  a.space = !a.letter && !a.number && unicode_is_space(c.code);
  a.newline = c.code == '\r' || c.code == '\n';
  a.other = !a.letter && !a.number && !a.space;
  return a;
}

static const char *skip_letters(struct at a, const char *end) {
  while (a.letter) a = look(a.next, end);
  return a.p;
}
static const char *skip_numbers(struct at a, const char *end, int most) {
  while (a.number && most-- > 0) a = look(a.next, end);
  return a.p;
}
static const char *skip_other(struct at a, const char *end) {
  while (a.other) a = look(a.next, end);
  return a.p;
}

/* 's 't 're 've 'm 'll 'd; any_case folds as expressions do: the long s (U+017F) is an s. NULL: no
 * contraction here. */
static const char *contraction(struct at a, const char *end, bool any_case) {
  static const char rows[][3] = {"s", "t", "re", "ve", "m", "ll", "d"};
  if (a.code != '\'') return NULL;
  for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
    struct at c = look(a.next, end);
    const char *want = rows[row];
    for (; *want; want++, c = look(c.next, end)) {
      uint32_t code = c.code;
      if (any_case && code == 0x17f) code = 's';
      if (any_case && code - 'A' < 26) code |= 0x20;
      if (code != (uint32_t)*want) break;
    }
    if (!*want) return c.p;
  }
  return NULL;
}

/* \s+(?!\S)|\s+ : white space, less its last character if a word follows that can take it. */
static const char *white_space(struct at a, const char *end) {
  const char *last = a.p;
  for (; a.space; a = look(a.next, end)) {
    last = a.p;
    if (a.next == end) return end;
  }
  return last;
}

/* The same after \s*[\r\n]+ : white space up to and with its last line break. */
static const char *line_breaks(struct at a, const char *end) {
  const char *after = NULL;
  for (struct at b = a; b.space; b = look(b.next, end))
    if (b.newline) after = b.next;
  return after;
}

static const char *at_least(const char *p, struct at a) { return p > a.p ? p : a.next; }

static const char *next_gpt2(const char *p, const char *end) {
  struct at a = look(p, end);
  const char *word = contraction(a, end, false);
  if (word) return word;
  struct at b = a.code == ' ' ? look(a.next, end) : a;
  if (b.letter) return skip_letters(b, end);
  if (b.number) return skip_numbers(b, end, INT32_MAX);
  if (b.other) return skip_other(b, end);
  return at_least(white_space(a, end), a);
}

/* Llama 3 and Qwen differ in how many digits stay together. */
static const char *next_llama3(const char *p, const char *end, int digits) {
  struct at a = look(p, end), b;
  const char *word = contraction(a, end, true);
  if (word) return word;
  if (a.letter) return skip_letters(a, end);
  if (a.number) return skip_numbers(a, end, digits);
  if (!a.newline && (b = look(a.next, end)).letter) return skip_letters(b, end);
  b = a.code == ' ' ? look(a.next, end) : a;
  if (b.other) {
    struct at c = look(skip_other(b, end), end);
    while (c.newline) c = look(c.next, end);
    return c.p;
  }
  const char *breaks = line_breaks(a, end);
  return breaks ? breaks : at_least(white_space(a, end), a);
}

/* This step is no expression in the original, and asks tables that are one Unicode version newer:
 * Tolong Siki digits and three Chinese small numerals. */
static bool is_digit(struct at a) {
  return a.number || a.code - 0x11de0 < 10 || a.code - 0x16ff4 < 3;
}

static const char *next_digits(const char *p, const char *end, bool each) {
  struct at a = look(p, end);
  bool digit = is_digit(a);
  if (digit && each) return a.next;
  while (a.p < end && is_digit(a) == digit) a = look(a.next, end);
  return a.p;
}

static const char *next_end(enum split_kind kind, const char *p, const char *end) {
  switch (kind) {
  case SPLIT_GPT2:
    return next_gpt2(p, end);
  case SPLIT_LLAMA3:
    return next_llama3(p, end, 3);
  case SPLIT_QWEN:
    return next_llama3(p, end, 1);
  case SPLIT_DIGITS:
    return next_digits(p, end, true);
  case SPLIT_DIGIT_RUNS:
    return next_digits(p, end, false);
  }
  return end;
}

bool split_find(struct text regex, enum split_kind *out) {
  static const struct {
    const char *regex;
    enum split_kind kind;
  } known[] = {
      {"'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
       SPLIT_GPT2},
      {"'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
       SPLIT_GPT2},
      {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|"
       " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
       SPLIT_LLAMA3},
      {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|"
       " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
       SPLIT_QWEN},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (text_is(regex, known[i].regex)) return *out = known[i].kind, true;
  return false;
}

void split_begin(struct split_walk *w, const struct split *split, struct text text) {
  *w = (struct split_walk){.split = split, .text = text};
  w->ends[0] = text.size;
}

bool split_next(struct split_walk *w, struct text *piece) {
  if (w->at >= w->text.size) return false;
  const char *base = w->text.data;
  uint32_t n = w->split->n_stages;
  for (uint32_t i = 0; i < n; i++)
    if (w->ends[i + 1] <= w->at)
      w->ends[i + 1] =
          (size_t)(next_end(w->split->stages[i], base + w->at, base + w->ends[i]) - base);
  *piece = (struct text){base + w->at, w->ends[n] - w->at};
  w->at = w->ends[n];
  return true;
}
