/* Sconce: runs ExecuTorch models on any GPU through WebGPU.
 *
 * The world in one paragraph. A *device* is one GPU queue with its compiled kernels. A *model* is
 * one program file and what it says about itself. A *method* is one of the model's functions on the
 * device: planned, compiled, its weights uploaded. A *state* is what changes from call to call:
 * inputs, KV caches, live shapes, calls in flight; a method can have several, each as if it were
 * alone. Weights are on the device once, whatever is open.
 *
 * Handles are opened and closed in pairs, and closed in any order: what others were opened from
 * stays until they are closed too. Every call that can fail returns a sconce_status and fills an
 * error that the caller owns (it may be NULL) with one sentence that carries the values. Nothing
 * aborts, nothing prints, and there are no globals.
 *
 * Opening never has to block: X_begin returns at once, X_poll goes on a little and says how far it
 * is, and X_close at any moment gives up. X_open is the loop over the two.
 *
 * Threads: handles of one device may be used from several threads at once, but each single handle
 * by one thread at a time. Where a call waits for the device or for a file, other threads' calls go
 * on. The allocator and the log must allow for that, and call nothing here; with one thread they
 * are called on it alone. Opening a method compiles on threads of its own, but with no_threads. A
 * library built with SCONCE_CHECK_THREADS refuses a state, session or model that is being opened to
 * a second thread while the first is in a call, with SCONCE_BAD_ARGUMENT.
 *
 * Descriptors: zero-initialise them; a zero field means its default.
 * Before 1.0 the second number may change anything, the third adds functions and nothing else. */
#ifndef SCONCE_H
#define SCONCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A program that links the Windows DLL defines SCONCE_SHARED. */
#if defined(_WIN32) && defined(SCONCE_BUILD)
#define SCONCE_API __declspec(dllexport)
#elif defined(_WIN32) && defined(SCONCE_SHARED)
#define SCONCE_API __declspec(dllimport)
#elif defined(SCONCE_BUILD) && (defined(__GNUC__) || defined(__clang__))
#define SCONCE_API __attribute__((visibility("default")))
#else
#define SCONCE_API
#endif
#if defined(__GNUC__) || defined(__clang__)
#define SCONCE_CHECK __attribute__((warn_unused_result))
#else
#define SCONCE_CHECK
#endif
#define SCONCE_VERSION_MAJOR 0
#define SCONCE_VERSION_MINOR 2
#define SCONCE_VERSION_PATCH 0
#define SCONCE_VERSION "0.2.0"

/* Of the library that is linked, which may be another; 10,000 major + 100 minor + patch. */
SCONCE_API const char *sconce_version(void);
SCONCE_API uint32_t sconce_version_number(void);

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
  SCONCE_DEVICE_LOST,   /* the device is gone: sconce_device_recover, or close everything */
  SCONCE_IO_ERROR,      /* the operating system could not open, read or write */
  SCONCE_CANCELLED,     /* a callback of the caller, or sconce_session_cancel, asked for it */
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
  SCONCE_LOG_DEBUG
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
  const char *library;   /* a path, "wgpu", "dawn" or, by matrix units, "best"; default:
                            SCONCE_WEBGPU, then beside the program, then the system's */
  const char *adapter;   /* part of an adapter's name, or its index; default: SCONCE_ADAPTER, then
                            the best hardware adapter, then a software one */
  const char *disable;   /* features not to use: "f16,subgroups,timestamps,matrix,software"; what
                            SCONCE_DISABLE names is disabled as well */
  const char *limits;    /* caps, "storage_binding=1048576,…", or "default": WebGPU's own;
                            SCONCE_LIMITS applies as well, the lower cap wins */
  const char *precision; /* "exact": f32 throughout; "fast": f16 products, f32 sums, where rows are
                            many; default: SCONCE_PRECISION, then fast if there are matrix units */
  const char *no_fusion; /* fusions not to make, by their names in docs/architecture.md,
                            or "all"; SCONCE_NO_FUSION names more; results differ by rounding */
  const char *avoid;     /* kernels not to choose where another fits: `sconce check --self` */
  bool no_threads;       /* start none of our own */
  sconce_allocator allocator; /* default: the C library's */
  sconce_log log;
} sconce_device_desc;

typedef enum sconce_adapter_type {
  SCONCE_ADAPTER_UNKNOWN = 0,
  SCONCE_ADAPTER_DISCRETE,
  SCONCE_ADAPTER_INTEGRATED,
  SCONCE_ADAPTER_SOFTWARE
} sconce_adapter_type;

/* What a device is and what it lets kernels do, until close. All strings end with a NUL. */
typedef struct sconce_device_info {
  uint32_t index; /* among sconce_adapters */
  char name[128]; /* "NVIDIA H200", "llvmpipe (LLVM 15.0.6, 256 bits)" */
  char driver[192], vendor[64];
  char api[16];                          /* "Vulkan", "Metal", "D3D12", … */
  char library[32], library_version[32]; /* "wgpu-native", "Dawn" */
  sconce_adapter_type type;
  bool f16, subgroups, timestamps, matrix, fast; /* in use; fast: the precision */
  uint32_t subgroup_min, subgroup_max;           /* 0 without subgroups */
  uint64_t max_buffer, max_storage_binding;      /* bytes */
  uint32_t max_storage_buffers;                  /* per stage */
  uint32_t max_workgroup_bytes, max_workgroup_invocations;
  uint32_t max_workgroup_size[3];
  uint32_t max_workgroups;                       /* per dimension of a dispatch */
  uint32_t storage_alignment, uniform_alignment; /* of binding offsets, bytes */
} sconce_device_info;

/* Opens an adapter with everything it offers, less what the descriptor and the environment disable
 * or cap. desc may be NULL. On failure *out is NULL and nothing is kept. */
SCONCE_API SCONCE_CHECK sconce_status sconce_device_open(sconce_device **out,
                                                         const sconce_device_desc *desc,
                                                         sconce_error *err);
/* The same in steps: until poll has said *done the handle can only be polled and closed. */
SCONCE_API SCONCE_CHECK sconce_status sconce_device_begin(sconce_device **out,
                                                          const sconce_device_desc *desc,
                                                          sconce_error *err);
SCONCE_API SCONCE_CHECK sconce_status sconce_device_poll(sconce_device *device, bool *done,
                                                         sconce_error *err);
/* A lost device can be closed like any other. NULL is fine, here as in every close. */
SCONCE_API void sconce_device_close(sconce_device *device);

/* After SCONCE_DEVICE_LOST: a device in place of the lost one, on its adapter or, where nobody
 * named that, on the next; all handles stay. Weights are read again; states are as after a reset,
 * with what was set as inputs. Waits, while no other thread is in a call on the device. */
SCONCE_API SCONCE_CHECK sconce_status sconce_device_recover(sconce_device *device,
                                                            sconce_error *err);
SCONCE_API const sconce_device_info *sconce_device_describe(const sconce_device *device);

/* Calls `each` once per adapter that the library offers, in the order of the indices that
 * sconce_device_desc.adapter accepts; the limits are those of the adapter, uncapped. */
SCONCE_API SCONCE_CHECK sconce_status sconce_adapters(const sconce_device_desc *desc,
                                                      void (*each)(void *user, uint32_t index,
                                                                   const sconce_device_info *info),
                                                      void *user, sconce_error *err);

/* ---- files ----------------------------------------------------------------------------------- */

/* Where a file's bytes come from. Of a file that is read nothing is held but its program part and
 * 16 MiB on their way. */
enum { SCONCE_PIECE_MAX = 16 << 20 };
typedef struct sconce_file {
  const char *path; /* read in pieces; one written to meanwhile is an error. Or */
  const void *data; /* memory of `size` bytes, borrowed until close; or */
  uint64_t size;    /* of data, of what `read` reads, or of what will be handed in */
  /* At most SCONCE_PIECE_MAX bytes; it may take long, and use the device but not this model; if it
   * fails so does the opening. With a size and nothing else: see sconce_model_give. */
  sconce_status (*read)(void *user, uint64_t offset, void *out, size_t size);
  void *user;
} sconce_file;

/* Named data from elsewhere, such as another runtime's; asked for while a method is being opened,
 * on the thread that opens it, and by sconce_device_recover. `find` answers at once and calls
 * nothing here; false: there is none. `read` is as that of a file. */
typedef struct sconce_named_data {
  bool (*find)(void *user, const char *key, uint64_t *size);
  sconce_status (*read)(void *user, const char *key, uint64_t offset, void *out, size_t size);
  void *user;
} sconce_named_data;

/* ---- model ----------------------------------------------------------------------------------- */

/* One .pte file (and its .ptd files), verified. Its methods are opened one by one. */
typedef struct sconce_model sconce_model;

typedef struct sconce_model_desc {
  /* The .pte; or the blob of one "VulkanBackend" delegate alone, for those who run the rest of a
   * program themselves: a model with one method, "forward", that has the delegate's inputs and
   * outputs. All its inputs are dynamic, live scalars (int64 of rank 0) too. */
  sconce_file program;
  const sconce_file *data_files; /* .ptd files */
  uint32_t n_data_files;
  sconce_named_data named_data; /* keys that no file has; optional */
  /* What a method of it may take; more is an error that names both numbers. */
  uint64_t max_device_bytes; /* weights, intermediate results and one state; default: 64 GiB, and
                                weights of at most 4 times the files' size and 64 MiB */
  uint32_t max_nodes;        /* of its graph, delegates inlined; default 100,000 */
  uint32_t max_load_ms;      /* for building and planning its graph; reading and compiling go on
                                from poll to poll and do not count; default 300,000 */
  uint64_t max_host_bytes;   /* of its graph, each state has about as much for calls; default: 4
                                times the files' size and 160 MiB */
} sconce_model_desc;

/* How far an opening is. */
typedef struct sconce_progress {
  bool done;
  uint64_t bytes_done, bytes_all; /* that must be read, or brought to the device */
  uint32_t kernels_done, kernels_all;
  /* What must be handed in before it can go on; size 0: nothing, poll again. */
  struct {
    uint32_t file; /* 0: the program, 1 + i: data file i */
    uint64_t offset;
    size_t size; /* at most SCONCE_PIECE_MAX */
  } wants;
} sconce_progress;

/* Reads and verifies; nothing goes to the device yet. On failure *out is NULL. */
SCONCE_API SCONCE_CHECK sconce_status sconce_model_open(sconce_model **out, sconce_device *device,
                                                        const sconce_model_desc *desc,
                                                        sconce_error *err);
/* The same in steps: until poll has said done the handle can only be polled, given bytes, and
 * closed. After a failure it can only be closed. */
SCONCE_API SCONCE_CHECK sconce_status sconce_model_begin(sconce_model **out, sconce_device *device,
                                                         const sconce_model_desc *desc,
                                                         sconce_error *err);
SCONCE_API SCONCE_CHECK sconce_status sconce_model_poll(sconce_model *model,
                                                        sconce_progress *progress,
                                                        sconce_error *err);
/* Hands in what sconce_progress.wants asked for, of the model or of one of its methods that is
 * being opened: all of it, or its beginning, and later the rest. The bytes are copied. */
SCONCE_API SCONCE_CHECK sconce_status sconce_model_give(sconce_model *model, uint32_t file,
                                                        uint64_t offset, const void *data,
                                                        size_t size, sconce_error *err);
SCONCE_API void sconce_model_close(sconce_model *model);

typedef struct sconce_model_info { /* valid until close */
  uint32_t n_methods;
  const char *const *methods; /* their names */
} sconce_model_info;
SCONCE_API const sconce_model_info *sconce_model_describe(const sconce_model *model);
SCONCE_API sconce_device *sconce_model_device(const sconce_model *model); /* it was opened on */
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

/* Stands for every byte of its files, which are read; of those handed in, for the program. */
SCONCE_API SCONCE_CHECK sconce_status sconce_model_fingerprint(sconce_model *model, uint64_t *out,
                                                               sconce_error *err);

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

/* Elements in row-major order, also where the file has another. Whose the data is a call says. */
typedef struct sconce_tensor {
  sconce_dtype dtype;
  uint32_t rank, dims[SCONCE_MAX_RANK];
  const void *data;
  size_t size; /* bytes */
} sconce_tensor;

/* ---- method ---------------------------------------------------------------------------------- */

/* One method of a model, ready to run: planned, its kernels compiled, its weights on the device. A
 * method that is open already is opened again at no cost. */
typedef struct sconce_method sconce_method;

/* name NULL: "forward". Error sentences name the operator or tensor that stands in the way. */
SCONCE_API SCONCE_CHECK sconce_status sconce_method_open(sconce_method **out, sconce_model *model,
                                                         const char *name, sconce_error *err);
/* The same in steps, as for a model: the bytes are those of weights. */
SCONCE_API SCONCE_CHECK sconce_status sconce_method_begin(sconce_method **out, sconce_model *model,
                                                          const char *name, sconce_error *err);
SCONCE_API SCONCE_CHECK sconce_status sconce_method_poll(sconce_method *method,
                                                         sconce_progress *progress,
                                                         sconce_error *err);
SCONCE_API void sconce_method_close(sconce_method *method);

typedef struct sconce_method_info { /* valid until close */
  const char *name;
  uint32_t n_inputs, n_outputs;
  /* dtypes and upper bounds of the dims; data is NULL. A scalar has rank 0. */
  const sconce_tensor *inputs, *outputs;
  const bool *dynamic; /* (n_inputs + n_outputs), the inputs first: may its dims be smaller than
                          these? Else they are its dims */
  bool can_draw;       /* a language model (ids in, logits out, KV caches): see sconce_draw */
  uint32_t max_rows;   /* of logits that such a call can give: see last_rows */
} sconce_method_info;
SCONCE_API const sconce_method_info *sconce_method_describe(const sconce_method *method);

/* ---- state ----------------------------------------------------------------------------------- */

/* What changes from call to call. Opening one costs its own memory and compiles nothing. */
typedef struct sconce_state sconce_state;

SCONCE_API SCONCE_CHECK sconce_status sconce_state_open(sconce_state **out, sconce_method *method,
                                                        sconce_error *err);
/* …with those buffers of `with` that the program gives both methods: prefill and decode with one KV
 * cache (share_mutable_buffers of the exporter). Without any it is a bad argument. */
SCONCE_API SCONCE_CHECK sconce_status sconce_state_join(sconce_state **out, sconce_method *method,
                                                        sconce_state *with, sconce_error *err);
/* Gives up the calls that are running. */
SCONCE_API void sconce_state_close(sconce_state *state);

/* Copies (and converts) the data; the input keeps it for later calls too, and what it has already
 * is not sent again. dtype as the method says, or another integer type for an integer input;
 * 64-bit elements must fit 32 bits; the rank as it is, each dim from 0 to its bound, or its bound
 * where the input is not dynamic; size the bytes that the dims need. On failure nothing changes. */
SCONCE_API SCONCE_CHECK sconce_status sconce_state_set_input(sconce_state *state, uint32_t i,
                                                             const sconce_tensor *tensor,
                                                             sconce_error *err);
/* Output `output` of the last call of `from` becomes input `input` of the next ones of `state`,
 * without leaving the device. The two may be one state, or of different methods and models of one
 * device; same dtype inside, dims within the input's bounds. */
SCONCE_API SCONCE_CHECK sconce_status sconce_state_feed(sconce_state *state, uint32_t input,
                                                        sconce_state *from, uint32_t output,
                                                        sconce_error *err);

/* A language model can choose the next token on the device and take it as the next call's ids, so
 * that calls follow each other without waiting for the host. */
typedef struct sconce_draw {
  uint64_t seed, position; /* of the (last) token that is chosen */
  float temperature;       /* 0: the highest logit wins */
  uint32_t top_k;          /* 0: all */
  float top_p, min_p;      /* 0: all, as in a sampler; top_p 1: all */
} sconce_draw;

/* One call. NULL where one is asked for means all zero. */
typedef struct sconce_call {
  bool keep_outputs; /* outputs stay on the device: no data, but they can be fed */
  /* Only so many rows from the end of each output: of its last dim but one, if all before are 1;
   * logits up to max_rows, also where the method's outputs have fewer, and no others are computed.
   * 0: all; but with draw, outputs that are kept have the last alone. */
  uint32_t last_rows;
  const sconce_draw *draw; /* choose a token from each of these rows, at most 8 (0: the last), as
                              sconce_sampler_choose does; NULL: none */
  bool feed_token;         /* the ids are the one token that the call begun last chooses */
  uint64_t max_steps; /* nodes that it may go through, in loops again and again; 0: 10,000,000 */
} sconce_call;

/* Runs and waits. A failed call leaves shapes, scalars and the state as they were before it,
 * except for what the device may have written into KV caches and the like. */
SCONCE_API SCONCE_CHECK sconce_status sconce_state_run(sconce_state *state, const sconce_call *call,
                                                       sconce_error *err);
/* The same in parts: begin submits, poll asks (*done), wait waits, cancel gives up. Up to
 * SCONCE_CALLS_MAX calls may be begun before the first is waited for: the device works through them
 * in order, poll and wait are about the oldest, cancel about all of them. (Where nothing may wait,
 * none behind one that is still being planned, as loops are for 50 ms at a time.) Polls and waits
 * also send what begin did not: what follows a condition that only the device knows, and the pieces
 * of a call of more than some 100 ms, two ahead of the device; cancel drops what was not sent. */
enum { SCONCE_CALLS_MAX = 4 };
SCONCE_API SCONCE_CHECK sconce_status sconce_state_begin(sconce_state *state,
                                                         const sconce_call *call,
                                                         sconce_error *err);
SCONCE_API SCONCE_CHECK sconce_status sconce_state_poll(sconce_state *state, bool *done,
                                                        sconce_error *err);
SCONCE_API SCONCE_CHECK sconce_status sconce_state_wait(sconce_state *state, sconce_error *err);
SCONCE_API void sconce_state_cancel(sconce_state *state);

/* Output i of the last call waited for, with its live dims; the data is valid until the next begin
 * or wait, and NULL while the output is on the device alone: fetch waits for all of them. */
SCONCE_API SCONCE_CHECK sconce_status sconce_state_output(sconce_state *state, uint32_t i,
                                                          sconce_tensor *out, sconce_error *err);
SCONCE_API SCONCE_CHECK sconce_status sconce_state_fetch(sconce_state *state, sconce_error *err);
/* What the last call waited for chose, one for each row; as long as an output; NULL: nothing. */
SCONCE_API const int32_t *sconce_state_tokens(const sconce_state *state, uint32_t *n);
/* Puts KV caches and other buffers back to their initial values. */
SCONCE_API SCONCE_CHECK sconce_status sconce_state_reset(sconce_state *state, sconce_error *err);
SCONCE_API uint32_t sconce_state_losses(const sconce_state *state); /* how often it was remade */
/* Everything that a call may change and a later one may see, as bytes. */
SCONCE_API size_t sconce_state_size(const sconce_state *state);
SCONCE_API SCONCE_CHECK sconce_status sconce_state_save(sconce_state *state, void *out, size_t size,
                                                        sconce_error *err);
SCONCE_API SCONCE_CHECK sconce_status sconce_state_restore(sconce_state *state, const void *data,
                                                           size_t size, sconce_error *err);

/* Bytes and counts of what is alive now. */
typedef struct sconce_stats {
  /* on the whole device */
  uint64_t gpu_weights, gpu_state, gpu_transient, gpu_staging, gpu_params; /* bytes */
  uint32_t gpu_buffers, gpu_groups, gpu_kernels;
  uint64_t gpu_objects_made; /* buffers and bind groups, since the device was opened */
  /* of this state */
  uint64_t own, host; /* bytes on the device that go when it is closed; bytes of host memory */
  uint32_t nodes;     /* of the graph */
  uint32_t dispatches, submits; /* of the last call */
  uint32_t nodes_planned;       /* nodes whose shape or scalars changed in the last call */
  uint64_t params_written;      /* parameter slots rewritten so far */
} sconce_stats;
SCONCE_API void sconce_state_stats(const sconce_state *state, sconce_stats *out);

/* Runs the state as it is set and times each dispatch by the device's clock. Calls each in order;
 * times are nanoseconds since the first dispatch. Needs timestamps. */
SCONCE_API SCONCE_CHECK sconce_status sconce_state_profile(
    sconce_state *state,
    void (*each)(void *user, const char *node, const char *kernel, uint64_t from, uint64_t to),
    void *user, sconce_error *err);

#ifdef __cplusplus
}
#endif
#endif
