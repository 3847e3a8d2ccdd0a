/* A triangle of each matrix of a tensor; the rest is zeros. */
#include "graph/op.h"

#include "triangle.wgsl.h"

#include <inttypes.h>

static const struct kernel lower[] = {
    {"lower_words", &triangle_wgsl, "BITS=32u", OF_F32 | OF_I32},
    {"lower_halves", &triangle_wgsl, "BITS=16u", OF_F16},
    {"lower_bytes", &triangle_wgsl, "BITS=8u", OF_U8 | OF_I8 | OF_BOOL},
    {0},
};
static const struct kernel upper[] = {
    {"upper_words", &triangle_wgsl, "LOWER=false BITS=32u", OF_F32 | OF_I32},
    {"upper_halves", &triangle_wgsl, "LOWER=false BITS=16u", OF_F16},
    {"upper_bytes", &triangle_wgsl, "LOWER=false BITS=8u", OF_U8 | OF_I8 | OF_BOOL},
    {0},
};

/* [x, diagonal, out] */
static sconce_status shape(struct plan *p, const struct node *n) {
  const struct tensor *x;
  int64_t diagonal;
  TRY(arg_tensor(p, n, 0, &x));
  TRY(arg_int(p, n, 1, &diagonal));
  if (x->rank < 2)
    return fail(p->err, SCONCE_BAD_GRAPH, "a triangle of a tensor of rank %u", x->rank);
  return shape_same(p, n);
}

static sconce_status emit(struct plan *p, const struct node *n) {
  const struct tensor *x, *y = out_tensor(p, n);
  int64_t diagonal;
  TRY(arg_tensor(p, n, 0, &x));
  TRY(arg_int(p, n, 1, &diagonal));
  char one[120], two[120];
  if (x->dtype != y->dtype)
    return fail(p->err, SCONCE_UNSUPPORTED, "%s becomes %s", tensor_text(x, one),
                tensor_text(y, two));
  const int64_t most = 1 << 30; /* beyond every dim */
  diagonal = diagonal > most ? most : diagonal < -most ? -most : diagonal;
  const struct triangle_params u = {.n = (uint32_t)tensor_numel(x),
                                    .rows = x->dim_live[x->rank - 2],
                                    .cols = x->dim_live[x->rank - 1],
                                    .diagonal = (int32_t)diagonal};
  const struct kernel *row;
  TRY(choose(p, n, n->op->tables[0], x->dtype, NULL, &row));
  return dispatch(p, row, &u, div_up(div_up(u.n, 4 / vk_dtype_size(x->dtype)), 64),
                  OPERANDS({arg_id(n, 0)}, {out_id(n)}));
}

const struct op ops_triangle[] = {
    {"aten.tril.default", shape, emit, .also = "aten::tril.out", .n_args = 3,
     .tables = TABLES(lower)},
    {"aten.triu.default", shape, emit, .also = "aten::triu.out", .n_args = 3,
     .tables = TABLES(upper)},
    {0},
};
