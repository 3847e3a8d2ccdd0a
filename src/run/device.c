/* The public device calls. */
#include "run/device.h"

#include "graph/rewrite.h"

#include <stdlib.h>
#include <string.h>

static struct gpu_desc gpu_desc_of(const sconce_device_desc *desc) {
  if (!desc) return (struct gpu_desc){0};
  return (struct gpu_desc){.library = desc->library,
                           .adapter = desc->adapter,
                           .disable = desc->disable,
                           .limits = desc->limits,
                           .no_threads = desc->no_threads,
                           .allocator = desc->allocator,
                           .log = desc->log};
}

/* Both lists, one after the other, if all their words are passes. */
static sconce_status read_passes(sconce_device *device, const char *list, sconce_error *err) {
  if (!list || !*list) return SCONCE_OK;
  const struct text unknown = passes_unknown(list);
  if (unknown.size)
    return fail(err, SCONCE_BAD_ARGUMENT,
                "no fusion is called '%.*s': they are join, swiglu, residual, norm, rotary; or all",
                TEXT(unknown));
  size_t used = strlen(device->passes_off), size = strlen(list);
  if (used + size + 2 > sizeof device->passes_off)
    return fail(err, SCONCE_BAD_ARGUMENT, "%zu bytes of fusions not to make", used + size);
  if (used) device->passes_off[used++] = ',';
  memcpy(device->passes_off + used, list, size + 1);
  return SCONCE_OK;
}

sconce_status sconce_device_open(sconce_device **out, const sconce_device_desc *desc,
                                 sconce_error *err) {
  if (!out) return fail(err, SCONCE_BAD_ARGUMENT, "out is NULL");
  *out = NULL;
  struct gpu_desc gpu_desc = gpu_desc_of(desc);
  sconce_device *device = block_resize(&gpu_desc.allocator, NULL, 0, sizeof *device);
  if (!device) return fail(err, SCONCE_NO_MEMORY, "no memory for a device");
  *device = (sconce_device){.allocator = gpu_desc.allocator, .log = gpu_desc.log};
  sconce_status status = read_passes(device, desc ? desc->no_fusion : NULL, err);
  if (status == SCONCE_OK) status = read_passes(device, getenv("SCONCE_NO_FUSION"), err);
  if (status == SCONCE_OK) status = gpu_open(&device->gpu, &gpu_desc, err);
  if (status != SCONCE_OK)
    sconce_device_close(device);
  else
    *out = device;
  return status;
}

void sconce_device_close(sconce_device *device) {
  if (!device) return;
  gpu_close(device->gpu);
  sconce_allocator allocator = device->allocator;
  block_resize(&allocator, device, sizeof *device, 0);
}

const sconce_device_info *sconce_device_describe(const sconce_device *device) {
  return device ? gpu_info(device->gpu) : NULL;
}

uint32_t sconce_device_adapter(const sconce_device *device) {
  return device ? gpu_adapter_index(device->gpu) : UINT32_MAX;
}

sconce_status sconce_adapters(const sconce_device_desc *desc,
                              void (*each)(void *user, uint32_t index,
                                           const sconce_device_info *info),
                              void *user, sconce_error *err) {
  if (!each) return fail(err, SCONCE_BAD_ARGUMENT, "each is NULL");
  struct gpu_desc gpu_desc = gpu_desc_of(desc);
  return gpu_adapters(&gpu_desc, each, user, err);
}
