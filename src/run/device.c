/* The public device calls. */
#include "run/device.h"

#include "base/os.h"
#include "graph/rewrite.h"

#include <string.h>

static struct gpu_desc gpu_desc_of(const sconce_device_desc *desc) {
  if (!desc) return (struct gpu_desc){0};
  return (struct gpu_desc){.library = desc->library,
                           .adapter = desc->adapter,
                           .disable = desc->disable,
                           .limits = desc->limits,
                           .precision = desc->precision,
                           .no_threads = desc->no_threads,
                           .allocator = desc->allocator,
                           .log = desc->log};
}

/* Both lists, one after the other, if all their words are passes. */
static sconce_status read_passes(sconce_device *device, const char *list, sconce_error *err) {
  if (!list || !*list) return SCONCE_OK;
  const struct text unknown = passes_unknown(list);
  char names[256];
  if (unknown.size)
    return fail(err, SCONCE_BAD_ARGUMENT, "no fusion is called '%.*s': they are %s; or all",
                TEXT(unknown), passes_text(names, sizeof names));
  size_t used = strlen(device->passes_off), size = strlen(list);
  if (used + size + 2 > sizeof device->passes_off)
    return fail(err, SCONCE_BAD_ARGUMENT, "%zu bytes of fusions not to make", used + size);
  if (used) device->passes_off[used++] = ',';
  memcpy(device->passes_off + used, list, size + 1);
  return SCONCE_OK;
}

enum { ASKED = 6 };

/* A device that is opened again needs what the first was opened with. */
static sconce_status keep_asked(sconce_device *device, const struct gpu_desc *desc,
                                const char *avoid, sconce_error *err) {
  const char *const texts[ASKED] = {desc->library, desc->adapter,   desc->disable,
                                    desc->limits,  desc->precision, avoid};
  for (int i = 0; i < ASKED; i++) device->asked_size += texts[i] ? strlen(texts[i]) + 1 : 1;
  device->asked = block_resize(&device->allocator, NULL, 0, device->asked_size);
  if (!device->asked) return fail(err, SCONCE_NO_MEMORY, "no memory for a device");
  char *at = device->asked;
  for (int i = 0; i < ASKED; i++) {
    const size_t size = texts[i] ? strlen(texts[i]) + 1 : 1;
    memcpy(at, texts[i] ? texts[i] : "", size);
    at += size;
  }
  return SCONCE_OK;
}

static void read_asked(const sconce_device *device, const char *texts[ASKED]) {
  const char *at = device->asked;
  for (int i = 0; i < ASKED; i++, at += strlen(at) + 1) texts[i] = *at ? at : NULL;
}

const char *device_avoid(const sconce_device *device) {
  const char *texts[ASKED];
  read_asked(device, texts);
  return texts[ASKED - 1];
}

struct gpu_desc device_gpu_desc(const sconce_device *device) {
  const char *texts[ASKED];
  read_asked(device, texts);
  return (struct gpu_desc){.library = texts[0],
                           .adapter = texts[1],
                           .disable = texts[2],
                           .limits = texts[3],
                           .precision = texts[4],
                           .no_threads = device->no_threads,
                           .allocator = device->allocator,
                           .log = device->log};
}

static sconce_status begin(sconce_device *device, const sconce_device_desc *desc,
                           const struct gpu_desc *gpu_desc, sconce_error *err) {
  const char *avoid = desc && desc->avoid ? desc->avoid : "";
  const struct text unknown = kernel_unknown(avoid);
  if (unknown.size)
    return fail(err, SCONCE_BAD_ARGUMENT, "no kernel to avoid is called '%.*s'", TEXT(unknown));
  TRY(keep_asked(device, gpu_desc, avoid, err));
  TRY(read_passes(device, desc ? desc->no_fusion : NULL, err));
  char room[OS_ENV_MAX];
  TRY(read_passes(device, os_env("SCONCE_NO_FUSION", room, sizeof room), err));
  TRY(gpu_open_begin(&device->gpu, gpu_desc, err));
  gpu_avoid(device->gpu, device_avoid(device));
  return SCONCE_OK;
}

sconce_status sconce_device_begin(sconce_device **out, const sconce_device_desc *desc,
                                  sconce_error *err) {
  if (!out) return fail(err, SCONCE_BAD_ARGUMENT, "out is NULL");
  *out = NULL;
  struct gpu_desc gpu_desc = gpu_desc_of(desc);
  sconce_device *device = block_resize(&gpu_desc.allocator, NULL, 0, sizeof *device);
  if (!device) return fail(err, SCONCE_NO_MEMORY, "no memory for a device");
  *device = (sconce_device){.allocator = gpu_desc.allocator,
                            .log = gpu_desc.log,
                            .no_threads = gpu_desc.no_threads,
                            .users = 1};
  sconce_status status = begin(device, desc, &gpu_desc, err);
  if (status != SCONCE_OK)
    sconce_device_close(device);
  else
    *out = device;
  return status;
}

sconce_status sconce_device_poll(sconce_device *device, bool *done, sconce_error *err) {
  if (!device || !done) return fail(err, SCONCE_BAD_ARGUMENT, "device or done is NULL");
  *done = device->ready;
  if (device->ready) return SCONCE_OK;
  TRY(gpu_open_poll(device->gpu, done, err));
  device->ready = *done;
  return SCONCE_OK;
}

enum { NAP_NS = 20000 }; /* between two looks */

sconce_status sconce_device_open(sconce_device **out, const sconce_device_desc *desc,
                                 sconce_error *err) {
  TRY(sconce_device_begin(out, desc, err));
  for (bool done = false; !done;) {
    sconce_status status = sconce_device_poll(*out, &done, err);
    if (status == SCONCE_OK && !done) os_sleep_ns(NAP_NS);
    if (status == SCONCE_OK) continue;
    sconce_device_close(*out);
    *out = NULL;
    return status;
  }
  return SCONCE_OK;
}

sconce_status device_check_ready(const sconce_device *device, sconce_error *err) {
  if (device->ready) return SCONCE_OK;
  return fail(err, SCONCE_BAD_ARGUMENT, "the device is still being opened");
}

void device_leave(sconce_device *device) {
  if (device) gpu_unlock(device->gpu);
}

void device_enter(sconce_device *device) {
  if (device) gpu_lock(device->gpu);
}

bool device_drop(sconce_device *device) { return --device->users == 0; }

void sconce_device_close(sconce_device *device) {
  if (!device) return;
  if (device->gpu) gpu_lock(device->gpu);
  const bool unused = device_drop(device);
  if (device->gpu) gpu_unlock(device->gpu);
  if (unused) device_free(device);
}

void device_free(sconce_device *device) {
  gpu_close(device->gpu);
  sconce_allocator allocator = device->allocator;
  if (device->asked) block_resize(&allocator, device->asked, device->asked_size, 0);
  block_resize(&allocator, device, sizeof *device, 0);
}

const sconce_device_info *sconce_device_describe(const sconce_device *device) {
  return device && device->ready ? gpu_info(device->gpu) : NULL;
}

sconce_status sconce_adapters(const sconce_device_desc *desc,
                              void (*each)(void *user, uint32_t index,
                                           const sconce_device_info *info),
                              void *user, sconce_error *err) {
  if (!each) return fail(err, SCONCE_BAD_ARGUMENT, "each is NULL");
  struct gpu_desc gpu_desc = gpu_desc_of(desc);
  return gpu_adapters(&gpu_desc, each, user, err);
}
