/* Private to src/gpu: the WebGPU functions as a table, and what the objects are made of.
 *
 * The table is filled by a loader: loader.c opens a library, loader_static.c takes the one that was
 * linked. flavour.c knows how the libraries differ, and is the one file that sees wgpu.h. */
#ifndef GPU_API_H
#define GPU_API_H

#include "base/arena.h"
#include "base/log.h"
#include "base/os.h"
#include "gpu/gpu.h"

#include <stdatomic.h>

#include "webgpu.h"

/* Functions that every library has, and a browser's glue must have. */
#define WEBGPU_FUNCTIONS(X)                                                                        \
  X(CreateInstance)                                                                                \
  X(InstanceRequestAdapter)                                                                        \
  X(InstanceProcessEvents)                                                                         \
  X(InstanceRelease)                                                                               \
  X(AdapterGetFeatures)                                                                            \
  X(AdapterGetInfo)                                                                                \
  X(AdapterGetLimits)                                                                              \
  X(AdapterInfoFreeMembers)                                                                        \
  X(AdapterRelease)                                                                                \
  X(AdapterRequestDevice)                                                                          \
  X(SupportedFeaturesFreeMembers)                                                                  \
  X(DeviceCreateBindGroup)                                                                         \
  X(DeviceCreateBindGroupLayout)                                                                   \
  X(DeviceCreateBuffer)                                                                            \
  X(DeviceCreateCommandEncoder)                                                                    \
  X(DeviceCreateComputePipeline)                                                                   \
  X(DeviceCreatePipelineLayout)                                                                    \
  X(DeviceCreateQuerySet)                                                                          \
  X(DeviceCreateShaderModule)                                                                      \
  X(DeviceDestroy)                                                                                 \
  X(DeviceGetQueue)                                                                                \
  X(DevicePopErrorScope)                                                                           \
  X(DevicePushErrorScope)                                                                          \
  X(DeviceRelease)                                                                                 \
  X(QueueOnSubmittedWorkDone)                                                                      \
  X(QueueRelease)                                                                                  \
  X(QueueSubmit)                                                                                   \
  X(QueueWriteBuffer)                                                                              \
  X(BufferDestroy)                                                                                 \
  X(BufferGetConstMappedRange)                                                                     \
  X(BufferMapAsync)                                                                                \
  X(BufferRelease)                                                                                 \
  X(BufferUnmap)                                                                                   \
  X(BindGroupRelease)                                                                              \
  X(BindGroupLayoutRelease)                                                                        \
  X(PipelineLayoutRelease)                                                                         \
  X(ComputePipelineRelease)                                                                        \
  X(ShaderModuleRelease)                                                                           \
  X(QuerySetRelease)                                                                               \
  X(CommandBufferRelease)                                                                          \
  X(CommandEncoderBeginComputePass)                                                                \
  X(CommandEncoderClearBuffer)                                                                     \
  X(CommandEncoderCopyBufferToBuffer)                                                              \
  X(CommandEncoderFinish)                                                                          \
  X(CommandEncoderRelease)                                                                         \
  X(CommandEncoderResolveQuerySet)                                                                 \
  X(ComputePassEncoderDispatchWorkgroups)                                                          \
  X(ComputePassEncoderEnd)                                                                         \
  X(ComputePassEncoderRelease)                                                                     \
  X(ComputePassEncoderSetBindGroup)                                                                \
  X(ComputePassEncoderSetPipeline)

/* Functions of one library beyond those, in the order in which its flavour names them. */
enum { OWN_MAX = 8 };

struct webgpu {
  const struct flavour *flavour;
  WGPUProc own[OWN_MAX]; /* NULL: this version has none */
#define X(name) WGPUProc##name name;
  WEBGPU_FUNCTIONS(X)
#undef X
};

enum { ADAPTERS_MAX = 16 };

/* Where the libraries differ; flavour.c is the one file that knows. */
struct flavour {
  const char *name;         /* "wgpu-native" */
  const char *alias;        /* what SCONCE_WEBGPU may say for it: "wgpu"; NULL: a path only */
  const char *file;         /* "libwgpu_native.so" */
  const char *own[OWN_MAX]; /* names; a library that has the first one is this one, */
  const char *never;        /* unless it has this one too */
  enum wgsl_dialect dialect;
  /* Errors reach on_error within the call and on its thread. Else error scopes tell, some time
   * after they are popped. */
  bool answers_at_once;
  /* poll can block, and several threads may call it without the device's lock: what it calls back
   * is atomic. Else it runs under the lock and whoever waits sleeps between two polls. */
  bool poll_waits;
  bool never_blocks;                 /* there is nothing to sleep with */
  WGPUFeatureName subgroups, matrix; /* feature numbers; 0: not offered */
  /* With the feature `matrix`: which products of f16 with sums in f32. */
  void (*matrices)(const struct webgpu *api, WGPUAdapter adapter, struct matrix out[MATRICES_MAX]);
  const char *no_memory; /* in a validation error that means out of memory; NULL: it says so */
  void (*version)(const struct webgpu *api, char *out, size_t size);
  WGPUInstance (*create_instance)(const struct webgpu *api);
  /* All adapters at once, or NULL and questions that are answered later. */
  uint32_t (*list_adapters)(const struct webgpu *api, WGPUInstance instance,
                            WGPUAdapter out[ADAPTERS_MAX]);
  uint32_t n_questions; /* at most ADAPTERS_MAX */
  void (*ask_adapter)(const struct webgpu *api, WGPUInstance instance, uint32_t question,
                      WGPURequestAdapterCallbackInfo callback);
  /* What a device is asked for beside features and limits; chained to its descriptor. */
  const WGPUChainedStruct *(*device_chain)(void);
  /* The mark grows with every submit; 0 where poll cannot wait for one. */
  uint64_t (*submit)(const struct gpu *gpu, size_t n, const WGPUCommandBuffer *commands);
  /* Lets callbacks run; `block`, see poll_waits, until the submit with this mark is done. */
  void (*poll)(const struct gpu *gpu, bool block, uint64_t mark);
  float (*timestamp_period)(const struct gpu *gpu); /* nanoseconds a tick */
  WGPUShaderModule (*create_module)(const struct gpu *gpu, const WGPUShaderModuleDescriptor *desc);
  /* Compiles on threads of the library's own; false: it cannot. NULL where errors are told at once:
   * there threads of ours compile. */
  bool (*create_pipeline_later)(const struct gpu *gpu, const WGPUComputePipelineDescriptor *desc,
                                WGPUCreateComputePipelineAsyncCallbackInfo callback);
};
extern const struct flavour *const flavours[]; /* ends with NULL; the first is the default */

SCONCE_CHECK sconce_status loader_open(struct webgpu *api, const char *library, sconce_error *err);
/* For loader_static.c: the flavour that the build chose, and its own functions. */
void flavour_linked(struct webgpu *api);

/* ---- objects --------------------------------------------------------------------------------- */

struct gpu {
  sconce_allocator allocator;
  sconce_log log;
  bool no_threads, no_blocking;
  bool compiles_all; /* see gpu_compile_all */
  bool software;     /* see NEEDS_SOFTWARE */
  struct webgpu api;
  WGPUInstance instance;
  WGPUAdapter adapter;
  uint32_t adapter_index;
  WGPUDevice device;
  WGPUQueue queue;
  sconce_device_info info;
  struct matrix matrices[MATRICES_MAX]; /* of the adapter */
  const char *avoid;                    /* see gpu_avoid */
  struct gpu_stats stats;
  struct opening *opening; /* while it is being opened */
  bool closing;            /* callbacks that come now tell nobody */

  struct os_mutex mutex;
  atomic_uint wanting; /* threads that wait for it */
  bool held;           /* changed by its holder alone; false where nobody uses it */

  struct gpu_kernel *kernels;  /* list */
  struct gpu_fence *fences;    /* all of them, see wait.c */
  struct gpu_compile *orphans; /* given up while threads or the library had work to do for them */

  uint64_t mark;       /* of the last submit */
  uint64_t done_ns;    /* see gpu_done */
  bool catching;       /* between scope_begin and scope_end, where errors are told at once */
  sconce_error caught; /* the first of them */
  struct late *lates, *lates_free;
  uint32_t n_late; /* scopes popped and not yet answered */

  atomic_flag losing;
  atomic_bool lost;  /* once it is true, loss is whole */
  sconce_error loss; /* why */
  uint32_t fuse;     /* gpu_check counts down, and loses the device at 0; 0: it does not */
  atomic_int stray_state;
  sconce_error stray;    /* an error that belongs to no call, until gpu_check takes it */
  bool stray_is_news;    /* it is in no log yet */
  atomic_uint n_strayed; /* late errors of writes, submits and maps */
};

struct gpu_buffer {
  struct gpu *gpu;
  WGPUBuffer handle;
  uint64_t size;
  enum gpu_use use;
};

struct gpu_kernel {
  struct gpu_kernel *next;
  struct gpu *gpu;
  struct kernel row; /* its strings are the table's */
  WGPUBindGroupLayout layout;
  WGPUComputePipeline pipeline;
  bool failed; /* told late: to be made again when it is asked for */
  uint64_t dispatches;
  uint8_t fixed[PARAMS_MAX]; /* row.fixed */
};

struct gpu_group {
  struct gpu_kernel *kernel;
  WGPUBindGroup handle;
};

/* An answer that the device owes: that work is done, or that a buffer is mapped. */
struct gpu_fence {
  struct gpu *gpu;
  struct gpu_fence *next;
  uint64_t mark; /* of the submit that it waits for */
  bool owned;
  atomic_bool settled; /* it came; what stands below is whole */
  bool failed;
  char message[256];
};

struct gpu_read {
  struct gpu_buffer *buffer;
  struct gpu_fence *map; /* NULL: the last one was given up */
  bool reading;          /* begun and not ended */
  uint32_t n_strayed;    /* of the device when it was begun */
};

/* ---- errors ---------------------------------------------------------------------------------- */

static inline WGPUStringView view(const char *z) {
  return (WGPUStringView){z, z ? WGPU_STRLEN : 0};
}

/* Copies a driver's string, cut to fit. */
void copy_view(char *out, size_t size, WGPUStringView text);

/* The device's callback for errors outside any scope. */
void on_error(WGPUDevice const *device, WGPUErrorType type, WGPUStringView message, void *user,
              void *unused);
/* Where errors go that this thread causes without holding the lock; NULL: it holds it. */
extern _Thread_local sconce_error *caught_here;

/* Errors between begin and end become the status of end, with "doing" in front. Where they are told
 * late they go to gpu->stray instead and end says SCONCE_OK. A scope is not held over a wait. */
void scope_begin(struct gpu *gpu);
SCONCE_CHECK sconce_status scope_end(struct gpu *gpu, sconce_error *err, const char *doing, ...)
    PRINTF_LIKE(3, 4);
/* For what is done for every token where errors are told late. `doing` is there for ever. */
void scope_end_late(struct gpu *gpu, const char *doing);

/* Late errors go to `tell`, one by one, and at last NULL: everything was answered. If end fails it
 * tells nothing. */
struct listener {
  void (*tell)(void *user, const sconce_error *error);
  void *user;
};
SCONCE_CHECK sconce_status scope_end_told(struct gpu *gpu, const struct listener *listener,
                                          sconce_error *err, const char *doing, ...)
    PRINTF_LIKE(4, 5);
/* Notes an error that belongs to no call. */
void stray_set(struct gpu *gpu, const sconce_error *error, bool news);
void lates_free(struct gpu *gpu);

/* ---- waiting --------------------------------------------------------------------------------- */

/* NULL: no memory. */
struct gpu_fence *fence_new(struct gpu *gpu);
void fence_arm(struct gpu_fence *fence); /* before the library is asked */
void fence_settle(struct gpu_fence *fence, bool ok, WGPUStringView message);
bool fence_settled(const struct gpu_fence *fence);
void fences_free(struct gpu *gpu);
/* Waits until it is settled; gives up some time after the device was lost. */
SCONCE_CHECK sconce_status fence_wait(struct gpu_fence *fence, sconce_error *err);
/* One turn of a blocking loop: another thread may work, the library may answer. */
SCONCE_CHECK sconce_status wait_turn(struct gpu *gpu, sconce_error *err);

/* ---- buffers --------------------------------------------------------------------------------- */

/* The library's part of a buffer. */
SCONCE_CHECK sconce_status buffer_create(struct gpu_buffer *buffer, const char *label,
                                         sconce_error *err);
void buffer_release(struct gpu_buffer *buffer);
/* Before something is copied to it: it may have lost its buffer. */
SCONCE_CHECK sconce_status read_ready(struct gpu_read *read, sconce_error *err);

/* ---- opening --------------------------------------------------------------------------------- */

struct adapters {
  uint32_t n;
  WGPUAdapter handle[ADAPTERS_MAX];
  sconce_device_info info[ADAPTERS_MAX];
};
struct gpu_config;

void adapter_describe(const struct webgpu *api, WGPUAdapter adapter, sconce_device_info *info);
bool adapter_is_null(const sconce_device_info *info);
/* Which subgroup matrices it offers; none: `out` is all zero. */
void adapter_matrices(const struct webgpu *api, WGPUAdapter adapter,
                      struct matrix out[MATRICES_MAX]);
SCONCE_CHECK sconce_status adapter_choose(const struct adapters *list, const char *wanted,
                                          uint32_t *chosen, sconce_error *err);
/* What a device is asked for; `info` becomes what it will be. */
enum { FEATURES_MAX = 4 };
void adapter_limits(const struct webgpu *api, WGPUAdapter adapter, const struct gpu_config *config,
                    sconce_device_info *info, WGPULimits *out);
size_t adapter_features(const struct flavour *flavour, const struct gpu_config *config,
                        sconce_device_info *info, WGPUFeatureName out[FEATURES_MAX]);
void on_lost(WGPUDevice const *device, WGPUDeviceLostReason reason, WGPUStringView message,
             void *user, void *unused);
/* Closing first gives up what goes on, and frees it when nobody can call back any more. */
void opening_give_up(struct gpu *gpu);
void opening_free(struct gpu *gpu);

/* Finds the subgroup sizes where the library does not tell them. */
struct probing {
  struct gpu_buffer *buffer;
  struct gpu_group *group;
  struct gpu_read *read;
};
SCONCE_CHECK sconce_status probe_begin(struct probing *probe, struct gpu *gpu, sconce_error *err);
SCONCE_CHECK sconce_status probe_poll(struct probing *probe, struct gpu *gpu, bool *done,
                                      sconce_error *err);
void probe_free(struct probing *probe); /* a zeroed one is fine */

/* ---- kernels --------------------------------------------------------------------------------- */

struct gpu_kernel *kernel_find(struct gpu *gpu, const struct kernel *row);
bool kernel_is(const struct gpu_kernel *k, const struct kernel *row);
/* Not yet compiled, in no list. */
SCONCE_CHECK sconce_status kernel_open(struct gpu *gpu, const struct kernel *row,
                                       struct gpu_kernel **out, sconce_error *err);
void kernel_release(struct gpu_kernel *k); /* what it has of the library */
void kernel_close(struct gpu_kernel *k);
void kernel_keep(struct gpu_kernel *k); /* in the device's cache */
void kernels_free(struct gpu *gpu);

/* Its shader, checked against the device's limits; in the arena. */
SCONCE_CHECK sconce_status kernel_text(struct gpu_kernel *k, struct arena *arena, const char **out,
                                       sconce_error *err);
SCONCE_CHECK sconce_status kernel_compile(struct gpu_kernel *k, const char *text,
                                          sconce_error *err);
/* Frees those that are through; `all` waits for threads of ours. */
void orphans_free(struct gpu *gpu, bool all);

#endif
