/* Compiles every row of every kernel table, without running any. */
#include "sconce_dev.h"

#include "check/tables.h"
#include "gpu/probe.h"
#include "graph/op.h"
#include "run/device.h"

#include <stdio.h>

/* Have operators before this one listed the table, or this one earlier in its own list? */
static bool is_seen(const struct op *here, const struct kernel *const *at) {
  for (const struct op *const *family = op_families; *family; family++)
    for (const struct op *op = *family; op->name; op++)
      for (const struct kernel *const *table = op->tables; table && *table; table++) {
        if (op == here && table == at) return false;
        if (*table == *at) return true;
      }
  return false;
}

void tables_of_operators(void (*each)(void *user, const struct kernel *row), void *user) {
  for (const struct op *const *family = op_families; *family; family++)
    for (const struct op *op = *family; op->name; op++)
      for (const struct kernel *const *table = op->tables; table && *table; table++) {
        if (is_seen(op, table)) continue;
        for (const struct kernel *row = *table; row->name; row++) each(user, row);
      }
}

void tables_each(void (*each)(void *user, const struct kernel *row), void *user) {
  for (const struct kernel *row = probe_kernels; row->name; row++) each(user, row);
  tables_of_operators(each, user);
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
    open.precision = desc->precision;
    open.allocator = desc->allocator;
    open.log = desc->log;
    if (!null_adapter) open.adapter = desc->adapter;
  }
  if (!open.precision) open.precision = "fast"; /* all rows */
  TRY(gpu_open(&gpu, &open, err));
  struct check check = {gpu, each, user};
  tables_each(check_row, &check);
  gpu_close(gpu);
  return SCONCE_OK;
}
