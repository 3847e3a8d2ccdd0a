/* Buffers: made within the device's limits, counted by use, written through the queue. */
#include "gpu/api.h"

#include "base/checked.h"

#include <inttypes.h>
#include <string.h>

static WGPUBufferUsage usage_of(enum gpu_use use) {
  switch (use) {
  case GPU_STAGING:
    return WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst;
  case GPU_PARAMS:
    return WGPUBufferUsage_Uniform | WGPUBufferUsage_CopyDst;
  case GPU_QUERIES:
    return WGPUBufferUsage_QueryResolve | WGPUBufferUsage_CopySrc;
  default:
    return WGPUBufferUsage_Storage | WGPUBufferUsage_CopyDst | WGPUBufferUsage_CopySrc;
  }
}

sconce_status buffer_create(struct gpu_buffer *buffer, const char *label, sconce_error *err) {
  struct gpu *gpu = buffer->gpu;
  scope_begin(gpu);
  buffer->handle = gpu->api.DeviceCreateBuffer(
      gpu->device, &(WGPUBufferDescriptor){
                       .label = view(label), .usage = usage_of(buffer->use), .size = buffer->size});
  sconce_status status =
      scope_end(gpu, err, "creating buffer '%s' of %" PRIu64 " bytes", label, buffer->size);
  if (status == SCONCE_OK && !buffer->handle)
    status =
        fail(err, SCONCE_NO_GPU_MEMORY, "no buffer '%s' of %" PRIu64 " bytes", label, buffer->size);
  if (status != SCONCE_OK) buffer_release(buffer);
  return status;
}

void buffer_release(struct gpu_buffer *buffer) {
  struct gpu *gpu = buffer->gpu;
  if (!buffer->handle) return;
  if (!gpu->lost) gpu->api.BufferDestroy(buffer->handle);
  gpu->api.BufferRelease(buffer->handle);
  buffer->handle = NULL;
}

sconce_status gpu_buffer_open(struct gpu *gpu, enum gpu_use use, uint64_t size, const char *label,
                              struct gpu_buffer **out, sconce_error *err) {
  *out = NULL;
  TRY(gpu_check(gpu, err));
  if (size > gpu->info.max_buffer)
    return fail(err, SCONCE_NO_GPU_MEMORY,
                "buffer '%s' needs %" PRIu64 " bytes, the device allows %" PRIu64, label, size,
                gpu->info.max_buffer);
  size = size < 4 ? 4 : round_up(size, 4);
  struct gpu_buffer *buffer = block_resize(&gpu->allocator, NULL, 0, sizeof *buffer);
  if (!buffer) return fail(err, SCONCE_NO_MEMORY, "no memory for buffer '%s'", label);
  *buffer = (struct gpu_buffer){.gpu = gpu, .size = size, .use = use};
  sconce_status status = buffer_create(buffer, label, err);
  if (status != SCONCE_OK) {
    block_resize(&gpu->allocator, buffer, sizeof *buffer, 0);
    return status;
  }
  gpu->stats.bytes[use] += size;
  gpu->stats.buffers++;
  gpu->stats.buffers_made++;
  *out = buffer;
  return SCONCE_OK;
}

void gpu_buffer_close(struct gpu_buffer *buffer) {
  if (!buffer) return;
  struct gpu *gpu = buffer->gpu;
  gpu->stats.bytes[buffer->use] -= buffer->size;
  gpu->stats.buffers--;
  buffer_release(buffer);
  block_resize(&gpu->allocator, buffer, sizeof *buffer, 0);
}

uint64_t gpu_buffer_size(const struct gpu_buffer *buffer) { return buffer->size; }

sconce_status gpu_write(struct gpu_buffer *buffer, uint64_t offset, const void *data, size_t size,
                        sconce_error *err) {
  struct gpu *gpu = buffer->gpu;
  if (size == 0) return SCONCE_OK;
  TRY(gpu_check(gpu, err));
  if (offset % 4 || offset > buffer->size || size > buffer->size - offset)
    return fail(err, SCONCE_BAD_ARGUMENT,
                "write of %zu bytes at %" PRIu64 " into a buffer of %" PRIu64, size, offset,
                buffer->size);
  const size_t whole = size & ~(size_t)3, tail = size - whole;
  scope_begin(gpu);
  if (whole) gpu->api.QueueWriteBuffer(gpu->queue, buffer->handle, offset, data, whole);
  if (tail) {
    uint8_t word[4] = {0};
    memcpy(word, (const uint8_t *)data + whole, tail);
    gpu->api.QueueWriteBuffer(gpu->queue, buffer->handle, offset + whole, word, sizeof word);
  }
  gpu->stats.writes++;
  gpu->stats.bytes_written += size;
  if (gpu->api.flavour->answers_at_once) return scope_end(gpu, err, "writing %zu bytes", size);
  scope_end_late(gpu, "writing a buffer");
  return SCONCE_OK;
}
