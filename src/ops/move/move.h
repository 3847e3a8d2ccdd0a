/* Moving elements: what slices, permutations, pads and concatenations have in common. */
#ifndef OPS_MOVE_H
#define OPS_MOVE_H

#include "graph/op.h"

enum { MOVE_MAX = 12 };
/* As move.wgsl counts them. */
enum move_edge { EDGE_FILL, EDGE_REFLECTED, EDGE_NEAREST, EDGE_AGAIN };

/* Every element of y, in coordinates c of y's dims (of which some may be split), takes
 * x[base + sum((c - from) * stride)]; where c - from is outside 0 … size - 1 it takes the fill, or
 * keeps what it has, or takes another element of the same dim. */
struct move {
  uint32_t rank;
  uint32_t dims[MOVE_MAX], size[MOVE_MAX];
  int64_t from[MOVE_MAX], stride[MOVE_MAX], base; /* elements */
  uint32_t fill;                                  /* bits of one element */
  bool keep;
  enum move_edge edge; /* not with keep */
};

extern const struct kernel move_kernels[];

/* Appends an inner loop without a window. */
SCONCE_CHECK sconce_status move_push(struct plan *p, struct move *m, uint32_t dim, int64_t stride);
/* Loops over y's live dims, with x's strides where x has y's rank. */
SCONCE_CHECK sconce_status move_begin(struct plan *p, struct move *m, const struct tensor *y,
                                      const struct tensor *x);
/* n's operator lists move_kernels. */
SCONCE_CHECK sconce_status move_emit(struct plan *p, const struct node *n, struct move *m,
                                     uint32_t x, uint32_t y);

/* Which dim of x each dim of a permutation's result is. */
SCONCE_CHECK sconce_status permute_order(struct plan *p, const struct node *n,
                                         const struct tensor *x, uint32_t order[RANK_MAX]);
/* What a selection takes: x at `index`, which may be negative, of `dim`. */
SCONCE_CHECK sconce_status select_place(struct plan *p, const struct node *n,
                                        const struct tensor **x, uint32_t *dim, int64_t *index);

#endif
