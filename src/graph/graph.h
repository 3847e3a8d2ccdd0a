/* The graph: values and nodes of one method in one arena, and the plan that its operators make.
 *
 * Dims in a file are upper bounds (dim_max); every tensor also has live dims, dense from offset 0.
 * A chain is in dependency order, so one forward pass over it makes every shape and scalar exact.
 * Nothing here knows the GPU: buffers are numbers, dispatches are records. */
#ifndef GRAPH_GRAPH_H
#define GRAPH_GRAPH_H

#include "base/log.h"
#include "format/vkgraph.h"
#include "graph/kernel.h"
#include "graph/packing.h"

enum { RANK_MAX = VK_MAX_RANK, NODE_EXTRAS = 6 };
/* Buffers and bindings are a multiple of this, so that a kernel may read and write whole vec4s
 * without a case for the last one; what lies behind a tensor's elements means nothing. */
enum { BUFFER_UNIT = 16 };
enum { NODES_MAX = 100000 }; /* by default; the largest language models have some thousands */
#define NO_VALUE UINT32_MAX
#define NO_NODE UINT32_MAX
enum {
  STEPS_MAX = 10000000
}; /* nodes of one call, by default: as many as ExecuTorch's instructions */

/* Where a program's planned memory has it. */
struct place {
  uint32_t memory_id; /* 0: nowhere */
  uint64_t offset;
};

struct tensor {
  enum vk_dtype dtype;
  uint32_t rank;
  uint32_t dim_max[RANK_MAX], dim_live[RANK_MAX]; /* outermost first */
  bool constant; /* has initial bytes, and a buffer that persists */
  bool written;  /* in place: a constant that nodes write (a KV cache), or what has two writers */
  bool defined;  /* some node gives it; if another one does too, or it is an input, it is written */
  bool input, output;
  bool scratch;        /* made by an operator, lives during its node */
  bool bound;          /* dispatches may use it; not if only the host looks at its elements */
  struct extent bytes; /* constant: exactly its size, or none: a buffer that begins with zeros */
  struct place place;  /* of a buffer that several methods may have in common */
  const struct packing *packing; /* of a constant on the device; NULL: as in the file */
  uint32_t root;    /* the value whose buffer this one uses; itself, or what it is a view of */
  uint32_t buffer;  /* of a root: index into graph->buffers */
  uint64_t base;    /* where in that buffer it starts; not 0 for joined constants only */
  uint32_t joined;  /* constant: the one behind it in the same buffer, or NO_VALUE */
  bool behind;      /* …and it is itself behind another */
  const void *host; /* input: its elements in this dtype while a call is being planned, or NULL */
};

/* What a live scalar is at the moment. Programs' scalars change their kind as they go. */
enum number_kind { NUMBER_INT, NUMBER_DOUBLE, NUMBER_BOOL };

struct number {
  enum number_kind kind;
  union {
    int64_t i; /* Int, and Bool: 0 or 1 */
    double d;
  };
};

struct value {
  enum vk_kind kind;
  enum number_kind number; /* of a SymInt */
  uint64_t stamp;          /* the moment at which its dims or its number last changed */
  union {
    int64_t i; /* Int; SymInt: live, unless it is a double now */
    double d;
    bool b;
    struct text text;
    struct tensor tensor;
    struct {
      uint32_t n;
      union {
        const int64_t *ints;
        const double *doubles;
        const bool *bools;
        uint32_t *ids; /* ValueList; NO_VALUE: none */
      };
    } list;
  };
};

/* What a kernel is bound to: a value's buffer, or a part of it. */
struct operand {
  uint32_t value;
  uint64_t offset, size; /* bytes; size 0: the whole tensor at its maximum */
};

/* One dispatch. */
struct record {
  const struct kernel *row;
  uint32_t n_operands;
  struct operand operands[BINDINGS_MAX];
  uint32_t grid[3];
  uint32_t params_size;
  uint8_t params[PARAMS_MAX];
};

struct node {
  const struct op *op;
  const char *name; /* as in the file */
  uint32_t index;   /* in the file's chain, for messages */
  uint32_t n_args;
  uint32_t *args;              /* value ids; the last is the output (a ValueList if several) */
  uint32_t extra[NODE_EXTRAS]; /* values that op->prepare made: packed constants, scratch */
  uint32_t order;              /* its place in the chain before the passes */
  struct node *parts;          /* of a fused node: what it stands for, in their order */
  uint32_t n_parts;
  const void *fused; /* what its pass knows about it */
  struct record *records;
  uint32_t n_records, cap_records;
  uint64_t stamp; /* the moment at which its records were made */
  bool stale;     /* its records do not match its arguments */
  bool fits;      /* its shape accepted the maximum dims */
  bool begins;    /* a segment: see flow.h */
  bool counts;    /* a scalar that it reads and gives: each visit is another one */
};

enum buffer_kind { BUFFER_CONSTANT, BUFFER_STATE, BUFFER_INPUT, BUFFER_OUTPUT, BUFFER_TRANSIENT };

struct buffer {
  enum buffer_kind kind;
  uint64_t size;  /* bytes, a multiple of BUFFER_UNIT, not 0 */
  uint32_t value; /* whose bytes initialise it, with those joined to it: constants and state */
};

/* See constant_set.h; a zeroed one is empty. */
struct constant_set {
  uint32_t *slots;
  uint32_t n, cap; /* cap: 0 or a power of two */
};

struct graph {
  struct arena arena;
  sconce_log log;
  struct caps caps;
  struct value *values;
  uint32_t n_values, cap_values;
  struct node *nodes;
  uint32_t n_nodes, cap_nodes;
  uint32_t max_nodes;         /* a file may call one small delegate many times */
  uint32_t max_load_ms;       /* for building and planning it; 0: as long as it takes */
  uint64_t ends_ns;           /* when those are over, by os_clock_ns; 0: never */
  uint64_t n_items;           /* arguments of its nodes and items of lists among them */
  uint64_t n_looks;           /* see graph_look */
  uint32_t *inputs, *outputs; /* value ids: tensors or SymInts */
  uint32_t n_inputs, n_outputs;
  struct buffer *buffers;
  uint32_t n_buffers;
  struct op_names *op_names;  /* of the registry, once there is a node */
  struct constant_set packed; /* what graph_packed made */
  uint32_t from, planned;     /* nodes that the last graph_plan went through: their records are new
                                 or still right */
  uint32_t next;              /* where the call goes on; n_nodes when it is whole */
  uint32_t jump;              /* where a jump leads that was just taken, or NO_NODE */
  uint32_t wanted;         /* value that the host must read from the device to go on, or NO_VALUE */
  uint64_t clock;          /* moments: each change of a value is one */
  uint64_t began;          /* the moment at which the call being planned began */
  uint64_t steps;          /* nodes that this call went through */
  uint64_t max_steps;      /* …and may at most: a loop might never end */
  uint32_t nodes_planned;  /* nodes whose records the last call made anew */
  const char *force;       /* name of the kernel row to prefer, for tests and benches */
  const char *passes_off;  /* names of passes not to run, separated by commas; "all" */
  struct fixed_row *fixed; /* rows of dispatch_fixed */
  uint32_t n_fixed;
  struct undo *undo; /* what this call changed, newest first */
  struct undo *undo_free;
};

void graph_init(struct graph *g, const sconce_allocator *allocator, const struct caps *caps);
void graph_free(struct graph *g);
/* A finished graph once more, for calls of its own: live dims, scalars and records are its own, all
 * else is the original's, which must outlive it. Graphs are freed in any case. */
SCONCE_CHECK sconce_status graph_copy(struct graph *to, const struct graph *from,
                                      sconce_error *err);

/* ---- building -------------------------------------------------------------------------------- */

/* A new value, zeroed; NO_VALUE with an error when memory runs out. */
uint32_t graph_add_value(struct graph *g, enum vk_kind kind, sconce_error *err);
uint32_t graph_add_tensor(struct graph *g, enum vk_dtype dtype, uint32_t rank, const uint32_t *dims,
                          sconce_error *err);
/* Finds the operator by name; SCONCE_UNSUPPORTED if this build has none. args are copied. */
SCONCE_CHECK sconce_status graph_add_node(struct graph *g, struct text name, uint32_t index,
                                          const uint32_t *args, uint32_t n_args, sconce_error *err);
/* One that no file has, behind all others. */
SCONCE_CHECK sconce_status graph_add_own(struct graph *g, const struct op *op, const uint32_t *args,
                                         uint32_t n_args, sconce_error *err);
/* Adds a delegate's values and chain. map[i] is the graph's value for the delegate's value i where
 * the caller has one already, else NO_VALUE on entry; it is complete on return. lists[i]: the items
 * of its value i if that is a list of numbers and was added before, else NULL on entry. */
SCONCE_CHECK sconce_status graph_add_delegate(struct graph *g, const struct vkgraph *vk,
                                              uint32_t *map, const void **lists, sconce_error *err);
/* After the last node and with inputs and outputs set: passes, views, prepare, buffers, a first
 * plan at the maximum dims. */
SCONCE_CHECK sconce_status graph_finish(struct graph *g, sconce_error *err);

/* A constant in another layout: a value of its own with the same dtype and dims, the same one for
 * the same bytes. */
SCONCE_CHECK sconce_status graph_packed(struct graph *g, uint32_t value,
                                        const struct packing *packing, uint32_t *out,
                                        sconce_error *err);
/* Constants that one kernel reads come to lie in one buffer, in this order, each at a multiple of
 * the device's binding alignment. false: one of them is no constant, or is joined already. */
bool graph_join(struct graph *g, const uint32_t *values, uint32_t n);
/* Bytes from the first of joined constants to the end of the last; bases are known from buffers
 * on. */
uint64_t graph_joined_size(const struct graph *g, uint32_t first);
/* Memory of a node's own, sized for the whole live range. */
SCONCE_CHECK sconce_status graph_scratch(struct graph *g, enum vk_dtype dtype, uint64_t numel,
                                         uint32_t *out, sconce_error *err);

/* ---- bounds ---------------------------------------------------------------------------------- */

/* What is searched for while a graph is built may take so many steps in all. Real files need some
 * hundred thousand; whoever searches gives up, in a way that is right, when it is false. */
bool graph_look(struct graph *g, uint64_t steps);
/* Fails once max_load_ms are over. */
SCONCE_CHECK sconce_status graph_check_time(const struct graph *g, sconce_error *err);

/* ---- asking ---------------------------------------------------------------------------------- */

static inline bool tensor_is_float(const struct tensor *t) {
  return t->dtype == VK_FLOAT32 || t->dtype == VK_FLOAT16;
}
uint64_t tensor_numel(const struct tensor *t); /* live */
uint64_t tensor_numel_max(const struct tensor *t);
uint64_t tensor_nbytes_max(const struct tensor *t); /* on the device: as it is packed */
uint64_t tensor_nbytes(const struct tensor *t);     /* live */
uint64_t buffer_size(uint64_t nbytes);              /* what so many bytes take on the device */
/* "float32 [2, 3]" of the live dims; returns out. */
const char *tensor_text(const struct tensor *t, char out[120]);

/* Does it look at elements that only the device has, so that the call must stop for them? */
bool node_reads_device(const struct graph *g, const struct node *n);

/* The registry by any of an operator's names; NULL if there is no such operator. Looks through all
 * of them: graph_add_node has an index. */
const struct op *op_find(struct text name);
/* Why no file can have a node of that name, and what to do about it; NULL: it can. */
const char *op_refusal(struct text name);

/* ---- calls ----------------------------------------------------------------------------------- */

/* A call is: graph_begin, graph_set_dims / graph_set_symint for inputs, graph_plan; on failure
 * graph_rollback puts every dim and scalar back. */
void graph_begin(struct graph *g);
SCONCE_CHECK sconce_status graph_set_dims(struct graph *g, uint32_t value, const uint32_t *dims,
                                          uint32_t rank, sconce_error *err);
SCONCE_CHECK sconce_status graph_set_symint(struct graph *g, uint32_t value, int64_t number,
                                            sconce_error *err);
SCONCE_CHECK sconce_status graph_set_number(struct graph *g, uint32_t value, struct number number,
                                            sconce_error *err);
/* Its elements changed though its dims did not: who reads them on the host must look again. */
SCONCE_CHECK sconce_status graph_touch(struct graph *g, uint32_t value, sconce_error *err);
/* Plans from the first node on, or from where it stopped, up to the next jump that is taken: the
 * caller takes the records of nodes `from` to `planned` and plans on until graph_is_whole. If a
 * scalar or a condition comes from a tensor that the device computes it stops there with `wanted`
 * set: run what was planned, give that tensor its host elements, and plan on. */
SCONCE_CHECK sconce_status graph_plan(struct graph *g, sconce_error *err);
static inline bool graph_is_whole(const struct graph *g) {
  return g->next == g->n_nodes && g->wanted == NO_VALUE;
}
enum { HOST_READ_MAX = 65536 }; /* bytes of a tensor that scalars are read from */
/* For a call that is not run: goes through all nodes in their order, takes no jump, and goes on
 * with 0 for what only the device knows. */
SCONCE_CHECK sconce_status graph_plan_unseen(struct graph *g, sconce_error *err);
void graph_rollback(struct graph *g);

/* In one dispatch a buffer is read by any number of bindings or written by exactly one, and a
 * persistent buffer is never a transient one. */
SCONCE_CHECK sconce_status graph_check(const struct graph *g, sconce_error *err);

#endif
