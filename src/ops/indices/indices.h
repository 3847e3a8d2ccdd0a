/* Several index tensors at once, as x[:, i, j] has them: one tensor of rows takes their place.
 *
 * Index tensors broadcast together. In the result their dims stand where the first of them was, or
 * in front if dims without an index lie between them. A tensor of booleans stands for the indices
 * of what is true in it, and covers as many dims of x as it has. */
#ifndef OPS_INDICES_H
#define OPS_INDICES_H

#include "graph/op.h"

struct indices {
  uint32_t n;             /* index tensors */
  uint32_t id[RANK_MAX];  /* of which values */
  uint32_t dim[RANK_MAX]; /* which dim of x each is for */
  uint32_t covered;       /* bit i: dim i of x has an index */
  uint32_t last;          /* the last such dim: rows count its steps */
  uint32_t first;         /* dim of the result that their dims begin with */
  uint32_t rank;          /* of them all */
  uint32_t dims[RANK_MAX];
  bool mask; /* the only one is of booleans */
};

/* The list that argument i is: Null or a tensor for each of x's dims in front. */
SCONCE_CHECK sconce_status indices_of(struct plan *p, const struct node *n, uint32_t i,
                                      const struct tensor *x, struct indices *out);
/* For shape: indices that the host knows lie within x. */
SCONCE_CHECK sconce_status indices_check(struct plan *p, const struct tensor *x,
                                         const struct indices *ix);
/* Loops over the result: its dims, the step that each makes in x and in the tensor of rows. */
struct index_loops {
  uint32_t rank;
  uint32_t dims[RANK_MAX], stride[RANK_MAX], step[RANK_MAX];
};
SCONCE_CHECK sconce_status indices_loops(struct plan *p, const struct tensor *x,
                                         const struct indices *ix, struct index_loops *out);

/* Elements of x between two rows, and how many rows there are. */
uint32_t indices_row(const struct tensor *x, const struct indices *ix);
uint32_t indices_rows(const struct tensor *x, const struct indices *ix);

/* An operator that uses them lists the table and has extra[k] of indices_scratch. */
extern const struct kernel indices_kernels[];
SCONCE_CHECK sconce_status indices_scratch(struct plan *p, struct node *n, uint32_t i, uint32_t k);
/* rows[b] = the row of x that the indices say, or INT32_MAX where one of them lies outside. */
SCONCE_CHECK sconce_status indices_emit(struct plan *p, const struct node *n,
                                        const struct tensor *x, const struct indices *ix,
                                        uint32_t rows);

#endif
