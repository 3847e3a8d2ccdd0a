/* A template's source as tokens: text between tags, and inside of tags names, literals and
 * operators. White space around tags is dealt with here. */
#ifndef LLM_JINJA_LEX_H
#define LLM_JINJA_LEX_H

#include "llm/jinja/jinja.h"

enum jtoken_type {
  T_END, /* of the source */
  T_DATA,
  T_PRINT, /* {{ */
  T_PRINT_END,
  T_TAG, /* {% */
  T_TAG_END,
  T_NAME,
  T_STRING,
  T_INT,
  T_FLOAT,
  /* Operators, in the order of lex.c's table. */
  T_POWER,
  T_FLOOR,
  T_EQ,
  T_NE,
  T_LE,
  T_GE,
  T_LT,
  T_GT,
  T_ADD,
  T_SUB,
  T_MUL,
  T_DIV,
  T_MOD,
  T_TILDE,
  T_PIPE,
  T_ASSIGN,
  T_DOT,
  T_COMMA,
  T_COLON,
  T_OPEN, /* ( [ { and their ends: see `text` */
  T_CLOSE,
};

struct jtoken {
  uint8_t type;
  uint32_t line;
  struct text text; /* data, names, operators as written; strings without quotes and escapes */
  int64_t integer;
  double number;
};

enum { LEX_BRACKETS_MAX = 100 };

struct jlexer {
  const char *start, *at, *end;
  uint32_t line;
  struct arena *arena;
  sconce_error *err;
  enum { LEX_DATA, LEX_RAW, LEX_PRINT, LEX_TAG } mode;
  uint8_t pending; /* T_PRINT or T_TAG that follows the data just given, or 0 */
  uint32_t n_brackets;
  char brackets[LEX_BRACKETS_MAX]; /* the ends that are awaited */
};

/* The source must stay, and be valid UTF-8 with lines that end with \n. */
void lexer_init(struct jlexer *l, struct text source, struct arena *arena, sconce_error *err);
SCONCE_CHECK sconce_status lexer_next(struct jlexer *l, struct jtoken *token);

#endif
