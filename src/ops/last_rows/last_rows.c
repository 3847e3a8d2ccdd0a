/* The last rows of x, as many as a call wants: y[i] = x[T - R + i]. No file contains it: the run
 * layer puts it in front of a language model's head, so that only those rows go through it.
 *
 * y lies in x's memory where the plan allows it. Then nothing is dispatched when all rows are
 * wanted, and else they move to the front. */
#include "ops/move/move.h"
#include "ops/strides/strides.h"

#include "last_rows.wgsl.h"

enum { X, ROWS, USUAL, OUT, N_ARGS }; /* USUAL: rows where ROWS is 0; 0: all of them */

static const struct kernel kernels[] = {
    {"quads", &last_rows_wgsl, "T=vec4<u32>", .fits = unit_is_quad},
    {"words", &last_rows_wgsl, "T=u32", .fits = unit_is_word},
    {0},
};

/* Rows of the last dim but one. */
static uint32_t rows_in(const struct tensor *t) { return t->dim_live[t->rank - 2]; }

static sconce_status shape(struct plan *p, const struct node *n) {
  const struct tensor *x, *y;
  int64_t rows, usual;
  TRY(arg_tensor(p, n, X, &x));
  TRY(arg_tensor(p, n, OUT, &y));
  TRY(arg_int(p, n, ROWS, &rows));
  TRY(arg_int(p, n, USUAL, &usual));
  char one[120], two[120];
  if (x->rank < 2 || y->rank < 2 || x->dtype != y->dtype ||
      x->dim_max[x->rank - 1] != y->dim_max[y->rank - 1])
    return fail(p->err, SCONCE_UNSUPPORTED, "the last rows of %s become %s", tensor_text(x, one),
                tensor_text(y, two));
  uint32_t dims[RANK_MAX];
  for (uint32_t i = 0; i < y->rank; i++) dims[i] = 1;
  const int64_t most = y->dim_max[y->rank - 2], all = rows_in(x);
  int64_t wanted = rows > 0 ? rows : usual > 0 ? usual : all;
  if (wanted > all) wanted = all;
  dims[y->rank - 2] = (uint32_t)(wanted < most ? wanted : most);
  dims[y->rank - 1] = x->dim_live[x->rank - 1];
  return set_dims(p, out_id(n), dims, y->rank);
}

/* Bytes of the largest unit that a row is a multiple of. */
static struct unit unit_of(uint64_t row_bytes) {
  return (struct unit){row_bytes % 16 == 0 ? 16 : row_bytes % 4 == 0 ? 4 : 1};
}

static sconce_status emit(struct plan *p, const struct node *n) {
  const struct tensor *x, *y = out_tensor(p, n);
  TRY(arg_tensor(p, n, X, &x));
  const uint32_t cols = y->dim_live[y->rank - 1], rows = rows_in(y), skip = rows_in(x) - rows;
  if (x->root != y->root) {
    struct move m = {.base = (int64_t)skip * cols};
    TRY(move_push(p, &m, rows * cols, 1));
    return move_emit(p, n, &m, arg_id(n, X), out_id(n));
  }
  if (skip == 0) return SCONCE_OK;
  const uint64_t row_bytes = (uint64_t)cols * vk_dtype_size(x->dtype);
  const struct unit unit = unit_of(row_bytes);
  const struct kernel *row;
  TRY(choose(p, n, kernels, x->dtype, &unit, &row));
  const struct last_rows_params u = {
      .n = (uint32_t)(row_bytes / unit.bytes), .rows = rows, .skip = skip};
  return dispatch(p, row, &u, div_up(u.n, 64), OPERANDS({arg_id(n, X)}));
}

const struct op ops_last_rows[] = {
    {"sconce.last_rows.default", shape, emit, .n_args = N_ARGS, .flags = OP_OWN | OP_IN_PLACE,
     .tables = TABLES(kernels, move_kernels)},
    {0},
};
