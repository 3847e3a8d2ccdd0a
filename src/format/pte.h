/* A program: what ExecuTorch's exporter writes into a .pte file.
 *
 * pte_open verifies everything: first the flatbuffer's structure, then what it means (every index,
 * size, constant, jump target). What it accepts can be walked with the accessors below without a
 * check: an index in range never fails, an index out of range gives an empty view.
 *
 * The file's bytes are borrowed and must outlive the views. A sentence says what and where, without
 * the file's name: the caller puts that in front. */
#ifndef FORMAT_PTE_H
#define FORMAT_PTE_H

#include "format/data.h"

struct pte {
  struct data data;        /* segments, named data */
  struct fb_table program; /* the root */
  uint64_t program_size;   /* bytes of the flatbuffer, header included */
  bool has_header;         /* eh00 */
  uint32_t n_methods;
  struct fb_vec plans;            /* of ExecutionPlan */
  struct fb_vec inline_delegates; /* of BackendDelegateInlineData */
  struct fb_vec constant_buffer;  /* of Buffer: legacy, inline; entry 0 is reserved */
  struct fb_vec constant_offsets; /* u64, into constant_segment; entry 0 is reserved */
  struct extent constant_segment;
  struct fb_vec mutable_offsets; /* u64, into mutable_segment; entry 0 is reserved */
  struct extent mutable_segment;
};

/* How many of a file's first bytes pte_open must find in memory: its flatbuffer. Needs
 * PTE_HEAD_SIZE of them, or all if there are fewer. */
enum { PTE_HEAD_SIZE = 64 };
SCONCE_CHECK sconce_status pte_front(struct extent file, uint64_t *size, sconce_error *err);
/* A zeroed *out on failure. */
SCONCE_CHECK sconce_status pte_open(struct pte *out, struct extent file, sconce_error *err);

/* Do the first bytes look like a program? For telling files apart, not for trusting them. */
bool pte_probe(struct span file);

/* ---- methods --------------------------------------------------------------------------------- */

struct pte_method {
  const struct pte *pte;
  struct fb_table plan;
  struct text name;
  struct fb_vec values, chains, operators, delegates;
  struct fb_vec inputs, outputs; /* i32 value indices */
  struct fb_vec buffer_sizes;    /* i64 bytes of planned memory; entry 0 is reserved */
  uint32_t n_values, n_chains, n_operators, n_delegates, n_inputs, n_outputs;
};

struct pte_method pte_method(const struct pte *pte, uint32_t i);
bool pte_find_method(const struct pte *pte, struct text name, struct pte_method *out); /* first */
/* No inputs, no instructions: its outputs are constants that the program states about itself. */
bool pte_method_is_constant(const struct pte_method *m);

/* ---- values ---------------------------------------------------------------------------------- */

enum pte_kind { /* numbers of the union KernelTypes */
                PTE_NULL = 1,
                PTE_INT,
                PTE_BOOL,
                PTE_DOUBLE,
                PTE_TENSOR,
                PTE_STRING,
                PTE_INT_LIST, /* items are *indices of Int values*, read again at each use */
                PTE_DOUBLE_LIST,
                PTE_BOOL_LIST,
                PTE_TENSOR_LIST,          /* items are indices of Tensor values */
                PTE_OPTIONAL_TENSOR_LIST, /* the same; -1 or a Null value means none */
};

enum pte_dynamism { PTE_STATIC = 0, PTE_DYNAMIC_BOUND = 1, PTE_DYNAMIC_UNBOUND = 2 };

/* Where its bytes come from:
 *   external  data_buffer_idx  planned
 *   yes       -                no        constant, named `fqn` in a .ptd
 *   yes       -                yes       planned memory, filled from `fqn` at load
 *   no        > 0              no        constant of this file
 *   no        > 0              yes       planned memory, filled from this file at load
 *   no        0                yes       planned memory, zeroed
 *   no        0                no        none until the caller or a MoveCall gives it some */
struct pte_tensor {
  struct data_shape shape; /* exact, or the upper bound */
  enum pte_dynamism dynamism;
  bool external, planned;
  uint32_t data_buffer_idx;
  uint32_t memory_id;     /* of planned memory, from 1 */
  uint64_t memory_offset; /* bytes; offset + nbytes is inside that buffer */
  struct text fqn;        /* fully qualified name; may be empty unless external */
  int8_t device_type, device_index;
};

struct pte_value {
  enum pte_kind kind;
  union {
    int64_t i;
    double d;
    bool b;
    struct text text;
    struct pte_tensor tensor;
    struct fb_vec items; /* i64, f64, bool, i32, i32 */
  };
};

enum pte_kind pte_value_kind(const struct pte_method *m, uint32_t i); /* 0: no such value */
struct pte_value pte_value(const struct pte_method *m, uint32_t i);
/* Item of an index list (IntList, TensorList, OptionalTensorList) as a value index, or -1. */
int64_t pte_list_item(const struct pte_value *list, uint32_t i);
const char *pte_kind_name(enum pte_kind kind); /* "TensorList" */

/* Bytes that this file holds for a tensor (rows 3 and 4 above): exactly nbytes; else false. */
bool pte_tensor_bytes(const struct pte *pte, const struct pte_tensor *t, struct extent *out);

/* ---- code ------------------------------------------------------------------------------------ */

enum pte_instruction_kind { /* numbers of the union InstructionArguments */
                            PTE_KERNEL_CALL = 1,
                            PTE_DELEGATE_CALL,
                            PTE_MOVE_CALL,
                            PTE_JUMP_FALSE_CALL,
                            PTE_FREE_CALL,
};

struct pte_instruction {
  enum pte_instruction_kind kind;
  uint32_t index;       /* KernelCall: operator; DelegateCall: delegate */
  struct fb_vec args;   /* KernelCall, DelegateCall: i32 value indices */
  uint32_t value;       /* FreeCall: freed; JumpFalseCall: condition; MoveCall: from */
  uint32_t to;          /* MoveCall */
  uint32_t destination; /* JumpFalseCall: instruction of this chain; the count ends the chain */
};

uint32_t pte_n_instructions(const struct pte_method *m, uint32_t chain);
struct pte_instruction pte_instruction(const struct pte_method *m, uint32_t chain, uint32_t i);

#define PTE_OPERATOR_SIZE 256 /* "ns::name.overload" of any accepted program fits, with its NUL */
struct pte_operator {
  struct text name, overload; /* "aten::add", "out"; the overload may be empty */
};
struct pte_operator pte_operator(const struct pte_method *m, uint32_t i);
/* Writes "aten::add.out"; returns out. */
const char *pte_operator_text(const struct pte_method *m, uint32_t i, char out[PTE_OPERATOR_SIZE]);

/* ---- delegates ------------------------------------------------------------------------------- */

struct pte_delegate {
  struct text id;     /* "VulkanBackend" */
  struct extent blob; /* inline or a segment */
  struct fb_vec specs;
};
struct pte_delegate pte_delegate(const struct pte_method *m, uint32_t i);

struct pte_spec {
  struct text key;
  struct span value; /* may be empty */
};
struct pte_spec pte_delegate_spec(const struct pte_delegate *d, uint32_t i);

/* ---- named data ------------------------------------------------------------------------------ */

bool pte_find_named(const struct pte *pte, struct text key, struct extent *out);
/* The same as a struct data_lookup's find, with the struct pte as its user. */
bool pte_lookup(void *pte, struct text key, struct extent *out);

#endif
