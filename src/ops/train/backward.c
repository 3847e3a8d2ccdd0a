/* Gradients through linear layers: of a weight, and of x through a 4-bit weight. */
#include "ops/linear/rows.h"

#include "dw.wgsl.h"
#include "dw_plain.wgsl.h"
#include "q4_back.wgsl.h"
#include "q4_back_plain.wgsl.h"

#include <inttypes.h>

/* ---- kernels --------------------------------------------------------------------------------- */

static bool tiles(const void *quads) { return *(const bool *)quads; }

/* A tile is the rows and columns of the result that a workgroup takes. It wants quads of both
 * operands and of the result. */
#define TILE(NAME, WGSL, SET, OF)                                                                  \
  {NAME, &WGSL, SET, OF, .fits = tiles, .tile = {64, 64}, .threads = 256, .workgroup_bytes = 16384}
#define TABLE(WGSL, PLAIN)                                                                         \
  {TILE("tile_f32", WGSL, "use=quad_f32", OF_F32),                                                 \
   TILE("tile_f16", WGSL, "use=quad_f16", OF_F16),                                                 \
   {"plain_f32", &PLAIN, "use=elem_f32", OF_F32, .reference = true},                               \
   {"plain_f16", &PLAIN, "use=elem_f16", OF_F16, .reference = true},                               \
   {0}}
static const struct kernel dw_kernels[] = TABLE(dw_wgsl, dw_plain_wgsl);
static const struct kernel q4_kernels[] = TABLE(q4_back_wgsl, q4_back_plain_wgsl);

static uint64_t workgroups(const struct kernel *row, uint32_t rows, uint32_t cols, bool half) {
  if (row->tile[0]) return div_up(rows, row->tile[0]) * div_up(cols, row->tile[1]);
  return div_up(div_up((uint64_t)rows * cols, half ? 2 : 1), 64);
}

/* ---- et_vk.linear_dW: [d (…, n), x (…, k), y (n, k)] ------------------------------------------
 */

static sconce_status dw_check(struct plan *p, const struct node *n, struct dw_params *u) {
  const struct tensor *d, *x;
  char one[120], two[120];
  TRY(arg_tensor(p, n, 0, &d));
  TRY(arg_tensor(p, n, 1, &x));
  if (d->rank == 0 || x->rank == 0 || rows_of(d) != rows_of(x) || d->dtype != x->dtype)
    return fail(p->err, SCONCE_BAD_ARGUMENT, "the gradient of %s times %s", tensor_text(d, one),
                tensor_text(x, two));
  *u = (struct dw_params){
      .m = rows_of(d), .n = d->dim_live[d->rank - 1], .k = x->dim_live[x->rank - 1]};
  return float_check(p, x, "x");
}

static sconce_status dw_shape(struct plan *p, const struct node *n) {
  struct dw_params u = {0};
  TRY(dw_check(p, n, &u));
  const uint32_t dims[] = {u.n, u.k};
  return set_dims(p, out_id(n), dims, 2);
}

static sconce_status dw_emit(struct plan *p, const struct node *n) {
  const struct tensor *x, *y = out_tensor(p, n);
  struct dw_params u = {0};
  char one[120], two[120];
  TRY(dw_check(p, n, &u));
  TRY(arg_tensor(p, n, 1, &x));
  if (y->dtype != x->dtype)
    return fail(p->err, SCONCE_BAD_GRAPH, "%s becomes %s", tensor_text(x, one),
                tensor_text(y, two));
  const bool quads = u.n % 4 == 0 && u.k % 4 == 0;
  const struct kernel *row;
  TRY(choose(p, n, dw_kernels, x->dtype, &quads, &row));
  return dispatch(p, row, &u, workgroups(row, u.n, u.k, is_half(x)),
                  OPERANDS({arg_id(n, 0)}, {arg_id(n, 1)}, {out_id(n)}));
}

/* ---- et_vk.linear_q4gsw_backward: [d (…, n), w, scales (groups, n or more), group, y (…, k)] --
 */

enum { D, W, SCALES, GROUP };

static sconce_status q4_check(struct plan *p, const struct node *n, struct q4_back_params *u) {
  const struct tensor *d, *w, *scales, *y = out_tensor(p, n);
  TRY(arg_tensor(p, n, D, &d));
  TRY(arg_tensor(p, n, W, &w));
  TRY(arg_tensor(p, n, SCALES, &scales));
  int64_t group;
  char one[120], two[120], three[120];
  TRY(arg_int(p, n, GROUP, &group));
  TRY(float_check(p, d, "the gradient"));
  TRY(float_check(p, scales, "the scales"));
  if (d->rank == 0 || y->rank == 0 || w->rank != 2 || scales->rank != 2 || w->dtype != VK_UINT8)
    return fail(p->err, SCONCE_BAD_GRAPH, "the gradient is %s, the weight %s, scales %s",
                tensor_text(d, one), tensor_text(w, two), tensor_text(scales, three));
  *u = (struct q4_back_params){.m = rows_of(d),
                               .n = d->dim_live[d->rank - 1],
                               .k = y->dim_max[y->rank - 1],
                               .stride = w->dim_max[1],
                               .scales = scales->dim_max[1],
                               .half = is_half(scales)};
  if (group < 1 || group > INT32_MAX || u->n > w->dim_max[0] || u->n > u->scales ||
      u->k > 2ull * u->stride || scales->dim_max[0] < div_up(u->k, (uint64_t)group))
    return fail(p->err, SCONCE_BAD_GRAPH,
                "groups of %" PRId64 ": the gradient is %s, the weight %s, scales %s", group,
                tensor_text(d, one), tensor_text(w, two), tensor_text(scales, three));
  u->group = (uint32_t)group;
  return SCONCE_OK;
}

static sconce_status q4_shape(struct plan *p, const struct node *n) {
  const struct tensor *d;
  struct q4_back_params u = {0};
  TRY(q4_check(p, n, &u));
  TRY(arg_tensor(p, n, D, &d));
  return rows_shape(p, out_id(n), d, u.k);
}

static sconce_status q4_emit(struct plan *p, const struct node *n) {
  const struct tensor *d, *y = out_tensor(p, n);
  struct q4_back_params u = {0};
  TRY(q4_check(p, n, &u));
  TRY(arg_tensor(p, n, D, &d));
  if (y->dtype != d->dtype)
    return fail(p->err, SCONCE_BAD_GRAPH, "the gradient is %s, the result %s",
                vk_dtype_name(d->dtype), vk_dtype_name(y->dtype));
  const bool quads =
      u.n % 4 == 0 && u.k % 4 == 0 && u.stride % 2 == 0 && (u.group % 4 == 0 || u.group >= u.k);
  const struct kernel *row;
  TRY(choose(p, n, q4_kernels, d->dtype, &quads, &row));
  return dispatch(p, row, &u, workgroups(row, u.m, u.k, is_half(y)),
                  OPERANDS({arg_id(n, D)}, {arg_id(n, W)}, {arg_id(n, SCALES)}, {out_id(n)}));
}

const struct op ops_train_backward[] = {
    {"et_vk.linear_dW.default", dw_shape, dw_emit, .n_args = 3, .tables = TABLES(dw_kernels)},
    {"et_vk.linear_q4gsw_backward.default", q4_shape, q4_emit, .n_args = 5,
     .tables = TABLES(q4_kernels)},
    {0},
};
