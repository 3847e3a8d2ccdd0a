/* Opens a device: library, instance, adapter by choice, limits and features, error callbacks. */
#include "gpu/api.h"

#include "base/os.h"
#include "gpu/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void copy_view(char *out, size_t size, WGPUStringView text) {
  size_t n = text.data ? (text.length == WGPU_STRLEN ? strlen(text.data) : text.length) : 0;
  if (n >= size) n = size - 1;
  if (n) memcpy(out, text.data, n);
  out[n] = 0;
}

/* ---- what an adapter is ---------------------------------------------------------------------- */

static const char *api_name(WGPUBackendType type) {
  switch (type) {
  case WGPUBackendType_Null:
    return "Null";
  case WGPUBackendType_D3D11:
    return "D3D11";
  case WGPUBackendType_D3D12:
    return "D3D12";
  case WGPUBackendType_Metal:
    return "Metal";
  case WGPUBackendType_Vulkan:
    return "Vulkan";
  case WGPUBackendType_OpenGL:
    return "OpenGL";
  case WGPUBackendType_OpenGLES:
    return "OpenGL ES";
  default:
    return "unknown";
  }
}

static sconce_adapter_type adapter_type(WGPUAdapterType type) {
  switch (type) {
  case WGPUAdapterType_DiscreteGPU:
    return SCONCE_ADAPTER_DISCRETE;
  case WGPUAdapterType_IntegratedGPU:
    return SCONCE_ADAPTER_INTEGRATED;
  case WGPUAdapterType_CPU:
    return SCONCE_ADAPTER_SOFTWARE;
  default:
    return SCONCE_ADAPTER_UNKNOWN;
  }
}

static void describe_features(const struct webgpu *api, WGPUAdapter adapter,
                              sconce_device_info *info) {
  WGPUSupportedFeatures features = {0};
  api->AdapterGetFeatures(adapter, &features);
  for (size_t i = 0; i < features.featureCount; i++) {
    WGPUFeatureName f = features.features[i];
    if (f == WGPUFeatureName_ShaderF16) info->f16 = true;
    if (f == WGPUFeatureName_TimestampQuery) info->timestamps = true;
    if (f == api->flavour->subgroups) info->subgroups = true;
    if (api->flavour->matrix && f == api->flavour->matrix) info->matrix = true;
  }
  api->SupportedFeaturesFreeMembers(features);
}

static void describe_limits(const WGPULimits *limits, sconce_device_info *info) {
  info->max_buffer = limits->maxBufferSize;
  info->max_storage_binding = limits->maxStorageBufferBindingSize;
  info->max_storage_buffers = limits->maxStorageBuffersPerShaderStage;
  info->max_workgroup_bytes = limits->maxComputeWorkgroupStorageSize;
  info->max_workgroup_invocations = limits->maxComputeInvocationsPerWorkgroup;
  info->max_workgroup_size[0] = limits->maxComputeWorkgroupSizeX;
  info->max_workgroup_size[1] = limits->maxComputeWorkgroupSizeY;
  info->max_workgroup_size[2] = limits->maxComputeWorkgroupSizeZ;
  info->max_workgroups = limits->maxComputeWorkgroupsPerDimension;
  info->storage_alignment = limits->minStorageBufferOffsetAlignment;
  info->uniform_alignment = limits->minUniformBufferOffsetAlignment;
}

static void describe(const struct webgpu *api, WGPUAdapter adapter, sconce_device_info *info) {
  *info = (sconce_device_info){0};
  WGPUAdapterInfo known = {0};
  api->AdapterGetInfo(adapter, &known);
  copy_view(info->name, sizeof info->name, known.device);
  copy_view(info->driver, sizeof info->driver, known.description);
  copy_view(info->vendor, sizeof info->vendor, known.vendor);
  snprintf(info->api, sizeof info->api, "%s", api_name(known.backendType));
  info->type = adapter_type(known.adapterType);
  info->subgroup_min = known.subgroupMinSize;
  info->subgroup_max = known.subgroupMaxSize;
  api->AdapterInfoFreeMembers(known);
  snprintf(info->library, sizeof info->library, "%s", api->flavour->name);
  api->flavour->version(api, info->library_version, sizeof info->library_version);
  describe_features(api, adapter, info);
  WGPULimits limits = {0};
  api->AdapterGetLimits(adapter, &limits);
  describe_limits(&limits, info);
}

static bool is_null(const sconce_device_info *info) { return strcmp(info->api, "Null") == 0; }

/* ---- choice ---------------------------------------------------------------------------------- */

struct adapters {
  uint32_t n;
  WGPUAdapter handle[ADAPTERS_MAX];
  sconce_device_info info[ADAPTERS_MAX];
};

/* Dawn's Null adapter computes nothing and reports success: only who asks for it gets it. */
static void list_adapters(const struct webgpu *api, WGPUInstance instance, bool allow_null,
                          struct adapters *list) {
  WGPUAdapter found[ADAPTERS_MAX] = {0};
  uint32_t n = api->flavour->list_adapters(api, instance, found);
  *list = (struct adapters){0};
  for (uint32_t i = 0; i < n; i++) {
    describe(api, found[i], &list->info[list->n]);
    if (is_null(&list->info[list->n]) && !allow_null)
      api->AdapterRelease(found[i]);
    else
      list->handle[list->n++] = found[i];
  }
}

static void release_adapters(const struct webgpu *api, struct adapters *list, uint32_t keep) {
  for (uint32_t i = 0; i < list->n; i++)
    if (i != keep) api->AdapterRelease(list->handle[i]);
}

static int rank(const sconce_device_info *info) {
  switch (info->type) {
  case SCONCE_ADAPTER_DISCRETE:
    return 4;
  case SCONCE_ADAPTER_INTEGRATED:
    return 3;
  case SCONCE_ADAPTER_UNKNOWN:
    return is_null(info) ? 0 : 2;
  default:
    return 1;
  }
}

static bool contains_no_case(const char *text, const char *part) {
  for (; *text; text++) {
    size_t i = 0;
    while (part[i] && text[i] && (text[i] | 32) == (part[i] | 32)) i++;
    if (!part[i]) return true;
  }
  return !*part;
}

static bool parse_index(const char *text, uint32_t *index) {
  char *end;
  unsigned long n = strtoul(text, &end, 10);
  *index = (uint32_t)n;
  return *text >= '0' && *text <= '9' && !*end && n < ADAPTERS_MAX;
}

static sconce_status choose(const struct adapters *list, const char *wanted, uint32_t *chosen,
                            sconce_error *err) {
  if (list->n == 0)
    return fail(err, SCONCE_NO_DEVICE,
                "no adapter: install a GPU driver with Vulkan, or Mesa's software one "
                "(mesa-vulkan-drivers)");
  uint32_t index;
  if (wanted && parse_index(wanted, &index)) {
    if (index >= list->n)
      return fail(err, SCONCE_NO_DEVICE, "no adapter %u, there are %u", index, list->n);
    *chosen = index;
    return SCONCE_OK;
  }
  bool found = false;
  for (uint32_t i = 0; i < list->n; i++) {
    if (wanted && *wanted && !contains_no_case(list->info[i].name, wanted)) continue;
    if (!found || rank(&list->info[i]) > rank(&list->info[*chosen])) *chosen = i;
    found = true;
  }
  if (!found)
    return fail(err, SCONCE_NO_DEVICE, "no adapter's name contains '%s'; the first is '%s'", wanted,
                list->info[0].name);
  return SCONCE_OK;
}

/* ---- limits and features --------------------------------------------------------------------- */

static uint32_t capped(uint32_t limit, uint64_t cap) { return limit < cap ? limit : (uint32_t)cap; }

static void cap_limits(WGPULimits *l, const struct gpu_config *config) {
  const uint64_t *cap = config->cap;
  if (cap[LIMIT_BUFFER] < l->maxBufferSize) l->maxBufferSize = cap[LIMIT_BUFFER];
  if (cap[LIMIT_STORAGE_BINDING] < l->maxStorageBufferBindingSize)
    l->maxStorageBufferBindingSize = cap[LIMIT_STORAGE_BINDING];
  uint32_t *const field[LIMITS] = {
      [LIMIT_STORAGE_BUFFERS] = &l->maxStorageBuffersPerShaderStage,
      [LIMIT_WORKGROUP_BYTES] = &l->maxComputeWorkgroupStorageSize,
      [LIMIT_INVOCATIONS] = &l->maxComputeInvocationsPerWorkgroup,
      [LIMIT_SIZE_X] = &l->maxComputeWorkgroupSizeX,
      [LIMIT_SIZE_Y] = &l->maxComputeWorkgroupSizeY,
      [LIMIT_SIZE_Z] = &l->maxComputeWorkgroupSizeZ,
      [LIMIT_WORKGROUPS] = &l->maxComputeWorkgroupsPerDimension,
  };
  for (int i = 0; i < LIMITS; i++)
    if (field[i]) *field[i] = capped(*field[i], cap[i]);
}

static size_t wanted_features(const struct flavour *flavour, const struct gpu_config *config,
                              sconce_device_info *info, WGPUFeatureName out[4]) {
  info->f16 &= !config->no_f16;
  info->subgroups &= !config->no_subgroups;
  info->timestamps &= !config->no_timestamps;
  info->matrix &= !config->no_matrix && info->subgroups && info->f16;
  if (!info->subgroups) info->subgroup_min = info->subgroup_max = 0;
  size_t n = 0;
  if (info->f16) out[n++] = WGPUFeatureName_ShaderF16;
  if (info->subgroups) out[n++] = flavour->subgroups;
  if (info->timestamps) out[n++] = WGPUFeatureName_TimestampQuery;
  if (info->matrix) out[n++] = flavour->matrix;
  return n;
}

/* ---- device ---------------------------------------------------------------------------------- */

static void on_lost(WGPUDevice const *device, WGPUDeviceLostReason reason, WGPUStringView message,
                    void *user, void *unused) {
  (void)device, (void)unused;
  struct gpu *gpu = user;
  if (reason == WGPUDeviceLostReason_CallbackCancelled || atomic_flag_test_and_set(&gpu->losing))
    return;
  char text[600];
  copy_view(text, sizeof text, message);
  fail(&gpu->loss, SCONCE_DEVICE_LOST, "the device is lost: %s", *text ? text : "no reason given");
  gpu->lost = true;
}

static void on_error(WGPUDevice const *device, WGPUErrorType type, WGPUStringView message,
                     void *user, void *unused) {
  (void)device, (void)type, (void)unused;
  struct gpu *gpu = user;
  char text[900];
  copy_view(text, sizeof text, message);
  if (gpu->team_works) { /* on any thread */
    gpu->team_failed = true;
    return;
  }
  log_write(&gpu->log, SCONCE_LOG_ERROR, "GPU error outside any call: %s", text);
  if (gpu->stray.status == SCONCE_OK) fail(&gpu->stray, SCONCE_GPU_ERROR, "%s", text);
}

struct device_request {
  WGPUDevice device;
  bool done;
  char message[600];
};

static void on_device(WGPURequestDeviceStatus status, WGPUDevice device, WGPUStringView message,
                      void *user, void *unused) {
  (void)unused;
  struct device_request *request = user;
  if (status == WGPURequestDeviceStatus_Success) request->device = device;
  copy_view(request->message, sizeof request->message, message);
  request->done = true;
}

static sconce_status request_device(struct gpu *gpu, const struct gpu_config *config,
                                    sconce_error *err) {
  const struct webgpu *api = &gpu->api;
  WGPULimits limits = {0};
  api->AdapterGetLimits(gpu->adapter, &limits);
  cap_limits(&limits, config);
  describe_limits(&limits, &gpu->info);
  WGPUFeatureName features[4];
  size_t n = wanted_features(api->flavour, config, &gpu->info, features);
  union {
    const WGPUChainedStruct *chain;
    WGPUChainedStruct *next;
  } extra = {.chain = api->flavour->device_chain()};
  WGPUDeviceDescriptor desc = {
      .nextInChain = extra.next,
      .label = view("sconce"),
      .requiredFeatureCount = n,
      .requiredFeatures = features,
      .requiredLimits = &limits,
      .deviceLostCallbackInfo = {.mode = WGPUCallbackMode_AllowSpontaneous,
                                 .callback = on_lost,
                                 .userdata1 = gpu},
      .uncapturedErrorCallbackInfo = {.callback = on_error, .userdata1 = gpu},
  };
  struct device_request request = {0};
  api->AdapterRequestDevice(
      gpu->adapter, &desc,
      (WGPURequestDeviceCallbackInfo){.mode = WGPUCallbackMode_AllowProcessEvents,
                                      .callback = on_device,
                                      .userdata1 = &request});
  while (!request.done) api->InstanceProcessEvents(gpu->instance);
  gpu->device = request.device;
  if (!gpu->device)
    return fail(err, SCONCE_NO_DEVICE, "'%s' gave no device: %s", gpu->info.name, request.message);
  gpu->queue = api->DeviceGetQueue(gpu->device);
  return SCONCE_OK;
}

static sconce_status open_adapter(struct gpu *gpu, const struct gpu_desc *desc, sconce_error *err) {
  TRY(loader_open(&gpu->api, desc->library, err));
  gpu->instance = gpu->api.flavour->create_instance(&gpu->api);
  if (!gpu->instance) return fail(err, SCONCE_NO_DEVICE, "the WebGPU library gave no instance");
  struct adapters list;
  list_adapters(&gpu->api, gpu->instance, desc->allow_null, &list);
  const char *wanted = desc->adapter && *desc->adapter ? desc->adapter : getenv("SCONCE_ADAPTER");
  uint32_t chosen = UINT32_MAX;
  sconce_status status = choose(&list, wanted && *wanted ? wanted : NULL, &chosen, err);
  release_adapters(&gpu->api, &list, status == SCONCE_OK ? chosen : UINT32_MAX);
  if (status != SCONCE_OK) return status;
  gpu->adapter = list.handle[chosen];
  gpu->adapter_index = chosen;
  gpu->info = list.info[chosen];
  return SCONCE_OK;
}

sconce_status gpu_open(struct gpu **out, const struct gpu_desc *desc, sconce_error *err) {
  *out = NULL;
  struct gpu_config config;
  TRY(config_read(&config, desc->disable, desc->limits, err));
  struct gpu *gpu = block_resize(&desc->allocator, NULL, 0, sizeof *gpu);
  if (!gpu) return fail(err, SCONCE_NO_MEMORY, "no memory for a device");
  *gpu = (struct gpu){.allocator = desc->allocator,
                      .log = desc->log,
                      .no_threads = desc->no_threads,
                      .losing = ATOMIC_FLAG_INIT};
  atomic_init(&gpu->team_failed, false);
  atomic_init(&gpu->lost, false);
  sconce_status status = open_adapter(gpu, desc, err);
  if (status == SCONCE_OK) status = request_device(gpu, &config, err);
  if (status == SCONCE_OK) status = probe_subgroups(gpu, err);
  if (status != SCONCE_OK) {
    gpu_close(gpu);
    return status;
  }
  log_write(&gpu->log, SCONCE_LOG_INFO, "%s (%s), %s %s", gpu->info.name, gpu->info.api,
            gpu->info.library, gpu->info.library_version);
  *out = gpu;
  return SCONCE_OK;
}

void gpu_close(struct gpu *gpu) {
  if (!gpu) return;
  const struct webgpu *api = &gpu->api;
  kernels_free(gpu);
  if (gpu->queue) api->QueueRelease(gpu->queue);
  if (gpu->device) {
    (void)atomic_flag_test_and_set(&gpu->losing); /* what destroying reports is no news */
    gpu->lost = true;
    api->DeviceDestroy(gpu->device);
    api->DeviceRelease(gpu->device);
  }
  if (gpu->adapter) api->AdapterRelease(gpu->adapter);
  if (gpu->instance) {
    api->InstanceProcessEvents(gpu->instance); /* last callbacks, while gpu is still there */
    api->InstanceRelease(gpu->instance);
  }
  orphans_free(gpu);
  loader_close(&gpu->api);
  sconce_allocator allocator = gpu->allocator;
  block_resize(&allocator, gpu, sizeof *gpu, 0);
}

const sconce_device_info *gpu_info(const struct gpu *gpu) { return &gpu->info; }
uint32_t gpu_adapter_index(const struct gpu *gpu) { return gpu->adapter_index; }
const struct gpu_stats *gpu_stats(const struct gpu *gpu) { return &gpu->stats; }

void gpu_lose(struct gpu *gpu) {
  gpu->api.DeviceDestroy(gpu->device);
  gpu->api.flavour->poll(gpu, false);
  if (!atomic_flag_test_and_set(&gpu->losing)) {
    fail(&gpu->loss, SCONCE_DEVICE_LOST, "the device is lost: destroyed");
    gpu->lost = true;
  }
  while (!gpu->lost) os_sleep_ns(1000); /* another thread is writing why */
}

sconce_status gpu_adapters(const struct gpu_desc *desc,
                           void (*each)(void *, uint32_t, const sconce_device_info *), void *user,
                           sconce_error *err) {
  struct webgpu api;
  TRY(loader_open(&api, desc->library, err));
  WGPUInstance instance = api.flavour->create_instance(&api);
  if (!instance) {
    loader_close(&api);
    return fail(err, SCONCE_NO_DEVICE, "the WebGPU library gave no instance");
  }
  struct adapters list;
  list_adapters(&api, instance, desc->allow_null, &list);
  for (uint32_t i = 0; i < list.n; i++) each(user, i, &list.info[i]);
  release_adapters(&api, &list, UINT32_MAX);
  api.InstanceRelease(instance);
  loader_close(&api);
  return SCONCE_OK;
}
