/* A device that is open: how it ends, and what it is. open.c makes it. */
#include "gpu/api.h"

void on_lost(WGPUDevice const *device, WGPUDeviceLostReason reason, WGPUStringView message,
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

static void destroy_device(struct gpu *gpu) {
  (void)atomic_flag_test_and_set(&gpu->losing); /* what destroying reports is no news */
  gpu->lost = true;
  if (gpu->queue) gpu->api.QueueRelease(gpu->queue);
  gpu->api.DeviceDestroy(gpu->device);
  gpu->api.DeviceRelease(gpu->device);
}

/* The library calls back once more at most, while its instance is released: until then everything
 * stays that a callback could find. */
void gpu_close(struct gpu *gpu) {
  if (!gpu) return;
  const struct webgpu *api = &gpu->api;
  if (api->flavour && api->flavour->answers_at_once) orphans_free(gpu, true); /* threads of ours */
  gpu->closing = true;
  opening_give_up(gpu);
  kernels_free(gpu);
  if (gpu->device) destroy_device(gpu);
  if (gpu->adapter) api->AdapterRelease(gpu->adapter);
  if (gpu->instance) {
    api->InstanceProcessEvents(gpu->instance);
    api->InstanceRelease(gpu->instance);
  }
  opening_free(gpu);
  orphans_free(gpu, true);
  fences_free(gpu);
  lates_free(gpu);
  os_mutex_free(&gpu->mutex);
  sconce_allocator allocator = gpu->allocator;
  block_resize(&allocator, gpu, sizeof *gpu, 0);
}

const sconce_device_info *gpu_info(const struct gpu *gpu) { return &gpu->info; }
uint32_t gpu_adapter_index(const struct gpu *gpu) { return gpu->adapter_index; }
const struct gpu_stats *gpu_stats(const struct gpu *gpu) { return &gpu->stats; }

bool gpu_is_lost(const struct gpu *gpu) { return gpu->lost; }
uint32_t gpu_lose_after(struct gpu *gpu, uint32_t n) {
  const uint32_t left = gpu->fuse;
  gpu->fuse = n;
  return left;
}

void gpu_lose(struct gpu *gpu) {
  gpu->api.DeviceDestroy(gpu->device);
  gpu->api.flavour->poll(gpu, false, 0);
  if (!atomic_flag_test_and_set(&gpu->losing)) {
    fail(&gpu->loss, SCONCE_DEVICE_LOST, "the device is lost: destroyed");
    gpu->lost = true;
  }
  while (!gpu->lost) os_sleep_ns(1000); /* another thread is writing why */
}
