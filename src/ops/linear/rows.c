/* Rows of linear operators: see rows.h. */
#include "ops/linear/rows.h"

#include <string.h>

uint32_t rows_of(const struct tensor *t) {
  uint32_t rows = 1;
  for (uint32_t i = 0; i + 1 < t->rank; i++) rows *= t->dim_live[i];
  return rows;
}

sconce_status rows_shape(struct plan *p, uint32_t out, const struct tensor *x, uint32_t cols) {
  const struct tensor *y = tensor_at(p, out);
  if (!y) return fail(p->err, SCONCE_BAD_GRAPH, "the result is no tensor");
  if (x->rank == 0 || y->rank == 0)
    return fail(p->err, SCONCE_BAD_GRAPH, "x has rank %u, the result %u", x->rank, y->rank);
  uint32_t dims[RANK_MAX];
  if (y->rank == x->rank) {
    memcpy(dims, x->dim_live, sizeof dims);
  } else {
    for (uint32_t i = 0; i < y->rank; i++) dims[i] = 1;
    if (y->rank >= 2) dims[y->rank - 2] = rows_of(x);
  }
  dims[y->rank - 1] = cols;
  return set_dims(p, out, dims, y->rank);
}

uint64_t rows_split(const struct plan *p, uint64_t rows, uint64_t a, uint64_t b) {
  const uint64_t most = p->g->caps.max_storage_binding, align = p->g->caps.storage_alignment;
  uint64_t larger = a > b ? a : b, step = 4;
  if (larger * rows <= most) return rows;
  while (a * step % align || b * step % align) step *= 2;
  uint64_t fit = most / larger / step * step;
  return fit ? fit : rows;
}

struct operand rows_part(struct plan *p, uint32_t id, uint64_t row_bytes, uint64_t first,
                         uint64_t count) {
  const struct tensor *t = tensor_at(p, id);
  bool whole = t && first == 0 && tensor_nbytes_max(t) <= p->g->caps.max_storage_binding;
  if (whole) return (struct operand){id};
  return (struct operand){id, first * row_bytes, count * row_bytes};
}

sconce_status rows_bias(struct plan *p, const struct node *n, uint32_t arg, uint32_t cols,
                        uint32_t *kind) {
  *kind = 0;
  if (arg_is_null(p, n, arg)) return SCONCE_OK;
  const struct tensor *bias;
  TRY(arg_tensor(p, n, arg, &bias));
  TRY(float_check(p, bias, "the bias"));
  if (tensor_numel(bias) < cols || rows_of(bias) != 1)
    return fail(p->err, SCONCE_BAD_GRAPH, "a bias of %u for %u columns",
                (unsigned)tensor_numel(bias), cols);
  *kind = 1 + is_half(bias);
  return SCONCE_OK;
}

sconce_status float_check(struct plan *p, const struct tensor *t, const char *what) {
  if (tensor_is_float(t)) return SCONCE_OK;
  return fail(p->err, SCONCE_UNSUPPORTED, "%s is %s, expected float32 or float16", what,
              vk_dtype_name(t->dtype));
}
