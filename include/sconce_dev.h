/* For tools and for people who work on Sconce: measurements of a device, and checks of kernels.
 * Applications need none of this; it may change from version to version. */
#ifndef SCONCE_DEV_H
#define SCONCE_DEV_H

#include "sconce.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What dispatches and submits cost here; microseconds, medians over the repetitions. */
typedef struct sconce_dispatch_costs {
  uint32_t dispatches; /* in each chain */
  uint32_t repeats;
  double dependent_cpu_us;    /* encoding and submitting one dispatch of a dependent chain */
  double dependent_gpu_us;    /* by the device's clock; 0 without timestamps */
  double dependent_wall_us;   /* chain / dispatches, until the host knows it is done */
  double split_wall_us;       /* the same chain in 8 submits */
  double independent_wall_us; /* own output buffers, nothing depends on anything */
  double independent_gpu_us;  /* the same by the device's clock */
  double submit_map_us;       /* one dispatch, submit, readback of 4 bytes: begin and poll */
  double write_us;            /* a queued write of 256 bytes */
} sconce_dispatch_costs;
SCONCE_API SCONCE_CHECK sconce_status sconce_measure_dispatch(sconce_device *device,
                                                              uint32_t dispatches, uint32_t repeats,
                                                              sconce_dispatch_costs *out,
                                                              sconce_error *err);

/* Bytes per second that kernels read from device memory; `size` bytes are touched (0: as much as
 * one binding holds, up to 1 GiB). The sum that was read is checked on the host. */
typedef struct sconce_bandwidth {
  uint64_t size; /* bytes read by one pass */
  double read_bytes_per_s;
  double upload_bytes_per_s;
} sconce_bandwidth;
SCONCE_API SCONCE_CHECK sconce_status sconce_measure_bandwidth(sconce_device *device, uint64_t size,
                                                               sconce_bandwidth *out,
                                                               sconce_error *err);

/* One way to compute a case: a row of a kernel table. */
typedef struct sconce_kernel_row {
  const char *label;   /* "q4_gemv/gemv128_f32" */
  bool chosen;         /* the table takes it by itself */
  bool wrong;          /* the error is above the case's tolerance */
  double us;           /* one run: a chain of dependent ones, divided; median of the repeats */
  double error;        /* max |y - plain| / max |plain|, against the plain row */
  uint32_t dispatches; /* of one run */
  uint32_t runs;       /* in each chain */
} sconce_kernel_row;

/* A small graph, and every row of its operator's table that fits it. Valid during the call. */
typedef struct sconce_kernel_case {
  const char *name;  /* "linear_q4gsw 2048x8192 m=1 f32": k x n */
  uint64_t bytes;    /* that one run cannot help reading: weights and scales, or keys and values */
  uint64_t rotation; /* bytes of all copies of them that the runs of a chain take in turn */
  double flops;      /* of one run, a multiply-add is two */
  bool matrix;       /* many rows: arithmetic is what costs, not bytes */
  bool device_clock; /* by timestamps; else wall clock around submit and finish */
  double tolerance;  /* of sconce_kernel_row.error */
  const sconce_kernel_row *rows;
  uint32_t n_rows;
  sconce_error why; /* SCONCE_OK, or why it could not be measured here */
} sconce_kernel_case;

typedef struct sconce_kernels_desc {
  const char *filter; /* only cases whose names contain all of its words */
  bool quick;         /* a short list, nothing rotates, short chains */
  uint32_t repeats;   /* default 5, at most 101 */
  void (*each)(void *user, const sconce_kernel_case *result);
  void *user;
} sconce_kernels_desc;

/* Times every row of the matrix and attention kernels over a grid of shapes, and checks each one
 * against the plain row. A wrong result, or a case that cannot be run here, is a result. */
SCONCE_API SCONCE_CHECK sconce_status sconce_measure_kernels(sconce_device *device,
                                                             const sconce_kernels_desc *desc,
                                                             sconce_error *err);

/* Where a method's opening went; nanoseconds. Kernels are compiled while constants are uploaded. */
typedef struct sconce_load_times {
  uint64_t uploaded;   /* bytes of constants that went to the device */
  uint64_t upload_ns;  /* until they were there */
  uint64_t compile_ns; /* from then until the kernels were there too */
} sconce_load_times;
SCONCE_API void sconce_method_load_times(const sconce_method *method, sconce_load_times *out);

/* Where the host's time went in the calls of a state since it was opened; nanoseconds. */
typedef struct sconce_call_times {
  uint64_t calls;     /* that were begun */
  uint64_t plan_ns;   /* shapes and dispatches of what changed, inputs written */
  uint64_t bind_ns;   /* dispatches bound to buffers */
  uint64_t submit_ns; /* parameters written, commands encoded and submitted */
  uint64_t wait_ns;   /* in sconce_state_wait, until the outputs were there */
} sconce_call_times;
SCONCE_API void sconce_state_times(const sconce_state *state, sconce_call_times *out);

/* Runs the state as it is set, all dispatches in one pass, and times that by the device's clock.
 * sconce_state_profile, with a pass for each, says how it divides. Needs timestamps. */
SCONCE_API SCONCE_CHECK sconce_status sconce_state_time_pass(sconce_state *state, uint64_t *ns,
                                                             sconce_error *err);

/* Compiles every row of every kernel table that the device can run; with `null_adapter` on Dawn's
 * Null adapter, where every row can be compiled and nothing runs. Calls each with the row's label
 * and NULL, or the compiler's words. */
SCONCE_API SCONCE_CHECK sconce_status sconce_check_kernels(
    const sconce_device_desc *desc, bool null_adapter,
    void (*each)(void *user, const char *label, const char *error), void *user, sconce_error *err);

/* ---- kernels against loops in double --------------------------------------------------------- */

/* A row of a kernel table as the self-check found it. */
typedef struct sconce_self_row {
  const char *label; /* "q4_gemv/gemv128_f32", as sconce_device_desc.avoid takes it */
  uint64_t runs;     /* graphs that it ran in; 0: it was not tried */
  bool wrong;
  bool stays;      /* wrong, and nothing else fits what it is for: it cannot be avoided */
  const char *why; /* of a wrong one the numbers; why one was not tried; else NULL */
} sconce_self_row;

typedef struct sconce_self_desc {
  double seconds;     /* about as long, shared among the operators' families; 0: all of it */
  const char *filter; /* only checks whose name contains this */
  void (*each)(void *user, const sconce_self_row *row);           /* for every row, at the end */
  void (*failed)(void *user, const char *check, const char *why); /* as it happens; may be NULL */
  void (*progress)(void *user, const char *check);                /* the next one; may be NULL */
  void *user;
} sconce_self_desc;

typedef struct sconce_self_result {
  uint32_t tried, skipped, wrong; /* rows; wrong ones were tried */
  uint32_t checks, checks_failed,
      checks_left; /* run; of those wrong; cut short or not run for lack of time */
  double seconds;
} sconce_self_result;

/* Runs the operators' own checks on this device, each kernel row that it can run against plain
 * loops in double on awkward shapes, and finds which rows are wrong. Needs no files. Every row is
 * tried, also those that the device was opened to avoid. A wrong row is a result; a lost device is
 * an error, after the rows have been told. */
SCONCE_API SCONCE_CHECK sconce_status sconce_check_self(sconce_device *device,
                                                        const sconce_self_desc *desc,
                                                        sconce_self_result *out, sconce_error *err);

/* ---- models against goldens: docs/checking.md says what the files look like -------------------
 */

typedef struct sconce_check_result {
  const char *name; /* the case's folder, or "X.golden.json#case"; valid during the call */
  uint32_t calls;   /* of the method that ran as they should */
  double worst_abs; /* over all elements compared; infinite where one is not finite and the other is
                       or differs in kind */
  double worst_rel; /* |got - want| / max(|want|, 1e-6) */
  double seconds;   /* loading included */
  sconce_error why; /* status SCONCE_OK: passed */
} sconce_check_result;

typedef struct sconce_check_desc {
  const char *path;   /* a folder that is searched for cases and goldens; or a .pte with a golden */
  const char *golden; /* X.golden.json; NULL for a folder */
  const char *filter; /* only cases whose name contains this */
  double tolerance;   /* of goldens, absolute; 0: what the golden says, or its variant's default */
  uint64_t max_steps; /* of each call, as in sconce_call */
  void (*each)(void *user, const sconce_check_result *result);
  void *user;
} sconce_check_desc;

/* Runs every case there is, in the order of the names, and calls each once per case. Fails only
 * where checking itself is impossible (no such folder, no memory, the device is lost): a case that
 * fails, be it for a broken file or for wrong values, is a result. */
SCONCE_API SCONCE_CHECK sconce_status sconce_check(sconce_device *device,
                                                   const sconce_check_desc *desc,
                                                   sconce_error *err);
/* ---- looking into files ---------------------------------------------------------------------- */

typedef enum sconce_inspect_format {
  SCONCE_INSPECT_TEXT = 0, /* for people: what one wants to know before running */
  SCONCE_INSPECT_GRAPH,    /* node by node, with shapes */
  SCONCE_INSPECT_DOT,      /* the same as a drawing, for Graphviz */
  SCONCE_INSPECT_JSON,     /* everything; docs/inspect.md has the schema */
  SCONCE_INSPECT_PLAN,     /* one call of one method: what each node dispatches */
} sconce_inspect_format;

typedef struct sconce_inspect_desc {
  sconce_file file; /* a .pte, a .ptd or the blob of a VulkanBackend delegate: a path or
                       memory */
  const sconce_file *data_files; /* .ptd files of a program */
  uint32_t n_data_files;
  const char *method; /* default: all; of a plan: forward */
  sconce_inspect_format format;
  /* Of a plan: the inputs from the first on; others have their largest dims and are 0. Dims of 1 in
   * front may be left out; `data` (may be NULL: zeros) matters where whole numbers decide the plan.
   */
  const sconce_tensor *inputs;
  uint32_t n_inputs;
  const char *device; /* "default": WebGPU's least limits, no optional feature; or "full" */
  bool no_params;
  sconce_allocator allocator; /* default: the C library's */
} sconce_inspect_desc;

/* Describes a file, with UTF-8 text to `write`. Needs no device, and works on programs that cannot
 * be run. Only the program and its graphs are read, never the weights. */
SCONCE_API SCONCE_CHECK sconce_status sconce_inspect(const sconce_inspect_desc *desc,
                                                     void (*write)(void *user, const char *text,
                                                                   size_t size),
                                                     void *user, sconce_error *err);

#ifdef __cplusplus
}
#endif
#endif
