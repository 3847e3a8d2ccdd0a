/* Open statements and assignment targets, for the parser: see block.h. */
#include "llm/jinja/block.h"

/* ---- blocks ---------------------------------------------------------------------------------- */

sconce_status open_block(struct jparser *p, enum block_kind kind, struct jblock **out) {
  if (p->n_blocks == BLOCKS_MAX)
    return parse_fail(p, "statements nested deeper than %d", BLOCKS_MAX);
  *out = &p->blocks[p->n_blocks++];
  **out = (struct jblock){
      .kind = (uint8_t)kind, .line = p->now.line, .next = -1, .exits = -1, .continues = -1};
  return SCONCE_OK;
}

const char *const block_names[] = {
    [B_IF] = "if",   [B_FOR] = "for",       [B_MACRO] = "macro", [B_CALL] = "call",
    [B_SET] = "set", [B_FILTER] = "filter", [B_WITH] = "with",   [B_GENERATION] = "generation"};

sconce_status innermost_block(struct jparser *p, const char *tag, enum block_kind kind,
                              struct jblock **out) {
  *out = p->n_blocks ? &p->blocks[p->n_blocks - 1] : NULL;
  if (!*out) return parse_fail(p, "'%s' without anything open", tag);
  if ((*out)->kind != kind)
    return parse_fail(p, "'%s' where the '%s' of line %u is open", tag, block_names[(*out)->kind],
                      (*out)->line);
  return SCONCE_OK;
}

sconce_status chain_jump(struct jparser *p, int64_t *chain) {
  uint32_t at;
  TRY(emit(p, (struct jop){.code = OP_JUMP, .arg = (int32_t)*chain}, &at));
  *chain = at;
  return SCONCE_OK;
}

void patch_chain(struct jparser *p, int64_t chain) {
  while (chain >= 0) {
    uint32_t at = (uint32_t)chain;
    chain = p->program->ops[at].arg;
    patch_jump(p, at);
  }
}

/* A macro that mentions these gets them; others refuse more arguments than they have names for. */
void note_name(struct jparser *p, uint32_t name) {
  const struct jinja_program *g = p->program;
  for (uint32_t i = p->n_blocks; i-- > 0;) {
    if (p->blocks[i].kind != B_MACRO && p->blocks[i].kind != B_CALL) continue;
    if (p->blocks[i].macro < 0) continue; /* its call, not its body */
    struct jmacro_code *macro = &g->macros[p->blocks[i].macro];
    macro->takes_caller |= name == g->name_caller;
    macro->takes_varargs |= name == g->name_varargs;
    macro->takes_kwargs |= name == g->name_kwargs;
    return;
  }
}

/* ---- targets --------------------------------------------------------------------------------- */

static sconce_status parse_target_name(struct jparser *p, bool with_member) {
  struct text name, member;
  int32_t index, of;
  TRY(expect_identifier(p, &name));
  TRY(intern_name(p, name, &index));
  if (!with_member || !at_type(p, T_DOT)) return emit_op(p, OP_STORE, index);
  TRY(advance(p));
  TRY(expect_identifier(p, &member));
  TRY(intern_name(p, member, &of));
  return emit(p, (struct jop){.code = OP_STORE_MEMBER, .count = (uint16_t)of, .arg = index}, NULL);
}

sconce_status parse_target(struct jparser *p, bool with_member, struct jcut *cut) {
  uint32_t from = p->program->n_ops;
  bool bracket = at_bracket(p, '(');
  size_t n = 0;
  uint32_t unpack;
  if (bracket) TRY(advance(p));
  TRY(emit(p, (struct jop){.code = OP_UNPACK}, &unpack));
  bool tuple = false;
  do {
    if (n) TRY(advance(p));
    if (n && !at_type(p, T_NAME)) break;
    TRY(parse_target_name(p, with_member));
    n++;
    tuple |= at_type(p, T_COMMA);
  } while (at_type(p, T_COMMA));
  if (n > ARGUMENTS_MAX) return parse_fail(p, "%zu names in a row", n);
  p->program->ops[unpack].count = (uint16_t)n;
  if (bracket) TRY(expect_bracket(p, ')'));
  TRY(cut_code(p, from, cut));
  if (!tuple) cut->ops++, cut->n--; /* one name takes the value as it is */
  return SCONCE_OK;
}
