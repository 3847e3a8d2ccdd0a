/* Test support for what needs a device: see gpu.h. */
#include "gpu.h"

#include <string.h>

#include "check/tables.h"

enum { NOTED_MAX = 4096 };

static struct gpu *shared;
static struct kernel noted[NOTED_MAX];
static size_t n_noted;

struct gpu *gpu_of_tests(void *unused) {
  (void)unused;
  if (shared) {
    sconce_error err = {0};
    if (gpu_check(shared, &err) == SCONCE_OK) return shared;
    test_fail(__FILE__, __LINE__, "an earlier test left this error: %s", err.text);
    test_gpu_close();
  }
  sconce_error err = {0};
  if (gpu_open(&shared, &(struct gpu_desc){.precision = "fast"}, &err) != SCONCE_OK)
    test_fail(__FILE__, __LINE__, "no device: %s", err.text);
  return shared;
}

static bool ran(const struct kernel *row) {
  for (size_t i = 0; i < n_noted; i++)
    if (noted[i].wgsl == row->wgsl &&
        !strcmp(noted[i].set ? noted[i].set : "", row->set ? row->set : ""))
      return true; /* rows that say the same are one kernel */
  return false;
}

static void note(void *user, const struct kernel *kernel, uint64_t dispatches) {
  (void)user;
  if (dispatches && !ran(kernel) && n_noted < NOTED_MAX) noted[n_noted++] = *kernel;
}

void test_note_kernels(const struct gpu *gpu) { gpu_kernels(gpu, note, NULL); }

static void check_ran(void *user, const struct kernel *row) {
  const struct caps caps = gpu_caps(user);
  CHECK_SAYS(!kernel_runs(row, &caps) || ran(row), "kernel %s/%s was never dispatched",
             row->wgsl->name, row->name);
}

/* A row that this device can run but no test did is a kernel without a test. */
void every_kernel_row_was_dispatched(void) {
  struct gpu *gpu = test_gpu();
  if (!gpu) return;
  test_note_kernels(gpu);
  tables_each(check_ran, gpu);
}

void nothing_is_left_on_the_gpu(void) {
  struct gpu *gpu = test_gpu();
  if (!gpu) return;
  CHECK_EQ(gpu_stats(gpu)->buffers, 0);
  CHECK_EQ(gpu_stats(gpu)->groups, 0);
}

void test_gpu_close(void) {
  if (!shared) return;
  test_note_kernels(shared);
  gpu_close(shared);
  shared = NULL;
}

struct run {
  struct gpu_buffer *buffers[BINDINGS_MAX];
  struct gpu_read *reads[BINDINGS_MAX];
  struct gpu_group *group;
};

static sconce_status run_bound(struct gpu *gpu, const struct kernel *row, struct run *run,
                               struct test_binding *bindings, const uint32_t grid[3],
                               sconce_error *err) {
  struct gpu_kernel *kernel;
  TRY(gpu_kernel_get(gpu, row, &kernel, err));
  uint32_t n = row->wgsl->n_bindings, n_copies = 0;
  struct gpu_binding bound[BINDINGS_MAX];
  struct gpu_copy copies[BINDINGS_MAX];
  for (uint32_t i = 0; i < n; i++) {
    enum gpu_use use = row->wgsl->bindings[i] == BIND_PARAMS ? GPU_PARAMS : GPU_TRANSIENT;
    TRY(gpu_buffer_open(gpu, use, bindings[i].size, "test", &run->buffers[i], err));
    TRY(gpu_write(run->buffers[i], 0, bindings[i].data, bindings[i].size, err));
    bound[i] = (struct gpu_binding){.buffer = run->buffers[i]};
    if (row->wgsl->bindings[i] != BIND_WRITE) continue;
    uint64_t size = gpu_buffer_size(run->buffers[i]);
    TRY(gpu_read_open(gpu, size, &run->reads[i], err));
    copies[n_copies++] =
        (struct gpu_copy){.from = run->buffers[i], .to = run->reads[i], .size = size};
  }
  TRY(gpu_group_open(kernel, bound, n, &run->group, err));
  struct gpu_dispatch dispatch = {run->group, {grid[0], grid[1], grid[2]}};
  TRY(gpu_submit(gpu, &(struct gpu_batch){&dispatch, 1, copies, n_copies}, err));
  for (uint32_t i = 0; i < n; i++) {
    if (!run->reads[i]) continue;
    const void *data;
    TRY(gpu_read_begin(run->reads[i], err));
    TRY(gpu_read_wait(run->reads[i], &data, err));
    memcpy(bindings[i].data, data, bindings[i].size);
    gpu_read_end(run->reads[i]);
  }
  return SCONCE_OK;
}

sconce_status test_dispatch(struct gpu *gpu, const struct kernel *row,
                            struct test_binding *bindings, const uint32_t grid[3],
                            sconce_error *err) {
  struct run run = {0};
  sconce_status status = run_bound(gpu, row, &run, bindings, grid, err);
  gpu_group_close(run.group);
  for (uint32_t i = 0; i < BINDINGS_MAX; i++) {
    gpu_buffer_close(run.buffers[i]);
    gpu_read_close(run.reads[i]);
  }
  return status;
}
