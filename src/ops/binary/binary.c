/* Elementwise operators of two tensors with broadcasting: a family of rows. */
#include "graph/op.h"

#include "binary.wgsl.h"

#include <string.h>

/* Which elements and which operation, in the table's order. */
enum { ADD, SUB, MUL };
static const struct kernel kernels[] = {
    {"add_f32", &binary_wgsl, "OP=0u"},
    {"sub_f32", &binary_wgsl, "OP=1u"},
    {"mul_f32", &binary_wgsl, "OP=2u"},
    {0},
};

static sconce_status broadcast(struct plan *p, const struct tensor *a, const struct tensor *b,
                               uint32_t dims[RANK_MAX], uint32_t *rank) {
  *rank = a->rank > b->rank ? a->rank : b->rank;
  for (uint32_t i = 0; i < *rank; i++) { /* from the right */
    uint32_t da = i < a->rank ? a->dim_live[a->rank - 1 - i] : 1;
    uint32_t db = i < b->rank ? b->dim_live[b->rank - 1 - i] : 1;
    if (da != db && da != 1 && db != 1) {
      char one[120], two[120];
      return fail(p->err, SCONCE_BAD_ARGUMENT, "%s and %s do not broadcast", tensor_text(a, one),
                  tensor_text(b, two));
    }
    dims[*rank - 1 - i] = da == 1 ? db : da;
  }
  return SCONCE_OK;
}

static sconce_status shape(struct plan *p, const struct node *n) {
  const struct tensor *a = arg_tensor(p, n, 0), *b = arg_tensor(p, n, 1);
  if (!a || !b) return SCONCE_BAD_GRAPH;
  uint32_t dims[RANK_MAX], rank;
  TRY(broadcast(p, a, b, dims, &rank));
  return set_dims(p, out_id(n), dims, rank);
}

/* Strides of x in the coordinates of an output of `rank`; 0 where x is repeated. */
static void strides(const struct tensor *x, uint32_t rank, uint32_t out[RANK_MAX]) {
  uint32_t stride = 1;
  memset(out, 0, RANK_MAX * sizeof *out);
  for (uint32_t i = 0; i < x->rank; i++) {
    uint32_t size = x->dim_live[x->rank - 1 - i];
    if (size != 1) out[rank - 1 - i] = stride;
    stride *= size;
  }
}

static sconce_status emit(struct plan *p, const struct node *n) {
  const struct tensor *a = arg_tensor(p, n, 0), *b = arg_tensor(p, n, 1);
  const struct tensor *y = arg_tensor(p, n, n->n_args - 1);
  if (!a || !b || !y) return SCONCE_BAD_GRAPH;
  double alpha = 1;
  if (n->n_args == 4) TRY(arg_float(p, n, 2, &alpha));
  struct binary_params u = {.n = (uint32_t)tensor_numel(y), .rank = y->rank, .alpha = (float)alpha};
  memcpy(u.dims, y->dim_live, sizeof u.dims);
  strides(a, y->rank, u.stride_a);
  strides(b, y->rank, u.stride_b);
  return dispatch(p, &kernels[n->op->variant], &u, div_up(u.n, 64),
                  OPERANDS({arg_id(n, 0)}, {arg_id(n, 1)}, {out_id(n)}));
}

const struct op ops_binary[] = {
    {"aten.add.Tensor", shape, emit, .variant = ADD, .n_args = 4, .kernels = {kernels}},
    {"aten.sub.Tensor", shape, emit, .variant = SUB, .n_args = 4, .kernels = {kernels}},
    {"aten.mul.Tensor", shape, emit, .variant = MUL, .n_args = 3, .kernels = {kernels}},
    {0},
};
