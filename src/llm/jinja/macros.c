/* Statements with a text or a scope of their own: macro, call, set, filter, with, generation. */
#include "llm/jinja/block.h"

/* ---- macro and call -------------------------------------------------------------------------- */

/* (a, b=1): names, and code that fills in what was not given. */
static sconce_status parse_parameters(struct jparser *p, int32_t macro) {
  uint32_t names[ARGUMENTS_MAX], at;
  uint16_t n = 0;
  bool defaults = false;
  TRY(expect_bracket(p, '('));
  for (; !at_bracket(p, ')'); n++) {
    struct text name;
    int32_t id;
    if (n) TRY(expect_type(p, T_COMMA, "','"));
    if (n == ARGUMENTS_MAX) return parse_fail(p, "more than %d parameters", ARGUMENTS_MAX);
    TRY(expect_identifier(p, &name));
    TRY(intern_name(p, name, &id));
    names[n] = (uint32_t)id;
    if (at_type(p, T_ASSIGN)) {
      defaults = true;
      TRY(advance(p));
      TRY(emit(p, (struct jop){.code = OP_DEFAULT, .arg = 0, .count = n}, &at));
      TRY(parse_expression(p));
      TRY(emit_op(p, OP_STORE, id));
      patch_jump(p, at);
    } else if (defaults) {
      return parse_fail(p, "a parameter without a default behind one with it");
    }
  }
  TRY(advance(p));
  uint32_t *copy = arena_new(p->arena, uint32_t, n);
  if (!copy) return fail(p->err, SCONCE_NO_MEMORY, "out of memory for a template");
  memcpy(copy, names, n * sizeof *names);
  p->program->macros[macro].parameters = copy;
  p->program->macros[macro].n_parameters = n;
  return SCONCE_OK;
}

sconce_status tag_macro(struct jparser *p) {
  struct jblock *b = NULL;
  struct text name;
  TRY(open_block(p, B_MACRO, &b));
  b->macro = -1;
  TRY(expect_identifier(p, &name));
  TRY(intern_name(p, name, &b->name));
  uint32_t at; /* the template itself jumps over what runs when the macro is called */
  TRY(emit(p, (struct jop){.code = OP_JUMP}, &at));
  b->next = at;
  TRY(add_macro(p, (struct jmacro_code){.name = name, .entry = p->program->n_ops}, &b->macro));
  return parse_parameters(p, b->macro);
}

sconce_status tag_endmacro(struct jparser *p) {
  struct jblock *b = NULL;
  TRY(innermost_block(p, "endmacro", B_MACRO, &b));
  TRY(emit_op(p, OP_RETURN, 0));
  patch_jump(p, (uint32_t)b->next);
  p->n_blocks--;
  TRY(emit_op(p, OP_MACRO, b->macro));
  return emit_op(p, OP_STORE, b->name);
}

/* call(a) name(b): the body is a macro that name gets as its caller. */
sconce_status tag_call(struct jparser *p) {
  struct jblock *b = NULL;
  struct jcut parameters = {0};
  TRY(open_block(p, B_CALL, &b));
  b->macro = -1;
  uint32_t from = p->program->n_ops, at;
  int32_t index;
  TRY(add_macro(p, (struct jmacro_code){.name = text_of("caller")}, &index));
  if (at_bracket(p, '(')) TRY(parse_parameters(p, index));
  TRY(cut_code(p, from, &parameters));
  TRY(parse_expression(p));
  if (p->program->ops[p->program->n_ops - 1].code != OP_CALL)
    return parse_fail(p, "'call' without a call");
  TRY(cut_code(p, from, &b->filters));
  TRY(emit(p, (struct jop){.code = OP_JUMP}, &at));
  b->next = at;
  b->macro = index;
  p->program->macros[index].entry = p->program->n_ops;
  return paste_code(p, &parameters);
}

sconce_status tag_endcall(struct jparser *p) {
  struct jblock *b = NULL;
  TRY(innermost_block(p, "endcall", B_CALL, &b));
  TRY(emit_op(p, OP_RETURN, 0));
  patch_jump(p, (uint32_t)b->next);
  p->n_blocks--;
  struct jop call = b->filters.ops[--b->filters.n];
  TRY(paste_code(p, &b->filters));
  if (call.count + call.flag == ARGUMENTS_MAX)
    return parse_fail(p, "more than %d arguments", ARGUMENTS_MAX);
  TRY(emit_constant(p, OP_CONSTANT, j_string(text_of("caller"), true)));
  TRY(emit_op(p, OP_MACRO, b->macro));
  call.flag++;
  TRY(emit(p, call, NULL));
  return emit_op(p, OP_PRINT, 0);
}

/* ---- set, with, filter ----------------------------------------------------------------------- */

static sconce_status begin_capture(struct jparser *p) {
  TRY(emit_op(p, OP_SCOPE, 0));
  return emit_op(p, OP_CAPTURE, 0);
}

static sconce_status end_capture(struct jparser *p, const struct jblock *b) {
  TRY(emit_op(p, OP_CAPTURED, 0));
  TRY(emit_op(p, OP_SCOPE_END, 0));
  p->n_blocks--;
  return paste_code(p, &b->filters);
}

sconce_status tag_set(struct jparser *p) {
  struct jcut target;
  struct jblock *b = NULL;
  TRY(parse_target(p, true, &target));
  if (at_type(p, T_ASSIGN)) {
    TRY(advance(p));
    TRY(parse_tuple(p, true));
    return paste_code(p, &target);
  }
  TRY(open_block(p, B_SET, &b));
  b->target = target;
  uint32_t from = p->program->n_ops;
  TRY(parse_filters(p, false));
  TRY(cut_code(p, from, &b->filters));
  return begin_capture(p);
}

sconce_status tag_endset(struct jparser *p) {
  struct jblock *b = NULL;
  TRY(innermost_block(p, "endset", B_SET, &b));
  TRY(end_capture(p, b));
  return paste_code(p, &b->target);
}

sconce_status tag_filter(struct jparser *p) {
  struct jblock *b = NULL;
  TRY(open_block(p, B_FILTER, &b));
  uint32_t from = p->program->n_ops;
  TRY(parse_filters(p, true));
  TRY(cut_code(p, from, &b->filters));
  return begin_capture(p);
}

sconce_status tag_endfilter(struct jparser *p) {
  struct jblock *b = NULL;
  TRY(innermost_block(p, "endfilter", B_FILTER, &b));
  TRY(end_capture(p, b));
  return emit_op(p, OP_PRINT, 0);
}

/* All values are computed before the first name is set. */
sconce_status tag_with(struct jparser *p) {
  struct jblock *b = NULL;
  struct jcut targets[32];
  size_t n = 0;
  TRY(open_block(p, B_WITH, &b));
  while (!at_type(p, T_TAG_END)) {
    if (n) TRY(expect_type(p, T_COMMA, "','"));
    if (n == sizeof targets / sizeof *targets) return parse_fail(p, "more than %zu names", n);
    TRY(parse_target(p, false, &targets[n++]));
    TRY(expect_type(p, T_ASSIGN, "'='"));
    TRY(parse_expression(p));
  }
  TRY(emit_op(p, OP_SCOPE, 0));
  while (n) TRY(paste_code(p, &targets[--n]));
  return SCONCE_OK;
}

sconce_status tag_endwith(struct jparser *p) {
  struct jblock *b = NULL;
  TRY(innermost_block(p, "endwith", B_WITH, &b));
  p->n_blocks--;
  return emit_op(p, OP_SCOPE_END, 0);
}

/* Marks what an assistant wrote, for training; here it only is a scope. */
sconce_status tag_generation(struct jparser *p) {
  struct jblock *b = NULL;
  TRY(open_block(p, B_GENERATION, &b));
  return emit_op(p, OP_SCOPE, 0);
}

sconce_status tag_endgeneration(struct jparser *p) {
  struct jblock *b = NULL;
  TRY(innermost_block(p, "endgeneration", B_GENERATION, &b));
  p->n_blocks--;
  return emit_op(p, OP_SCOPE_END, 0);
}
