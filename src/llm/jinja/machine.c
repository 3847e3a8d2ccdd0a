/* Stacks and variables of the machine: see machine.h. */
#include "llm/jinja/machine.h"

void *machine_grow(struct machine *m, void *old, size_t n, size_t *cap, size_t size, size_t most) {
  if (n < *cap) return old;
  if (n >= most) {
    (void)!fail(m->run.err, SCONCE_NO_MEMORY, "the template has more than %zu things open", most);
    return NULL;
  }
  size_t more = *cap ? 2 * *cap : 32;
  void *array = j_alloc(&m->run, more, size);
  if (array && n) memcpy(array, old, n * size);
  if (array) *cap = more;
  return array;
}

sconce_status push(struct machine *m, struct jvalue v) {
  struct jvalue *stack = machine_grow(m, m->stack, m->n_stack, &m->cap_stack, sizeof v, STACK_MAX);
  if (!stack) return J_NO_ROOM;
  m->stack = stack;
  m->stack[m->n_stack++] = v;
  return SCONCE_OK;
}

sconce_status open_text(struct machine *m) {
  struct jbuffer *texts =
      machine_grow(m, m->texts, m->n_texts, &m->cap_texts, sizeof *m->texts, OPEN_MAX);
  if (!texts) return J_NO_ROOM;
  m->texts = texts;
  m->texts[m->n_texts++] = (struct jbuffer){0};
  return SCONCE_OK;
}

/* ---- variables ------------------------------------------------------------------------------- */

sconce_status open_scope(struct machine *m, struct jscope *parent) {
  struct jscope *scope = j_new(&m->run, struct jscope, 1);
  if (!scope) return J_NO_ROOM;
  scope->parent = parent;
  m->scope = scope;
  return SCONCE_OK;
}

struct jvalue *find_in_scope(struct jscope *scope, uint32_t name) {
  for (size_t i = 0; i < scope->n; i++)
    if (scope->at[i].name == name) return &scope->at[i].value;
  return NULL;
}

sconce_status set_variable(struct machine *m, uint32_t name, struct jvalue v) {
  struct jscope *s = m->scope;
  struct jvalue *there = find_in_scope(s, name);
  if (there) {
    *there = v;
    return SCONCE_OK;
  }
  if (s->n == s->cap) {
    size_t cap = s->cap ? 2 * s->cap : 4;
    struct binding *at = j_new(&m->run, struct binding, cap);
    if (!at) return J_NO_ROOM;
    if (s->n) memcpy(at, s->at, s->n * sizeof *at);
    s->at = at;
    s->cap = cap;
  }
  s->at[s->n++] = (struct binding){name, v};
  return SCONCE_OK;
}

sconce_status get_variable(struct machine *m, uint32_t name, struct jvalue *out) {
  size_t looked = 0;
  *out = m->globals[name];
  for (struct jscope *s = m->scope; s; s = s->parent) {
    struct jvalue *v = find_in_scope(s, name);
    looked += 1 + s->n;
    if (!v) continue;
    *out = *v;
    break;
  }
  if (j_missing(out)) *out = j_undefined(JU_NAME, m->program->names[name]);
  return j_spend(&m->run, looked / 8);
}
