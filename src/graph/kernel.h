/* Kernel tables: what a row of one says, and what a device must offer for it.
 *
 * An operator names its tables (op->tables), and choose (graph/op.h) takes no other: so whatever
 * can be dispatched is seen by the tests that dispatch every row, by the checks that compile every
 * row and by the benches. */
#ifndef GRAPH_KERNEL_H
#define GRAPH_KERNEL_H

#include "format/vkgraph.h"
#include "graph/wgsl.h"

struct op;

/* NEEDS_WIDE: with NEEDS_SUBGROUPS, subgroups of at least 32. NEEDS_MATRIX: subgroup matrices of
 * the row's sizes. NEEDS_FAST: it multiplies in f16 what is f32; where exactness was asked for it
 * is no candidate. NEEDS_SOFTWARE: it is for devices in software, whose threads take turns, and no
 * candidate on a GPU. */
enum kernel_needs {
  NEEDS_F16 = 1,
  NEEDS_SUBGROUPS = 2,
  NEEDS_MATRIX = 4,
  NEEDS_WIDE = 8,
  NEEDS_FAST = 16,
  NEEDS_SOFTWARE = 32,
};

/* Dtypes as bits, for the column `dtypes`. */
enum kernel_dtypes {
  ANY_DTYPE = 0,
  OF_BOOL = 1 << VK_BOOL,
  OF_U8 = 1 << VK_UINT8,
  OF_I8 = 1 << VK_INT8,
  OF_I32 = 1 << VK_INT32,
  OF_F16 = 1 << VK_FLOAT16,
  OF_F32 = 1 << VK_FLOAT32,
};

/* A product of subgroup matrices: (m, k) times (k, n) in f16, sums in f32. */
struct matrix {
  uint32_t m, n, k;
};
enum { MATRICES_MAX = 4 };

/* What a device lets kernels do, as operators and rows see it. */
struct caps {
  bool f16, subgroups, matrix;
  bool fast;                            /* see NEEDS_FAST */
  bool software;                        /* see NEEDS_SOFTWARE */
  struct matrix matrices[MATRICES_MAX]; /* the largest first; one of size 0 is none */
  uint32_t subgroup_min, subgroup_max;
  uint64_t max_storage_binding, max_buffer;
  uint32_t max_storage_buffers, max_workgroup_bytes, max_invocations, max_workgroups;
  uint32_t storage_alignment;
  const char *avoid; /* labels of rows that are wrong here, separated by commas; NULL: none */
};

/* One way to run a shader: a row of a kernel table, which ends with an empty row. `set` replaces
 * right-hand sides of the shader's alias, const, override and let lines and may append libraries:
 * "T=vec4<f32> WG=128u use=quad_f32". */
struct kernel {
  const char *name; /* "vec4"; with the shader's name the label everywhere: "rms_norm/vec4" */
  const struct wgsl *wgsl;
  const char *set;
  uint32_t dtypes; /* enum kernel_dtypes: elements that it is for */
  uint32_t needs;  /* enum kernel_needs */
  /* May this row run this problem? NULL: always. `problem` is what the table's rows agreed on. */
  bool (*fits)(const void *problem);
  uint32_t tile[3];         /* what one workgroup computes, in the operator's own terms */
  uint32_t threads;         /* of a workgroup; 0: at most 64 */
  uint32_t workgroup_bytes; /* of workgroup memory */
  struct matrix matrix;     /* with NEEDS_MATRIX: what it is written for, */
  uint32_t lanes;           /* in subgroups of exactly this size; 0: any */
  bool reference;           /* the plain one, which benches compare the others with */
  const void *fixed;        /* its Params, which then stand in the text; NULL: they are bound */
};

/* Are these features (enum kernel_needs) all there? */
bool caps_offer(const struct caps *caps, uint32_t needs);
/* Notes a product that a device offers, the largest first; when there is no room the smallest goes.
 */
void matrices_add(struct matrix list[MATRICES_MAX], struct matrix matrix);
/* May this row run on the device at all: features, threads, workgroup memory, storage buffers, and
 * it is not to be avoided? Its own predicate is another matter. */
bool kernel_runs(const struct kernel *kernel, const struct caps *caps);
/* Has each of the operator's tables a row for these elements that the device can run? */
bool kernel_tables_run(const struct op *op, enum vk_dtype dtype, const struct caps *caps);
/* The first label of the list that no table has; empty: there is none. */
struct text kernel_unknown(const char *labels);

#endif
