/* Constants that the host reads before the graph is finished: those that the graph has in another
 * dtype or order of dims than the file, and those whose elements become scalars. */
#ifndef RUN_CONSTANTS_H
#define RUN_CONSTANTS_H

#include "format/data.h"
#include "run/model.h"

struct host_constant {
  struct host_constant *next;
  uint32_t value;          /* of the graph */
  struct extent bytes;     /* in the file */
  bool raw;                /* wanted as it is; else converted from */
  struct data_shape shape; /* …what it is in the file */
  struct held held;
};

/* May its bytes go to the device as they are in the file? */
bool constant_fits(const struct data_shape *shape);
/* Adds one to *wanted. shape: in the file; NULL: the host looks at it as it is. */
SCONCE_CHECK sconce_status constant_want(struct graph *g, struct host_constant **wanted,
                                         uint32_t value, struct extent bytes,
                                         const struct data_shape *shape, sconce_error *err);
/* Constants whose elements the host needs for scalars join *wanted. */
SCONCE_CHECK sconce_status constants_want_scalars(struct graph *g, struct host_constant **wanted,
                                                  sconce_error *err);
/* Reads them, converts, and gives them to the graph; !*done: a source has no bytes yet. */
SCONCE_CHECK sconce_status constants_read(struct graph *g, sconce_model *model,
                                          struct host_constant **wanted, bool *done,
                                          sconce_error *err);

#endif
