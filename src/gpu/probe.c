/* What a device does not tell but a small kernel can find out. */
#include "gpu/probe.h"
#include "gpu/api.h"

#include "chain.wgsl.h"
#include "read.wgsl.h"
#include "subgroup_size.wgsl.h"

#include <string.h>

const struct kernel probe_kernels[] = {
    [PROBE_SUBGROUP] = {"size", &subgroup_size_wgsl, NULL, NEEDS_SUBGROUPS},
    [PROBE_CHAIN] = {"u32", &chain_wgsl, NULL, 0},
    [PROBE_READ] = {"vec4", &read_wgsl, NULL, 0},
    [PROBES] = {0},
};

static sconce_status run_subgroups(struct gpu *gpu, struct gpu_buffer **buffer,
                                   struct gpu_group **group, struct gpu_read **read,
                                   uint32_t sizes[2], sconce_error *err) {
  struct gpu_kernel *kernel;
  TRY(gpu_kernel_get(gpu, &probe_kernels[PROBE_SUBGROUP], &kernel, err));
  TRY(gpu_buffer_open(gpu, GPU_TRANSIENT, 8, "subgroup sizes", buffer, err));
  TRY(gpu_write(*buffer, 0, (const uint32_t[]){UINT32_MAX, 0}, 8, err));
  TRY(gpu_group_open(kernel, &(struct gpu_binding){.buffer = *buffer}, 1, group, err));
  TRY(gpu_read_open(gpu, 8, read, err));
  struct gpu_dispatch dispatch = {*group, {1, 1, 1}};
  struct gpu_copy copy = {.from = *buffer, .to = *read, .size = 8};
  TRY(gpu_submit(gpu, &(struct gpu_batch){&dispatch, 1, &copy, 1}, err));
  TRY(gpu_read_begin(*read, err));
  const void *data;
  TRY(gpu_read_wait(*read, &data, err));
  memcpy(sizes, data, 8);
  gpu_read_end(*read);
  return SCONCE_OK;
}

sconce_status probe_subgroups(struct gpu *gpu, sconce_error *err) {
  if (!gpu->info.subgroups || gpu->info.subgroup_max) return SCONCE_OK;
  struct gpu_buffer *buffer = NULL;
  struct gpu_group *group = NULL;
  struct gpu_read *read = NULL;
  uint32_t sizes[2] = {0};
  sconce_status status = run_subgroups(gpu, &buffer, &group, &read, sizes, err);
  gpu_read_close(read);
  gpu_group_close(group);
  gpu_buffer_close(buffer);
  if (status == SCONCE_OK) {
    gpu->info.subgroup_min = sizes[0];
    gpu->info.subgroup_max = sizes[1];
  }
  return status;
}
