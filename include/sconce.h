/* Sconce: runs ExecuTorch models on any GPU through WebGPU.
 *
 * The world in one paragraph. A *device* is one GPU queue with its compiled kernels. Handles are
 * opened and closed in pairs; what a handle was opened from must outlive it. Every call that can
 * fail returns a sconce_status and fills an error that the caller owns (it may be NULL) with one
 * sentence that carries the values. Nothing aborts, nothing prints, and there are no globals.
 *
 * Threads: a handle is used by one thread at a time; different devices are independent. Opening a
 * method compiles kernels on threads that end before it returns (see no_threads); allocator and log
 * are called on the caller's thread alone.
 * Descriptors: zero-initialise them; a zero field means its default.
 */
#ifndef SCONCE_H
#define SCONCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(SCONCE_BUILD) && (defined(__GNUC__) || defined(__clang__))
#define SCONCE_API __attribute__((visibility("default")))
#else
#define SCONCE_API
#endif
#if defined(__GNUC__) || defined(__clang__)
#define SCONCE_CHECK __attribute__((warn_unused_result))
#else
#define SCONCE_CHECK
#endif

#define SCONCE_VERSION "0.1.0"

/* The version of the library that is linked, which may differ from the header's. */
SCONCE_API const char *sconce_version(void);

/* ---- errors ---------------------------------------------------------------------------------- */

typedef enum sconce_status {
  SCONCE_OK = 0,
  SCONCE_BAD_ARGUMENT,  /* the caller passed something wrong; the sentence says what */
  SCONCE_BAD_FILE,      /* bytes that are no valid .pte, .ptd or other file of ours */
  SCONCE_BAD_GRAPH,     /* a well-formed file whose graph contradicts itself */
  SCONCE_UNSUPPORTED,   /* valid, but this build or this device cannot do it */
  SCONCE_NO_MEMORY,     /* the allocator returned NULL */
  SCONCE_NO_GPU_MEMORY, /* the device refused a buffer */
  SCONCE_NO_DEVICE,     /* no WebGPU library, no adapter, or none that matches */
  SCONCE_GPU_ERROR,     /* the device rejected a shader or a command; the driver's words follow */
  SCONCE_DEVICE_LOST,   /* the device is gone; close everything that was opened on it */
  SCONCE_IO_ERROR,      /* the operating system could not open, read or write */
  SCONCE_CANCELLED,     /* the caller asked for it */
  SCONCE_WRONG_RESULT,  /* a check computed something else than its golden says */
} sconce_status;

/* Filled on failure only: one lower-case sentence without a full stop, always terminated. */
typedef struct sconce_error {
  sconce_status status;
  char text[1020];
} sconce_error;

/* "bad file", "device lost", …: a name for messages and tests; never NULL. */
SCONCE_API const char *sconce_status_name(sconce_status status);

/* ---- hooks ----------------------------------------------------------------------------------- */

/* Every byte of host memory that the library keeps goes through `resize`, which behaves like
 * realloc with the old size given: old 0 allocates, size 0 frees and returns NULL. Returning NULL
 * for size > 0 means out of memory and leaves the old block as it was. */
typedef struct sconce_allocator {
  void *(*resize)(void *user, void *block, size_t old_size, size_t size);
  void *user;
} sconce_allocator;

typedef enum sconce_log_level {
  SCONCE_LOG_ERROR = 1,
  SCONCE_LOG_WARNING,
  SCONCE_LOG_INFO,
  SCONCE_LOG_DEBUG,
} sconce_log_level;

/* Without a log function nothing is written anywhere. `text` is valid during the call. */
typedef struct sconce_log {
  void (*write)(void *user, sconce_log_level level, const char *text);
  void *user;
  sconce_log_level level; /* default SCONCE_LOG_WARNING */
} sconce_log;

/* ---- device ---------------------------------------------------------------------------------- */

typedef struct sconce_device sconce_device;

typedef struct sconce_device_desc {
  const char *library;   /* WebGPU library: a path, "wgpu" or "dawn"; default: SCONCE_WEBGPU, then
                            beside the program, then the system's */
  const char *adapter;   /* part of an adapter's name, or its index; default: SCONCE_ADAPTER, then
                            the best hardware adapter, then a software one */
  const char *disable;   /* features not to use: "f16,subgroups,timestamps,matrix"; what
                            SCONCE_DISABLE names is disabled as well */
  const char *limits;    /* caps, "storage_binding=1048576,…" or "default" for WebGPU's default
                            limits; SCONCE_LIMITS applies as well, the lower cap wins */
  const char *no_fusion; /* fusions not to make: "join,swiglu,residual,norm,rotary", or "all"; what
                            SCONCE_NO_FUSION names is not made either; results differ by rounding */
  bool no_threads;       /* start none of our own */
  sconce_allocator allocator; /* default: the C library's */
  sconce_log log;
} sconce_device_desc;

typedef enum sconce_adapter_type {
  SCONCE_ADAPTER_UNKNOWN = 0,
  SCONCE_ADAPTER_DISCRETE,
  SCONCE_ADAPTER_INTEGRATED,
  SCONCE_ADAPTER_SOFTWARE,
} sconce_adapter_type;

/* What a device is and what it lets kernels do. All strings end with a NUL. */
typedef struct sconce_device_info {
  char name[128]; /* "NVIDIA H200", "llvmpipe (LLVM 15.0.6, 256 bits)" */
  char driver[192];
  char vendor[64];
  char api[16];     /* "Vulkan", "Metal", "D3D12", … */
  char library[32]; /* "wgpu-native", "Dawn" */
  char library_version[32];
  sconce_adapter_type type;
  bool f16, subgroups, timestamps, matrix; /* in use: offered and not disabled */
  uint32_t subgroup_min, subgroup_max;     /* 0 without subgroups */
  uint64_t max_buffer;                     /* bytes */
  uint64_t max_storage_binding;            /* bytes */
  uint32_t max_storage_buffers;            /* per stage */
  uint32_t max_workgroup_bytes;
  uint32_t max_workgroup_invocations;
  uint32_t max_workgroup_size[3];
  uint32_t max_workgroups;                       /* per dimension of a dispatch */
  uint32_t storage_alignment, uniform_alignment; /* of binding offsets, bytes */
} sconce_device_info;

/* Opens an adapter with everything it offers, less what the descriptor and the environment disable
 * or cap. desc may be NULL. On failure *out is NULL and nothing is kept. */
SCONCE_API SCONCE_CHECK sconce_status sconce_device_open(sconce_device **out,
                                                         const sconce_device_desc *desc,
                                                         sconce_error *err);
/* NULL is fine; a lost device can be closed like any other. */
SCONCE_API void sconce_device_close(sconce_device *device);

SCONCE_API const sconce_device_info *sconce_device_describe(const sconce_device *device);
/* Its index among sconce_adapters. */
SCONCE_API uint32_t sconce_device_adapter(const sconce_device *device);

/* Calls `each` once per adapter that the library offers, in the order of the indices that
 * sconce_device_desc.adapter accepts; the limits are those of the adapter, uncapped. */
SCONCE_API SCONCE_CHECK sconce_status sconce_adapters(const sconce_device_desc *desc,
                                                      void (*each)(void *user, uint32_t index,
                                                                   const sconce_device_info *info),
                                                      void *user, sconce_error *err);

/* ---- model ----------------------------------------------------------------------------------- */

/* One .pte file (and its .ptd files), verified and mapped. Its methods are opened one by one. */
typedef struct sconce_model sconce_model;

typedef struct sconce_model_desc {
  const char *path; /* mapped; or */
  const void *data; /* borrowed until sconce_model_close; or */
  size_t size;
  /* called while the model is opened, for the whole file; return anything but SCONCE_OK to stop */
  sconce_status (*read)(void *user, uint64_t offset, void *out, size_t size);
  void *read_user;
  uint64_t read_size;
  const char *const *data_paths; /* .ptd files */
  uint32_t n_data_paths;
} sconce_model_desc;

/* Reads and verifies; nothing goes to the device yet. On failure *out is NULL. */
SCONCE_API SCONCE_CHECK sconce_status sconce_model_open(sconce_model **out, sconce_device *device,
                                                        const sconce_model_desc *desc,
                                                        sconce_error *err);
/* After the methods that were opened on it. NULL is fine. */
SCONCE_API void sconce_model_close(sconce_model *model);

SCONCE_API uint32_t sconce_model_n_methods(const sconce_model *model);
/* Valid until the model is closed; NULL if there is no such method. */
SCONCE_API const char *sconce_model_method_name(const sconce_model *model, uint32_t i);

/* A number that the program states about itself through a method without inputs, such as
 * get_max_seq_len or (several outputs) get_eos_ids. SCONCE_UNSUPPORTED: no such method or output.
 * Integers and booleans are exact in both fields as far as a double goes. */
typedef struct sconce_number {
  int64_t i;
  double d;
} sconce_number;
SCONCE_API SCONCE_CHECK sconce_status sconce_model_constant(const sconce_model *model,
                                                            const char *method, uint32_t output,
                                                            sconce_number *out, sconce_error *err);

/* ---- tensors --------------------------------------------------------------------------------- */

enum { SCONCE_MAX_RANK = 8 };

typedef enum sconce_dtype { /* ExecuTorch's numbers */
                            SCONCE_UINT8 = 0,
                            SCONCE_INT8 = 1,
                            SCONCE_INT16 = 2,
                            SCONCE_INT32 = 3,
                            SCONCE_INT64 = 4,
                            SCONCE_FLOAT16 = 5,
                            SCONCE_FLOAT32 = 6,
                            SCONCE_FLOAT64 = 7,
                            SCONCE_BOOL = 11,
} sconce_dtype;
SCONCE_API size_t sconce_dtype_size(sconce_dtype dtype);      /* bytes; 0: unknown */
SCONCE_API const char *sconce_dtype_name(sconce_dtype dtype); /* "float32" */

/* Elements in row-major order, outermost dim first. Who owns the data depends on the call. */
typedef struct sconce_tensor {
  sconce_dtype dtype;
  uint32_t rank;
  uint32_t dims[SCONCE_MAX_RANK];
  const void *data;
  size_t size; /* bytes */
} sconce_tensor;

/* ---- method ---------------------------------------------------------------------------------- */

/* One method of a model on the device: its weights, its state (KV caches), its live shapes. */
typedef struct sconce_method sconce_method;

/* Plans the method and uploads its weights. name NULL: "forward". Error sentences name the
 * operator or tensor that stands in the way. */
SCONCE_API SCONCE_CHECK sconce_status sconce_method_open(sconce_method **out, sconce_model *model,
                                                         const char *name, sconce_error *err);
SCONCE_API void sconce_method_close(sconce_method *method);

SCONCE_API uint32_t sconce_method_n_inputs(const sconce_method *method);
SCONCE_API uint32_t sconce_method_n_outputs(const sconce_method *method);
/* What input or output i looks like: dtype and upper bounds of the dims; data is NULL. A scalar has
 * rank 0. false: no such i. */
SCONCE_API bool sconce_method_input_info(const sconce_method *method, uint32_t i,
                                         sconce_tensor *out);
SCONCE_API bool sconce_method_output_info(const sconce_method *method, uint32_t i,
                                          sconce_tensor *out);

/* Copies (and converts) the data; the input keeps it for later calls too. dtype as input_info says,
 * or another integer type for an integer input; each dim from 0 to its bound, the rank as it is.
 * On failure the input keeps what it had. */
SCONCE_API SCONCE_CHECK sconce_status sconce_method_set_input(sconce_method *method, uint32_t i,
                                                              const sconce_tensor *tensor,
                                                              sconce_error *err);

/* Runs and waits. A failed call leaves shapes, scalars and the method as they were before it,
 * except for what the device may have written into state. */
SCONCE_API SCONCE_CHECK sconce_status sconce_method_run(sconce_method *method, sconce_error *err);
/* The same in parts: begin submits, poll asks (*done), cancel gives up waiting. Up to
 * SCONCE_CALLS_MAX calls may be begun before the first is waited for: the device works through them
 * in order, poll and wait are about the oldest, cancel about all of them. */
enum { SCONCE_CALLS_MAX = 4 };
SCONCE_API SCONCE_CHECK sconce_status sconce_method_begin(sconce_method *method, sconce_error *err);
SCONCE_API SCONCE_CHECK sconce_status sconce_method_poll(sconce_method *method, bool *done,
                                                         sconce_error *err);
SCONCE_API SCONCE_CHECK sconce_status sconce_method_wait(sconce_method *method, sconce_error *err);
SCONCE_API void sconce_method_cancel(sconce_method *method);

/* Output i of the last call that was waited for, with its live dims; the data is valid until the
 * next begin or wait. */
SCONCE_API SCONCE_CHECK sconce_status sconce_method_output(sconce_method *method, uint32_t i,
                                                           sconce_tensor *out, sconce_error *err);

/* Output `output` of the last call becomes input `input` of the next ones, without leaving the
 * device; same dtype inside, dims within the input's bounds. */
SCONCE_API SCONCE_CHECK sconce_status sconce_method_feed(sconce_method *method, uint32_t output,
                                                         uint32_t input, sconce_error *err);
/* Leaves output i on the device from now on, or reads it back again: sconce_method_output then
 * gives its dims and no data. */
SCONCE_API SCONCE_CHECK sconce_status sconce_method_keep_output(sconce_method *method, uint32_t i,
                                                                bool on_device, sconce_error *err);

/* A language model (ids in, logits out, state) can choose the next token on the device and take it
 * as the next call's ids, so that calls follow each other without waiting for the host. */
typedef struct sconce_draw {
  uint64_t seed, position; /* of the token that is chosen */
  float temperature;       /* 0: the highest logit wins */
  uint32_t top_k;          /* 0: all */
  float top_p, min_p;      /* top_p 1: all; min_p 0: all */
} sconce_draw;
SCONCE_API bool sconce_method_draws(const sconce_method *method); /* can it? */
/* From the next begin on each call chooses a token from its last row of logits, as
 * sconce_sampler_choose does; NULL: no more. */
SCONCE_API SCONCE_CHECK sconce_status sconce_method_draw(sconce_method *method,
                                                         const sconce_draw *how, sconce_error *err);
/* The next call's ids are the one token that the call begun last chooses. */
SCONCE_API SCONCE_CHECK sconce_status sconce_method_feed_token(sconce_method *method,
                                                               sconce_error *err);
/* What the last call that was waited for chose; -1: nothing. */
SCONCE_API int32_t sconce_method_token(const sconce_method *method);

/* Puts state (KV caches) back to its initial values. */
SCONCE_API SCONCE_CHECK sconce_status sconce_method_reset(sconce_method *method, sconce_error *err);

/* State as bytes: everything that a call may change and a later one may see. */
SCONCE_API size_t sconce_method_state_size(const sconce_method *method);
SCONCE_API SCONCE_CHECK sconce_status sconce_method_get_state(sconce_method *method, void *out,
                                                              size_t size, sconce_error *err);
SCONCE_API SCONCE_CHECK sconce_status sconce_method_set_state(sconce_method *method,
                                                              const void *data, size_t size,
                                                              sconce_error *err);

/* Bytes and counts; what is on the device is really there. */
typedef struct sconce_stats {
  uint64_t gpu_persistent, gpu_transient, gpu_staging, gpu_params; /* bytes, whole device */
  uint64_t host;           /* bytes of the method's own arena, the mapped file not counted */
  uint32_t nodes;          /* of the graph */
  uint32_t dispatches;     /* of the last call */
  uint32_t nodes_planned;  /* nodes whose shape or scalars changed in the last call */
  uint64_t params_written; /* parameter slots rewritten since the method was opened */
  uint32_t gpu_buffers, gpu_groups, gpu_kernels; /* objects alive, whole device */
  uint64_t gpu_objects_made; /* buffers and groups made since the device was opened */
} sconce_stats;
SCONCE_API void sconce_method_stats(const sconce_method *method, sconce_stats *out);

/* Runs the method as it is set and times each dispatch by the device's clock. Calls each in order;
 * times are nanoseconds since the first dispatch. Needs timestamps. */
SCONCE_API SCONCE_CHECK sconce_status sconce_method_profile(
    sconce_method *method,
    void (*each)(void *user, const char *node, const char *kernel, uint64_t from, uint64_t to),
    void *user, sconce_error *err);

#ifdef __cplusplus
}
#endif
#endif
