/* Putting texts together: see text.h. Every byte that is copied brings its mark along. */
#include "llm/jinja/text.h"

/* ---- the buffer ------------------------------------------------------------------------------ */

static sconce_status reserve(struct jrun *run, struct jbuffer *b, size_t more) {
  if (more > run->output - b->n)
    return fail(run->err, SCONCE_BAD_FILE, "the template writes more than %zu bytes", run->output);
  if (more <= b->cap - b->n) return SCONCE_OK;
  size_t cap = 2 * (b->n + more) + 32;
  char *data = j_new(run, char, cap);
  uint8_t *marks = b->marks ? j_new(run, uint8_t, cap) : NULL;
  if (!data || (b->marks && !marks)) return J_NO_ROOM;
  if (b->n) memcpy(data, b->data, b->n);
  if (marks && b->n) memcpy(marks, b->marks, b->n);
  *b = (struct jbuffer){data, marks, b->n, cap, b->own};
  return j_spend(run, b->n / 32);
}

/* From here on every byte has a mark of its own. */
static sconce_status mix(struct jrun *run, struct jbuffer *b) {
  if (b->marks) return SCONCE_OK;
  b->marks = j_new(run, uint8_t, b->cap);
  if (!b->marks) return J_NO_ROOM;
  memset(b->marks, b->own, b->n);
  return SCONCE_OK;
}

sconce_status j_put(struct jrun *run, struct jbuffer *b, struct text text, bool own) {
  if (text.size == 0) return SCONCE_OK;
  TRY(reserve(run, b, text.size));
  if (b->n == 0) b->own = own;
  if (b->own != own) TRY(mix(run, b));
  if (b->marks) memset(b->marks + b->n, own, text.size);
  memcpy(b->data + b->n, text.data, text.size);
  b->n += text.size;
  return j_spend(run, text.size / 32);
}

sconce_status j_put_string(struct jrun *run, struct jbuffer *b, const struct jvalue *string) {
  if (!string->marks) return j_put(run, b, j_text(string), string->own);
  TRY(reserve(run, b, string->size));
  TRY(mix(run, b));
  memcpy(b->marks + b->n, string->marks, string->size);
  memcpy(b->data + b->n, string->text, string->size);
  b->n += string->size;
  return j_spend(run, string->size / 32);
}

sconce_status j_put_code(struct jrun *run, struct jbuffer *b, uint32_t code, bool own) {
  char bytes[4];
  return j_put(run, b, (struct text){bytes, utf8_encode(code, bytes)}, own);
}

sconce_status j_put_spaces(struct jrun *run, struct jbuffer *b, size_t n, bool own) {
  static const char spaces[] = "                                ";
  for (size_t part; n; n -= part) {
    part = n < sizeof spaces - 1 ? n : sizeof spaces - 1;
    TRY(j_put(run, b, (struct text){spaces, part}, own));
  }
  return SCONCE_OK;
}

struct jvalue j_taken(const struct jbuffer *b) {
  struct jvalue v = j_string((struct text){b->n ? b->data : "", b->n}, b->n ? b->own : true);
  v.marks = b->marks;
  return v;
}

/* ---- rewriting ------------------------------------------------------------------------------- */

sconce_status j_replace(struct jrun *run, const struct jvalue *string, const struct jvalue *old,
                        const struct jvalue *new, int64_t most, struct jvalue *out) {
  struct jbuffer b = {0};
  size_t from = 0, at;
  if (most < 0) most = -1; /* all of them */
  for (; most != 0; most -= most > 0) {
    if (old->size == 0) { /* between all characters, and at both ends */
      TRY(j_spend(run, 1));
      TRY(j_put_string(run, &b, new));
      if (from == string->size) break;
      struct jvalue one = j_part(string, from, j_character_size(string->text + from));
      TRY(j_put_string(run, &b, &one));
      from += one.size;
      continue;
    }
    TRY(j_find(run, (struct text){string->text + from, string->size - from}, j_text(old), &at));
    if (at == SIZE_MAX) break;
    struct jvalue before = j_part(string, from, at);
    TRY(j_put_string(run, &b, &before));
    TRY(j_put_string(run, &b, new));
    from += at + old->size;
  }
  struct jvalue rest = j_part(string, from, string->size - from);
  TRY(j_put_string(run, &b, &rest));
  *out = j_taken(&b);
  return SCONCE_OK;
}

/* Does a word start behind this character? */
static bool ends_word(uint32_t code, enum jcase how) {
  if (how == JC_WORDS)
    return j_is_space(code) || (code < 0x80 && code && strchr("-({[<", (int)code));
  uint32_t mapped[3];
  return unicode_upper(code, mapped) == 1 && mapped[0] == code &&
         unicode_lower(code, mapped) == 1 && mapped[0] == code;
}

/* A capital sigma at `at` that ends a word has a small letter of its own. */
static bool is_final_sigma(const struct jvalue *string, uint32_t at) {
  struct text text = j_text(string);
  size_t before = at, behind = at + 2;
  if (at == 0) return false;
  do before--;
  while (before && ((uint8_t)text.data[before] & 0xc0) == 0x80);
  const char *end = text.data + text.size;
  if (!unicode_is_letter(utf8_decode(text.data + before, end).code)) return false;
  return behind == text.size || !unicode_is_letter(utf8_decode(text.data + behind, end).code);
}

sconce_status j_change_case(struct jrun *run, const struct jvalue *string, enum jcase how,
                            struct jvalue *out) {
  struct jbuffer b = {0};
  bool start = true;
  TRY(j_spend(run, string->size / 8));
  for (uint32_t at = 0; at < string->size;) {
    struct utf8_char c = utf8_decode(string->text + at, string->text + string->size);
    bool own = string->marks ? string->marks[at] : string->own;
    bool up = how == JC_UPPER || (how != JC_LOWER && start);
    uint32_t codes[3], n = up ? unicode_upper(c.code, codes) : unicode_lower(c.code, codes);
    if (c.code == 0x3a3 && !up && is_final_sigma(string, at)) codes[0] = 0x3c2;
    for (uint32_t i = 0; i < n; i++) TRY(j_put_code(run, &b, codes[i], own));
    start = how >= JC_TITLE && ends_word(c.code, how);
    at += c.size;
  }
  *out = j_taken(&b);
  out->kind = string->kind;
  return SCONCE_OK;
}

sconce_status j_escape(struct jrun *run, const struct jvalue *string, struct jvalue *out) {
  static const struct {
    char byte;
    const char *text;
  } names[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'\'', "&#39;"}, {'"', "&#34;"}};
  struct jbuffer b = {0};
  size_t from = 0;
  if (string->kind) {
    *out = *string;
    return SCONCE_OK;
  }
  for (size_t at = 0; at < string->size; at++)
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
      if (string->text[at] != names[i].byte) continue;
      struct jvalue before = j_part(string, from, at - from);
      TRY(j_put_string(run, &b, &before));
      TRY(j_put(run, &b, text_of(names[i].text), string->marks ? string->marks[at] : string->own));
      from = at + 1;
    }
  struct jvalue rest = j_part(string, from, string->size - from);
  TRY(j_put_string(run, &b, &rest));
  *out = j_taken(&b);
  out->kind = 1;
  return j_spend(run, string->size / 8);
}

sconce_status j_indent(struct jrun *run, const struct jvalue *string, const struct jvalue *by,
                       bool first, bool blank, struct jvalue *out) {
  struct jbuffer ended = {0}, b = {0};
  struct jvalue lines;
  TRY(j_put_string(run, &ended, string));
  TRY(j_put(run, &ended, text_of("\n"), true)); /* so that an empty last line counts */
  *out = j_taken(&ended);
  TRY(j_split_lines(run, out, false, &lines));
  if (first) TRY(j_put_string(run, &b, by));
  for (size_t i = 0; i < lines.list->n; i++) {
    const struct jvalue *line = &lines.list->items[i];
    if (i) TRY(j_put(run, &b, text_of("\n"), true));
    if (i && (blank || line->size)) TRY(j_put_string(run, &b, by));
    TRY(j_put_string(run, &b, line));
  }
  *out = j_taken(&b);
  out->kind = string->kind;
  return SCONCE_OK;
}
