/* Constants that the host reads before the graph is finished: those that the graph has in another
 * dtype or order of dims than the file, and those whose elements become scalars. */
#ifndef RUN_CONSTANTS_H
#define RUN_CONSTANTS_H

#include "format/data.h"
#include "run/model.h"

struct host_constant {
  struct host_constant *next;
  uint32_t value;             /* of the graph */
  struct extent bytes;        /* in the file */
  bool raw;                   /* wanted as it is; else converted from */
  struct data_shape shape;    /* …what it is in the file */
  struct held held;           /* raw */
  struct made_constant *made; /* …or shared with other graphs of the model */
};

/* May its bytes go to the device as they are in the file? */
bool constant_fits(const struct data_shape *shape);
/* Adds one to those wanted. shape: in the file; NULL: the host looks at it as it is. */
SCONCE_CHECK sconce_status constant_want(struct graph *g, struct constants *all, uint32_t value,
                                         struct extent bytes, const struct data_shape *shape,
                                         sconce_error *err);
/* Constants whose elements the host needs for scalars join them. */
SCONCE_CHECK sconce_status constants_want_scalars(struct graph *g, struct constants *all,
                                                  sconce_error *err);
/* Reads what is wanted, converts it, and gives it to the graph; !*done: a source has no bytes yet.
 * Of a file that is not in memory anyway no more than a piece is at hand. */
SCONCE_CHECK sconce_status constants_read(struct graph *g, sconce_model *model,
                                          struct constants *all, bool *done, sconce_error *err);
/* Before the graph is freed, and when nothing on the device is known by their bytes any more. */
void constants_give_back(sconce_model *model, struct constants *all);
void constants_free(sconce_model *model); /* what nobody gave back */

#endif
