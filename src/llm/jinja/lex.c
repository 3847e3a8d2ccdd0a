/* Tokens of a template: see lex.h. The rules for white space are Jinja's with trim_blocks and
 * lstrip_blocks: a newline behind a block or a comment goes, so do blanks in front of one at the
 * start of a line; "-" takes all white space on its side, "+" keeps it. */
#include "llm/jinja/lex.h"

#include "base/utf8.h"
#include "llm/jinja/text.h"

#include <stdlib.h>

void lexer_init(struct jlexer *l, struct text source, struct arena *arena, sconce_error *err) {
  *l = (struct jlexer){.start = source.data,
                       .at = source.data,
                       .end = source.data + source.size,
                       .line = 1,
                       .arena = arena,
                       .err = err};
}

#define lex_fail(l, ...) fail((l)->err, SCONCE_BAD_FILE, __VA_ARGS__)

static bool starts(const char *at, const char *end, const char *text) {
  size_t size = strlen(text);
  return (size_t)(end - at) >= size && memcmp(at, text, size) == 0;
}

static void move_to(struct jlexer *l, const char *to) {
  for (; l->at < to; l->at++) l->line += *l->at == '\n';
}

static const char *skip_space(const char *at, const char *end) {
  return at + j_space_before((struct text){at, (size_t)(end - at)});
}

/* ---- between tags ---------------------------------------------------------------------------- */

/* Past the end of a tag: `size` bytes, of which the first may be a sign. */
static void leave_tag(struct jlexer *l, size_t size, bool trims) {
  char sign = *l->at;
  move_to(l, l->at + size);
  if (sign == '-')
    move_to(l, skip_space(l->at, l->end));
  else if (trims && sign != '+' && l->at < l->end && *l->at == '\n')
    move_to(l, l->at + 1);
}

/* The text from `from` to a tag at `to`, less the white space that the tag takes. */
static struct text text_before(const struct jlexer *l, const char *from, const char *to, char sign,
                               bool is_print) {
  struct text text = {from, (size_t)(to - from)};
  if (sign == '-') {
    text.size -= j_space_behind(text);
  } else if (sign != '+' && !is_print) {
    const char *line = to;
    while (line > from && line[-1] != '\n') line--;
    bool at_start = line > from || from == l->start || from[-1] == '\n';
    if (at_start && skip_space(line, to) == to) text.size = (size_t)(line - from);
  }
  return text;
}

static const char *find(const char *at, const char *end, const char *text) {
  for (; at < end; at++)
    if (*at == *text && starts(at, end, text)) return at;
  return NULL;
}

static sconce_status skip_comment(struct jlexer *l) {
  const char *end = find(l->at, l->end, "#}");
  if (!end) return lex_fail(l, "line %u: a comment without an end", l->line);
  bool sign = end > l->at && (end[-1] == '-' || end[-1] == '+');
  move_to(l, sign ? end - 1 : end);
  leave_tag(l, sign ? 3 : 2, true);
  return SCONCE_OK;
}

/* Is this {% word %}? Its size without the end, or 0; *ending is the size of the end. */
static size_t tag_is(const char *at, const char *end, const char *word, size_t *ending) {
  const char *p = at + 2;
  if (p < end && (*p == '-' || *p == '+')) p++;
  p = skip_space(p, end);
  if (!starts(p, end, word)) return 0;
  p = skip_space(p + strlen(word), end);
  *ending = p < end && (*p == '-' || *p == '+') ? 3 : 2;
  if (!starts(p + (*ending - 2), end, "%}")) return 0;
  return (size_t)(p - at);
}

static char sign_at(const char *at, const char *end) {
  return at < end && (*at == '-' || *at == '+') ? *at : 0;
}

static sconce_status next_raw(struct jlexer *l, struct jtoken *token) {
  size_t size = 0, ending = 0;
  const char *tag = l->at;
  while ((tag = find(tag, l->end, "{%")) && !(size = tag_is(tag, l->end, "endraw", &ending))) tag++;
  if (!tag) return lex_fail(l, "line %u: raw without endraw", l->line);
  *token = (struct jtoken){.type = T_DATA, .line = l->line};
  token->text = text_before(l, l->at, tag, sign_at(tag + 2, l->end), false);
  move_to(l, tag + size);
  leave_tag(l, ending, true);
  l->mode = LEX_DATA;
  return SCONCE_OK;
}

static const char *find_tag(const struct jlexer *l) {
  for (const char *p = l->at; p + 1 < l->end; p++)
    if (*p == '{' && (p[1] == '{' || p[1] == '%' || p[1] == '#')) return p;
  return l->end;
}

/* The text up to the next tag, possibly empty. What comes then is in mode and pending. */
static sconce_status next_data(struct jlexer *l, struct jtoken *token) {
  *token = (struct jtoken){.type = T_DATA, .line = l->line};
  const char *from = l->at, *tag = find_tag(l);
  size_t ending = 0;
  if (tag == l->end) {
    token->text = (struct text){from, (size_t)(tag - from)};
    if (from == tag) token->type = T_END;
    move_to(l, tag);
    return SCONCE_OK;
  }
  char sign = sign_at(tag + 2, l->end);
  token->text = text_before(l, from, tag, sign, tag[1] == '{');
  size_t raw = tag[1] == '%' ? tag_is(tag, l->end, "raw", &ending) : 0;
  if (raw && tag[raw] != '+') {
    move_to(l, tag + raw);
    leave_tag(l, ending, false);
    l->mode = LEX_RAW;
    return SCONCE_OK;
  }
  move_to(l, tag + 2 + (sign != 0));
  if (tag[1] == '#') return skip_comment(l);
  l->mode = tag[1] == '{' ? LEX_PRINT : LEX_TAG;
  l->pending = tag[1] == '{' ? T_PRINT : T_TAG;
  return SCONCE_OK;
}

/* ---- numbers and strings --------------------------------------------------------------------- */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Digits with single "_" between them, copied without. */
static const char *take_digits(const char *p, const char *end, char *out, size_t *n, size_t room) {
  while (p < end && (is_digit(*p) || (*p == '_' && p + 1 < end && is_digit(p[1])))) {
    if (*p != '_' && *n < room) out[(*n)++] = *p;
    p++;
  }
  return p;
}

static sconce_status next_number(struct jlexer *l, struct jtoken *token) {
  char text[64];
  size_t n = 0;
  const char *p = take_digits(l->at, l->end, text, &n, 40);
  bool fraction =
      (l->at == l->start || l->at[-1] != '.') && p + 1 < l->end && *p == '.' && is_digit(p[1]);
  token->type = T_INT;
  if (fraction) {
    text[n++] = '.';
    p = take_digits(p + 1, l->end, text, &n, 55);
  }
  const char *e = p;
  if (e < l->end && (*e == 'e' || *e == 'E')) {
    e += 1 + (e + 1 < l->end && (e[1] == '+' || e[1] == '-'));
    if (e < l->end && is_digit(*e)) {
      text[n++] = 'e';
      if (e[-1] == '-') text[n++] = '-';
      p = take_digits(e, l->end, text, &n, sizeof text - 1);
      fraction = true;
    }
  }
  text[n] = 0;
  if (fraction) token->type = T_FLOAT;
  if (n >= 40) return lex_fail(l, "line %u: a number of %zu digits", l->line, n);
  token->number = strtod(text, NULL);
  for (size_t i = 0; !fraction && i < n; i++) {
    if (!mul_i64(token->integer, 10, &token->integer) ||
        !add_i64(token->integer, text[i] - '0', &token->integer))
      return lex_fail(l, "line %u: %s is more than 64 bits hold", l->line, text);
  }
  l->at = p;
  return SCONCE_OK;
}

/* The code of \xHH, \uHHHH or \UHHHHHHHH with `digits` digits at p. */
static bool take_hex(const char *p, const char *end, size_t digits, uint32_t *code) {
  *code = 0;
  for (size_t i = 0; i < digits; i++, p++) {
    char c = p < end ? (char)(*p | 0x20) : 0;
    if (!is_digit(c) && (c < 'a' || c > 'f')) return false;
    *code = *code << 4 | (uint32_t)(is_digit(c) ? c - '0' : c - 'a' + 10);
  }
  return *code < 0x110000 && (*code < 0xd800 || *code >= 0xe000);
}

/* The escape at p, a backslash, written to out; the place behind it, or NULL. */
static const char *unescape(const char *p, const char *end, char *out, size_t *n) {
  static const char names[] = "abfnrtv\\'\"", bytes[] = "\a\b\f\n\r\t\v\\'\"";
  char c = p[1];
  const char *name = c ? strchr(names, c) : NULL;
  uint32_t code = 0;
  if (c == '\n') return p + 2;
  if (name) {
    out[(*n)++] = bytes[name - names];
    return p + 2;
  }
  if (c == 'x' || c == 'u' || c == 'U') {
    size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
    if (!take_hex(p + 2, end, digits, &code)) return NULL;
    *n += utf8_encode(code, out + *n);
    return p + 2 + digits;
  }
  if (c >= '0' && c <= '7') {
    const char *q = p + 1;
    while (q < p + 4 && q < end && *q >= '0' && *q <= '7') code = code * 8 + (uint32_t)(*q++ - '0');
    *n += utf8_encode(code, out + *n);
    return q;
  }
  out[(*n)++] = '\\'; /* as Python leaves it */
  return p + 1;
}

static sconce_status next_string(struct jlexer *l, struct jtoken *token) {
  char quote = *l->at;
  const char *end = l->at + 1;
  while (end < l->end && *end != quote) end += *end == '\\' && end + 1 < l->end ? 2 : 1;
  if (end >= l->end) return lex_fail(l, "line %u: a text without its closing quote", l->line);
  size_t n = 0;
  char *out = arena_new(l->arena, char, (size_t)(end - l->at)); /* escapes only shrink */
  if (!out) return fail(l->err, SCONCE_NO_MEMORY, "out of memory for a template");
  for (const char *p = l->at + 1; p < end;) {
    if (*p != '\\') {
      out[n++] = *p++;
      continue;
    }
    p = unescape(p, end, out, &n);
    if (!p) return lex_fail(l, "line %u: an escape that is no character", l->line);
  }
  token->type = T_STRING;
  token->text = (struct text){out, n};
  move_to(l, end + 1);
  return SCONCE_OK;
}

/* ---- inside of tags -------------------------------------------------------------------------- */

/* Longer ones first. */
static const char *const operators[] = {"**", "//", "==", "!=", "<=", ">=", "<", ">", "+", "-",
                                        "*",  "/",  "%",  "~",  "|",  "=",  ".", ",", ":"};

static sconce_status next_bracket(struct jlexer *l, struct jtoken *token) {
  char c = *l->at;
  token->text = (struct text){l->at++, 1};
  token->type = T_OPEN;
  if (c == '(' || c == '[' || c == '{') {
    if (l->n_brackets == LEX_BRACKETS_MAX)
      return lex_fail(l, "line %u: brackets nested deeper than %d", l->line, LEX_BRACKETS_MAX);
    l->brackets[l->n_brackets++] = c == '(' ? ')' : c == '[' ? ']' : '}';
    return SCONCE_OK;
  }
  token->type = T_CLOSE;
  if (l->n_brackets == 0) return lex_fail(l, "line %u: unexpected '%c'", l->line, c);
  char want = l->brackets[--l->n_brackets];
  if (want != c)
    return lex_fail(l, "line %u: unexpected '%c', '%c' is still open", l->line, c, want);
  return SCONCE_OK;
}

static sconce_status next_operator(struct jlexer *l, struct jtoken *token) {
  if (*l->at && strchr("()[]{}", *l->at)) return next_bracket(l, token);
  for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
    if (!starts(l->at, l->end, operators[i])) continue;
    token->type = (uint8_t)(T_POWER + i);
    token->text = (struct text){l->at, strlen(operators[i])};
    l->at += token->text.size;
    return SCONCE_OK;
  }
  struct utf8_char c = utf8_decode(l->at, l->end);
  return lex_fail(l, "line %u: unexpected '%.*s'", l->line, (int)c.size, l->at);
}

static size_t name_size(const char *at, const char *end) {
  const char *p = at;
  while (p < end) {
    struct utf8_char c = utf8_decode(p, end);
    bool letter = c.code == '_' || unicode_is_letter(c.code);
    if (!letter && (p == at || !unicode_is_number(c.code))) break;
    p += c.size;
  }
  return (size_t)(p - at);
}

/* The size of the end of this tag at l->at, or 0. */
static size_t tag_end(const struct jlexer *l) {
  const char *end = l->mode == LEX_PRINT ? "}}" : "%}";
  if (l->n_brackets) return 0;
  if (starts(l->at, l->end, end)) return 2;
  bool sign = l->at < l->end && (*l->at == '-' || (*l->at == '+' && l->mode == LEX_TAG));
  return sign && starts(l->at + 1, l->end, end) ? 3 : 0;
}

static sconce_status next_inside(struct jlexer *l, struct jtoken *token) {
  move_to(l, skip_space(l->at, l->end));
  *token = (struct jtoken){.type = T_END, .line = l->line};
  if (l->at == l->end) return SCONCE_OK;
  size_t size = tag_end(l);
  if (size) {
    token->type = l->mode == LEX_PRINT ? T_PRINT_END : T_TAG_END;
    leave_tag(l, size, l->mode == LEX_TAG);
    l->mode = LEX_DATA;
    return SCONCE_OK;
  }
  if (is_digit(*l->at)) return next_number(l, token);
  if (*l->at == '"' || *l->at == '\'') return next_string(l, token);
  size = name_size(l->at, l->end);
  if (!size) return next_operator(l, token);
  token->type = T_NAME;
  token->text = (struct text){l->at, size};
  l->at += size;
  return SCONCE_OK;
}

sconce_status lexer_next(struct jlexer *l, struct jtoken *token) {
  for (;;) {
    if (l->pending) {
      *token = (struct jtoken){.type = l->pending, .line = l->line};
      l->pending = 0;
      return SCONCE_OK;
    }
    if (l->mode == LEX_PRINT || l->mode == LEX_TAG) return next_inside(l, token);
    TRY(l->mode == LEX_RAW ? next_raw(l, token) : next_data(l, token));
    if (token->type == T_END || token->text.size) return SCONCE_OK;
  }
}
