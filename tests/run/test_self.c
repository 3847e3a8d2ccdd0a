/* The self-check from C: every row is told once, and rows that a device is to avoid. */
#include "gpu.h"

#include "check/tables.h"
#include "run/device.h"
#include "sconce_dev.h"

struct told {
  uint32_t rows, tried, unexplained;
};

static void take(void *user, const sconce_self_row *row) {
  struct told *t = user;
  t->rows++;
  t->tried += row->runs > 0;
  t->unexplained += (row->why == NULL) != (row->runs > 0 && !row->wrong);
}

static void count(void *user, const struct kernel *row) {
  (void)row;
  ++*(uint32_t *)user;
}

static void every_row_is_told(void) {
  sconce_device *device;
  sconce_error err = {0};
  REQUIRE_OK(sconce_device_open(&device, NULL, &err), err);
  struct told told = {0};
  uint32_t rows = 0;
  tables_of_operators(count, &rows);
  sconce_self_desc desc = {.filter = "fill/", .each = take, .user = &told};
  sconce_self_result result;
  CHECK_OK(sconce_check_self(device, &desc, &result, &err), err);
  CHECK(told.rows > 0 && told.rows <= rows); /* rows that two tables share come once */
  CHECK_EQ(told.unexplained, 0);
  CHECK_EQ(result.tried, told.tried);
  CHECK_EQ(result.tried + result.skipped, told.rows);
  CHECK(result.tried > 0 && result.checks > 0);
  CHECK_EQ(result.wrong + result.checks_failed + result.checks_left, 0);
  desc.filter = NULL;
  desc.seconds = 1e-9; /* no time for anything */
  CHECK_OK(sconce_check_self(device, &desc, &result, &err), err);
  CHECK(result.checks == 0 && result.checks_left > 100 && result.tried == 0);
  CHECK_FAILS(sconce_check_self(device, NULL, &result, &err), SCONCE_BAD_ARGUMENT, err, "NULL");
  CHECK_FAILS(sconce_check_self(NULL, &desc, &result, &err), SCONCE_BAD_ARGUMENT, err, "NULL");
  desc.each = NULL;
  CHECK_FAILS(sconce_check_self(device, &desc, &result, &err), SCONCE_BAD_ARGUMENT, err, "NULL");
  CHECK_EQ(gpu_stats(device->gpu)->buffers, 0);
  sconce_device_close(device);
}

static void rows_to_avoid_must_exist(void) {
  static const struct {
    const char *avoid, *says;
  } bad[] = {
      {"softmax/nothing", "called 'softmax/nothing'"},
      {"softmax/f32,softmax", "called 'softmax'"},
      {"all", "called 'all'"},
  };
  sconce_device *device;
  sconce_error err = {0};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    CHECK_FAILS(sconce_device_open(&device, &(sconce_device_desc){.avoid = bad[i].avoid}, &err),
                SCONCE_BAD_ARGUMENT, err, bad[i].says);
  CHECK_OK(
      sconce_device_open(&device, &(sconce_device_desc){.avoid = "softmax/f32,where/bytes"}, &err),
      err);
  if (!device) return;
  CHECK_TEXT(gpu_caps(device->gpu).avoid, "softmax/f32,where/bytes");
  gpu_lose(device->gpu); /* it is avoided on what takes its place, too */
  CHECK_OK(sconce_device_recover(device, &err), err);
  CHECK_TEXT(gpu_caps(device->gpu).avoid, "softmax/f32,where/bytes");
  sconce_device_close(device);
}

const struct test suite_self[] = {TEST(every_row_is_told), TEST(rows_to_avoid_must_exist), {0}};
