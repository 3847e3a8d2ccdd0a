/* JSON: see json.h. */
#include "base/json.h"

#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static const char *skip_blank(const char *p, const char *end) {
  while (p < end && is_blank(*p)) p++;
  return p;
}

/* ---- checking: a function returns the end of what it accepted, or NULL ----------------------- */

static int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  c = (char)(c | 0x20);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Four hex digits; false if they are not there. */
static bool hex4(const char *p, const char *end, uint32_t *out) {
  if (end - p < 4) return false;
  *out = 0;
  for (int i = 0; i < 4; i++) {
    int digit = hex_digit(p[i]);
    if (digit < 0) return false;
    *out = *out << 4 | (uint32_t)digit;
  }
  return true;
}

/* The code of the escape \uXXXX at p, with its second half if it is a surrogate; the size of the
 * escape, 0 if it is none or half a pair. */
static size_t unicode_escape(const char *p, const char *end, uint32_t *code) {
  uint32_t low;
  if (end - p < 6 || !hex4(p + 2, end, code)) return 0;
  if (*code - 0xd800 >= 0x800) return 6;
  if (*code >= 0xdc00 || end - p < 12 || p[6] != '\\' || p[7] != 'u') return 0;
  if (!hex4(p + 8, end, &low) || low - 0xdc00 >= 0x400) return 0;
  *code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
  return 12;
}

static const char *check_string(const char *p, const char *end) {
  for (p++; p < end && *p != '"';) {
    if ((uint8_t)*p < 0x20) return NULL;
    uint32_t code;
    size_t size;
    if (*p != '\\') {
      struct utf8_char c = utf8_decode(p, end);
      if (c.state != UTF8_OK) return NULL;
      size = c.size;
    } else if (end - p < 2) {
      return NULL;
    } else if (p[1] == 'u') {
      size = unicode_escape(p, end, &code);
    } else {
      size = p[1] && strchr("\"\\/bfnrt", p[1]) ? 2 : 0;
    }
    if (size == 0) return NULL;
    p += size;
  }
  return p < end ? p + 1 : NULL;
}

static const char *skip_digits(const char *p, const char *end) {
  while (p < end && is_digit(*p)) p++;
  return p;
}

static const char *check_number(const char *p, const char *end) {
  if (p < end && *p == '-') p++;
  const char *digits = p;
  p = skip_digits(p, end);
  if (p == digits || (*digits == '0' && p - digits > 1)) return NULL;
  if (p < end && *p == '.') {
    const char *fraction = ++p;
    if ((p = skip_digits(p, end)) == fraction) return NULL;
  }
  if (p < end && (*p == 'e' || *p == 'E')) {
    if (++p < end && (*p == '+' || *p == '-')) p++;
    const char *exponent = p;
    if ((p = skip_digits(p, end)) == exponent) return NULL;
  }
  return p;
}

static const char *check_word(const char *p, const char *end, const char *word) {
  size_t size = strlen(word);
  return (size_t)(end - p) >= size && memcmp(p, word, size) == 0 ? p + size : NULL;
}

static const char *check_scalar(const char *p, const char *end) {
  if (p == end) return NULL;
  switch (*p) {
  case '"':
    return check_string(p, end);
  case 't':
    return check_word(p, end, "true");
  case 'f':
    return check_word(p, end, "false");
  case 'n':
    return check_word(p, end, "null");
  default:
    return check_number(p, end);
  }
}

/* "key" : and the blanks around them. */
static const char *check_key(const char *p, const char *end) {
  p = skip_blank(p, end);
  if (p == end || *p != '"' || !(p = check_string(p, end))) return NULL;
  p = skip_blank(p, end);
  return p < end && *p == ':' ? p + 1 : NULL;
}

/* Walks with a stack of open brackets. On failure *p is near the offending byte. */
static bool check_value(const char **at, const char *end, bool *too_deep) {
  char open[JSON_DEPTH_MAX];
  size_t depth = 0;
  const char *p = *at;
  for (;;) {
    *at = p = skip_blank(p, end);
    if (p < end && (*p == '{' || *p == '[')) {
      if (depth == JSON_DEPTH_MAX) return *too_deep = true, false;
      open[depth++] = *p;
      p = skip_blank(p + 1, end);
      if (p == end || *p != (open[depth - 1] == '{' ? '}' : ']')) {
        if (open[depth - 1] == '{' && !(p = check_key(p, end))) return false;
        continue;
      }
    } else if (!(p = check_scalar(p, end))) {
      return false;
    }
    for (;;) { /* after a value, or at the bracket that closes an empty one */
      *at = p = skip_blank(p, end);
      if (depth == 0) return true;
      if (p == end) return false;
      if (*p == ',') break;
      if (*p != (open[depth - 1] == '{' ? '}' : ']')) return false;
      depth--, p++;
    }
    p++;
    if (open[depth - 1] == '{' && !(p = check_key(p, end))) return false;
  }
}

sconce_status json_check(struct text document, struct json *root, sconce_error *err) {
  if (document.size == 0) return fail(err, SCONCE_BAD_FILE, "no valid JSON in 0 bytes");
  const char *p = document.data, *end = p + document.size;
  bool too_deep = false;
  *root = (struct json){skip_blank(p, end), end};
  if (check_value(&p, end, &too_deep) && p == end) return SCONCE_OK;
  size_t at = (size_t)(p - document.data);
  if (too_deep)
    return fail(err, SCONCE_BAD_FILE, "JSON nested deeper than %d at byte %zu", JSON_DEPTH_MAX, at);
  return fail(err, SCONCE_BAD_FILE, "no valid JSON at byte %zu of %zu", at, document.size);
}

/* ---- navigation: the document is known to be well-formed --------------------------------------
 */

static const char *skip_string(const char *p) {
  for (p++; *p != '"'; p++)
    if (*p == '\\') p++;
  return p + 1;
}

static const char *skip_value(const char *p, const char *end) {
  size_t depth = 0;
  do {
    if (*p == '"') {
      p = skip_string(p);
      continue;
    }
    if (*p == '{' || *p == '[') depth++;
    if (*p == '}' || *p == ']') depth--;
    p++;
    if (depth == 0) /* the rest of a number or a word */
      while (p < end && !is_blank(*p) && *p != ',' && *p != '}' && *p != ']') p++;
  } while (depth);
  return p;
}

static bool starts(struct json v, char c) { return v.at && *v.at == c; }
bool json_is_object(struct json v) { return starts(v, '{'); }
bool json_is_array(struct json v) { return starts(v, '['); }
bool json_is_string(struct json v) { return starts(v, '"'); }
bool json_is_null(struct json v) { return !v.at || *v.at == 'n'; }
bool json_is_true(struct json v) { return starts(v, 't'); }

bool json_integer(struct json v, int64_t *out) {
  if (!v.at || (*v.at != '-' && !is_digit(*v.at))) return false;
  const char *p = v.at + (*v.at == '-'), *digits = p;
  int64_t n = 0;
  for (; p < v.end && is_digit(*p) && p - digits < 18; p++) n = n * 10 + (*p - '0');
  if (p < v.end && (is_digit(*p) || *p == '.' || *p == 'e' || *p == 'E')) return false;
  *out = *v.at == '-' ? -n : n;
  return true;
}

bool json_number(struct json v, double *out) {
  if (!v.at || (*v.at != '-' && !is_digit(*v.at))) return false;
  char text[64]; /* strtod wants a NUL; no number that matters is longer */
  size_t n = 0;
  while (v.at + n < v.end && n < sizeof text - 1 && strchr("+-.eE0123456789", v.at[n])) n++;
  memcpy(text, v.at, n);
  text[n] = 0;
  *out = strtod(text, NULL);
  return true;
}

void json_begin(struct json_walk *w, struct json v) {
  *w = (struct json_walk){.object = json_is_object(v)};
  w->key.end = w->value.end = v.end;
  if (w->object || json_is_array(v)) w->next = v.at + 1;
}

bool json_next(struct json_walk *w) {
  const char *end = w->value.end;
  if (!w->next) return false;
  const char *p = skip_blank(w->next, end);
  if (*p == ',') p = skip_blank(p + 1, end);
  if (*p == '}' || *p == ']') {
    w->next = NULL;
    return false;
  }
  if (w->object) {
    w->key.at = p;
    p = skip_blank(skip_string(p), end);
    p = skip_blank(p + 1, end);
  }
  w->value.at = p;
  w->next = skip_value(p, end);
  return true;
}

bool json_text_is(struct json string, const char *text) {
  size_t size = strlen(text);
  return json_is_string(string) && (size_t)(string.end - string.at) > size + 1 &&
         memcmp(string.at + 1, text, size) == 0 && string.at[size + 1] == '"';
}

struct json json_member(struct json object, const char *key) {
  struct json_walk w;
  if (!json_is_object(object)) return (struct json){0};
  json_begin(&w, object);
  while (json_next(&w))
    if (json_text_is(w.key, key)) return w.value;
  return (struct json){0};
}

size_t json_count(struct json v) {
  struct json_walk w;
  size_t n = 0;
  for (json_begin(&w, v); json_next(&w);) n++;
  return n;
}

size_t json_text_size(struct json string) {
  return json_is_string(string) ? (size_t)(skip_string(string.at) - string.at) - 2 : 0;
}

size_t json_text_write(struct json string, char *out) {
  if (!json_is_string(string)) return 0;
  char *start = out;
  for (const char *p = string.at + 1; *p != '"';) {
    uint32_t code = 0;
    if (*p != '\\') {
      *out++ = *p++;
    } else if (p[1] == 'u') {
      p += unicode_escape(p, string.end, &code);
      out += utf8_encode(code, out);
    } else {
      static const char names[] = "bfnrt", bytes[] = "\b\f\n\r\t";
      const char *name = strchr(names, p[1]);
      *out++ = name ? bytes[name - names] : p[1];
      p += 2;
    }
  }
  return (size_t)(out - start);
}

struct text json_text(struct json string, struct arena *arena) {
  char *copy = arena_new(arena, char, json_text_size(string) + 1);
  if (!copy) return (struct text){0};
  return (struct text){copy, json_text_write(string, copy)};
}
