/* Turns a batch into one command buffer and submits it; profile mode times each dispatch. */
#include "gpu/api.h"

#include <inttypes.h>

static const struct gpu_buffer *target(const struct gpu_copy *c) {
  return c->to ? c->to->buffer : c->to_buffer;
}

static sconce_status check_batch(const struct gpu *gpu, const struct gpu_batch *batch,
                                 sconce_error *err) {
  for (uint32_t i = 0; i < batch->n_dispatches; i++) {
    const struct gpu_dispatch *d = &batch->dispatches[i];
    for (int axis = 0; axis < 3; axis++)
      if (d->grid[axis] > gpu->info.max_workgroups)
        return fail(err, SCONCE_BAD_ARGUMENT, "dispatch %u of '%s' has %u workgroups, at most %u",
                    i, d->group->kernel->row.wgsl->name, d->grid[axis], gpu->info.max_workgroups);
  }
  for (uint32_t i = 0; i < batch->n_copies; i++) {
    const struct gpu_copy *c = &batch->copies[i];
    uint64_t from = c->from->size, to = target(c)->size;
    if (c->from_offset > from || c->size > from - c->from_offset || c->to_offset > to ||
        c->size > to - c->to_offset || (c->from_offset | c->to_offset | c->size) % 4)
      return fail(err, SCONCE_BAD_ARGUMENT,
                  "copy %u: %" PRIu64 " bytes at %" PRIu64 " of %" PRIu64 " to %" PRIu64
                  " of %" PRIu64,
                  i, c->size, c->from_offset, from, c->to_offset, to);
    if (c->to) TRY(read_ready(c->to, err));
    if (c->to ? c->to->reading : c->from == c->to_buffer)
      return fail(err, SCONCE_BAD_ARGUMENT,
                  "copy %u goes to a buffer that is being read, or to itself", i);
  }
  return SCONCE_OK;
}

/* `set` is the pipeline that the pass has already. */
static void encode_dispatch(WGPUComputePassEncoder pass, const struct gpu_dispatch *d,
                            WGPUComputePipeline *set) {
  struct gpu_kernel *kernel = d->group->kernel;
  const struct webgpu *api = &kernel->gpu->api;
  if (*set != kernel->pipeline) api->ComputePassEncoderSetPipeline(pass, kernel->pipeline);
  *set = kernel->pipeline;
  api->ComputePassEncoderSetBindGroup(pass, 0, d->group->handle, 0, NULL);
  api->ComputePassEncoderDispatchWorkgroups(pass, d->grid[0], d->grid[1], d->grid[2]);
  kernel->dispatches++;
  kernel->gpu->stats.dispatches++;
}

/* Dispatches in passes of `per_pass`; with queries, pass i writes its timestamps 2 i and 2 i + 1.
 */
static void encode_passes(struct gpu *gpu, WGPUCommandEncoder encoder,
                          const struct gpu_batch *batch, uint32_t per_pass, WGPUQuerySet queries) {
  const struct webgpu *api = &gpu->api;
  for (uint32_t at = 0, n = 0; at < batch->n_dispatches; n++) {
    WGPUPassTimestampWrites times = {
        .querySet = queries, .beginningOfPassWriteIndex = 2 * n, .endOfPassWriteIndex = 2 * n + 1};
    WGPUComputePassEncoder pass = api->CommandEncoderBeginComputePass(
        encoder, &(WGPUComputePassDescriptor){.timestampWrites = queries ? &times : NULL});
    WGPUComputePipeline set = NULL;
    for (uint32_t i = 0; i < per_pass && at < batch->n_dispatches; i++)
      encode_dispatch(pass, &batch->dispatches[at++], &set);
    api->ComputePassEncoderEnd(pass);
    api->ComputePassEncoderRelease(pass);
  }
}

static void encode_copies(struct gpu *gpu, WGPUCommandEncoder encoder,
                          const struct gpu_batch *batch) {
  for (uint32_t i = 0; i < batch->n_copies; i++) {
    const struct gpu_copy *c = &batch->copies[i];
    gpu->api.CommandEncoderCopyBufferToBuffer(encoder, c->from->handle, c->from_offset,
                                              target(c)->handle, c->to_offset, c->size);
  }
}

/* wgpu-native ends the process when an invalid command buffer is submitted, so where errors are
 * told at once they are looked at first. Elsewhere the answer comes later and joins the completion
 * of the work. */
static sconce_status finish_and_submit(struct gpu *gpu, WGPUCommandEncoder encoder,
                                       sconce_error *err) {
  const struct webgpu *api = &gpu->api;
  const bool at_once = api->flavour->answers_at_once;
  WGPUCommandBuffer commands = api->CommandEncoderFinish(encoder, NULL);
  api->CommandEncoderRelease(encoder);
  sconce_status status = SCONCE_OK;
  if (at_once) status = scope_end(gpu, err, "encoding a command buffer");
  if (status == SCONCE_OK && !gpu->lost) {
    if (at_once) scope_begin(gpu);
    gpu->mark = api->flavour->submit(gpu, 1, &commands);
    gpu->stats.submits++;
    if (at_once) status = scope_end(gpu, err, "submitting a command buffer");
  }
  if (!at_once) scope_end_late(gpu, "submitting a command buffer");
  if (status == SCONCE_OK && gpu->lost) status = gpu_check(gpu, err);
  if (commands) api->CommandBufferRelease(commands);
  return status;
}

static WGPUCommandEncoder begin(struct gpu *gpu) {
  scope_begin(gpu);
  return gpu->api.DeviceCreateCommandEncoder(gpu->device, NULL);
}

/* No command buffer, and so none that could be invalid. */
static sconce_status submit_writes(struct gpu *gpu, sconce_error *err) {
  scope_begin(gpu);
  gpu->mark = gpu->api.flavour->submit(gpu, 0, NULL);
  gpu->stats.submits++;
  if (gpu->api.flavour->answers_at_once) return scope_end(gpu, err, "submitting writes");
  scope_end_late(gpu, "submitting writes");
  return SCONCE_OK;
}

sconce_status gpu_submit(struct gpu *gpu, const struct gpu_batch *batch, sconce_error *err) {
  TRY(gpu_check(gpu, err));
  TRY(check_batch(gpu, batch, err));
  if (batch->n_dispatches + batch->n_copies == 0) return submit_writes(gpu, err);
  WGPUCommandEncoder encoder = begin(gpu);
  encode_passes(gpu, encoder, batch, UINT32_MAX, NULL);
  encode_copies(gpu, encoder, batch);
  return finish_and_submit(gpu, encoder, err);
}

/* Written zeros would pass through staging memory of the same size. */
sconce_status gpu_clear(struct gpu_buffer *buffer, sconce_error *err) {
  struct gpu *gpu = buffer->gpu;
  TRY(gpu_check(gpu, err));
  WGPUCommandEncoder encoder = begin(gpu);
  gpu->api.CommandEncoderClearBuffer(encoder, buffer->handle, 0, buffer->size);
  return finish_and_submit(gpu, encoder, err);
}

/* ---- profile --------------------------------------------------------------------------------- */

enum { QUERIES_MAX = 4096 }; /* WebGPU's limit for a query set */

struct timing {
  WGPUQuerySet queries;
  struct gpu_buffer *resolved; /* (2 n) u64 */
  struct gpu_read *read;
};

static void timing_free(struct gpu *gpu, struct timing *t) {
  if (t->queries) gpu->api.QuerySetRelease(t->queries);
  gpu_buffer_close(t->resolved);
  gpu_read_close(t->read);
}

static sconce_status timing_init(struct gpu *gpu, struct timing *t, uint32_t n, sconce_error *err) {
  uint64_t size = 8 * (uint64_t)n;
  scope_begin(gpu);
  t->queries = gpu->api.DeviceCreateQuerySet(
      gpu->device, &(WGPUQuerySetDescriptor){.type = WGPUQueryType_Timestamp, .count = n});
  TRY(scope_end(gpu, err, "creating %u timestamp queries", n));
  TRY(gpu_buffer_open(gpu, GPU_QUERIES, size, "timestamps", &t->resolved, err));
  return gpu_read_open(gpu, size, &t->read, err);
}

static sconce_status profile_part(struct gpu *gpu, const struct gpu_batch *batch, uint32_t per_pass,
                                  struct timing *t, uint64_t *times, sconce_error *err) {
  uint32_t n = per_pass == 1 ? 2 * batch->n_dispatches : 2;
  TRY(timing_init(gpu, t, n, err));
  WGPUCommandEncoder encoder = begin(gpu);
  encode_passes(gpu, encoder, batch, per_pass, t->queries);
  encode_copies(gpu, encoder, batch);
  gpu->api.CommandEncoderResolveQuerySet(encoder, t->queries, 0, n, t->resolved->handle, 0);
  gpu->api.CommandEncoderCopyBufferToBuffer(encoder, t->resolved->handle, 0,
                                            t->read->buffer->handle, 0, 8 * (uint64_t)n);
  TRY(finish_and_submit(gpu, encoder, err));
  const void *data;
  TRY(gpu_read_begin(t->read, err));
  TRY(gpu_read_wait(t->read, &data, err));
  const double period = (double)gpu->api.flavour->timestamp_period(gpu);
  for (uint32_t i = 0; i < n; i++)
    times[i] = (uint64_t)((double)((const uint64_t *)data)[i] * period);
  gpu_read_end(t->read);
  return SCONCE_OK;
}

sconce_status gpu_profile(struct gpu *gpu, const struct gpu_batch *batch, enum gpu_timing timing,
                          uint64_t *times, sconce_error *err) {
  TRY(gpu_check(gpu, err));
  TRY(check_batch(gpu, batch, err));
  if (!gpu->info.timestamps)
    return fail(err, SCONCE_UNSUPPORTED, "timestamps are not in use on this device");
  const uint32_t per_pass = timing == GPU_TIME_EACH ? 1 : UINT32_MAX;
  for (uint32_t at = 0; at < batch->n_dispatches;) {
    struct gpu_batch part = {.dispatches = batch->dispatches + at};
    part.n_dispatches = batch->n_dispatches - at;
    if (per_pass == 1 && part.n_dispatches > QUERIES_MAX / 2) part.n_dispatches = QUERIES_MAX / 2;
    if (at + part.n_dispatches == batch->n_dispatches) {
      part.copies = batch->copies;
      part.n_copies = batch->n_copies;
    }
    struct timing state = {0};
    sconce_status status = profile_part(gpu, &part, per_pass, &state, times + 2 * (size_t)at, err);
    timing_free(gpu, &state);
    TRY(status);
    at += part.n_dispatches;
  }
  return SCONCE_OK;
}
