/* What a public device handle is made of; for src/run only. */
#ifndef RUN_DEVICE_H
#define RUN_DEVICE_H

#include "gpu/gpu.h"

struct sconce_device {
  sconce_allocator allocator;
  sconce_log log;
  struct gpu *gpu;
  char passes_off[128]; /* as struct graph has it */
};

#endif
