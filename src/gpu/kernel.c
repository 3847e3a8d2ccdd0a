/* The cache of compiled kernels, and bind groups. */
#include "gpu/api.h"

#include <string.h>

struct caps gpu_caps(const struct gpu *gpu) {
  const sconce_device_info *info = &gpu->info;
  struct caps caps = {.f16 = info->f16,
                      .subgroups = info->subgroups,
                      .matrix = info->matrix,
                      .fast = info->fast,
                      .software = gpu->software,
                      .subgroup_min = info->subgroup_min,
                      .subgroup_max = info->subgroup_max,
                      .max_storage_binding = info->max_storage_binding,
                      .max_buffer = info->max_buffer,
                      .max_storage_buffers = info->max_storage_buffers,
                      .max_workgroup_bytes = info->max_workgroup_bytes,
                      .max_invocations = info->max_workgroup_invocations,
                      .max_workgroups = info->max_workgroups,
                      .storage_alignment = info->storage_alignment,
                      .avoid = gpu->avoid};
  if (caps.matrix) memcpy(caps.matrices, gpu->matrices, sizeof caps.matrices);
  return caps;
}

void gpu_avoid(struct gpu *gpu, const char *labels) { gpu->avoid = labels; }

static bool same_set(const char *a, const char *b) { return strcmp(a ? a : "", b ? b : "") == 0; }

static bool same_fixed(const struct kernel *a, const struct kernel *b) {
  if (!a->fixed || !b->fixed) return a->fixed == b->fixed;
  return memcmp(a->fixed, b->fixed, a->wgsl->params_size) == 0;
}

bool kernel_is(const struct gpu_kernel *k, const struct kernel *row) {
  return k->row.wgsl == row->wgsl && same_set(k->row.set, row->set) && same_fixed(&k->row, row);
}

struct gpu_kernel *kernel_find(struct gpu *gpu, const struct kernel *row) {
  for (struct gpu_kernel *k = gpu->kernels; k; k = k->next)
    if (kernel_is(k, row)) return k;
  return NULL;
}

sconce_status kernel_open(struct gpu *gpu, const struct kernel *row, struct gpu_kernel **out,
                          sconce_error *err) {
  *out = NULL;
  const struct caps caps = gpu_caps(gpu);
  if (!caps_offer(&caps, row->needs))
    return fail(err, SCONCE_UNSUPPORTED, "kernel '%s/%s' needs%s%s%s%s%s, which is not in use here",
                row->wgsl->name, row->name, row->needs & NEEDS_F16 ? " f16" : "",
                row->needs & NEEDS_SUBGROUPS ? " subgroups" : "",
                row->needs & NEEDS_MATRIX ? " subgroup matrices" : "",
                row->needs & NEEDS_FAST ? " fast precision" : "",
                row->needs & NEEDS_SOFTWARE ? " a software device" : "");
  struct gpu_kernel *k = block_resize(&gpu->allocator, NULL, 0, sizeof *k);
  if (!k) return fail(err, SCONCE_NO_MEMORY, "no memory for kernel '%s'", row->wgsl->name);
  *k = (struct gpu_kernel){.gpu = gpu, .row = *row};
  if (row->fixed) k->row.fixed = memcpy(k->fixed, row->fixed, row->wgsl->params_size);
  *out = k;
  return SCONCE_OK;
}

void kernel_release(struct gpu_kernel *k) {
  if (k->pipeline) k->gpu->api.ComputePipelineRelease(k->pipeline);
  if (k->layout) k->gpu->api.BindGroupLayoutRelease(k->layout);
  k->pipeline = NULL;
  k->layout = NULL;
}

void kernel_close(struct gpu_kernel *k) {
  struct gpu *gpu = k->gpu;
  kernel_release(k);
  block_resize(&gpu->allocator, k, sizeof *k, 0);
}

void kernel_keep(struct gpu_kernel *k) {
  k->next = k->gpu->kernels;
  k->gpu->kernels = k;
  k->gpu->stats.kernels++;
}

static sconce_status make(struct gpu_kernel *k, sconce_error *err) {
  struct arena scratch;
  arena_init(&scratch, &k->gpu->allocator);
  const char *text = NULL;
  sconce_status status = kernel_text(k, &scratch, &text, err);
  if (status == SCONCE_OK) status = kernel_compile(k, text, err);
  arena_free(&scratch);
  return status;
}

sconce_status gpu_kernel_get(struct gpu *gpu, const struct kernel *row, struct gpu_kernel **out,
                             sconce_error *err) {
  struct gpu_kernel *k = kernel_find(gpu, row);
  *out = k && !k->failed ? k : NULL;
  if (*out) return SCONCE_OK;
  TRY(gpu_check(gpu, err));
  const bool known = k; /* groups may be of it: it is made again where it is */
  if (!known) TRY(kernel_open(gpu, row, &k, err));
  sconce_status status = make(k, err);
  if (status != SCONCE_OK) {
    k->failed = true;
    if (!known) kernel_close(k);
    return status;
  }
  if (!known) kernel_keep(k);
  *out = k;
  return SCONCE_OK;
}

void kernels_free(struct gpu *gpu) {
  while (gpu->kernels) {
    struct gpu_kernel *k = gpu->kernels;
    gpu->kernels = k->next;
    gpu->stats.kernels--;
    kernel_close(k);
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
