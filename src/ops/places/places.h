/* A mask among indices stands for the places where it is true: how many only the device knows. */
#ifndef OPS_PLACES_H
#define OPS_PLACES_H

#include "graph/op.h"

/* [x, indices, out]: is one of the indices a mask? */
bool places_have_mask(const struct expansion *x);
/* The same with an index for each dim of the mask. */
SCONCE_CHECK sconce_status places_index(const struct expansion *x);

#endif
