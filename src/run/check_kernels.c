/* Compiles every row of every kernel table, without running any. */
#include "sconce_dev.h"

#include "gpu/probe.h"
#include "run/device.h"
#include "run/tables.h"

#include <stdio.h>

const struct kernel *const kernel_tables[] = {
    probe_kernels,
    NULL,
};

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
  for (const struct kernel *const *table = kernel_tables; *table; table++)
    for (const struct kernel *row = *table; row->name; row++) {
      if (!gpu_offers(gpu, row->needs)) continue;
      char label[120];
      snprintf(label, sizeof label, "%s/%s", row->wgsl->name, row->name);
      struct gpu_kernel *kernel;
      sconce_error why = {0};
      sconce_status status = gpu_kernel_get(gpu, row, NULL, &kernel, &why);
      each(user, label, status == SCONCE_OK ? NULL : why.text);
    }
  gpu_close(gpu);
  return SCONCE_OK;
}
