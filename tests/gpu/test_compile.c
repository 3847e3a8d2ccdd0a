/* Kernels compiled ahead, while the device is being written to. */
#include "gpu.h"

#include "base/os.h"
#include "gpu/probe.h"
#include "graph/op.h"

#include "chain.wgsl.h"

enum { ROWS = 12 };

static bool no_threads; /* for fresh_gpu */

static struct gpu *fresh_gpu(const sconce_allocator *allocator, sconce_error *err) {
  struct gpu_desc desc = {.no_threads = no_threads};
  if (allocator) desc.allocator = *allocator;
  struct gpu *gpu = NULL;
  return gpu_open(&gpu, &desc, err) == SCONCE_OK ? gpu : NULL;
}

/* Rows of one table that the device can run; a real model's are no simpler. */
static uint32_t some_rows(struct gpu *gpu, const struct kernel *out[ROWS]) {
  const struct op *op = op_find(text_of("aten.mul.Tensor"));
  const struct caps caps = gpu_caps(gpu);
  uint32_t n = 0;
  for (const struct kernel *row = op ? op->tables[0] : NULL; row && row->name && n < ROWS; row++)
    if (kernel_runs(row, &caps)) out[n++] = row;
  CHECK(n > 3);
  return n;
}

static sconce_status write_meanwhile(struct gpu *gpu, struct gpu_buffer *buffer,
                                     sconce_error *err) {
  for (uint32_t i = 0; i < 64; i++) {
    TRY(gpu_write(buffer, 4 * (uint64_t)i, &i, sizeof i, err));
    TRY(gpu_submit(gpu, &(struct gpu_batch){0}, err));
    TRY(gpu_finish(gpu, err));
  }
  return SCONCE_OK;
}

static sconce_status compile_and_write(struct gpu *gpu, const struct kernel *const *rows,
                                       uint32_t n, sconce_error *err) {
  struct gpu_buffer *buffer;
  TRY(gpu_buffer_open(gpu, GPU_TRANSIENT, 256, "b", &buffer, err));
  struct gpu_compile *c;
  sconce_status status = gpu_compile_begin(gpu, rows, n, &c, err);
  if (status == SCONCE_OK) {
    status = write_meanwhile(gpu, buffer, err);
    gpu_compile_end(c, true);
  }
  gpu_buffer_close(buffer);
  return status;
}

static uint32_t kernels_of(struct gpu *gpu) { return gpu_stats(gpu)->kernels; }

static void check_compiled_once(void) {
  sconce_error err = {0};
  struct gpu *gpu = fresh_gpu(NULL, &err);
  REQUIRE_OK(err.status, err);
  const struct kernel *rows[2 * ROWS];
  const uint32_t n = some_rows(gpu, rows), before = kernels_of(gpu);
  memcpy(rows + n, rows, n * sizeof *rows);
  struct gpu_kernel *known;
  CHECK_OK(gpu_kernel_get(gpu, rows[1], &known, &err), err);
  CHECK_OK(compile_and_write(gpu, rows, 2 * n, &err), err);
  const uint32_t after = kernels_of(gpu);
  CHECK(after > before + 1 && after <= before + n);
  for (uint32_t i = 0; i < n; i++) {
    struct gpu_kernel *kernel;
    CHECK_OK(gpu_kernel_get(gpu, rows[i], &kernel, &err), err);
    if (i == 1) CHECK(kernel == known);
  }
  CHECK_EQ(kernels_of(gpu), after);
  CHECK_OK(compile_and_write(gpu, rows, n, &err), err); /* nothing is left to do */
  CHECK_OK(compile_and_write(gpu, NULL, 0, &err), err);
  CHECK_EQ(kernels_of(gpu), after);
  gpu_close(gpu);
}

static void each_is_compiled_once(void) {
  check_compiled_once();
  no_threads = true; /* then by the caller, at the end */
  check_compiled_once();
  no_threads = false;
}

static void they_compute(void) {
  sconce_error err = {0};
  struct gpu *gpu = fresh_gpu(NULL, &err);
  REQUIRE_OK(err.status, err);
  const struct kernel *rows[ROWS + 1];
  const uint32_t n = some_rows(gpu, rows);
  rows[n] = &probe_kernels[PROBE_CHAIN];
  CHECK_OK(compile_and_write(gpu, rows, n + 1, &err), err);
  const uint32_t kernels = kernels_of(gpu);
  uint32_t x[4] = {1, 2, 3, 4}, y[4] = {0};
  struct chain_params p = {.n = 4, .add = 1};
  struct test_binding b[] = {{x, sizeof x}, {y, sizeof y}, {&p, sizeof p}};
  const uint32_t grid[3] = {1, 1, 1};
  CHECK_OK(test_dispatch(gpu, rows[n], b, grid, &err), err);
  CHECK_EQ(y[3], 5);
  CHECK_EQ(kernels_of(gpu), kernels);
  gpu_close(gpu);
}

/* What does not compile is the matter of those who use it. */
static void a_broken_one_is_left_out(void) {
  static const char *const texts[] = {
      "@compute @workgroup_size(1) fn main() { let a: u32 = nothing; }\n", /* no shader */
      "@compute @workgroup_size(1) fn other() {}\n",                       /* no pipeline */
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    sconce_error err = {0};
    struct gpu *gpu = fresh_gpu(NULL, &err);
    REQUIRE_OK(err.status, err);
    struct wgsl broken = chain_wgsl;
    broken.name = "broken";
    broken.uses = "";
    broken.text = texts[i];
    struct kernel row = {"row", &broken, NULL, 0};
    const struct kernel *rows[ROWS + 1];
    const uint32_t n = some_rows(gpu, rows), before = kernels_of(gpu);
    rows[n] = rows[1];
    rows[1] = &row;
    CHECK_OK(compile_and_write(gpu, rows, n + 1, &err), err);
    CHECK(kernels_of(gpu) > before + 1 && kernels_of(gpu) <= before + n);
    struct gpu_kernel *kernel;
    sconce_status status = gpu_kernel_get(gpu, &row, &kernel, &err);
    if (status == SCONCE_OK) status = gpu_settle(gpu, &err); /* Dawn's errors come late */
    CHECK_EQ(status, SCONCE_GPU_ERROR);
    CHECK(strstr(err.text, "'broken/row'") != NULL);
    CHECK_OK(gpu_check(gpu, &err), err);
    gpu_close(gpu);
  }
}

/* Writing to a buffer that takes no copies is an error that the driver finds. It is the write's,
 * with kernels that compile beside it and with one that does not. */
static void a_failed_write_is_noticed(void) {
  struct wgsl broken = chain_wgsl;
  broken.name = "broken";
  broken.uses = "";
  broken.text = "@compute @workgroup_size(1) fn main() { let a: u32 = nothing; }\n";
  struct kernel row = {"row", &broken, NULL, 0};
  for (int bad = 0; bad < 2; bad++) {
    sconce_error err = {0};
    struct gpu *gpu = fresh_gpu(NULL, &err);
    REQUIRE_OK(err.status, err);
    const struct kernel *rows[ROWS + 1];
    const uint32_t n = some_rows(gpu, rows);
    rows[n] = &row;
    struct gpu_buffer *closed;
    struct gpu_compile *c = NULL;
    CHECK_OK(gpu_buffer_open(gpu, GPU_QUERIES, 256, "closed", &closed, &err), err);
    CHECK_OK(gpu_compile_begin(gpu, rows, n + (uint32_t)bad, &c, &err), err);
    sconce_status status = gpu_write(closed, 0, "abcd", 4, &err);
    gpu_compile_end(c, true);
    if (status == SCONCE_OK) status = gpu_finish(gpu, &err); /* Dawn's come late */
    CHECK_EQ(status, SCONCE_GPU_ERROR);
    CHECK(kernels_of(gpu) >= n - 1); /* two rows may be one kernel */
    gpu_buffer_close(closed);
    gpu_close(gpu);
  }
}

/* Two at a time compile the same rows; each kernel is kept once. */
static void several_at_a_time(void) {
  sconce_error err = {0};
  struct gpu *gpu = fresh_gpu(NULL, &err);
  REQUIRE_OK(err.status, err);
  const struct kernel *rows[ROWS];
  const uint32_t n = some_rows(gpu, rows), before = kernels_of(gpu);
  struct gpu_compile *c, *second;
  CHECK_OK(gpu_compile_begin(gpu, rows, n, &c, &err), err);
  CHECK_OK(gpu_compile_begin(gpu, rows, n, &second, &err), err);
  struct gpu_kernel *kernel;
  CHECK_OK(gpu_kernel_get(gpu, rows[0], &kernel, &err), err); /* and by somebody else meanwhile */
  gpu_compile_end(c, true);
  const uint32_t after = kernels_of(gpu);
  gpu_compile_end(second, true);
  CHECK_EQ(kernels_of(gpu), after);
  struct gpu_kernel *again;
  CHECK_OK(gpu_kernel_get(gpu, rows[0], &again, &err), err);
  CHECK(kernel == again);
  CHECK(after > before + 1 && after <= before + n);
  gpu_close(gpu);
}

/* Work goes on while a team compiles, some of it broken. */
static void dispatches_go_on_meanwhile(void) {
  sconce_error err = {0};
  struct gpu *gpu = fresh_gpu(NULL, &err);
  REQUIRE_OK(err.status, err);
  struct wgsl broken[4];
  struct kernel bad[4];
  const struct kernel *rows[ROWS + 4];
  uint32_t n = some_rows(gpu, rows);
  const uint32_t good = n, before = kernels_of(gpu);
  for (int i = 0; i < 4; i++) {
    broken[i] = chain_wgsl;
    broken[i].uses = "";
    broken[i].text = "@compute @workgroup_size(1) fn main() { let a: u32 = nothing; }\n";
    bad[i] = (struct kernel){"row", &broken[i], NULL, 0};
    rows[n++] = &bad[i];
  }
  struct gpu_compile *c;
  CHECK_OK(gpu_compile_begin(gpu, rows, n, &c, &err), err);
  bool done = false;
  for (uint32_t i = 0, n_done = 0; !done && !test_failed(); i++) {
    uint32_t x[4] = {1, 2, 3, i}, y[4] = {0};
    struct chain_params p = {.n = 4, .add = 1};
    struct test_binding b[] = {{x, sizeof x}, {y, sizeof y}, {&p, sizeof p}};
    const uint32_t grid[3] = {1, 1, 1};
    CHECK_OK(test_dispatch(gpu, &probe_kernels[PROBE_CHAIN], b, grid, &err), err);
    CHECK_EQ(y[3], i + 1);
    CHECK_OK(gpu_compile_poll(c, &n_done, &done, &err), err);
  }
  gpu_compile_end(c, true);
  CHECK(kernels_of(gpu) > before + 1 && kernels_of(gpu) <= before + good + 1);
  gpu_close(gpu);
}

static void check_progress(bool alone) {
  sconce_error err = {0};
  no_threads = alone;
  struct gpu *gpu = fresh_gpu(NULL, &err);
  no_threads = false;
  REQUIRE_OK(err.status, err);
  const struct kernel *rows[ROWS];
  const uint32_t n = some_rows(gpu, rows);
  struct gpu_kernel *kernel;
  CHECK_OK(gpu_kernel_get(gpu, rows[0], &kernel, &err), err);
  struct gpu_compile *c;
  CHECK_OK(gpu_compile_begin(gpu, rows, n, &c, &err), err);
  uint32_t n_done = 0, last = 0, polls = 0;
  for (bool done = false; !done && !test_failed(); polls++) {
    CHECK_OK(gpu_compile_poll(c, &n_done, &done, &err), err);
    CHECK(n_done >= 1 && n_done >= last && n_done <= n && done == (n_done == n));
    if (n_done == last) os_sleep_ns(100000);
    last = n_done;
  }
  if (alone && !strcmp(gpu_info(gpu)->library, "wgpu-native")) CHECK(polls > 2); /* one at a time */
  const uint32_t before = kernels_of(gpu);
  gpu_compile_end(c, true);
  CHECK(kernels_of(gpu) > before);
  gpu_close(gpu);
}

static void polls_tell_progress(void) {
  check_progress(false);
  check_progress(true);
}

/* At whatever moment, and whoever has kernels in hand. */
static void giving_up_waits_for_nothing(void) {
  for (uint32_t polls = 0; polls < 3; polls++) {
    struct test_allocator alloc;
    test_allocator_init(&alloc, UINT64_MAX);
    sconce_error err = {0};
    struct gpu *gpu = fresh_gpu(&alloc.hook, &err);
    REQUIRE_OK(err.status, err);
    const struct kernel *rows[ROWS];
    const uint32_t n = some_rows(gpu, rows), before = kernels_of(gpu);
    struct gpu_compile *c;
    CHECK_OK(gpu_compile_begin(gpu, rows, n, &c, &err), err);
    bool done = false;
    for (uint32_t i = 0, n_done; i < polls; i++)
      CHECK_OK(gpu_compile_poll(c, &n_done, &done, &err), err);
    gpu_compile_end(c, false);
    CHECK_EQ(kernels_of(gpu), before);
    if (polls % 2) CHECK_OK(compile_and_write(gpu, rows, n, &err), err);
    gpu_close(gpu);
    CHECK_EQ(alloc.live, 0);
  }
}

static void a_lost_device_ends_it(void) {
  sconce_error err = {0};
  struct gpu *gpu = fresh_gpu(NULL, &err);
  REQUIRE_OK(err.status, err);
  const struct kernel *rows[ROWS];
  const uint32_t n = some_rows(gpu, rows);
  struct gpu_compile *c;
  CHECK_OK(gpu_compile_begin(gpu, rows, n, &c, &err), err);
  gpu_lose(gpu);
  gpu_compile_end(c, true);
  CHECK_FAILS(gpu_check(gpu, &err), SCONCE_DEVICE_LOST, err, "the device is lost");
  CHECK_FAILS(gpu_compile_begin(gpu, rows, n, &c, &err), SCONCE_DEVICE_LOST, err, "lost");
  CHECK(c == NULL);
  gpu_close(gpu);
}

static void every_failing_allocation_is_survived(void) {
  for (uint64_t n = 1; n < 1000; n++) {
    struct test_allocator alloc;
    test_allocator_init(&alloc, n);
    sconce_error err = {0};
    struct gpu *gpu = fresh_gpu(&alloc.hook, &err);
    const struct kernel *rows[ROWS];
    if (gpu) (void)compile_and_write(gpu, rows, some_rows(gpu, rows) > 2 ? 2 : 0, &err);
    gpu_close(gpu);
    CHECK_EQ(alloc.live, 0);
    if (alloc.calls < n) {
      CHECK_OK(err.status, err);
      return;
    }
    CHECK_EQ(err.status, SCONCE_NO_MEMORY);
    if (test_failed()) return;
  }
  test_fail(__FILE__, __LINE__, "more than 1000 allocations");
}

const struct test suite_compile[] = {
    TEST(each_is_compiled_once),
    TEST(they_compute),
    TEST(a_broken_one_is_left_out),
    TEST(a_failed_write_is_noticed),
    TEST(several_at_a_time),
    TEST(dispatches_go_on_meanwhile),
    TEST(polls_tell_progress),
    TEST(giving_up_waits_for_nothing),
    TEST(a_lost_device_ends_it),
    TEST(every_failing_allocation_is_survived),
    {0},
};
