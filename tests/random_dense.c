/* Products, normalisation, pooling and indexing for random graphs: what each asks of its operands,
 * what it means in double, and its node. Weights are small numbers that a place makes. */
#include "random.h"

static bool is_float(const struct var *v) {
  return v->dtype == VK_FLOAT32 || v->dtype == VK_FLOAT16;
}

static void fix(struct var *v, uint32_t i, uint32_t size) { v->scale[i] = 0, v->offset[i] = size; }

/* Quarters from -1 to 1. */
static double weight(uint64_t i) { return ((double)(i * 7 % 9) - 4) / 4; }

static uint32_t weights(struct op_test *t, enum vk_dtype dtype, const uint32_t *dims,
                        uint32_t rank) {
  double values[ROOM];
  uint64_t n = 1;
  for (uint32_t i = 0; i < rank; i++) n *= dims[i];
  for (uint64_t i = 0; i < n && i < ROOM; i++) values[i] = weight(i);
  return op_constant(t, dtype, dims, rank, values);
}

/* A sum of `count` products with numbers of at most `most`, which are multiples of `grain`. */
static void add_up(struct var *y, double count, double most, double grain, double error) {
  const double before = y->most;
  y->error = count * (y->error * most + error * before + y->error * error);
  y->most = fmax(count, 1) * before * most;
  y->grain *= grain;
}

/* ---- bmm: (B, M, K) times (B, K, N) ---------------------------------------------------------- */

static bool pick_bmm(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  const struct var *a = x[0], *b = x[1];
  (void)seed;
  if (a->dtype != b->dtype || a->dtype == VK_BOOL || !same_dim(a, b, 0)) return false;
  if (a->scale[2] != b->scale[1] || a->offset[2] != b->offset[1]) return false;
  *y = *a;
  y->scale[2] = b->scale[2], y->offset[2] = b->offset[2];
  add_up(y, a->scale[2] * LARGEST + a->offset[2], b->most, b->grain, b->error);
  s->n = 2;
  return true;
}

static void interpret_bmm(const struct step *s, const uint32_t (*dims)[4],
                          const double *const *data, const uint32_t *to, double *y) {
  (void)s;
  const uint32_t depth = dims[0][2];
  for (uint32_t b = 0; b < to[0]; b++)
    for (uint32_t m = 0; m < to[1]; m++)
      for (uint32_t n = 0; n < to[2]; n++) {
        double sum = 0;
        for (uint32_t k = 0; k < depth; k++)
          sum += data[0][(b * to[1] + m) * depth + k] * data[1][(b * depth + k) * to[2] + n];
        *y++ = sum;
      }
}

static void add_bmm(struct op_test *t, const struct step *s, const struct var *const *x,
                    const uint32_t *ids, uint32_t y) {
  (void)s, (void)x;
  op_node(t, "aten.bmm.default", IDS(ids[0], ids[1], y));
}

/* ---- linear: x (…, K), w (which, K), a bias ---------------------------------------------------
 */

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

static void interpret_linear(const struct step *s, const uint32_t (*dims)[4],
                             const double *const *data, const uint32_t *to, double *y) {
  const uint32_t depth = dims[0][2], rows = to[0] * to[1];
  for (uint32_t m = 0; m < rows; m++)
    for (uint32_t n = 0; n < s->which; n++) {
      double sum = weight(n);
      for (uint32_t k = 0; k < depth; k++) sum += data[0][m * depth + k] * weight(n * depth + k);
      *y++ = sum;
    }
}

static void add_linear(struct op_test *t, const struct step *s, const struct var *const *x,
                       const uint32_t *ids, uint32_t y) {
  const uint32_t w = weights(t, x[0]->dtype, DIMS(s->which, x[0]->offset[2]));
  op_node(t, "aten.linear.default", IDS(ids[0], w, weights(t, x[0]->dtype, DIMS(s->which)), y));
}

/* ---- a convolution along the last dim: 3 taps, padded by 1, w (which, C, 3) -------------------
 */

static bool pick_conv(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  s->which = 1 + below(seed, 5);
  s->n = 1;
  if (!is_float(x[0]) || !is_fixed(x[0], 1) || x[0]->offset[1] == 0 || x[0]->offset[1] > 20)
    return false;
  if (x[0]->offset[2] == 0) return false; /* PyTorch has none of no elements */
  *y = *x[0];
  fix(y, 1, s->which);
  add_up(y, 3.0 * x[0]->offset[1], 1, 0.25, 0);
  return true;
}

static void interpret_conv(const struct step *s, const uint32_t (*dims)[4],
                           const double *const *data, const uint32_t *to, double *y) {
  const uint32_t channels = dims[0][1], length = dims[0][2];
  for (uint32_t b = 0; b < to[0]; b++)
    for (uint32_t o = 0; o < s->which; o++)
      for (uint32_t at = 0; at < length; at++) {
        double sum = 0;
        for (uint32_t c = 0; c < channels; c++)
          for (uint32_t k = 0; k < 3; k++)
            if (at + k >= 1 && at + k <= length)
              sum += data[0][(b * channels + c) * length + at + k - 1] *
                     weight((o * channels + c) * 3 + k);
        *y++ = sum;
      }
}

static void add_conv(struct op_test *t, const struct step *s, const struct var *const *x,
                     const uint32_t *ids, uint32_t y) {
  const uint32_t one = op_ints(t, INTS(1)),
                 w = weights(t, x[0]->dtype, DIMS(s->which, x[0]->offset[1], 3));
  op_node(t, "aten.convolution.default",
          IDS(ids[0], w, op_null(t), one, one, one, op_bool(t, false), op_ints(t, INTS(0)),
              op_int(t, 1), y));
}

/* ---- layer norm of the last dim; softmax along any --------------------------------------------
 */

/* With an epsilon of 1 no slope is above 2. */
static bool pick_norm(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  (void)seed;
  s->n = 1;
  if (!is_float(x[0]) || !is_fixed(x[0], 2) || x[0]->offset[2] == 0) return false;
  *y = *x[0];
  y->most = sqrt(x[0]->offset[2]);
  y->grain = 1e-12;
  y->error = 2 * x[0]->error + 1e-5 * (1 + y->most + 1e-2 * x[0]->most);
  return true;
}

static void interpret_norm(const struct step *s, const uint32_t (*dims)[4],
                           const double *const *data, const uint32_t *to, double *y) {
  (void)s, (void)to;
  const uint32_t cols = dims[0][2], rows = dims[0][0] * dims[0][1];
  for (uint32_t r = 0; r < rows; r++) {
    const double *x = data[0] + (size_t)r * cols;
    double mean = 0, square = 0;
    for (uint32_t i = 0; i < cols; i++) mean += x[i] / cols;
    for (uint32_t i = 0; i < cols; i++) square += (x[i] - mean) * (x[i] - mean) / cols;
    for (uint32_t i = 0; i < cols; i++) *y++ = (x[i] - mean) / sqrt(square + 1);
  }
}

static void add_norm(struct op_test *t, const struct step *s, const struct var *const *x,
                     const uint32_t *ids, uint32_t y) {
  (void)s;
  uint32_t dims[4];
  dims_at(x[0], LARGEST, dims);
  dims[2] = 1;
  const uint32_t mean = op_tensor(t, x[0]->dtype, dims, 3),
                 rstd = op_tensor(t, x[0]->dtype, dims, 3);
  op_node(t, "aten.native_layer_norm.default",
          IDS(ids[0], op_ints(t, INTS(x[0]->offset[2])), op_null(t), op_null(t), op_double(t, 1),
              op_list(t, IDS(y, mean, rstd))));
}

static bool pick_softmax(const struct var *const *x, uint64_t *seed, struct step *s,
                         struct var *y) {
  s->which = below(seed, 3);
  s->n = 1;
  if (!is_float(x[0]) || x[0]->most > 100) return false;
  *y = *x[0];
  y->most = 1;
  y->grain = 1e-12;
  y->error = 2 * x[0]->error + 1e-5 * (1 + 0.1 * x[0]->most);
  return true;
}

static void interpret_softmax(const struct step *s, const uint32_t (*dims)[4],
                              const double *const *data, const uint32_t *to, double *y) {
  const uint32_t *d = dims[0], size = d[s->which];
  uint64_t inner = 1;
  for (uint32_t i = s->which + 1; i < 3; i++) inner *= d[i];
  for (uint64_t e = 0; e < (uint64_t)to[0] * to[1] * to[2]; e++) {
    const double *first = data[0] + (e - e / inner % size * inner);
    double largest = -INFINITY, sum = 0;
    for (uint32_t i = 0; i < size; i++) largest = fmax(largest, first[i * inner]);
    for (uint32_t i = 0; i < size; i++) sum += exp(first[i * inner] - largest);
    y[e] = exp(data[0][e] - largest) / sum;
  }
}

static void add_softmax(struct op_test *t, const struct step *s, const struct var *const *x,
                        const uint32_t *ids, uint32_t y) {
  (void)x;
  op_node(t, "aten._softmax.default",
          IDS(ids[0], op_int(t, (int64_t)s->which - 3), op_bool(t, false), y));
}

/* ---- the mean of 2 by 2 -----------------------------------------------------------------------
 */

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

static void interpret_pool(const struct step *s, const uint32_t (*dims)[4],
                           const double *const *data, const uint32_t *to, double *y) {
  (void)s;
  const uint32_t *d = dims[0];
  for (uint32_t c = 0; c < to[0]; c++)
    for (uint32_t i = 0; i < to[1]; i++)
      for (uint32_t k = 0; k < to[2]; k++) {
        const double *at = data[0] + ((uint64_t)c * d[1] + i) * d[2] + k;
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

/* ---- rows by index: 4 of a fixed dim ---------------------------- */

static bool pick_rows(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  s->which = below(seed, 3);
  s->n = 1;
  if (!is_fixed(x[0], s->which) || x[0]->offset[s->which] == 0) return false;
  *y = *x[0];
  fix(y, s->which, 4);
  return true;
}

static int64_t row(uint32_t i, uint32_t size) { return (int64_t)(i * 5 % size); }

static void interpret_rows(const struct step *s, const uint32_t (*dims)[4],
                           const double *const *data, const uint32_t *to, double *y) {
  const uint32_t *d = dims[0];
  for (uint64_t e = 0; e < (uint64_t)to[0] * to[1] * to[2]; e++) {
    uint64_t c[3] = {e / to[2] / to[1], e / to[2] % to[1], e % to[2]};
    c[s->which] = (uint64_t)row((uint32_t)c[s->which], d[s->which]);
    y[e] = data[0][(c[0] * d[1] + c[1]) * d[2] + c[2]];
  }
}

static void add_rows(struct op_test *t, const struct step *s, const struct var *const *x,
                     const uint32_t *ids, uint32_t y) {
  double places[4];
  for (uint32_t i = 0; i < 4; i++) places[i] = (double)row(i, x[0]->offset[s->which]);
  op_node(t, "aten.index_select.default",
          IDS(ids[0], op_int(t, s->which), op_constant(t, VK_INT32, DIMS(4), places), y));
}

/* ---- slice_scatter: the second operand over the first rows of the first -----------------------
 */

static bool pick_put(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  const struct var *a = x[0], *b = x[1];
  s->which = below(seed, 3);
  s->n = 2;
  if (a->dtype != b->dtype || !is_fixed(a, s->which) || !is_fixed(b, s->which) ||
      b->offset[s->which] > a->offset[s->which])
    return false;
  for (uint32_t i = 0; i < 3; i++)
    if (i != s->which && !same_dim(a, b, i)) return false;
  *y = *a;
  y->most = fmax(a->most, b->most);
  y->grain = fmin(a->grain, b->grain);
  y->error = fmax(a->error, b->error);
  s->move.n = b->offset[s->which];
  return true;
}

static void interpret_put(const struct step *s, const uint32_t (*dims)[4],
                          const double *const *data, const uint32_t *to, double *y) {
  const uint32_t *d = dims[1];
  for (uint64_t e = 0; e < (uint64_t)to[0] * to[1] * to[2]; e++) {
    const uint64_t c[3] = {e / to[2] / to[1], e / to[2] % to[1], e % to[2]};
    y[e] = c[s->which] < s->move.n ? data[1][(c[0] * d[1] + c[1]) * d[2] + c[2]] : data[0][e];
  }
}

static void add_put(struct op_test *t, const struct step *s, const struct var *const *x,
                    const uint32_t *ids, uint32_t y) {
  (void)x;
  op_node(t, "aten.slice_scatter.default",
          IDS(ids[0], ids[1], op_int(t, s->which), op_int(t, 0), op_int(t, s->move.n), op_int(t, 1),
              y));
}

const struct random_kind random_dense[DENSE_KINDS] = {
    {"bmm", pick_bmm, interpret_bmm, add_bmm},
    {"linear", pick_linear, interpret_linear, add_linear},
    {"convolution", pick_conv, interpret_conv, add_conv},
    {"layer_norm", pick_norm, interpret_norm, add_norm},
    {"softmax", pick_softmax, interpret_softmax, add_softmax},
    {"avg_pool2d", pick_pool, interpret_pool, add_pool},
    {"index_select", pick_rows, interpret_rows, add_rows},
    {"slice_scatter", pick_put, interpret_put, add_put},
};
