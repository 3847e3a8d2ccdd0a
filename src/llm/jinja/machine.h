/* The machine that runs a template's code. One loop, no recursion: macros are frames on a stack of
 * ours. Every operation costs a step, and what takes longer costs more. */
#ifndef LLM_JINJA_MACHINE_H
#define LLM_JINJA_MACHINE_H

#include "llm/jinja/builtin.h"
#include "llm/jinja/code.h"

enum {
  STACK_MAX = 1 << 17,                 /* values */
  OPEN_MAX = BLOCKS_MAX * J_DEPTH_MAX, /* loops and texts being written */
};

struct jscope {
  struct jscope *parent;
  struct binding {
    uint32_t name;
    struct jvalue value;
  } *at; /* (n) */
  size_t n, cap;
  bool kept; /* a macro holds it: the next turn of a loop needs another one */
};

struct jmacro {
  const struct jmacro_code *code;
  struct jscope *scope; /* where it was defined */
};

struct frame {
  const struct jmacro_code *code;
  uint32_t back;
  struct jscope *scope;
};

struct machine {
  struct jrun run;
  const struct jinja_program *program;
  struct jvalue *globals; /* (program->n_names) */
  uint32_t at;            /* the next operation */
  struct jvalue *stack;
  size_t n_stack, cap_stack;
  struct jscope *scope;
  struct jloop **loops;
  size_t n_loops, cap_loops;
  struct jbuffer *texts; /* being written, the template's own first */
  size_t n_texts, cap_texts;
  struct frame *frames; /* (J_DEPTH_MAX) */
  size_t n_frames;
};

/* ---- stacks (machine.c) ---------------------------------------------------------------------- */

/* Room for element n of a stack that may have `most`; NULL with the error set. */
void *machine_grow(struct machine *m, void *old, size_t n, size_t *cap, size_t size, size_t most);
SCONCE_CHECK sconce_status push(struct machine *m, struct jvalue v);
/* The code takes no more than it put there. */
static inline struct jvalue pop(struct machine *m) { return m->stack[--m->n_stack]; }
static inline struct jvalue *top(struct machine *m) { return &m->stack[m->n_stack - 1]; }
static inline void jump(struct machine *m, const struct jop *op) {
  m->at = (uint32_t)((int64_t)m->at - 1 + op->arg);
}

SCONCE_CHECK sconce_status open_text(struct machine *m);
static inline struct jbuffer *writing(struct machine *m) { return &m->texts[m->n_texts - 1]; }
static inline struct jvalue close_text(struct machine *m) {
  return j_taken(&m->texts[--m->n_texts]);
}

SCONCE_CHECK sconce_status open_scope(struct machine *m, struct jscope *parent);
struct jvalue *find_in_scope(struct jscope *scope, uint32_t name); /* or NULL */
SCONCE_CHECK sconce_status set_variable(struct machine *m, uint32_t name, struct jvalue v);
SCONCE_CHECK sconce_status get_variable(struct machine *m, uint32_t name, struct jvalue *out);

/* ---- operations (flow.c) --------------------------------------------------------------------- */

sconce_status op_jump(struct machine *m, const struct jop *op);
sconce_status op_jump_false(struct machine *m, const struct jop *op);
sconce_status op_and_or(struct machine *m, const struct jop *op);
sconce_status op_for(struct machine *m, const struct jop *op);
sconce_status op_for_next(struct machine *m, const struct jop *op);
sconce_status op_for_break(struct machine *m, const struct jop *op);
sconce_status op_sift(struct machine *m, const struct jop *op);
sconce_status op_sift_next(struct machine *m, const struct jop *op);
sconce_status op_macro(struct machine *m, const struct jop *op);
sconce_status op_default(struct machine *m, const struct jop *op);
sconce_status op_return(struct machine *m, const struct jop *op);
sconce_status op_call(struct machine *m, const struct jop *op);
sconce_status op_filter_test(struct machine *m, const struct jop *op);

#endif
