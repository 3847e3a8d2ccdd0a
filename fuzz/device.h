/* A device for targets that run what they read. */
#ifndef FUZZ_DEVICE_H
#define FUZZ_DEVICE_H

#include "sconce.h"

/* Opened at the first call; ends the process where there is none. */
sconce_device *fuzz_device(const char *no_fusion);

/* A file may be refused in any way, but not by the WebGPU library: what gets so far was let through
 * by us. Ends the process if it was. */
void fuzz_not_by_the_library(const sconce_error *err);

#endif
