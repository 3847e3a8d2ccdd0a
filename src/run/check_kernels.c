/* Compiles every row of every kernel table, without running any. */
#include "sconce_dev.h"

#include "gpu/probe.h"
#include "graph/op.h"
#include "run/device.h"
#include "run/tables.h"

#include <stdio.h>

void tables_each(void (*each)(void *user, const struct kernel *row), void *user) {
  for (const struct kernel *row = probe_kernels; row->name; row++) each(user, row);
  for (const struct op *const *family = op_families; *family; family++) {
    const struct kernel *seen[3] = {0}; /* operators of a family share tables */
    for (const struct op *op = *family; op->name; op++)
      for (int t = 0; t < 3 && op->kernels[t]; t++) {
        if (op->kernels[t] == seen[t]) continue;
        seen[t] = op->kernels[t];
        for (const struct kernel *row = op->kernels[t]; row->name; row++) each(user, row);
      }
  }
}

struct check {
  struct gpu *gpu;
  void (*each)(void *user, const char *label, const char *error);
  void *user;
};

static void check_row(void *user, const struct kernel *row) {
  const struct check *check = user;
  const struct caps caps = gpu_caps(check->gpu);
  if (!caps_offer(&caps, row->needs)) return;
  char label[120];
  snprintf(label, sizeof label, "%s/%s", row->wgsl->name, row->name);
  sconce_error why = {0};
  sconce_status status = gpu_kernel_check(check->gpu, row, &why);
  check->each(check->user, label, status == SCONCE_OK ? NULL : why.text);
}

sconce_status sconce_check_kernels(const sconce_device_desc *desc, bool null_adapter,
                                   void (*each)(void *user, const char *label, const char *error),
                                   void *user, sconce_error *err) {
  struct gpu *gpu;
  struct gpu_desc open = {.allow_null = null_adapter, .adapter = null_adapter ? "null" : NULL};
  if (desc) {
    open.library = desc->library;
    open.disable = desc->disable;
    open.limits = desc->limits;
    open.allocator = desc->allocator;
    open.log = desc->log;
    if (!null_adapter) open.adapter = desc->adapter;
  }
  TRY(gpu_open(&gpu, &open, err));
  struct check check = {gpu, each, user};
  tables_each(check_row, &check);
  gpu_close(gpu);
  return SCONCE_OK;
}
