/* Values as text: Python's str and repr, and JSON as its json.dumps writes it. What holds others is
 * walked with a stack of its own. */
#include "llm/jinja/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- numbers --------------------------------------------------------------------------------- */

/* The shortest digits that read back as x; returns the power of ten of the first one. */
static int shortest(double x, char digits[20], int *n) {
  char text[40];
  for (int precision = 0; precision < 17; precision++) {
    snprintf(text, sizeof text, "%.*e", precision, x);
    if (strtod(text, NULL) == x) break;
  }
  const char *p = text;
  for (*n = 0; *p && *p != 'e'; p++)
    if (*p >= '0' && *p <= '9') digits[(*n)++] = *p;
  while (*n > 1 && digits[*n - 1] == '0') --*n;
  return *p ? (int)strtol(p + 1, NULL, 10) : 0;
}

size_t j_float_text(double x, char out[40]) {
  char digits[20], *p = out;
  int n;
  if (isnan(x)) return (size_t)snprintf(out, 40, "nan");
  if (isinf(x)) return (size_t)snprintf(out, 40, x < 0 ? "-inf" : "inf");
  if (signbit(x)) *p++ = '-';
  if (x == 0) return (size_t)(p - out) + (size_t)snprintf(p, 8, "0.0");
  int power = shortest(fabs(x), digits, &n);
  if (power < -4 || power >= 16) {
    *p++ = digits[0];
    if (n > 1) *p++ = '.';
    for (int i = 1; i < n; i++) *p++ = digits[i];
    return (size_t)(p - out) + (size_t)snprintf(p, 8, "e%c%02d", power < 0 ? '-' : '+', abs(power));
  }
  if (power < 0) {
    *p++ = '0', *p++ = '.';
    for (int i = power + 1; i < 0; i++) *p++ = '0';
  }
  for (int i = 0; i < n || i <= power + 1; i++) {
    if (power >= 0 && i == power + 1) *p++ = '.';
    if (i < n || i <= power || power >= 0) *p++ = i < n ? digits[i] : '0';
  }
  return (size_t)(p - out);
}

static size_t number_text(const struct jvalue *v, char out[40]) {
  if (v->type == J_FLOAT) return j_float_text(v->number, out);
  return (size_t)snprintf(out, 40, "%lld", (long long)v->integer);
}

static sconce_status put_number(struct jrun *run, struct jbuffer *b, const struct jvalue *v,
                                bool own) {
  char text[40];
  if (v->type == J_FLOAT && v->kind) return j_put(run, b, (struct text){v->digits, v->size}, own);
  return j_put(run, b, (struct text){text, number_text(v, text)}, own);
}

/* ---- Python's way ---------------------------------------------------------------------------- */

static sconce_status put_escape(struct jrun *run, struct jbuffer *b, uint32_t code) {
  char text[16];
  const char *format = code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x";
  if (code == '\n' || code == '\r' || code == '\t')
    return j_put(run, b, text_of(code == '\n' ? "\\n" : code == '\r' ? "\\r" : "\\t"), false);
  snprintf(text, sizeof text, format, code);
  return j_put(run, b, text_of(text), false);
}

static sconce_status repr_string(struct jrun *run, struct jbuffer *b, struct text text) {
  bool single = text.size && memchr(text.data, '\'', text.size);
  bool twice = text.size && memchr(text.data, '"', text.size);
  char quote = single && !twice ? '"' : '\'';
  TRY(j_put(run, b, (struct text){&quote, 1}, false));
  for (size_t at = 0; at < text.size;) {
    struct utf8_char c = utf8_decode(text.data + at, text.data + text.size);
    if (c.code == '\\' || c.code == (uint32_t)quote) TRY(j_put(run, b, text_of("\\"), false));
    if (unicode_is_printable(c.code))
      TRY(j_put(run, b, (struct text){text.data + at, c.size}, false));
    else
      TRY(put_escape(run, b, c.code));
    at += c.size;
  }
  TRY(j_spend(run, text.size / 4));
  return j_put(run, b, (struct text){&quote, 1}, false);
}

/* What holds nothing, or what it holds does not show. */
static sconce_status repr_scalar(struct jrun *run, struct jbuffer *b, const struct jvalue *v,
                                 bool own) {
  char text[80];
  switch (v->type) {
  case J_STRING:
    if (v->kind) TRY(j_put(run, b, text_of("Markup("), false));
    TRY(repr_string(run, b, j_text(v)));
    return v->kind ? j_put(run, b, text_of(")"), false) : SCONCE_OK;
  case J_INT:
  case J_FLOAT:
    return put_number(run, b, v, own);
  case J_BOOL:
    return j_put(run, b, text_of(v->truth ? "True" : "False"), own);
  case J_NONE:
    return j_put(run, b, text_of("None"), own);
  case J_UNDEFINED:
    return j_put(run, b, text_of("Undefined"), own);
  default:
    snprintf(text, sizeof text, "<%s>", j_type_name(v));
    return j_put(run, b, text_of(text), false);
  }
}

/* ---- JSON's way ------------------------------------------------------------------------------ */

static sconce_status json_escape(struct jrun *run, struct jbuffer *b, uint32_t code) {
  static const char bytes[] = "\"\\\n\r\t\b\f", names[] = "\"\\nrtbf";
  const char *byte = code && code < 0x80 ? strchr(bytes, (int)code) : NULL;
  char text[16];
  if (byte)
    snprintf(text, sizeof text, "\\%c", names[byte - bytes]);
  else if (code < 0x10000)
    snprintf(text, sizeof text, "\\u%04x", code);
  else
    snprintf(text, sizeof text, "\\u%04x\\u%04x", 0xd7c0 + (code >> 10), 0xdc00 + (code & 0x3ff));
  return j_put(run, b, text_of(text), false);
}

static sconce_status json_string(struct jrun *run, struct jbuffer *b, struct text text,
                                 bool ascii) {
  size_t from = 0;
  TRY(j_put(run, b, text_of("\""), false));
  for (size_t at = 0; at < text.size;) {
    uint8_t byte = (uint8_t)text.data[at];
    if (byte >= 0x20 && byte != '"' && byte != '\\' && !(ascii && byte >= 0x7f)) {
      at++;
      continue;
    }
    struct utf8_char c = utf8_decode(text.data + at, text.data + text.size);
    TRY(j_put(run, b, (struct text){text.data + from, at - from}, false));
    TRY(json_escape(run, b, c.code));
    from = at += c.size;
  }
  TRY(j_put(run, b, (struct text){text.data + from, text.size - from}, false));
  TRY(j_spend(run, text.size / 8));
  return j_put(run, b, text_of("\""), false);
}

static sconce_status json_scalar(struct jrun *run, struct jbuffer *b, const struct jvalue *v,
                                 bool ascii) {
  switch (v->type) {
  case J_STRING:
    return json_string(run, b, j_text(v), ascii);
  case J_FLOAT:
    if (isnan(v->number)) return j_put(run, b, text_of("NaN"), false);
    if (isinf(v->number) && !v->kind)
      return j_put(run, b, text_of(v->number < 0 ? "-Infinity" : "Infinity"), false);
    return put_number(run, b, v, false);
  case J_INT:
    return put_number(run, b, v, false);
  case J_BOOL:
    return j_put(run, b, text_of(v->truth ? "true" : "false"), false);
  case J_NONE:
    return j_put(run, b, text_of("null"), false);
  default:
    return j_fail(run, "a %s cannot be written as JSON", j_type_name(v));
  }
}

/* Keys are strings, whatever they were. */
static sconce_status json_key(struct jrun *run, struct jbuffer *b, const struct jvalue *key,
                              bool ascii) {
  if (key->type == J_STRING) return json_string(run, b, j_text(key), ascii);
  TRY(j_put(run, b, text_of("\""), false));
  TRY(json_scalar(run, b, key, ascii));
  return j_put(run, b, text_of("\""), false);
}

/* ---- what holds others ----------------------------------------------------------------------- */

struct walk {
  struct jrun *run;
  struct jbuffer *b;
  const struct jjson *json; /* NULL: repr */
  struct {
    struct jvalue of;
    size_t at;
  } open[J_DEPTH_MAX + 1];
  size_t depth;
};

static size_t count_of(const struct jvalue *v) {
  return v->type == J_DICT ? v->dict->n : v->list->n;
}

static bool holds_others(const struct walk *w, const struct jvalue *v) {
  if (v->type == J_DICT) return true;
  return v->type == J_LIST && v->list->kind <= (w->json ? JL_TUPLE : JL_ITEMS);
}

static sconce_status put_line(struct walk *w) {
  if (!w->json || !w->json->lines) return SCONCE_OK;
  TRY(j_put(w->run, w->b, text_of("\n"), false));
  for (size_t i = 0; i < w->depth; i++) TRY(j_put(w->run, w->b, w->json->indent, false));
  return SCONCE_OK;
}

static sconce_status put_bracket(struct walk *w, const struct jvalue *v, bool opening) {
  static const struct {
    const char *open, *close;
  } brackets[] = {[JL_LIST] = {"[", "]"},
                  [JL_TUPLE] = {"(", ")"},
                  [JL_RANGE] = {"range([", "])"},
                  [JL_KEYS] = {"dict_keys([", "])"},
                  [JL_VALUES] = {"dict_values([", "])"},
                  [JL_ITEMS] = {"dict_items([", "])"}};
  if (v->type == J_DICT) return j_put(w->run, w->b, text_of(opening ? "{" : "}"), false);
  enum jlist_kind kind = w->json ? JL_LIST : (enum jlist_kind)v->list->kind;
  if (!opening && kind == JL_TUPLE && v->list->n == 1)
    TRY(j_put(w->run, w->b, text_of(","), false));
  return j_put(w->run, w->b, text_of(opening ? brackets[kind].open : brackets[kind].close), false);
}

/* The same pairs, by their keys. */
static sconce_status sorted_dict(struct jrun *run, const struct jvalue *v, struct jvalue *out) {
  size_t n = v->dict->n;
  struct jvalue *keys = j_new(run, struct jvalue, n), *values = j_new(run, struct jvalue, n);
  if (!keys || !values) return J_NO_ROOM;
  for (size_t i = 0; i < n; i++)
    keys[i] = v->dict->pairs[i].key, values[i] = v->dict->pairs[i].value;
  TRY(j_sort(run, keys, values, n, false));
  TRY(j_dict(run, n, out));
  for (size_t i = 0; i < n; i++) TRY(j_dict_set(run, out->dict, keys[i], values[i]));
  return SCONCE_OK;
}

static sconce_status enter(struct walk *w, const struct jvalue *v) {
  TRY(put_bracket(w, v, true));
  if (count_of(v) == 0) return put_bracket(w, v, false);
  if (w->depth == sizeof w->open / sizeof *w->open)
    return j_fail(w->run, "a value nested deeper than %d", J_DEPTH_MAX);
  w->open[w->depth].of = *v;
  if (w->json && w->json->sort && v->type == J_DICT)
    TRY(sorted_dict(w->run, v, &w->open[w->depth].of));
  w->open[w->depth++].at = 0;
  return SCONCE_OK;
}

static sconce_status put_one(struct walk *w, const struct jvalue *v) {
  TRY(j_spend(w->run, 1));
  if (holds_others(w, v)) return enter(w, v);
  return w->json ? json_scalar(w->run, w->b, v, w->json->ascii)
                 : repr_scalar(w->run, w->b, v, false);
}

/* The next item of what is open, or its end. */
static sconce_status put_next(struct walk *w) {
  const struct jvalue of = w->open[w->depth - 1].of;
  size_t at = w->open[w->depth - 1].at++;
  if (at == count_of(&of)) {
    w->depth--;
    TRY(put_line(w));
    return put_bracket(w, &of, false);
  }
  if (at) TRY(j_put(w->run, w->b, w->json ? w->json->item : text_of(", "), false));
  TRY(put_line(w));
  if (of.type != J_DICT) return put_one(w, &of.list->items[at]);
  const struct jpair *pair = &of.dict->pairs[at];
  if (w->json)
    TRY(json_key(w->run, w->b, &pair->key, w->json->ascii));
  else
    TRY(repr_scalar(w->run, w->b, &pair->key, false));
  TRY(j_put(w->run, w->b, w->json ? w->json->colon : text_of(": "), false));
  return put_one(w, &pair->value);
}

static sconce_status walk(struct jrun *run, struct jbuffer *b, const struct jvalue *v,
                          const struct jjson *json) {
  struct walk w; /* the stack is written before it is read */
  w.run = run;
  w.b = b;
  w.json = json;
  w.depth = 0;
  TRY(put_one(&w, v));
  while (w.depth) TRY(put_next(&w));
  return SCONCE_OK;
}

sconce_status j_put_repr(struct jrun *run, struct jbuffer *b, const struct jvalue *v) {
  if (v->type == J_LIST || v->type == J_DICT) return walk(run, b, v, NULL);
  return repr_scalar(run, b, v, v->own);
}

sconce_status j_put_str(struct jrun *run, struct jbuffer *b, const struct jvalue *v) {
  if (v->type == J_STRING) return j_put_string(run, b, v);
  return v->type == J_UNDEFINED ? SCONCE_OK : j_put_repr(run, b, v);
}

sconce_status j_str(struct jrun *run, const struct jvalue *v, struct jvalue *out) {
  struct jbuffer b = {0};
  if (v->type == J_STRING) {
    *out = *v;
    return SCONCE_OK;
  }
  TRY(j_put_str(run, &b, v));
  *out = j_taken(&b);
  return SCONCE_OK;
}

sconce_status j_to_json(struct jrun *run, const struct jvalue *v, const struct jjson *style,
                        struct jvalue *out) {
  struct jbuffer b = {0};
  if (v->type == J_LIST || v->type == J_DICT)
    TRY(walk(run, &b, v, style));
  else
    TRY(json_scalar(run, &b, v, style->ascii));
  *out = j_taken(&b);
  return SCONCE_OK;
}
