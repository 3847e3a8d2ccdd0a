/* Opens a device in steps that never wait: adapters, one of them chosen, a device, a probe of what
 * it does not tell. The blocking form is a loop over them. */
#include "gpu/api.h"

#include "base/os.h"
#include "gpu/config.h"

#include <stdio.h>
#include <string.h>

/* An answer about an adapter. */
struct question {
  bool answered;
  WGPUAdapter adapter; /* NULL: there is none of the kind */
};

struct opening {
  enum { ADAPTERS, RIVAL, DEVICE, PROBE } step;
  struct gpu_config config;
  bool allow_null;
  bool compares;                                          /* libraries, see rival_begin */
  struct gpu *rival;                                      /* the other library's adapters */
  char wanted[sizeof((sconce_device_info *)0)->name + 1]; /* one more than fits a name */
  struct question questions[ADAPTERS_MAX];
  struct adapters list;
  bool answered; /* about the device */
  char message[600];
  struct probing probe;
};

void opening_give_up(struct gpu *gpu) {
  if (!gpu->opening) return;
  probe_free(&gpu->opening->probe);
  gpu_close(gpu->opening->rival);
  gpu->opening->rival = NULL;
}

/* Adapters that were not chosen, or came too late. */
void opening_free(struct gpu *gpu) {
  struct opening *o = gpu->opening;
  if (!o) return;
  for (uint32_t i = 0; i < ADAPTERS_MAX; i++) {
    if (o->questions[i].adapter) gpu->api.AdapterRelease(o->questions[i].adapter);
    if (o->list.handle[i]) gpu->api.AdapterRelease(o->list.handle[i]);
  }
  gpu->opening = NULL;
  block_resize(&gpu->allocator, o, sizeof *o, 0);
}

/* ---- adapters -------------------------------------------------------------------------------- */

static bool same_adapter(const struct webgpu *api, WGPUAdapter a, WGPUAdapter b) {
  WGPUAdapterInfo one = {0}, two = {0};
  api->AdapterGetInfo(a, &one);
  api->AdapterGetInfo(b, &two);
  bool same = one.vendorID == two.vendorID && one.deviceID == two.deviceID &&
              one.backendType == two.backendType;
  api->AdapterInfoFreeMembers(one);
  api->AdapterInfoFreeMembers(two);
  return same;
}

/* Takes the adapter. Dawn's Null adapter computes nothing and reports success: only who asks for it
 * gets it. */
static void add_adapter(struct gpu *gpu, WGPUAdapter adapter) {
  struct opening *o = gpu->opening;
  sconce_device_info *info = &o->list.info[o->list.n];
  adapter_describe(&gpu->api, adapter, info);
  info->index = o->list.n;
  if (adapter_is_null(info) && !o->allow_null)
    gpu->api.AdapterRelease(adapter);
  else
    o->list.handle[o->list.n++] = adapter;
}

static void on_adapter(WGPURequestAdapterStatus status, WGPUAdapter adapter, WGPUStringView message,
                       void *user, void *unused) {
  (void)message, (void)unused;
  struct question *q = user;
  if (status == WGPURequestAdapterStatus_Success) q->adapter = adapter;
  q->answered = true;
}

static void ask_adapters(struct gpu *gpu) {
  const struct flavour *flavour = gpu->api.flavour;
  struct opening *o = gpu->opening;
  for (uint32_t i = 0; i < flavour->n_questions; i++)
    flavour->ask_adapter(
        &gpu->api, gpu->instance, i,
        (WGPURequestAdapterCallbackInfo){.mode = WGPUCallbackMode_AllowProcessEvents,
                                         .callback = on_adapter,
                                         .userdata1 = &o->questions[i]});
}

/* Different questions may have one answer. */
static void gather_adapters(struct gpu *gpu) {
  struct opening *o = gpu->opening;
  for (uint32_t i = 0; i < gpu->api.flavour->n_questions; i++) {
    WGPUAdapter adapter = o->questions[i].adapter;
    o->questions[i].adapter = NULL;
    bool known = false;
    for (uint32_t k = 0; adapter && k < o->list.n; k++)
      known |= same_adapter(&gpu->api, adapter, o->list.handle[k]);
    if (known)
      gpu->api.AdapterRelease(adapter);
    else if (adapter)
      add_adapter(gpu, adapter);
  }
}

static bool list_adapters(struct gpu *gpu) {
  const struct flavour *flavour = gpu->api.flavour;
  if (flavour->list_adapters) {
    WGPUAdapter found[ADAPTERS_MAX] = {0};
    const uint32_t n = flavour->list_adapters(&gpu->api, gpu->instance, found);
    for (uint32_t i = 0; i < n; i++) add_adapter(gpu, found[i]);
    return true;
  }
  gpu->api.InstanceProcessEvents(gpu->instance);
  for (uint32_t i = 0; i < flavour->n_questions; i++)
    if (!gpu->opening->questions[i].answered) return false;
  gather_adapters(gpu);
  return true;
}

static sconce_status take_adapter(struct gpu *gpu, sconce_error *err) {
  struct opening *o = gpu->opening;
  uint32_t chosen = 0;
  TRY(adapter_choose(&o->list, *o->wanted ? o->wanted : NULL, &chosen, err));
  gpu->adapter = o->list.handle[chosen];
  o->list.handle[chosen] = NULL;
  gpu->adapter_index = chosen;
  gpu->info = o->list.info[chosen];
  return SCONCE_OK;
}

/* ---- device ---------------------------------------------------------------------------------- */

static void on_device(WGPURequestDeviceStatus status, WGPUDevice device, WGPUStringView message,
                      void *user, void *unused) {
  (void)unused;
  struct gpu *gpu = user;
  const bool there = status == WGPURequestDeviceStatus_Success;
  if (gpu->closing) { /* nobody wants it any more */
    if (there) gpu->api.DeviceRelease(device);
    return;
  }
  if (there) gpu->device = device;
  copy_view(gpu->opening->message, sizeof gpu->opening->message, message);
  gpu->opening->answered = true;
}

static void ask_device(struct gpu *gpu) {
  const struct webgpu *api = &gpu->api;
  const struct gpu_config *config = &gpu->opening->config;
  WGPULimits limits;
  adapter_limits(api, gpu->adapter, config, &gpu->info, &limits);
  adapter_matrices(api, gpu->adapter, gpu->matrices);
  WGPUFeatureName features[FEATURES_MAX];
  const size_t n = adapter_features(api->flavour, config, &gpu->info, features);
  gpu->software = gpu->info.type == SCONCE_ADAPTER_SOFTWARE && !config->no_software;
  union {
    const WGPUChainedStruct *chain;
    WGPUChainedStruct *next;
  } extra = {.chain = api->flavour->device_chain ? api->flavour->device_chain() : NULL};
  WGPUDeviceDescriptor desc = {
      .nextInChain = extra.next,
      .label = view("sconce"),
      .requiredFeatureCount = n,
      .requiredFeatures = features,
      .requiredLimits = &limits,
      .deviceLostCallbackInfo = {.mode = WGPUCallbackMode_AllowSpontaneous,
                                 .callback = on_lost,
                                 .userdata1 = gpu},
      .uncapturedErrorCallbackInfo = {.callback = on_error, .userdata1 = gpu},
  };
  api->AdapterRequestDevice(
      gpu->adapter, &desc,
      (WGPURequestDeviceCallbackInfo){
          .mode = WGPUCallbackMode_AllowProcessEvents, .callback = on_device, .userdata1 = gpu});
}

static sconce_status take_device(struct gpu *gpu, sconce_error *err) {
  if (!gpu->device)
    return fail(err, SCONCE_NO_DEVICE, "'%s' gave no device: %s", gpu->info.name,
                gpu->opening->message);
  gpu->queue = gpu->api.DeviceGetQueue(gpu->device);
  return SCONCE_OK;
}

/* ---- begin and poll -------------------------------------------------------------------------- */

static sconce_status begin(struct gpu *gpu, const struct gpu_desc *desc, sconce_error *err) {
  struct opening *o = block_resize(&gpu->allocator, NULL, 0, sizeof *o);
  if (!o) return fail(err, SCONCE_NO_MEMORY, "no memory for a device");
  *o = (struct opening){.allow_null = desc->allow_null};
  gpu->opening = o;
  char room[OS_ENV_MAX];
  const char *wanted = desc->adapter;
  if (!wanted || !*wanted) wanted = os_env("SCONCE_ADAPTER", room, sizeof room);
  if (wanted) snprintf(o->wanted, sizeof o->wanted, "%s", wanted);
  char word[OS_ENV_MAX];
  const char *library = desc->library;
  if (!library || !*library) library = os_env("SCONCE_WEBGPU", word, sizeof word);
  o->compares = library && strcmp(library, "best") == 0;
  TRY(loader_open(&gpu->api, desc->library, err));
  os_hush_begin(); /* wgpu-native looks for drivers in the first, Dawn in the second */
  gpu->instance = gpu->api.flavour->create_instance(&gpu->api);
  if (gpu->instance && !gpu->api.flavour->list_adapters) ask_adapters(gpu);
  os_hush_end();
  if (!gpu->instance) return fail(err, SCONCE_NO_DEVICE, "the WebGPU library gave no instance");
  return SCONCE_OK;
}

/* Its adapters have been asked for; *out is NULL on failure. */
static sconce_status open_instance(struct gpu **out, const struct gpu_desc *desc,
                                   sconce_error *err) {
  struct gpu *gpu = *out = block_resize(&desc->allocator, NULL, 0, sizeof *gpu);
  if (!gpu) return fail(err, SCONCE_NO_MEMORY, "no memory for a device");
  *gpu = (struct gpu){.allocator = desc->allocator,
                      .log = desc->log,
                      .no_threads = desc->no_threads,
                      .no_blocking = desc->no_blocking,
                      .losing = ATOMIC_FLAG_INIT};
  atomic_init(&gpu->wanting, 0);
  atomic_init(&gpu->lost, false);
  atomic_init(&gpu->stray_state, 0);
  atomic_init(&gpu->n_strayed, 0);
  *out = NULL;
  if (!os_mutex_init(&gpu->mutex)) {
    block_resize(&desc->allocator, gpu, sizeof *gpu, 0);
    return fail(err, SCONCE_NO_MEMORY, "the system has no mutex for a device");
  }
  sconce_status status = begin(gpu, desc, err);
  if (status == SCONCE_OK)
    *out = gpu;
  else
    gpu_close(gpu);
  return status;
}

sconce_status gpu_open_begin(struct gpu **out, const struct gpu_desc *desc, sconce_error *err) {
  *out = NULL;
  struct gpu_config config;
  TRY(config_read(&config, desc->disable, desc->limits, desc->precision, err));
  TRY(open_instance(out, desc, err));
  if (desc->stays) config.lose_after = 0;
  (*out)->opening->config = config;
  return SCONCE_OK;
}

/* ---- two libraries --------------------------------------------------------------------------- */

/* Where the first library has no matrix units for us, Dawn's adapters are asked for too, if it is
 * installed. */
static bool rival_begin(struct gpu *gpu) {
  struct opening *o = gpu->opening;
  const bool wanted = !o->config.no_matrix && o->config.precision != PRECISION_EXACT;
  if (!o->compares || !wanted || gpu->info.matrix) return false;
  const struct gpu_desc desc = {.library = "dawn", .allocator = gpu->allocator};
  return open_instance(&o->rival, &desc, NULL) == SCONCE_OK;
}

static bool is_same_device(const struct gpu *gpu, const struct gpu *rival, WGPUAdapter other) {
  WGPUAdapterInfo one = {0}, two = {0};
  gpu->api.AdapterGetInfo(gpu->adapter, &one);
  rival->api.AdapterGetInfo(other, &two);
  const bool same = one.vendorID == two.vendorID && one.deviceID == two.deviceID;
  gpu->api.AdapterInfoFreeMembers(one);
  rival->api.AdapterInfoFreeMembers(two);
  return same;
}

/* The two change places: the rival's adapter i is the device's, which keeps its index. */
static void rival_take(struct gpu *gpu, struct gpu *rival, uint32_t i) {
  struct adapters *mine = &gpu->opening->list, *its = &rival->opening->list;
  const struct webgpu api = gpu->api;
  const struct adapters list = *mine;
  const WGPUInstance instance = gpu->instance;
  rival->adapter = gpu->adapter;
  gpu->adapter = its->handle[i];
  its->handle[i] = NULL;
  its->info[i].index = gpu->info.index;
  gpu->info = its->info[i];
  gpu->api = rival->api;
  gpu->instance = rival->instance;
  *mine = *its;
  rival->api = api;
  rival->instance = instance;
  *its = list;
  log_write(&gpu->log, SCONCE_LOG_INFO, "Dawn is taken for its matrix units");
}

static void rival_end(struct gpu *gpu) {
  struct gpu *rival = gpu->opening->rival;
  const struct adapters *list = &rival->opening->list;
  uint32_t i = 0;
  while (i < list->n && !(list->info[i].matrix && is_same_device(gpu, rival, list->handle[i]))) i++;
  if (i < list->n) rival_take(gpu, rival, i);
  gpu_close(rival);
  gpu->opening->rival = NULL;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* *passed: the step is behind us. */
static sconce_status step(struct gpu *gpu, bool *passed, sconce_error *err) {
  struct opening *o = gpu->opening;
  *passed = false;
  switch (o->step) {
  case ADAPTERS:
    if (!list_adapters(gpu)) return SCONCE_OK;
    TRY(take_adapter(gpu, err));
    o->step = rival_begin(gpu) ? RIVAL : DEVICE;
    if (o->step == DEVICE) ask_device(gpu);
    break;
  case RIVAL:
    if (!list_adapters(o->rival)) return SCONCE_OK;
    rival_end(gpu);
    ask_device(gpu);
    o->step = DEVICE;
    break;
  case DEVICE:
    if (!o->answered) gpu->api.InstanceProcessEvents(gpu->instance);
    if (!o->answered) return SCONCE_OK;
    TRY(take_device(gpu, err));
    TRY(probe_begin(&o->probe, gpu, err));
    o->step = PROBE;
    break;
  case PROBE:
    return probe_poll(&o->probe, gpu, passed, err);
  }
  *passed = true;
  return SCONCE_OK;
}

sconce_status gpu_open_poll(struct gpu *gpu, bool *done, sconce_error *err) {
  *done = !gpu->opening;
  for (bool passed = true, last; passed && !*done;) {
    last = gpu->opening->step == PROBE;
    TRY(step(gpu, &passed, err));
    if (!passed || !last) continue;
    (void)gpu_lose_after(gpu, gpu->opening->config.lose_after);
    opening_free(gpu);
    *done = true;
    log_write(&gpu->log, SCONCE_LOG_INFO, "%s (%s), %s %s, %s", gpu->info.name, gpu->info.api,
              gpu->info.library, gpu->info.library_version, gpu->info.fast ? "fast" : "exact");
    for (int i = 0; gpu->info.matrix && i < MATRICES_MAX && gpu->matrices[i].m; i++)
      log_write(&gpu->log, SCONCE_LOG_DEBUG, "subgroup matrices of %ux%ux%u", gpu->matrices[i].m,
                gpu->matrices[i].n, gpu->matrices[i].k);
  }
  return SCONCE_OK;
}

/* ---- blocking -------------------------------------------------------------------------------- */

sconce_status gpu_open(struct gpu **out, const struct gpu_desc *desc, sconce_error *err) {
  struct gpu *gpu;
  *out = NULL;
  TRY(gpu_open_begin(&gpu, desc, err));
  sconce_status status = SCONCE_OK;
  for (bool done = false; status == SCONCE_OK && !done;) {
    status = gpu_open_poll(gpu, &done, err);
    if (status == SCONCE_OK && !done) status = wait_turn(gpu, err);
  }
  if (status == SCONCE_OK)
    *out = gpu;
  else
    gpu_close(gpu);
  return status;
}

sconce_status gpu_adapters(const struct gpu_desc *desc,
                           void (*each)(void *, uint32_t, const sconce_device_info *), void *user,
                           sconce_error *err) {
  struct gpu *gpu;
  TRY(open_instance(&gpu, desc, err));
  sconce_status status = SCONCE_OK;
  while (status == SCONCE_OK && !list_adapters(gpu)) status = wait_turn(gpu, err);
  const struct adapters *list = &gpu->opening->list;
  for (uint32_t i = 0; status == SCONCE_OK && i < list->n; i++) each(user, i, &list->info[i]);
  gpu_close(gpu);
  return status;
}
