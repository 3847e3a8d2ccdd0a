#include "device.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST = 2 };

sconce_device *fuzz_device(const char *no_fusion) {
  static struct {
    const char *no_fusion;
    sconce_device *device;
  } all[MOST];
  static int n;
  for (int i = 0; i < n; i++)
    if (all[i].no_fusion == no_fusion) return all[i].device;
  if (n == MOST) abort();
  sconce_error err;
  const sconce_device_desc desc = {.no_fusion = no_fusion, .log = {.level = SCONCE_LOG_ERROR}};
  all[n].no_fusion = no_fusion;
  if (sconce_device_open(&all[n].device, &desc, &err) != SCONCE_OK) {
    fprintf(stderr, "nothing would be run: %s\n", err.text);
    exit(1); /* executions that run nothing are no executions */
  }
  return all[n++].device;
}

void fuzz_not_by_the_library(const sconce_error *err) {
  if (err->status != SCONCE_GPU_ERROR && err->status != SCONCE_DEVICE_LOST) return;
  fprintf(stderr, "%s: %s\n", sconce_status_name(err->status), err->text);
  abort();
}
