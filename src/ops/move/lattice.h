/* Where elements come from: regular ones of a tensor, followed back through views, permutations and
 * selections. */
#ifndef OPS_LATTICE_H
#define OPS_LATTICE_H

#include "graph/op.h"

enum { LATTICE_AXES = 3 };

/* Element (i, j, k) is number base + i · stride[0] + j · stride[1] + k · stride[2] of a value, by
 * live dims. */
struct lattice {
  uint32_t value;
  int64_t base;
  int64_t count[LATTICE_AXES], stride[LATTICE_AXES];
};

/* The same elements in argument 0 of the node that makes the value; false, with nothing changed,
 * if it does more than move them, or if they are not regular there. */
bool lattice_back(struct plan *p, const struct node *maker, struct lattice *l);
bool lattice_same(const struct lattice *a, const struct lattice *b);

#endif
