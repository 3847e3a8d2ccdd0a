/* Error scopes and errors that come late: the driver's words become a status of ours.
 *
 * wgpu-native tells an error within the call that makes it, on its thread: between scope_begin and
 * scope_end on_error catches it, and its scopes, one stack for all threads, are not used. Dawn and
 * browsers answer after a scope was popped; so nobody waits, answers are counted, and what goes
 * wrong is kept until somebody asks. */
#include "gpu/api.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

_Thread_local sconce_error *caught_here;

void copy_view(char *out, size_t size, WGPUStringView text) {
  size_t n = text.data ? (text.length == WGPU_STRLEN ? strlen(text.data) : text.length) : 0;
  if (n >= size) n = size - 1;
  if (n) memcpy(out, text.data, n);
  out[n] = 0;
}

static bool means_no_memory(const struct gpu *gpu, WGPUErrorType type, const char *text) {
  const char *sign = gpu->api.flavour->no_memory;
  return type == WGPUErrorType_OutOfMemory || (sign && strstr(text, sign));
}

/* Keeps the first. */
static void note(const struct gpu *gpu, sconce_error *error, WGPUErrorType type,
                 WGPUStringView message) {
  if (type == WGPUErrorType_NoError || error->status != SCONCE_OK) return;
  char text[sizeof error->text];
  copy_view(text, sizeof text, message);
  fail(error, means_no_memory(gpu, type, text) ? SCONCE_NO_GPU_MEMORY : SCONCE_GPU_ERROR, "%s",
       text);
}

/* ---- errors that belong to no call ----------------------------------------------------------- */

enum { STRAY_NONE, STRAY_WRITING, STRAY_THERE };

/* A library may have threads of its own: who finds the place taken leaves the first one in it. */
void stray_set(struct gpu *gpu, const sconce_error *error, bool news) {
  int none = STRAY_NONE;
  if (!atomic_compare_exchange_strong(&gpu->stray_state, &none, STRAY_WRITING)) return;
  gpu->stray = *error;
  gpu->stray_is_news = news;
  atomic_store_explicit(&gpu->stray_state, STRAY_THERE, memory_order_release);
}

void on_error(WGPUDevice const *device, WGPUErrorType type, WGPUStringView message, void *user,
              void *unused) {
  (void)device, (void)unused;
  struct gpu *gpu = user;
  sconce_error *to = caught_here ? caught_here : gpu->catching ? &gpu->caught : NULL;
  if (to) {
    note(gpu, to, type, message);
    return;
  }
  sconce_error error = {0};
  note(gpu, &error, type, message);
  if (error.status == SCONCE_OK) return;
  atomic_fetch_add(&gpu->n_strayed, 1);
  stray_set(gpu, &error, true);
}

sconce_status gpu_check(struct gpu *gpu, sconce_error *err) {
  if (gpu->fuse && --gpu->fuse == 0) gpu_lose(gpu);
  if (gpu->lost) return fail(err, SCONCE_DEVICE_LOST, "%s", gpu->loss.text);
  if (atomic_load_explicit(&gpu->stray_state, memory_order_acquire) != STRAY_THERE)
    return SCONCE_OK;
  sconce_status status = fail(err, gpu->stray.status, "%s", gpu->stray.text);
  if (gpu->stray_is_news)
    log_write(&gpu->log, SCONCE_LOG_ERROR, "GPU error outside any call: %s", gpu->stray.text);
  atomic_store_explicit(&gpu->stray_state, STRAY_NONE, memory_order_release);
  return status;
}

/* ---- scopes that answer late ----------------------------------------------------------------- */

/* Internal errors have a filter too, but reach on_error just as well. */
static const WGPUErrorFilter filters[] = {WGPUErrorFilter_OutOfMemory, WGPUErrorFilter_Validation};
enum { FILTERS = 2 };

struct late {
  struct late *next, *next_free;
  struct gpu *gpu;
  struct listener listener; /* without one: the device's stray error */
  uint32_t left;            /* answers to come */
  char doing[200];
};

static struct late *late_new(struct gpu *gpu) {
  struct late *late = gpu->lates_free;
  if (late) {
    gpu->lates_free = late->next_free;
    return late;
  }
  late = block_resize(&gpu->allocator, NULL, 0, sizeof *late);
  if (!late) return NULL;
  *late = (struct late){.next = gpu->lates, .gpu = gpu};
  gpu->lates = late;
  return late;
}

void lates_free(struct gpu *gpu) {
  while (gpu->lates) {
    struct late *late = gpu->lates;
    gpu->lates = late->next;
    block_resize(&gpu->allocator, late, sizeof *late, 0);
  }
}

static void tell(struct late *late, const sconce_error *error) {
  struct gpu *gpu = late->gpu;
  sconce_error full;
  fail(&full, error->status, "%s: %s", late->doing, error->text);
  if (late->listener.tell)
    late->listener.tell(late->listener.user, &full);
  else
    stray_set(gpu, &full, false);
}

static void on_popped(WGPUPopErrorScopeStatus status, WGPUErrorType type, WGPUStringView message,
                      void *user, void *unused) {
  (void)unused;
  struct late *late = user;
  struct gpu *gpu = late->gpu;
  gpu->n_late--;
  if (gpu->closing) return;
  sconce_error error = {0};
  if (status == WGPUPopErrorScopeStatus_Success) note(gpu, &error, type, message);
  if (error.status != SCONCE_OK) tell(late, &error);
  if (--late->left) return;
  if (late->listener.tell) late->listener.tell(late->listener.user, NULL);
  late->next_free = gpu->lates_free;
  gpu->lates_free = late;
}

static void on_popped_late(WGPUPopErrorScopeStatus status, WGPUErrorType type,
                           WGPUStringView message, void *user, void *doing) {
  struct gpu *gpu = user;
  gpu->n_late--;
  if (gpu->closing || status != WGPUPopErrorScopeStatus_Success) return;
  sconce_error error = {0}, full;
  note(gpu, &error, type, message);
  if (error.status == SCONCE_OK) return;
  fail(&full, error.status, "%s: %s", (const char *)doing, error.text);
  atomic_fetch_add(&gpu->n_strayed, 1);
  stray_set(gpu, &full, false);
}

static void pop(struct gpu *gpu, WGPUPopErrorScopeCallback callback, void *user, void *doing) {
  gpu->n_late += FILTERS;
  for (int i = 0; i < FILTERS; i++)
    gpu->api.DevicePopErrorScope(
        gpu->device, (WGPUPopErrorScopeCallbackInfo){.mode = WGPUCallbackMode_AllowProcessEvents,
                                                     .callback = callback,
                                                     .userdata1 = user,
                                                     .userdata2 = doing});
}

/* on_popped_late only reads what it is doing. */
void scope_end_late(struct gpu *gpu, const char *doing) {
  union {
    const char *text;
    void *user;
  } both = {.text = doing};
  pop(gpu, on_popped_late, gpu, both.user);
}

static sconce_status end_late(struct gpu *gpu, const struct listener *listener, sconce_error *err,
                              const char *doing, va_list args) {
  struct late *late = late_new(gpu);
  if (!late) {
    scope_end_late(gpu, "after memory ran out");
    return fail(err, SCONCE_NO_MEMORY, "no memory for an error scope");
  }
  late->listener = listener ? *listener : (struct listener){0};
  late->left = FILTERS;
  vsnprintf(late->doing, sizeof late->doing, doing, args);
  pop(gpu, on_popped, late, NULL);
  return SCONCE_OK;
}

/* ---- scopes ---------------------------------------------------------------------------------- */

void scope_begin(struct gpu *gpu) {
  if (gpu->api.flavour->answers_at_once) {
    gpu->caught.status = SCONCE_OK;
    gpu->catching = true;
    return;
  }
  for (int i = 0; i < FILTERS; i++) gpu->api.DevicePushErrorScope(gpu->device, filters[i]);
}

static sconce_status end(struct gpu *gpu, const struct listener *listener, sconce_error *err,
                         const char *doing, va_list args) {
  if (!gpu->api.flavour->answers_at_once) return end_late(gpu, listener, err, doing, args);
  gpu->catching = false;
  const sconce_error *error = gpu->lost ? &gpu->loss : &gpu->caught;
  if (error->status == SCONCE_OK) return SCONCE_OK;
  char what[200];
  vsnprintf(what, sizeof what, doing, args);
  return fail(err, error->status, "%s: %s", what, error->text);
}

sconce_status scope_end(struct gpu *gpu, sconce_error *err, const char *doing, ...) {
  va_list args;
  va_start(args, doing);
  sconce_status status = end(gpu, NULL, err, doing, args);
  va_end(args);
  return status;
}

sconce_status scope_end_told(struct gpu *gpu, const struct listener *listener, sconce_error *err,
                             const char *doing, ...) {
  va_list args;
  va_start(args, doing);
  sconce_status status = end(gpu, listener, err, doing, args);
  va_end(args);
  return status;
}
