/* The WebGPU layer on a real device: work, limits, features, every kind of failure. */
#include "gpu.h"

#include "base/checked.h"
#include "gpu/probe.h"

#include "chain.wgsl.h"

static const uint32_t one_group[3] = {1, 1, 1};

/* Dawn takes things and tells later what is wrong with them. */
static sconce_status answer(struct gpu *gpu, sconce_status status, sconce_error *err) {
  return status == SCONCE_OK ? gpu_settle(gpu, err) : status;
}

/* ---- work ------------------------------------------------------------------------------------ */

static void a_kernel_computes(void) {
  struct gpu *gpu = test_gpu();
  if (!gpu) return;
  enum { N = 1000 };
  uint32_t x[N], y[N] = {0};
  for (uint32_t i = 0; i < N; i++) x[i] = i * 7;
  struct chain_params p = {.n = N, .add = 5};
  struct test_binding b[] = {{x, sizeof x}, {y, sizeof y}, {&p, sizeof p}};
  sconce_error err = {0};
  const uint32_t grid[3] = {4, 2, 2}; /* 16 groups of 64, folded over three axes */
  REQUIRE_OK(test_dispatch(gpu, &probe_kernels[PROBE_CHAIN], b, grid, &err), err);
  for (uint32_t i = 0; i < N; i++)
    if (y[i] != i * 7 + 5) {
      test_fail(__FILE__, __LINE__, "y[%u] is %u, want %u", i, y[i], i * 7 + 5);
      return;
    }
}

static void overrides_reach_the_pipeline(void) {
  struct gpu *gpu = test_gpu();
  if (!gpu) return;
  uint32_t x[128], y[128] = {0};
  memset(x, 0, sizeof x);
  struct chain_params p = {.n = 128, .add = 1};
  struct test_binding b[] = {{x, sizeof x}, {y, sizeof y}, {&p, sizeof p}};
  struct kernel wide = probe_kernels[PROBE_CHAIN];
  wide.set = "WG=128u";
  sconce_error err = {0};
  uint32_t kernels = gpu_stats(gpu)->kernels;
  REQUIRE_OK(test_dispatch(gpu, &wide, b, one_group, &err), err);
  CHECK_EQ(y[127], 1); /* with the default of 64 the second half would stay 0 */
  REQUIRE_OK(test_dispatch(gpu, &wide, b, one_group, &err), err);
  CHECK(gpu_stats(gpu)->kernels <= kernels + 1); /* the second time from the cache */
}

static void odd_tails_are_padded(void) {
  struct gpu *gpu = test_gpu();
  if (!gpu) return;
  struct gpu_buffer *buffer;
  struct gpu_read *read;
  sconce_error err = {0};
  REQUIRE_OK(gpu_buffer_open(gpu, GPU_TRANSIENT, 7, "odd", &buffer, &err), err);
  CHECK_EQ(gpu_buffer_size(buffer), 8);
  CHECK_OK(gpu_write(buffer, 0, "abcdefg", 7, &err), err);
  CHECK_FAILS(gpu_write(buffer, 0, "abcdefghi", 9, &err), SCONCE_BAD_ARGUMENT, err,
              "write of 9 bytes at 0 into a buffer of 8");
  CHECK_FAILS(gpu_write(buffer, 2, "ab", 2, &err), SCONCE_BAD_ARGUMENT, err, "at 2");
  REQUIRE_OK(gpu_read_open(gpu, 8, &read, &err), err);
  struct gpu_copy copy = {.from = buffer, .to = read, .size = 8};
  const void *data = NULL;
  CHECK_OK(gpu_submit(gpu, &(struct gpu_batch){.copies = &copy, .n_copies = 1}, &err), err);
  CHECK_OK(gpu_read_begin(read, &err), err);
  CHECK_FAILS(gpu_submit(gpu, &(struct gpu_batch){.copies = &copy, .n_copies = 1}, &err),
              SCONCE_BAD_ARGUMENT, err, "being read");
  CHECK_OK(gpu_read_wait(read, &data, &err), err);
  if (data) CHECK(memcmp(data, "abcdefg\0", 8) == 0);
  gpu_read_close(read);
  gpu_buffer_close(buffer);
}

/* In the order of calls: after the write before it, before the one behind it. */
static void a_cleared_buffer_is_zero(void) {
  struct gpu *gpu = test_gpu();
  if (!gpu) return;
  struct gpu_buffer *buffer;
  struct gpu_read *read;
  sconce_error err = {0};
  REQUIRE_OK(gpu_buffer_open(gpu, GPU_STATE, 4000, "state", &buffer, &err), err);
  REQUIRE_OK(gpu_read_open(gpu, 4000, &read, &err), err);
  uint8_t ones[4000];
  memset(ones, 255, sizeof ones);
  CHECK_OK(gpu_write(buffer, 0, ones, sizeof ones, &err), err);
  CHECK_OK(gpu_clear(buffer, &err), err);
  CHECK_OK(gpu_write(buffer, 8, ones, 4, &err), err);
  struct gpu_copy copy = {.from = buffer, .to = read, .size = 4000};
  const uint8_t *data = NULL;
  CHECK_OK(gpu_submit(gpu, &(struct gpu_batch){.copies = &copy, .n_copies = 1}, &err), err);
  CHECK_OK(gpu_read_begin(read, &err), err);
  CHECK_OK(gpu_read_wait(read, (const void **)&data, &err), err);
  for (uint32_t i = 0; data && i < 4000 && !test_failed(); i++)
    CHECK_EQ(data[i], i >= 8 && i < 12 ? 255 : 0);
  gpu_read_close(read);
  gpu_buffer_close(buffer);
}

static void reading_is_begun_polled_and_ended(void) {
  struct gpu *gpu = test_gpu();
  if (!gpu) return;
  struct gpu_read *read;
  sconce_error err = {0};
  REQUIRE_OK(gpu_read_open(gpu, 16, &read, &err), err);
  const void *data = NULL;
  CHECK_FAILS(gpu_read_poll(read, &data, &err), SCONCE_BAD_ARGUMENT, err, "nothing is being read");
  for (int round = 0; round < 2; round++) {
    CHECK_OK(gpu_read_begin(read, &err), err);
    CHECK_FAILS(gpu_read_begin(read, &err), SCONCE_BAD_ARGUMENT, err, "already");
    for (int i = 0; i < 1000000 && !data && !test_failed(); i++)
      CHECK_OK(gpu_read_poll(read, &data, &err), err);
    CHECK(data != NULL);
    gpu_read_end(read);
    data = NULL;
  }
  CHECK_OK(gpu_read_begin(read, &err), err);
  gpu_read_close(read); /* with the map pending */
}

static void timestamps_are_per_dispatch(void) {
  struct gpu *gpu = test_gpu();
  if (!gpu) return;
  if (!gpu_info(gpu)->timestamps) {
    test_skip("no timestamps");
    return;
  }
  sconce_error err = {0};
  struct gpu_kernel *kernel;
  struct gpu_buffer *x, *y, *params;
  struct gpu_group *group;
  struct chain_params p = {.n = 64, .add = 1};
  REQUIRE_OK(gpu_kernel_get(gpu, &probe_kernels[PROBE_CHAIN], &kernel, &err), err);
  REQUIRE_OK(gpu_buffer_open(gpu, GPU_TRANSIENT, 256, "x", &x, &err), err);
  REQUIRE_OK(gpu_buffer_open(gpu, GPU_TRANSIENT, 256, "y", &y, &err), err);
  REQUIRE_OK(gpu_buffer_open(gpu, GPU_PARAMS, sizeof p, "p", &params, &err), err);
  CHECK_OK(gpu_write(params, 0, &p, sizeof p, &err), err);
  struct gpu_binding b[] = {{.buffer = x}, {.buffer = y}, {.buffer = params}};
  REQUIRE_OK(gpu_group_open(kernel, b, 3, &group, &err), err);
  enum { N = 5000 }; /* more than fits one query set */
  struct gpu_dispatch *d = malloc(N * sizeof *d);
  uint64_t *times = calloc(2 * N, sizeof *times);
  for (int i = 0; i < N; i++) d[i] = (struct gpu_dispatch){group, {1, 1, 1}};
  CHECK_OK(gpu_profile(gpu, &(struct gpu_batch){.dispatches = d, .n_dispatches = N}, GPU_TIME_EACH,
                       times, &err),
           err);
  for (int i = 0; i < N; i++)
    if (!times[2 * i] || times[2 * i + 1] < times[2 * i]) {
      test_fail(__FILE__, __LINE__, "dispatch %d: from %llu to %llu", i,
                (unsigned long long)times[2 * i], (unsigned long long)times[2 * i + 1]);
      break;
    }
  free(d);
  free(times);
  gpu_group_close(group);
  gpu_buffer_close(x);
  gpu_buffer_close(y);
  gpu_buffer_close(params);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void bad_wgsl_reports_the_compiler(void) {
  struct gpu *gpu = test_gpu();
  if (!gpu) return;
  struct wgsl broken = chain_wgsl;
  broken.name = "broken";
  broken.uses = "";
  broken.text = "@compute @workgroup_size(1) fn main() { let a: u32 = nothing; }\n";
  struct kernel row = {"row", &broken, NULL, 0};
  struct gpu_kernel *kernel;
  sconce_error err = {0};
  for (int twice = 0; twice < 2; twice++) { /* a kernel that failed is not one of the cache */
    CHECK_FAILS(answer(gpu, gpu_kernel_get(gpu, &row, &kernel, &err), &err), SCONCE_GPU_ERROR, err,
                "nothing");
    CHECK(strstr(err.text, "compiling shader 'broken/row'") != NULL);
  }
  CHECK_OK(gpu_settle(gpu, &err), err);
}

static void a_pipeline_that_does_not_fit_is_reported(void) {
  struct gpu *gpu = test_gpu();
  if (!gpu) return;
  struct wgsl other = chain_wgsl;
  other.name = "other";
  other.uses = "";
  other.text = "@compute @workgroup_size(1) fn another() {}\n";
  struct kernel row = {"row", &other, NULL, 0};
  struct gpu_kernel *kernel;
  sconce_error err = {0};
  CHECK_FAILS(answer(gpu, gpu_kernel_get(gpu, &row, &kernel, &err), &err), SCONCE_GPU_ERROR, err,
              "creating pipeline 'other/row'");
  CHECK(strstr(err.text, "main") != NULL);
}

/* One kernel for each set of values, and what is bound does not count. */
static void fixed_parameters_make_kernels_of_their_own(void) {
  struct gpu *gpu = test_gpu();
  if (!gpu) return;
  const struct kernel *bound = &probe_kernels[PROBE_CHAIN];
  sconce_error err = {0};
  struct gpu_kernel *kernels[4] = {NULL};
  for (uint32_t i = 0; i < 4; i++) {
    struct chain_params params = {.n = 3, .add = 10 * (i % 3)}, other = {.n = 64, .add = 1000};
    struct kernel row = *bound;
    row.fixed = &params;
    uint32_t x[64] = {1, 2, 3, 4}, y[64] = {7, 7, 7, 7};
    struct test_binding b[] = {{x, sizeof x}, {y, sizeof y}, {&other, sizeof other}};
    CHECK_OK(test_dispatch(gpu, &row, b, (const uint32_t[]){1, 1, 1}, &err), err);
    for (uint32_t k = 0; k < 4; k++) CHECK_EQ(y[k], k < 3 ? x[k] + params.add : 7);
    CHECK_OK(gpu_kernel_get(gpu, &row, &kernels[i], &err), err);
  }
  CHECK(kernels[0] != kernels[1] && kernels[1] != kernels[2] && kernels[3] == kernels[0]);
  struct gpu_kernel *plain;
  CHECK_OK(gpu_kernel_get(gpu, bound, &plain, &err), err);
  for (int i = 0; i < 3; i++) CHECK(plain != kernels[i]);
}

static void bindings_are_checked_before_the_driver_sees_them(void) {
  struct gpu *gpu = test_gpu();
  if (!gpu) return;
  struct gpu_kernel *kernel;
  struct gpu_buffer *buffer;
  struct gpu_group *group;
  sconce_error err = {0};
  REQUIRE_OK(gpu_kernel_get(gpu, &probe_kernels[PROBE_CHAIN], &kernel, &err), err);
  REQUIRE_OK(gpu_buffer_open(gpu, GPU_TRANSIENT, 64, "b", &buffer, &err), err);
  struct gpu_binding b[3] = {{.buffer = buffer}, {.buffer = NULL}, {.buffer = buffer}};
  CHECK_FAILS(gpu_group_open(kernel, b, 2, &group, &err), SCONCE_BAD_ARGUMENT, err,
              "'chain' has 3 bindings, got 2");
  CHECK_FAILS(gpu_group_open(kernel, b, 3, &group, &err), SCONCE_BAD_ARGUMENT, err,
              "binding 1 of 'chain' has no buffer");
  b[1] = (struct gpu_binding){.buffer = buffer, .offset = 64};
  CHECK_FAILS(gpu_group_open(kernel, b, 3, &group, &err), SCONCE_BAD_ARGUMENT, err, "at 64");
  /* A storage buffer where the parameters belong: the driver's own validation error. */
  b[1] = (struct gpu_binding){.buffer = buffer};
  CHECK_FAILS(answer(gpu, gpu_group_open(kernel, b, 3, &group, &err), &err), SCONCE_GPU_ERROR, err,
              "binding buffers to 'chain/u32'");
  gpu_group_close(group);
  gpu_buffer_close(buffer);
  CHECK_OK(gpu_check(gpu, &err), err);
}

/* One buffer read and written in one dispatch breaks WebGPU's rule; the driver says so when the
 * commands are encoded, and the process must survive the submit that follows. */
static void an_invalid_dispatch_is_the_calls_error(void) {
  struct gpu *gpu = test_gpu();
  if (!gpu) return;
  struct gpu_kernel *kernel;
  struct gpu_buffer *buffer, *params;
  struct gpu_group *group;
  sconce_error err = {0};
  REQUIRE_OK(gpu_kernel_get(gpu, &probe_kernels[PROBE_CHAIN], &kernel, &err), err);
  REQUIRE_OK(gpu_buffer_open(gpu, GPU_TRANSIENT, 256, "both", &buffer, &err), err);
  REQUIRE_OK(gpu_buffer_open(gpu, GPU_PARAMS, 256, "p", &params, &err), err);
  struct gpu_binding b[] = {{.buffer = buffer}, {.buffer = buffer}, {.buffer = params}};
  REQUIRE_OK(gpu_group_open(kernel, b, 3, &group, &err), err);
  struct gpu_dispatch dispatch = {group, {1, 1, 1}};
  sconce_status status = gpu_submit(gpu, &(struct gpu_batch){&dispatch, 1, NULL, 0}, &err);
  if (status == SCONCE_OK) status = gpu_finish(gpu, &err); /* Dawn tells at completion */
  CHECK_EQ(status, SCONCE_GPU_ERROR);
  CHECK(strlen(err.text) > 20);
  CHECK_OK(gpu_check(gpu, &err), err); /* and the device goes on */
  struct gpu_dispatch far = {group, {70000, 1, 1}};
  CHECK_FAILS(gpu_submit(gpu, &(struct gpu_batch){&far, 1, NULL, 0}, &err), SCONCE_BAD_ARGUMENT,
              err, "70000 workgroups, at most 65535");
  gpu_group_close(group);
  gpu_buffer_close(buffer);
  gpu_buffer_close(params);
}

/* A software device takes its memory from this process, so a limit on the process makes it refuse
 * a buffer that is within all limits of WebGPU. */
static void out_of_memory_is_an_error_and_passes(void) {
  struct gpu *gpu = test_gpu();
  if (!gpu) return;
  struct gpu_buffer *buffer;
  sconce_error err = {0};
  CHECK_FAILS(gpu_buffer_open(gpu, GPU_TRANSIENT, UINT64_C(1) << 50, "huge", &buffer, &err),
              SCONCE_NO_GPU_MEMORY, err, "'huge' needs 1125899906842624 bytes");
  CHECK(buffer == NULL);
  if (gpu_info(gpu)->type != SCONCE_ADAPTER_SOFTWARE || !test_memory("VmSize:")) return;
#ifdef __SANITIZE_THREAD__
  return; /* its shadow needs address space too */
#endif
  uint64_t large = gpu_info(gpu)->max_buffer;
  if (large > 1000u << 20) large = 1000u << 20;
  test_limit_memory(64u << 20);
  CHECK_FAILS(answer(gpu, gpu_buffer_open(gpu, GPU_TRANSIENT, large, "large", &buffer, &err), &err),
              SCONCE_NO_GPU_MEMORY, err, "creating buffer 'large' of ");
  test_limit_memory(UINT64_MAX);
  gpu_buffer_close(buffer);
  REQUIRE_OK(gpu_buffer_open(gpu, GPU_TRANSIENT, 1 << 20, "small", &buffer, &err), err);
  gpu_buffer_close(buffer);
}

static void a_lost_device_fails_calls_and_closes(void) {
  struct gpu *gpu;
  sconce_error err = {0};
  REQUIRE_OK(gpu_open(&gpu, &(struct gpu_desc){0}, &err), err);
  struct gpu_kernel *kernel;
  struct gpu_buffer *buffer, *another, *params;
  struct gpu_group *group;
  struct gpu_read *read;
  REQUIRE_OK(gpu_kernel_get(gpu, &probe_kernels[PROBE_CHAIN], &kernel, &err), err);
  REQUIRE_OK(gpu_buffer_open(gpu, GPU_TRANSIENT, 256, "x", &buffer, &err), err);
  REQUIRE_OK(gpu_buffer_open(gpu, GPU_TRANSIENT, 256, "y", &another, &err), err);
  REQUIRE_OK(gpu_buffer_open(gpu, GPU_PARAMS, 256, "p", &params, &err), err);
  struct gpu_binding b[] = {{.buffer = buffer}, {.buffer = another}, {.buffer = params}};
  REQUIRE_OK(gpu_group_open(kernel, b, 3, &group, &err), err);
  REQUIRE_OK(gpu_read_open(gpu, 256, &read, &err), err);
  struct gpu_dispatch dispatch = {group, {1, 1, 1}};
  struct gpu_copy copy = {.from = another, .to = read, .size = 256};
  CHECK_OK(gpu_submit(gpu, &(struct gpu_batch){&dispatch, 1, &copy, 1}, &err), err);
  CHECK_OK(gpu_read_begin(read, &err), err);
  gpu_lose(gpu);
  const void *data;
  CHECK_FAILS(gpu_read_wait(read, &data, &err), SCONCE_DEVICE_LOST, err, "the device is lost");
  CHECK_FAILS(gpu_submit(gpu, &(struct gpu_batch){&dispatch, 1, NULL, 0}, &err), SCONCE_DEVICE_LOST,
              err, "lost");
  CHECK_FAILS(gpu_write(buffer, 0, "abcd", 4, &err), SCONCE_DEVICE_LOST, err, "lost");
  struct gpu_buffer *late;
  CHECK_FAILS(gpu_buffer_open(gpu, GPU_TRANSIENT, 4, "late", &late, &err), SCONCE_DEVICE_LOST, err,
              "lost");
  gpu_read_close(read);
  gpu_group_close(group);
  gpu_buffer_close(buffer);
  gpu_buffer_close(another);
  gpu_buffer_close(params);
  CHECK_EQ(gpu_stats(gpu)->buffers, 0);
  CHECK_EQ(gpu_stats(gpu)->groups, 0);
  gpu_close(gpu);
}

/* ---- choice, masks, caps --------------------------------------------------------------------- */

static void wrong_choices_name_what_there_is(void) {
  struct gpu *gpu;
  sconce_error err = {0};
  CHECK_FAILS(gpu_open(&gpu, &(struct gpu_desc){.adapter = "no such card"}, &err), SCONCE_NO_DEVICE,
              err, "contains 'no such card'; the first of ");
  CHECK_FAILS(gpu_open(&gpu, &(struct gpu_desc){.adapter = "15"}, &err), SCONCE_NO_DEVICE, err,
              "no adapter 15, there are");
  CHECK_FAILS(gpu_open(&gpu, &(struct gpu_desc){.library = "/nonexistent/lib.so"}, &err),
              SCONCE_NO_DEVICE, err, "/nonexistent/lib.so");
#ifdef SCONCE_WEBGPU_LINKED
  CHECK(strstr(err.text, "opens no library") != NULL);
#else
#ifdef _WIN32
  const char *other = "kernel32.dll";
#elif defined(__APPLE__)
  const char *other = "libSystem.B.dylib";
#else
  const char *other = "libm.so.6";
#endif
  CHECK_FAILS(gpu_open(&gpu, &(struct gpu_desc){.library = other}, &err), SCONCE_NO_DEVICE, err,
              "neither wgpu-native nor Dawn");
#endif
  CHECK_FAILS(gpu_open(&gpu, &(struct gpu_desc){.disable = "f16,rays"}, &err), SCONCE_BAD_ARGUMENT,
              err, "'rays'");
  CHECK_FAILS(gpu_open(&gpu, &(struct gpu_desc){.limits = "buffer=lots"}, &err),
              SCONCE_BAD_ARGUMENT, err, "'buffer=lots' is not a positive number");
  CHECK_FAILS(gpu_open(&gpu, &(struct gpu_desc){.limits = "textures=1"}, &err), SCONCE_BAD_ARGUMENT,
              err, "unknown limit 'textures=1'");
  CHECK_FAILS(gpu_open(&gpu, &(struct gpu_desc){.precision = "double"}, &err), SCONCE_BAD_ARGUMENT,
              err, "precision 'double' is neither exact nor fast");
  CHECK(gpu == NULL);
}

/* The caller's word, then the environment's, then what the device has. */
static void precision_is_a_choice(void) {
  const struct {
    const char *why, *asked, *variable, *disable;
    bool matrix_decides, fast; /* where there is f16 */
  } rows[] = {
      {"asked for", "fast", NULL, NULL, false, true},
      {"asked for, against the environment", "exact", "fast", NULL, false, false},
      {"the environment's", NULL, "fast", NULL, false, true},
      {"empty is nothing", "", "exact", NULL, false, false},
      {"not without f16", "fast", NULL, "f16", false, false},
      {"matrix units decide", NULL, NULL, NULL, true, true},
      {"they are disabled", NULL, NULL, "matrix", true, true},
  };
  const char *before = getenv("SCONCE_PRECISION");
  char kept[64];
  snprintf(kept, sizeof kept, "%s", before ? before : "");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct gpu *gpu;
    sconce_error err = {0};
    test_set_env("SCONCE_PRECISION", rows[i].variable);
    const struct gpu_desc desc = {.precision = rows[i].asked, .disable = rows[i].disable};
    REQUIRE_OK(gpu_open(&gpu, &desc, &err), err);
    const sconce_device_info *info = gpu_info(gpu);
    const bool want = info->f16 && rows[i].fast && (!rows[i].matrix_decides || info->matrix);
    CHECK_SAYS(info->fast == want, "%s", rows[i].why);
    CHECK(gpu_caps(gpu).fast == info->fast && (gpu_caps(gpu).matrices[0].m > 0) == info->matrix);
    gpu_close(gpu);
  }
  test_set_env("SCONCE_PRECISION", before ? kept : NULL);
}

/* The other library's adapter is taken for its matrix units, and for nothing else. */
static void libraries_are_compared(void) {
  static const char *const precisions[] = {NULL, "exact"};
  for (int i = 0; i < 2; i++) {
    struct gpu *gpu;
    sconce_error err = {0};
    const struct gpu_desc desc = {.library = "best", .precision = precisions[i]};
#ifdef SCONCE_WEBGPU_LINKED
    CHECK_FAILS(gpu_open(&gpu, &desc, &err), SCONCE_NO_DEVICE, err, "opens no library");
#else
    REQUIRE_OK(gpu_open(&gpu, &desc, &err), err);
    const sconce_device_info *info = gpu_info(gpu);
    CHECK((strcmp(info->library, "Dawn") == 0) == info->matrix);
    CHECK(!i || !info->matrix);
    /* It computes, and can be closed half open. */
    CHECK_OK(gpu_settle(gpu, &err), err);
    gpu_close(gpu);
    REQUIRE_OK(gpu_open_begin(&gpu, &desc, &err), err);
    bool done;
    CHECK_OK(gpu_open_poll(gpu, &done, &err), err);
    gpu_close(gpu);
#endif
  }
}

static void masked_features_stay_unused(void) {
  struct gpu *gpu;
  sconce_error err = {0};
  REQUIRE_OK(gpu_open(&gpu, &(struct gpu_desc){.disable = "f16,subgroups,timestamps,matrix"}, &err),
             err);
  const sconce_device_info *info = gpu_info(gpu);
  CHECK(!info->f16 && !info->subgroups && !info->timestamps && !info->matrix);
  CHECK_EQ(info->subgroup_max, 0);
  struct gpu_kernel *kernel;
  CHECK_FAILS(gpu_kernel_get(gpu, &probe_kernels[PROBE_SUBGROUP], &kernel, &err),
              SCONCE_UNSUPPORTED, err, "needs subgroups, which is not in use here");
  /* Past our own check the device itself must refuse: the feature was never asked for. */
  struct kernel sly = probe_kernels[PROBE_SUBGROUP];
  sly.needs = 0;
  CHECK_FAILS(answer(gpu, gpu_kernel_get(gpu, &sly, &kernel, &err), &err), SCONCE_GPU_ERROR, err,
              "subgroup");
  uint64_t time;
  CHECK_FAILS(gpu_profile(gpu, &(struct gpu_batch){0}, GPU_TIME_WHOLE, &time, &err),
              SCONCE_UNSUPPORTED, err, "timestamps");
  gpu_close(gpu);
}

static void capped_limits_are_respected(void) {
  struct gpu *gpu;
  sconce_error err = {0};
  REQUIRE_OK(gpu_open(&gpu, &(struct gpu_desc){.limits = "default,storage_binding=1048576"}, &err),
             err);
  const sconce_device_info *info = gpu_info(gpu);
  CHECK_EQ(info->max_storage_binding, 1048576);
  CHECK_EQ(info->max_buffer, 256 << 20);
  CHECK_EQ(info->max_storage_buffers, 8);
  CHECK_EQ(info->max_workgroup_bytes, 16384);
  CHECK_EQ(info->max_workgroup_invocations, 256);
  struct gpu_buffer *buffer, *params;
  struct gpu_kernel *kernel;
  struct gpu_group *group;
  CHECK_FAILS(gpu_buffer_open(gpu, GPU_TRANSIENT, 300 << 20, "big", &buffer, &err),
              SCONCE_NO_GPU_MEMORY, err, "the device allows 268435456");
  REQUIRE_OK(gpu_buffer_open(gpu, GPU_TRANSIENT, 2 << 20, "two", &buffer, &err), err);
  REQUIRE_OK(gpu_buffer_open(gpu, GPU_PARAMS, 256, "p", &params, &err), err);
  REQUIRE_OK(gpu_kernel_get(gpu, &probe_kernels[PROBE_CHAIN], &kernel, &err), err);
  struct gpu_binding b[] = {{.buffer = buffer}, {.buffer = buffer}, {.buffer = params}};
  CHECK_FAILS(gpu_group_open(kernel, b, 3, &group, &err), SCONCE_UNSUPPORTED, err,
              "2097152 bytes, the device binds at most 1048576");
  struct kernel wide = probe_kernels[PROBE_CHAIN];
  wide.set = "WG=512u";
  CHECK_FAILS(gpu_kernel_get(gpu, &wide, &kernel, &err), SCONCE_UNSUPPORTED, err,
              "'chain/u32' has workgroups of 512 x 1 x 1, the device allows 256 threads");
  gpu_buffer_close(buffer);
  gpu_buffer_close(params);
  gpu_close(gpu);
}

static void subgroup_sizes_are_known(void) {
  struct gpu *gpu = test_gpu();
  if (!gpu) return;
  const sconce_device_info *info = gpu_info(gpu);
  if (!info->subgroups) {
    test_skip("no subgroups");
    return;
  }
  CHECK(info->subgroup_min >= 4 && info->subgroup_max <= 128);
  CHECK(info->subgroup_min <= info->subgroup_max);
  uint32_t sizes[2] = {UINT32_MAX, 0};
  struct test_binding b[] = {{sizes, sizeof sizes}};
  sconce_error err = {0};
  REQUIRE_OK(test_dispatch(gpu, &probe_kernels[PROBE_SUBGROUP], b, one_group, &err), err);
  CHECK(sizes[0] >= info->subgroup_min && sizes[1] <= info->subgroup_max);
}

/* ---- faults ---------------------------------------------------------------------------------- */

static sconce_status open_and_run(const sconce_allocator *allocator, sconce_error *err) {
  struct gpu *gpu;
  TRY(gpu_open(&gpu, &(struct gpu_desc){.allocator = *allocator}, err));
  uint32_t x[4] = {1, 2, 3, 4}, y[4] = {0};
  struct chain_params p = {.n = 4, .add = 1};
  struct test_binding b[] = {{x, sizeof x}, {y, sizeof y}, {&p, sizeof p}};
  sconce_status status = test_dispatch(gpu, &probe_kernels[PROBE_CHAIN], b, one_group, err);
  if (status == SCONCE_OK) CHECK_EQ(y[3], 5);
  CHECK_EQ(gpu_stats(gpu)->buffers, 0);
  CHECK_EQ(gpu_stats(gpu)->groups, 0);
  gpu_close(gpu);
  return status;
}

static void every_failing_allocation_is_survived(void) {
  for (uint64_t n = 1; n < 1000; n++) {
    struct test_allocator alloc;
    test_allocator_init(&alloc, n);
    sconce_error err = {0};
    sconce_status status = open_and_run(&alloc.hook, &err);
    CHECK_EQ(alloc.live, 0);
    if (alloc.calls < n) {
      CHECK_OK(status, err);
      CHECK(n > 5);
      return;
    }
    if (status != SCONCE_NO_MEMORY)
      test_fail(__FILE__, __LINE__, "allocation %llu of %llu: %s (%s)", (unsigned long long)n,
                (unsigned long long)alloc.calls, sconce_status_name(status), err.text);
    if (test_failed()) return;
  }
  test_fail(__FILE__, __LINE__, "more than 1000 allocations");
}

const struct test suite_gpu[] = {
    TEST(a_kernel_computes),
    TEST(overrides_reach_the_pipeline),
    TEST(odd_tails_are_padded),
    TEST(a_cleared_buffer_is_zero),
    TEST(reading_is_begun_polled_and_ended),
    TEST(timestamps_are_per_dispatch),
    TEST(bad_wgsl_reports_the_compiler),
    TEST(a_pipeline_that_does_not_fit_is_reported),
    TEST(fixed_parameters_make_kernels_of_their_own),
    TEST(bindings_are_checked_before_the_driver_sees_them),
    TEST(an_invalid_dispatch_is_the_calls_error),
    TEST(out_of_memory_is_an_error_and_passes),
    TEST(a_lost_device_fails_calls_and_closes),
    TEST(wrong_choices_name_what_there_is),
    TEST(precision_is_a_choice),
    TEST(libraries_are_compared),
    TEST(masked_features_stay_unused),
    TEST(capped_limits_are_respected),
    TEST(subgroup_sizes_are_known),
    TEST(every_failing_allocation_is_survived),
    {0},
};
