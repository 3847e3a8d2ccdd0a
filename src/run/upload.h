/* Constants to the device. */
#ifndef RUN_UPLOAD_H
#define RUN_UPLOAD_H

#include "gpu/gpu.h"
#include "graph/graph.h"

struct upload {
  struct gpu *gpu;
  const sconce_allocator *allocator;
  bool fresh;        /* the buffers are new and so zero */
  uint64_t waiting;  /* bytes that the driver may still hold a copy of */
  uint64_t bytes;    /* written so far */
  struct span zeros; /* looked through last and found so */
};

/* Straight from the file's bytes. */
SCONCE_CHECK sconce_status upload_constant(struct upload *u, struct gpu_buffer *to,
                                           const struct tensor *t, sconce_error *err);

#endif
