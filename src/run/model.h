/* What public model and method handles are made of; for src/run only. */
#ifndef RUN_MODEL_H
#define RUN_MODEL_H

#include "base/os.h"
#include "format/ptd.h"
#include "run/device.h"
#include "run/draw.h"
#include "run/exec.h"

struct sconce_model {
  sconce_device *device; /* NULL: opened by model_open, for looking only */
  struct arena arena;
  struct os_map map; /* of path */
  uint8_t *owned;    /* what `read` filled */
  size_t owned_size;
  struct os_map *data_maps; /* of .ptd files */
  struct ptd *data_files;
  struct ptd_set data;
  struct pte pte;
  struct ptd_source source;
};

/* The files alone: no device, and external tensors may be missing (see ptd_set_match). */
SCONCE_CHECK sconce_status model_open(sconce_model **out, const sconce_allocator *allocator,
                                      const sconce_model_desc *desc, sconce_error *err);

/* The program's method as one graph: delegates and portable calls inlined, inputs and outputs set,
 * the choice of a token behind a language model; not yet finished. */
SCONCE_CHECK sconce_status program_build(struct graph *g, sconce_model *model,
                                         const struct pte_method *method, struct draw *draw,
                                         sconce_error *err);

#endif
