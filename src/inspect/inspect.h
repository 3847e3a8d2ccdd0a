/* What a file holds, gathered once and written in one of five forms; for this folder only.
 *
 * Everything lies in one arena, or in the model's. Gathering looks at the program, its graphs and
 * their tables; the bytes of weights are not read. */
#ifndef INSPECT_INSPECT_H
#define INSPECT_INSPECT_H

#include "base/out.h"
#include "run/model.h"
#include "sconce_dev.h"

enum inspect_kind { INSPECT_PROGRAM, INSPECT_DATA, INSPECT_GRAPH };

/* One operator of one method. */
struct inspect_operator {
  struct text name; /* "aten.add.Tensor", or "aten::add.out" outside of delegates */
  bool portable;    /* outside of delegates: the partitioner left it to the program */
  uint32_t count;   /* calls */
  const char *runs; /* where: "gpu", "view", "host", "load"; NULL: not in this build */
};

struct inspect_delegate {
  struct text id; /* the backend's name */
  struct extent blob;
  struct fb_vec specs;
  bool is_graph; /* vk is open: the backend is ours */
  struct vkgraph vk;
  uint32_t n_missing; /* constants whose key no file has */
  bool shown;         /* its nodes are written at its first call only */
};

/* What loading the method would take; bytes by enum buffer_kind. */
struct inspect_memory {
  const char *unknown; /* why there are no numbers, or NULL */
  const char *raised;  /* what WebGPU's default limits refuse, or NULL: they are enough */
  uint64_t bytes[BUFFER_TRANSIENT + 1];
  uint32_t nodes, dispatches; /* at the maximum dims */
};

struct inspect_method {
  struct text name;
  struct pte_method m; /* zeroed for a bare graph */
  bool is_constant;
  struct inspect_delegate *delegates;
  uint32_t n_delegates;
  struct inspect_operator *operators; /* most frequent first */
  uint32_t n_operators;
  uint32_t n_calls, n_unsupported; /* calls */
  uint32_t n_foreign;              /* delegates of other backends */
  struct inspect_memory memory;
};

/* How a constant's elements are stored. */
enum inspect_quant { QUANT_NONE, QUANT_4BIT, QUANT_8BIT, QUANT_SCALES };

struct inspect_weight { /* a class of constants */
  const char *dtype;
  enum inspect_quant quant;
  uint32_t group; /* elements that share a scale; 0: a whole channel, or unknown */
  bool state;     /* written by the method: each tensor has memory of its own */
  uint32_t tensors;
  uint64_t numel, bytes;
};

struct inspect_tensor { /* one of the largest */
  struct text name;     /* key or fully qualified name; empty: inline */
  struct text user;     /* the operator that reads it first; may be empty */
  const char *dtype;
  uint32_t rank, dims[DATA_MAX_RANK];
  uint64_t bytes;
  uint32_t count; /* tensors with this name and shape: state that starts out equal */
};

enum { WEIGHTS_MAX = 64, LARGEST_MAX = 10 };

struct inspect {
  struct arena arena;
  const char *path; /* may be NULL */
  enum inspect_kind kind;
  struct extent file;  /* at least its front is held, but for a program, which its model reads */
  sconce_model *model; /* INSPECT_PROGRAM */
  struct ptd ptd;      /* INSPECT_DATA */
  struct inspect_method *methods;
  uint32_t n_methods;
  struct inspect_weight weights[WEIGHTS_MAX];
  uint32_t n_weights;
  struct inspect_tensor largest[LARGEST_MAX];
  uint32_t n_largest;
  uint32_t n_missing; /* constants that are in none of the given files */
};

/* ---- gathering ------------------------------------------------------------------------------- */

SCONCE_CHECK sconce_status inspect_gather(struct inspect *x, const char *method, sconce_error *err);
SCONCE_CHECK sconce_status inspect_gather_graph(struct inspect *x, sconce_error *err);
SCONCE_CHECK sconce_status inspect_operators(struct inspect *x, struct inspect_method *m,
                                             sconce_error *err);
SCONCE_CHECK sconce_status inspect_weights(struct inspect *x, sconce_error *err);
SCONCE_CHECK sconce_status inspect_memory(struct inspect *x, struct inspect_method *m,
                                          sconce_error *err);

/* What a device of this kind offers: "default" (NULL too) WebGPU's default limits and no optional
 * feature, "full" what a desktop GPU has. SCONCE_LIMITS and SCONCE_DISABLE apply, as to a device.
 */
SCONCE_CHECK sconce_status inspect_caps(const char *device, struct caps *caps, sconce_error *err);
/* Could the method be planned? Fails with what stands in the way. */
SCONCE_CHECK sconce_status inspect_ready(struct inspect *x, const struct inspect_method *m,
                                         sconce_error *err);
/* The method as a finished graph; `g` is initialised, and the caller's to free. */
SCONCE_CHECK sconce_status inspect_build(struct inspect *x, struct inspect_method *m,
                                         struct graph *g, sconce_error *err);
/* One call of the finished graph, with the inputs of `desc`, as --plan says them. */
SCONCE_CHECK sconce_status inspect_call(struct inspect *x, struct graph *g,
                                        const sconce_inspect_desc *desc, sconce_error *err);
uint32_t inspect_dispatches(const struct graph *g); /* of what is planned */

/* ---- writing --------------------------------------------------------------------------------- */

void inspect_text(const struct inspect *x, struct out *o);
void inspect_json(const struct inspect *x, struct out *o);
SCONCE_CHECK sconce_status inspect_graph(struct inspect *x, struct out *o, sconce_error *err);
SCONCE_CHECK sconce_status inspect_dot(struct inspect *x, struct out *o, sconce_error *err);
SCONCE_CHECK sconce_status inspect_plan(struct inspect *x, const sconce_inspect_desc *desc,
                                        struct out *o, sconce_error *err);

/* Pieces that several forms share. */
struct inspect_shape {
  const char *dtype;
  uint32_t rank, dims[DATA_MAX_RANK];
  uint64_t bytes;
};
/* All zero if it is no tensor. */
struct inspect_shape shape_of_vk(const struct vk_value *v);
struct inspect_shape shape_of_pte(const struct pte_value *v);
struct inspect_shape shape_of_data(const struct data_shape *s);
void put_dims(struct out *o, uint32_t rank, const uint32_t *dims); /* "[1, 2]" */
void put_shape(struct out *o, const struct inspect_shape *s);      /* "float32 [1, 2]" */
/* The method's tensor: "float32 [1, 2]", "float32 up to [1, 2]"; other kinds with their value. */
void put_pte_value(struct out *o, const struct pte_method *m, uint32_t i);
/* As an argument: tensors by their number ("v3"; in a graph "%3", constants "c3 float32 [2]" and
 * live integers "s3"), everything else as it is. */
void put_pte_arg(struct out *o, const struct pte_method *m, uint32_t i);
void put_vk_arg(struct out *o, const struct vkgraph *g, uint32_t i);
const char *quant_name(enum inspect_quant quant); /* "4-bit"; NULL for QUANT_NONE */
/* One sentence on the whole method; false if it runs. */
bool method_blocked(const struct inspect_method *m, char out[200]);

#endif
