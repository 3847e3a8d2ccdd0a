/* if, for, and which statement a tag is: see block.h. */
#include "llm/jinja/block.h"

/* ---- if -------------------------------------------------------------------------------------- */

static sconce_status parse_if_test(struct jparser *p, struct jblock *b) {
  uint32_t at;
  TRY(parse_tuple(p, false));
  TRY(emit(p, (struct jop){.code = OP_JUMP_FALSE}, &at));
  b->next = at;
  return SCONCE_OK;
}

static sconce_status tag_if(struct jparser *p) {
  struct jblock *b = NULL;
  TRY(open_block(p, B_IF, &b));
  return parse_if_test(p, b);
}

static sconce_status tag_elif(struct jparser *p) {
  struct jblock *b = NULL;
  TRY(innermost_block(p, "elif", B_IF, &b));
  if (b->has_else) return parse_fail(p, "'elif' behind 'else'");
  TRY(chain_jump(p, &b->exits));
  patch_jump(p, (uint32_t)b->next);
  return parse_if_test(p, b);
}

static sconce_status end_loop(struct jparser *p, struct jblock *b);

static sconce_status tag_else(struct jparser *p) {
  struct jblock *b = p->n_blocks ? &p->blocks[p->n_blocks - 1] : NULL;
  if (!b || b->kind != B_FOR) TRY(innermost_block(p, "else", B_IF, &b));
  if (b->has_else) return parse_fail(p, "a second 'else'");
  b->has_else = true;
  if (b->kind == B_FOR) TRY(end_loop(p, b));
  TRY(chain_jump(p, &b->exits));
  patch_jump(p, (uint32_t)b->next);
  b->next = -1;
  return SCONCE_OK;
}

static sconce_status tag_endif(struct jparser *p) {
  struct jblock *b = NULL;
  TRY(innermost_block(p, "endif", B_IF, &b));
  if (b->next >= 0) patch_jump(p, (uint32_t)b->next);
  patch_chain(p, b->exits);
  p->n_blocks--;
  return SCONCE_OK;
}

/* ---- for ------------------------------------------------------------------------------------- */

/* for … if test: a loop of its own finds the items that pass. */
static sconce_status parse_sift(struct jparser *p, const struct jcut *target) {
  uint32_t sift, top;
  TRY(advance(p));
  TRY(emit(p, (struct jop){.code = OP_SIFT}, &sift));
  top = p->program->n_ops;
  TRY(paste_code(p, target));
  TRY(parse_expression(p));
  TRY(emit_op(p, OP_SIFT_NEXT, (int32_t)top - (int32_t)p->program->n_ops));
  patch_jump(p, sift);
  return SCONCE_OK;
}

static sconce_status tag_for(struct jparser *p) {
  struct jblock *b = NULL;
  struct jcut target;
  uint32_t at;
  TRY(open_block(p, B_FOR, &b));
  TRY(parse_target(p, false, &target));
  if (!at_name(p, "in")) return parse_fail_token(p, "'in'");
  TRY(advance(p));
  TRY(parse_tuple(p, false));
  if (at_name(p, "if")) TRY(parse_sift(p, &target));
  if (at_name(p, "recursive")) return parse_fail(p, "recursive loops are not supported");
  TRY(emit(p, (struct jop){.code = OP_FOR}, &at));
  b->next = at;
  b->top = p->program->n_ops;
  return paste_code(p, &target);
}

/* The end of the turns; what follows is for a loop without any, or behind it. */
static sconce_status end_loop(struct jparser *p, struct jblock *b) {
  patch_chain(p, b->continues);
  b->continues = -1;
  return emit_op(p, OP_FOR_NEXT, (int32_t)b->top - (int32_t)p->program->n_ops);
}

static sconce_status tag_endfor(struct jparser *p) {
  struct jblock *b = NULL;
  TRY(innermost_block(p, "endfor", B_FOR, &b));
  if (!b->has_else) {
    TRY(end_loop(p, b));
    patch_jump(p, (uint32_t)b->next);
  }
  patch_chain(p, b->exits);
  p->n_blocks--;
  return SCONCE_OK;
}

/* Leaves what was opened inside of the innermost loop. */
static sconce_status leave_to_loop(struct jparser *p, const char *tag, struct jblock **loop) {
  for (uint32_t i = p->n_blocks; i-- > 0;) {
    struct jblock *b = &p->blocks[i];
    *loop = b;
    if (b->kind == B_FOR && !b->has_else) return SCONCE_OK;
    if (b->kind == B_MACRO || b->kind == B_CALL) break;
    if (b->kind == B_SET || b->kind == B_FILTER) {
      TRY(emit_op(p, OP_CAPTURED, 0));
      TRY(emit_op(p, OP_DROP, 0));
    }
    if (b->kind >= B_SET) TRY(emit_op(p, OP_SCOPE_END, 0));
  }
  return parse_fail(p, "'%s' outside of a loop", tag);
}

static sconce_status tag_break(struct jparser *p) {
  struct jblock *loop = NULL;
  TRY(leave_to_loop(p, "break", &loop));
  TRY(emit_op(p, OP_FOR_BREAK, 0));
  return chain_jump(p, &loop->exits);
}

static sconce_status tag_continue(struct jparser *p) {
  struct jblock *loop = NULL;
  TRY(leave_to_loop(p, "continue", &loop));
  return chain_jump(p, &loop->continues);
}

/* ---- the table ------------------------------------------------------------------------------ */

static const struct {
  const char *name;
  sconce_status (*parse)(struct jparser *p);
} tags[] = {
    {"if", tag_if},
    {"elif", tag_elif},
    {"else", tag_else},
    {"endif", tag_endif},
    {"for", tag_for},
    {"endfor", tag_endfor},
    {"set", tag_set},
    {"endset", tag_endset},
    {"macro", tag_macro},
    {"endmacro", tag_endmacro},
    {"call", tag_call},
    {"endcall", tag_endcall},
    {"filter", tag_filter},
    {"endfilter", tag_endfilter},
    {"with", tag_with},
    {"endwith", tag_endwith},
    {"break", tag_break},
    {"continue", tag_continue},
    {"generation", tag_generation},
    {"endgeneration", tag_endgeneration},
};

sconce_status parse_statement(struct jparser *p, struct text name, uint32_t line) {
  for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
    if (text_is(name, tags[i].name)) return tags[i].parse(p);
  return parse_fail_at(p, line, "unknown statement '%.*s'", TEXT(name));
}
