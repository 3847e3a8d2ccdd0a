/* A parsed template: operations for a machine with a stack of values, scopes for variables, loops,
 * and texts that are being written. Jumps are relative, so that a piece of code may be moved. */
#ifndef LLM_JINJA_CODE_H
#define LLM_JINJA_CODE_H

#include "llm/jinja/lex.h"
#include "llm/jinja/value.h"

/* Comments: what an operation takes from the stack -> what it leaves there. */
enum jop_code {
  OP_TEXT,          /* writes the constant */
  OP_PRINT,         /* value -> , writes it */
  OP_CONSTANT,      /* -> constant */
  OP_LOAD,          /* -> the variable */
  OP_STORE,         /* value -> , sets the variable in the innermost scope */
  OP_STORE_MEMBER,  /* value -> , sets name `count` of the namespace in the variable */
  OP_DROP,          /* value -> */
  OP_UNPACK,        /* sequence -> its `count` items, the first on top */
  OP_MEMBER,        /* value -> value.constant */
  OP_ITEM,          /* value index -> value[index] */
  OP_SLICE,         /* value start stop step -> value[start:stop:step] */
  OP_LIST,          /* `count` values -> list */
  OP_TUPLE,         /* … */
  OP_DICT,          /* `count` pairs of key and value -> dict */
  OP_BINARY,        /* a b -> a op b; `flag` is the token */
  OP_CONCAT,        /* `count` values -> text */
  OP_NEGATE,        /* a -> -a */
  OP_PLUS,          /* a -> +a */
  OP_NOT,           /* a -> not a */
  OP_COMPARE,       /* a b -> truth; `flag` is an enum jcompare */
  OP_COMPARE_CHAIN, /* a b -> b, or false and jumps */
  OP_JUMP,
  OP_JUMP_FALSE, /* a -> , jumps if it is false */
  OP_AND,        /* a -> , or a and jumps if it is false */
  OP_OR,         /* a -> , or a and jumps if it is true */
  OP_FILTER,     /* value arguments -> result; see calls below */
  OP_TEST,
  OP_CALL,     /* function arguments -> result */
  OP_MACRO,    /* -> a macro with the present scope */
  OP_DEFAULT,  /* jumps if parameter `count` was given */
  OP_RETURN,   /* -> the macro's text, and on behind its call */
  OP_CAPTURE,  /* from here on a text of its own is written */
  OP_CAPTURED, /* -> that text */
  OP_SCOPE,
  OP_SCOPE_END,
  OP_FOR,       /* sequence -> item, a new scope and a new loop; jumps if there is none */
  OP_FOR_NEXT,  /* -> item and jumps back; without another one the loop and its scope end */
  OP_FOR_BREAK, /* the loop and its scope end */
  OP_SIFT,      /* like FOR, to choose what the loop will see */
  OP_SIFT_NEXT, /* truth -> item and jumps back; without another one -> list */
  OP_END,
};

enum jcompare { C_EQ, C_NE, C_LT, C_LE, C_GT, C_GE, C_IN, C_NOT_IN };

/* Calls: `count` positional arguments, then `flag` pairs of a name (a constant string) and its
 * value. */
struct jop {
  uint8_t code;
  uint8_t flag;
  uint16_t count;
  uint32_t line;
  int32_t arg; /* index of a constant, a name, a macro or a builtin; or how far to jump */
};

struct jmacro_code {
  struct text name;
  uint32_t *parameters; /* (n_parameters) names */
  uint16_t n_parameters;
  bool takes_caller, takes_varargs, takes_kwargs; /* it mentions them */
  uint32_t entry;
};

struct jinja_program {
  struct jop *ops; /* (n_ops), the last is OP_END */
  struct jvalue *constants;
  struct text *names;
  struct jmacro_code *macros;
  uint32_t n_ops, n_constants, n_names, n_macros;
  uint32_t name_caller, name_varargs, name_kwargs, name_loop;
};

enum {
  SOURCE_SIZE_MAX = 1 << 19,
  NAMES_MAX = 2048,
  ARGUMENTS_MAX = 255,
  NESTING_MAX = 100,   /* of expressions; brackets count twice */
  BLOCKS_MAX = 100,    /* of statements */
  MOVED_MAX = 1 << 22, /* operations that parsing may move about */
};

/* ---- while it is being made ------------------------------------------------------------------ */

/* A piece of code that was taken out, to be put back elsewhere. */
struct jcut {
  struct jop *ops;
  uint32_t n;
};

struct jblock; /* block.h */

struct jparser {
  struct jlexer lexer;
  struct jtoken now, ahead; /* `ahead` if has_ahead */
  bool has_ahead;
  struct jinja_program *program;
  size_t cap_ops, cap_constants, cap_names, cap_macros;
  struct arena *arena;
  sconce_error *err;
  uint32_t nesting, moved;
  struct jblock *blocks; /* (BLOCKS_MAX) open statements */
  uint32_t n_blocks;
};

#define parse_fail(p, ...) parse_fail_at((p), (p)->now.line, __VA_ARGS__)
sconce_status parse_fail_at(const struct jparser *p, uint32_t line, const char *format, ...)
    PRINTF_LIKE(3, 4);
/* "expected X, not Y" about the token at hand. */
SCONCE_CHECK sconce_status parse_fail_token(const struct jparser *p, const char *want);

/* emit.c: code, constants, names. */
SCONCE_CHECK sconce_status emit(struct jparser *p, struct jop op, uint32_t *at);
SCONCE_CHECK sconce_status emit_op(struct jparser *p, enum jop_code code, int32_t arg);
SCONCE_CHECK sconce_status emit_counted(struct jparser *p, enum jop_code code, size_t count);
SCONCE_CHECK sconce_status emit_constant(struct jparser *p, enum jop_code code, struct jvalue v);
/* Makes the jump at `at` go to what is emitted next. */
void patch_jump(struct jparser *p, uint32_t at);
/* Takes the code from `from` on out, and puts it behind what is there. */
SCONCE_CHECK sconce_status cut_code(struct jparser *p, uint32_t from, struct jcut *cut);
SCONCE_CHECK sconce_status paste_code(struct jparser *p, const struct jcut *cut);
SCONCE_CHECK sconce_status add_constant(struct jparser *p, struct jvalue v, int32_t *index);
SCONCE_CHECK sconce_status intern_name(struct jparser *p, struct text name, int32_t *index);
SCONCE_CHECK sconce_status add_macro(struct jparser *p, struct jmacro_code macro, int32_t *index);
/* Room for element n of an array in the arena; NULL when out of memory. */
void *grow_array(struct arena *arena, void *old, size_t n, size_t *cap, size_t size);

/* Tokens. */
SCONCE_CHECK sconce_status advance(struct jparser *p);
SCONCE_CHECK sconce_status look_ahead(struct jparser *p, const struct jtoken **token);
static inline bool at_type(const struct jparser *p, enum jtoken_type type) {
  return p->now.type == type;
}
bool at_name(const struct jparser *p, const char *name);
bool at_bracket(const struct jparser *p, char bracket);
/* Takes it and says so, if it is there. */
SCONCE_CHECK sconce_status skip_name(struct jparser *p, const char *name, bool *skipped);
SCONCE_CHECK sconce_status expect_bracket(struct jparser *p, char bracket);
SCONCE_CHECK sconce_status expect_type(struct jparser *p, enum jtoken_type type, const char *what);
SCONCE_CHECK sconce_status expect_identifier(struct jparser *p, struct text *name);

/* expression.c: code that leaves one value on the stack. */
SCONCE_CHECK sconce_status parse_expression(struct jparser *p);
/* Also a, b without brackets; with_condition: x if y else z may stand there. */
SCONCE_CHECK sconce_status parse_tuple(struct jparser *p, bool with_condition);
/* name(arguments)|name… applied to what is on the stack; `inline_start`: without the first "|". */
SCONCE_CHECK sconce_status parse_filters(struct jparser *p, bool inline_start);
void note_name(struct jparser *p, uint32_t name); /* block.c: a name was read */

#endif
