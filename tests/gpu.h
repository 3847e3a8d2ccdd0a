/* Test support for what needs a device. */
#ifndef TEST_GPU_H
#define TEST_GPU_H

#include "gpu/gpu.h"
#include "harness.h"

/* One device for all tests, test_gpu(), opened on first use as the environment says, but with
 * rows for fast precision, so that each can be dispatched. Closed, and its kernels noted as
 * dispatched, by test_gpu_close. */
struct gpu *gpu_of_tests(void *unused);
void test_gpu_close(void);

/* Runs one kernel over buffers: data goes in, comes back. bindings[i].size bytes each; the last
 * one holds the parameters if the kernel has any. */
struct test_binding {
  void *data;
  size_t size;
};
sconce_status test_dispatch(struct gpu *gpu, const struct kernel *row,
                            struct test_binding *bindings, const uint32_t grid[3],
                            sconce_error *err);

/* Notes which kernels a device of the test's own ran, before it is closed. */
void test_note_kernels(const struct gpu *gpu);

/* Tests that the harness runs at the end of a whole run. */
void every_kernel_row_was_dispatched(void);
void nothing_is_left_on_the_gpu(void);

/* What a step takes for the time that a GPU needs is taken again by later ones; how many steps wait
 * at once depends on what else the machine does. Fewer allocations than these are no step's own. */
enum { IN_FLIGHT = 16 };

#endif
