/* The device's lock, and waiting: polls, fences, and the blocking loops over them.
 *
 * wgpu-native waits in its own poll, which runs without the lock and calls back on whatever thread
 * polls: what its callbacks write is atomic or published by an atomic (fence_settle). Dawn is
 * polled under the lock, and whoever waits sleeps in between without it. */
#include "gpu/api.h"

#include <string.h>

void gpu_lock(struct gpu *gpu) {
  atomic_fetch_add_explicit(&gpu->wanting, 1, memory_order_relaxed);
  os_mutex_lock(&gpu->mutex);
  atomic_fetch_sub_explicit(&gpu->wanting, 1, memory_order_relaxed);
  gpu->held = true;
}

void gpu_unlock(struct gpu *gpu) {
  gpu->held = false;
  os_mutex_unlock(&gpu->mutex);
}

void gpu_tick(struct gpu *gpu) {
  gpu->api.flavour->poll(gpu, false, 0);
  if (gpu->orphans) orphans_free(gpu, false);
}

sconce_status gpu_settle_poll(struct gpu *gpu, bool *done, sconce_error *err) {
  if (gpu->n_late) gpu_tick(gpu);
  *done = gpu->n_late == 0 || gpu->lost;
  return *done ? gpu_check(gpu, err) : SCONCE_OK;
}

sconce_status gpu_settle(struct gpu *gpu, sconce_error *err) {
  for (bool done = false;;) {
    TRY(gpu_settle_poll(gpu, &done, err));
    if (done) return SCONCE_OK;
    TRY(wait_turn(gpu, err));
  }
}

/* ---- blocking -------------------------------------------------------------------------------- */

enum {
  NAP_NS = 20000,
  SPIN_NS = 2000000,
  LOST_PATIENCE_NS = 500000000, /* after a loss callbacks are still delivered */
};

bool gpu_may_wait(const struct gpu *gpu) {
  return !gpu->no_blocking && !gpu->api.flavour->never_blocks;
}

static sconce_status may_block(const struct gpu *gpu, sconce_error *err) {
  if (gpu_may_wait(gpu)) return SCONCE_OK;
  return fail(err, SCONCE_UNSUPPORTED, "nothing may wait here: begin and poll instead");
}

sconce_status wait_turn(struct gpu *gpu, sconce_error *err) {
  TRY(may_block(gpu, err));
  const bool held = gpu->held, waits = gpu->api.flavour->poll_waits;
  const uint64_t mark = gpu->mark;
  if (held) gpu_unlock(gpu);
  if (waits && gpu->device)
    gpu->api.flavour->poll(gpu, true, mark);
  else
    os_sleep_ns(NAP_NS);
  if (held) gpu_lock(gpu);
  return SCONCE_OK;
}

/* Errors of this thread are nobody's while it has no lock; there should be none. */
static void wait_unlocked(struct gpu *gpu, const struct gpu_fence *fence, uint64_t spin_ns) {
  const bool held = gpu->held;
  sconce_error error;
  error.status = SCONCE_OK;
  if (held) gpu_unlock(gpu);
  caught_here = &error;
  const uint64_t start = os_clock_ns();
  for (uint64_t waited = 0; !fence_settled(fence); waited = os_clock_ns() - start) {
    if (gpu->lost && waited > LOST_PATIENCE_NS) break;
    gpu->api.flavour->poll(gpu, waited >= spin_ns, fence->mark);
  }
  caught_here = NULL;
  if (held) gpu_lock(gpu);
  if (error.status != SCONCE_OK) stray_set(gpu, &error, true);
}

/* A thread that spins would not let others have the lock. */
static void wait_in_turns(struct gpu *gpu, const struct gpu_fence *fence, uint64_t spin_ns) {
  const bool held = gpu->held;
  const uint64_t start = os_clock_ns();
  for (uint64_t waited = 0;; waited = os_clock_ns() - start) {
    gpu->api.flavour->poll(gpu, false, 0);
    if (fence_settled(fence) || (gpu->lost && waited > LOST_PATIENCE_NS)) return;
    if (waited < spin_ns && !atomic_load_explicit(&gpu->wanting, memory_order_relaxed)) continue;
    if (held) gpu_unlock(gpu);
    os_sleep_ns(NAP_NS);
    if (held) gpu_lock(gpu);
  }
}

/* On a GPU the answer is usually there within a token's time, and a blocking wait costs 30 us more
 * (H200); on a software device spinning would take a core from the one that computes. */
sconce_status fence_wait(struct gpu_fence *fence, sconce_error *err) {
  struct gpu *gpu = fence->gpu;
  if (fence_settled(fence)) return SCONCE_OK;
  TRY(may_block(gpu, err));
  const uint64_t spin_ns = gpu->info.type == SCONCE_ADAPTER_SOFTWARE ? 0 : SPIN_NS;
  if (gpu->api.flavour->poll_waits)
    wait_unlocked(gpu, fence, spin_ns);
  else
    wait_in_turns(gpu, fence, spin_ns);
  return SCONCE_OK;
}

/* ---- fences ---------------------------------------------------------------------------------- */

/* One that was given up is used again once its answer has come: no callback finds freed memory, and
 * nobody waits for one. */
struct gpu_fence *fence_new(struct gpu *gpu) {
  for (struct gpu_fence *f = gpu->fences; f; f = f->next)
    if (!f->owned && fence_settled(f)) {
      f->owned = true;
      return f;
    }
  struct gpu_fence *fence = block_resize(&gpu->allocator, NULL, 0, sizeof *fence);
  if (!fence) return NULL;
  *fence = (struct gpu_fence){.gpu = gpu, .next = gpu->fences, .owned = true};
  atomic_init(&fence->settled, true);
  gpu->fences = fence;
  return fence;
}

void fences_free(struct gpu *gpu) {
  while (gpu->fences) {
    struct gpu_fence *fence = gpu->fences;
    gpu->fences = fence->next;
    block_resize(&gpu->allocator, fence, sizeof *fence, 0);
  }
}

bool fence_settled(const struct gpu_fence *fence) {
  return atomic_load_explicit(&fence->settled, memory_order_acquire);
}

void fence_arm(struct gpu_fence *fence) {
  fence->mark = fence->gpu->mark;
  atomic_store_explicit(&fence->settled, false, memory_order_release);
}

/* Reading the flag first orders this thread behind fence_arm. */
void fence_settle(struct gpu_fence *fence, bool ok, WGPUStringView message) {
  if (fence_settled(fence)) return;
  fence->failed = !ok;
  copy_view(fence->message, sizeof fence->message, message);
  atomic_store_explicit(&fence->settled, true, memory_order_release);
}

static void on_done(WGPUQueueWorkDoneStatus status, WGPUStringView message, void *user,
                    void *unused) {
  (void)unused;
  fence_settle(user, status == WGPUQueueWorkDoneStatus_Success, message);
}

sconce_status gpu_fence_begin(struct gpu *gpu, struct gpu_fence **out, sconce_error *err) {
  *out = NULL;
  TRY(gpu_check(gpu, err));
  struct gpu_fence *fence = fence_new(gpu);
  if (!fence) return fail(err, SCONCE_NO_MEMORY, "no memory for a fence");
  fence_arm(fence);
  gpu->api.QueueOnSubmittedWorkDone(
      gpu->queue, (WGPUQueueWorkDoneCallbackInfo){.mode = WGPUCallbackMode_AllowProcessEvents,
                                                  .callback = on_done,
                                                  .userdata1 = fence});
  *out = fence;
  return SCONCE_OK;
}

static sconce_status outcome(struct gpu_fence *fence, sconce_error *err) {
  TRY(gpu_check(fence->gpu, err));
  if (!fence_settled(fence) || !fence->failed) return SCONCE_OK;
  return fail(err, SCONCE_GPU_ERROR, "waiting for the device: %s", fence->message);
}

sconce_status gpu_fence_poll(struct gpu_fence *fence, bool *done, sconce_error *err) {
  if (!fence_settled(fence)) gpu_tick(fence->gpu);
  *done = fence_settled(fence);
  return outcome(fence, err);
}

sconce_status gpu_fence_wait(struct gpu_fence *fence, sconce_error *err) {
  TRY(fence_wait(fence, err));
  return outcome(fence, err);
}

void gpu_fence_close(struct gpu_fence *fence) {
  if (fence) fence->owned = false;
}

uint64_t gpu_done(struct gpu *gpu, uint64_t now) {
  const uint64_t before = gpu->done_ns;
  gpu->done_ns = now;
  return before;
}

sconce_status gpu_finish(struct gpu *gpu, sconce_error *err) {
  struct gpu_fence *fence;
  TRY(gpu_fence_begin(gpu, &fence, err));
  sconce_status status = gpu_fence_wait(fence, err);
  gpu_fence_close(fence);
  return status;
}
