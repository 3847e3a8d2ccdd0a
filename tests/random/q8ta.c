/* Operators whose activations are bytes, by the definitions of ExecuTorch's Vulkan library:
 * real = (byte - zero) scale, computed in reals, and a byte again, halves to even. Scales are
 * powers of two, so all of it is exact. */
#include "random.h"

static const double x_scale = 0.5, b_scale = 0.25, x_zero = -3, y_zero = 5;

static double byte_of(double real, double scale, double zero, enum vk_dtype dtype) {
  const double low = dtype == VK_UINT8 ? 0 : -128;
  return fmin(fmax(nearbyint(real / scale) + zero, low), low + 255);
}

/* Weights are bytes of all sizes, their scales halves and quarters. */
static double code(uint64_t i) { return (double)(i * 37 % 255) - 127; }
static double channel_scale(uint64_t c) { return 1.0 / (double)(8 << c % 2); }

static uint32_t scales_of(struct op_test *t, uint32_t n) {
  double values[ROOM];
  for (uint32_t i = 0; i < n; i++) values[i] = channel_scale(i);
  return op_constant(t, VK_FLOAT32, DIMS(n), values);
}

static uint32_t no_sums(struct op_test *t) { /* which nobody reads */
  return op_constant(t, VK_INT32, DIMS(1), (const double[]){0});
}

/* ---- sums and what is above zero ----------------------------------------------------------------
 */

static bool pick_sum(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  s->which = below(seed, 2);
  s->move.n = 0;
  s->n = 2;
  *y = *x[0];
  y->most = 255;
  return is_byte(x[0]) && x[0]->dtype == x[1]->dtype && broadcast(x[0], x[1], y);
}

static void interpret_sum(const struct step *s, const struct seen *in, double *y) {
  const double alpha = s->which ? 1 : 2;
  for (uint64_t e = 0; e < numel_of(in->to); e++) {
    const double a = in->data[0][place(in->dims[0], in->to, e)];
    const double b = in->data[1][place(in->dims[1], in->to, e)];
    y[e] = byte_of((a - x_zero) * x_scale + alpha * (b - 7) * b_scale, 1, y_zero, in->dtype);
  }
}

static void add_sum(struct op_test *t, const struct step *s, const struct var *const *x,
                    const uint32_t *ids, uint32_t y) {
  const uint32_t sa = op_double(t, x_scale), za = op_int(t, (int64_t)x_zero),
                 sb = op_double(t, b_scale), zb = op_int(t, 7), so = op_double(t, 1),
                 zo = op_int(t, (int64_t)y_zero);
  const int64_t least = x[0]->dtype == VK_UINT8 ? 0 : -128;
  const uint32_t low = op_int(t, least), high = op_int(t, least + 255);
  if (s->which)
    op_node(t, "quantized_decomposed.add.default",
            IDS(ids[0], sa, za, low, high, ids[1], sb, zb, low, high, so, zo, low, high, y));
  else
    op_node(t, "et_vk.q8ta_add.default",
            IDS(ids[0], ids[1], sa, za, sb, zb, so, zo, op_double(t, 2), y));
}

static bool pick_relu(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  (void)seed;
  s->n = 1;
  *y = *x[0];
  y->most = 255;
  return is_byte(x[0]);
}

static void interpret_relu(const struct step *s, const struct seen *in, double *y) {
  (void)s;
  for (uint64_t e = 0; e < numel_of(in->to); e++)
    y[e] = byte_of(fmax((in->data[0][e] - x_zero) * x_scale, 0), 1, y_zero, in->dtype);
}

static void add_relu(struct op_test *t, const struct step *s, const struct var *const *x,
                     const uint32_t *ids, uint32_t y) {
  (void)s, (void)x;
  op_node(t, "et_vk.q8ta_relu.default",
          IDS(ids[0], op_double(t, x_scale), op_int(t, (int64_t)x_zero), op_double(t, 1),
              op_int(t, (int64_t)y_zero), y));
}

/* ---- linear: x (…, K), w (which, K), a bias or none, a relu or none; bytes or floats ------------
 */

enum { RELU = 1, BIAS = 2, REAL = 4 };
static const double y_scale = 16;

static bool pick_linear(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  s->which = 1 + below(seed, 6);
  s->move.x[0] = below(seed, 8);
  s->move.n = 0;
  s->n = 1;
  if (x[0]->dtype != VK_INT8 || !is_some(x[0], 2) || x[0]->offset[2] > 40) return false;
  *y = *x[0];
  fix(y, 2, s->which);
  y->most = 255;
  if (!(s->move.x[0] & REAL)) return true;
  y->dtype = VK_FLOAT32;
  y->most = 255 * 127 / 16.0 * x[0]->offset[2] + 1;
  y->grain = 1 / 32.0;
  return true;
}

static void interpret_linear(const struct step *s, const struct seen *in, double *y) {
  const uint32_t depth = in->dims[0][2], form = s->move.x[0];
  for (uint64_t e = 0; e < numel_of(in->to); e++) {
    const uint64_t m = e / s->which, n = e % s->which;
    double sum = 0;
    for (uint32_t k = 0; k < depth; k++)
      sum +=
          (in->data[0][m * depth + k] - x_zero) * x_scale * code(n * depth + k) * channel_scale(n);
    if (form & BIAS) sum += weight(n);
    y[e] = form & REAL ? sum : byte_of(form & RELU ? fmax(sum, 0) : sum, y_scale, y_zero, VK_INT8);
  }
}

static void add_linear(struct op_test *t, const struct step *s, const struct var *const *x,
                       const uint32_t *ids, uint32_t y) {
  const uint32_t depth = x[0]->offset[2], n = s->which, form = s->move.x[0];
  double values[ROOM];
  for (uint32_t i = 0; i < n * depth && i < ROOM; i++) values[i] = code(i);
  const uint32_t w = op_constant(t, VK_INT8, DIMS(n, depth), values), sums = no_sums(t),
                 scales = scales_of(t, n), xs = op_double(t, x_scale),
                 xz = op_int(t, (int64_t)x_zero),
                 bias = form & BIAS ? weights(t, VK_FLOAT32, DIMS(n)) : op_null(t);
  if (form & REAL)
    op_node(t, "et_vk.linear_q8ta_q8csw.default", IDS(ids[0], xs, xz, w, sums, scales, bias, y));
  else
    op_node(t, "et_vk.q8ta_linear.default",
            IDS(ids[0], xs, xz, w, sums, scales, op_double(t, y_scale), op_int(t, (int64_t)y_zero),
                bias, op_text(t, form & RELU ? "relu" : "none"), y));
}

/* ---- convolutions of planes (1, C, H, W): 1 by 1, 3 by 3, or each channel for itself ------------
 */

enum { POINTS, TAPS, CHANNELS, CONVS };

static bool pick_conv(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  s->move.x[0] = below(seed, CONVS);
  s->move.n = 0;
  s->n = 1;
  if (x[0]->dtype != VK_INT8 || !is_some(x[0], 0) || x[0]->offset[0] > 8) return false;
  if (x[0]->offset[1] == 0 || x[0]->offset[2] == 0) return false;
  s->which = s->move.x[0] == CHANNELS ? x[0]->offset[0] : 1 + below(seed, 5);
  *y = *x[0];
  fix(y, 0, s->which);
  y->most = 255;
  return true;
}

/* Weight of output channel o, input channel c, row i and column j: stored as the format says. */
static uint64_t tap(const struct step *s, uint32_t channels, uint64_t o, uint64_t c, uint64_t i,
                    uint64_t j) {
  return s->move.x[0] == CHANNELS ? (i * 3 + j) * s->which + o
         : s->move.x[0] == POINTS ? o * channels + c
                                  : o * channels * 9 + (i * 3 + j) * channels + c;
}

static void interpret_conv(const struct step *s, const struct seen *in, double *y) {
  const uint32_t channels = in->dims[0][0], *d = in->to;
  const int64_t reach = s->move.x[0] == POINTS ? 0 : 1;
  for (uint64_t e = 0; e < numel_of(d); e++) {
    const int64_t o = (int64_t)(e / d[2] / d[1]), row = (int64_t)(e / d[2] % d[1]),
                  col = (int64_t)(e % d[2]);
    double sum = 0;
    for (int64_t i = -reach; i <= reach; i++)
      for (int64_t j = -reach; j <= reach; j++)
        for (uint32_t c = 0; c < (s->move.x[0] == CHANNELS ? 1 : channels); c++) {
          const uint64_t from = s->move.x[0] == CHANNELS ? (uint64_t)o : c;
          if (row + i < 0 || row + i >= d[1] || col + j < 0 || col + j >= d[2]) continue;
          const double byte = in->data[0][at(d, from, (uint64_t)(row + i), (uint64_t)(col + j))];
          sum +=
              (byte - x_zero) * x_scale * channel_scale((uint64_t)o) *
              code(tap(s, channels, (uint64_t)o, c, (uint64_t)(i + reach), (uint64_t)(j + reach)));
        }
    y[e] = byte_of(sum + weight((uint64_t)o), y_scale, y_zero, VK_INT8);
  }
}

static uint32_t conv_weight(struct op_test *t, const struct step *s, uint32_t channels) {
  double values[ROOM] = {0};
  const uint32_t n = s->which, deep = s->move.x[0] == POINTS ? channels : 9 * channels;
  const uint32_t row = (deep + 3) / 4 * 4;
  if (s->move.x[0] == CHANNELS) {
    for (uint32_t i = 0; i < 9 * n; i++) values[i] = code(i);
    return op_constant(t, VK_INT8, DIMS(3, 3, n), values);
  }
  for (uint32_t o = 0; o < n; o++)
    for (uint32_t k = 0; k < deep; k++) values[o * row + k] = code(o * deep + k);
  return op_constant(t, VK_INT8, DIMS(n, row), values);
}

static void add_conv(struct op_test *t, const struct step *s, const struct var *const *x,
                     const uint32_t *ids, uint32_t y) {
  static const char *const names[] = {"et_vk.q8ta_conv2d_pw.default", "et_vk.q8ta_conv2d.default",
                                      "et_vk.q8ta_conv2d_dw.default"};
  const uint32_t form = s->move.x[0], n = s->which, channels = x[0]->offset[0];
  const int64_t size = form == POINTS ? 1 : 3, pad = form == POINTS ? 0 : 1;
  struct var planes = *x[0];
  fix(&planes, 0, n);
  const uint32_t wide = widened(t, x[0], ids[0], 0, 1), to = wide_result(t, &planes, 0, 1),
                 one = op_ints(t, INTS(1, 1));
  op_node(t, names[form],
          IDS(wide, op_double(t, x_scale), op_int(t, (int64_t)x_zero), conv_weight(t, s, channels),
              no_sums(t), scales_of(t, n), op_double(t, y_scale), op_int(t, (int64_t)y_zero),
              weights(t, VK_FLOAT32, DIMS(n)), op_ints(t, INTS(size, size)), one,
              op_ints(t, INTS(pad, pad)), one, op_int(t, form == CHANNELS ? n : 1),
              op_text(t, "none"), to));
  narrowed(t, to, 0, 1, y);
}

const struct random_kind random_q8ta[] = {
    {"sum of bytes", pick_sum, interpret_sum, add_sum},
    {"relu of bytes", pick_relu, interpret_relu, add_relu},
    {"linear of bytes", pick_linear, interpret_linear, add_linear},
    {"convolution of bytes", pick_conv, interpret_conv, add_conv},
    {0},
};
