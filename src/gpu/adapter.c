/* What an adapter is, which one is taken, and what a device is asked for. */
#include "gpu/api.h"

#include "gpu/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    if (f == api->flavour->matrix) info->matrix = api->flavour->matrices;
  }
  api->SupportedFeaturesFreeMembers(features);
  struct matrix matrices[MATRICES_MAX] = {{0}};
  if (info->matrix) adapter_matrices(api, adapter, matrices);
  /* The null adapter has the feature and no sizes: it only compiles. */
  info->matrix &= matrices[0].m || adapter_is_null(info);
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

void adapter_matrices(const struct webgpu *api, WGPUAdapter adapter,
                      struct matrix out[MATRICES_MAX]) {
  memset(out, 0, MATRICES_MAX * sizeof *out);
  if (api->flavour->matrices) api->flavour->matrices(api, adapter, out);
}

void adapter_describe(const struct webgpu *api, WGPUAdapter adapter, sconce_device_info *info) {
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

bool adapter_is_null(const sconce_device_info *info) { return strcmp(info->api, "Null") == 0; }

/* ---- choice ---------------------------------------------------------------------------------- */

static int rank(const sconce_device_info *info) {
  switch (info->type) {
  case SCONCE_ADAPTER_DISCRETE:
    return 4;
  case SCONCE_ADAPTER_INTEGRATED:
    return 3;
  case SCONCE_ADAPTER_UNKNOWN:
    return adapter_is_null(info) ? 0 : 2;
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

sconce_status adapter_choose(const struct adapters *list, const char *wanted, uint32_t *chosen,
                             sconce_error *err) {
  if (list->n == 0)
    return fail(err, SCONCE_NO_DEVICE,
                "no adapter: install a GPU driver with Vulkan, or Mesa's software one "
                "(mesa-vulkan-drivers; Dawn refuses its 22.3, wgpu takes it)");
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
    return fail(err, SCONCE_NO_DEVICE, "no adapter's name contains '%s'; the first of %u is '%s'",
                wanted, list->n, list->info[0].name);
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

void adapter_limits(const struct webgpu *api, WGPUAdapter adapter, const struct gpu_config *config,
                    sconce_device_info *info, WGPULimits *out) {
  *out = (WGPULimits){0};
  api->AdapterGetLimits(adapter, out);
  cap_limits(out, config);
  describe_limits(out, info);
}

size_t adapter_features(const struct flavour *flavour, const struct gpu_config *config,
                        sconce_device_info *info, WGPUFeatureName out[FEATURES_MAX]) {
  info->f16 &= !config->no_f16;
  info->subgroups &= !config->no_subgroups;
  info->timestamps &= !config->no_timestamps;
  info->matrix &= !config->no_matrix && info->subgroups && info->f16;
  info->fast = info->f16 && (config->precision == PRECISION_FAST ||
                             (config->precision == PRECISION_OPEN && info->matrix));
  if (!info->subgroups) info->subgroup_min = info->subgroup_max = 0;
  size_t n = 0;
  if (info->f16) out[n++] = WGPUFeatureName_ShaderF16;
  if (info->subgroups) out[n++] = flavour->subgroups;
  if (info->timestamps) out[n++] = WGPUFeatureName_TimestampQuery;
  if (info->matrix) out[n++] = flavour->matrix;
  return n;
}
