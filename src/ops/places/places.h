/* A mask among indices stands for the places where it is true: how many only the device knows. */
#ifndef OPS_PLACES_H
#define OPS_PLACES_H

#include "graph/op.h"

/* [x, indices, out]: is one of the indices a mask? */
bool places_have_mask(const struct expansion *x);
/* The same with an index for each dim of the mask. */
SCONCE_CHECK sconce_status places_index(const struct expansion *x);
/* [x, indices, values, accumulate, out]: is there a mask, and values that differ from place to
 * place, or another index beside it? */
bool places_tell_values(const struct expansion *x);
SCONCE_CHECK sconce_status places_index_put(const struct expansion *x);

#endif
