/* What an operator is, and what it may ask and do.
 *
 * Each operator gives `shape`: live dims (and scalars) of its outputs from those of its inputs; and
 * `emit`: dispatch records. Both are pure and run again whenever an argument changed; there is no
 * other path. Arguments are counted as in the file; the last one is the output. */
#ifndef GRAPH_OP_H
#define GRAPH_OP_H

#include "graph/graph.h"

struct plan {
  struct graph *g;
  struct node *node;
  sconce_error *err;
  bool first; /* at load: dims are the maximum and scalars still unknown */
};

enum op_flags {
  OP_VIEW = 1,  /* same elements in the same order: costs nothing where memory allows */
  OP_HOST = 2,  /* scalars only: nothing is ever dispatched */
  OP_LIST = 8,  /* several results: the last argument is a ValueList */
  OP_READS = 4, /* looks at the elements of argument 0 on the host */
  OP_OWN = 16,  /* only graph_add_own adds it */
};

struct op {
  const char *name;
  sconce_status (*shape)(struct plan *p, const struct node *n);
  sconce_status (*emit)(struct plan *p, const struct node *n); /* NULL with OP_HOST */
  sconce_status (*prepare)(struct plan *p, struct node *n);    /* optional; once, at load */
  uint32_t n_args;  /* output included; 0: checks itself */
  uint32_t writes;  /* bit i: argument i is written in place as well */
  uint32_t flags;   /* enum op_flags */
  uint32_t variant; /* which of its family it is, in the family's own terms */
  const struct kernel
      *kernels[3];  /* its tables, for tests and checks; each ends with an empty row */
  uint32_t unbound; /* bit i: argument i is in no dispatch, at most another layout of it is */
};
/* Only passes make one; its parts have the shapes. */
static inline bool op_is_fused(const struct op *op) { return !op->shape; }
/* No file can name it. */
static inline bool op_is_ours(const struct op *op) { return op_is_fused(op) || op->flags & OP_OWN; }
extern const struct op *const op_families[]; /* ops/registry.c: lists that end with an empty row */

/* For a fused node whose kernel does not fit: the records that its parts would make alone. */
SCONCE_CHECK sconce_status emit_parts(struct plan *p, const struct node *n);

/* ---- arguments ------------------------------------------------------------------------------- */

/* A tensor argument; NULL and an error in p if it is none. */
const struct tensor *arg_tensor(struct plan *p, const struct node *n, uint32_t i);
bool arg_is_null(struct plan *p, const struct node *n, uint32_t i);
/* Numbers arrive as Int, Double, Bool or SymInt by accident of the exporter: one reader each. */
SCONCE_CHECK sconce_status arg_int(struct plan *p, const struct node *n, uint32_t i, int64_t *out);
SCONCE_CHECK sconce_status arg_float(struct plan *p, const struct node *n, uint32_t i, double *out);
SCONCE_CHECK sconce_status arg_bool(struct plan *p, const struct node *n, uint32_t i, bool *out);
SCONCE_CHECK sconce_status arg_int_or(struct plan *p, const struct node *n, uint32_t i,
                                      int64_t absent, int64_t *out); /* Null: absent */
SCONCE_CHECK sconce_status arg_float_or(struct plan *p, const struct node *n, uint32_t i,
                                        double absent, double *out);
/* An IntList, or a ValueList with live integers; at most `cap`. */
SCONCE_CHECK sconce_status arg_ints(struct plan *p, const struct node *n, uint32_t i, int64_t *out,
                                    uint32_t cap, uint32_t *count);
/* A dim counted from the end if negative, checked against the rank. */
SCONCE_CHECK sconce_status arg_dim(struct plan *p, const struct node *n, uint32_t i, uint32_t rank,
                                   uint32_t *out);
bool arg_text_is(struct plan *p, const struct node *n, uint32_t i, const char *text);
/* Value ids: argument i, or item k of the ValueList that argument i is. NO_VALUE: none. */
uint32_t arg_id(const struct node *n, uint32_t i);
uint32_t arg_item(struct plan *p, const struct node *n, uint32_t i, uint32_t k);
uint32_t arg_count(struct plan *p, const struct node *n, uint32_t i); /* items of a ValueList */
const struct tensor *tensor_at(struct plan *p, uint32_t id);          /* NULL if it is no tensor */
static inline uint32_t out_id(const struct node *n) { return n->args[n->n_args - 1]; }

/* For OP_READS: the elements of argument 0 are only on the device; the plan stops here until the
 * host has them. Return its result from shape. */
SCONCE_CHECK sconce_status want_elements(struct plan *p, const struct node *n);

/* ---- shape ----------------------------------------------------------------------------------- */

SCONCE_CHECK sconce_status set_dims(struct plan *p, uint32_t id, const uint32_t *dims,
                                    uint32_t rank);
SCONCE_CHECK sconce_status set_symint(struct plan *p, uint32_t id, int64_t number);
/* Rules that many share. */
SCONCE_CHECK sconce_status shape_same(struct plan *p, const struct node *n); /* out = argument 0 */

/* ---- emit ------------------------------------------------------------------------------------ */

/* The first row that fits: what the device offers, then the row's own predicate over `problem`
 * (the kernel's params or another struct that the table's predicates agree on). */
const struct kernel *choose(struct plan *p, const struct kernel *table, const void *problem);
/* The same for those who can do without: NULL is no error. */
const struct kernel *row_for(struct plan *p, const struct kernel *table, const void *problem);

/* Appends a record. `params` has the size that the shader says; operands in binding order, without
 * the params. `groups` workgroups in one dimension: folded past the device's limit, and read with
 * grid_group() in the shader. Nothing is appended for 0 groups. */
SCONCE_CHECK sconce_status dispatch(struct plan *p, const struct kernel *row, const void *params,
                                    uint64_t groups, const struct operand *operands);
/* As dispatch, with the parameters in the shader's text: it need not load them, and the compiler
 * knows them. For values that no live dim or scalar has a part in, since each set is compiled. */
SCONCE_CHECK sconce_status dispatch_fixed(struct plan *p, const struct kernel *row,
                                          const void *params, uint64_t groups,
                                          const struct operand *operands);
#define OPERANDS(...) ((const struct operand[]){__VA_ARGS__})

/* How many of `rows` rows of row_bytes fit a binding, in steps whose byte size is a multiple of the
 * alignment; 0 if not even one step does. For operands split by rows. */
uint64_t rows_per_binding(const struct plan *p, uint64_t row_bytes, uint64_t rows);

/* graph_finish's parts in rewrite.c and memory.c. */
SCONCE_CHECK sconce_status rewrite_all(struct graph *g, sconce_error *err);
SCONCE_CHECK sconce_status memory_plan(struct graph *g, sconce_error *err);

static inline uint64_t div_up(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

#endif
