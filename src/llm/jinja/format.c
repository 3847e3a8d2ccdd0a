/* "%s" % x and "{}".format(x), the parts of Python's format language that texts are made with:
 * alignment, width, precision, and the types s r d i f e g x X %. */
#include "llm/jinja/builtin.h"

#include <math.h>
#include <stdio.h>

struct spec {
  char fill, align; /* < > ^, or 0 */
  char sign;        /* + or blank, or 0 */
  bool zeros, commas;
  int width, precision; /* -1: none */
  char type;            /* 0: as it is */
};

enum { WIDTH_MAX = 1000, PRECISION_MAX = 60, NUMBER_SIZE = 512 };

/* ---- one value ------------------------------------------------------------------------------- */

static sconce_status put_padded(struct jrun *run, struct jbuffer *b, const struct jvalue *text,
                                const struct spec *s, char otherwise) {
  size_t n;
  TRY(j_length(run, text, &n));
  size_t pad = s->width > 0 && (size_t)s->width > n ? (size_t)s->width - n : 0;
  char align = s->align ? s->align : otherwise, fill = s->fill ? s->fill : ' ';
  size_t left = align == '>' ? pad : align == '^' ? pad / 2 : 0;
  for (size_t i = 0; i < left; i++) TRY(j_put(run, b, (struct text){&fill, 1}, true));
  TRY(j_put_string(run, b, text));
  for (size_t i = left; i < pad; i++) TRY(j_put(run, b, (struct text){&fill, 1}, true));
  return SCONCE_OK;
}

/* A comma between each three digits of the whole part. */
static void add_commas(char *text, size_t room) {
  size_t size = strlen(text), digits = strspn(text, "0123456789");
  for (size_t at = digits; at > 3 && size + 1 < room; size++) {
    at -= 3;
    memmove(text + at + 1, text + at, size - at + 1);
    text[at] = ',';
  }
}

static sconce_status digits_of(struct jrun *run, const struct jvalue *v, const struct spec *s,
                               char out[NUMBER_SIZE]) {
  bool real = s->type && strchr("feg%", s->type);
  if (real) {
    double x = fabs(j_as_double(v)) * (s->type == '%' ? 100 : 1);
    int precision = s->precision < 0 ? 6 : s->precision;
    const char *format = s->type == 'e' ? "%.*e" : s->type == 'g' ? "%.*g" : "%.*f";
    snprintf(out, NUMBER_SIZE, s->type == '%' ? "%.*f%%" : format, precision, x);
    return SCONCE_OK;
  }
  if (v->type == J_FLOAT && s->type == 0) {
    out[j_float_text(fabs(v->number), out)] = 0;
    return SCONCE_OK;
  }
  if (v->type == J_FLOAT && !(fabs(v->number) < 9e18))
    return j_fail(run, "a number of more than 64 bits");
  int64_t n = v->type == J_FLOAT ? (int64_t)v->number : v->type == J_INT ? v->integer : v->truth;
  uint64_t size = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
  const char *format = s->type == 'x' ? "%llx" : s->type == 'X' ? "%llX" : "%llu";
  snprintf(out, NUMBER_SIZE, format, (unsigned long long)size);
  return SCONCE_OK;
}

static sconce_status put_number(struct jrun *run, struct jbuffer *b, const struct jvalue *v,
                                const struct spec *s) {
  char digits[NUMBER_SIZE], text[NUMBER_SIZE + WIDTH_MAX + 2], *p = text;
  TRY(digits_of(run, v, s, digits));
  if (s->commas) add_commas(digits, sizeof digits);
  bool negative = v->type == J_FLOAT ? signbit(v->number) != 0 : v->type == J_INT && v->integer < 0;
  if (negative || s->sign) *p++ = negative ? '-' : s->sign;
  size_t size = strlen(digits), used = size + (size_t)(p - text);
  for (; s->zeros && !s->align && s->width > 0 && used < (size_t)s->width; used++) *p++ = '0';
  memcpy(p, digits, size);
  char *copy = j_new(run, char, used);
  if (!copy) return J_NO_ROOM;
  memcpy(copy, text, used);
  struct jvalue out = j_string((struct text){copy, used}, v->own);
  return put_padded(run, b, &out, s, '>');
}

static sconce_status put_value(struct jrun *run, struct jbuffer *b, const struct jvalue *v,
                               const struct spec *s) {
  struct jbuffer text = {0};
  if (s->width > WIDTH_MAX || s->precision > PRECISION_MAX)
    return j_fail(run, "a format of width %d and precision %d", s->width, s->precision);
  bool number = j_is_number(v) && (v->type != J_BOOL || s->type);
  if (number && s->type != 's' && s->type != 'r') return put_number(run, b, v, s);
  if (s->type && s->type != 's' && s->type != 'r')
    return j_fail(run, "the format %%%c for a %s", s->type, j_type_name(v));
  TRY(s->type == 'r' ? j_put_repr(run, &text, v) : j_put_str(run, &text, v));
  struct jvalue out = j_taken(&text);
  if (s->precision >= 0) out = j_part(&out, 0, j_character_at(j_text(&out), (size_t)s->precision));
  return put_padded(run, b, &out, s, '<');
}

/* A number of at most four digits at *at, or -1. */
static int take_number(struct text text, size_t *at) {
  int n = -1;
  for (; *at < text.size && text.data[*at] >= '0' && text.data[*at] <= '9' && n < 1000; ++*at)
    n = (n < 0 ? 0 : n) * 10 + (text.data[*at] - '0');
  return n;
}

/* ---- percent --------------------------------------------------------------------------------- */

struct supply { /* of values, in turn or by name */
  const struct jvalue *at;
  size_t n, used;
  const struct jdict *by_name;
};

/* Flags, width, precision and type behind a "%". */
static sconce_status parse_percent(struct jrun *run, struct text f, size_t *at, struct spec *s) {
  *s = (struct spec){.width = -1, .precision = -1};
  for (; *at < f.size && f.data[*at] && strchr("-+ 0#", f.data[*at]); ++*at) {
    char c = f.data[*at];
    if (c == '-') s->align = '<';
    if (c == '+' || c == ' ') s->sign = c;
    if (c == '0') s->zeros = true;
  }
  s->width = take_number(f, at);
  if (*at < f.size && f.data[*at] == '.') {
    ++*at;
    s->precision = take_number(f, at);
    if (s->precision < 0) s->precision = 0;
  }
  if (*at == f.size) return j_fail(run, "a format that ends behind '%%'");
  s->type = f.data[(*at)++];
  if (s->type == 'i' || s->type == 'u') s->type = 'd';
  if (s->type == 'F') s->type = 'f';
  if (!s->type || !strchr("srdfegxX%", s->type))
    return j_fail(run, "a format with an unknown type");
  if (!s->align) s->align = s->zeros ? 0 : '>';
  return SCONCE_OK;
}

static sconce_status percent_value(struct jrun *run, struct text f, size_t *at, struct supply *from,
                                   struct jvalue *out) {
  if (*at < f.size && f.data[*at] == '(') {
    const char *end = memchr(f.data + *at, ')', f.size - *at);
    struct text name = {f.data + *at + 1, end ? (size_t)(end - f.data) - *at - 1 : 0};
    const struct jvalue *found = end && from->by_name ? j_dict_find(from->by_name, name) : NULL;
    if (!found) return j_fail(run, "a format asks for '%.*s', which is not there", TEXT(name));
    *out = *found;
    *at += name.size + 2;
    return SCONCE_OK;
  }
  *out = (struct jvalue){0};
  return SCONCE_OK;
}

static sconce_status put_percent(struct jrun *run, struct jbuffer *b, struct text f, size_t *at,
                                 struct supply *from) {
  struct spec s;
  struct jvalue v;
  TRY(percent_value(run, f, at, from, &v));
  TRY(parse_percent(run, f, at, &s));
  if (s.type == '%') return j_put(run, b, text_of("%"), true);
  if (j_missing(&v)) {
    if (from->used == from->n) return j_fail(run, "a format with more than %zu values", from->n);
    v = from->at[from->used++];
  }
  return put_value(run, b, &v, &s);
}

sconce_status j_percent(struct jrun *run, const struct jvalue *format, const struct jvalue *values,
                        struct jvalue *out) {
  struct text f = j_text(format);
  struct jbuffer b = {0};
  struct supply from = {.at = values, .n = 1};
  if (values->type == J_LIST && values->list->kind == JL_TUPLE)
    from = (struct supply){.at = values->list->items, .n = values->list->n};
  if (values->type == J_DICT) from.by_name = values->dict;
  for (size_t at = 0; at < f.size;) {
    const char *mark = memchr(f.data + at, '%', f.size - at);
    size_t end = mark ? (size_t)(mark - f.data) : f.size;
    struct jvalue part = j_part(format, at, end - at);
    TRY(j_put_string(run, &b, &part));
    at = end + (mark != NULL);
    if (mark) TRY(put_percent(run, &b, f, &at, &from));
  }
  bool lenient = from.by_name || values->type == J_UNDEFINED ||
                 (values->type == J_LIST && values->list->kind == JL_LIST);
  if (from.used < from.n && !lenient) return j_fail(run, "more values than a format asks for");
  *out = j_taken(&b);
  return SCONCE_OK;
}

/* ---- braces ---------------------------------------------------------------------------------- */

/* [[fill]align][sign][0][width][,][.precision][type] */
static sconce_status parse_spec(struct jrun *run, struct text f, struct spec *s) {
  size_t at = 0;
  *s = (struct spec){.precision = -1};
  if (f.size > 1 && f.data[1] && strchr("<>^", f.data[1])) s->fill = f.data[at++];
  if (at < f.size && f.data[at] && strchr("<>^", f.data[at])) s->align = f.data[at++];
  if (at < f.size && (f.data[at] == '+' || f.data[at] == ' ')) s->sign = f.data[at++];
  if (at < f.size && f.data[at] == '-') at++;
  if (at < f.size && f.data[at] == '0') s->zeros = true, at++;
  s->width = take_number(f, &at);
  if (at < f.size && f.data[at] == ',') s->commas = true, at++;
  if (at < f.size && f.data[at] == '.') {
    at++;
    s->precision = take_number(f, &at);
  }
  if (at < f.size) s->type = f.data[at++];
  if (s->type == 'F') s->type = 'f';
  if (at < f.size || (s->type && !strchr("sdfegxX%", s->type)) || (uint8_t)s->fill >= 0x80)
    return j_fail(run, "the format '%.*s' is not supported", TEXT(f));
  return SCONCE_OK;
}

/* The value of "", "0", "name" or "0.member". */
static sconce_status find_field(struct jrun *run, struct text name, const struct jargs *args,
                                size_t *used, struct jvalue *out) {
  const char *dot = name.size ? memchr(name.data, '.', name.size) : NULL;
  struct text first = {name.data, dot ? (size_t)(dot - name.data) : name.size};
  size_t at = 0;
  int index = take_number(first, &at);
  *out = (struct jvalue){0};
  if (first.size == 0) index = (int)(*used)++;
  if (first.size == 0 || (index >= 0 && at == first.size)) {
    if ((uint32_t)index < args->n) *out = args->at[index];
  } else {
    for (uint32_t i = 0; i < args->n_pairs; i++)
      if (text_equal(j_text(&args->pairs[2 * i]), first)) *out = args->pairs[2 * i + 1];
  }
  if (j_missing(out))
    return j_fail(run, "a format asks for '%.*s', which is not there", TEXT(first));
  if (!dot) return SCONCE_OK;
  struct jvalue whole = *out;
  struct jvalue path = j_string((struct text){dot + 1, name.size - first.size - 1}, true);
  return j_path(run, &whole, &path, out);
}

/* What stands in braces: name!r:spec. */
static sconce_status put_field(struct jrun *run, struct jbuffer *b, struct text field,
                               const struct jargs *args, size_t *used) {
  const char *colon = field.size ? memchr(field.data, ':', field.size) : NULL;
  struct text name = {field.data, colon ? (size_t)(colon - field.data) : field.size};
  struct text rest = {colon ? colon + 1 : NULL, colon ? field.size - name.size - 1 : 0};
  struct spec s;
  struct jvalue v;
  TRY(parse_spec(run, rest, &s));
  if (name.size >= 2 && name.data[name.size - 2] == '!') {
    s.type = name.data[name.size - 1] == 'r' ? 'r' : 's';
    name.size -= 2;
  }
  TRY(find_field(run, name, args, used, &v));
  return put_value(run, b, &v, &s);
}

sconce_status j_format(struct jrun *run, const struct jvalue *format, const struct jargs *args,
                       struct jvalue *out) {
  struct text f = j_text(format);
  struct jbuffer b = {0};
  size_t used = 0;
  for (size_t at = 0; at < f.size;) {
    size_t end = at;
    while (end < f.size && f.data[end] != '{' && f.data[end] != '}') end++;
    bool twice = end + 1 < f.size && f.data[end] == f.data[end + 1];
    struct jvalue part = j_part(format, at, end - at + twice);
    TRY(j_put_string(run, &b, &part));
    at = end + (twice ? 2 : 1);
    if (twice || end == f.size) continue;
    const char *close =
        f.data[end] == '{' && at < f.size ? memchr(f.data + at, '}', f.size - at) : NULL;
    if (!close) return j_fail(run, "a format with a single '%c'", f.data[end]);
    TRY(put_field(run, &b, (struct text){f.data + at, (size_t)(close - f.data) - at}, args, &used));
    at = (size_t)(close - f.data) + 1;
  }
  *out = j_taken(&b);
  out->kind = format->kind;
  return SCONCE_OK;
}
