/* Planes in another size: by the nearest element, between four, or without aliases. */
#include "ops/planes/planes.h"

#include "upsample_bilinear.wgsl.h"
#include "upsample_nearest.wgsl.h"
#include "upsample_smooth.wgsl.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- kernels --------------------------------------------------------------------------------- */

static const struct kernel nearest_kernels[] = {
    {"words", &upsample_nearest_wgsl, "", OF_F32 | OF_I32},
    {"halves", &upsample_nearest_wgsl, "BITS=16u", OF_F16},
    {"bytes", &upsample_nearest_wgsl, "BITS=8u", OF_BOOL | OF_U8 | OF_I8},
    {0},
};
static const struct kernel bilinear_kernels[] = {
    {"f32", &upsample_bilinear_wgsl, "use=elem_f32", OF_F32},
    {"f16", &upsample_bilinear_wgsl, "use=elem_f16", OF_F16},
    {0},
};
static const struct kernel smooth_kernels[] = {
    {"f32", &upsample_smooth_wgsl, "use=elem_f32", OF_F32},
    {"f16", &upsample_smooth_wgsl, "use=elem_f16", OF_F16},
    {0},
};

/* ---- arguments ------------------------------------------------------------------------------- */

/* op->code: BY_FACTORS: [x, size or Null, (align,) factors or Null, out]
 * else: [x, size, (align,) factor of the height or Null, of the width or Null, out]
 * NEAREST has no `align`. A factor decides where elements of y lie in x, even if y's size is not
 * x's times the factor. */
enum { NEAREST = 1, BY_FACTORS = 2 };
enum { X, SIZE, REST };

struct resize {
  bool align;
  double factor[2]; /* of height and width; 0: none given */
};

static sconce_status resize_of(struct plan *p, const struct node *n, struct resize *r) {
  uint32_t i = REST, count = 2;
  *r = (struct resize){0};
  if (!(n->op->code & NEAREST)) TRY(arg_bool(p, n, i++, &r->align));
  if (!(n->op->code & BY_FACTORS)) {
    TRY(arg_float_or(p, n, i, 0, &r->factor[0]));
    TRY(arg_float_or(p, n, i + 1, 0, &r->factor[1]));
  } else if (!arg_is_null(p, n, i)) {
    TRY(arg_floats(p, n, i, r->factor, 2, &count));
  }
  if (count != 2 || !isfinite(r->factor[0]) || !isfinite(r->factor[1]))
    return fail(p->err, SCONCE_BAD_GRAPH, "%u factors, %g and %g", count, r->factor[0],
                r->factor[1]);
  return SCONCE_OK;
}

/* Height and width of y. */
static sconce_status size_of(struct plan *p, const struct node *n, const struct planes *x,
                             uint32_t size[2]) {
  struct resize r;
  int64_t list[2];
  uint32_t count = 2;
  TRY(resize_of(p, n, &r));
  if (!arg_is_null(p, n, SIZE)) {
    TRY(arg_ints(p, n, SIZE, list, 2, &count));
  } else {
    for (int d = 0; d < 2; d++) {
      double wanted = x->size[1 + d] * r.factor[d];
      list[d] = wanted >= 0 && wanted <= INT32_MAX ? (int64_t)wanted : -1;
    }
  }
  for (uint32_t d = 0; d < 2; d++) {
    if (count != 2 || list[d] < 1 || list[d] > INT32_MAX)
      return fail(p->err, SCONCE_BAD_ARGUMENT, "a plane of %u dims, %" PRId64 " x %" PRId64, count,
                  list[0], list[1]);
    size[d] = (uint32_t)list[d];
  }
  return SCONCE_OK;
}

/* Elements of x for an element of y along a dim. */
static float ratio_of(const struct resize *r, uint32_t d, uint32_t x, uint32_t y) {
  if (r->align) return y > 1 ? (float)(x - 1) / (float)(y - 1) : 0;
  return r->factor[d] > 0 ? (float)(1 / r->factor[d]) : (float)x / (float)y;
}

/* ---- shape and emit -------------------------------------------------------------------------- */

static sconce_status shape(struct plan *p, const struct node *n) {
  const struct tensor *x;
  TRY(arg_tensor(p, n, X, &x));
  struct planes planes;
  uint32_t size[2], dims[RANK_MAX];
  TRY(planes_of(p, x, 2, &planes));
  TRY(size_of(p, n, &planes, size));
  memcpy(dims, x->dim_live, sizeof dims);
  memcpy(dims + x->rank - 2, size, sizeof size);
  return set_dims(p, out_id(n), dims, x->rank);
}

static sconce_status params_of(struct plan *p, const struct node *n, const struct planes *x,
                               const struct planes *y, struct upsample_params *u) {
  struct resize r;
  TRY(resize_of(p, n, &r));
  *u = (struct upsample_params){
      .align = r.align, .x_size = {x->size[1], x->size[2]}, .y_size = {y->size[1], y->size[2]}};
  float ratio[2];
  for (uint32_t d = 0; d < 2; d++) {
    if (u->x_size[d] == 0) return fail(p->err, SCONCE_BAD_ARGUMENT, "a plane without elements");
    ratio[d] = ratio_of(&r, d, u->x_size[d], u->y_size[d]);
    /* A dim that stays is copied whatever the factor; by the nearest, one that doubles is doubled.
     */
    const bool smooth = n->op->tables[0] == smooth_kernels;
    if (u->x_size[d] == u->y_size[d] && !smooth) ratio[d] = 1;
    if (2 * (uint64_t)u->x_size[d] == u->y_size[d] && n->op->code & NEAREST) ratio[d] = 0.5f;
  }
  u->ratio_h = ratio[0];
  u->ratio_w = ratio[1];
  return SCONCE_OK;
}

static sconce_status emit(struct plan *p, const struct node *n) {
  const struct tensor *x, *y = out_tensor(p, n);
  TRY(arg_tensor(p, n, X, &x));
  struct planes from, to;
  struct upsample_params u;
  char one[120], two[120];
  const struct kernel *row = row_for(p, n, n->op->tables[0], x->dtype, NULL);
  if (!row || x->dtype != y->dtype)
    return fail(p->err, SCONCE_UNSUPPORTED, "%s becomes %s", tensor_text(x, one),
                tensor_text(y, two));
  TRY(planes_of(p, x, 2, &from));
  TRY(planes_of(p, y, 2, &to));
  TRY(params_of(p, n, &from, &to, &u));
  const uint32_t size = vk_dtype_size(y->dtype);
  const uint64_t bytes[] = {from.numel * size, to.numel * size};
  uint64_t part = planes_part(p, to.n, bytes, 2);
  if (part == 0) part = to.n;
  for (uint64_t at = 0; at < to.n; at += part) {
    const uint64_t count = to.n - at < part ? to.n - at : part;
    u.n = (uint32_t)(count * to.numel);
    TRY(dispatch(p, row, &u, div_up(div_up(u.n, 4 / size), 64),
                 OPERANDS(planes_operand(p, arg_id(n, X), from.numel, at, count),
                          planes_operand(p, out_id(n), to.numel, at, count))));
  }
  return SCONCE_OK;
}

#define UPSAMPLE(NAME, OVERLOAD, PORTABLE, CODE, N_ARGS, TABLE)                                    \
  {"aten." NAME OVERLOAD,          shape,        emit,                                             \
   .also = "aten::" NAME PORTABLE, .code = CODE, .n_args = N_ARGS,                                 \
   .tables = TABLES(TABLE)}
#define BOTH(NAME, CODE, N_ARGS, TABLE)                                                            \
  UPSAMPLE(NAME, ".vec", ".vec_out", (CODE) | BY_FACTORS, N_ARGS, TABLE),                          \
      UPSAMPLE(NAME, ".default", ".out", CODE, N_ARGS + 1, TABLE)

const struct op ops_upsample[] = {
    BOTH("upsample_nearest2d", NEAREST, 4, nearest_kernels),
    BOTH("upsample_bilinear2d", 0, 5, bilinear_kernels),
    BOTH("_upsample_bilinear2d_aa", 0, 5, smooth_kernels),
    {0},
};
