/* Runs a template: the operations on values, and the loop. See machine.h. */
#include "llm/jinja/machine.h"

enum {
  STEPS_USUAL = 25000000, /* half a second */
  STEPS_A_BYTE = 4,       /* more for each that the caller gives: to go through it 16 times */
  OUTPUT_USUAL = 1 << 20, /* bytes: a million ids at worst, a third of a second */
  OUTPUT_A_BYTE = 16,     /* for JSON in JSON with its blanks and escapes */
  OUTPUT_MOST = 64 << 20,
  MEMORY_USUAL = 128 << 20, /* bytes */
  MEMORY_A_BYTE = 64,       /* for 32 copies with their marks */
  MEMORY_MOST = 512 << 20,
};

/* ---- variables ------------------------------------------------------------------------------- */

static sconce_status op_load(struct machine *m, const struct jop *op) {
  struct jvalue v;
  TRY(get_variable(m, (uint32_t)op->arg, &v));
  return push(m, v);
}

static sconce_status op_store(struct machine *m, const struct jop *op) {
  return set_variable(m, (uint32_t)op->arg, pop(m));
}

static sconce_status op_store_member(struct machine *m, const struct jop *op) {
  struct jvalue space, v = pop(m);
  TRY(get_variable(m, (uint32_t)op->arg, &space));
  if (space.type == J_UNDEFINED) return j_fail_undefined(&m->run, &space);
  if (space.type != J_SPACE)
    return j_fail(&m->run, "'%.*s' is a %s: only members of a namespace can be set",
                  TEXT(m->program->names[op->arg]), j_type_name(&space));
  space.space->dict.depth = 1;
  return j_dict_set(&m->run, &space.space->dict, j_string(m->program->names[op->count], true), v);
}

static sconce_status op_unpack(struct machine *m, const struct jop *op) {
  struct jvalue v = pop(m);
  const struct jvalue *items;
  size_t n;
  if (v.type == J_UNDEFINED) return j_fail_undefined(&m->run, &v);
  TRY(j_items(&m->run, &v, &items, &n));
  if (n != op->count) return j_fail(&m->run, "%zu values for %u names", n, op->count);
  while (n) TRY(push(m, items[--n]));
  return SCONCE_OK;
}

static sconce_status op_scope(struct machine *m, const struct jop *op) {
  (void)op;
  return open_scope(m, m->scope);
}

static sconce_status op_scope_end(struct machine *m, const struct jop *op) {
  (void)op;
  m->scope = m->scope->parent;
  return SCONCE_OK;
}

/* ---- values ---------------------------------------------------------------------------------- */

static sconce_status op_constant(struct machine *m, const struct jop *op) {
  return push(m, m->program->constants[op->arg]);
}

static sconce_status op_drop(struct machine *m, const struct jop *op) {
  (void)op;
  m->n_stack--;
  return SCONCE_OK;
}

static sconce_status op_member(struct machine *m, const struct jop *op) {
  struct jvalue v = *top(m);
  return j_member(&m->run, &v, j_text(&m->program->constants[op->arg]), top(m));
}

static sconce_status op_item(struct machine *m, const struct jop *op) {
  (void)op;
  struct jvalue key = pop(m), v = *top(m);
  return j_item(&m->run, &v, &key, top(m));
}

static sconce_status op_slice(struct machine *m, const struct jop *op) {
  (void)op;
  m->n_stack -= 3;
  struct jvalue v = *top(m), bounds[3] = {top(m)[1], top(m)[2], top(m)[3]};
  return j_slice(&m->run, &v, bounds, top(m));
}

static sconce_status op_list(struct machine *m, const struct jop *op) {
  struct jvalue *items = j_new(&m->run, struct jvalue, op->count), v;
  if (!items) return J_NO_ROOM;
  m->n_stack -= op->count;
  if (op->count) memcpy(items, m->stack + m->n_stack, op->count * sizeof *items);
  TRY(j_list(&m->run, op->code == OP_LIST ? JL_LIST : JL_TUPLE, items, op->count, &v));
  return push(m, v);
}

static sconce_status op_dict(struct machine *m, const struct jop *op) {
  struct jvalue v;
  TRY(j_dict(&m->run, op->count, &v));
  m->n_stack -= 2 * (size_t)op->count;
  for (size_t i = 0; i < op->count; i++) {
    const struct jvalue *pair = m->stack + m->n_stack + 2 * i;
    TRY(j_dict_set(&m->run, v.dict, pair[0], pair[1]));
  }
  return push(m, v);
}

static sconce_status op_binary(struct machine *m, const struct jop *op) {
  struct jvalue b = pop(m), a = *top(m);
  return j_binary(&m->run, op->flag, &a, &b, top(m));
}

static sconce_status op_concat(struct machine *m, const struct jop *op) {
  struct jbuffer b = {0};
  m->n_stack -= op->count;
  for (size_t i = 0; i < op->count; i++) TRY(j_put_str(&m->run, &b, &m->stack[m->n_stack + i]));
  return push(m, j_taken(&b));
}

static sconce_status op_sign(struct machine *m, const struct jop *op) {
  struct jvalue v = *top(m);
  if (op->code == OP_NEGATE) return j_negate(&m->run, &v, top(m));
  if (v.type == J_UNDEFINED) return j_fail_undefined(&m->run, &v);
  return j_is_number(&v) ? SCONCE_OK : j_fail(&m->run, "+ in front of a %s", j_type_name(&v));
}

static sconce_status op_not(struct machine *m, const struct jop *op) {
  (void)op;
  *top(m) = j_bool(!j_truth(top(m)));
  return SCONCE_OK;
}

static sconce_status op_compare(struct machine *m, const struct jop *op) {
  struct jvalue b = pop(m), a = pop(m);
  bool truth;
  TRY(j_compare(&m->run, op->flag, &a, &b, &truth));
  if (op->code == OP_COMPARE) return push(m, j_bool(truth));
  if (!truth) jump(m, op);
  return push(m, truth ? b : j_bool(false));
}

/* ---- writing --------------------------------------------------------------------------------- */

static sconce_status op_text(struct machine *m, const struct jop *op) {
  return j_put_string(&m->run, writing(m), &m->program->constants[op->arg]);
}

static sconce_status op_print(struct machine *m, const struct jop *op) {
  (void)op;
  struct jvalue v = pop(m);
  return j_put_str(&m->run, writing(m), &v);
}

static sconce_status op_capture(struct machine *m, const struct jop *op) {
  (void)op;
  return open_text(m);
}

static sconce_status op_captured(struct machine *m, const struct jop *op) {
  (void)op;
  return push(m, close_text(m));
}

/* ---- the loop -------------------------------------------------------------------------------- */

static sconce_status (*const handlers[])(struct machine *m, const struct jop *op) = {
    [OP_TEXT] = op_text,
    [OP_PRINT] = op_print,
    [OP_CONSTANT] = op_constant,
    [OP_LOAD] = op_load,
    [OP_STORE] = op_store,
    [OP_STORE_MEMBER] = op_store_member,
    [OP_DROP] = op_drop,
    [OP_UNPACK] = op_unpack,
    [OP_MEMBER] = op_member,
    [OP_ITEM] = op_item,
    [OP_SLICE] = op_slice,
    [OP_LIST] = op_list,
    [OP_TUPLE] = op_list,
    [OP_DICT] = op_dict,
    [OP_BINARY] = op_binary,
    [OP_CONCAT] = op_concat,
    [OP_NEGATE] = op_sign,
    [OP_PLUS] = op_sign,
    [OP_NOT] = op_not,
    [OP_COMPARE] = op_compare,
    [OP_COMPARE_CHAIN] = op_compare,
    [OP_JUMP] = op_jump,
    [OP_JUMP_FALSE] = op_jump_false,
    [OP_AND] = op_and_or,
    [OP_OR] = op_and_or,
    [OP_FILTER] = op_filter_test,
    [OP_TEST] = op_filter_test,
    [OP_CALL] = op_call,
    [OP_MACRO] = op_macro,
    [OP_DEFAULT] = op_default,
    [OP_RETURN] = op_return,
    [OP_CAPTURE] = op_capture,
    [OP_CAPTURED] = op_captured,
    [OP_SCOPE] = op_scope,
    [OP_SCOPE_END] = op_scope_end,
    [OP_FOR] = op_for,
    [OP_FOR_NEXT] = op_for_next,
    [OP_FOR_BREAK] = op_for_break,
    [OP_SIFT] = op_sift,
    [OP_SIFT_NEXT] = op_sift_next,
};

static sconce_status run(struct machine *m) {
  for (;;) {
    const struct jop *op = &m->program->ops[m->at++];
    if (op->code == OP_END) return SCONCE_OK;
    sconce_status status = j_spend(&m->run, 1);
    if (status == SCONCE_OK) status = handlers[op->code](m, op);
    if (status == SCONCE_OK) continue;
    error_prefix(m->run.err, "line %u: ", op->line);
    return status;
  }
}

/* Every name of the template that the caller or the language gives a value. */
static sconce_status set_globals(struct machine *m, const struct jinja_input *input) {
  const struct jinja_program *g = m->program;
  m->globals = j_new(&m->run, struct jvalue, g->n_names); /* zero: undefined, missing */
  if (!m->globals) return J_NO_ROOM;
  for (uint32_t i = 0; i < g->n_names; i++) {
    const struct jinja_variable *found = NULL;
    for (size_t k = 0; k < input->n_variables; k++)
      if (text_is(g->names[i], input->variables[k].name)) found = &input->variables[k];
    const struct jbuiltin *builtin = j_find_builtin(j_globals, g->names[i]);
    if (found)
      TRY(j_from_variable(&m->run, found, &m->globals[i]));
    else if (builtin)
      TRY(j_bind(&m->run, builtin, &m->globals[i], &m->globals[i]));
  }
  return SCONCE_OK;
}

static sconce_status finish(struct machine *m, struct jinja_output *out) {
  const struct jbuffer *b = &m->texts[0];
  uint8_t *own = b->marks;
  if (!own) {
    own = j_new(&m->run, uint8_t, b->n);
    if (!own) return J_NO_ROOM;
    if (b->n) memset(own, b->own, b->n);
  }
  *out = (struct jinja_output){{b->n ? b->data : "", b->n}, own};
  return SCONCE_OK;
}

static uint64_t bytes_given(const struct jinja_input *input) {
  uint64_t n = 0;
  for (size_t i = 0; i < input->n_variables; i++) {
    const struct jinja_variable *v = &input->variables[i];
    if (v->kind == JINJA_JSON && v->json.at) n += (uint64_t)(v->json.end - v->json.at);
    if (v->kind == JINJA_TEXT) n += v->text.size;
    for (size_t k = 0; v->kind == JINJA_MESSAGES && k < v->n_messages; k++)
      n += v->messages[k].role.size + v->messages[k].content.size;
  }
  return n;
}

static size_t grown(size_t usual, size_t a_byte, size_t most, uint64_t given) {
  return given < (most - usual) / a_byte ? usual + a_byte * (size_t)given : most;
}

/* Where the caller sets none they grow with what the caller gives: a template alone asks in vain.
 */
static void set_limits(struct jrun *run, const struct jinja_input *input) {
  const uint64_t given = bytes_given(input);
  run->steps = input->steps ? input->steps : STEPS_USUAL + STEPS_A_BYTE * given;
  run->memory =
      input->memory ? input->memory : grown(MEMORY_USUAL, MEMORY_A_BYTE, MEMORY_MOST, given);
  run->output =
      input->output ? input->output : grown(OUTPUT_USUAL, OUTPUT_A_BYTE, OUTPUT_MOST, given);
  if (run->output > (1u << 30)) run->output = 1u << 30; /* sizes are 32 bits */
  run->steps_all = run->steps;
  run->memory_all = run->memory;
}

sconce_status jinja_render(const struct jinja_program *program, const struct jinja_input *input,
                           struct arena *arena, struct jinja_output *out, sconce_error *err) {
  struct machine m = {.program = program};
  m.run = (struct jrun){.arena = arena, .err = err, .date = input->date};
  set_limits(&m.run, input);
  *out = (struct jinja_output){0};
  m.frames = j_new(&m.run, struct frame, J_DEPTH_MAX);
  if (!m.frames) return J_NO_ROOM;
  TRY(open_scope(&m, NULL));
  TRY(open_text(&m));
  TRY(set_globals(&m, input));
  TRY(run(&m));
  return finish(&m, out);
}
