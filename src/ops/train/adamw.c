/* A step of AdamW in place: et_vk.adamw_step. */
#include "ops/move/move.h"

#include "adamw.wgsl.h"

#include <string.h>

static const struct kernel kernels[] = {
    {"f32", &adamw_wgsl, "use=quad_f32", OF_F32},
    {"f16", &adamw_wgsl, "use=quad_f16", OF_F16},
    {0},
};

/* [weight, m, v, gradient, lr, beta1, beta2, eps, decay, bias1, bias2, [weight, m, v]]: the results
 * are the first three themselves, or take their elements. */
enum { WEIGHT, M, V, GRADIENT, LR, BETA1, BETA2, EPS, DECAY, BIAS1, BIAS2, OUT, ARGS };

static sconce_status check(struct plan *p, const struct node *n) {
  const struct tensor *w, *t;
  TRY(arg_tensor(p, n, WEIGHT, &w));
  char one[120], two[120];
  for (uint32_t i = M; i <= GRADIENT; i++) {
    TRY(arg_tensor(p, n, i, &t));
    if (t->dtype != w->dtype || t->rank != w->rank ||
        memcmp(t->dim_live, w->dim_live, w->rank * sizeof *w->dim_live) != 0)
      return fail(p->err, SCONCE_BAD_ARGUMENT, "argument %u is %s, the weight %s", i,
                  tensor_text(t, one), tensor_text(w, two));
  }
  if (arg_count(p, n, OUT) != 3)
    return fail(p->err, SCONCE_BAD_GRAPH, "%u results, expected 3", arg_count(p, n, OUT));
  return SCONCE_OK;
}

static sconce_status shape(struct plan *p, const struct node *n) {
  const struct tensor *w;
  TRY(check(p, n));
  TRY(arg_tensor(p, n, WEIGHT, &w));
  for (uint32_t i = 0; i < 3; i++) TRY(set_dims(p, arg_item(p, n, OUT, i), w->dim_live, w->rank));
  return SCONCE_OK;
}

static sconce_status numbers_of(struct plan *p, const struct node *n, struct adamw_params *u) {
  double d[ARGS];
  for (uint32_t i = LR; i <= BIAS2; i++) TRY(arg_float(p, n, i, &d[i]));
  *u = (struct adamw_params){.lr = (float)d[LR],
                             .keep = (float)(1 - d[LR] * d[DECAY]),
                             .beta1 = (float)d[BETA1],
                             .beta2 = (float)d[BETA2],
                             .eps = (float)d[EPS],
                             .bias1 = (float)d[BIAS1],
                             .bias2 = (float)d[BIAS2],
                             .rest1 = (float)(1 - d[BETA1]),
                             .rest2 = (float)(1 - d[BETA2])};
  return SCONCE_OK;
}

static sconce_status copy_result(struct plan *p, const struct node *n, uint32_t from, uint32_t to) {
  const struct tensor *x = tensor_at(p, from), *y = tensor_at(p, to);
  if (!y || y->root == x->root) return SCONCE_OK;
  struct move m;
  TRY(move_begin(p, &m, y, x));
  return move_emit(p, n, &m, from, to);
}

static sconce_status emit(struct plan *p, const struct node *n) {
  const struct tensor *w;
  const struct kernel *row;
  struct adamw_params u;
  TRY(check(p, n));
  TRY(arg_tensor(p, n, WEIGHT, &w));
  TRY(numbers_of(p, n, &u));
  u.n = (uint32_t)tensor_numel(w);
  TRY(choose(p, n, kernels, w->dtype, NULL, &row));
  TRY(dispatch(
      p, row, &u, div_up(u.n, 256),
      OPERANDS({arg_id(n, GRADIENT)}, {arg_id(n, WEIGHT)}, {arg_id(n, M)}, {arg_id(n, V)})));
  for (uint32_t i = 0; i < 3; i++) TRY(copy_result(p, n, arg_id(n, i), arg_item(p, n, OUT, i)));
  return SCONCE_OK;
}

const struct op ops_train_adamw[] = {
    {"et_vk.adamw_step.default", shape, emit, .also = "adamw_step.default", .n_args = ARGS,
     .flags = OP_LIST, .writes = 7, .tables = TABLES(kernels, move_kernels)},
    {0},
};
