/* What the two halves of the parser share: code, constants, names, tokens. See code.h. */
#include "llm/jinja/code.h"

#include <stdarg.h>
#include <stdio.h>

static sconce_status out_of_memory(const struct jparser *p) {
  return fail(p->err, SCONCE_NO_MEMORY, "out of memory for a template");
}

sconce_status parse_fail_at(const struct jparser *p, uint32_t line, const char *format, ...) {
  char text[400];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return fail(p->err, SCONCE_BAD_FILE, "line %u: %s", line, text);
}

sconce_status parse_fail_token(const struct jparser *p, const char *want) {
  static const char *const kinds[] = {[T_END] = "the end of the template",
                                      [T_DATA] = "text",
                                      [T_PRINT] = "{{",
                                      [T_PRINT_END] = "}}",
                                      [T_TAG] = "{%",
                                      [T_TAG_END] = "%}",
                                      [T_STRING] = "a text",
                                      [T_INT] = "a number",
                                      [T_FLOAT] = "a number"};
  const struct jtoken *t = &p->now;
  const char *kind = t->type < sizeof kinds / sizeof *kinds ? kinds[t->type] : NULL;
  if (kind) return parse_fail(p, "expected %s, not %s", want, kind);
  return parse_fail(p, "expected %s, not '%.*s'", want, TEXT(t->text));
}

void *grow_array(struct arena *arena, void *old, size_t n, size_t *cap, size_t size) {
  if (n < *cap) return old;
  size_t more = *cap ? 2 * *cap : 16;
  void *array = arena_alloc(arena, more, size, _Alignof(max_align_t));
  if (!array) return NULL;
  if (n) memcpy(array, old, n * size);
  *cap = more;
  return array;
}

/* ---- code ------------------------------------------------------------------------------------ */

sconce_status emit(struct jparser *p, struct jop op, uint32_t *at) {
  struct jinja_program *g = p->program;
  struct jop *ops = grow_array(p->arena, g->ops, g->n_ops, &p->cap_ops, sizeof op);
  if (!ops) return out_of_memory(p);
  g->ops = ops;
  op.line = p->now.line;
  if (at) *at = g->n_ops;
  g->ops[g->n_ops++] = op;
  return SCONCE_OK;
}

sconce_status emit_op(struct jparser *p, enum jop_code code, int32_t arg) {
  return emit(p, (struct jop){.code = (uint8_t)code, .arg = arg}, NULL);
}

sconce_status emit_counted(struct jparser *p, enum jop_code code, size_t count) {
  if (count > UINT16_MAX) return parse_fail(p, "%zu values in a row", count);
  return emit(p, (struct jop){.code = (uint8_t)code, .count = (uint16_t)count}, NULL);
}

sconce_status emit_constant(struct jparser *p, enum jop_code code, struct jvalue v) {
  int32_t index = 0;
  TRY(add_constant(p, v, &index));
  return emit_op(p, code, index);
}

void patch_jump(struct jparser *p, uint32_t at) {
  p->program->ops[at].arg = (int32_t)(p->program->n_ops - at);
}

sconce_status cut_code(struct jparser *p, uint32_t from, struct jcut *cut) {
  struct jinja_program *g = p->program;
  cut->n = g->n_ops - from;
  p->moved += cut->n;
  if (p->moved > MOVED_MAX) return parse_fail(p, "conditions in conditions take too long to read");
  cut->ops = arena_new(p->arena, struct jop, cut->n);
  if (!cut->ops) return out_of_memory(p);
  if (cut->n) memcpy(cut->ops, g->ops + from, cut->n * sizeof *cut->ops);
  g->n_ops = from;
  return SCONCE_OK;
}

sconce_status paste_code(struct jparser *p, const struct jcut *cut) {
  for (uint32_t i = 0; i < cut->n; i++) {
    uint32_t at = 0;
    TRY(emit(p, cut->ops[i], &at));
    p->program->ops[at].line = cut->ops[i].line;
  }
  return SCONCE_OK;
}

sconce_status add_constant(struct jparser *p, struct jvalue v, int32_t *index) {
  struct jinja_program *g = p->program;
  struct jvalue *constants =
      grow_array(p->arena, g->constants, g->n_constants, &p->cap_constants, sizeof v);
  if (!constants) return out_of_memory(p);
  g->constants = constants;
  *index = (int32_t)g->n_constants;
  g->constants[g->n_constants++] = v;
  return SCONCE_OK;
}

sconce_status intern_name(struct jparser *p, struct text name, int32_t *index) {
  struct jinja_program *g = p->program;
  for (uint32_t i = 0; i < g->n_names; i++) {
    if (!text_equal(g->names[i], name)) continue;
    *index = (int32_t)i;
    return SCONCE_OK;
  }
  if (g->n_names == NAMES_MAX) return parse_fail(p, "more than %d names", NAMES_MAX);
  struct text *names = grow_array(p->arena, g->names, g->n_names, &p->cap_names, sizeof name);
  if (!names) return out_of_memory(p);
  g->names = names;
  *index = (int32_t)g->n_names;
  g->names[g->n_names++] = name;
  return SCONCE_OK;
}

sconce_status add_macro(struct jparser *p, struct jmacro_code macro, int32_t *index) {
  struct jinja_program *g = p->program;
  struct jmacro_code *macros =
      grow_array(p->arena, g->macros, g->n_macros, &p->cap_macros, sizeof macro);
  if (!macros) return out_of_memory(p);
  g->macros = macros;
  *index = (int32_t)g->n_macros;
  g->macros[g->n_macros++] = macro;
  return SCONCE_OK;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

sconce_status advance(struct jparser *p) {
  if (!p->has_ahead) return lexer_next(&p->lexer, &p->now);
  p->now = p->ahead;
  p->has_ahead = false;
  return SCONCE_OK;
}

sconce_status look_ahead(struct jparser *p, const struct jtoken **token) {
  if (!p->has_ahead) TRY(lexer_next(&p->lexer, &p->ahead));
  p->has_ahead = true;
  *token = &p->ahead;
  return SCONCE_OK;
}

bool at_name(const struct jparser *p, const char *name) {
  return p->now.type == T_NAME && text_is(p->now.text, name);
}

bool at_bracket(const struct jparser *p, char bracket) {
  return (p->now.type == T_OPEN || p->now.type == T_CLOSE) && *p->now.text.data == bracket;
}

sconce_status skip_name(struct jparser *p, const char *name, bool *skipped) {
  *skipped = at_name(p, name);
  return *skipped ? advance(p) : SCONCE_OK;
}

sconce_status expect_bracket(struct jparser *p, char bracket) {
  char want[4] = {'\'', bracket, '\'', 0};
  if (!at_bracket(p, bracket)) return parse_fail_token(p, want);
  return advance(p);
}

sconce_status expect_type(struct jparser *p, enum jtoken_type type, const char *what) {
  if (!at_type(p, type)) return parse_fail_token(p, what);
  return advance(p);
}

sconce_status expect_identifier(struct jparser *p, struct text *name) {
  if (!at_type(p, T_NAME)) return parse_fail_token(p, "a name");
  *name = p->now.text;
  return advance(p);
}
