/* What an operator is, and what it may ask and do.
 *
 * Each operator gives `shape`: live dims (and scalars) of its outputs from those of its inputs; and
 * `emit`: dispatch records. Both run again whenever an argument changed, all shapes before all
 * records; there is no other path. So whatever a call can get wrong (a position, sizes that do not
 * fit each other) is found by `shape`, and `emit` sees only what `shape` accepted. At load both run
 * once with all dims at their maximum, also those of results; nobody runs those records.
 *
 * Arguments are counted as in the file; the last one is the output. */
#ifndef GRAPH_OP_H
#define GRAPH_OP_H

#include "graph/graph.h"

struct plan {
  struct graph *g;
  struct node *node;
  sconce_error *err;
};

enum op_flags {
  OP_VIEW = 1 << 0,     /* same elements in the same order: costs nothing where memory allows */
  OP_HOST = 1 << 1,     /* scalars only: nothing is ever dispatched */
  OP_READS = 1 << 2,    /* looks at the elements of argument 0 on the host */
  OP_LIST = 1 << 3,     /* several results: the last argument is a ValueList of them, also where a
                           portable call has them one by one before it */
  OP_OWN = 1 << 4,      /* only graph_add_own adds it */
  OP_FLOW = 1 << 5,     /* a jump or a label: nothing is moved across it */
  OP_ROWS = 1 << 6,     /* argument 0 is rows along its last dim, and each alone makes one of the
                           result: so do the other arguments where they are constants */
  OP_IN_PLACE = 1 << 7, /* changes argument 0, which nobody else reads, into the result where memory
                           allows; else they are apart */
  OP_SEES = 1 << 17,    /* a fused node that reads and writes past views of its parts: they need not
                           be free */
  OP_APPENDS = 1 << 16, /* writes rows of state at a position that a call gives, and no others */
  /* What adapt.c does for it: */
  OP_NUMBERS = 1 << 8,     /* numbers among the first two arguments become tensors */
  OP_PROMOTES = 1 << 9,    /* the first two arguments take one dtype, the result may have another */
  OP_CHOOSES = 1 << 10,    /* …of arguments 1 and 2 instead: argument 0 chooses between them */
  OP_COMPARES = 1 << 11,   /* …and is bool */
  OP_DIVIDES = 1 << 12,    /* …and is a float, unless argument 2 says how to round */
  OP_SELF = 1 << 13,       /* may be given its result as an argument */
  OP_SELF_WORDS = 1 << 14, /* …as argument 0, where elements have 4 bytes */
  OP_FOLLOWS = 1 << 15,    /* argument 0 takes the dtype that the result says, if kernels have it */
  OP_WIDENS = 1 << 19,     /* argument 0 is widened where no kernel has its elements */
  OP_JOINS = 1 << 18,      /* the tensors in the list that argument 0 is take the result's dtype */
};

/* A node that is to become others. */
struct expansion {
  struct graph *g;
  uint32_t index; /* in the file's chain */
  const uint32_t *args;
  uint32_t n_args;
  sconce_error *err;
};

struct op {
  const char *name;
  sconce_status (*shape)(struct plan *p, const struct node *n);
  sconce_status (*emit)(struct plan *p, const struct node *n); /* NULL with OP_HOST */
  sconce_status (*prepare)(struct plan *p, struct node *n);    /* optional; once, at load */
  sconce_status (*expand)(const struct expansion *x); /* instead of all these: adds other nodes */
  bool (*expands)(const struct expansion *x);         /* only these calls; NULL: all of them */
  const char *also; /* other names for it with the same arguments, separated by spaces: most of
                       ExecuTorch's portable kernels, "aten::log.out" for "aten.log.default" */
  uint32_t n_args;  /* output included; 0: checks itself */
  uint32_t writes;  /* bit i: argument i is written in place as well */
  uint32_t flags;   /* enum op_flags */
  uint32_t code;    /* which of its family it is, in the family's own terms */
  uint32_t unbound; /* bit i: argument i is never bound itself, at most a packed copy of it */
  const struct kernel *const *tables; /* all that choose may take for it; ends with NULL */
  const char *refused; /* why no build runs it, in a sentence; all else is then empty */
};
#define TABLES(...) ((const struct kernel *const[]){__VA_ARGS__, NULL})
/* Only passes make one; its parts have the shapes. */
static inline bool op_is_fused(const struct op *op) {
  return !op->shape && !op->expand && !op->refused;
}
/* No file can name it. */
static inline bool op_is_ours(const struct op *op) { return op_is_fused(op) || op->flags & OP_OWN; }
extern const struct op *const op_families[]; /* ops/registry.c: lists that end with an empty row */

/* For a fused node whose kernel does not fit: the records that its parts would make alone. */
SCONCE_CHECK sconce_status emit_parts(struct plan *p, const struct node *n);

/* ---- arguments ------------------------------------------------------------------------------- */

/* arg_is_… ask and say nothing; the others read, or complain with a sentence about argument i. */
bool arg_is_null(const struct plan *p, const struct node *n, uint32_t i);
bool arg_is_tensor(const struct plan *p, const struct node *n, uint32_t i);
bool arg_is_int(const struct plan *p, const struct node *n, uint32_t i, int64_t *out);
bool arg_is_float(const struct plan *p, const struct node *n, uint32_t i, double *out);
bool arg_is_text(const struct plan *p, const struct node *n, uint32_t i, const char *text);

SCONCE_CHECK sconce_status arg_tensor(struct plan *p, const struct node *n, uint32_t i,
                                      const struct tensor **out);
/* Arguments first to first + count - 1. */
SCONCE_CHECK sconce_status arg_tensors(struct plan *p, const struct node *n, uint32_t first,
                                       uint32_t count, const struct tensor **out);
/* Numbers arrive as Int, Double, Bool or SymInt by accident of the exporter: one reader each. */
SCONCE_CHECK sconce_status arg_int(struct plan *p, const struct node *n, uint32_t i, int64_t *out);
SCONCE_CHECK sconce_status arg_float(struct plan *p, const struct node *n, uint32_t i, double *out);
/* …as what it is. */
SCONCE_CHECK sconce_status arg_number(struct plan *p, const struct node *n, uint32_t i,
                                      struct number *out);
SCONCE_CHECK sconce_status arg_bool(struct plan *p, const struct node *n, uint32_t i, bool *out);
SCONCE_CHECK sconce_status arg_int_or(struct plan *p, const struct node *n, uint32_t i,
                                      int64_t absent, int64_t *out); /* Null: absent */
SCONCE_CHECK sconce_status arg_float_or(struct plan *p, const struct node *n, uint32_t i,
                                        double absent, double *out);
/* An IntList, or a ValueList with live integers; at most `cap`. */
SCONCE_CHECK sconce_status arg_ints(struct plan *p, const struct node *n, uint32_t i, int64_t *out,
                                    uint32_t cap, uint32_t *count);
/* A list of numbers of any kind; at most `cap`. */
SCONCE_CHECK sconce_status arg_floats(struct plan *p, const struct node *n, uint32_t i, double *out,
                                      uint32_t cap, uint32_t *count);
/* A dim counted from the end if negative, checked against the rank. */
SCONCE_CHECK sconce_status arg_dim(struct plan *p, const struct node *n, uint32_t i, uint32_t rank,
                                   uint32_t *out);
/* Value ids: argument i, or item k of the ValueList that argument i is. NO_VALUE: none. */
uint32_t arg_id(const struct node *n, uint32_t i);
uint32_t arg_item(const struct plan *p, const struct node *n, uint32_t i, uint32_t k);
uint32_t arg_count(const struct plan *p, const struct node *n, uint32_t i); /* of a ValueList */
const struct tensor *tensor_at(const struct plan *p, uint32_t id); /* NULL if it is no tensor */
/* The result, which is a tensor unless the operator is OP_LIST, OP_HOST or fused. */
const struct tensor *out_tensor(const struct plan *p, const struct node *n);
static inline uint32_t out_id(const struct node *n) { return n->args[n->n_args - 1]; }

/* For OP_READS: the elements of argument 0 are only on the device; the plan stops here until the
 * host has them. Return its result from shape. */
SCONCE_CHECK sconce_status want_elements(struct plan *p, const struct node *n);

/* ---- shape ----------------------------------------------------------------------------------- */

SCONCE_CHECK sconce_status set_dims(struct plan *p, uint32_t id, const uint32_t *dims,
                                    uint32_t rank);
SCONCE_CHECK sconce_status set_symint(struct plan *p, uint32_t id, int64_t number);
SCONCE_CHECK sconce_status set_number(struct plan *p, uint32_t id, struct number number);
/* Rules that many share. */
SCONCE_CHECK sconce_status shape_same(struct plan *p, const struct node *n); /* out = argument 0 */

/* ---- emit ------------------------------------------------------------------------------------ */

/* The first row of a table of n's operator that the device can run, that is for these elements and
 * whose predicate fits the problem. Rows that need subgroups come second where a subgroup may have
 * fewer than 16 threads, and graph->force goes before all. */
SCONCE_CHECK sconce_status choose(struct plan *p, const struct node *n, const struct kernel *table,
                                  enum vk_dtype dtype, const void *problem,
                                  const struct kernel **row);
/* The same for those who can do without: NULL if no row fits. */
const struct kernel *row_for(const struct plan *p, const struct node *n, const struct kernel *table,
                             enum vk_dtype dtype, const void *problem);

/* Appends a record. `params` has the size that the shader says; operands in binding order, without
 * the params. `workgroups` in one dimension: folded past the device's limit, and read with
 * grid_group() in the shader. Nothing is appended for 0 of them. */
SCONCE_CHECK sconce_status dispatch(struct plan *p, const struct kernel *row, const void *params,
                                    uint64_t workgroups, const struct operand *operands);
/* As dispatch, with the parameters in the shader's text: it need not load them, and the compiler
 * knows them. For values that no live dim or scalar has a part in, since each set is compiled: the
 * first request makes a row of the graph's own, of which there are at most 32. */
SCONCE_CHECK sconce_status dispatch_fixed(struct plan *p, const struct kernel *row,
                                          const void *params, uint64_t workgroups,
                                          const struct operand *operands);
#define OPERANDS(...) ((const struct operand[]){__VA_ARGS__})

/* How many of `rows` rows of row_bytes fit a binding, in steps whose byte size is a multiple of the
 * alignment; 0 if not even one step does. For operands split by rows. */
uint64_t rows_per_binding(const struct plan *p, uint64_t row_bytes, uint64_t rows);

/* This row with its parameters in the shader's text, made at the first request and kept in the
 * graph; the row itself if they cannot stand there, or if the graph has too many such rows. */
SCONCE_CHECK sconce_status kernel_fixed(struct graph *g, const struct kernel *row,
                                        const void *params, const struct kernel **out,
                                        sconce_error *err);

/* graph_finish's parts in rewrite.c and memory.c. */
SCONCE_CHECK sconce_status rewrite_all(struct graph *g, sconce_error *err);
SCONCE_CHECK sconce_status memory_plan(struct graph *g, sconce_error *err);

/* A number as kernels take it for elements of this dtype: the bits of a float32, or an integer. */
uint32_t number_bits(enum vk_dtype dtype, double number);
static inline uint64_t div_up(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

/* May the operator be given its result, a tensor, as argument 0? */
static inline bool op_writes_self(const struct graph *g, const struct op *op, uint32_t result) {
  return op->flags & OP_SELF ||
         (op->flags & OP_SELF_WORDS && vk_dtype_size(g->values[result].tensor.dtype) == 4);
}

#endif
