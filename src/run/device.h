/* What a public device handle is made of; for src/run and the rooms around it. */
#ifndef RUN_DEVICE_H
#define RUN_DEVICE_H

#include "gpu/gpu.h"

struct sconce_device {
  sconce_allocator allocator;
  sconce_log log;
  struct gpu *gpu;
  char *asked; /* by the descriptor: library, adapter, disable, limits, precision, avoid, each with
                  a NUL */
  size_t asked_size;
  bool no_threads;
  bool ready;
  uint32_t users;              /* the caller and the models */
  struct sconce_model *models; /* that are open or being opened */
  char passes_off[128];        /* as struct graph has it */
  uint64_t piece_ns;           /* of states that are opened; 0: PIECE_NS. For tests */
};

/* The descriptor as it was; absent strings are NULL. Valid as long as the device. */
struct gpu_desc device_gpu_desc(const sconce_device *device);
const char *device_avoid(const sconce_device *device); /* of the descriptor; NULL: nothing */
/* Is it open? */
SCONCE_CHECK sconce_status device_check_ready(const sconce_device *device, sconce_error *err);

/* Ends the device when its last user is gone: one less, with the lock held, then free without it.
 */
bool device_drop(sconce_device *device); /* true: device_free is due */
void device_free(sconce_device *device);

/* The lock of a device, NULL: none. In between others work on it. */
void device_leave(sconce_device *device);
void device_enter(sconce_device *device);

/* The end of a public function: the call is made with the device's lock held. */
#define LOCKED(gpu, call)                                                                          \
  do {                                                                                             \
    gpu_lock(gpu);                                                                                 \
    const sconce_status locked_ = (call);                                                          \
    gpu_unlock(gpu);                                                                               \
    return locked_;                                                                                \
  } while (0)

#endif
