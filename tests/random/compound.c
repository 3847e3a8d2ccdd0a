/* Operators that become others: any, masked_fill, clamp between tensors, glu, stack, extrema. */
#include "random.h"

static bool pick_any(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  s->move.n = 0;
  if (!one_dim(x[0], seed, s, y) || is_byte(x[0]) || x[0]->error > 0) return false;
  y->dtype = VK_BOOL;
  y->most = 1;
  y->grain = 1;
  return true;
}

static void interpret_any(const struct step *s, const struct seen *in, double *y) {
  for (uint64_t l = 0; l < lines(in->dims[0], s->which); l++) {
    uint64_t step, first = line_of(in->dims[0], s->which, l, &step);
    y[l] = 0;
    for (uint32_t i = 0; i < in->dims[0][s->which]; i++)
      y[l] = y[l] != 0 || in->data[0][first + i * step] != 0;
  }
}

static void add_any(struct op_test *t, const struct step *s, const struct var *const *x,
                    const uint32_t *ids, uint32_t y) {
  (void)x;
  op_node(t, "aten.any.dim", IDS(ids[0], op_int(t, s->which), op_bool(t, true), y));
}

static bool pick_masked(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  (void)seed;
  struct var repeated;
  s->n = 2;
  *y = *x[0];
  y->most = fmax(y->most, 2);
  if (!is_number(x[0]) || x[1]->dtype != VK_BOOL || !broadcast(x[0], x[1], &repeated)) return false;
  for (uint32_t i = 0; i < 3; i++)
    if (!same_dim(&repeated, x[0], i)) return false;
  return true;
}

static void interpret_masked(const struct step *s, const struct seen *in, double *y) {
  (void)s;
  for (uint64_t e = 0; e < numel_of(in->to); e++)
    y[e] = in->data[1][place(in->dims[1], in->to, e)] != 0 ? -2 : in->data[0][e];
}

static void add_masked(struct op_test *t, const struct step *s, const struct var *const *x,
                       const uint32_t *ids, uint32_t y) {
  (void)s, (void)x;
  op_node(t, "aten.masked_fill.Scalar", IDS(ids[0], ids[1], op_int(t, -2), y));
}

/* Between two others, or above one; where they cross, the upper one counts. */
static bool pick_clamp(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  s->which = below(seed, 2);
  s->move.n = 0;
  s->n = 3;
  struct var two;
  *y = *x[0];
  for (int i = 1; i < 3; i++) {
    if (x[i]->dtype != x[0]->dtype || !is_number(x[0])) return false;
    y->most = fmax(y->most, x[i]->most);
    y->grain = fmin(y->grain, x[i]->grain);
    y->error = fmax(y->error, x[i]->error);
  }
  two = *y;
  return broadcast(x[0], x[1], &two) && (s->which || broadcast(&two, x[2], y)) &&
         (!s->which || broadcast(x[0], x[1], y));
}

static void interpret_clamp(const struct step *s, const struct seen *in, double *y) {
  for (uint64_t e = 0; e < numel_of(in->to); e++) {
    y[e] = fmax(in->data[0][place(in->dims[0], in->to, e)],
                in->data[1][place(in->dims[1], in->to, e)]);
    if (!s->which) y[e] = fmin(y[e], in->data[2][place(in->dims[2], in->to, e)]);
  }
}

static void add_clamp(struct op_test *t, const struct step *s, const struct var *const *x,
                      const uint32_t *ids, uint32_t y) {
  (void)x;
  op_node(t, "aten.clamp.Tensor", IDS(ids[0], ids[1], s->which ? op_null(t) : ids[2], y));
}

/* The first half of a dim, times the logistic function of the second. */
static bool pick_glu(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  s->move.n = 0;
  if (!one_dim(x[0], seed, s, y) || !is_float(x[0]) || x[0]->offset[s->which] % 2) return false;
  fix(y, s->which, x[0]->offset[s->which] / 2);
  y->grain = 1e-12;
  y->error = x[0]->error * (1 + x[0]->most / 4) + 1e-5 * x[0]->most;
  return true;
}

static void interpret_glu(const struct step *s, const struct seen *in, double *y) {
  const uint32_t half = in->to[s->which];
  for (uint64_t l = 0; l < lines(in->to, s->which); l++) {
    uint64_t step, first = line_of(in->dims[0], s->which, l, &step);
    const uint64_t out = line_of(in->to, s->which, l, &step);
    for (uint32_t i = 0; i < half; i++)
      y[out + i * step] =
          in->data[0][first + i * step] / (1 + exp(-in->data[0][first + (i + half) * step]));
  }
}

static void add_glu(struct op_test *t, const struct step *s, const struct var *const *x,
                    const uint32_t *ids, uint32_t y) {
  (void)x;
  op_node(t, "aten.glu.default", IDS(ids[0], op_int(t, (int64_t)s->which - 3), y));
}

/* (a, b, c) twice: (2, a, b, c), and so (2 a, b, c). */
static bool pick_stack(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  (void)seed;
  s->n = 2;
  s->specials = true;
  if (x[0]->dtype != x[1]->dtype || !is_some(x[0], 1) || !is_some(x[0], 2)) return false;
  for (uint32_t i = 0; i < 3; i++)
    if (!same_dim(x[0], x[1], i)) return false;
  *y = *x[0];
  y->scale[0] *= 2, y->offset[0] *= 2;
  y->most = fmax(x[0]->most, x[1]->most);
  y->grain = fmin(x[0]->grain, x[1]->grain);
  y->error = fmax(x[0]->error, x[1]->error);
  return true;
}

static void interpret_stack(const struct step *s, const struct seen *in, double *y) {
  const uint64_t n = numel_of(in->dims[0]);
  (void)s;
  memcpy(y, in->data[0], (size_t)n * sizeof *y);
  memcpy(y + n, in->data[1], (size_t)n * sizeof *y);
}

static void add_stack(struct op_test *t, const struct step *s, const struct var *const *x,
                      const uint32_t *ids, uint32_t y) {
  uint32_t dims[5] = {2};
  (void)s;
  dims_at(x[0], LARGEST, dims + 1);
  const uint32_t both = op_tensor(t, x[0]->dtype, dims, 4);
  op_node(t, "aten.stack.default", IDS(op_list(t, IDS(ids[0], ids[1])), op_int(t, 0), both));
  op_node(t, "aten.view_copy.default", IDS(both, op_ints(t, INTS(-1, dims[2], dims[3])), y));
}

/* Of all elements, which there must be. */
static bool pick_extreme(const struct var *const *x, uint64_t *seed, struct step *s,
                         struct var *y) {
  s->which = below(seed, 2);
  s->move.n = 0;
  s->n = 1;
  s->specials = false;
  if (!is_number(x[0]) || !x[0]->offset[0] || !x[0]->offset[1] || !x[0]->offset[2]) return false;
  *y = *x[0];
  for (uint32_t i = 0; i < 3; i++) fix(y, i, 1);
  return true;
}

static void interpret_extreme(const struct step *s, const struct seen *in, double *y) {
  y[0] = in->data[0][0];
  for (uint64_t e = 0; e < numel_of(in->dims[0]); e++)
    y[0] = s->which ? fmax(y[0], in->data[0][e]) : fmin(y[0], in->data[0][e]);
}

static void add_extreme(struct op_test *t, const struct step *s, const struct var *const *x,
                        const uint32_t *ids, uint32_t y) {
  const uint32_t one = op_tensor(t, x[0]->dtype, NULL, 0);
  op_node(t, s->which ? "aten.max.default" : "aten.min.default", IDS(ids[0], one));
  op_node(t, "aten.view_copy.default", IDS(one, op_ints(t, INTS(1, 1, 1)), y));
}

const struct random_kind random_compound[] = {
    {"any", pick_any, interpret_any, add_any},
    {"masked_fill", pick_masked, interpret_masked, add_masked},
    {"clamp between tensors", pick_clamp, interpret_clamp, add_clamp},
    {"glu", pick_glu, interpret_glu, add_glu},
    {"stack", pick_stack, interpret_stack, add_stack},
    {"extreme", pick_extreme, interpret_extreme, add_extreme},
    {0},
};
