/* Pipelines from one cache, and bind groups. */
#include "gpu/api.h"

#include <stdio.h>
#include <string.h>

struct caps gpu_caps(const struct gpu *gpu) {
  const sconce_device_info *info = &gpu->info;
  return (struct caps){.f16 = info->f16,
                       .subgroups = info->subgroups,
                       .matrix = info->matrix,
                       .subgroup_min = info->subgroup_min,
                       .subgroup_max = info->subgroup_max,
                       .max_storage_binding = info->max_storage_binding,
                       .max_buffer = info->max_buffer,
                       .max_storage_buffers = info->max_storage_buffers,
                       .max_workgroup_bytes = info->max_workgroup_bytes,
                       .max_invocations = info->max_workgroup_invocations,
                       .max_workgroups = info->max_workgroups,
                       .storage_alignment = info->storage_alignment};
}

static bool same_constants(const struct gpu_constants *a, const struct gpu_constants *b) {
  if (a->n != b->n) return false;
  for (uint32_t i = 0; i < a->n; i++)
    if (a->item[i].value != b->item[i].value || strcmp(a->item[i].name, b->item[i].name) != 0)
      return false;
  return true;
}

static bool same_set(const char *a, const char *b) { return strcmp(a ? a : "", b ? b : "") == 0; }

static struct gpu_kernel *find(struct gpu *gpu, const struct kernel *row,
                               const struct gpu_constants *constants) {
  for (struct gpu_kernel *k = gpu->kernels; k; k = k->next)
    if (k->row.wgsl == row->wgsl && same_set(k->row.set, row->set) &&
        same_constants(&k->constants, constants))
      return k;
  return NULL;
}

static WGPUBufferBindingType binding_type(uint8_t kind) {
  switch (kind) {
  case BIND_READ:
    return WGPUBufferBindingType_ReadOnlyStorage;
  case BIND_WRITE:
    return WGPUBufferBindingType_Storage;
  default:
    return WGPUBufferBindingType_Uniform;
  }
}

static WGPUBindGroupLayout create_layout(struct gpu *gpu, const struct wgsl *wgsl) {
  WGPUBindGroupLayoutEntry entries[BINDINGS_MAX] = {0};
  for (uint32_t i = 0; i < wgsl->n_bindings; i++)
    entries[i] = (WGPUBindGroupLayoutEntry){.binding = i,
                                            .visibility = WGPUShaderStage_Compute,
                                            .buffer.type = binding_type(wgsl->bindings[i])};
  return gpu->api.DeviceCreateBindGroupLayout(
      gpu->device, &(WGPUBindGroupLayoutDescriptor){.label = view(wgsl->name),
                                                    .entryCount = wgsl->n_bindings,
                                                    .entries = entries});
}

static WGPUComputePipeline create_pipeline(struct gpu *gpu, const struct gpu_kernel *k,
                                           WGPUShaderModule module, const char *label) {
  WGPUPipelineLayout layout = gpu->api.DeviceCreatePipelineLayout(
      gpu->device, &(WGPUPipelineLayoutDescriptor){.label = view(label),
                                                   .bindGroupLayoutCount = 1,
                                                   .bindGroupLayouts = &k->layout});
  WGPUConstantEntry constants[GPU_CONSTANTS_MAX] = {0};
  for (uint32_t i = 0; i < k->constants.n; i++)
    constants[i] = (WGPUConstantEntry){.key = view(k->constants.item[i].name),
                                       .value = k->constants.item[i].value};
  WGPUComputePipeline pipeline = gpu->api.DeviceCreateComputePipeline(
      gpu->device, &(WGPUComputePipelineDescriptor){.label = view(label),
                                                    .layout = layout,
                                                    .compute = {.module = module,
                                                                .entryPoint = view("main"),
                                                                .constantCount = k->constants.n,
                                                                .constants = constants}});
  if (layout) gpu->api.PipelineLayoutRelease(layout);
  return pipeline;
}

static void label_of(const struct kernel *row, char out[120]) {
  snprintf(out, 120, "%s/%s", row->wgsl->name, row->name);
}

static sconce_status create_module(struct gpu *gpu, const struct kernel *row, const char *text,
                                   WGPUShaderModule *out, sconce_error *err) {
  char label[120];
  label_of(row, label);
  scope_begin(gpu);
  WGPUShaderSourceWGSL source = {.chain.sType = WGPUSType_ShaderSourceWGSL, .code = view(text)};
  *out = gpu->api.flavour->create_module(
      gpu, &(WGPUShaderModuleDescriptor){.nextInChain = &source.chain, .label = view(label)});
  return scope_end(gpu, err, "compiling shader '%s'", label);
}

/* A module that did not compile must not reach a pipeline, hence two scopes. */
static sconce_status compile(struct gpu *gpu, struct gpu_kernel *k, const char *text,
                             sconce_error *err) {
  char label[120];
  label_of(&k->row, label);
  WGPUShaderModule module;
  sconce_status status = create_module(gpu, &k->row, text, &module, err);
  if (status == SCONCE_OK) {
    scope_begin(gpu);
    k->layout = create_layout(gpu, k->row.wgsl);
    k->pipeline = create_pipeline(gpu, k, module, label);
    status = scope_end(gpu, err, "creating pipeline '%s'", label);
  }
  if (module) gpu->api.ShaderModuleRelease(module);
  return status;
}

sconce_status gpu_kernel_check(struct gpu *gpu, const struct kernel *row, sconce_error *err) {
  struct gpu_kernel *kernel;
  const struct caps caps = gpu_caps(gpu);
  if (kernel_runs(row, &caps)) return gpu_kernel_get(gpu, row, NULL, &kernel, err);
  struct arena scratch;
  arena_init(&scratch, &gpu->allocator);
  const char *text = NULL;
  WGPUShaderModule module = NULL;
  sconce_status status = wgsl_compose(&scratch, row, gpu->api.flavour->dialect, &text, err);
  if (status == SCONCE_OK) status = create_module(gpu, row, text, &module, err);
  if (module) gpu->api.ShaderModuleRelease(module);
  arena_free(&scratch);
  return status;
}

static void release(struct gpu_kernel *k) {
  struct gpu *gpu = k->gpu;
  if (k->pipeline) gpu->api.ComputePipelineRelease(k->pipeline);
  if (k->layout) gpu->api.BindGroupLayoutRelease(k->layout);
  block_resize(&gpu->allocator, k, sizeof *k, 0);
}

static bool constant_value(void *user, struct text name, double *out) {
  const struct gpu_constants *constants = user;
  for (uint32_t i = 0; i < constants->n; i++)
    if (text_is(name, constants->item[i].name)) {
      *out = constants->item[i].value;
      return true;
    }
  return false;
}

/* wgpu-native compiles sizes beyond the device's limits when they come from an override. */
static sconce_status check_size(struct gpu_kernel *k, const char *text, sconce_error *err) {
  const sconce_device_info *info = &k->gpu->info;
  uint32_t size[3];
  if (!wgsl_workgroup_size(text, constant_value, &k->constants, size)) return SCONCE_OK;
  uint64_t all = (uint64_t)size[0] * size[1] * size[2];
  bool fits = all <= info->max_workgroup_invocations;
  for (int i = 0; i < 3; i++) fits &= size[i] <= info->max_workgroup_size[i];
  if (fits) return SCONCE_OK;
  return fail(err, SCONCE_UNSUPPORTED,
              "kernel '%s/%s' has workgroups of %u x %u x %u, the device allows %u threads",
              k->row.wgsl->name, k->row.name, size[0], size[1], size[2],
              info->max_workgroup_invocations);
}

static sconce_status make(struct gpu *gpu, struct gpu_kernel *k, sconce_error *err) {
  struct arena scratch;
  arena_init(&scratch, &gpu->allocator);
  const char *text = NULL;
  sconce_status status = wgsl_compose(&scratch, &k->row, gpu->api.flavour->dialect, &text, err);
  if (status == SCONCE_OK) status = check_size(k, text, err);
  if (status == SCONCE_OK) status = compile(gpu, k, text, err);
  arena_free(&scratch);
  return status;
}

sconce_status gpu_kernel_get(struct gpu *gpu, const struct kernel *row,
                             const struct gpu_constants *constants, struct gpu_kernel **out,
                             sconce_error *err) {
  static const struct gpu_constants none = {0};
  if (!constants) constants = &none;
  *out = find(gpu, row, constants);
  if (*out) return SCONCE_OK;
  TRY(gpu_check(gpu, err));
  const struct caps caps = gpu_caps(gpu);
  if (!caps_offer(&caps, row->needs))
    return fail(err, SCONCE_UNSUPPORTED, "kernel '%s/%s' needs%s%s%s, which is not in use here",
                row->wgsl->name, row->name, row->needs & NEEDS_F16 ? " f16" : "",
                row->needs & NEEDS_SUBGROUPS ? " subgroups" : "",
                row->needs & NEEDS_MATRIX ? " subgroup matrices" : "");
  struct gpu_kernel *k = block_resize(&gpu->allocator, NULL, 0, sizeof *k);
  if (!k) return fail(err, SCONCE_NO_MEMORY, "no memory for kernel '%s'", row->wgsl->name);
  *k = (struct gpu_kernel){.gpu = gpu, .row = *row, .constants = *constants};
  sconce_status status = make(gpu, k, err);
  if (status != SCONCE_OK) {
    release(k);
    return status;
  }
  k->next = gpu->kernels;
  gpu->kernels = k;
  gpu->stats.kernels++;
  *out = k;
  return SCONCE_OK;
}

void kernels_free(struct gpu *gpu) {
  while (gpu->kernels) {
    struct gpu_kernel *k = gpu->kernels;
    gpu->kernels = k->next;
    gpu->stats.kernels--;
    release(k);
  }
}

void gpu_kernels(const struct gpu *gpu, void (*each)(void *, const struct kernel *, uint64_t),
                 void *user) {
  for (const struct gpu_kernel *k = gpu->kernels; k; k = k->next)
    each(user, &k->row, k->dispatches);
}

/* ---- bind groups ----------------------------------------------------------------------------- */

/* What the library would refuse, or abort on, is refused here with the numbers. */
static sconce_status check_bindings(const struct gpu_kernel *k, const struct gpu_binding *b,
                                    uint32_t n, sconce_error *err) {
  const struct wgsl *wgsl = k->row.wgsl;
  const sconce_device_info *info = &k->gpu->info;
  if (n != wgsl->n_bindings)
    return fail(err, SCONCE_BAD_ARGUMENT, "kernel '%s' has %u bindings, got %u", wgsl->name,
                wgsl->n_bindings, n);
  for (uint32_t i = 0; i < n; i++) {
    if (!b[i].buffer)
      return fail(err, SCONCE_BAD_ARGUMENT, "binding %u of '%s' has no buffer", i, wgsl->name);
    uint64_t size = b[i].buffer->size, offset = b[i].offset;
    uint64_t bound = b[i].size ? b[i].size : offset < size ? size - offset : 0;
    uint32_t align =
        wgsl->bindings[i] == BIND_PARAMS ? info->uniform_alignment : info->storage_alignment;
    if (offset >= size || bound > size - offset || offset % align || bound % 4)
      return fail(err, SCONCE_BAD_ARGUMENT,
                  "binding %u of '%s': %llu bytes at %llu of a buffer of %llu (alignment %u)", i,
                  wgsl->name, (unsigned long long)bound, (unsigned long long)offset,
                  (unsigned long long)size, align);
    if (wgsl->bindings[i] != BIND_PARAMS && bound > info->max_storage_binding)
      return fail(err, SCONCE_UNSUPPORTED,
                  "binding %u of '%s' has %llu bytes, the device binds at most %llu", i, wgsl->name,
                  (unsigned long long)bound, (unsigned long long)info->max_storage_binding);
  }
  return SCONCE_OK;
}

sconce_status gpu_group_open(struct gpu_kernel *k, const struct gpu_binding *bindings, uint32_t n,
                             struct gpu_group **out, sconce_error *err) {
  *out = NULL;
  struct gpu *gpu = k->gpu;
  TRY(gpu_check(gpu, err));
  TRY(check_bindings(k, bindings, n, err));
  struct gpu_group *group = block_resize(&gpu->allocator, NULL, 0, sizeof *group);
  if (!group) return fail(err, SCONCE_NO_MEMORY, "no memory for a bind group");
  WGPUBindGroupEntry entries[BINDINGS_MAX] = {0};
  for (uint32_t i = 0; i < n; i++)
    entries[i] = (WGPUBindGroupEntry){.binding = i,
                                      .buffer = bindings[i].buffer->handle,
                                      .offset = bindings[i].offset,
                                      .size = bindings[i].size
                                                  ? bindings[i].size
                                                  : bindings[i].buffer->size - bindings[i].offset};
  scope_begin(gpu);
  *group = (struct gpu_group){
      .kernel = k,
      .handle = gpu->api.DeviceCreateBindGroup(
          gpu->device, &(WGPUBindGroupDescriptor){.label = view(k->row.wgsl->name),
                                                  .layout = k->layout,
                                                  .entryCount = n,
                                                  .entries = entries})};
  sconce_status status =
      scope_end(gpu, err, "binding buffers to '%s/%s'", k->row.wgsl->name, k->row.name);
  gpu->stats.groups++;
  gpu->stats.groups_made++;
  if (status != SCONCE_OK)
    gpu_group_close(group);
  else
    *out = group;
  return status;
}

void gpu_group_close(struct gpu_group *group) {
  if (!group) return;
  struct gpu *gpu = group->kernel->gpu;
  gpu->stats.groups--;
  if (group->handle) gpu->api.BindGroupRelease(group->handle);
  block_resize(&gpu->allocator, group, sizeof *group, 0);
}
