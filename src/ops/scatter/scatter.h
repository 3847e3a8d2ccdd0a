/* Updates of a tensor where indices say: what scatter and index_put share. */
#ifndef OPS_SCATTER_H
#define OPS_SCATTER_H

#include "graph/op.h"

#include "scatter_params.wgsl.h"

enum scatter_kind { SCATTER_REPLACE, SCATTER_VALUE, SCATTER_ADD };

struct scatter {
  enum scatter_kind kind;
  uint32_t x, index, source; /* values; of SCATTER_VALUE u.value is the source */
  uint32_t scratch;          /* of scatter_scratch */
  struct scatter_params u;
};

/* All tables, for an operator to list. */
#define SCATTER_REPLACE_TABLES scatter_zeros, scatter_marks, scatter_takes
#define SCATTER_ADD_TABLES scatter_begins, scatter_adds, halves_kernels
extern const struct kernel scatter_zeros[], scatter_marks[], scatter_takes[], scatter_puts[],
    scatter_begins[], scatter_adds[];

/* Memory for the updates of y, which the node writes. */
SCONCE_CHECK sconce_status scatter_scratch(struct plan *p, struct node *n, enum scatter_kind kind,
                                           uint32_t k);
/* y, the node's result, is x with the updates; it may be x itself where elements have 4 bytes. */
SCONCE_CHECK sconce_status scatter_emit(struct plan *p, const struct node *n,
                                        const struct scatter *s);

#endif
