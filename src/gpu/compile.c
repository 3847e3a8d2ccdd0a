/* Pipelines: one compiled now, or many while the caller does something else.
 *
 * Dawn compiles on threads of its own and calls back. wgpu-native lets a team of ours call it, but
 * its error scopes are one stack for all threads: while a team works nobody else opens a scope, one
 * holds them all, and if it caught anything the kernels are compiled again one by one. */
#include "gpu/api.h"

#include "base/os.h"

#include <stdio.h>

static WGPUBufferBindingType binding_type(uint8_t kind) {
  switch (kind) {
  case BIND_READ:
    return WGPUBufferBindingType_ReadOnlyStorage;
  case BIND_WRITE:
    return WGPUBufferBindingType_Storage;
  default:
    return WGPUBufferBindingType_Uniform;
  }
}

static WGPUBindGroupLayout create_layout(struct gpu *gpu, const struct wgsl *wgsl) {
  WGPUBindGroupLayoutEntry entries[BINDINGS_MAX] = {0};
  for (uint32_t i = 0; i < wgsl->n_bindings; i++)
    entries[i] = (WGPUBindGroupLayoutEntry){.binding = i,
                                            .visibility = WGPUShaderStage_Compute,
                                            .buffer.type = binding_type(wgsl->bindings[i])};
  return gpu->api.DeviceCreateBindGroupLayout(
      gpu->device, &(WGPUBindGroupLayoutDescriptor){.label = view(wgsl->name),
                                                    .entryCount = wgsl->n_bindings,
                                                    .entries = entries});
}

/* What a pipeline is made of; its descriptor points into it. */
struct recipe {
  char label[120];
  WGPUShaderModule module;
  WGPUPipelineLayout layout;
  WGPUComputePipelineDescriptor desc;
};

static void label_of(const struct kernel *row, char out[120]) {
  snprintf(out, 120, "%s/%s", row->wgsl->name, row->name);
}

static WGPUShaderModule create_module(struct gpu *gpu, const struct kernel *row, const char *text) {
  char label[120];
  label_of(row, label);
  WGPUShaderSourceWGSL source = {.chain.sType = WGPUSType_ShaderSourceWGSL, .code = view(text)};
  return gpu->api.flavour->create_module(
      gpu, &(WGPUShaderModuleDescriptor){.nextInChain = &source.chain, .label = view(label)});
}

/* NULL if the compiler has something to say. */
static sconce_status create_module_checked(struct gpu *gpu, const struct kernel *row,
                                           const char *text, WGPUShaderModule *out,
                                           sconce_error *err) {
  scope_begin(gpu);
  *out = create_module(gpu, row, text);
  sconce_status status =
      scope_end(gpu, err, "compiling shader '%s/%s'", row->wgsl->name, row->name);
  if (status != SCONCE_OK && *out) {
    gpu->api.ShaderModuleRelease(*out);
    *out = NULL;
  }
  return status;
}

/* Takes the module. */
static void recipe_init(struct recipe *r, struct gpu_kernel *k, WGPUShaderModule module) {
  struct gpu *gpu = k->gpu;
  *r = (struct recipe){.module = module};
  label_of(&k->row, r->label);
  k->layout = create_layout(gpu, k->row.wgsl);
  r->layout = gpu->api.DeviceCreatePipelineLayout(
      gpu->device, &(WGPUPipelineLayoutDescriptor){.label = view(r->label),
                                                   .bindGroupLayoutCount = 1,
                                                   .bindGroupLayouts = &k->layout});
  r->desc =
      (WGPUComputePipelineDescriptor){.label = view(r->label),
                                      .layout = r->layout,
                                      .compute = {.module = module, .entryPoint = view("main")}};
}

static void recipe_free(struct gpu *gpu, struct recipe *r) {
  if (r->layout) gpu->api.PipelineLayoutRelease(r->layout);
  if (r->module) gpu->api.ShaderModuleRelease(r->module);
}

/* ---- one ------------------------------------------------------------------------------------- */

/* wgpu-native compiles sizes beyond the device's limits when they come from an override. */
static sconce_status check_size(struct gpu_kernel *k, const char *text, sconce_error *err) {
  const sconce_device_info *info = &k->gpu->info;
  uint32_t size[3];
  if (!wgsl_workgroup_size(text, size)) return SCONCE_OK;
  uint64_t all = (uint64_t)size[0] * size[1] * size[2];
  bool fits = all <= info->max_workgroup_invocations;
  for (int i = 0; i < 3; i++) fits &= size[i] <= info->max_workgroup_size[i];
  if (fits) return SCONCE_OK;
  return fail(err, SCONCE_UNSUPPORTED,
              "kernel '%s/%s' has workgroups of %u x %u x %u, the device allows %u threads",
              k->row.wgsl->name, k->row.name, size[0], size[1], size[2],
              info->max_workgroup_invocations);
}

sconce_status kernel_text(struct gpu_kernel *k, struct arena *arena, const char **out,
                          sconce_error *err) {
  TRY(wgsl_compose(arena, &k->row, k->gpu->api.flavour->dialect, out, err));
  return check_size(k, *out, err);
}

static void create_pipeline(struct gpu_kernel *k, WGPUShaderModule module) {
  struct recipe recipe;
  recipe_init(&recipe, k, module);
  k->pipeline = k->gpu->api.DeviceCreateComputePipeline(k->gpu->device, &recipe.desc);
  recipe_free(k->gpu, &recipe);
}

/* Two scopes: what is wrong with a shader is said of the shader. */
sconce_status kernel_compile(struct gpu_kernel *k, const char *text, sconce_error *err) {
  struct gpu *gpu = k->gpu;
  WGPUShaderModule module;
  TRY(create_module_checked(gpu, &k->row, text, &module, err));
  scope_begin(gpu);
  create_pipeline(k, module);
  TRY(scope_end(gpu, err, "creating pipeline '%s/%s'", k->row.wgsl->name, k->row.name));
  if (k->pipeline) return SCONCE_OK;
  return fail(err, SCONCE_GPU_ERROR, "no pipeline '%s/%s'", k->row.wgsl->name, k->row.name);
}

sconce_status gpu_kernel_check(struct gpu *gpu, const struct kernel *row, sconce_error *err) {
  struct gpu_kernel *kernel;
  const struct caps caps = gpu_caps(gpu);
  if (kernel_runs(row, &caps)) return gpu_kernel_get(gpu, row, &kernel, err);
  struct arena scratch;
  arena_init(&scratch, &gpu->allocator);
  const char *text = NULL;
  WGPUShaderModule module = NULL;
  sconce_status status = wgsl_compose(&scratch, row, gpu->api.flavour->dialect, &text, err);
  if (status == SCONCE_OK) status = create_module_checked(gpu, row, text, &module, err);
  if (module) gpu->api.ShaderModuleRelease(module);
  arena_free(&scratch);
  return status;
}

/* ---- many ------------------------------------------------------------------------------------ */

struct job {
  struct gpu_compile *all;
  struct gpu_kernel *kernel;
  const char *text;
};

struct gpu_compile {
  struct gpu *gpu;
  struct gpu_compile *next; /* of the orphans */
  struct arena arena;       /* jobs and texts */
  struct job *jobs;
  uint32_t n;
  struct os_team team;
  atomic_uint taken; /* jobs that somebody has */
  uint32_t awaited;  /* callbacks */
  bool settled;      /* all have come */
  sconce_error why;  /* the first error; status 0: none */
};

static void compile_free(struct gpu_compile *c) {
  struct gpu *gpu = c->gpu;
  for (uint32_t i = 0; i < c->n; i++)
    if (c->jobs[i].kernel) kernel_close(c->jobs[i].kernel);
  arena_free(&c->arena);
  block_resize(&gpu->allocator, c, sizeof *c, 0);
}

void orphans_free(struct gpu *gpu) {
  while (gpu->orphans) {
    struct gpu_compile *c = gpu->orphans;
    gpu->orphans = c->next;
    compile_free(c);
  }
}

static bool is_known(const struct gpu_compile *c, const struct kernel *row) {
  for (uint32_t i = 0; i < c->n; i++)
    if (kernel_is(c->jobs[i].kernel, row)) return true;
  return kernel_find(c->gpu, row) != NULL;
}

/* Its text is made here: the caller's allocator may not be one for several threads. */
static sconce_status add_job(struct gpu_compile *c, const struct kernel *row, sconce_error *err) {
  struct job *job = &c->jobs[c->n];
  *job = (struct job){.all = c};
  TRY(kernel_open(c->gpu, row, &job->kernel, err));
  sconce_status status = kernel_text(job->kernel, &c->arena, &job->text, err);
  if (status == SCONCE_OK)
    c->n++;
  else
    kernel_close(job->kernel);
  return status;
}

static sconce_status add_jobs(struct gpu_compile *c, const struct kernel *const *rows, uint32_t n,
                              sconce_error *err) {
  c->jobs = arena_new(&c->arena, struct job, n);
  if (!c->jobs) return fail(err, SCONCE_NO_MEMORY, "no memory for %u kernels", n);
  for (uint32_t i = 0; i < n; i++) {
    sconce_error why = {0};
    if (is_known(c, rows[i]) || add_job(c, rows[i], &why) == SCONCE_OK) continue;
    if (why.status == SCONCE_NO_MEMORY) return fail(err, why.status, "%s", why.text);
    log_write(&c->gpu->log, SCONCE_LOG_WARNING, "not compiled ahead: %s", why.text);
  }
  return SCONCE_OK;
}

/* ---- by a team ------------------------------------------------------------------------------- */

/* An invalid module makes an invalid pipeline, both without an abort; one_by_one says which. */
static void work(void *user) {
  struct gpu_compile *c = user;
  for (uint32_t i; (i = atomic_fetch_add(&c->taken, 1)) < c->n;) {
    struct gpu_kernel *k = c->jobs[i].kernel;
    WGPUShaderModule module = create_module(k->gpu, &k->row, c->jobs[i].text);
    if (module) create_pipeline(k, module);
  }
}

/* One core stays with the caller. */
static void start_team(struct gpu_compile *c) {
  struct gpu *gpu = c->gpu;
  const uint32_t cores = os_cores(), most = cores > 2 ? cores - 1 : 1;
  scope_begin(gpu);
  gpu->team_failed = false;
  gpu->team_works = true;
  os_team_start(&c->team, gpu->no_threads ? 0 : c->n < most ? c->n : most, work, c);
}

/* false: an error came up, of the team or of its caller. */
static bool join_team(struct gpu_compile *c, bool needed) {
  struct gpu *gpu = c->gpu;
  if (!needed) atomic_store(&c->taken, c->n);
  work(c); /* what nobody took */
  os_team_join(&c->team);
  gpu->team_works = false;
  sconce_status status = scope_end(gpu, &c->why, "compiling %u kernels ahead", c->n);
  if (status == SCONCE_OK && gpu->team_failed)
    status = fail(&c->why, SCONCE_GPU_ERROR, "compiling %u kernels ahead", c->n);
  return status == SCONCE_OK;
}

/* ---- by the library -------------------------------------------------------------------------- */

static void on_pipeline(WGPUCreatePipelineAsyncStatus status, WGPUComputePipeline pipeline,
                        WGPUStringView message, void *user, void *unused) {
  (void)unused;
  struct job *job = user;
  struct gpu_compile *c = job->all;
  job->kernel->pipeline = pipeline;
  if (status != WGPUCreatePipelineAsyncStatus_Success && c->why.status == SCONCE_OK) {
    char text[600];
    copy_view(text, sizeof text, message);
    fail(&c->why, SCONCE_GPU_ERROR, "%s", text);
  }
  c->settled = --c->awaited == 0;
}

static sconce_status ask(struct job *job, sconce_error *err) {
  struct gpu_compile *c = job->all;
  struct gpu *gpu = c->gpu;
  WGPUShaderModule module;
  TRY(create_module_checked(gpu, &job->kernel->row, job->text, &module, err));
  struct recipe recipe;
  scope_begin(gpu);
  recipe_init(&recipe, job->kernel, module);
  c->awaited++;
  c->settled = false;
  gpu->api.flavour->create_pipeline_later(
      gpu, &recipe.desc,
      (WGPUCreateComputePipelineAsyncCallbackInfo){
          .mode = WGPUCallbackMode_AllowProcessEvents, .callback = on_pipeline, .userdata1 = job});
  recipe_free(gpu, &recipe);
  return scope_end(gpu, err, "laying out '%s'", recipe.label);
}

static void ask_all(struct gpu_compile *c) {
  for (uint32_t i = 0; i < c->n && c->why.status == SCONCE_OK; i++) {
    sconce_error why = {0};
    if (ask(&c->jobs[i], &why) != SCONCE_OK && c->why.status == SCONCE_OK) c->why = why;
  }
}

/* ---- begin and end --------------------------------------------------------------------------- */

sconce_status gpu_compile_begin(struct gpu *gpu, const struct kernel *const *rows, uint32_t n,
                                struct gpu_compile **out, sconce_error *err) {
  *out = NULL;
  TRY(gpu_check(gpu, err));
  if (gpu->compile) return fail(err, SCONCE_BAD_ARGUMENT, "kernels are being compiled ahead");
  struct gpu_compile *c = block_resize(&gpu->allocator, NULL, 0, sizeof *c);
  if (!c) return fail(err, SCONCE_NO_MEMORY, "no memory for %u kernels", n);
  *c = (struct gpu_compile){.gpu = gpu, .settled = true};
  atomic_init(&c->taken, 0);
  arena_init(&c->arena, &gpu->allocator);
  sconce_status status = add_jobs(c, rows, n, err);
  if (status != SCONCE_OK || c->n == 0) {
    compile_free(c);
    return status;
  }
  if (gpu->api.flavour->create_pipeline_later)
    ask_all(c);
  else
    start_team(c);
  gpu->compile = *out = c;
  return SCONCE_OK;
}

static bool all_made(const struct gpu_compile *c) {
  for (uint32_t i = 0; i < c->n; i++)
    if (!c->jobs[i].kernel->pipeline) return false;
  return c->why.status == SCONCE_OK;
}

static void keep_all(struct gpu_compile *c) {
  for (uint32_t i = 0; i < c->n; i++) {
    kernel_keep(c->jobs[i].kernel);
    c->jobs[i].kernel = NULL;
  }
}

/* Somebody failed: those that compile alone are kept. */
static void one_by_one(struct gpu_compile *c) {
  log_write(&c->gpu->log, SCONCE_LOG_DEBUG, "once more, one by one: %s", c->why.text);
  for (uint32_t i = 0; i < c->n && !c->gpu->lost; i++) {
    struct gpu_kernel *k;
    sconce_error why = {0};
    if (kernel_get(c->gpu, &c->jobs[i].kernel->row, &k, &why) != SCONCE_OK)
      log_write(&c->gpu->log, SCONCE_LOG_WARNING, "not compiled ahead: %s", why.text);
  }
}

bool gpu_compile_end(struct gpu_compile *c, bool needed) {
  if (!c) return true;
  struct gpu *gpu = c->gpu;
  bool sure = true; /* Dawn tells a compiler's errors from others */
  gpu->compile = NULL;
  if (gpu->team_works)
    sure = join_team(c, needed);
  else
    wait_until(gpu, &c->settled);
  if (!c->settled) { /* a callback may still come */
    c->next = gpu->orphans;
    gpu->orphans = c;
    return sure;
  }
  if (needed && !gpu->lost) {
    if (all_made(c))
      keep_all(c);
    else
      one_by_one(c);
  }
  compile_free(c);
  return sure;
}
