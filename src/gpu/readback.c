/* Readback: a staging buffer whose mapping is begun, polled and ended; waiting is a wrapper.
 *
 * A mapping that is given up takes its buffer with it. wgpu-native would let the next mapping of
 * the same buffer come as early as the one that was given up, before its own copies (SwiftShader).
 */
#include "gpu/api.h"

sconce_status gpu_read_open(struct gpu *gpu, uint64_t size, struct gpu_read **out,
                            sconce_error *err) {
  *out = NULL;
  struct gpu_read *read = block_resize(&gpu->allocator, NULL, 0, sizeof *read);
  if (!read) return fail(err, SCONCE_NO_MEMORY, "no memory for a staging buffer");
  *read = (struct gpu_read){0};
  sconce_status status = gpu_buffer_open(gpu, GPU_STAGING, size, "staging", &read->buffer, err);
  if (status != SCONCE_OK)
    block_resize(&gpu->allocator, read, sizeof *read, 0);
  else
    *out = read;
  return status;
}

sconce_status read_ready(struct gpu_read *read, sconce_error *err) {
  return read->buffer->handle ? SCONCE_OK : buffer_create(read->buffer, "staging", err);
}

static void on_mapped(WGPUMapAsyncStatus status, WGPUStringView message, void *user, void *unused) {
  (void)unused;
  fence_settle(user, status == WGPUMapAsyncStatus_Success, message);
}

static sconce_status map(struct gpu_read *read, sconce_error *err) {
  struct gpu *gpu = read->buffer->gpu;
  fence_arm(read->map);
  scope_begin(gpu);
  gpu->api.BufferMapAsync(read->buffer->handle, WGPUMapMode_Read, 0, (size_t)read->buffer->size,
                          (WGPUBufferMapCallbackInfo){.mode = WGPUCallbackMode_AllowProcessEvents,
                                                      .callback = on_mapped,
                                                      .userdata1 = read->map});
  if (gpu->api.flavour->answers_at_once)
    return scope_end(gpu, err, "mapping %llu bytes", (unsigned long long)read->buffer->size);
  scope_end_late(gpu, "mapping a staging buffer");
  return SCONCE_OK;
}

/* The answer is the device's now. */
static void give_up(struct gpu_read *read) {
  read->map->owned = false;
  read->map = NULL;
  buffer_release(read->buffer);
}

sconce_status gpu_read_begin(struct gpu_read *read, sconce_error *err) {
  struct gpu *gpu = read->buffer->gpu;
  TRY(gpu_check(gpu, err));
  if (read->reading)
    return fail(err, SCONCE_BAD_ARGUMENT, "the staging buffer is being read already");
  TRY(read_ready(read, err));
  if (!read->map) read->map = fence_new(gpu);
  if (!read->map) return fail(err, SCONCE_NO_MEMORY, "no memory for a fence");
  read->n_strayed = gpu->n_strayed;
  sconce_status status = map(read, err);
  if (status == SCONCE_OK)
    read->reading = true;
  else
    give_up(read);
  return status;
}

/* A late error comes first. It may be that of the submit, so a read that it came across is no good,
 * whoever was told of it. */
static sconce_status check_late(const struct gpu_read *read, sconce_error *err) {
  struct gpu *gpu = read->buffer->gpu;
  TRY(gpu_check(gpu, err));
  if (gpu->n_strayed == read->n_strayed) return SCONCE_OK;
  return fail(err, gpu->stray.status, "an error came up meanwhile: %s", gpu->stray.text);
}

static sconce_status result(struct gpu_read *read, const void **data, sconce_error *err) {
  struct gpu *gpu = read->buffer->gpu;
  sconce_status status = check_late(read, err);
  const bool settled = fence_settled(read->map);
  if (status == SCONCE_OK && settled && read->map->failed)
    status = fail(err, SCONCE_GPU_ERROR, "mapping a staging buffer: %s", read->map->message);
  if (status == SCONCE_OK && settled) {
    *data = gpu->api.BufferGetConstMappedRange(read->buffer->handle, 0, (size_t)read->buffer->size);
    if (!*data) status = fail(err, SCONCE_GPU_ERROR, "a mapped staging buffer has no address");
  }
  if (status != SCONCE_OK) gpu_read_end(read);
  return status;
}

sconce_status gpu_read_poll(struct gpu_read *read, const void **data, sconce_error *err) {
  *data = NULL;
  struct gpu *gpu = read->buffer->gpu;
  if (!read->reading) return fail(err, SCONCE_BAD_ARGUMENT, "nothing is being read");
  if (!fence_settled(read->map)) gpu->api.flavour->poll(gpu, false, 0);
  return result(read, data, err);
}

sconce_status gpu_read_wait(struct gpu_read *read, const void **data, sconce_error *err) {
  *data = NULL;
  if (!read->reading) return fail(err, SCONCE_BAD_ARGUMENT, "nothing is being read");
  TRY(fence_wait(read->map, err));
  return result(read, data, err);
}

void gpu_read_end(struct gpu_read *read) {
  if (!read->reading) return;
  read->reading = false;
  struct gpu *gpu = read->buffer->gpu;
  if (!fence_settled(read->map))
    give_up(read);
  else if (!read->map->failed && !gpu->lost)
    gpu->api.BufferUnmap(read->buffer->handle);
}

void gpu_read_close(struct gpu_read *read) {
  if (!read) return;
  struct gpu *gpu = read->buffer->gpu;
  gpu_read_end(read);
  gpu_fence_close(read->map);
  gpu_buffer_close(read->buffer);
  block_resize(&gpu->allocator, read, sizeof *read, 0);
}

uint64_t gpu_read_size(const struct gpu_read *read) { return read ? read->buffer->size : 0; }
