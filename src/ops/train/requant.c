/* Weights as 4-bit codes of scales that stay: et_vk.q4gsw_requant. */
#include "ops/linear/rows.h"

#include "requant.wgsl.h"

#include <inttypes.h>

static const struct kernel kernels[] = {
    {"f32", &requant_wgsl, "use=elem_f32", OF_F32},
    {"f16", &requant_wgsl, "use=elem_f16", OF_F16},
    {0},
};

/* [weight (n, k), scales (groups, n or more), group, packed (n, k / 2)] */
static sconce_status check(struct plan *p, const struct node *n, struct requant_params *u) {
  const struct tensor *w, *scales, *y = out_tensor(p, n);
  TRY(arg_tensor(p, n, 0, &w));
  TRY(arg_tensor(p, n, 1, &scales));
  int64_t group;
  char one[120], two[120], three[120];
  TRY(arg_int(p, n, 2, &group));
  TRY(float_check(p, w, "the weight"));
  TRY(float_check(p, scales, "the scales"));
  const uint32_t k = w->rank == 2 ? w->dim_live[1] : 0;
  if (w->rank != 2 || scales->rank != 2 || y->dtype != VK_UINT8 || group < 1 || group > INT32_MAX ||
      scales->dim_live[1] < w->dim_live[0] || scales->dim_live[0] < div_up(k, (uint64_t)group))
    return fail(p->err, SCONCE_BAD_GRAPH,
                "groups of %" PRId64 ": the weight is %s, scales %s, codes %s", group,
                tensor_text(w, one), tensor_text(scales, two), tensor_text(y, three));
  *u = (struct requant_params){.k = k,
                               .stride = (uint32_t)div_up(k, 2),
                               .group = (uint32_t)group,
                               .scales = scales->dim_live[1],
                               .half = is_half(scales)};
  u->bytes = u->stride * w->dim_live[0];
  return SCONCE_OK;
}

static sconce_status shape(struct plan *p, const struct node *n) {
  const struct tensor *w;
  struct requant_params u = {0};
  TRY(check(p, n, &u));
  TRY(arg_tensor(p, n, 0, &w));
  const uint32_t dims[] = {w->dim_live[0], u.stride};
  return set_dims(p, out_id(n), dims, 2);
}

static sconce_status emit(struct plan *p, const struct node *n) {
  const struct tensor *w;
  const struct kernel *row;
  struct requant_params u = {0};
  TRY(check(p, n, &u));
  TRY(arg_tensor(p, n, 0, &w));
  TRY(choose(p, n, kernels, w->dtype, NULL, &row));
  return dispatch(p, row, &u, div_up(div_up(u.bytes, 4), 64),
                  OPERANDS({arg_id(n, 0)}, {arg_id(n, 1)}, {out_id(n)}));
}

const struct op ops_train_requant[] = {
    {"et_vk.q4gsw_requant.default", shape, emit, .n_args = 4, .tables = TABLES(kernels)},
    {0},
};
