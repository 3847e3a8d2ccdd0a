/* Jumps, loops and calls of the machine: see machine.h. */
#include "llm/jinja/machine.h"

/* ---- jumps ----------------------------------------------------------------------------------- */

sconce_status op_jump(struct machine *m, const struct jop *op) {
  jump(m, op);
  return SCONCE_OK;
}

sconce_status op_jump_false(struct machine *m, const struct jop *op) {
  struct jvalue v = pop(m);
  if (!j_truth(&v)) jump(m, op);
  return SCONCE_OK;
}

sconce_status op_and_or(struct machine *m, const struct jop *op) {
  if (j_truth(top(m)) == (op->code == OP_OR))
    jump(m, op);
  else
    m->n_stack--;
  return SCONCE_OK;
}

/* ---- loops ----------------------------------------------------------------------------------- */

/* A loop that only chooses items keeps those that passed. */
struct sift {
  struct jloop loop; /* first: loops and sifts share a stack */
  struct jvalue *passed;
  size_t n_passed;
};

static sconce_status push_loop(struct machine *m, struct jloop *loop) {
  struct jloop **loops =
      machine_grow(m, m->loops, m->n_loops, &m->cap_loops, sizeof *m->loops, OPEN_MAX);
  if (!loops) return J_NO_ROOM;
  m->loops = loops;
  m->loops[m->n_loops++] = loop;
  loop->outside = m->scope;
  return SCONCE_OK;
}

/* A fresh scope for the item the loop stands at, and the item on the stack. */
static sconce_status begin_turn(struct machine *m, struct jloop *loop, bool sift) {
  if (loop->at > 0 && m->scope->parent == loop->outside && !m->scope->kept)
    m->scope->n = 0;
  else
    TRY(open_scope(m, loop->outside));
  struct jvalue v = {.type = J_LOOP, .loop = loop};
  if (!sift) TRY(set_variable(m, m->program->name_loop, v));
  return push(m, loop->items[loop->at]);
}

static void end_loop(struct machine *m) { m->scope = m->loops[--m->n_loops]->outside; }

sconce_status op_for(struct machine *m, const struct jop *op) {
  struct jvalue v = pop(m);
  const struct jvalue *items;
  size_t n;
  TRY(j_items(&m->run, &v, &items, &n));
  if (n == 0) {
    jump(m, op);
    return SCONCE_OK;
  }
  struct jloop *loop = j_new(&m->run, struct jloop, 1);
  if (!loop) return J_NO_ROOM;
  *loop = (struct jloop){.items = items, .n = n};
  TRY(push_loop(m, loop));
  return begin_turn(m, loop, false);
}

sconce_status op_for_next(struct machine *m, const struct jop *op) {
  struct jloop *loop = m->loops[m->n_loops - 1];
  if (loop->at + 1 == loop->n) {
    end_loop(m);
    return SCONCE_OK;
  }
  loop->at++;
  jump(m, op);
  return begin_turn(m, loop, false);
}

sconce_status op_for_break(struct machine *m, const struct jop *op) {
  (void)op;
  end_loop(m);
  return SCONCE_OK;
}

sconce_status op_sift(struct machine *m, const struct jop *op) {
  struct jvalue v = pop(m), none;
  const struct jvalue *items;
  size_t n;
  TRY(j_items(&m->run, &v, &items, &n));
  struct sift *sift = j_new(&m->run, struct sift, 1);
  struct jvalue *passed = j_new(&m->run, struct jvalue, n);
  if (!sift || !passed) return J_NO_ROOM;
  if (n == 0) {
    jump(m, op);
    TRY(j_list(&m->run, JL_LIST, passed, 0, &none));
    return push(m, none);
  }
  *sift = (struct sift){.loop = {.items = items, .n = n}, .passed = passed};
  TRY(push_loop(m, &sift->loop));
  return begin_turn(m, &sift->loop, true);
}

sconce_status op_sift_next(struct machine *m, const struct jop *op) {
  struct jvalue truth = pop(m), v;
  struct sift *sift = (struct sift *)(void *)m->loops[m->n_loops - 1];
  if (j_truth(&truth)) sift->passed[sift->n_passed++] = sift->loop.items[sift->loop.at];
  if (sift->loop.at + 1 < sift->loop.n) {
    sift->loop.at++;
    jump(m, op);
    return begin_turn(m, &sift->loop, true);
  }
  end_loop(m);
  TRY(j_list(&m->run, JL_LIST, sift->passed, sift->n_passed, &v));
  return push(m, v);
}

/* ---- calls ----------------------------------------------------------------------------------- */

sconce_status op_macro(struct machine *m, const struct jop *op) {
  struct jmacro *macro = j_new(&m->run, struct jmacro, 1);
  if (!macro) return J_NO_ROOM;
  *macro = (struct jmacro){&m->program->macros[op->arg], m->scope};
  for (struct jscope *s = m->scope; s && !s->kept; s = s->parent) s->kept = true;
  return push(m, (struct jvalue){.type = J_MACRO, .macro = macro});
}

/* The parameter that a name argument is for; n_parameters if there is none left of that name. */
static uint32_t parameter_of(const struct machine *m, const struct jmacro_code *code, uint32_t from,
                             struct text name) {
  for (uint32_t i = from; i < code->n_parameters; i++)
    if (text_equal(m->program->names[code->parameters[i]], name)) return i;
  return code->n_parameters;
}

static sconce_status bind_pairs(struct machine *m, const struct jmacro_code *code,
                                const struct jargs *args) {
  struct jvalue rest;
  TRY(j_dict(&m->run, 0, &rest));
  for (uint32_t i = 0; i < args->n_pairs; i++) {
    struct text name = j_text(&args->pairs[2 * i]);
    struct jvalue value = args->pairs[2 * i + 1];
    uint32_t at = parameter_of(m, code, args->n, name);
    if (at < code->n_parameters)
      TRY(set_variable(m, code->parameters[at], value));
    else if (code->takes_caller && text_is(name, "caller"))
      TRY(set_variable(m, m->program->name_caller, value));
    else if (code->takes_kwargs)
      TRY(j_dict_set(&m->run, rest.dict, args->pairs[2 * i], value));
    else
      return j_fail(&m->run, "the macro '%.*s' has no parameter '%.*s'", TEXT(code->name),
                    TEXT(name));
  }
  return code->takes_kwargs ? set_variable(m, m->program->name_kwargs, rest) : SCONCE_OK;
}

static sconce_status bind_parameters(struct machine *m, const struct jmacro_code *code,
                                     const struct jargs *args) {
  uint32_t n = args->n < code->n_parameters ? args->n : code->n_parameters;
  if (code->takes_caller) {
    struct text hint = text_of("the macro was called without a caller");
    TRY(set_variable(m, m->program->name_caller, j_undefined(JU_HINT, hint)));
  }
  for (uint32_t i = 0; i < code->n_parameters; i++)
    TRY(set_variable(m, code->parameters[i],
                     i < n ? args->at[i] : j_undefined(JU_MISSING, (struct text){0})));
  if (args->n > n && !code->takes_varargs)
    return j_fail(&m->run, "%u arguments for the macro '%.*s', which takes %u", args->n,
                  TEXT(code->name), code->n_parameters);
  if (code->takes_varargs) {
    struct jvalue *items = j_new(&m->run, struct jvalue, args->n - n), rest;
    if (!items) return J_NO_ROOM;
    if (args->n > n) memcpy(items, args->at + n, (args->n - n) * sizeof *items);
    TRY(j_list(&m->run, JL_TUPLE, items, args->n - n, &rest));
    TRY(set_variable(m, m->program->name_varargs, rest));
  }
  return bind_pairs(m, code, args);
}

static sconce_status call_macro(struct machine *m, const struct jmacro *macro,
                                const struct jargs *args) {
  if (m->n_frames == J_DEPTH_MAX)
    return j_fail(&m->run, "macros that call macros deeper than %d", J_DEPTH_MAX);
  m->frames[m->n_frames++] = (struct frame){.code = macro->code, .back = m->at, .scope = m->scope};
  TRY(open_scope(m, macro->scope));
  TRY(bind_parameters(m, macro->code, args));
  TRY(open_text(m));
  m->at = macro->code->entry;
  return SCONCE_OK;
}

sconce_status op_default(struct machine *m, const struct jop *op) {
  const struct jmacro_code *code = m->frames[m->n_frames - 1].code;
  struct jvalue *v = find_in_scope(m->scope, code->parameters[op->count]);
  if (v && !j_missing(v)) jump(m, op);
  return SCONCE_OK;
}

sconce_status op_return(struct machine *m, const struct jop *op) {
  (void)op;
  const struct frame *f = &m->frames[--m->n_frames];
  m->at = f->back;
  m->scope = f->scope;
  return push(m, close_text(m));
}

/* The arguments leave the stack, but stay where they are until something is pushed. */
static struct jargs take_arguments(struct machine *m, const struct jop *op) {
  m->n_stack -= op->count + 2u * op->flag + 1u;
  const struct jvalue *self = m->stack + m->n_stack;
  return (struct jargs){.self = *self,
                        .at = self + 1,
                        .n = op->count,
                        .pairs = self + 1 + op->count,
                        .n_pairs = op->flag};
}

sconce_status op_call(struct machine *m, const struct jop *op) {
  struct jargs args = take_arguments(m, op);
  struct jvalue callee = args.self, out;
  if (callee.type == J_MACRO) return call_macro(m, callee.macro, &args);
  if (callee.type == J_UNDEFINED) return j_fail_undefined(&m->run, &callee);
  if (callee.type != J_FUNCTION)
    return j_fail(&m->run, "a %s cannot be called", j_type_name(&callee));
  args.self = callee.function->self;
  TRY(j_call_builtin(&m->run, callee.function->builtin, &args, &out));
  return push(m, out);
}

sconce_status op_filter_test(struct machine *m, const struct jop *op) {
  struct jargs args = take_arguments(m, op);
  struct jvalue out;
  bool test = op->code == OP_TEST;
  if (op->arg < 0)
    return fail(m->run.err, SCONCE_UNSUPPORTED, "there is no %s '%.*s'", test ? "test" : "filter",
                TEXT(j_text(&m->program->constants[-1 - op->arg])));
  TRY(j_call_builtin(&m->run, test ? &j_tests[op->arg] : j_filter_at(op->arg), &args, &out));
  return push(m, out);
}
