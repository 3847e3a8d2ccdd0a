/* Statements that are open while a template is parsed: they lie on a stack, nothing recurses. */
#ifndef LLM_JINJA_BLOCK_H
#define LLM_JINJA_BLOCK_H

#include "llm/jinja/code.h"

enum block_kind { B_IF, B_FOR, B_MACRO, B_CALL, B_SET, B_FILTER, B_WITH, B_GENERATION };

struct jblock {
  uint8_t kind;
  bool has_else;
  uint32_t line;
  int64_t next;        /* a jump to patch at the next branch, or -1 */
  int64_t exits;       /* jumps to the end, chained through arg; -1: none */
  int64_t continues;   /* of a loop: jumps to its next turn */
  uint32_t top;        /* of a loop: where a turn starts */
  int32_t macro;       /* of a macro or call: its index */
  int32_t name;        /* of a macro: the variable */
  struct jcut target;  /* of set: what stores the value */
  struct jcut filters; /* of set and filter: what is applied; of call: the call */
};

extern const char *const block_names[]; /* by kind */

SCONCE_CHECK sconce_status open_block(struct jparser *p, enum block_kind kind, struct jblock **out);
/* The innermost block, which must be of this kind. */
SCONCE_CHECK sconce_status innermost_block(struct jparser *p, const char *tag, enum block_kind kind,
                                           struct jblock **out);
/* A jump that joins a chain, and the end of the chain: here. */
SCONCE_CHECK sconce_status chain_jump(struct jparser *p, int64_t *chain);
void patch_chain(struct jparser *p, int64_t chain);

/* a, b or (a, b): code that stores what is on the stack, taken out. */
SCONCE_CHECK sconce_status parse_target(struct jparser *p, bool with_member, struct jcut *cut);

/* What follows the tag's name. statements.c: */
SCONCE_CHECK sconce_status parse_statement(struct jparser *p, struct text name, uint32_t line);
/* macros.c: */
sconce_status tag_macro(struct jparser *p);
sconce_status tag_endmacro(struct jparser *p);
sconce_status tag_call(struct jparser *p);
sconce_status tag_endcall(struct jparser *p);
sconce_status tag_set(struct jparser *p);
sconce_status tag_endset(struct jparser *p);
sconce_status tag_filter(struct jparser *p);
sconce_status tag_endfilter(struct jparser *p);
sconce_status tag_with(struct jparser *p);
sconce_status tag_endwith(struct jparser *p);
sconce_status tag_generation(struct jparser *p);
sconce_status tag_endgeneration(struct jparser *p);

#endif
