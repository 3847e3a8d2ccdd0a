/* Places in planes: elements of x at places that a grid says, and the grid of all places. */
#include "ops/planes/planes.h"

#include "grid_priors.wgsl.h"
#include "grid_sample.wgsl.h"

#include <inttypes.h>

#define PAIR(NAME, KIND)                                                                           \
  {{NAME "_f32", &grid_sample_wgsl, "KIND=" KIND " use=elem_f32", OF_F32},                         \
   {NAME "_f16", &grid_sample_wgsl, "KIND=" KIND " use=elem_f16", OF_F16},                         \
   {0}}
static const struct kernel four_kernels[] = PAIR("four", "FOUR");
static const struct kernel nearest_kernels[] = PAIR("nearest", "NEAREST");
static const struct kernel sixteen_kernels[] = PAIR("sixteen", "SIXTEEN");

static const struct kernel priors_kernels[] = {
    {"f32", &grid_priors_wgsl, "use=quad_f32", OF_F32},
    {"f16", &grid_priors_wgsl, "use=quad_f16", OF_F16},
    {0},
};

/* ---- sample ---------------------------------------------------------------------------------- */

/* [x (n, c, h, w), grid (n, rows, cols, 2), interpolation, padding, align, out] */
enum { X, GRID, KIND, PADDING, ALIGN, OUT, ARGS };

static sconce_status sample_shape(struct plan *p, const struct node *n) {
  const struct tensor *x, *grid;
  TRY(arg_tensor(p, n, X, &x));
  TRY(arg_tensor(p, n, GRID, &grid));
  char one[120], two[120];
  if (x->rank != 4 || grid->rank != 4 || x->dim_live[0] != grid->dim_live[0] ||
      grid->dim_live[3] != 2)
    return fail(p->err, SCONCE_BAD_ARGUMENT, "a grid of %s for %s", tensor_text(grid, one),
                tensor_text(x, two));
  const uint32_t dims[] = {x->dim_live[0], x->dim_live[1], grid->dim_live[1], grid->dim_live[2]};
  return set_dims(p, out_id(n), dims, 4);
}

static sconce_status modes_of(struct plan *p, const struct node *n, int64_t *kind,
                              struct grid_sample_params *u) {
  int64_t outside;
  bool align;
  TRY(arg_int(p, n, KIND, kind));
  TRY(arg_int(p, n, PADDING, &outside));
  TRY(arg_bool(p, n, ALIGN, &align));
  if (*kind < 0 || *kind > 2 || outside < 0 || outside > 2)
    return fail(p->err, SCONCE_BAD_GRAPH, "interpolation %" PRId64 ", padding %" PRId64, *kind,
                outside);
  u->outside = (uint32_t)outside;
  u->align = align;
  return SCONCE_OK;
}

static sconce_status sample_emit(struct plan *p, const struct node *n) {
  const struct tensor *x, *grid, *y = out_tensor(p, n);
  TRY(arg_tensor(p, n, X, &x));
  TRY(arg_tensor(p, n, GRID, &grid));
  struct planes from, to;
  struct grid_sample_params u = {.channels = x->dim_live[1]};
  int64_t kind;
  char one[120], two[120];
  TRY(modes_of(p, n, &kind, &u));
  const struct kernel *row = row_for(p, n, n->op->tables[kind], x->dtype, NULL);
  if (!row || grid->dtype != x->dtype || y->dtype != x->dtype)
    return fail(p->err, SCONCE_UNSUPPORTED, "a grid of %s for %s", tensor_text(grid, one),
                tensor_text(x, two));
  TRY(planes_of(p, x, 2, &from));
  TRY(planes_of(p, y, 2, &to));
  for (uint32_t d = 0; d < 2; d++) {
    u.x_size[d] = from.size[1 + d];
    u.y_size[d] = to.size[1 + d];
    if (u.x_size[d] == 0 || u.x_size[d] > INT32_MAX)
      return fail(p->err, SCONCE_BAD_ARGUMENT, "places in %s", tensor_text(x, one));
  }
  const uint32_t size = vk_dtype_size(x->dtype);
  const uint64_t bytes[] = {from.numel * size, to.numel * size};
  uint64_t part = planes_part(p, to.n, bytes, 2);
  if (part == 0) part = to.n;
  for (uint64_t at = 0; at < to.n; at += part) {
    const uint64_t count = to.n - at < part ? to.n - at : part;
    u.n = (uint32_t)(count * to.numel);
    u.first = (uint32_t)at;
    TRY(dispatch(p, row, &u, div_up(div_up(u.n, 4 / size), 64),
                 OPERANDS(planes_operand(p, arg_id(n, X), from.numel, at, count), {arg_id(n, GRID)},
                          planes_operand(p, out_id(n), to.numel, at, count))));
  }
  return SCONCE_OK;
}

/* ---- priors ---------------------------------------------------------------------------------- */

/* [x, stride, offset, out (height * width, 2)]: of x only the last two dims matter. */
static sconce_status priors_shape(struct plan *p, const struct node *n) {
  const struct tensor *x;
  struct planes planes;
  TRY(arg_tensor(p, n, 0, &x));
  TRY(planes_of(p, x, 2, &planes));
  if (planes.numel > UINT32_MAX / 2)
    return fail(p->err, SCONCE_UNSUPPORTED, "%" PRIu64 " places", planes.numel);
  const uint32_t dims[] = {(uint32_t)planes.numel, 2};
  return set_dims(p, out_id(n), dims, 2);
}

static sconce_status priors_emit(struct plan *p, const struct node *n) {
  const struct tensor *x, *y = out_tensor(p, n);
  double stride, offset;
  struct planes planes;
  const struct kernel *row;
  TRY(arg_tensor(p, n, 0, &x));
  TRY(planes_of(p, x, 2, &planes));
  TRY(arg_float(p, n, 1, &stride));
  TRY(arg_float(p, n, 2, &offset));
  TRY(choose(p, n, priors_kernels, y->dtype, NULL, &row));
  struct grid_priors_params u = {.n = (uint32_t)tensor_numel(y),
                                 .width = planes.size[2],
                                 .stride = (float)stride,
                                 .offset = (float)offset};
  return dispatch(p, row, &u, div_up(u.n, 256), OPERANDS({out_id(n)}));
}

const struct op ops_grid[] = {
    {"aten.grid_sampler_2d.default", sample_shape, sample_emit, .also = "aten::grid_sampler_2d.out",
     .n_args = ARGS, .tables = TABLES(four_kernels, nearest_kernels, sixteen_kernels)},
    {"et_vk.grid_priors.default", priors_shape, priors_emit, .n_args = 4, .unbound = 1,
     .tables = TABLES(priors_kernels)},
    {0},
};
