/* Products of matrices. */
#include "random.h"

static bool pick_bmm(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  const struct var *a = x[0], *b = x[1];
  (void)seed;
  if (a->dtype != b->dtype || !is_number(a) || !same_dim(a, b, 0)) return false;
  if (a->scale[2] != b->scale[1] || a->offset[2] != b->offset[1]) return false;
  *y = *a;
  y->scale[2] = b->scale[2], y->offset[2] = b->offset[2];
  add_up(y, a->scale[2] * LARGEST + a->offset[2], b->most, b->grain, b->error);
  s->n = 2;
  return true;
}

static void interpret_bmm(const struct step *s, const struct seen *in, double *y) {
  (void)s;
  const uint32_t depth = in->dims[0][2];
  for (uint32_t b = 0; b < in->to[0]; b++)
    for (uint32_t m = 0; m < in->to[1]; m++)
      for (uint32_t n = 0; n < in->to[2]; n++) {
        double sum = 0;
        for (uint32_t k = 0; k < depth; k++)
          sum += in->data[0][(b * in->to[1] + m) * depth + k] *
                 in->data[1][(b * depth + k) * in->to[2] + n];
        *y++ = sum;
      }
}

static void add_bmm(struct op_test *t, const struct step *s, const struct var *const *x,
                    const uint32_t *ids, uint32_t y) {
  (void)s, (void)x;
  op_node(t, "aten.bmm.default", IDS(ids[0], ids[1], y));
}

static bool pick_linear(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  s->which = 1 + below(seed, 6);
  s->n = 1;
  if (!is_float(x[0]) || !is_fixed(x[0], 2) || x[0]->offset[2] > 40) return false;
  *y = *x[0];
  fix(y, 2, s->which);
  add_up(y, x[0]->offset[2], 1, 0.25, 0);
  y->most += 1;
  y->grain = fmin(y->grain, 0.25);
  return true;
}

static void interpret_linear(const struct step *s, const struct seen *in, double *y) {
  const uint32_t depth = in->dims[0][2], rows = in->to[0] * in->to[1];
  for (uint32_t m = 0; m < rows; m++)
    for (uint32_t n = 0; n < s->which; n++) {
      double sum = weight(n);
      for (uint32_t k = 0; k < depth; k++)
        sum += in->data[0][m * depth + k] * weight(n * depth + k);
      *y++ = sum;
    }
}

static void add_linear(struct op_test *t, const struct step *s, const struct var *const *x,
                       const uint32_t *ids, uint32_t y) {
  const uint32_t w = weights(t, x[0]->dtype, DIMS(s->which, x[0]->offset[2]));
  op_node(t, "aten.linear.default", IDS(ids[0], w, weights(t, x[0]->dtype, DIMS(s->which)), y));
}

static bool pick_matrix(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  s->which = 1 + below(seed, 4);
  s->move.n = below(seed, 2);
  s->n = 1;
  if (!is_number(x[0]) || !is_fixed(x[0], 1) || !is_fixed(x[0], 2)) return false;
  if (!x[0]->offset[1] || !x[0]->offset[2]) return false;
  *y = *x[0];
  fix(y, 2, s->which);
  const double most = x[0]->dtype == VK_INT32 ? 4 : 1;
  y->most = (x[0]->offset[2] * x[0]->most + 1) * most;
  y->error *= x[0]->offset[2];
  if (x[0]->dtype != VK_INT32) y->grain = fmin(y->grain / 4, 0.25);
  return true;
}

static bool pick_typed_matrix(const struct var *const *x, uint64_t *seed, struct step *s,
                              struct var *y) {
  s->move.x[0] = (uint32_t)x[0]->dtype;
  return pick_matrix(x, seed, s, y);
}

/* Of integers, four times as much. */
static double factor_of(enum vk_dtype dtype, uint64_t i) {
  return dtype == VK_INT32 ? 4 * weight(i) : weight(i);
}

static void interpret_matrix(const struct step *s, const struct seen *in, double *y) {
  const uint32_t depth = in->dims[0][2];
  const enum vk_dtype dtype = (enum vk_dtype)s->move.x[0];
  for (uint64_t e = 0; e < (uint64_t)in->to[0] * in->to[1] * in->to[2]; e++) {
    y[e] = s->move.n ? factor_of(dtype, e % in->to[2]) : 0;
    for (uint32_t k = 0; k < depth; k++)
      y[e] +=
          in->data[0][e / in->to[2] * depth + k] * factor_of(dtype, k * in->to[2] + e % in->to[2]);
  }
}

static void add_matrix(struct op_test *t, const struct step *s, const struct var *const *x,
                       const uint32_t *ids, uint32_t y) {
  const enum vk_dtype dtype = x[0]->dtype;
  const uint32_t depth = x[0]->offset[2], b = x[0]->offset[1], n = s->which;
  uint32_t dims[4];
  double values[ROOM];
  dims_at(x[0], LARGEST, dims);
  for (uint32_t i = 0; i < depth * n && i < ROOM; i++) values[i] = factor_of(dtype, i);
  const uint32_t w = op_constant(t, dtype, DIMS(depth, n), values);
  const uint32_t flat = op_tensor(t, dtype, DIMS(dims[0] * b, depth)),
                 product = op_tensor(t, dtype, DIMS(dims[0] * b, n));
  op_node(t, "aten.view_copy.default", IDS(ids[0], op_ints(t, INTS(-1, depth)), flat));
  if (s->move.n)
    op_node(
        t, "aten.addmm.default",
        IDS(op_constant(t, dtype, DIMS(n), values), flat, w, op_int(t, 1), op_int(t, 1), product));
  else
    op_node(t, "aten.mm.default", IDS(flat, w, product));
  op_node(t, "aten.view_copy.default", IDS(product, op_ints(t, INTS(-1, b, n)), y));
}

/* ---- distances between the rows of a (B, M, K) and of b (B, N, K): (B, M, N) --------------------
 */

static const double exponents[] = {1, 2, INFINITY};

static bool pick_distance(const struct var *const *x, uint64_t *seed, struct step *s,
                          struct var *y) {
  const struct var *a = x[0], *b = x[1];
  s->which = below(seed, 3);
  s->n = 2;
  if (!is_float(a) || a->dtype != b->dtype || !same_dim(a, b, 0) || !same_dim(a, b, 2))
    return false;
  const double depth = s->which == 0 ? dim_most(a, 2) : s->which == 1 ? sqrt(dim_most(a, 2)) : 1;
  *y = *a;
  y->scale[2] = b->scale[1], y->offset[2] = b->offset[1];
  y->most = fmax(depth, 1) * (a->most + b->most);
  y->error = depth * (a->error + b->error) + (s->which == 1 ? 1e-5 * y->most : 0);
  y->grain = s->which == 1 ? 1e-12 : fmin(a->grain, b->grain);
  return true;
}

static void interpret_distance(const struct step *s, const struct seen *in, double *y) {
  const uint32_t depth = in->dims[0][2];
  for (uint64_t e = 0; e < numel_of(in->to); e++) {
    const uint64_t m = e / in->to[2], n = m / in->to[1] * in->to[2] + e % in->to[2];
    y[e] = 0;
    for (uint32_t k = 0; k < depth; k++) {
      const double d = fabs(in->data[0][m * depth + k] - in->data[1][n * depth + k]);
      y[e] = s->which == 0 ? y[e] + d : s->which == 1 ? y[e] + d * d : fmax(y[e], d);
    }
    if (s->which == 1) y[e] = sqrt(y[e]);
  }
}

static void add_distance(struct op_test *t, const struct step *s, const struct var *const *x,
                         const uint32_t *ids, uint32_t y) {
  (void)x;
  op_node(t, "aten._cdist_forward.default",
          IDS(ids[0], ids[1], op_double(t, exponents[s->which]), op_null(t), y));
}

const struct random_kind random_dense[] = {
    {"bmm", pick_bmm, interpret_bmm, add_bmm},
    {"linear", pick_linear, interpret_linear, add_linear},
    {"mm, addmm", pick_typed_matrix, interpret_matrix, add_matrix},
    {"cdist", pick_distance, interpret_distance, add_distance},
    {0},
};
