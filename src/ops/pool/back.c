/* The gradient of pooling by the largest element. */
#include "ops/pool/window.h"

#include "pool_back.wgsl.h"

#include <string.h>

static const struct kernel kernels[] = {
    {"f32", &pool_back_wgsl, "use=elem_f32", OF_F32},
    {"f16", &pool_back_wgsl, "use=elem_f16", OF_F16},
    {0},
};

/* [dy, x, kernel, stride, pad, dilation, ceil, places, dx] */
enum { DY, X, WINDOW, PLACES = 7, DX, ARGS };

static sconce_status check(struct plan *p, const struct node *n, struct window *w) {
  const struct tensor *dy, *x, *places;
  struct planes planes;
  char one[120], two[120];
  TRY(arg_tensor(p, n, DY, &dy));
  TRY(arg_tensor(p, n, X, &x));
  TRY(arg_tensor(p, n, PLACES, &places));
  TRY(planes_of(p, x, 2, &planes));
  TRY(window_of(p, n, WINDOW, 2, true, w));
  bool fits = dy->rank == x->rank && places->rank == x->rank && places->dtype == VK_INT32 &&
              dy->dtype == x->dtype;
  for (uint32_t i = 0; fits && i < x->rank; i++) {
    uint32_t size = x->dim_live[i];
    if (i + 2 >= x->rank) TRY(window_count(p, w, i + PLANE_DIMS - x->rank, size, &size));
    fits = dy->dim_live[i] == size && places->dim_live[i] == size;
  }
  if (fits) return SCONCE_OK;
  return fail(p->err, SCONCE_BAD_ARGUMENT, "a gradient of %s, at places of %s",
              tensor_text(dy, one), tensor_text(places, two));
}

static sconce_status shape(struct plan *p, const struct node *n) {
  const struct tensor *x;
  struct window w;
  TRY(check(p, n, &w));
  TRY(arg_tensor(p, n, X, &x));
  return set_dims(p, out_id(n), x->dim_live, x->rank);
}

static sconce_status emit(struct plan *p, const struct node *n) {
  const struct tensor *dy, *x;
  const struct kernel *row;
  struct planes from, to;
  struct window w;
  TRY(check(p, n, &w));
  TRY(arg_tensor(p, n, DY, &dy));
  TRY(arg_tensor(p, n, X, &x));
  TRY(planes_of(p, dy, 2, &from));
  TRY(planes_of(p, x, 2, &to));
  TRY(choose(p, n, kernels, x->dtype, NULL, &row));
  struct pool_back_params u = {0};
  memcpy(u.x_size, to.size, sizeof to.size);
  memcpy(u.y_size, from.size, sizeof from.size);
  memcpy(u.kernel, w.kernel, sizeof w.kernel);
  memcpy(u.stride, w.stride, sizeof w.stride);
  memcpy(u.pad, w.pad, sizeof w.pad);
  memcpy(u.dilation, w.dilation, sizeof w.dilation);
  const uint64_t size = vk_dtype_size(x->dtype), bytes[] = {from.numel * 4, to.numel * size};
  uint64_t part = planes_part(p, to.n, bytes, 2);
  if (part == 0) part = to.n;
  for (uint64_t at = 0; at < to.n; at += part) {
    const uint64_t count = to.n - at < part ? to.n - at : part;
    u.n = (uint32_t)(count * to.numel);
    TRY(dispatch(p, row, &u, div_up(div_up(u.n, 4 / size), 64),
                 OPERANDS(planes_operand(p, arg_id(n, DY), from.numel, at, count),
                          planes_operand(p, arg_id(n, PLACES), from.numel, at, count),
                          planes_operand(p, out_id(n), to.numel, at, count))));
  }
  return SCONCE_OK;
}

const struct op ops_pool_back[] = {
    {"aten.max_pool2d_with_indices_backward.default", shape, emit,
     .also = "aten::max_pool2d_with_indices_backward.grad_input", .n_args = ARGS, .unbound = 1 << X,
     .tables = TABLES(kernels)},
    {0},
};
