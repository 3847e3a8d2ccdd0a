/* What the caller and the environment take away from a device: features disabled, limits capped. */
#ifndef GPU_CONFIG_H
#define GPU_CONFIG_H

#include "base/status.h"

enum gpu_limit {
  LIMIT_BUFFER,
  LIMIT_STORAGE_BINDING,
  LIMIT_STORAGE_BUFFERS,
  LIMIT_WORKGROUP_BYTES,
  LIMIT_INVOCATIONS,
  LIMIT_SIZE_X,
  LIMIT_SIZE_Y,
  LIMIT_SIZE_Z,
  LIMIT_WORKGROUPS,
  LIMITS
};

struct gpu_config {
  bool no_f16, no_subgroups, no_timestamps, no_matrix, no_software;
  enum { PRECISION_OPEN, PRECISION_EXACT, PRECISION_FAST } precision;
  uint64_t cap[LIMITS]; /* UINT64_MAX: no cap */
  uint32_t lose_after;  /* see gpu_lose_after */
};

/* Reads the descriptor's strings (NULL: none) and SCONCE_DISABLE, SCONCE_LIMITS, SCONCE_PRECISION
 * and SCONCE_LOSE_AFTER. */
SCONCE_CHECK sconce_status config_read(struct gpu_config *config, const char *disable,
                                       const char *limits, const char *precision,
                                       sconce_error *err);

#endif
