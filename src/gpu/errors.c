/* Error scopes, late errors and waiting: the driver's words become a status of ours.
 *
 * With wgpu-native a scope's answer is there when it is popped. With Dawn (and in a browser) it
 * arrives from ProcessEvents; creation calls wait for it, a submit lets it join its completion. */
#include "gpu/api.h"

#include "base/os.h"

#include <stdarg.h>
#include <stdio.h>

/* Internal errors have a filter too, but wgpu-native panics on it; they reach on_error instead. */
static const WGPUErrorFilter filters[] = {WGPUErrorFilter_OutOfMemory, WGPUErrorFilter_Validation};
enum { FILTERS = 2 };

void scope_begin(struct gpu *gpu) {
  if (gpu->team_works) return; /* the team's scope is everybody's */
  for (int i = 0; i < FILTERS; i++) gpu->api.DevicePushErrorScope(gpu->device, filters[i]);
}

/* wgpu-native reports a refused allocation as a validation error with this text. */
static bool means_no_memory(WGPUErrorType type, const char *text) {
  return type == WGPUErrorType_OutOfMemory || strstr(text, "Not enough memory left") != NULL;
}

static void note(sconce_error *error, WGPUErrorType type, WGPUStringView message) {
  if (type == WGPUErrorType_NoError || error->status != SCONCE_OK) return;
  char text[sizeof error->text];
  copy_view(text, sizeof text, message);
  fail(error, means_no_memory(type, text) ? SCONCE_NO_GPU_MEMORY : SCONCE_GPU_ERROR, "%s", text);
}

static void on_popped(WGPUPopErrorScopeStatus status, WGPUErrorType type, WGPUStringView message,
                      void *user, void *unused) {
  (void)unused;
  struct scope_answer *popped = user;
  popped->done = true;
  if (status == WGPUPopErrorScopeStatus_Success) note(&popped->error, type, message);
}

static void on_popped_late(WGPUPopErrorScopeStatus status, WGPUErrorType type,
                           WGPUStringView message, void *user, void *unused) {
  (void)unused;
  struct gpu *gpu = user;
  if (status == WGPUPopErrorScopeStatus_Success) note(&gpu->stray, type, message);
}

static void pop(struct gpu *gpu, WGPUPopErrorScopeCallback callback, void *user) {
  gpu->api.DevicePopErrorScope(
      gpu->device, (WGPUPopErrorScopeCallbackInfo){.mode = WGPUCallbackMode_AllowProcessEvents,
                                                   .callback = callback,
                                                   .userdata1 = user});
}

sconce_status scope_end(struct gpu *gpu, sconce_error *err, const char *doing, ...) {
  sconce_error first = {0};
  for (int i = 0; i < FILTERS && !gpu->team_works; i++) {
    gpu->answer = (struct scope_answer){0};
    pop(gpu, on_popped, &gpu->answer);
    wait_until(gpu, &gpu->answer.done);
    if (first.status == SCONCE_OK) first = gpu->answer.error;
  }
  if (gpu->lost) first = gpu->loss;
  if (first.status == SCONCE_OK) return SCONCE_OK;
  char what[200];
  va_list args;
  va_start(args, doing);
  vsnprintf(what, sizeof what, doing, args);
  va_end(args);
  return fail(err, first.status, "%s: %s", what, first.text);
}

void scope_end_late(struct gpu *gpu) {
  if (gpu->team_works) return;
  for (int i = 0; i < FILTERS; i++) pop(gpu, on_popped_late, gpu);
}

sconce_status gpu_check(struct gpu *gpu, sconce_error *err) {
  if (gpu->lost) return fail(err, SCONCE_DEVICE_LOST, "%s", gpu->loss.text);
  if (gpu->stray.status == SCONCE_OK) return SCONCE_OK;
  sconce_error stray = gpu->stray;
  gpu->stray.status = SCONCE_OK;
  return fail(err, stray.status, "%s", stray.text);
}

/* After a loss pending callbacks are still delivered; this is how long we wait for them. */
enum { LOST_PATIENCE_NS = 500000000 };

/* On a GPU the answer is usually there within a token's time, and a blocking wait costs 30 us more
 * (H200); on a software device spinning would take a core from the one that computes. */
void wait_until(struct gpu *gpu, const bool *done) {
  const uint64_t spin_ns = gpu->info.type == SCONCE_ADAPTER_SOFTWARE ? 0 : 2000000;
  const uint64_t start = os_clock_ns();
  for (uint64_t waited = 0; !*done; waited = os_clock_ns() - start) {
    gpu->api.flavour->poll(gpu, waited >= spin_ns);
    if (gpu->lost && waited > LOST_PATIENCE_NS) return;
  }
}
