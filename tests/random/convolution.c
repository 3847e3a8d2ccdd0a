/* Convolutions along one, two and three dims, and transposed ones. */
#include "random.h"

static bool pick_conv(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  s->which = 1 + below(seed, 5);
  s->n = 1;
  if (!is_float(x[0]) || !is_fixed(x[0], 1) || x[0]->offset[1] == 0 || x[0]->offset[1] > 20)
    return false;
  if (x[0]->offset[2] == 0) return false; /* PyTorch has none of no elements */
  *y = *x[0];
  fix(y, 1, s->which);
  add_up(y, 3.0 * x[0]->offset[1], 1, 0.25, 0);
  s->move.n = below(seed, 2); /* with bounds of -2 and 2.5 */
  return true;
}

static void interpret_conv(const struct step *s, const struct seen *in, double *y) {
  const uint32_t channels = in->dims[0][1], length = in->dims[0][2];
  for (uint32_t b = 0; b < in->to[0]; b++)
    for (uint32_t o = 0; o < s->which; o++)
      for (uint32_t at = 0; at < length; at++) {
        double sum = 0;
        for (uint32_t c = 0; c < channels; c++)
          for (uint32_t k = 0; k < 3; k++)
            if (at + k >= 1 && at + k <= length)
              sum += in->data[0][(b * channels + c) * length + at + k - 1] *
                     weight((o * channels + c) * 3 + k);
        *y++ = s->move.n ? fmin(fmax(sum, -2), 2.5) : sum;
      }
}

static void add_conv(struct op_test *t, const struct step *s, const struct var *const *x,
                     const uint32_t *ids, uint32_t y) {
  const uint32_t one = op_ints(t, INTS(1)),
                 w = weights(t, x[0]->dtype, DIMS(s->which, x[0]->offset[1], 3)), none = op_null(t),
                 no = op_bool(t, false), zero = op_ints(t, INTS(0)), groups = op_int(t, 1);
  if (s->move.n)
    op_node(t, "et_vk.conv_with_clamp.default",
            IDS(ids[0], w, none, one, one, one, no, zero, groups, op_double(t, -2),
                op_double(t, 2.5), y));
  else
    op_node(t, "aten.convolution.default",
            IDS(ids[0], w, none, one, one, one, no, zero, groups, y));
}

/* Taps of 3 by 3 over (b, c), or of 3 by 3 by 3 over all, with one channel, padded by 1. */
static bool pick_taps(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  s->which = 2 + below(seed, 2);
  s->n = 1;
  if (!is_float(x[0]) || !x[0]->offset[0] || !x[0]->offset[1] || !x[0]->offset[2]) return false;
  *y = *x[0];
  const double taps = s->which == 2 ? 9 : 27;
  y->most *= taps;
  y->error *= taps;
  y->grain /= 4;
  return true;
}

static void interpret_taps(const struct step *s, const struct seen *in, double *y) {
  const int64_t deep = s->which == 3, d[] = {in->to[0], in->to[1], in->to[2]};
  for (int64_t a = 0; a < d[0]; a++)
    for (int64_t b = 0; b < d[1]; b++)
      for (int64_t c = 0; c < d[2]; c++) {
        double sum = 0;
        uint64_t tap = 0;
        for (int64_t i = -deep; i <= deep; i++)
          for (int64_t j = -1; j <= 1; j++)
            for (int64_t k = -1; k <= 1; k++, tap++)
              if (a + i >= 0 && a + i < d[0] && b + j >= 0 && b + j < d[1] && c + k >= 0 &&
                  c + k < d[2])
                sum += in->data[0][((a + i) * d[1] + b + j) * d[2] + c + k] * weight(tap);
        *y++ = sum;
      }
}

static void add_taps(struct op_test *t, const struct step *s, const struct var *const *x,
                     const uint32_t *ids, uint32_t y) {
  const bool deep = s->which == 3;
  const uint32_t place = deep ? 0 : 1, times = deep ? 2 : 1, rank = s->which;
  const uint32_t wide = widened(t, x[0], ids[0], place, times),
                 to = wide_result(t, x[0], place, times);
  const uint32_t w = weights(t, x[0]->dtype, (const uint32_t[]){1, 1, 3, 3, 3}, rank + 2);
  const uint32_t one = op_ints(t, (const int64_t[]){1, 1, 1}, rank),
                 zero = op_ints(t, (const int64_t[]){0, 0, 0}, rank);
  op_node(t, deep ? "aten::convolution.out" : "aten.convolution.default",
          IDS(wide, w, op_null(t), one, one, one, op_bool(t, false), zero, op_int(t, 1), to));
  narrowed(t, to, place, times, y);
}

/* Transposed along the last dim: 3 taps, a stride of 2, w (C, which, 3). */
static bool pick_spread(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  s->which = 1 + below(seed, 3);
  s->n = 1;
  if (!is_float(x[0]) || !is_fixed(x[0], 1) || !x[0]->offset[1] || x[0]->offset[1] > 20 ||
      !x[0]->offset[0] || x[0]->offset[2] < 1)
    return false;
  *y = *x[0];
  fix(y, 1, s->which);
  y->scale[2] *= 2;
  y->offset[2] = 2 * y->offset[2] - 1;
  y->most *= 2.0 * x[0]->offset[1];
  y->error *= 2.0 * x[0]->offset[1];
  y->grain /= 4;
  return true;
}

static void interpret_spread(const struct step *s, const struct seen *in, double *y) {
  const uint32_t channels = in->dims[0][1], length = in->dims[0][2];
  memset(y, 0, (size_t)in->to[0] * in->to[1] * in->to[2] * sizeof *y);
  for (uint32_t b = 0; b < in->to[0]; b++)
    for (uint32_t c = 0; c < channels; c++)
      for (uint32_t i = 0; i < length; i++)
        for (uint32_t o = 0; o < s->which; o++)
          for (uint32_t k = 0; k < 3; k++)
            if (2 * i + k >= 1 && 2 * i + k <= in->to[2])
              y[at(in->to, b, o, 2 * i + k - 1)] +=
                  in->data[0][at(in->dims[0], b, c, i)] * weight((c * s->which + o) * 3 + k);
}

static void add_spread(struct op_test *t, const struct step *s, const struct var *const *x,
                       const uint32_t *ids, uint32_t y) {
  const uint32_t w = weights(t, x[0]->dtype, DIMS(x[0]->offset[1], s->which, 3));
  op_node(t, "aten.convolution.default",
          IDS(ids[0], w, op_null(t), op_ints(t, INTS(2)), op_ints(t, INTS(1)), op_ints(t, INTS(1)),
              op_bool(t, true), op_ints(t, INTS(0)), op_int(t, 1), y));
}

const struct random_kind random_convolution[] = {
    {"convolution", pick_conv, interpret_conv, add_conv},
    {"convolution of planes", pick_taps, interpret_taps, add_taps},
    {"transposed convolution", pick_spread, interpret_spread, add_spread},
    {0},
};
