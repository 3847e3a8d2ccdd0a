/* What depends on elements: the places that are not zero, and what is scattered to some places. */
#include "random.h"

static bool pick_scatter(const struct var *const *x, uint64_t *seed, struct step *s,
                         struct var *y) {
  (void)seed;
  s->n = 2;
  if (!is_float(x[0]) || x[1]->dtype != VK_BOOL) return false;
  for (uint32_t i = 0; i < 3; i++)
    if (!same_dim(x[0], x[1], i)) return false;
  *y = *x[0];
  y->most = fmax(y->most, 1);
  y->grain = fmin(y->grain, 0.25);
  return true;
}

static void interpret_scatter(const struct step *s, const struct seen *in, double *y) {
  uint64_t taken = 0;
  (void)s;
  for (uint64_t e = 0; e < numel_of(in->to); e++)
    y[e] = in->data[1][e] != 0 ? weight(taken++) : in->data[0][e];
}

static void add_scatter(struct op_test *t, const struct step *s, const struct var *const *x,
                        const uint32_t *ids, uint32_t y) {
  uint32_t dims[4];
  (void)s;
  dims_at(x[0], LARGEST, dims);
  op_node(t, "aten.masked_scatter.default",
          IDS(ids[0], ids[1], weights(t, x[0]->dtype, DIMS((uint32_t)numel_of(dims))), y));
}

/* Sums of the places' numbers along each dim, as (3, 1, 1): how many there are is known to nobody
 * before the call. */
static bool pick_sums(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  (void)seed;
  s->n = 1;
  if (x[0]->dtype != VK_BOOL && x[0]->dtype != VK_INT32) return false;
  *y = *x[0];
  y->dtype = VK_INT32;
  fix(y, 0, 3);
  fix(y, 1, 1);
  fix(y, 2, 1);
  y->most = (double)(ROOM * ROOM);
  return true;
}

static void interpret_sums(const struct step *s, const struct seen *in, double *y) {
  const uint32_t *d = in->dims[0];
  (void)s;
  y[0] = y[1] = y[2] = 0;
  for (uint64_t e = 0; e < numel_of(d); e++) {
    if (in->data[0][e] == 0) continue;
    y[0] += (double)(e / d[2] / d[1]);
    y[1] += (double)(e / d[2] % d[1]);
    y[2] += (double)(e % d[2]);
  }
}

static void add_sums(struct op_test *t, const struct step *s, const struct var *const *x,
                     const uint32_t *ids, uint32_t y) {
  uint32_t dims[4];
  (void)s;
  dims_at(x[0], LARGEST, dims);
  const uint32_t places = op_tensor(t, VK_INT32, DIMS((uint32_t)numel_of(dims), 3)),
                 sums = op_tensor(t, VK_INT32, DIMS(3));
  op_node(t, "aten.nonzero.default", IDS(ids[0], places));
  op_node(t, "aten.sum.dim_IntList",
          IDS(places, op_ints(t, INTS(0)), op_bool(t, false), op_null(t), sums));
  op_node(t, "aten.view_copy.default", IDS(sums, op_ints(t, INTS(3, 1, 1)), y));
}

const struct random_kind random_places[] = {
    {"masked_scatter", pick_scatter, interpret_scatter, add_scatter},
    {"nonzero", pick_sums, interpret_sums, add_sums},
    {0},
};
