/* Composes a kernel's text: directives, the file with a row's replacements, its libraries. */
#include "graph/wgsl.h"

#include "base/checked.h"
#include "base/file.h"
#include "base/os.h"
#include "graph/kernel.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { PARTS_MAX = 64 };

/* The text as a list of pieces; joined once at the end. */
struct pieces {
  struct text part[PARTS_MAX];
  uint32_t n;
};

static sconce_status add(struct pieces *p, struct text part, sconce_error *err) {
  if (part.size == 0) return SCONCE_OK;
  if (p->n == PARTS_MAX) return fail(err, SCONCE_UNSUPPORTED, "more than %d pieces", PARTS_MAX);
  p->part[p->n++] = part;
  return SCONCE_OK;
}

/* The embedded text, or the file's when SCONCE_WGSL_DIR is set. */
static sconce_status source(struct arena *arena, const char *path, const char *embedded,
                            struct text *out, sconce_error *err) {
  char room[OS_ENV_MAX];
  const char *folder = os_env("SCONCE_WGSL_DIR", room, sizeof room);
  *out = text_of(embedded);
  if (!folder || !*folder) return SCONCE_OK;
  char whole[2 * OS_ENV_MAX];
  snprintf(whole, sizeof whole, "%s/%s", folder, path);
  struct span bytes;
  TRY(file_read(arena, whole, &bytes, err));
  *out = bytes.size ? (struct text){(const char *)bytes.data, bytes.size} : text_of("");
  return SCONCE_OK;
}

static bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Skips `word` and the blanks behind it; NULL if the text does not start with it. */
static const char *after(const char *p, const char *end, struct text word) {
  if ((size_t)(end - p) < word.size || memcmp(p, word.data, word.size) != 0) return NULL;
  p += word.size;
  while (p < end && (*p == ' ' || *p == '\t')) p++;
  return p;
}

/* Where the name starts in a line that is "alias NAME …", "const NAME …", "override NAME …" or,
 * inside a function, "let NAME …"; NULL if it is no such line. */
static const char *after_word(const char *line, const char *end) {
  static const char *const words[] = {"alias ", "const ", "override "};
  const char *p;
  for (size_t w = 0; w < sizeof words / sizeof *words; w++)
    if ((p = after(line, end, text_of(words[w])))) return p;
  while (line < end && (*line == ' ' || *line == '\t')) line++;
  return after(line, end, text_of("let "));
}

/* The range of the right-hand side of NAME's definition. */
static bool find_definition(struct text code, struct text name, size_t *from, size_t *to) {
  const char *end = code.data + code.size;
  for (const char *line = code.data; line < end;) {
    const char *eol = memchr(line, '\n', (size_t)(end - line));
    const char *p = after_word(line, end);
    if (p) p = after(p, end, name);
    if (p && !is_name(p[-1] == ' ' ? ' ' : *p)) {
      const char *equals = memchr(p, '=', (size_t)((eol ? eol : end) - p));
      const char *semicolon = equals ? memchr(equals, ';', (size_t)(end - equals)) : NULL;
      if (semicolon) {
        for (equals++; *equals == ' ';) equals++;
        *from = (size_t)(equals - code.data);
        *to = (size_t)(semicolon - code.data);
        return true;
      }
    }
    if (!eol) break;
    line = eol + 1;
  }
  return false;
}

/* Puts other text in place of [from, to) of piece i, which is cut in two. */
static sconce_status splice(struct pieces *p, uint32_t i, size_t from, size_t to, struct text other,
                            sconce_error *err) {
  if (p->n + 2 > PARTS_MAX) return fail(err, SCONCE_UNSUPPORTED, "more than %d pieces", PARTS_MAX);
  memmove(&p->part[i + 3], &p->part[i + 1], (p->n - i - 1) * sizeof p->part[0]);
  const struct text whole = p->part[i];
  p->part[i] = (struct text){whole.data, from};
  p->part[i + 1] = other;
  p->part[i + 2] = (struct text){whole.data + to, whole.size - to};
  p->n += 2;
  return SCONCE_OK;
}

/* Replaces one right-hand side. */
static sconce_status replace(struct pieces *p, struct text name, struct text value,
                             sconce_error *err) {
  for (uint32_t i = 0; i < p->n; i++) {
    size_t from, to;
    if (find_definition(p->part[i], name, &from, &to)) return splice(p, i, from, to, value, err);
  }
  return fail(err, SCONCE_BAD_ARGUMENT, "sets '%.*s', which the shader does not define",
              TEXT(name));
}

static sconce_status add_library(struct arena *arena, struct pieces *p, struct text name,
                                 sconce_error *err) {
  for (const struct wgsl_library *l = wgsl_libraries; l->name; l++) {
    if (!text_is(name, l->name)) continue;
    struct text code;
    TRY(source(arena, l->path, l->text, &code, err));
    return add(p, code, err);
  }
  return fail(err, SCONCE_BAD_ARGUMENT, "uses '%.*s', which is no shader library", TEXT(name));
}

/* The next word of a list; false at its end. */
static bool next_word(const char **list, char separator, struct text *word) {
  const char *p = *list;
  while (*p == separator) p++;
  if (!*p) return false;
  const char *end = p;
  while (*end && *end != separator) end++;
  *word = (struct text){p, (size_t)(end - p)};
  *list = end;
  return true;
}

/* Either the libraries that a row appends, or what it replaces in all of the text. */
static sconce_status apply_words(struct arena *arena, struct pieces *p, const char *set,
                                 bool libraries, sconce_error *err) {
  struct text word;
  while (set && next_word(&set, ' ', &word)) {
    const char *equals = memchr(word.data, '=', word.size);
    if (!equals) return fail(err, SCONCE_BAD_ARGUMENT, "'%.*s' is not NAME=VALUE", TEXT(word));
    struct text name = {word.data, (size_t)(equals - word.data)};
    struct text value = {equals + 1, word.size - name.size - 1};
    if (text_is(name, "use") != libraries) continue;
    TRY(libraries ? add_library(arena, p, value, err) : replace(p, name, value, err));
  }
  return SCONCE_OK;
}

static sconce_status apply_row(struct arena *arena, struct pieces *p, const char *set,
                               sconce_error *err) {
  TRY(apply_words(arena, p, set, true, err));
  return apply_words(arena, p, set, false, err);
}

/* ---- fixed parameters ------------------------------------------------------------------------ */

bool wgsl_next_field(const char **fields, struct wgsl_field *out) {
  const char *colon = strchr(*fields, ':');
  if (!colon) return false;
  *out = (struct wgsl_field){.name = {*fields, (size_t)(colon - *fields)}, .kind = colon[1]};
  const char *end = colon + 2;
  for (; *end >= '0' && *end <= '9'; end++) out->n = out->n * 10 + (uint32_t)(*end - '0');
  if (out->n == 0) out->n = 1;
  *fields = *end ? end + 1 : end;
  return true;
}

static float float_at(const uint8_t *p) {
  float f;
  memcpy(&f, p, sizeof f);
  return f;
}

bool wgsl_can_fix(const struct wgsl *wgsl, const void *params) {
  const uint8_t *p = params;
  struct wgsl_field field;
  for (const char *fields = wgsl->fields; wgsl_next_field(&fields, &field); p += 4 * field.n) {
    if (field.n > 4) return false;
    for (uint32_t i = 0; field.kind == 'f' && i < field.n; i++)
      if (!isfinite(float_at(p + 4 * i))) return false;
  }
  return true;
}

/* Text that is put together: 64 words of at most 26 characters, and types around them. */
struct line {
  char text[2048];
  size_t size;
};

static void put(struct line *l, const char *format, ...) PRINTF_LIKE(2, 3);
static void put(struct line *l, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int n = vsnprintf(l->text + l->size, sizeof l->text - l->size, format, args);
  va_end(args);
  if (n > 0) l->size += (size_t)n;
}

/* 17 digits, so that no reader's rounding leaves the range of f32. */
static void put_float(struct line *l, float value) {
  char text[40];
  snprintf(text, sizeof text, "%.17g", (double)value);
  for (char *c = text; *c; c++)
    if (*c == ',') *c = '.'; /* of the caller's locale */
  put(l, "%sf", text);
}

static void put_word(struct line *l, char kind, const uint8_t *p) {
  if (kind == 'f')
    put_float(l, float_at(p));
  else if (kind == 'i')
    put(l, "i32(%" PRIu32 "u)", load_u32(p));
  else
    put(l, "%" PRIu32 "u", load_u32(p));
}

/* "const p = Params(1u, vec4<u32>(2u, 0u, 0u, 0u), 0.5f);" */
static void put_params(struct line *l, const struct kernel *kernel) {
  const uint8_t *p = kernel->fixed;
  struct wgsl_field field;
  const char *comma = "";
  put(l, "const p = Params(");
  for (const char *fields = kernel->wgsl->fields; wgsl_next_field(&fields, &field); comma = ", ") {
    put(l, "%s", comma);
    if (field.n > 1) put(l, "vec%u<%c32>(", field.n, field.kind);
    for (uint32_t i = 0; i < field.n; i++, p += 4) {
      put(l, "%s", i ? ", " : "");
      put_word(l, field.kind, p);
    }
    if (field.n > 1) put(l, ")");
  }
  put(l, ");");
}

/* The range of "@group(0) @binding(5) var<uniform> p: Params;". */
static bool find_params(struct text code, size_t *from, size_t *to) {
  static const char word[] = "var<uniform>";
  for (size_t at = 0; at + sizeof word <= code.size; at++) {
    if (memcmp(code.data + at, word, sizeof word - 1) != 0) continue;
    const char *end = memchr(code.data + at, ';', code.size - at);
    for (*from = at; *from > 0 && code.data[*from - 1] != '\n';) --*from;
    *to = end ? (size_t)(end + 1 - code.data) : code.size;
    return true;
  }
  return false;
}

static sconce_status fix_params(struct arena *arena, struct pieces *p, const struct kernel *kernel,
                                sconce_error *err) {
  struct line line = {.size = 0};
  put_params(&line, kernel);
  const char *copy = arena_copy_text(arena, line.text, line.size);
  if (!copy) return fail(err, SCONCE_NO_MEMORY, "no memory for %zu bytes of WGSL", line.size);
  for (uint32_t i = 0; i < p->n; i++) {
    size_t from, to;
    if (find_params(p->part[i], &from, &to))
      return splice(p, i, from, to, (struct text){copy, line.size}, err);
  }
  return fail(err, SCONCE_BAD_ARGUMENT, "has no parameters to fix");
}

static sconce_status compose(struct arena *arena, const struct kernel *kernel,
                             enum wgsl_dialect dialect, const char **text, sconce_error *err) {
  struct pieces p = {.n = 0};
  const struct wgsl *w = kernel->wgsl;
  if (kernel->needs & NEEDS_F16) TRY(add(&p, text_of("enable f16;\n"), err));
  const bool tint = dialect == WGSL_TINT || dialect == WGSL_TINT_NO_HALVES;
  if (tint && kernel->needs & NEEDS_SUBGROUPS) TRY(add(&p, text_of("enable subgroups;\n"), err));
  /* The analysis cannot see that a subgroup's number is the same in all its threads. */
  if (kernel->needs & NEEDS_MATRIX)
    TRY(add(&p,
            text_of("enable chromium_experimental_subgroup_matrix;\n"
                    "diagnostic(off, chromium.subgroup_matrix_uniformity);\n"),
            err));
  struct text code, library;
  TRY(source(arena, w->path, w->text, &code, err));
  TRY(add(&p, code, err));
  for (const char *uses = w->uses; next_word(&uses, ' ', &library);)
    TRY(add_library(arena, &p, library, err));
  if (dialect == WGSL_NAGA_NO_HALVES || dialect == WGSL_TINT_NO_HALVES)
    TRY(add_library(arena, &p, text_of("halves_by_hand"), err));
  TRY(apply_row(arena, &p, kernel->set, err));
  if (kernel->fixed) TRY(fix_params(arena, &p, kernel, err));
  size_t size = 1;
  for (uint32_t i = 0; i < p.n; i++) size += p.part[i].size;
  char *out = arena_new(arena, char, size);
  if (!out) return fail(err, SCONCE_NO_MEMORY, "no memory for %zu bytes of WGSL", size);
  *text = out;
  for (uint32_t i = 0; i < p.n; i++) {
    memcpy(out, p.part[i].data, p.part[i].size);
    out += p.part[i].size;
  }
  return SCONCE_OK;
}

sconce_status wgsl_compose(struct arena *arena, const struct kernel *kernel,
                           enum wgsl_dialect dialect, const char **text, sconce_error *err) {
  sconce_status status = compose(arena, kernel, dialect, text, err);
  if (status != SCONCE_OK) error_prefix(err, "kernel %s/%s: ", kernel->wgsl->name, kernel->name);
  return status;
}

/* "64", "64u", or the name of an override or const. */
static bool number_of(struct text code, struct text word, uint32_t *out) {
  size_t from, to;
  if (find_definition(code, word, &from, &to)) word = (struct text){code.data + from, to - from};
  uint64_t n = 0;
  size_t digits = 0;
  for (; digits < word.size && digits < 9; digits++) {
    if (word.data[digits] < '0' || word.data[digits] > '9') break;
    n = n * 10 + (uint64_t)(word.data[digits] - '0');
  }
  *out = (uint32_t)n;
  return digits > 0;
}

bool wgsl_workgroup_size(const char *text, uint32_t size[3]) {
  static const char attribute[] = "@workgroup_size(";
  const char *p = strstr(text, attribute);
  if (!p) return false;
  p += sizeof attribute - 1;
  const char *end = strchr(p, ')');
  if (!end) return false;
  size[0] = size[1] = size[2] = 1;
  for (int axis = 0; axis < 3 && p < end; axis++) {
    while (p < end && (*p == ' ' || *p == ',')) p++;
    const char *start = p;
    while (p < end && is_name(*p)) p++;
    if (p == start) break;
    if (!number_of(text_of(text), (struct text){start, (size_t)(p - start)}, &size[axis]))
      return false;
  }
  return true;
}
