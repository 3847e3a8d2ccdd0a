/* What a device does not tell but a small kernel can find out. */
#include "gpu/probe.h"
#include "gpu/api.h"

#include "chain.wgsl.h"
#include "read.wgsl.h"
#include "subgroup_size.wgsl.h"

#include <string.h>

const struct kernel probe_kernels[] = {
    [PROBE_SUBGROUP] = {"size", &subgroup_size_wgsl, NULL, .needs = NEEDS_SUBGROUPS},
    [PROBE_CHAIN] = {"u32", &chain_wgsl},
    [PROBE_READ] = {"vec4", &read_wgsl},
    [PROBES] = {0},
};

sconce_status probe_begin(struct probing *p, struct gpu *gpu, sconce_error *err) {
  *p = (struct probing){0};
  if (!gpu->info.subgroups || gpu->info.subgroup_max) return SCONCE_OK;
  struct gpu_kernel *kernel;
  TRY(gpu_kernel_get(gpu, &probe_kernels[PROBE_SUBGROUP], &kernel, err));
  TRY(gpu_buffer_open(gpu, GPU_TRANSIENT, 8, "subgroup sizes", &p->buffer, err));
  TRY(gpu_write(p->buffer, 0, (const uint32_t[]){UINT32_MAX, 0}, 8, err));
  TRY(gpu_group_open(kernel, &(struct gpu_binding){.buffer = p->buffer}, 1, &p->group, err));
  TRY(gpu_read_open(gpu, 8, &p->read, err));
  struct gpu_dispatch dispatch = {p->group, {1, 1, 1}};
  struct gpu_copy copy = {.from = p->buffer, .to = p->read, .size = 8};
  TRY(gpu_submit(gpu, &(struct gpu_batch){&dispatch, 1, &copy, 1}, err));
  return gpu_read_begin(p->read, err);
}

sconce_status probe_poll(struct probing *p, struct gpu *gpu, bool *done, sconce_error *err) {
  *done = !p->read;
  if (*done) return SCONCE_OK;
  const void *data;
  TRY(gpu_read_poll(p->read, &data, err));
  if (!data) return SCONCE_OK;
  uint32_t sizes[2];
  memcpy(sizes, data, sizeof sizes);
  gpu->info.subgroup_min = sizes[0];
  gpu->info.subgroup_max = sizes[1];
  probe_free(p);
  *done = true;
  return SCONCE_OK;
}

void probe_free(struct probing *p) {
  gpu_read_close(p->read);
  gpu_group_close(p->group);
  gpu_buffer_close(p->buffer);
  *p = (struct probing){0};
}
