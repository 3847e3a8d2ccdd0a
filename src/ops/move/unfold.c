/* Sliding windows: a dim of windows, and each window's elements as a last dim. */
#include "ops/move/move.h"

#include <inttypes.h>
#include <string.h>

/* [x, dim, size, step, out] */
struct unfold {
  uint32_t dim, size, windows;
  int64_t step;
};

static sconce_status unfold_of(struct plan *p, const struct node *n, const struct tensor *x,
                               struct unfold *u) {
  int64_t size;
  TRY(arg_dim(p, n, 1, x->rank, &u->dim));
  TRY(arg_int(p, n, 2, &size));
  TRY(arg_int(p, n, 3, &u->step));
  const uint32_t all = x->dim_live[u->dim];
  if (x->rank == RANK_MAX || size < 0 || size > all || u->step < 1)
    return fail(p->err, SCONCE_BAD_ARGUMENT,
                "windows of %" PRId64 " in steps of %" PRId64 " in dim %u of %u, which has %u",
                size, u->step, u->dim, x->rank, all);
  if (u->step > all) u->step = (int64_t)all + 1; /* there is no second window then */
  u->size = (uint32_t)size;
  u->windows = (uint32_t)((all - size) / u->step) + 1;
  return SCONCE_OK;
}

static sconce_status shape(struct plan *p, const struct node *n) {
  const struct tensor *x;
  struct unfold u = {0};
  uint32_t dims[RANK_MAX];
  TRY(arg_tensor(p, n, 0, &x));
  TRY(unfold_of(p, n, x, &u));
  memcpy(dims, x->dim_live, sizeof dims);
  dims[u.dim] = u.windows;
  dims[x->rank] = u.size;
  return set_dims(p, out_id(n), dims, x->rank + 1);
}

static sconce_status emit(struct plan *p, const struct node *n) {
  const struct tensor *x;
  struct unfold u = {0};
  struct move m = {0};
  int64_t strides[RANK_MAX], stride = 1;
  TRY(arg_tensor(p, n, 0, &x));
  TRY(unfold_of(p, n, x, &u));
  for (uint32_t i = x->rank; i-- > 0; stride *= x->dim_live[i]) strides[i] = stride;
  for (uint32_t i = 0; i < x->rank; i++) {
    if (i == u.dim)
      TRY(move_push(p, &m, u.windows, strides[i] * u.step));
    else
      TRY(move_push(p, &m, x->dim_live[i], strides[i]));
  }
  TRY(move_push(p, &m, u.size, strides[u.dim]));
  return move_emit(p, n, &m, arg_id(n, 0), out_id(n));
}

const struct op ops_unfold[] = {
    {"aten.unfold_copy.default", shape, emit, .also = "aten::unfold_copy.out", .n_args = 5,
     .tables = TABLES(move_kernels)},
    {0},
};
