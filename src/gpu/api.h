/* Private to src/gpu: the WebGPU functions as a table, and what the objects are made of. */
#ifndef GPU_API_H
#define GPU_API_H

#include "base/arena.h"
#include "base/log.h"
#include "gpu/gpu.h"

#include <stdatomic.h>

#include "wgpu.h" /* includes webgpu.h */

/* Functions that both libraries have. */
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
  X(CommandEncoderCopyBufferToBuffer)                                                              \
  X(CommandEncoderFinish)                                                                          \
  X(CommandEncoderRelease)                                                                         \
  X(CommandEncoderResolveQuerySet)                                                                 \
  X(ComputePassEncoderDispatchWorkgroups)                                                          \
  X(ComputePassEncoderEnd)                                                                         \
  X(ComputePassEncoderRelease)                                                                     \
  X(ComputePassEncoderSetBindGroup)                                                                \
  X(ComputePassEncoderSetPipeline)

struct webgpu {
  void *library;
  const struct flavour *flavour;
  void *own; /* the flavour's own_symbol: waiting asks for it again and again */
#define X(name) WGPUProc##name name;
  WEBGPU_FUNCTIONS(X)
#undef X
};

enum { ADAPTERS_MAX = 16 };

/* Where wgpu-native and Dawn differ; flavour.c is the one file that knows. */
struct flavour {
  const char *name;       /* "wgpu-native" */
  const char *alias;      /* what SCONCE_WEBGPU may say for it: "wgpu" */
  const char *file;       /* "libwgpu_native.so" */
  const char *own_symbol; /* a function that only this library exports */
  enum wgsl_dialect dialect;
  bool scopes_are_immediate;         /* errors are known when a scope is popped, not later */
  WGPUFeatureName subgroups, matrix; /* feature numbers; 0: not offered */
  void (*version)(const struct webgpu *api, char *out, size_t size);
  WGPUInstance (*create_instance)(const struct webgpu *api);
  uint32_t (*list_adapters)(const struct webgpu *api, WGPUInstance instance,
                            WGPUAdapter out[ADAPTERS_MAX]);
  /* What a device is asked for beside features and limits; chained to its descriptor. */
  const WGPUChainedStruct *(*device_chain)(void);
  /* Lets callbacks run; `block` may wait until the device has done something. */
  void (*poll)(const struct gpu *gpu, bool block);
  float (*timestamp_period)(const struct gpu *gpu); /* nanoseconds a tick */
  WGPUShaderModule (*create_module)(const struct gpu *gpu, const WGPUShaderModuleDescriptor *desc);
  /* Compiles on threads of the library's own; NULL: many threads may compile at once instead. */
  void (*create_pipeline_later)(const struct gpu *gpu, const WGPUComputePipelineDescriptor *desc,
                                WGPUCreateComputePipelineAsyncCallbackInfo callback);
};
extern const struct flavour *const flavours[]; /* ends with NULL; the first is the default */

SCONCE_CHECK sconce_status loader_open(struct webgpu *api, const char *library, sconce_error *err);
void loader_close(struct webgpu *api);

/* ---- objects --------------------------------------------------------------------------------- */

struct scope_answer {
  bool done;
  sconce_error error; /* status 0: no error */
};

struct gpu {
  sconce_allocator allocator;
  sconce_log log;
  struct webgpu api;
  WGPUInstance instance;
  WGPUAdapter adapter;
  uint32_t adapter_index;
  WGPUDevice device;
  WGPUQueue queue;
  sconce_device_info info;
  struct gpu_stats stats;
  struct gpu_kernel *kernels;  /* list */
  struct scope_answer answer;  /* here and not on a stack: a late callback must find it */
  struct gpu_compile *compile; /* begun and not ended */
  struct gpu_compile *orphans; /* whose callbacks had not come when the device was lost */
  bool no_threads;
  bool work_done;
  bool team_works;         /* threads are compiling: see compile.c */
  atomic_bool team_failed; /* outside any scope */
  atomic_flag losing;
  atomic_bool lost;   /* once it is true, loss is whole */
  sconce_error loss;  /* why */
  sconce_error stray; /* an error outside any scope, or a late one of a submit; status 0: none */
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
  uint64_t dispatches;
  uint8_t fixed[PARAMS_MAX]; /* row.fixed */
};

struct gpu_group {
  struct gpu_kernel *kernel;
  WGPUBindGroup handle;
};

struct gpu_read {
  struct gpu_buffer *buffer;
  enum { READ_IDLE, READ_MAPPING, READ_MAPPED, READ_FAILED } state;
  bool settled; /* the map's callback has come */
  char message[256];
};

/* ---- errors ---------------------------------------------------------------------------------- */

static inline WGPUStringView view(const char *z) {
  return (WGPUStringView){z, z ? WGPU_STRLEN : 0};
}

/* Copies a driver's string, cut to fit. */
void copy_view(char *out, size_t size, WGPUStringView text);

/* Errors between begin and end become the status of end, with "doing" in front. */
void scope_begin(struct gpu *gpu);
SCONCE_CHECK sconce_status scope_end(struct gpu *gpu, sconce_error *err, const char *doing, ...)
    PRINTF_LIKE(3, 4);
/* For a submit where errors come late: they end up in gpu->stray. */
void scope_end_late(struct gpu *gpu);

/* Fills in the subgroup sizes where the library does not tell them. */
SCONCE_CHECK sconce_status probe_subgroups(struct gpu *gpu, sconce_error *err);

/* ---- kernels --------------------------------------------------------------------------------- */

struct gpu_kernel *kernel_find(struct gpu *gpu, const struct kernel *row);
bool kernel_is(const struct gpu_kernel *k, const struct kernel *row);
/* Not yet compiled, in no list. */
SCONCE_CHECK sconce_status kernel_open(struct gpu *gpu, const struct kernel *row,
                                       struct gpu_kernel **out, sconce_error *err);
void kernel_close(struct gpu_kernel *k);
void kernel_keep(struct gpu_kernel *k); /* in the device's cache */
/* As gpu_kernel_get, and leaves late errors of others to those who ask with gpu_check. */
SCONCE_CHECK sconce_status kernel_get(struct gpu *gpu, const struct kernel *row,
                                      struct gpu_kernel **out, sconce_error *err);
void kernels_free(struct gpu *gpu);

/* Its shader, checked against the device's limits; in the arena. */
SCONCE_CHECK sconce_status kernel_text(struct gpu_kernel *k, struct arena *arena, const char **out,
                                       sconce_error *err);
SCONCE_CHECK sconce_status kernel_compile(struct gpu_kernel *k, const char *text,
                                          sconce_error *err);
void orphans_free(struct gpu *gpu);

/* Lets callbacks run until *done; gives up some time after the device was lost. */
void wait_until(struct gpu *gpu, const bool *done);

#endif
