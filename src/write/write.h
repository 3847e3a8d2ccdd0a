/* Writing files: delegate graphs (VH00 + VK00), programs (`.pte`) and data (`.ptd`).
 *
 *   struct write_vk graph;
 *   write_vk_init(&graph, &arena);
 *   int32_t x = write_vk_tensor(&graph, VK_FLOAT32, DIM_LIST(2, 3)), y = …;
 *   write_vk_call(&graph, "aten.relu.default", ID_LIST(x, y));
 *   …
 *   TRY(write_vk_finish(&graph, &blob, err));
 *
 *   struct write_pte program;
 *   write_pte_init(&program, &arena);
 *   write_pte_delegated(&program, "forward", &blob, tensors, 1, 1);
 *   TRY(write_pte_finish(&program, &file, err));
 *   TRY(write_blob_to_file(&file, "relu.pte", err));
 *
 * A writer is told what to write, one call at a time, and lays it out when it is finished. It never
 * judges meaning (an argument that is no value, a constant of the wrong size): tests write nonsense
 * on purpose. It refuses only what the format cannot hold. The same calls give the same bytes.
 *
 * Errors stick: after the first failure a writer's calls do nothing and return -1, and finish
 * reports it. Texts, lists and dims are copied into the arena; the bytes of data are not: a source
 * is read when the finished blob is written, and must live until then. */
#ifndef WRITE_WRITE_H
#define WRITE_WRITE_H

#include "format/pte.h"
#include "format/vkgraph.h"
#include "write/blob.h"

/* An array and its count, as two arguments. */
#define ID_LIST(...)                                                                               \
  (const int32_t[]){__VA_ARGS__}, (uint32_t)(sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t))
#define DIM_LIST ID_LIST

/* ---- values ---------------------------------------------------------------------------------- */

/* A value that is no tensor. One type serves both schemas; what a schema lacks is refused. */
enum literal_kind {
  LITERAL_NULL,
  LITERAL_INT,
  LITERAL_BOOL,
  LITERAL_DOUBLE,
  LITERAL_STRING,
  LITERAL_INTS, /* graph: integers; program: indices of Int values */
  LITERAL_DOUBLES,
  LITERAL_BOOLS,
  LITERAL_VALUES,          /* graph: ValueList; program: TensorList */
  LITERAL_OPTIONAL_VALUES, /* program only: OptionalTensorList, -1 is none */
  LITERAL_SYMINT,          /* graph only */
};
struct literal {
  enum literal_kind kind;
  int64_t i; /* Int, Bool, SymInt */
  double d;
  const void *items; /* of a list, or the string's characters */
  uint32_t n;
};
struct literal literal_null(void);
struct literal literal_int(int64_t v);
struct literal literal_bool(bool v);
struct literal literal_double(double v);
struct literal literal_string(const char *v);
struct literal literal_ints(const int64_t *items, uint32_t n);
struct literal literal_doubles(const double *items, uint32_t n);
struct literal literal_bools(const bool *items, uint32_t n);
struct literal literal_values(const int32_t *items, uint32_t n);
struct literal literal_optional_values(const int32_t *items, uint32_t n);
struct literal literal_symint(int32_t v);

/* ---- delegate graphs ------------------------------------------------------------------------- */

#define VK_BACKEND_ID "VulkanBackend"

struct write_vk {
  struct write_state state;
  struct write_list values, calls, constants;
  struct write_list inputs, outputs; /* int32_t */
  struct write_blob inline_constants;
};
void write_vk_init(struct write_vk *g, struct arena *arena);

/* Hints for another backend. */
enum { VK_STORAGE_BUFFER = 0, VK_STORAGE_DEFAULT = 255 };
enum { VK_LAYOUT_WIDTH_PACKED = 0, VK_LAYOUT_DEFAULT = 255 };

/* Every field is written as it is: 0 is constant number 0, "none" is -1. */
struct write_vk_tensor {
  enum vk_dtype datatype;
  uint8_t storage_type, memory_layout;
  enum vk_dtype staging_datatype;
  int32_t constant_id, mem_obj_id;
  const int32_t *dims; /* upper bounds; their bits are written as u32 */
  uint32_t rank;
};

/* These return the value's id. */
int32_t write_vk_value(struct write_vk *g, struct literal value);
int32_t write_vk_tensor(struct write_vk *g, enum vk_dtype datatype, const int32_t *dims,
                        uint32_t rank);
int32_t write_vk_constant(struct write_vk *g, enum vk_dtype datatype, const int32_t *dims,
                          uint32_t rank, int32_t constant_id);
int32_t write_vk_tensor_as(struct write_vk *g, const struct write_vk_tensor *tensor);

/* These return a constant's id: bytes inside the blob, or named data of the program or a `.ptd`. */
int32_t write_vk_inline(struct write_vk *g, sconce_bytes bytes);
int32_t write_vk_named(struct write_vk *g, const char *key, uint64_t length);
int32_t write_vk_bytes_as(struct write_vk *g, uint64_t offset, uint64_t length, const char *key);

/* The last argument is the output. Inputs and outputs may be given in several calls. */
void write_vk_call(struct write_vk *g, const char *name, const int32_t *args, uint32_t n);
void write_vk_inputs(struct write_vk *g, const int32_t *ids, uint32_t n);
void write_vk_outputs(struct write_vk *g, const int32_t *ids, uint32_t n);

SCONCE_CHECK sconce_status write_vk_finish(struct write_vk *g, struct write_blob *out,
                                           sconce_error *err);

/* ---- programs -------------------------------------------------------------------------------- */

struct write_pte {
  struct write_state state;
  bool constants_inline; /* the form before 0.7; set before the first constant */
  struct write_list methods, segments, named, inline_delegates, inline_constants;
  struct write_list constant_offsets, mutable_offsets; /* uint64_t; entry 0 is reserved */
  int32_t mutable_segment;                             /* 0: none yet */
};
/* Segment 0 exists from the start and holds the constants. */
void write_pte_init(struct write_pte *w, struct arena *arena);

/* Segments are numbered and laid out in the order of these calls. align 0 is the usual 128. */
int32_t write_pte_segment(struct write_pte *w, const struct write_blob *bytes, uint64_t align);
void write_pte_named(struct write_pte *w, const char *key, int32_t segment);
int32_t write_pte_named_data(struct write_pte *w, const char *key, sconce_bytes bytes);

/* These return a tensor's data_buffer_idx, from 1. The first mutable one adds a segment. */
int32_t write_pte_constant(struct write_pte *w, sconce_bytes bytes);
int32_t write_pte_mutable(struct write_pte *w, sconce_bytes bytes);

/* Begins a method; what follows, up to the next one, belongs to it. */
void write_pte_method(struct write_pte *w, const char *name);

/* Zero fields mean: static, no initial bytes, not planned, outermost dim first, inside the file. */
struct write_pte_tensor {
  int scalar_type; /* enum scalar_type */
  enum pte_dynamism dynamism;
  bool external; /* the bytes are in a `.ptd` under fully_qualified_name */
  const int32_t *sizes;
  uint32_t rank;
  const uint8_t *dim_order; /* rank entries */
  int32_t data_buffer_idx;
  uint32_t memory_id; /* from write_pte_buffer */
  uint64_t memory_offset;
  const char *fully_qualified_name;
};
int32_t write_pte_value(struct write_pte *w, struct literal value);
int32_t write_pte_tensor(struct write_pte *w, const struct write_pte_tensor *tensor);
void write_pte_inputs(struct write_pte *w, const int32_t *ids, uint32_t n);
void write_pte_outputs(struct write_pte *w, const int32_t *ids, uint32_t n);
/* Planned memory; returns its memory_id, from 1. */
int32_t write_pte_buffer(struct write_pte *w, int64_t size);
/* A tensor at the next place of such memory; its size is set when all are there. */
int32_t write_pte_planned(struct write_pte *w, const struct write_pte_tensor *tensor,
                          int32_t memory, uint64_t *end);
void write_pte_buffer_size(struct write_pte *w, int32_t memory, uint64_t size);

/* Tables of the method; these return the index that calls use. */
int32_t write_pte_operator(struct write_pte *w, const char *name, const char *overload);
int32_t write_pte_delegate(struct write_pte *w, const char *id, int32_t segment);
int32_t write_pte_delegate_inline(struct write_pte *w, const char *id,
                                  const struct write_blob *bytes);
/* Belongs to the delegate added last. */
void write_pte_compile_spec(struct write_pte *w, const char *key, const void *data, uint32_t size);

/* Instructions of the method's chain; these return the instruction's index. */
int32_t write_pte_call_kernel(struct write_pte *w, int32_t op, const int32_t *args, uint32_t n);
int32_t write_pte_call_delegate(struct write_pte *w, int32_t delegate, const int32_t *args,
                                uint32_t n);
int32_t write_pte_move(struct write_pte *w, int32_t from, int32_t to);
int32_t write_pte_jump_false(struct write_pte *w, int32_t condition, int32_t destination);
int32_t write_pte_free(struct write_pte *w, int32_t value);
void write_pte_chain(struct write_pte *w); /* another chain; a method begins with one */

/* A method around one delegate: `tensors` are its inputs, then its outputs. Those without memory or
 * bytes are planned one after the other into the method's first buffer. */
void write_pte_delegated(struct write_pte *w, const char *method, const struct write_blob *graph,
                         const struct write_pte_tensor *tensors, uint32_t n_inputs,
                         uint32_t n_outputs);
/* A method without instructions that returns constants: get_max_seq_len, get_eos_ids, … */
void write_pte_constant_method(struct write_pte *w, const char *name, const struct literal *values,
                               uint32_t n);

SCONCE_CHECK sconce_status write_pte_finish(struct write_pte *w, struct write_blob *out,
                                            sconce_error *err);

/* ---- data files ------------------------------------------------------------------------------ */

struct write_ptd {
  struct write_state state;
  struct write_list segments, named;
};
void write_ptd_init(struct write_ptd *w, struct arena *arena);

struct write_ptd_layout {
  int scalar_type; /* enum scalar_type */
  const int32_t *sizes;
  uint32_t rank;
  const uint8_t *dim_order; /* NULL: outermost first */
};
int32_t write_ptd_segment(struct write_ptd *w, sconce_bytes bytes);
/* layout NULL: opaque bytes of a delegate. Several keys may name one segment. */
void write_ptd_named(struct write_ptd *w, const char *key, int32_t segment,
                     const struct write_ptd_layout *layout);
SCONCE_CHECK sconce_status write_ptd_finish(struct write_ptd *w, struct write_blob *out,
                                            sconce_error *err);

#endif
