/* A lost device is opened again: see sconce_device_recover.
 *
 * First everything that was on it is let go, states before methods before weights; then comes the
 * new device, and all is made again in the other order. Handles and what they told stay. */
#include "run/state.h"

#include "base/os.h"

#include <stdio.h>

static bool any_down(const sconce_device *device) {
  for (const sconce_model *m = device->models; m; m = m->next)
    for (const sconce_method *method = m->methods; method; method = method->next)
      if (method->down) return true;
  return false;
}

/* ---- a device -------------------------------------------------------------------------------- */

static void count_adapter(void *user, uint32_t index, const sconce_device_info *info) {
  (void)info;
  *(uint32_t *)user = index + 1;
}

/* If nobody named an adapter, one of the others will do. */
static sconce_status open_gpu(const sconce_device *device, struct gpu **out, sconce_error *err) {
  struct gpu_desc desc = device_gpu_desc(device);
  char room[OS_ENV_MAX];
  desc.stays = true;
  sconce_status status = gpu_open(out, &desc, err);
  const char *named = desc.adapter ? desc.adapter : os_env("SCONCE_ADAPTER", room, sizeof room);
  if (status == SCONCE_OK || status == SCONCE_NO_MEMORY || (named && *named)) return status;
  sconce_error ignored;
  uint32_t n = 0;
  if (gpu_adapters(&desc, count_adapter, &n, &ignored) != SCONCE_OK) return status;
  for (uint32_t i = 0; i < n && status != SCONCE_OK; i++) {
    char index[16];
    snprintf(index, sizeof index, "%u", i);
    desc.adapter = index;
    status = gpu_open(out, &desc, &ignored);
  }
  return status;
}

/* As it was asked for. */
static sconce_status open_again(const sconce_device *device, struct gpu **out, sconce_error *err) {
  TRY(open_gpu(device, out, err));
  gpu_avoid(*out, device_avoid(device));
  return SCONCE_OK;
}

/* ---- down and up ----------------------------------------------------------------------------- */

static void take_down(sconce_device *device) {
  gpu_lock(device->gpu);
  for (sconce_model *m = device->models; m; m = m->next) {
    for (sconce_method *method = m->methods; method; method = method->next) {
      for (sconce_state *s = method->states; s; s = s->next) state_take_down(s);
      method_take_down(method);
    }
    weights_free(&m->weights);
  }
  gpu_unlock(device->gpu);
}

static sconce_status bring_back_states(sconce_method *method, sconce_error *err) {
  sconce_status status = SCONCE_OK;
  gpu_lock(method->model->device->gpu);
  for (sconce_state *s = method->states; s && status == SCONCE_OK; s = s->next)
    if (s->down) status = state_bring_back(s, err);
  for (sconce_state *s = method->states; s && status != SCONCE_OK; s = s->next) state_take_down(s);
  if (status != SCONCE_OK) method_take_down(method);
  gpu_unlock(method->model->device->gpu);
  return status;
}

/* Goes on with the others where one fails; the first error is what is told. */
static sconce_status bring_back(sconce_device *device, sconce_error *err) {
  sconce_status status = SCONCE_OK;
  for (sconce_model *m = device->models; m; m = m->next)
    for (sconce_method *method = m->methods; method; method = method->next) {
      sconce_error why;
      if (!method->down) continue;
      sconce_status one = method_bring_back(method, &why);
      if (one == SCONCE_OK && method->phase == METHOD_READY) one = bring_back_states(method, &why);
      if (one == SCONCE_OK || status != SCONCE_OK) continue;
      status = fail(err, one, "'%s' after a lost device: %s", method->info.name, why.text);
    }
  return status;
}

static sconce_status replace(sconce_device *device, sconce_error *err) {
  struct gpu *fresh, *old = device->gpu;
  TRY(open_again(device, &fresh, err));
  take_down(device);
  sconce_error why = {0};
  (void)!gpu_check(old, &why);
  device->gpu = fresh;
  gpu_close(old);
  for (sconce_model *m = device->models; m; m = m->next)
    weights_init(&m->weights, fresh, m->sources, &m->arena.allocator);
  log_write(&device->log, SCONCE_LOG_WARNING, "%s; opened again on %s", why.text,
            gpu_info(fresh)->name);
  return SCONCE_OK;
}

sconce_status sconce_device_recover(sconce_device *device, sconce_error *err) {
  if (!device) return fail(err, SCONCE_BAD_ARGUMENT, "device is NULL");
  TRY(device_check_ready(device, err));
  if (gpu_is_lost(device->gpu))
    TRY(replace(device, err));
  else if (!any_down(device))
    return SCONCE_OK;
  return bring_back(device, err);
}
