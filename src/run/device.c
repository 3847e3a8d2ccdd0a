/* The public device calls. */
#include "run/device.h"

static struct gpu_desc gpu_desc_of(const sconce_device_desc *desc) {
  if (!desc) return (struct gpu_desc){0};
  return (struct gpu_desc){.library = desc->library,
                           .adapter = desc->adapter,
                           .disable = desc->disable,
                           .limits = desc->limits,
                           .allocator = desc->allocator,
                           .log = desc->log};
}

sconce_status sconce_device_open(sconce_device **out, const sconce_device_desc *desc,
                                 sconce_error *err) {
  if (!out) return fail(err, SCONCE_BAD_ARGUMENT, "out is NULL");
  *out = NULL;
  struct gpu_desc gpu_desc = gpu_desc_of(desc);
  sconce_device *device = block_resize(&gpu_desc.allocator, NULL, 0, sizeof *device);
  if (!device) return fail(err, SCONCE_NO_MEMORY, "no memory for a device");
  *device = (sconce_device){.allocator = gpu_desc.allocator, .log = gpu_desc.log};
  sconce_status status = gpu_open(&device->gpu, &gpu_desc, err);
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
