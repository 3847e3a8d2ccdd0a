/* Filters that make texts and numbers. */
#include "llm/jinja/builtin.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define FILTER(name)                                                                               \
  static sconce_status filter_##name(struct jrun *run, const struct jargs *a, struct jvalue *out)

/* An argument as a truth; absent: false. */
static bool flag(const struct jvalue *v) { return !j_missing(v) && j_truth(v); }

FILTER(default) {
  (void)run;
  *out = a->self;
  if (a->self.type != J_UNDEFINED && (!flag(&a->at[1]) || j_truth(&a->self))) return SCONCE_OK;
  *out = j_missing(&a->at[0]) ? j_string(text_of(""), true) : a->at[0];
  return SCONCE_OK;
}

FILTER(string) { return j_str(run, &a->self, out); }

FILTER(safe) {
  TRY(j_str(run, &a->self, out));
  out->kind = 1;
  return SCONCE_OK;
}

FILTER(escape) {
  struct jvalue text;
  TRY(j_str(run, &a->self, &text));
  return j_escape(run, &text, out);
}

FILTER(forceescape) {
  struct jvalue text;
  TRY(j_str(run, &a->self, &text));
  text.kind = 0;
  return j_escape(run, &text, out);
}

FILTER(trim) {
  struct jvalue text;
  const struct jvalue *of = &a->at[0];
  TRY(j_str(run, &a->self, &text));
  if (!j_missing(of) && of->type != J_STRING && of->type != J_NONE)
    return j_fail(run, "trim by a %s", j_type_name(of));
  return j_strip(run, &text, of->type == J_STRING ? of : NULL, J_LEFT | J_RIGHT, out);
}

static sconce_status with_case(struct jrun *run, const struct jargs *a, enum jcase how,
                               struct jvalue *out) {
  struct jvalue text;
  TRY(j_str(run, &a->self, &text));
  return j_change_case(run, &text, how, out);
}

FILTER(upper) { return with_case(run, a, JC_UPPER, out); }
FILTER(lower) { return with_case(run, a, JC_LOWER, out); }
FILTER(capitalize) { return with_case(run, a, JC_CAPITAL, out); }
FILTER(title) { return with_case(run, a, JC_WORDS, out); }

FILTER(replace) {
  struct jvalue text, old, new;
  int64_t most = -1;
  TRY(j_str(run, &a->self, &text));
  TRY(j_str(run, &a->at[0], &old));
  TRY(j_str(run, &a->at[1], &new));
  if (!j_missing(&a->at[2]) && a->at[2].type != J_NONE)
    TRY(j_as_int(run, &a->at[2], "the count of replace", &most));
  return j_replace(run, &text, &old, &new, most, out);
}

FILTER(indent) {
  struct jvalue by = a->at[0];
  struct jbuffer blanks = {0};
  int64_t width = 4;
  if (a->self.type == J_UNDEFINED) return j_fail_undefined(run, &a->self);
  if (a->self.type != J_STRING) return j_fail(run, "indent of a %s", j_type_name(&a->self));
  if (by.type != J_STRING) {
    if (!j_missing(&by)) TRY(j_as_int(run, &by, "the width of indent", &width));
    TRY(j_put_spaces(run, &blanks, width > 0 ? (size_t)width : 0, true));
    by = j_taken(&blanks);
  }
  return j_indent(run, &a->self, &by, flag(&a->at[1]), flag(&a->at[2]), out);
}

FILTER(center) {
  struct jvalue text;
  struct jbuffer b = {0};
  int64_t width = 80;
  size_t n;
  TRY(j_str(run, &a->self, &text));
  if (!j_missing(&a->at[0])) TRY(j_as_int(run, &a->at[0], "the width of center", &width));
  TRY(j_length(run, &text, &n));
  size_t pad = width > 0 && (size_t)width > n ? (size_t)width - n : 0;
  size_t left = pad / 2 + (pad & (size_t)width & 1); /* where Python puts the odd one */
  TRY(j_put_spaces(run, &b, left, true));
  TRY(j_put_string(run, &b, &text));
  TRY(j_put_spaces(run, &b, pad - left, true));
  *out = j_taken(&b);
  return SCONCE_OK;
}

FILTER(truncate) {
  int64_t length = 255, leeway = 5;
  size_t n, n_end;
  struct jvalue end = j_missing(&a->at[2]) ? j_string(text_of("..."), true) : a->at[2];
  if (a->self.type != J_STRING || end.type != J_STRING)
    return j_fail(run, "truncate of a %s with a %s", j_type_name(&a->self), j_type_name(&end));
  if (!j_missing(&a->at[0])) TRY(j_as_int(run, &a->at[0], "the length of truncate", &length));
  if (!j_missing(&a->at[3])) TRY(j_as_int(run, &a->at[3], "the leeway of truncate", &leeway));
  TRY(j_length(run, &a->self, &n));
  TRY(j_length(run, &end, &n_end));
  if (length < (int64_t)n_end || leeway < 0 || leeway > INT32_MAX || length > INT32_MAX)
    return j_fail(run, "truncate to %lld characters", (long long)length);
  *out = a->self;
  if ((int64_t)n <= length + leeway) return SCONCE_OK;
  size_t cut = j_character_at(j_text(&a->self), (size_t)length - n_end), at;
  if (!flag(&a->at[1])) {
    TRY(j_find_last(run, (struct text){a->self.text, cut}, text_of(" "), &at));
    if (at != SIZE_MAX) cut = at;
  }
  struct jbuffer b = {0};
  struct jvalue part = j_part(&a->self, 0, cut);
  TRY(j_put_string(run, &b, &part));
  TRY(j_put_string(run, &b, &end));
  *out = j_taken(&b);
  return SCONCE_OK;
}

FILTER(wordcount) {
  struct jvalue text;
  int64_t n = 0;
  bool inside = false;
  TRY(j_str(run, &a->self, &text));
  TRY(j_spend(run, text.size / 4));
  for (uint32_t at = 0; at < text.size;) {
    struct utf8_char c = utf8_decode(text.text + at, text.text + text.size);
    bool word = c.code == '_' || unicode_is_letter(c.code) || unicode_is_number(c.code);
    n += word && !inside;
    inside = word;
    at += c.size;
  }
  *out = j_int(n, true);
  return SCONCE_OK;
}

FILTER(urlencode) {
  struct jvalue text;
  struct jbuffer b = {0};
  TRY(j_str(run, &a->self, &text));
  TRY(j_spend(run, text.size / 2));
  for (uint32_t i = 0; i < text.size; i++) {
    uint8_t byte = (uint8_t)text.text[i];
    char hex[4];
    bool plain =
        (byte && strchr("_.-~/", byte)) || (byte | 0x20u) - 'a' < 26 || byte - (unsigned)'0' < 10;
    struct jvalue one = j_part(&text, i, 1);
    snprintf(hex, sizeof hex, "%%%02X", byte);
    TRY(plain ? j_put_string(run, &b, &one) : j_put(run, &b, text_of(hex), false));
  }
  *out = j_taken(&b);
  return SCONCE_OK;
}

FILTER(format) {
  struct jvalue text, values;
  TRY(j_str(run, &a->self, &text));
  if (a->n && a->n_pairs) return j_fail(run, "format with values and names");
  if (a->n_pairs) {
    TRY(j_dict(run, a->n_pairs, &values));
    for (uint32_t i = 0; i < a->n_pairs; i++)
      TRY(j_dict_set(run, values.dict, a->pairs[2 * i], a->pairs[2 * i + 1]));
  } else {
    struct jvalue *items = j_new(run, struct jvalue, a->n);
    if (!items) return J_NO_ROOM;
    for (uint32_t i = 0; i < a->n; i++) items[i] = a->at[i];
    TRY(j_list(run, JL_TUPLE, items, a->n, &values));
  }
  return j_percent(run, &text, &values, out);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* separators=(",", ":") */
static sconce_status read_separators(struct jrun *run, const struct jvalue *v, struct jjson *json) {
  if (j_missing(v) || v->type == J_NONE) return SCONCE_OK;
  if (v->type != J_LIST || v->list->n != 2 || v->list->items[0].type != J_STRING ||
      v->list->items[1].type != J_STRING)
    return j_fail(run, "the separators of tojson are no two texts");
  json->item = j_text(&v->list->items[0]);
  json->colon = j_text(&v->list->items[1]);
  return SCONCE_OK;
}

FILTER(tojson) {
  const struct jvalue *indent = &a->at[1];
  struct jjson json = {
      .ascii = flag(&a->at[0]), .sort = flag(&a->at[3]), .item = {", ", 2}, .colon = {": ", 2}};
  struct jbuffer blanks = {0};
  json.lines = !j_missing(indent) && indent->type != J_NONE;
  if (json.lines) json.item.size = 1;
  if (json.lines && indent->type == J_STRING) {
    json.indent = j_text(indent);
  } else if (json.lines) {
    int64_t n;
    TRY(j_as_int(run, indent, "the indent of tojson", &n));
    TRY(j_put_spaces(run, &blanks, n > 0 ? (size_t)n : 0, true));
    json.indent = (struct text){blanks.data, blanks.n};
  }
  TRY(read_separators(run, &a->at[2], &json));
  return j_to_json(run, &a->self, &json, out);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* A text as a number, white space around it and "_" between digits allowed; false: it is none. */
static bool read_double(struct text text, double *out) {
  char copy[64], *end;
  size_t from = j_space_before(text), n = 0;
  if (from == text.size) return false;
  size_t to = text.size - j_space_behind(text);
  if (to - from >= sizeof copy) return false;
  for (size_t i = from; i < to; i++) {
    char c = text.data[i];
    if (c == '_' && i > from && i + 1 < to) continue;
    if (!(c >= '0' && c <= '9') && (!c || !strchr("+-.eEinfINFatyATY", c))) return false;
    copy[n++] = c;
  }
  copy[n] = 0;
  *out = strtod(copy, &end);
  return n > 0 && !*end;
}

static bool read_integer(struct text text, int base, int64_t *out) {
  size_t from = j_space_before(text), to = text.size;
  if (from < to) to -= j_space_behind(text);
  bool negative = from < to && text.data[from] == '-', any = false;
  if (from < to && (text.data[from] == '-' || text.data[from] == '+')) from++;
  char mark = base == 16 ? 'x' : base == 8 ? 'o' : base == 2 ? 'b' : 0;
  if (mark && to - from > 2 && text.data[from] == '0' && (text.data[from + 1] | 0x20) == mark)
    from += 2;
  for (*out = 0; from < to; from++) {
    char c = (char)(text.data[from] | 0x20);
    int digit = c >= 'a' && c <= 'z' ? c - 'a' + 10 : text.data[from] - '0';
    if (text.data[from] == '_' && any && from + 1 < to) continue;
    if (digit < 0 || digit >= base) return false;
    any = true;
    if (!mul_i64(*out, base, out) || !add_i64(*out, negative ? -digit : digit, out)) return false;
  }
  return any;
}

FILTER(int) {
  int64_t n = 0, base = 10;
  double x = NAN;
  *out = j_missing(&a->at[0]) ? j_int(0, true) : a->at[0];
  if (!j_missing(&a->at[1])) TRY(j_as_int(run, &a->at[1], "the base of int", &base));
  if (base < 2 || base > 36) return j_fail(run, "int to the base %lld", (long long)base);
  if (a->self.type == J_STRING) TRY(j_spend(run, a->self.size / 4));
  if (a->self.type == J_UNDEFINED) return j_fail_undefined(run, &a->self);
  if (a->self.type == J_INT || a->self.type == J_BOOL) {
    TRY(j_as_int(run, &a->self, "int", &n));
    *out = j_int(n, a->self.own);
    return SCONCE_OK;
  }
  if (a->self.type == J_STRING && read_integer(j_text(&a->self), (int)base, &n)) {
    *out = j_int(n, a->self.own && !a->self.marks);
    return SCONCE_OK;
  }
  if (a->self.type == J_FLOAT)
    x = a->self.number;
  else if (a->self.type != J_STRING || !read_double(j_text(&a->self), &x))
    return SCONCE_OK;
  if (fabs(x) < 9e18) *out = j_int((int64_t)x, a->self.own && !a->self.marks);
  return SCONCE_OK;
}

FILTER(float) {
  double x;
  *out = j_missing(&a->at[0]) ? j_float(0, true) : a->at[0];
  if (a->self.type == J_STRING) TRY(j_spend(run, a->self.size / 4));
  if (a->self.type == J_UNDEFINED) return j_fail_undefined(run, &a->self);
  if (j_is_number(&a->self))
    *out = j_float(j_as_double(&a->self), a->self.own);
  else if (a->self.type == J_STRING && read_double(j_text(&a->self), &x))
    *out = j_float(x, a->self.own && !a->self.marks);
  return SCONCE_OK;
}

FILTER(abs) {
  *out = a->self;
  if (a->self.type == J_UNDEFINED) return j_fail_undefined(run, &a->self);
  if (!j_is_number(&a->self)) return j_fail(run, "abs of a %s", j_type_name(&a->self));
  if (a->self.type == J_BOOL) *out = j_int(a->self.truth, a->self.own);
  return j_as_double(out) < 0 ? j_negate(run, &a->self, out) : SCONCE_OK;
}

FILTER(round) {
  int64_t digits = 0;
  char text[400];
  if (!j_is_number(&a->self)) return j_fail(run, "round of a %s", j_type_name(&a->self));
  if (!j_missing(&a->at[0])) TRY(j_as_int(run, &a->at[0], "the precision of round", &digits));
  if (digits < -20 || digits > 20) return j_fail(run, "round to %lld digits", (long long)digits);
  double x = j_as_double(&a->self), power = pow(10, (double)digits);
  const struct jvalue *how = &a->at[1];
  bool common = j_missing(how) || j_is(how, "common");
  if (!common && !j_is(how, "ceil") && !j_is(how, "floor"))
    return j_fail(run, "round takes common, ceil or floor");
  if (common && digits >= 0 && a->self.type != J_FLOAT) {
    *out = j_int(a->self.type == J_INT ? a->self.integer : a->self.truth, a->self.own);
    return SCONCE_OK;
  }
  if (common && digits >= 0 && a->self.type == J_FLOAT) { /* decimal, as Python does it */
    snprintf(text, sizeof text, "%.*f", (int)digits, x);
    x = strtod(text, NULL);
  } else if (common) {
    x = nearbyint(x * power) / power;
  } else {
    x = (j_is(how, "ceil") ? ceil(x * power) : floor(x * power)) / power;
  }
  *out = j_float(x, a->self.own);
  if (!common || a->self.type == J_FLOAT) return SCONCE_OK;
  if (!(fabs(x) < 9.2e18)) return j_fail(run, "a result of more than 64 bits");
  *out = j_int((int64_t)x, a->self.own);
  return SCONCE_OK;
}

const struct jbuiltin j_text_filters[] = {
    {"default", filter_default, 0, "default_value boolean"},
    {"d", filter_default, 0, "default_value boolean"},
    {"string", filter_string, 0, ""},
    {"safe", filter_safe, 0, ""},
    {"escape", filter_escape, 0, ""},
    {"e", filter_escape, 0, ""},
    {"forceescape", filter_forceescape, 0, ""},
    {"trim", filter_trim, 0, "chars"},
    {"upper", filter_upper, 0, ""},
    {"lower", filter_lower, 0, ""},
    {"capitalize", filter_capitalize, 0, ""},
    {"title", filter_title, 0, ""},
    {"replace", filter_replace, 2, "old new count"},
    {"indent", filter_indent, 0, "width first blank"},
    {"center", filter_center, 0, "width"},
    {"truncate", filter_truncate, 0, "length killwords end leeway"},
    {"wordcount", filter_wordcount, 0, ""},
    {"urlencode", filter_urlencode, 0, ""},
    {"format", filter_format, 0, NULL},
    {"tojson", filter_tojson, 0, "ensure_ascii indent separators sort_keys"},
    {"int", filter_int, 0, "default base"},
    {"float", filter_float, 0, "default"},
    {"abs", filter_abs, 0, ""},
    {"round", filter_round, 0, "precision method"},
    {0},
};
