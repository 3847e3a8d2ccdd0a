/* Expressions of a template as code that leaves one value on the stack. Operators are parsed by
 * precedence; brackets, signs and negations recurse, at most NESTING_MAX deep. */
#include "llm/jinja/builtin.h"
#include "llm/jinja/code.h"

static sconce_status nest(struct jparser *p) {
  if (++p->nesting <= NESTING_MAX) return SCONCE_OK;
  return parse_fail(p, "expressions nested deeper than %d", NESTING_MAX);
}

static sconce_status parse_unary(struct jparser *p, bool with_filters);

/* ---- literals -------------------------------------------------------------------------------- */

/* Values up to a closing bracket, commas between them. */
static sconce_status parse_values(struct jparser *p, char close, size_t *n, bool *comma) {
  *comma = false;
  for (*n = 0; !at_bracket(p, close);) {
    TRY(parse_expression(p));
    ++*n;
    if (!at_type(p, T_COMMA)) break;
    *comma = true;
    TRY(advance(p));
  }
  return expect_bracket(p, close);
}

static sconce_status parse_bracket(struct jparser *p) {
  size_t n;
  bool comma;
  char open = *p->now.text.data;
  TRY(advance(p));
  if (open == '[') {
    TRY(parse_values(p, ']', &n, &comma));
    return emit_counted(p, OP_LIST, n);
  }
  if (open == '(') {
    TRY(parse_values(p, ')', &n, &comma));
    return n == 1 && !comma ? SCONCE_OK : emit_counted(p, OP_TUPLE, n);
  }
  for (n = 0; !at_bracket(p, '}'); n++) {
    TRY(parse_expression(p));
    TRY(expect_type(p, T_COLON, "':'"));
    TRY(parse_expression(p));
    if (!at_type(p, T_COMMA)) {
      n++;
      break;
    }
    TRY(advance(p));
  }
  TRY(expect_bracket(p, '}'));
  return emit_counted(p, OP_DICT, n);
}

/* "one" "text" is one text. */
static sconce_status parse_string(struct jparser *p) {
  struct text text = p->now.text;
  char *all = NULL;
  size_t room = 0;
  TRY(advance(p));
  while (at_type(p, T_STRING)) {
    const struct text more = p->now.text;
    if (more.size > room - text.size || !all) {
      room = 2 * (text.size + more.size);
      all = arena_new(p->arena, char, room);
      if (!all) return fail(p->err, SCONCE_NO_MEMORY, "out of memory for a template");
      if (text.size) memcpy(all, text.data, text.size);
      text.data = all;
    }
    if (more.size) memcpy(all + text.size, more.data, more.size);
    text.size += more.size;
    TRY(advance(p));
  }
  return emit_constant(p, OP_CONSTANT, j_string(text, true));
}

static sconce_status parse_name(struct jparser *p) {
  static const struct {
    const char *name;
    uint8_t type, truth;
  } words[] = {{"true", J_BOOL, 1},  {"True", J_BOOL, 1}, {"false", J_BOOL, 0},
               {"False", J_BOOL, 0}, {"none", J_NONE, 0}, {"None", J_NONE, 0}};
  struct text name = p->now.text;
  int32_t index;
  TRY(advance(p));
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (text_is(name, words[i].name))
      return emit_constant(p, OP_CONSTANT,
                           words[i].type == J_NONE ? j_none() : j_bool(words[i].truth));
  TRY(intern_name(p, name, &index));
  note_name(p, (uint32_t)index);
  return emit_op(p, OP_LOAD, index);
}

static sconce_status parse_primary(struct jparser *p) {
  struct jtoken t = p->now;
  switch (t.type) {
  case T_NAME:
    return parse_name(p);
  case T_STRING:
    return parse_string(p);
  case T_INT:
    TRY(advance(p));
    return emit_constant(p, OP_CONSTANT, j_int(t.integer, true));
  case T_FLOAT:
    TRY(advance(p));
    return emit_constant(p, OP_CONSTANT, j_float(t.number, true));
  case T_OPEN:
    return parse_bracket(p);
  default:
    return parse_fail_token(p, "a value");
  }
}

/* ---- what may follow a value ----------------------------------------------------------------- */

static sconce_status parse_keyword(struct jparser *p) {
  TRY(emit_constant(p, OP_CONSTANT, j_string(p->now.text, true)));
  TRY(advance(p));
  TRY(advance(p));
  return parse_expression(p);
}

/* (a, b, name=c) -> their values on the stack. */
static sconce_status parse_arguments(struct jparser *p, struct jop *op) {
  TRY(expect_bracket(p, '('));
  while (!at_bracket(p, ')')) {
    const struct jtoken *next;
    if (at_type(p, T_MUL) || at_type(p, T_POWER))
      return parse_fail(p, "arguments with * are not supported");
    TRY(look_ahead(p, &next));
    bool keyword = at_type(p, T_NAME) && next->type == T_ASSIGN;
    if (op->count + op->flag == ARGUMENTS_MAX)
      return parse_fail(p, "more than %d arguments", ARGUMENTS_MAX);
    if (!keyword && op->flag) return parse_fail(p, "an argument without a name behind one with it");
    TRY(keyword ? parse_keyword(p) : parse_expression(p));
    if (keyword)
      op->flag++;
    else
      op->count++;
    if (!at_type(p, T_COMMA)) break;
    TRY(advance(p));
  }
  return expect_bracket(p, ')');
}

static sconce_status parse_call(struct jparser *p) {
  struct jop op = {.code = OP_CALL};
  TRY(parse_arguments(p, &op));
  return emit(p, op, NULL);
}

static sconce_status parse_bound(struct jparser *p) {
  if (at_type(p, T_COLON) || at_bracket(p, ']')) return emit_constant(p, OP_CONSTANT, j_none());
  return parse_expression(p);
}

static sconce_status parse_subscript(struct jparser *p) {
  TRY(advance(p));
  TRY(parse_bound(p));
  if (!at_type(p, T_COLON)) {
    TRY(expect_bracket(p, ']'));
    return emit_op(p, OP_ITEM, 0);
  }
  TRY(advance(p));
  TRY(parse_bound(p));
  if (at_type(p, T_COLON)) {
    TRY(advance(p));
    TRY(parse_bound(p));
  } else {
    TRY(emit_constant(p, OP_CONSTANT, j_none()));
  }
  TRY(expect_bracket(p, ']'));
  return emit_op(p, OP_SLICE, 0);
}

static sconce_status parse_dot(struct jparser *p) {
  TRY(advance(p));
  struct jtoken t = p->now;
  if (t.type != T_NAME && t.type != T_INT) return parse_fail_token(p, "a name or a number");
  TRY(advance(p));
  if (t.type == T_NAME) return emit_constant(p, OP_MEMBER, j_string(t.text, true));
  TRY(emit_constant(p, OP_CONSTANT, j_int(t.integer, true)));
  return emit_op(p, OP_ITEM, 0);
}

static sconce_status parse_postfix(struct jparser *p) {
  for (;;) {
    if (at_type(p, T_DOT))
      TRY(parse_dot(p));
    else if (at_bracket(p, '['))
      TRY(parse_subscript(p));
    else if (at_bracket(p, '('))
      TRY(parse_call(p));
    else
      return SCONCE_OK;
  }
}

/* The builtin's index, or below 0 that of its name: what a branch that never runs names need not
 * exist. */
static sconce_status find_function(struct jparser *p, bool test, int32_t *index) {
  struct text name;
  TRY(expect_identifier(p, &name));
  while (at_type(p, T_DOT)) {
    struct text more;
    TRY(advance(p));
    TRY(expect_identifier(p, &more));
    name.size = (size_t)(more.data + more.size - name.data);
  }
  *index = test ? j_test_index(name) : j_filter_index(name);
  if (*index >= 0) return SCONCE_OK;
  TRY(add_constant(p, j_string(name, true), index));
  *index = -1 - *index;
  return SCONCE_OK;
}

sconce_status parse_filters(struct jparser *p, bool inline_start) {
  while (inline_start || at_type(p, T_PIPE)) {
    struct jop op = {.code = OP_FILTER};
    if (!inline_start) TRY(advance(p));
    inline_start = false;
    TRY(find_function(p, false, &op.arg));
    if (at_bracket(p, '(')) TRY(parse_arguments(p, &op));
    TRY(emit(p, op, NULL));
  }
  return SCONCE_OK;
}

/* Does a value stand here that is the test's argument? `is divisibleby 3` */
static bool at_test_argument(const struct jparser *p) {
  if (at_name(p, "else") || at_name(p, "or") || at_name(p, "and")) return false;
  return at_type(p, T_NAME) || at_type(p, T_STRING) || at_type(p, T_INT) || at_type(p, T_FLOAT) ||
         at_bracket(p, '[') || at_bracket(p, '{');
}

static sconce_status parse_test(struct jparser *p) {
  struct jop op = {.code = OP_TEST};
  bool negated;
  TRY(advance(p));
  TRY(skip_name(p, "not", &negated));
  TRY(find_function(p, true, &op.arg));
  if (at_name(p, "is")) return parse_fail(p, "one 'is' behind another");
  if (at_bracket(p, '(')) {
    TRY(parse_arguments(p, &op));
  } else if (at_test_argument(p) && !at_name(p, "if") && !at_name(p, "not")) {
    TRY(parse_primary(p));
    TRY(parse_postfix(p));
    op.count = 1;
  }
  TRY(emit(p, op, NULL));
  return negated ? emit_op(p, OP_NOT, 0) : SCONCE_OK;
}

/* ---- operators ------------------------------------------------------------------------------- */

static sconce_status parse_unary(struct jparser *p, bool with_filters) {
  TRY(nest(p));
  if (at_type(p, T_SUB) || at_type(p, T_ADD)) {
    enum jop_code code = at_type(p, T_SUB) ? OP_NEGATE : OP_PLUS;
    TRY(advance(p));
    TRY(parse_unary(p, false));
    TRY(emit_op(p, code, 0));
  } else {
    TRY(parse_primary(p));
  }
  TRY(parse_postfix(p));
  while (with_filters) {
    if (at_type(p, T_PIPE))
      TRY(parse_filters(p, false));
    else if (at_name(p, "is"))
      TRY(parse_test(p));
    else if (at_bracket(p, '('))
      TRY(parse_call(p));
    else
      break;
  }
  p->nesting--;
  return SCONCE_OK;
}

/* How tightly an operator binds. */
enum { L_OR, L_AND, L_NOT, L_COMPARE, L_SUM, L_CONCAT, L_PRODUCT, L_POWER, L_UNARY, L_NONE = -1 };

static bool is_compare(const struct jparser *p, uint8_t *how) {
  static const uint8_t compares[] = {
      [T_EQ] = C_EQ, [T_NE] = C_NE, [T_LE] = C_LE, [T_GE] = C_GE, [T_LT] = C_LT, [T_GT] = C_GT};
  *how = C_IN;
  if (at_name(p, "in")) return true;
  *how = C_NOT_IN;
  if (at_name(p, "not")) return true; /* behind a value only "not in" can follow */
  if (p->now.type < T_EQ || p->now.type > T_GT) return false;
  *how = compares[p->now.type];
  return true;
}

static int level_of(const struct jparser *p) {
  uint8_t how;
  if (at_name(p, "or")) return L_OR;
  if (at_name(p, "and")) return L_AND;
  if (is_compare(p, &how)) return L_COMPARE;
  switch (p->now.type) {
  case T_ADD:
  case T_SUB:
    return L_SUM;
  case T_TILDE:
    return L_CONCAT;
  case T_MUL:
  case T_DIV:
  case T_FLOOR:
  case T_MOD:
    return L_PRODUCT;
  case T_POWER:
    return L_POWER;
  default:
    return L_NONE;
  }
}

static sconce_status parse_binary(struct jparser *p, int level);

/* a < b <= c: each pair must hold; b is computed once. Jumps that leave are chained through arg. */
static sconce_status parse_compare(struct jparser *p) {
  uint8_t how, next;
  int64_t exits = -1;
  while (is_compare(p, &how)) {
    TRY(advance(p));
    if (how == C_NOT_IN) {
      if (!at_name(p, "in")) return parse_fail_token(p, "'in'");
      TRY(advance(p));
    }
    TRY(parse_binary(p, L_COMPARE + 1));
    struct jop op = {.code = OP_COMPARE, .flag = how};
    if (!is_compare(p, &next)) {
      TRY(emit(p, op, NULL));
      break;
    }
    uint32_t at;
    op.code = OP_COMPARE_CHAIN;
    op.arg = (int32_t)exits;
    TRY(emit(p, op, &at));
    exits = at;
  }
  while (exits >= 0) {
    uint32_t at = (uint32_t)exits;
    exits = p->program->ops[at].arg;
    patch_jump(p, at);
  }
  return SCONCE_OK;
}

static sconce_status parse_concat(struct jparser *p) {
  size_t n = 1;
  for (; at_type(p, T_TILDE); n++) {
    TRY(advance(p));
    TRY(parse_binary(p, L_CONCAT + 1));
  }
  return emit_counted(p, OP_CONCAT, n);
}

static sconce_status parse_operator(struct jparser *p, int level) {
  struct jop op = {.code = OP_BINARY, .flag = p->now.type};
  uint32_t at;
  if (level == L_COMPARE) return parse_compare(p);
  if (level == L_CONCAT) return parse_concat(p);
  TRY(advance(p));
  if (level > L_AND) {
    TRY(parse_binary(p, level + 1));
    return emit(p, op, NULL);
  }
  op.code = level == L_OR ? OP_OR : OP_AND;
  TRY(emit(p, op, &at));
  TRY(parse_binary(p, level + 1));
  patch_jump(p, at);
  return SCONCE_OK;
}

/* Operators that bind at least as tightly as `level`. */
static sconce_status parse_binary(struct jparser *p, int level) {
  if (level <= L_NOT && at_name(p, "not")) {
    TRY(nest(p));
    TRY(advance(p));
    TRY(parse_binary(p, L_NOT));
    TRY(emit_op(p, OP_NOT, 0));
    p->nesting--;
  } else {
    TRY(parse_unary(p, true));
  }
  for (int here; (here = level_of(p)) >= level && here != L_NONE;) TRY(parse_operator(p, here));
  return SCONCE_OK;
}

/* ---- conditions and tuples ------------------------------------------------------------------- */

/* value if condition else other: the value's code, which is there since `from`, moves behind. */
static sconce_status parse_condition(struct jparser *p, uint32_t from) {
  struct jcut value;
  uint32_t no, done;
  bool otherwise;
  TRY(cut_code(p, from, &value));
  TRY(advance(p));
  TRY(parse_binary(p, L_OR));
  TRY(emit(p, (struct jop){.code = OP_JUMP_FALSE}, &no));
  TRY(paste_code(p, &value));
  TRY(emit(p, (struct jop){.code = OP_JUMP}, &done));
  patch_jump(p, no);
  TRY(skip_name(p, "else", &otherwise));
  if (otherwise)
    TRY(parse_expression(p));
  else
    TRY(emit_constant(p, OP_CONSTANT,
                      j_undefined(JU_HINT, text_of("an 'if' without 'else' that was false"))));
  patch_jump(p, done);
  return SCONCE_OK;
}

sconce_status parse_expression(struct jparser *p) {
  uint32_t from = p->program->n_ops;
  TRY(nest(p));
  TRY(parse_binary(p, L_OR));
  while (at_name(p, "if")) TRY(parse_condition(p, from));
  p->nesting--;
  return SCONCE_OK;
}

sconce_status parse_tuple(struct jparser *p, bool with_condition) {
  size_t n = 1;
  TRY(with_condition ? parse_expression(p) : parse_binary(p, L_OR));
  if (!at_type(p, T_COMMA)) return SCONCE_OK;
  while (at_type(p, T_COMMA)) {
    TRY(advance(p));
    if (at_type(p, T_TAG_END) || at_type(p, T_PRINT_END)) break;
    TRY(with_condition ? parse_expression(p) : parse_binary(p, L_OR));
    n++;
  }
  return emit_counted(p, OP_TUPLE, n);
}
