/* Constants to the device. */
#ifndef RUN_UPLOAD_H
#define RUN_UPLOAD_H

#include "gpu/gpu.h"
#include "graph/graph.h"

/* Straight from the file's bytes; `fresh`: the buffer is new and so zero. */
SCONCE_CHECK sconce_status upload_constant(struct gpu_buffer *to, const struct tensor *t,
                                           bool fresh, const sconce_allocator *allocator,
                                           sconce_error *err);

#endif
