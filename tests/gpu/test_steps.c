/* What takes time is begun and polled: opening, answers, fences, reads; and given up at any moment
 * without waiting and without a trace. */
#include "gpu.h"

#include "base/os.h"
#include "gpu/probe.h"

#include "chain.wgsl.h"

static bool errors_come_late(struct gpu *gpu) {
  return strcmp(gpu_info(gpu)->library, "wgpu-native") != 0;
}

/* A little time for the library between two polls; false: that was long enough. */
static bool again(uint32_t turn) {
  os_sleep_ns(turn < 100 ? 10000 : 1000000);
  return turn < 60000 && !test_failed();
}

static sconce_status open_in_steps(struct gpu **out, const struct gpu_desc *desc, uint32_t *polls,
                                   sconce_error *err) {
  TRY(gpu_open_begin(out, desc, err));
  *polls = 0;
  for (bool done = false; !done && again(*polls); ++*polls) TRY(gpu_open_poll(*out, &done, err));
  bool done = false;
  TRY(gpu_open_poll(*out, &done, err)); /* still done */
  CHECK(done);
  return SCONCE_OK;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Strings of the descriptor may go as soon as it is begun. */
static void a_device_opens_in_steps(void) {
  struct gpu *gpu = NULL;
  sconce_error err = {0};
  char adapter[] = "0", limits[] = "buffer=1048576";
  struct gpu_desc desc = {.adapter = adapter, .limits = limits, .no_blocking = true};
  REQUIRE_OK(gpu_open_begin(&gpu, &desc, &err), err);
  memset(adapter, 'x', sizeof adapter);
  memset(limits, 'x', sizeof limits);
  bool done = false;
  for (uint32_t i = 0; !done && again(i); i++) CHECK_OK(gpu_open_poll(gpu, &done, &err), err);
  CHECK(done);
  CHECK_EQ(gpu_info(gpu)->max_buffer, 1048576);
  CHECK_EQ(gpu_adapter_index(gpu), 0);
  if (gpu_info(gpu)->subgroups) CHECK(gpu_info(gpu)->subgroup_max >= 4);
  CHECK_EQ(gpu_stats(gpu)->buffers, 0); /* of the probe */
  gpu_close(gpu);
}

static void opening_is_given_up_at_every_step(void) {
  struct gpu *gpu = NULL;
  sconce_error err = {0};
  uint32_t polls = 0;
  REQUIRE_OK(open_in_steps(&gpu, &(struct gpu_desc){0}, &polls, &err), err);
  gpu_close(gpu);
  if (polls > 12) polls = 12;
  for (uint32_t n = 0; n <= polls && !test_failed(); n++) {
    struct test_allocator alloc;
    test_allocator_init(&alloc, UINT64_MAX);
    CHECK_OK(gpu_open_begin(&gpu, &(struct gpu_desc){.allocator = alloc.hook}, &err), err);
    bool done = false;
    for (uint32_t i = 0; i < n && !done; i++) CHECK_OK(gpu_open_poll(gpu, &done, &err), err);
    gpu_close(gpu);
    CHECK_EQ(alloc.live, 0);
  }
}

static void a_step_that_fails_says_why(void) {
  struct gpu *gpu = NULL;
  sconce_error err = {0};
  CHECK_FAILS(gpu_open_begin(&gpu, &(struct gpu_desc){.disable = "rays"}, &err),
              SCONCE_BAD_ARGUMENT, err, "'rays'");
  CHECK(gpu == NULL);
  REQUIRE_OK(gpu_open_begin(&gpu, &(struct gpu_desc){.adapter = "no such card"}, &err), err);
  sconce_status status = SCONCE_OK;
  bool done = false;
  for (uint32_t i = 0; status == SCONCE_OK && !done && again(i); i++)
    status = gpu_open_poll(gpu, &done, &err);
  CHECK_EQ(status, SCONCE_NO_DEVICE);
  CHECK(strstr(err.text, "contains 'no such card'") != NULL);
  gpu_close(gpu);
}

/* A name that is longer than any adapter's is no other one's beginning. */
static void a_long_name_is_nobodys(void) {
  struct gpu *gpu = NULL;
  sconce_error err = {0};
  char name[400];
  memset(name, 'l', sizeof name);
  name[sizeof name - 1] = 0;
  CHECK_FAILS(gpu_open(&gpu, &(struct gpu_desc){.adapter = name}, &err), SCONCE_NO_DEVICE, err,
              "no adapter's name contains 'llll");
}

/* ---- one chain of dispatches ----------------------------------------------------------------- */

struct chain {
  struct gpu *gpu;
  struct gpu_buffer *x, *y, *params;
  struct gpu_group *group;
  struct gpu_read *read;
};

static sconce_status chain_open(struct chain *c, struct gpu *gpu, sconce_error *err) {
  *c = (struct chain){.gpu = gpu};
  struct gpu_kernel *kernel;
  const struct chain_params p = {.n = 64, .add = 1};
  TRY(gpu_kernel_get(gpu, &probe_kernels[PROBE_CHAIN], &kernel, err));
  TRY(gpu_buffer_open(gpu, GPU_TRANSIENT, 256, "x", &c->x, err));
  TRY(gpu_buffer_open(gpu, GPU_TRANSIENT, 256, "y", &c->y, err));
  TRY(gpu_buffer_open(gpu, GPU_PARAMS, sizeof p, "p", &c->params, err));
  TRY(gpu_write(c->params, 0, &p, sizeof p, err));
  struct gpu_binding b[] = {{.buffer = c->x}, {.buffer = c->y}, {.buffer = c->params}};
  TRY(gpu_group_open(kernel, b, 3, &c->group, err));
  return gpu_read_open(gpu, 256, &c->read, err);
}

static void chain_close(struct chain *c) {
  gpu_read_close(c->read);
  gpu_group_close(c->group);
  gpu_buffer_close(c->x);
  gpu_buffer_close(c->y);
  gpu_buffer_close(c->params);
}

static sconce_status chain_submit(struct chain *c, uint32_t value, sconce_error *err) {
  TRY(gpu_write(c->x, 0, &value, sizeof value, err));
  struct gpu_dispatch d = {c->group, {1, 1, 1}};
  struct gpu_copy copy = {.from = c->y, .to = c->read, .size = 256};
  return gpu_submit(c->gpu, &(struct gpu_batch){&d, 1, &copy, 1}, err);
}

/* ---- nothing blocks -------------------------------------------------------------------------- */

static void all_of_it_without_blocking(void) {
  struct gpu *gpu = NULL;
  sconce_error err = {0};
  uint32_t polls;
  struct chain c;
  REQUIRE_OK(open_in_steps(&gpu, &(struct gpu_desc){.no_blocking = true}, &polls, &err), err);
  const struct kernel *row = &probe_kernels[PROBE_CHAIN];
  struct gpu_compile *compile;
  CHECK_OK(gpu_compile_begin(gpu, &row, 1, &compile, &err), err);
  bool done = false;
  for (uint32_t i = 0, n = 0; !done && again(i); i++)
    CHECK_OK(gpu_compile_poll(compile, &n, &done, &err), err);
  gpu_compile_end(compile, true);
  const uint32_t kernels = gpu_stats(gpu)->kernels;
  CHECK_OK(chain_open(&c, gpu, &err), err);
  CHECK_EQ(gpu_stats(gpu)->kernels, kernels);
  done = false;
  for (uint32_t i = 0; !done && again(i); i++) CHECK_OK(gpu_settle_poll(gpu, &done, &err), err);
  CHECK_OK(chain_submit(&c, 41, &err), err);
  CHECK_OK(gpu_read_begin(c.read, &err), err);
  const void *data = NULL;
  for (uint32_t i = 0; !data && again(i); i++) CHECK_OK(gpu_read_poll(c.read, &data, &err), err);
  if (data) CHECK_EQ(*(const uint32_t *)data, 42);
  gpu_read_end(c.read);
  chain_close(&c);
  gpu_close(gpu);
}

static void what_would_block_fails(void) {
  struct gpu *gpu = NULL;
  sconce_error err = {0};
  uint32_t polls;
  struct chain c;
  REQUIRE_OK(open_in_steps(&gpu, &(struct gpu_desc){.no_blocking = true}, &polls, &err), err);
  CHECK_OK(chain_open(&c, gpu, &err), err);
  CHECK_OK(chain_submit(&c, 1, &err), err);
  CHECK_FAILS(gpu_finish(gpu, &err), SCONCE_UNSUPPORTED, err, "nothing may wait here");
  CHECK_OK(gpu_read_begin(c.read, &err), err);
  const void *data = NULL;
  CHECK_FAILS(gpu_read_wait(c.read, &data, &err), SCONCE_UNSUPPORTED, err, "begin and poll");
  for (uint32_t i = 0; !data && again(i); i++) CHECK_OK(gpu_read_poll(c.read, &data, &err), err);
  if (data) CHECK_EQ(*(const uint32_t *)data, 2); /* it was not given up */
  chain_close(&c);
  gpu_close(gpu);
}

/* ---- fences ---------------------------------------------------------------------------------- */

static void a_fence_comes_after_its_work(void) {
  struct gpu *gpu = test_gpu();
  if (!gpu) return;
  sconce_error err = {0};
  struct chain c;
  REQUIRE_OK(chain_open(&c, gpu, &err), err);
  struct gpu_fence *fences[4];
  for (uint32_t i = 0; i < 4; i++) {
    CHECK_OK(chain_submit(&c, i, &err), err);
    CHECK_OK(gpu_fence_begin(gpu, &fences[i], &err), err);
  }
  bool done = false;
  for (uint32_t i = 0; !done && again(i); i++)
    CHECK_OK(gpu_fence_poll(fences[3], &done, &err), err);
  CHECK(done);
  for (uint32_t i = 0; i < 4; i++) { /* the device works in order */
    CHECK_OK(gpu_fence_poll(fences[i], &done, &err), err);
    CHECK(done);
    gpu_fence_close(fences[i]);
  }
  gpu_fence_close(NULL);
  chain_close(&c);
}

/* ---- given up -------------------------------------------------------------------------------- */

static void a_read_given_up_can_be_begun_again(void) {
  struct gpu *gpu = test_gpu();
  if (!gpu) return;
  sconce_error err = {0};
  struct chain c;
  REQUIRE_OK(chain_open(&c, gpu, &err), err);
  for (uint32_t i = 0; i < 20; i++) {
    CHECK_OK(chain_submit(&c, i, &err), err);
    CHECK_OK(gpu_read_begin(c.read, &err), err);
    const void *data = NULL;
    if (i % 3 == 1) CHECK_OK(gpu_read_poll(c.read, &data, &err), err);
    if (i % 4 == 3) CHECK_OK(gpu_read_wait(c.read, &data, &err), err);
    if (data) CHECK_EQ(*(const uint32_t *)data, i + 1);
    gpu_read_end(c.read);
    gpu_read_end(c.read); /* nothing more to do */
  }
  CHECK_OK(gpu_finish(gpu, &err), err);
  chain_close(&c);
}

/* The first map was to come after long work, which ends before the second one's. */
static void a_read_brings_nothing_of_one_given_up(void) {
  struct gpu *gpu = test_gpu();
  if (!gpu) return;
  sconce_error err = {0};
  struct chain c;
  REQUIRE_OK(chain_open(&c, gpu, &err), err);
  struct gpu_dispatch d[200];
  for (uint32_t i = 0; i < 200; i++) d[i] = (struct gpu_dispatch){c.group, {64, 1, 1}};
  for (uint32_t i = 0; i < 6; i++) {
    for (uint32_t twice = 0; twice < 2; twice++) {
      CHECK_OK(gpu_submit(gpu, &(struct gpu_batch){d, 200, NULL, 0}, &err), err);
      CHECK_OK(chain_submit(&c, 10 * i + twice, &err), err);
      CHECK_OK(gpu_read_begin(c.read, &err), err);
      if (!twice) gpu_read_end(c.read);
    }
    const void *data = NULL;
    for (uint32_t k = 0; !data && again(k); k++) CHECK_OK(gpu_read_poll(c.read, &data, &err), err);
    if (data) CHECK_EQ(*(const uint32_t *)data, 10 * i + 2);
    gpu_read_end(c.read);
  }
  chain_close(&c);
}

/* With answers owed for a map, for work, for objects. */
static void a_device_closes_with_answers_pending(void) {
  for (int what = 0; what < 4; what++) {
    struct test_allocator alloc;
    test_allocator_init(&alloc, UINT64_MAX);
    struct gpu *gpu = NULL;
    sconce_error err = {0};
    REQUIRE_OK(gpu_open(&gpu, &(struct gpu_desc){.allocator = alloc.hook}, &err), err);
    struct chain c;
    struct gpu_fence *fence = NULL;
    CHECK_OK(chain_open(&c, gpu, &err), err);
    if (what > 0) CHECK_OK(chain_submit(&c, 1, &err), err);
    if (what > 1) CHECK_OK(gpu_read_begin(c.read, &err), err);
    if (what > 2) CHECK_OK(gpu_fence_begin(gpu, &fence, &err), err);
    gpu_fence_close(fence);
    chain_close(&c);
    gpu_close(gpu);
    CHECK_EQ(alloc.live, 0);
  }
}

/* ---- late errors ----------------------------------------------------------------------------- */

/* Whoever takes the error, the read that it came across does not hand out what may be wrong. */
static void a_late_error_fails_the_reads_under_way(void) {
  struct gpu *gpu = test_gpu();
  if (!gpu) return;
  if (!errors_come_late(gpu)) {
    test_skip("errors are told at once");
    return;
  }
  sconce_error err = {0};
  struct chain c;
  struct gpu_buffer *closed;
  REQUIRE_OK(chain_open(&c, gpu, &err), err);
  REQUIRE_OK(gpu_buffer_open(gpu, GPU_QUERIES, 256, "closed", &closed, &err), err);
  REQUIRE_OK(gpu_settle(gpu, &err), err);
  CHECK_OK(chain_submit(&c, 1, &err), err);
  CHECK_OK(gpu_read_begin(c.read, &err), err);
  CHECK_OK(gpu_write(closed, 0, "abcd", 4, &err), err); /* it takes no copies */
  CHECK_FAILS(gpu_settle(gpu, &err), SCONCE_GPU_ERROR, err, "writing a buffer: ");
  const void *data = NULL;
  CHECK_FAILS(gpu_read_wait(c.read, &data, &err), SCONCE_GPU_ERROR, err,
              "an error came up meanwhile: writing a buffer: ");
  CHECK(data == NULL);
  CHECK_OK(chain_submit(&c, 5, &err), err); /* and all is well again */
  CHECK_OK(gpu_read_begin(c.read, &err), err);
  CHECK_OK(gpu_read_wait(c.read, &data, &err), err);
  if (data) CHECK_EQ(*(const uint32_t *)data, 6);
  gpu_buffer_close(closed);
  chain_close(&c);
}

/* Of a creation: it comes out when things are settled, with what was being done, once. */
static void a_late_error_of_a_creation_settles(void) {
  struct gpu *gpu = test_gpu();
  if (!gpu) return;
  if (!errors_come_late(gpu)) {
    test_skip("errors are told at once");
    return;
  }
  sconce_error err = {0};
  struct chain c;
  struct gpu_group *group;
  struct gpu_kernel *kernel;
  REQUIRE_OK(chain_open(&c, gpu, &err), err);
  CHECK_OK(gpu_kernel_get(gpu, &probe_kernels[PROBE_CHAIN], &kernel, &err), err);
  struct gpu_binding b[] = {{.buffer = c.x}, {.buffer = c.y}, {.buffer = c.x}}; /* no parameters */
  CHECK_OK(gpu_group_open(kernel, b, 3, &group, &err), err);
  sconce_status status = SCONCE_OK;
  bool done = false;
  for (uint32_t i = 0; !done && status == SCONCE_OK && again(i); i++)
    status = gpu_settle_poll(gpu, &done, &err);
  CHECK_EQ(status, SCONCE_GPU_ERROR);
  CHECK(strstr(err.text, "binding buffers to 'chain/u32': ") == err.text);
  CHECK(done);
  CHECK_OK(gpu_settle(gpu, &err), err);
  gpu_group_close(group);
  chain_close(&c);
}

const struct test suite_steps[] = {
    TEST(a_device_opens_in_steps),
    TEST(opening_is_given_up_at_every_step),
    TEST(a_step_that_fails_says_why),
    TEST(a_long_name_is_nobodys),
    TEST(all_of_it_without_blocking),
    TEST(what_would_block_fails),
    TEST(a_fence_comes_after_its_work),
    TEST(a_read_given_up_can_be_begun_again),
    TEST(a_read_brings_nothing_of_one_given_up),
    TEST(a_device_closes_with_answers_pending),
    TEST(a_late_error_fails_the_reads_under_way),
    TEST(a_late_error_of_a_creation_settles),
    {0},
};
