/* Dense products: linear, mm, addmm and bmm are one problem with different steps through w and
 * bias, and more can follow a product in its kernel. */
#ifndef OPS_PRODUCT_H
#define OPS_PRODUCT_H

#include "ops/linear/rows.h"

#include "linear_params.wgsl.h"

/* As linear_end.wgsl counts them. */
enum product_act { ACT_NONE, ACT_RELU, ACT_GELU, ACT_GELU_TANH, ACT_SILU };

struct product {
  struct linear_params u; /* slices and what depends on the row is set by product_emit */
  uint32_t x, w, bias, y; /* values */
  uint32_t rest;          /* is added at last, or NO_VALUE */
  uint32_t from;          /* the first row of w and column of bias that count; u.n of them do */
  bool beside;            /* others run beside it: no slices */
};

/* The rows, and what adds up slices of k. */
extern const struct kernel product_kernels[], product_sums[];

/* Of a node of this family. */
SCONCE_CHECK sconce_status product_read(struct plan *p, const struct node *n, struct product *q);
/* Scratch for slices, at the maximum dims. */
SCONCE_CHECK sconce_status product_prepare(struct plan *p, struct node *n, const struct product *q);
SCONCE_CHECK sconce_status product_emit(struct plan *p, const struct node *n,
                                        const struct product *q);
/* Floats of either size mix; integers are among themselves. */
SCONCE_CHECK sconce_status product_check(struct plan *p, const struct tensor *x,
                                         const struct tensor *t, const char *what);

#endif
