/* The two WebGPU libraries and everything in which they differ.
 *
 * wgpu-native answers synchronously: callbacks run inside the call, scopes are known when popped,
 * and a few standard functions abort the process because they are not implemented; none of those
 * is in WEBGPU_FUNCTIONS. Dawn answers from ProcessEvents and knows more features. */
#include "gpu/api.h"

#include "base/os.h"

#include <stdio.h>

#ifdef __APPLE__
#define LIBRARY(name) "lib" name ".dylib"
#else
#define LIBRARY(name) "lib" name ".so"
#endif

static void *symbol(const struct webgpu *api, const char *name) {
  return os_library_symbol(api->library, name);
}

/* ---- wgpu-native ----------------------------------------------------------------------------- */

static void wgpu_version(const struct webgpu *api, char *out, size_t size) {
  uint32_t (*version)(void);
  *(void **)&version = symbol(api, "wgpuGetVersion");
  uint32_t v = version ? version() : 0;
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
  size_t (*list)(WGPUInstance, WGPUInstanceEnumerateAdapterOptions const *, WGPUAdapter *);
  *(void **)&list = symbol(api, "wgpuInstanceEnumerateAdapters");
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

static const WGPUChainedStruct *wgpu_device_chain(void) { return NULL; }

static void wgpu_poll(const struct gpu *gpu, bool block) {
  WGPUBool (*poll)(WGPUDevice, WGPUBool, WGPUSubmissionIndex const *);
  *(void **)&poll = gpu->api.own;
  if (gpu->device) poll(gpu->device, block && !gpu->lost, NULL);
}

static float wgpu_timestamp_period(const struct gpu *gpu) {
  float (*period)(WGPUQueue);
  *(void **)&period = symbol(&gpu->api, "wgpuQueueGetTimestampPeriod");
  return period ? period(gpu->queue) : 1.0f;
}

static WGPUShaderModule plain_module(const struct gpu *gpu,
                                     const WGPUShaderModuleDescriptor *desc) {
  return gpu->api.DeviceCreateShaderModule(gpu->device, desc);
}

/* The library counts the turns of every loop, which keeps drivers from unrolling them and loads
 * from overlapping. All our loops end; indices stay checked. */
static WGPUShaderModule wgpu_module(const struct gpu *gpu, const WGPUShaderModuleDescriptor *desc) {
  WGPUShaderModule (*create)(WGPUDevice, WGPUShaderModuleDescriptor const *,
                             WGPUShaderRuntimeChecks);
  *(void **)&create = symbol(&gpu->api, "wgpuDeviceCreateShaderModuleTrusted");
  if (!create) return plain_module(gpu, desc);
  return create(gpu->device, desc, WGPUShaderRuntimeChecks_BoundsChecks);
}

static const struct flavour wgpu_native = {
    .name = "wgpu-native",
    .alias = "wgpu",
    .file = LIBRARY("wgpu_native"),
    .own_symbol = "wgpuDevicePoll",
    .dialect = WGSL_NAGA,
    .scopes_are_immediate = true,
    .subgroups = (WGPUFeatureName)WGPUNativeFeature_Subgroup,
    .version = wgpu_version,
    .create_instance = wgpu_create_instance,
    .list_adapters = wgpu_list_adapters,
    .device_chain = wgpu_device_chain,
    .poll = wgpu_poll,
    .timestamp_period = wgpu_timestamp_period,
    .create_module = wgpu_module,
};

/* ---- Dawn ------------------------------------------------------------------------------------ */

/* Numbers and structs of Dawn's extensions; its header is not in the package we take it from. */
enum {
  DAWN_TOGGLES = 0x0005000A,
  DAWN_SUBGROUP_MATRIX = 0x00050034,
};
struct dawn_toggles {
  WGPUChainedStruct chain;
  size_t n_enabled;
  const char *const *enabled;
  size_t n_disabled;
  const char *const *disabled;
};

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

static void keep_adapter(WGPURequestAdapterStatus status, WGPUAdapter adapter,
                         WGPUStringView message, void *out, void *done) {
  (void)message;
  if (status == WGPURequestAdapterStatus_Success) *(WGPUAdapter *)out = adapter;
  *(bool *)done = true;
}

static bool same_adapter(const struct webgpu *api, WGPUAdapter a, WGPUAdapter b) {
  WGPUAdapterInfo one = {0}, two = {0};
  api->AdapterGetInfo(a, &one);
  api->AdapterGetInfo(b, &two);
  bool same = one.vendorID == two.vendorID && one.deviceID == two.deviceID &&
              one.backendType == two.backendType;
  api->AdapterInfoFreeMembers(one);
  api->AdapterInfoFreeMembers(two);
  return same;
}

/* Dawn's C interface has no list of adapters: ask for each kind and drop repetitions. */
static uint32_t dawn_list_adapters(const struct webgpu *api, WGPUInstance instance,
                                   WGPUAdapter out[ADAPTERS_MAX]) {
  static const struct {
    WGPUPowerPreference power;
    WGPUBool fallback;
    WGPUBackendType backend;
  } asks[] = {
      {WGPUPowerPreference_HighPerformance, false, WGPUBackendType_Undefined},
      {WGPUPowerPreference_LowPower, false, WGPUBackendType_Undefined},
      {WGPUPowerPreference_Undefined, true, WGPUBackendType_Undefined},
      {WGPUPowerPreference_Undefined, false, WGPUBackendType_Null},
  };
  /* Dawn keeps f16 off on NVIDIA for conformance; our goldens decide. */
  static const char *const names[] = {"allow_unsafe_apis", "vulkan_enable_f16_on_nvidia"};
  uint32_t n = 0;
  for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) {
    struct dawn_toggles toggles = {
        .chain.sType = (WGPUSType)DAWN_TOGGLES, .n_enabled = 2, .enabled = names};
    WGPURequestAdapterOptions options = {.nextInChain = &toggles.chain,
                                         .featureLevel = WGPUFeatureLevel_Core,
                                         .powerPreference = asks[i].power,
                                         .forceFallbackAdapter = asks[i].fallback,
                                         .backendType = asks[i].backend};
    WGPUAdapter adapter = NULL;
    bool done = false;
    api->InstanceRequestAdapter(
        instance, &options,
        (WGPURequestAdapterCallbackInfo){.mode = WGPUCallbackMode_AllowProcessEvents,
                                         .callback = keep_adapter,
                                         .userdata1 = &adapter,
                                         .userdata2 = &done});
    while (!done) api->InstanceProcessEvents(instance);
    bool known = false;
    for (uint32_t k = 0; adapter && k < n; k++) known |= same_adapter(api, adapter, out[k]);
    if (known)
      api->AdapterRelease(adapter);
    else if (adapter && n < ADAPTERS_MAX)
      out[n++] = adapter;
  }
  return n;
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

static void dawn_poll(const struct gpu *gpu, bool block) {
  gpu->api.InstanceProcessEvents(gpu->instance);
  if (block) os_sleep_ns(20000);
}

static float dawn_timestamp_period(const struct gpu *gpu) {
  (void)gpu;
  return 1.0f; /* Dawn resolves to nanoseconds itself */
}

static void dawn_create_pipeline_later(const struct gpu *gpu,
                                       const WGPUComputePipelineDescriptor *desc,
                                       WGPUCreateComputePipelineAsyncCallbackInfo callback) {
  WGPUFuture (*create)(WGPUDevice, WGPUComputePipelineDescriptor const *,
                       WGPUCreateComputePipelineAsyncCallbackInfo);
  *(void **)&create = symbol(&gpu->api, "wgpuDeviceCreateComputePipelineAsync");
  if (create) {
    create(gpu->device, desc, callback);
    return;
  }
  callback.callback(WGPUCreatePipelineAsyncStatus_InternalError, NULL,
                    view("the library has no wgpuDeviceCreateComputePipelineAsync"),
                    callback.userdata1, callback.userdata2);
}

static const struct flavour dawn = {
    .name = "Dawn",
    .alias = "dawn",
    .file = LIBRARY("webgpu_dawn"),
    .own_symbol = "wgpuDeviceTick",
    .dialect = WGSL_TINT,
    .scopes_are_immediate = false,
    .subgroups = WGPUFeatureName_Subgroups,
    .matrix = (WGPUFeatureName)DAWN_SUBGROUP_MATRIX,
    .version = dawn_version,
    .create_instance = dawn_create_instance,
    .list_adapters = dawn_list_adapters,
    .device_chain = dawn_device_chain,
    .poll = dawn_poll,
    .timestamp_period = dawn_timestamp_period,
    .create_module = plain_module,
    .create_pipeline_later = dawn_create_pipeline_later,
};

const struct flavour *const flavours[] = {&wgpu_native, &dawn, NULL};
