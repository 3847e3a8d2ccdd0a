/* Pipelines: one compiled now, or many while the caller does something else.
 *
 * wgpu-native lets a team of threads call it, and tells errors on the thread that makes them, so
 * each kernel has its own. Dawn compiles on threads of its own and calls back; elsewhere the answer
 * is that of a scope. What the library or a thread has in hand is never freed: who gives up leaves
 * an orphan to the device. */
#include "gpu/api.h"

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

static WGPUBindGroupLayout create_layout(const struct gpu *gpu, const struct wgsl *wgsl) {
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

static WGPUShaderModule create_module(const struct gpu *gpu, const struct kernel *row,
                                      const char *text) {
  char label[120];
  label_of(row, label);
  WGPUShaderSourceWGSL source = {.chain.sType = WGPUSType_ShaderSourceWGSL, .code = view(text)};
  return gpu->api.flavour->create_module(
      gpu, &(WGPUShaderModuleDescriptor){.nextInChain = &source.chain, .label = view(label)});
}

/* Takes the module, and drops what the kernel was before. */
static void recipe_init(struct recipe *r, struct gpu_kernel *k, WGPUShaderModule module) {
  struct gpu *gpu = k->gpu;
  *r = (struct recipe){.module = module};
  label_of(&k->row, r->label);
  kernel_release(k);
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

static void recipe_free(const struct gpu *gpu, struct recipe *r) {
  if (r->layout) gpu->api.PipelineLayoutRelease(r->layout);
  if (r->module) gpu->api.ShaderModuleRelease(r->module);
}

/* Takes the module. */
static void create_pipeline(struct gpu_kernel *k, WGPUShaderModule module) {
  struct recipe recipe;
  recipe_init(&recipe, k, module);
  k->pipeline = k->gpu->api.DeviceCreateComputePipeline(k->gpu->device, &recipe.desc);
  recipe_free(k->gpu, &recipe);
}

#define COMPILING "compiling shader '%s/%s'"
#define CREATING "creating pipeline '%s/%s'"
#define NAMES(row) (row)->wgsl->name, (row)->name

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
              NAMES(&k->row), size[0], size[1], size[2], info->max_workgroup_invocations);
}

static enum wgsl_dialect dialect_of(const struct gpu *gpu) {
  const enum wgsl_dialect dialect = gpu->api.flavour->dialect;
  if (gpu->info.f16) return dialect;
  return dialect == WGSL_NAGA ? WGSL_NAGA_NO_HALVES : WGSL_TINT_NO_HALVES;
}

sconce_status kernel_text(struct gpu_kernel *k, struct arena *arena, const char **out,
                          sconce_error *err) {
  TRY(wgsl_compose(arena, &k->row, dialect_of(k->gpu), out, err));
  return check_size(k, *out, err);
}

/* NULL if the compiler has something to say and says it at once. */
static sconce_status create_module_checked(struct gpu *gpu, const struct kernel *row,
                                           const char *text, const struct listener *listener,
                                           WGPUShaderModule *out, sconce_error *err) {
  scope_begin(gpu);
  *out = create_module(gpu, row, text);
  sconce_status status = scope_end_told(gpu, listener, err, COMPILING, NAMES(row));
  if (status != SCONCE_OK && *out) {
    gpu->api.ShaderModuleRelease(*out);
    *out = NULL;
  }
  return status;
}

/* A shader's error makes errors of all that is made of it: the first is told. */
static void on_kernel(void *user, const sconce_error *error) {
  struct gpu_kernel *k = user;
  if (!error || k->failed) return;
  k->failed = true;
  stray_set(k->gpu, error, false);
}

/* Two scopes: what is wrong with a shader is said of the shader. */
sconce_status kernel_compile(struct gpu_kernel *k, const char *text, sconce_error *err) {
  struct gpu *gpu = k->gpu;
  const struct listener listener = {on_kernel, k};
  WGPUShaderModule module;
  k->failed = false;
  TRY(create_module_checked(gpu, &k->row, text, &listener, &module, err));
  scope_begin(gpu);
  create_pipeline(k, module);
  TRY(scope_end_told(gpu, &listener, err, CREATING, NAMES(&k->row)));
  if (k->pipeline) return SCONCE_OK;
  return fail(err, SCONCE_GPU_ERROR, "no pipeline '%s/%s'", NAMES(&k->row));
}

static sconce_status check_shader(struct gpu *gpu, const struct kernel *row, sconce_error *err) {
  struct arena scratch;
  arena_init(&scratch, &gpu->allocator);
  const char *text = NULL;
  WGPUShaderModule module = NULL;
  sconce_status status = wgsl_compose(&scratch, row, dialect_of(gpu), &text, err);
  if (status == SCONCE_OK) status = create_module_checked(gpu, row, text, NULL, &module, err);
  if (module) gpu->api.ShaderModuleRelease(module);
  arena_free(&scratch);
  return status;
}

sconce_status gpu_kernel_check(struct gpu *gpu, const struct kernel *row, sconce_error *err) {
  struct gpu_kernel *kernel;
  const struct caps caps = gpu_caps(gpu);
  if (kernel_runs(row, &caps))
    TRY(gpu_kernel_get(gpu, row, &kernel, err));
  else
    TRY(check_shader(gpu, row, err));
  return gpu_settle(gpu, err);
}

bool gpu_compiles_slowly(const struct gpu *gpu) {
  return !gpu->compiles_all && gpu->info.type == SCONCE_ADAPTER_SOFTWARE;
}

void gpu_compile_all(struct gpu *gpu) { gpu->compiles_all = true; }

/* ---- many ------------------------------------------------------------------------------------ */

struct job {
  struct gpu_compile *all;
  struct gpu_kernel *kernel;
  const char *text;
  uint32_t left;    /* answers to come, where they come late */
  sconce_error why; /* the first error; status 0: none */
};

struct gpu_compile {
  struct gpu *gpu;
  struct gpu_compile *next; /* of the orphans */
  struct arena arena;       /* jobs and texts */
  struct job *jobs;
  uint32_t n;
  uint32_t n_known; /* rows that need no job */
  struct os_team team;
  atomic_uint taken;  /* jobs that somebody has */
  atomic_uint n_done; /* jobs that are through */
  atomic_uint n_home; /* of the team: they touch nothing any more */
};

static void compile_free(struct gpu_compile *c) {
  struct gpu *gpu = c->gpu;
  os_team_join(&c->team);
  for (uint32_t i = 0; i < c->n; i++)
    if (c->jobs[i].kernel) kernel_close(c->jobs[i].kernel);
  arena_free(&c->arena);
  block_resize(&gpu->allocator, c, sizeof *c, 0);
}

static bool is_known(const struct gpu_compile *c, const struct kernel *row) {
  for (uint32_t i = 0; i < c->n; i++)
    if (kernel_is(c->jobs[i].kernel, row)) return true;
  return kernel_find(c->gpu, row) != NULL;
}

/* Its text is made here: the caller's allocator may not be one for several threads. */
static sconce_status add_job(struct gpu_compile *c, const struct kernel *row, sconce_error *err) {
  struct job *job = &c->jobs[c->n];
  job->all = c;
  TRY(kernel_open(c->gpu, row, &job->kernel, err));
  sconce_status status = kernel_text(job->kernel, &c->arena, &job->text, err);
  if (status == SCONCE_OK)
    c->n++;
  else
    kernel_close(job->kernel);
  return status;
}

static void warn(const struct gpu *gpu, const sconce_error *why) {
  log_write(&gpu->log, SCONCE_LOG_WARNING, "not compiled ahead: %s", why->text);
}

static sconce_status add_jobs(struct gpu_compile *c, const struct kernel *const *rows, uint32_t n,
                              sconce_error *err) {
  c->jobs = arena_new(&c->arena, struct job, n);
  if (!c->jobs) return fail(err, SCONCE_NO_MEMORY, "no memory for %u kernels", n);
  for (uint32_t i = 0; i < n; i++) {
    sconce_error why = {0};
    if (is_known(c, rows[i]) || add_job(c, rows[i], &why) == SCONCE_OK) continue;
    if (why.status == SCONCE_NO_MEMORY) return fail(err, why.status, "%s", why.text);
    warn(c->gpu, &why);
  }
  c->n_known = n - c->n;
  return SCONCE_OK;
}

/* ---- by a team ------------------------------------------------------------------------------- */

/* On any thread, without the lock. */
static void compile_job(struct job *job) {
  struct gpu_kernel *k = job->kernel;
  sconce_error *before = caught_here, told = {0};
  caught_here = &told;
  WGPUShaderModule module = create_module(k->gpu, &k->row, job->text);
  const bool good = told.status == SCONCE_OK;
  if (good)
    create_pipeline(k, module);
  else if (module)
    k->gpu->api.ShaderModuleRelease(module);
  caught_here = before;
  if (told.status != SCONCE_OK)
    fail(&job->why, told.status, good ? CREATING ": %s" : COMPILING ": %s", NAMES(&k->row),
         told.text);
}

static bool compile_next(struct gpu_compile *c) {
  const uint32_t i = atomic_fetch_add(&c->taken, 1);
  if (i >= c->n) return false;
  if (!c->gpu->lost) compile_job(&c->jobs[i]);
  atomic_fetch_add(&c->n_done, 1);
  return true;
}

static void work(void *user) {
  struct gpu_compile *c = user;
  while (compile_next(c)) continue;
  atomic_fetch_add(&c->n_home, 1);
}

/* One core stays with the caller. */
static void start_team(struct gpu_compile *c) {
  const uint32_t cores = os_cores(), most = cores > 2 ? cores - 1 : 1;
  os_team_start(&c->team, c->gpu->no_threads ? 0 : c->n < most ? c->n : most, work, c);
}

/* ---- by the library -------------------------------------------------------------------------- */

/* One answer for a job, or an error on the way to one. */
static void on_job(void *user, const sconce_error *error) {
  struct job *job = user;
  if (error && job->why.status == SCONCE_OK) job->why = *error;
  if (!error && --job->left == 0) atomic_fetch_add(&job->all->n_done, 1);
}

static void on_pipeline(WGPUCreatePipelineAsyncStatus status, WGPUComputePipeline pipeline,
                        WGPUStringView message, void *user, void *unused) {
  (void)unused;
  struct job *job = user;
  job->kernel->pipeline = pipeline;
  if (status != WGPUCreatePipelineAsyncStatus_Success) {
    char text[600];
    sconce_error error;
    copy_view(text, sizeof text, message);
    fail(&error, SCONCE_GPU_ERROR, CREATING ": %s", NAMES(&job->kernel->row), text);
    on_job(job, &error);
  }
  on_job(job, NULL);
}

static void ask_pipeline(struct job *job, const struct recipe *recipe) {
  struct gpu *gpu = job->kernel->gpu;
  WGPUCreateComputePipelineAsyncCallbackInfo callback = {
      .mode = WGPUCallbackMode_AllowProcessEvents, .callback = on_pipeline, .userdata1 = job};
  job->left++;
  if (gpu->api.flavour->create_pipeline_later(gpu, &recipe->desc, callback)) return;
  job->left--;
  job->kernel->pipeline = gpu->api.DeviceCreateComputePipeline(gpu->device, &recipe->desc);
}

/* The first answer cannot come before the last question: callbacks run when the library is polled.
 */
static void ask(struct job *job) {
  struct gpu_kernel *k = job->kernel;
  const struct listener listener = {on_job, job};
  WGPUShaderModule module;
  struct recipe recipe;
  job->left = 1; /* for this function */
  if (create_module_checked(k->gpu, &k->row, job->text, &listener, &module, &job->why) ==
      SCONCE_OK) {
    job->left++;
    scope_begin(k->gpu);
    recipe_init(&recipe, k, module);
    ask_pipeline(job, &recipe);
    recipe_free(k->gpu, &recipe);
    if (scope_end_told(k->gpu, &listener, &job->why, CREATING, NAMES(&k->row)) == SCONCE_OK)
      job->left++;
  }
  on_job(job, NULL);
}

static sconce_status ask_all(struct gpu_compile *c, sconce_error *err) {
  for (uint32_t i = 0; i < c->n; i++) {
    ask(&c->jobs[i]);
    if (c->jobs[i].why.status == SCONCE_NO_MEMORY)
      return fail(err, SCONCE_NO_MEMORY, "%s", c->jobs[i].why.text);
  }
  return SCONCE_OK;
}

/* ---- begin, poll, end ------------------------------------------------------------------------ */

static bool by_team(const struct gpu_compile *c) { return c->gpu->api.flavour->answers_at_once; }
static bool is_done(const struct gpu_compile *c) { return c->n_done == c->n; }

/* Does anybody still work on it, or owe it an answer? */
static bool is_idle(const struct gpu_compile *c) {
  return by_team(c) ? c->n_home == c->team.n : is_done(c);
}

sconce_status gpu_compile_begin(struct gpu *gpu, const struct kernel *const *rows, uint32_t n,
                                struct gpu_compile **out, sconce_error *err) {
  *out = NULL;
  TRY(gpu_check(gpu, err));
  struct gpu_compile *c = block_resize(&gpu->allocator, NULL, 0, sizeof *c);
  if (!c) return fail(err, SCONCE_NO_MEMORY, "no memory for %u kernels", n);
  *c = (struct gpu_compile){.gpu = gpu};
  atomic_init(&c->taken, 0);
  atomic_init(&c->n_done, 0);
  atomic_init(&c->n_home, 0);
  arena_init(&c->arena, &gpu->allocator);
  sconce_status status = add_jobs(c, rows, n, err);
  if (status != SCONCE_OK) {
    compile_free(c);
    return status;
  }
  if (by_team(c))
    start_team(c);
  else
    status = ask_all(c, err);
  if (status == SCONCE_OK)
    *out = c;
  else
    gpu_compile_end(c, false);
  return status;
}

sconce_status gpu_compile_poll(struct gpu_compile *c, uint32_t *n_done, bool *done,
                               sconce_error *err) {
  if (!by_team(c))
    gpu_tick(c->gpu);
  else if (c->team.n == 0)
    compile_next(c);
  *n_done = c->n_known + c->n_done;
  *done = is_done(c);
  return c->gpu->lost ? gpu_check(c->gpu, err) : SCONCE_OK;
}

/* The caller helps its team. */
static void wait_for_team(struct gpu_compile *c) {
  struct gpu *gpu = c->gpu;
  const bool held = gpu->held;
  if (held) gpu_unlock(gpu);
  while (compile_next(c)) continue;
  os_team_join(&c->team);
  c->n_home = 0;
  if (held) gpu_lock(gpu);
}

static void wait_for_answers(struct gpu_compile *c) {
  for (bool can = true; can && !is_done(c) && !c->gpu->lost;) {
    gpu_tick(c->gpu);
    if (!is_done(c)) can = wait_turn(c->gpu, NULL) == SCONCE_OK;
  }
}

/* Another thread may have made the same one meanwhile. */
static void keep(struct job *job) {
  struct gpu_kernel *k = job->kernel;
  if (job->why.status != SCONCE_OK) {
    warn(k->gpu, &job->why);
  } else if (k->pipeline && !kernel_find(k->gpu, &k->row)) {
    kernel_keep(k);
    job->kernel = NULL;
  }
}

void gpu_compile_end(struct gpu_compile *c, bool needed) {
  if (!c) return;
  struct gpu *gpu = c->gpu;
  if (needed && !is_done(c)) {
    if (by_team(c))
      wait_for_team(c);
    else
      wait_for_answers(c);
  }
  if (needed && is_done(c) && !gpu->lost)
    for (uint32_t i = 0; i < c->n; i++) keep(&c->jobs[i]);
  atomic_store(&c->taken, c->n); /* what nobody has begun stays undone */
  c->next = gpu->orphans;
  gpu->orphans = c;
  orphans_free(gpu, false);
}

void orphans_free(struct gpu *gpu, bool all) {
  for (struct gpu_compile **at = &gpu->orphans; *at;) {
    struct gpu_compile *c = *at;
    if (!all && !is_idle(c)) {
      at = &c->next;
      continue;
    }
    *at = c->next;
    compile_free(c);
  }
}
