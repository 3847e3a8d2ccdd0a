/* The WebGPU libraries and everything in which they differ.
 *
 * wgpu-native answers within the call, and a few standard functions abort the process because they
 * are not implemented; none of those is in WEBGPU_FUNCTIONS. Dawn answers from ProcessEvents and
 * knows more features. What is neither has webgpu.h and nothing more: a browser is such a one. */
#include "gpu/api.h"

#include <stdio.h>

#if defined(__has_include)
#if __has_include("wgpu.h")
#include "wgpu.h"
#define HAVE_WGPU 1
#endif
#endif

#if defined(_WIN32)
#define LIBRARY(name) name ".dll"
#elif defined(__APPLE__)
#define LIBRARY(name) "lib" name ".dylib"
#else
#define LIBRARY(name) "lib" name ".so"
#endif

static WGPUShaderModule plain_module(const struct gpu *gpu,
                                     const WGPUShaderModuleDescriptor *desc) {
  return gpu->api.DeviceCreateShaderModule(gpu->device, desc);
}

static uint64_t plain_submit(const struct gpu *gpu, size_t n, const WGPUCommandBuffer *commands) {
  gpu->api.QueueSubmit(gpu->queue, n, commands);
  return 0;
}

static void plain_poll(const struct gpu *gpu, bool block, uint64_t mark) {
  (void)block, (void)mark;
  gpu->api.InstanceProcessEvents(gpu->instance);
}

/* WebGPU resolves timestamps to nanoseconds itself. */
static float plain_timestamp_period(const struct gpu *gpu) {
  (void)gpu;
  return 1.0f;
}

/* ---- wgpu-native ----------------------------------------------------------------------------- */

#ifdef HAVE_WGPU

#define WGPU_OWN(X)                                                                                \
  X(DevicePoll)                                                                                    \
  X(GetVersion)                                                                                    \
  X(InstanceEnumerateAdapters)                                                                     \
  X(QueueGetTimestampPeriod)                                                                       \
  X(QueueSubmitForIndex)                                                                           \
  X(DeviceCreateShaderModuleTrusted)

#define X(name) OWN_##name,
enum { WGPU_OWN(X) };
#undef X

typedef WGPUBool (*poll_function)(WGPUDevice, WGPUBool, WGPUSubmissionIndex const *);
typedef uint32_t (*version_function)(void);
typedef size_t (*list_function)(WGPUInstance, WGPUInstanceEnumerateAdapterOptions const *,
                                WGPUAdapter *);
typedef float (*period_function)(WGPUQueue);
typedef WGPUSubmissionIndex (*submit_function)(WGPUQueue, size_t, WGPUCommandBuffer const *);
typedef WGPUShaderModule (*trusted_function)(WGPUDevice, WGPUShaderModuleDescriptor const *,
                                             WGPUShaderRuntimeChecks);

static void wgpu_version(const struct webgpu *api, char *out, size_t size) {
  const version_function version = (version_function)api->own[OWN_GetVersion];
  const uint32_t v = version ? version() : 0;
  snprintf(out, size, "%u.%u.%u.%u", v >> 24, v >> 16 & 255, v >> 8 & 255, v & 255);
}

static WGPUInstance wgpu_create_instance(const struct webgpu *api) {
  /* No OpenGL: its compute returned wrong results (workgroup memory not zeroed). */
  WGPUInstanceExtras extras = {
      .chain.sType = (WGPUSType)WGPUSType_InstanceExtras,
      .backends = WGPUInstanceBackend_Primary,
  };
  return api->CreateInstance(&(WGPUInstanceDescriptor){.nextInChain = &extras.chain});
}

static uint32_t wgpu_list_adapters(const struct webgpu *api, WGPUInstance instance,
                                   WGPUAdapter out[ADAPTERS_MAX]) {
  const list_function list = (list_function)api->own[OWN_InstanceEnumerateAdapters];
  if (!list) return 0;
  WGPUInstanceEnumerateAdapterOptions options = {.backends = WGPUInstanceBackend_Primary};
  WGPUAdapter all[256];
  size_t n = list(instance, &options, NULL);
  if (n == 0 || n > sizeof all / sizeof *all) return 0;
  n = list(instance, &options, all);
  for (size_t i = 0; i < n; i++) {
    if (i < ADAPTERS_MAX)
      out[i] = all[i];
    else
      api->AdapterRelease(all[i]);
  }
  return (uint32_t)(n < ADAPTERS_MAX ? n : ADAPTERS_MAX);
}

static uint64_t wgpu_submit(const struct gpu *gpu, size_t n, const WGPUCommandBuffer *commands) {
  const submit_function submit = (submit_function)gpu->api.own[OWN_QueueSubmitForIndex];
  return submit ? submit(gpu->queue, n, commands) : plain_submit(gpu, n, commands);
}

static void wgpu_poll(const struct gpu *gpu, bool block, uint64_t mark) {
  const poll_function poll = (poll_function)gpu->api.own[OWN_DevicePoll];
  if (gpu->device) poll(gpu->device, block && !gpu->lost, mark ? &mark : NULL);
}

static float wgpu_timestamp_period(const struct gpu *gpu) {
  const period_function period = (period_function)gpu->api.own[OWN_QueueGetTimestampPeriod];
  return period ? period(gpu->queue) : 1.0f;
}

/* The library counts the turns of every loop, which keeps drivers from unrolling them and loads
 * from overlapping. All our loops end; indices stay checked. */
static WGPUShaderModule wgpu_module(const struct gpu *gpu, const WGPUShaderModuleDescriptor *desc) {
  const trusted_function create =
      (trusted_function)gpu->api.own[OWN_DeviceCreateShaderModuleTrusted];
  if (!create) return plain_module(gpu, desc);
  return create(gpu->device, desc, WGPUShaderRuntimeChecks_BoundsChecks);
}

#define X(name) "wgpu" #name,
static const struct flavour wgpu_native = {
    .name = "wgpu-native",
    .alias = "wgpu",
    .file = LIBRARY("wgpu_native"),
    .own = {WGPU_OWN(X)},
    .dialect = WGSL_NAGA,
    .answers_at_once = true,
    .poll_waits = true,
    .subgroups = (WGPUFeatureName)WGPUNativeFeature_Subgroup,
    .no_memory = "Not enough memory left",
    .version = wgpu_version,
    .create_instance = wgpu_create_instance,
    .list_adapters = wgpu_list_adapters,
    .submit = wgpu_submit,
    .poll = wgpu_poll,
    .timestamp_period = wgpu_timestamp_period,
    .create_module = wgpu_module,
};
#undef X

#endif

/* ---- Dawn ------------------------------------------------------------------------------------ */

enum { OWN_DAWN_TICK, OWN_DAWN_PIPELINE, OWN_DAWN_MATRICES_FREE };

/* Numbers and structs of Dawn's extensions; its header is not in the package we take it from. */
enum {
  DAWN_TOGGLES = 0x0005000A,
  DAWN_SUBGROUP_MATRIX = 0x00050034,
  DAWN_MATRICES = 0x0005003B,
  DAWN_F32 = 1,
  DAWN_F16 = 2,
};
struct dawn_toggles {
  WGPUChainedStruct chain;
  size_t n_enabled;
  const char *const *enabled;
  size_t n_disabled;
  const char *const *disabled;
};

struct dawn_matrix {
  uint32_t component, result; /* of both factors; of the sums */
  uint32_t m, n, k;
};
struct dawn_matrices {
  WGPUChainedStruct chain;
  size_t n;
  const struct dawn_matrix *all;
};
typedef void (*dawn_matrices_free)(struct dawn_matrices);

static void dawn_matrices(const struct webgpu *api, WGPUAdapter adapter,
                          struct matrix out[MATRICES_MAX]) {
  struct dawn_matrices found = {.chain.sType = (WGPUSType)DAWN_MATRICES};
  WGPUAdapterInfo info = {.nextInChain = &found.chain};
  api->AdapterGetInfo(adapter, &info);
  for (size_t i = 0; i < found.n; i++) {
    const struct dawn_matrix *x = &found.all[i];
    if (x->component == DAWN_F16 && x->result == DAWN_F32)
      matrices_add(out, (struct matrix){x->m, x->n, x->k});
  }
  const dawn_matrices_free release = (dawn_matrices_free)api->own[OWN_DAWN_MATRICES_FREE];
  if (release) release(found);
  api->AdapterInfoFreeMembers(info);
}

static void dawn_version(const struct webgpu *api, char *out, size_t size) {
  (void)api;
  snprintf(out, size, "autumn 2026"); /* it exports no version; setup.sh pins the package */
}

static WGPUInstance dawn_create_instance(const struct webgpu *api) {
  static const char *const unsafe[] = {"allow_unsafe_apis"}; /* subgroup matrices */
  struct dawn_toggles toggles = {
      .chain.sType = (WGPUSType)DAWN_TOGGLES, .n_enabled = 1, .enabled = unsafe};
  return api->CreateInstance(&(WGPUInstanceDescriptor){.nextInChain = &toggles.chain});
}

/* Its C interface has no list of adapters: ask for each kind. */
static const struct {
  WGPUPowerPreference power;
  WGPUBool fallback;
  WGPUBackendType backend;
} kinds[] = {
    {WGPUPowerPreference_HighPerformance, false, WGPUBackendType_Undefined},
    {WGPUPowerPreference_LowPower, false, WGPUBackendType_Undefined},
    {WGPUPowerPreference_Undefined, true, WGPUBackendType_Undefined},
    {WGPUPowerPreference_Undefined, false, WGPUBackendType_Null},
};
enum { KINDS = sizeof kinds / sizeof *kinds, KINDS_OF_BROWSERS = 3 };

static void ask_kind(const struct webgpu *api, WGPUInstance instance, uint32_t kind,
                     WGPUChainedStruct *chain, WGPURequestAdapterCallbackInfo callback) {
  WGPURequestAdapterOptions options = {.nextInChain = chain,
                                       .featureLevel = WGPUFeatureLevel_Core,
                                       .powerPreference = kinds[kind].power,
                                       .forceFallbackAdapter = kinds[kind].fallback,
                                       .backendType = kinds[kind].backend};
  api->InstanceRequestAdapter(instance, &options, callback);
}

static void dawn_ask_adapter(const struct webgpu *api, WGPUInstance instance, uint32_t kind,
                             WGPURequestAdapterCallbackInfo callback) {
  /* Dawn keeps f16 off on NVIDIA for conformance; our goldens decide. */
  static const char *const names[] = {"allow_unsafe_apis", "vulkan_enable_f16_on_nvidia"};
  struct dawn_toggles toggles = {
      .chain.sType = (WGPUSType)DAWN_TOGGLES, .n_enabled = 2, .enabled = names};
  ask_kind(api, instance, kind, &toggles.chain, callback);
}

static const WGPUChainedStruct *dawn_device_chain(void) {
  /* Our kernels write workgroup memory before they read it. On SwiftShader clearing it all the same
   * took two thirds of the attention tests' time. */
  static const char *const on[] = {"disable_workgroup_init"};
  static const char *const off[] = {"timestamp_quantization"}; /* else steps of 65 us */
  static const struct dawn_toggles toggles = {.chain.sType = (WGPUSType)DAWN_TOGGLES,
                                              .n_enabled = 1,
                                              .enabled = on,
                                              .n_disabled = 1,
                                              .disabled = off};
  return &toggles.chain;
}

static bool dawn_create_pipeline_later(const struct gpu *gpu,
                                       const WGPUComputePipelineDescriptor *desc,
                                       WGPUCreateComputePipelineAsyncCallbackInfo callback) {
  const WGPUProcDeviceCreateComputePipelineAsync create =
      (WGPUProcDeviceCreateComputePipelineAsync)gpu->api.own[OWN_DAWN_PIPELINE];
  if (create) create(gpu->device, desc, callback);
  return create;
}

static const struct flavour dawn = {
    .name = "Dawn",
    .alias = "dawn",
    .file = LIBRARY("webgpu_dawn"),
    .own = {"wgpuDeviceTick", "wgpuDeviceCreateComputePipelineAsync",
            "wgpuAdapterPropertiesSubgroupMatrixConfigsFreeMembers"},
    .dialect = WGSL_TINT,
    .subgroups = WGPUFeatureName_Subgroups,
    .matrix = (WGPUFeatureName)DAWN_SUBGROUP_MATRIX,
    .matrices = dawn_matrices,
    .version = dawn_version,
    .create_instance = dawn_create_instance,
    .n_questions = KINDS,
    .ask_adapter = dawn_ask_adapter,
    .device_chain = dawn_device_chain,
    .submit = plain_submit,
    .poll = plain_poll,
    .timestamp_period = plain_timestamp_period,
    .create_module = plain_module,
    .create_pipeline_later = dawn_create_pipeline_later,
};

/* ---- what has webgpu.h and nothing more ------------------------------------------------------ */

static void plain_version(const struct webgpu *api, char *out, size_t size) {
  (void)api;
  snprintf(out, size, "unknown");
}

static WGPUInstance plain_create_instance(const struct webgpu *api) {
  return api->CreateInstance(NULL);
}

static void plain_ask_adapter(const struct webgpu *api, WGPUInstance instance, uint32_t kind,
                              WGPURequestAdapterCallbackInfo callback) {
  ask_kind(api, instance, kind, NULL, callback);
}

static bool plain_create_pipeline_later(const struct gpu *gpu,
                                        const WGPUComputePipelineDescriptor *desc,
                                        WGPUCreateComputePipelineAsyncCallbackInfo callback) {
#ifdef __wasm__
  wgpuDeviceCreateComputePipelineAsync(gpu->device, desc, callback);
  return true;
#else
  (void)gpu, (void)desc, (void)callback;
  return false;
#endif
}

/* A library that ends the process on an invalid submit must be known as what it is: hence `never`,
 * in a build without wgpu.h. */
static const struct flavour plain = {
#ifdef __wasm__
    .name = "browser",
    .never_blocks = true,
#else
    .name = "WebGPU",
#endif
    .own = {"wgpuCreateInstance"},
    .never = "wgpuDevicePoll",
    .dialect = WGSL_TINT,
    .subgroups = WGPUFeatureName_Subgroups,
    .version = plain_version,
    .create_instance = plain_create_instance,
    .n_questions = KINDS_OF_BROWSERS,
    .ask_adapter = plain_ask_adapter,
    .submit = plain_submit,
    .poll = plain_poll,
    .timestamp_period = plain_timestamp_period,
    .create_module = plain_module,
    .create_pipeline_later = plain_create_pipeline_later,
};

const struct flavour *const flavours[] = {
#ifdef HAVE_WGPU
    &wgpu_native,
#endif
    &dawn,
    &plain,
    NULL,
};

/* ---- linked ---------------------------------------------------------------------------------- */

#if defined(SCONCE_LINKED_WGPU)
void flavour_linked(struct webgpu *api) {
  api->flavour = &wgpu_native;
#define X(name) api->own[OWN_##name] = (WGPUProc)wgpu##name;
  WGPU_OWN(X)
#undef X
}
#elif defined(SCONCE_LINKED_DAWN)
void flavour_linked(struct webgpu *api) {
  api->flavour = &dawn;
  api->own[OWN_DAWN_PIPELINE] = (WGPUProc)wgpuDeviceCreateComputePipelineAsync;
}
#elif defined(SCONCE_LINKED_PLAIN)
void flavour_linked(struct webgpu *api) { api->flavour = &plain; }
#endif
