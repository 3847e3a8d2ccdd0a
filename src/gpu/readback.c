/* Readback: a staging buffer whose mapping is begun, polled and ended; waiting is a wrapper. */
#include "gpu/api.h"

#include <stdio.h>
#include <string.h>

sconce_status gpu_read_open(struct gpu *gpu, uint64_t size, struct gpu_read **out,
                            sconce_error *err) {
  *out = NULL;
  struct gpu_read *read = block_resize(&gpu->allocator, NULL, 0, sizeof *read);
  if (!read) return fail(err, SCONCE_NO_MEMORY, "no memory for a staging buffer");
  *read = (struct gpu_read){.state = READ_IDLE};
  sconce_status status = gpu_buffer_open(gpu, GPU_STAGING, size, "staging", &read->buffer, err);
  if (status != SCONCE_OK)
    block_resize(&gpu->allocator, read, sizeof *read, 0);
  else
    *out = read;
  return status;
}

static void on_mapped(WGPUMapAsyncStatus status, WGPUStringView message, void *user, void *unused) {
  (void)unused;
  struct gpu_read *read = user;
  copy_view(read->message, sizeof read->message, message);
  read->state = status == WGPUMapAsyncStatus_Success ? READ_MAPPED : READ_FAILED;
  read->settled = true;
}

sconce_status gpu_read_begin(struct gpu_read *read, sconce_error *err) {
  struct gpu *gpu = read->buffer->gpu;
  TRY(gpu_check(gpu, err));
  if (read->state != READ_IDLE)
    return fail(err, SCONCE_BAD_ARGUMENT, "the staging buffer is being read already");
  read->state = READ_MAPPING;
  read->settled = false;
  scope_begin(gpu);
  gpu->api.BufferMapAsync(read->buffer->handle, WGPUMapMode_Read, 0, (size_t)read->buffer->size,
                          (WGPUBufferMapCallbackInfo){.mode = WGPUCallbackMode_AllowProcessEvents,
                                                      .callback = on_mapped,
                                                      .userdata1 = read});
  if (!gpu->api.flavour->scopes_are_immediate) {
    scope_end_late(gpu);
    return SCONCE_OK;
  }
  sconce_status status =
      scope_end(gpu, err, "mapping %llu bytes", (unsigned long long)read->buffer->size);
  if (status != SCONCE_OK) read->state = READ_IDLE;
  return status;
}

static sconce_status result(struct gpu_read *read, const void **data, sconce_error *err) {
  struct gpu *gpu = read->buffer->gpu;
  sconce_status status = gpu_check(gpu, err); /* a late error of the submit comes first */
  if (status == SCONCE_OK && read->state == READ_FAILED)
    status = fail(err, SCONCE_GPU_ERROR, "mapping a staging buffer: %s", read->message);
  if (status == SCONCE_OK && read->state == READ_MAPPED) {
    *data = gpu->api.BufferGetConstMappedRange(read->buffer->handle, 0, (size_t)read->buffer->size);
    if (!*data) status = fail(err, SCONCE_GPU_ERROR, "a mapped staging buffer has no address");
  }
  if (status != SCONCE_OK) gpu_read_end(read);
  return status;
}

sconce_status gpu_read_poll(struct gpu_read *read, const void **data, sconce_error *err) {
  *data = NULL;
  struct gpu *gpu = read->buffer->gpu;
  if (read->state == READ_IDLE) return fail(err, SCONCE_BAD_ARGUMENT, "nothing is being read");
  if (read->state == READ_MAPPING) gpu->api.flavour->poll(gpu, false);
  return result(read, data, err);
}

sconce_status gpu_read_wait(struct gpu_read *read, const void **data, sconce_error *err) {
  *data = NULL;
  if (read->state == READ_IDLE) return fail(err, SCONCE_BAD_ARGUMENT, "nothing is being read");
  wait_until(read->buffer->gpu, &read->settled);
  return result(read, data, err);
}

/* Unmapping a pending map makes its callback fire; it must not find a freed struct. */
void gpu_read_end(struct gpu_read *read) {
  struct gpu *gpu = read->buffer->gpu;
  bool pending = read->state == READ_MAPPING;
  if ((pending || read->state == READ_MAPPED) && !gpu->lost)
    gpu->api.BufferUnmap(read->buffer->handle);
  if (pending) wait_until(gpu, &read->settled);
  read->state = READ_IDLE;
}

void gpu_read_close(struct gpu_read *read) {
  if (!read) return;
  struct gpu *gpu = read->buffer->gpu;
  gpu_read_end(read);
  gpu_buffer_close(read->buffer);
  block_resize(&gpu->allocator, read, sizeof *read, 0);
}

static void on_done(WGPUQueueWorkDoneStatus status, WGPUStringView message, void *user,
                    void *unused) {
  (void)status, (void)message, (void)unused;
  *(bool *)user = true;
}

sconce_status gpu_finish(struct gpu *gpu, sconce_error *err) {
  TRY(gpu_check(gpu, err));
  gpu->work_done = false;
  gpu->api.QueueOnSubmittedWorkDone(
      gpu->queue, (WGPUQueueWorkDoneCallbackInfo){.mode = WGPUCallbackMode_AllowProcessEvents,
                                                  .callback = on_done,
                                                  .userdata1 = &gpu->work_done});
  wait_until(gpu, &gpu->work_done);
  return gpu_check(gpu, err);
}
