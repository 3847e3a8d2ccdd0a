/* Planes: pooling, resizing. */
#include "random.h"

static bool pick_pool(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  (void)seed;
  s->n = 1;
  if (!is_float(x[0]) || x[0]->offset[1] < 2 || x[0]->offset[2] < 2) return false;
  *y = *x[0];
  y->offset[1]--, y->offset[2]--;
  y->grain /= 4;
  y->error *= 2;
  return true;
}

static void interpret_pool(const struct step *s, const struct seen *in, double *y) {
  (void)s;
  const uint32_t *d = in->dims[0];
  for (uint32_t c = 0; c < in->to[0]; c++)
    for (uint32_t i = 0; i < in->to[1]; i++)
      for (uint32_t k = 0; k < in->to[2]; k++) {
        const double *at = in->data[0] + ((uint64_t)c * d[1] + i) * d[2] + k;
        *y++ = (at[0] + at[1] + at[d[2]] + at[d[2] + 1]) / 4;
      }
}

static void add_pool(struct op_test *t, const struct step *s, const struct var *const *x,
                     const uint32_t *ids, uint32_t y) {
  (void)s, (void)x;
  op_node(t, "aten.avg_pool2d.default",
          IDS(ids[0], op_ints(t, INTS(2, 2)), op_ints(t, INTS(1, 1)), op_ints(t, INTS(0, 0)),
              op_bool(t, false), op_bool(t, true), op_null(t), y));
}

static bool pick_peak(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  (void)seed;
  s->n = 1;
  if (!is_float(x[0]) || x[0]->offset[0] == 0 || x[0]->offset[1] < 2 || x[0]->offset[2] < 2)
    return false;
  *y = *x[0];
  y->offset[1]--, y->offset[2]--;
  return true;
}

static void interpret_peak(const struct step *s, const struct seen *in, double *y) {
  const uint32_t *d = in->dims[0];
  (void)s;
  for (uint64_t e = 0; e < (uint64_t)in->to[0] * in->to[1] * in->to[2]; e++) {
    const double *x =
        in->data[0] + at(d, e / in->to[2] / in->to[1], e / in->to[2] % in->to[1], e % in->to[2]);
    y[e] = fmax(fmax(x[0], x[1]), fmax(x[d[2]], x[d[2] + 1]));
  }
}

static void add_peak(struct op_test *t, const struct step *s, const struct var *const *x,
                     const uint32_t *ids, uint32_t y) {
  struct var less = *x[0];
  (void)s;
  less.offset[1]--, less.offset[2]--;
  const uint32_t wide = widened(t, x[0], ids[0], 1, 1), to = wide_result(t, &less, 1, 1);
  op_node(t, "aten.max_pool2d.default",
          IDS(wide, op_ints(t, INTS(2, 2)), op_ints(t, INTS(1, 1)), op_ints(t, INTS(0, 0)),
              op_ints(t, INTS(1, 1)), op_bool(t, false), to));
  narrowed(t, to, 1, 1, y);
}

static bool pick_resize(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  (void)seed;
  s->n = 1;
  if (!is_float(x[0]) || x[0]->offset[1] == 0 || x[0]->offset[2] == 0 || x[0]->offset[0] == 0)
    return false;
  *y = *x[0];
  for (int i = 1; i < 3; i++) y->scale[i] *= 2, y->offset[i] *= 2;
  return true;
}

static void interpret_resize(const struct step *s, const struct seen *in, double *y) {
  (void)s;
  for (uint64_t e = 0; e < (uint64_t)in->to[0] * in->to[1] * in->to[2]; e++)
    y[e] = in->data[0][at(in->dims[0], e / in->to[2] / in->to[1], e / in->to[2] % in->to[1] / 2,
                          e % in->to[2] / 2)];
}

static void add_resize(struct op_test *t, const struct step *s, const struct var *const *x,
                       const uint32_t *ids, uint32_t y) {
  struct var twice = *x[0];
  (void)s;
  for (int i = 1; i < 3; i++) twice.scale[i] *= 2, twice.offset[i] *= 2;
  const uint32_t wide = widened(t, x[0], ids[0], 0, 1), to = wide_result(t, &twice, 0, 1);
  op_node(t, "aten.upsample_nearest2d.vec",
          IDS(wide, op_null(t), op_doubles(t, (const double[]){2, 2}, 2), to));
  narrowed(t, to, 0, 1, y);
}

/* ---- the gradient of the largest of 2 by 2, which is what they were: of equals the first
 * ---------
 */

static bool pick_back(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  if (!pick_peak(x, seed, s, y) || x[0]->error > 0) return false;
  *y = *x[0];
  y->most *= 4;
  return true;
}

static void interpret_back(const struct step *s, const struct seen *in, double *y) {
  const uint32_t *d = in->to;
  (void)s;
  memset(y, 0, (size_t)numel_of(d) * sizeof *y);
  for (uint32_t c = 0; c < d[0]; c++)
    for (uint32_t i = 0; i + 1 < d[1]; i++)
      for (uint32_t k = 0; k + 1 < d[2]; k++) {
        uint64_t best = at(d, c, i, k);
        for (uint32_t o = 1; o < 4; o++) {
          const uint64_t other = at(d, c, i + o / 2, k + o % 2);
          if (in->data[0][other] > in->data[0][best]) best = other;
        }
        y[best] += in->data[0][best];
      }
}

static void add_back(struct op_test *t, const struct step *s, const struct var *const *x,
                     const uint32_t *ids, uint32_t y) {
  struct var less = *x[0], places;
  (void)s;
  less.offset[1]--, less.offset[2]--;
  places = less;
  places.dtype = VK_INT32;
  const uint32_t wide = widened(t, x[0], ids[0], 0, 1), most = wide_result(t, &less, 0, 1),
                 from = wide_result(t, &places, 0, 1), to = wide_result(t, x[0], 0, 1);
  const uint32_t two = op_ints(t, INTS(2, 2)), one = op_ints(t, INTS(1, 1)),
                 zero = op_ints(t, INTS(0, 0)), no = op_bool(t, false);
  op_node(t, "aten.max_pool2d_with_indices.default",
          IDS(wide, two, one, zero, one, no, op_list(t, IDS(most, from))));
  op_node(t, "aten.max_pool2d_with_indices_backward.default",
          IDS(most, wide, two, one, zero, one, no, from, to));
  narrowed(t, to, 0, 1, y);
}

/* ---- twice as large, between four neighbours ----------------------------------------------------
 */

static bool pick_smooth(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  if (!pick_resize(x, seed, s, y)) return false;
  y->grain /= 16;
  y->error *= 2;
  return true;
}

/* The place before `to` in a line of `size`, and how far it is on the way to the next. */
static uint32_t neighbour(uint32_t to, uint32_t size, uint32_t *next, double *way) {
  const double from = fmax((to + 0.5) / 2 - 0.5, 0);
  const uint32_t first = (uint32_t)from;
  *way = from - first;
  *next = first + 1 < size ? first + 1 : first;
  return first;
}

static void interpret_smooth(const struct step *s, const struct seen *in, double *y) {
  const uint32_t *d = in->dims[0], *to = in->to;
  (void)s;
  for (uint64_t e = 0; e < numel_of(to); e++) {
    const uint64_t c = e / to[2] / to[1];
    uint32_t i[2], j[2];
    double u, v;
    i[0] = neighbour((uint32_t)(e / to[2] % to[1]), d[1], &i[1], &u);
    j[0] = neighbour((uint32_t)(e % to[2]), d[2], &j[1], &v);
    y[e] = 0;
    for (int k = 0; k < 4; k++)
      y[e] += in->data[0][at(d, c, i[k / 2], j[k % 2])] * (k / 2 ? u : 1 - u) * (k % 2 ? v : 1 - v);
  }
}

static void add_smooth(struct op_test *t, const struct step *s, const struct var *const *x,
                       const uint32_t *ids, uint32_t y) {
  struct var twice = *x[0];
  (void)s;
  for (int i = 1; i < 3; i++) twice.scale[i] *= 2, twice.offset[i] *= 2;
  const uint32_t wide = widened(t, x[0], ids[0], 0, 1), to = wide_result(t, &twice, 0, 1);
  op_node(t, "aten.upsample_bilinear2d.vec",
          IDS(wide, op_null(t), op_bool(t, false), op_doubles(t, (const double[]){2, 2}, 2), to));
  narrowed(t, to, 0, 1, y);
}

/* ---- 2 by 3 places of planes (1, C, H, W): quarters, also beyond the edges ----------------------
 */

enum { NEAREST = 1, BORDER = 2, PLACES_H = 2, PLACES_W = 3 };

static double place_of(uint32_t i) { return 1.5 * weight(i + 2); }

static bool pick_sample(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  s->which = below(seed, 4);
  s->n = 1;
  if (!is_float(x[0]) || !x[0]->offset[1] || !x[0]->offset[2] || !x[0]->offset[0]) return false;
  *y = *x[0];
  fix(y, 1, PLACES_H);
  fix(y, 2, PLACES_W);
  if (s->which & NEAREST) return true;
  y->grain /= 65536;
  y->error = 2 * y->error + 2e-6 * y->most;
  return true;
}

static double pixel(const struct seen *in, uint64_t c, double i, double j) {
  const uint32_t *d = in->dims[0];
  if (i < 0 || j < 0 || i >= d[1] || j >= d[2]) return 0;
  return in->data[0][at(d, c, (uint64_t)i, (uint64_t)j)];
}

static void interpret_sample(const struct step *s, const struct seen *in, double *y) {
  const uint32_t *d = in->dims[0];
  for (uint64_t e = 0; e < numel_of(in->to); e++) {
    const uint32_t k = (uint32_t)(e % (PLACES_H * PLACES_W));
    const uint64_t c = e / (PLACES_H * PLACES_W);
    double i = ((place_of(2 * k + 1) + 1) * d[1] - 1) / 2,
           j = ((place_of(2 * k) + 1) * d[2] - 1) / 2;
    if (s->which & BORDER) i = fmin(fmax(i, 0), d[1] - 1.0), j = fmin(fmax(j, 0), d[2] - 1.0);
    if (s->which & NEAREST) {
      y[e] = pixel(in, c, nearbyint(i), nearbyint(j));
      continue;
    }
    const double u = i - floor(i), v = j - floor(j);
    y[e] = 0;
    for (int n = 0; n < 4; n++)
      y[e] += pixel(in, c, floor(i) + n / 2, floor(j) + n % 2) * (n / 2 ? u : 1 - u) *
              (n % 2 ? v : 1 - v);
  }
}

static void add_sample(struct op_test *t, const struct step *s, const struct var *const *x,
                       const uint32_t *ids, uint32_t y) {
  double values[2 * PLACES_H * PLACES_W];
  struct var less = *x[0];
  for (uint32_t i = 0; i < 2 * PLACES_H * PLACES_W; i++) values[i] = place_of(i);
  fix(&less, 1, PLACES_H);
  fix(&less, 2, PLACES_W);
  const uint32_t wide = widened(t, x[0], ids[0], 0, 1), to = wide_result(t, &less, 0, 1);
  const uint32_t grid = op_constant(t, x[0]->dtype, DIMS(1, PLACES_H, PLACES_W, 2), values);
  op_node(t, "aten.grid_sampler_2d.default",
          IDS(wide, grid, op_int(t, s->which & NEAREST ? 1 : 0),
              op_int(t, s->which & BORDER ? 1 : 0), op_bool(t, false), to));
  narrowed(t, to, 0, 1, y);
}

const struct random_kind random_spatial[] = {
    {"avg_pool2d", pick_pool, interpret_pool, add_pool},
    {"max_pool2d", pick_peak, interpret_peak, add_peak},
    {"upsample", pick_resize, interpret_resize, add_resize},
    {"gradient of max_pool2d", pick_back, interpret_back, add_back},
    {"upsample_bilinear2d", pick_smooth, interpret_smooth, add_smooth},
    {"grid_sampler_2d", pick_sample, interpret_sample, add_sample},
    {0},
};
