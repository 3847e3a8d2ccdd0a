/* The public device calls, the measurements, and every kernel row through the compilers. */
#include "gpu.h"

#include "run/device.h"
#include "sconce_dev.h"

static void opens_describes_closes(void) {
  sconce_device *device;
  sconce_error err = {0};
  REQUIRE_OK(sconce_device_open(&device, NULL, &err), err);
  const sconce_device_info *info = sconce_device_describe(device);
  CHECK(info->name[0] && info->library[0] && info->api[0]);
  CHECK(info->max_storage_binding >= 1 << 20 && info->max_workgroup_invocations >= 128);
  CHECK(sconce_device_describe(device)->index < 16);
  sconce_device_close(device);
  sconce_device_close(NULL);
  CHECK(sconce_device_describe(NULL) == NULL);
  CHECK_FAILS(sconce_device_open(NULL, NULL, &err), SCONCE_BAD_ARGUMENT, err, "out is NULL");
}

static void count_adapter(void *user, uint32_t index, const sconce_device_info *info) {
  CHECK_EQ(index, *(uint32_t *)user);
  CHECK(info->name[0] && strcmp(info->api, "Null") != 0);
  ++*(uint32_t *)user;
}

static void lists_adapters_but_never_null(void) {
  uint32_t n = 0;
  sconce_error err = {0};
  CHECK_OK(sconce_adapters(NULL, count_adapter, &n, &err), err);
  CHECK(n > 0);
  CHECK_FAILS(sconce_adapters(NULL, NULL, NULL, &err), SCONCE_BAD_ARGUMENT, err, "each is NULL");
}

static void measures_dispatches_and_memory(void) {
  sconce_device *device;
  sconce_error err = {0};
  REQUIRE_OK(sconce_device_open(&device, NULL, &err), err);
  sconce_dispatch_costs costs;
  sconce_bandwidth bandwidth;
  CHECK_FAILS(sconce_measure_dispatch(device, 1, 1, &costs, &err), SCONCE_BAD_ARGUMENT, err,
              "1 dispatches, expected 2 to 10000");
  CHECK_FAILS(sconce_measure_dispatch(device, 10, 0, &costs, &err), SCONCE_BAD_ARGUMENT, err,
              "0 repeats");
  CHECK_OK(sconce_measure_dispatch(device, 11, 3, &costs, &err), err); /* odd: results overwrite */
  CHECK_OK(sconce_measure_dispatch(device, 20, 3, &costs, &err), err);
  CHECK(costs.dependent_wall_us > 0 && costs.submit_map_us > 0 && costs.write_us > 0);
  CHECK_OK(sconce_measure_bandwidth(device, 20 << 20, &bandwidth, &err), err);
  uint64_t most = sconce_device_describe(device)->max_storage_binding; /* may be capped */
  CHECK_EQ(bandwidth.size, most < 20 << 20 ? most : 20 << 20);
  CHECK(bandwidth.upload_bytes_per_s > 0);
  CHECK_EQ(gpu_stats(device->gpu)->buffers, 0);
  test_note_kernels(device->gpu);
  sconce_device_close(device);
}

static void report_row(void *user, const char *label, const char *error) {
  ++*(uint32_t *)user;
  if (error) test_fail(__FILE__, __LINE__, "%s: %s", label, error);
}

static void every_row_compiles_here(void) {
  uint32_t n = 0;
  sconce_error err = {0};
  struct gpu *gpu = test_gpu();
  if (!gpu) return;
  if (!strcmp(gpu_info(gpu)->library, "Dawn") || test_gpu_is_slow()) {
    test_skip("every_row_passes_tint, or lavapipe, compiles them all in a tenth of the time");
    return;
  }
  CHECK_OK(sconce_check_kernels(NULL, false, report_row, &n, &err), err);
  CHECK(n > 0);
}

/* Dawn's Null adapter offers every feature, so Tint sees every row, whatever this device is. */
static void every_row_passes_tint(void) {
  uint32_t n = 0;
  sconce_error err = {0};
  sconce_device_desc dawn = {.library = "dawn"};
  sconce_status status = sconce_check_kernels(&dawn, true, report_row, &n, &err);
  if (status == SCONCE_NO_DEVICE && strstr(err.text, "webgpu_dawn")) {
    test_skip("Dawn is not here (make dawn)");
    return;
  }
  CHECK_OK(status, err);
  CHECK(n > 0);
}

const struct test suite_device[] = {
    TEST(opens_describes_closes),         TEST(lists_adapters_but_never_null),
    TEST(measures_dispatches_and_memory), TEST(every_row_compiles_here),
    TEST(every_row_passes_tint),          {0},
};
