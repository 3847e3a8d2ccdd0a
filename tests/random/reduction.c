/* Sums, extrema, products and statistics of lines; running sums; the largest of a line. */
#include "random.h"

static bool pick_reduce(const struct var *const *operands, uint64_t *seed, struct step *s,
                        struct var *y) {
  static const enum oracle_reduction kinds[] = {REDUCE_SUM, REDUCE_MAX, REDUCE_MIN};
  const struct var *x = operands[0];
  const unsigned reduced = 1 + below(seed, 7);
  double count = 1;
  s->which = kinds[below(seed, 3)];
  s->move.n = reduced;
  if (!is_number(x)) return false;
  *y = *x;
  for (uint32_t i = 0; i < 3; i++) {
    if (!(reduced >> i & 1)) continue;
    if (s->which != REDUCE_SUM && x->offset[i] == 0)
      return false; /* of no elements there is none */
    count *= x->scale[i] * LARGEST + x->offset[i];
    y->scale[i] = 0, y->offset[i] = 1;
  }
  if (s->which == REDUCE_SUM) y->most *= fmax(count, 1), y->error *= count;
  s->n = 1;
  s->specials = true;
  return true;
}

static void interpret_reduce(const struct step *s, const struct seen *in, double *y) {
  oracle_reduce((enum oracle_reduction)s->which, in->data[0], in->dims[0], s->move.n, y);
}

static void add_reduce(struct op_test *t, const struct step *s, const struct var *const *x,
                       const uint32_t *ids, uint32_t y) {
  static const char *const names[] = {[REDUCE_SUM] = "aten.sum.dim_IntList",
                                      [REDUCE_MAX] = "aten.amax.default",
                                      [REDUCE_MIN] = "aten.amin.default"};
  int64_t dims[3];
  uint32_t n = 0;
  (void)x;
  for (uint32_t i = 0; i < 3; i++)
    if (s->move.n >> i & 1) dims[n++] = i;
  const uint32_t list = op_ints(t, dims, n), keep = op_bool(t, true);
  if (s->which == REDUCE_SUM)
    op_node(t, names[s->which], IDS(ids[0], list, keep, op_null(t), y));
  else
    op_node(t, names[s->which], IDS(ids[0], list, keep, y));
}

static bool pick_running(const struct var *const *operands, uint64_t *seed, struct step *s,
                         struct var *y) {
  const struct var *x = operands[0];
  s->which = below(seed, 3);
  if (x->dtype != VK_FLOAT32 && x->dtype != VK_INT32) return false;
  const double count = x->scale[s->which] * LARGEST + x->offset[s->which];
  *y = *x;
  y->most *= fmax(count, 1);
  y->error *= fmax(count, 1);
  s->n = 1;
  s->specials = true;
  return true;
}

static void interpret_running(const struct step *s, const struct seen *in, double *y) {
  for (uint64_t l = 0; l < lines(in->to, s->which); l++) {
    uint64_t step, first = line_of(in->to, s->which, l, &step);
    double sum = 0;
    for (uint32_t i = 0; i < in->to[s->which]; i++)
      y[first + i * step] = sum += in->data[0][first + i * step];
  }
}

static void add_running(struct op_test *t, const struct step *s, const struct var *const *x,
                        const uint32_t *ids, uint32_t y) {
  (void)x;
  op_node(t, "aten.cumsum.default", IDS(ids[0], op_int(t, s->which), op_null(t), y));
}

static bool pick_place(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  if (!one_dim(x[0], seed, s, y) || !is_number(x[0]) || x[0]->error > 0) return false;
  s->move.n = below(seed, 2);
  y->dtype = VK_INT32;
  y->most = x[0]->offset[s->which];
  y->grain = 1;
  return true;
}

static void interpret_place(const struct step *s, const struct seen *in, double *y) {
  for (uint64_t l = 0; l < lines(in->dims[0], s->which); l++) {
    uint64_t step, first = line_of(in->dims[0], s->which, l, &step);
    uint32_t best = 0;
    for (uint32_t i = 1; i < in->dims[0][s->which]; i++) {
      const double a = in->data[0][first + i * step], b = in->data[0][first + best * step];
      if (s->move.n ? a > b : a < b) best = i;
    }
    y[l] = best;
  }
}

static void add_place(struct op_test *t, const struct step *s, const struct var *const *x,
                      const uint32_t *ids, uint32_t y) {
  (void)x;
  op_node(t, s->move.n ? "aten.argmax.default" : "aten.argmin.default",
          IDS(ids[0], op_int(t, s->which), op_bool(t, true), y));
}

static bool pick_product(const struct var *const *x, uint64_t *seed, struct step *s,
                         struct var *y) {
  if (!one_dim(x[0], seed, s, y) || !is_number(x[0]) || x[0]->error > 0) return false;
  y->most = pow(fmax(x[0]->most, 1), x[0]->offset[s->which]);
  y->grain = pow(x[0]->grain, x[0]->offset[s->which]);
  return y->most < 3e4;
}

static void interpret_product(const struct step *s, const struct seen *in, double *y) {
  for (uint64_t l = 0; l < lines(in->dims[0], s->which); l++) {
    uint64_t step, first = line_of(in->dims[0], s->which, l, &step);
    y[l] = 1;
    for (uint32_t i = 0; i < in->dims[0][s->which]; i++) y[l] *= in->data[0][first + i * step];
  }
}

static void add_product(struct op_test *t, const struct step *s, const struct var *const *x,
                        const uint32_t *ids, uint32_t y) {
  (void)x;
  op_node(t, "aten.prod.dim_int",
          IDS(ids[0], op_int(t, s->which), op_bool(t, true), op_null(t), y));
}

static bool pick_mean(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  if (!one_dim(x[0], seed, s, y) || !is_float(x[0])) return false;
  y->grain = 1e-12;
  y->error = x[0]->error + 2e-6 * x[0]->most;
  return true;
}

static void interpret_mean(const struct step *s, const struct seen *in, double *y) {
  for (uint64_t l = 0; l < lines(in->dims[0], s->which); l++) {
    uint64_t step, first = line_of(in->dims[0], s->which, l, &step);
    double sum = 0;
    for (uint32_t i = 0; i < in->dims[0][s->which]; i++) sum += in->data[0][first + i * step];
    y[l] = sum / in->dims[0][s->which];
  }
}

static void add_mean(struct op_test *t, const struct step *s, const struct var *const *x,
                     const uint32_t *ids, uint32_t y) {
  (void)x;
  op_node(t, "aten.mean.dim",
          IDS(ids[0], op_ints(t, INTS(s->which)), op_bool(t, true), op_null(t), y));
}

static bool pick_variance(const struct var *const *x, uint64_t *seed, struct step *s,
                          struct var *y) {
  if (!one_dim(x[0], seed, s, y) || !is_float(x[0]) || x[0]->offset[s->which] < 2) return false;
  y->most = 2 * x[0]->most * x[0]->most;
  y->grain = 1e-12;
  y->error = 8 * x[0]->most * x[0]->error + 1e-5 * (1 + y->most);
  return true;
}

static void interpret_variance(const struct step *s, const struct seen *in, double *y) {
  const uint32_t n = in->dims[0][s->which];
  interpret_mean(s, in, y);
  for (uint64_t l = 0; l < lines(in->dims[0], s->which); l++) {
    uint64_t step, first = line_of(in->dims[0], s->which, l, &step);
    double squares = 0;
    for (uint32_t i = 0; i < n; i++) squares += pow(in->data[0][first + i * step] - y[l], 2);
    y[l] = squares / (n - 1);
  }
}

static void add_variance(struct op_test *t, const struct step *s, const struct var *const *x,
                         const uint32_t *ids, uint32_t y) {
  (void)x;
  op_node(t, "aten.var.correction",
          IDS(ids[0], op_ints(t, INTS(s->which)), op_null(t), op_bool(t, true), y));
}

/* The two largest, in order. */
static bool pick_best(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  if (!one_dim(x[0], seed, s, y) || x[0]->offset[s->which] < 2 || x[0]->error > 0) return false;
  fix(y, s->which, 2);
  return true;
}

static void interpret_best(const struct step *s, const struct seen *in, double *y) {
  for (uint64_t l = 0; l < lines(in->dims[0], s->which); l++) {
    uint64_t step, out, first = line_of(in->dims[0], s->which, l, &step);
    const uint64_t start = line_of(in->to, s->which, l, &out);
    double best[2] = {-INFINITY, -INFINITY};
    for (uint32_t i = 0; i < in->dims[0][s->which]; i++) {
      const double v = in->data[0][first + i * step];
      if (v > best[0]) {
        best[1] = best[0];
        best[0] = v;
      } else if (v > best[1]) {
        best[1] = v;
      }
    }
    y[start] = best[0];
    y[start + out] = best[1];
  }
}

static void add_best(struct op_test *t, const struct step *s, const struct var *const *x,
                     const uint32_t *ids, uint32_t y) {
  struct var two = *x[0];
  fix(&two, s->which, 2);
  op_node(t, "aten.topk.default",
          IDS(ids[0], op_int(t, 2), op_int(t, s->which), op_bool(t, true), op_bool(t, true),
              op_list(t, IDS(y, between(t, VK_INT32, &two)))));
}

const struct random_kind random_reduction[] = {
    {"reduce", pick_reduce, interpret_reduce, add_reduce},
    {"cumsum", pick_running, interpret_running, add_running},
    {"argmax", pick_place, interpret_place, add_place},
    {"prod", pick_product, interpret_product, add_product},
    {"mean", pick_mean, interpret_mean, add_mean},
    {"var", pick_variance, interpret_variance, add_variance},
    {"topk", pick_best, interpret_best, add_best},
    {0},
};
