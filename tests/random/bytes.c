/* Floats become bytes and back. Scales of numbers and constants are powers of two, so that only
 * halves are rounded, to even; those that the device chooses itself are off by one step at most. */
#include "random.h"

static double clamped(double v, double low, double high) { return fmin(fmax(v, low), high); }

/* A range, a zero point and a scale for each dtype of bytes. */
struct range {
  enum vk_dtype dtype;
  double low, high, zero, scale;
};
static const struct range ranges[] = {
    {VK_INT8, -128, 127, 3, 0.5},
    {VK_INT8, -100, 90, -7, 0.125},
    {VK_UINT8, 0, 255, 100, 0.25},
    {VK_UINT8, 2, 200, 9, 1},
};
enum { RANGES = sizeof ranges / sizeof *ranges };

/* Scales and zero points of channels: the range's, halved and shifted. */
static double scale_at(const struct range *r, uint32_t c) { return r->scale / (1 << c % 3); }
static double zero_at(const struct range *r, uint32_t c) { return r->zero + c % 5; }

enum { WHOLE = 3 }; /* no dim: one scale for all */

static uint32_t channel_of(const struct step *s, const uint32_t *dims, uint64_t e) {
  uint64_t step = 1;
  if (s->move.n == WHOLE) return 0;
  for (uint32_t i = s->move.n + 1; i < 3; i++) step *= dims[i];
  return (uint32_t)(e / step % dims[s->move.n]);
}

static bool pick_channels(const struct var *x, uint64_t *seed, struct step *s) {
  s->n = 1;
  s->which = below(seed, RANGES);
  s->move.n = below(seed, 4);
  return s->move.n == WHOLE || is_some(x, s->move.n);
}

/* The node in either direction: numbers, or constants for each channel. */
static void add_node(struct op_test *t, const struct step *s, const struct var *x, bool forward,
                     uint32_t id, uint32_t y) {
  const struct range *r = &ranges[s->which];
  uint32_t args[10] = {id}, n = 1;
  char name[80];
  if (s->move.n == WHOLE) {
    args[n++] = op_double(t, r->scale);
    args[n++] = op_int(t, (int64_t)r->zero);
  } else {
    double scales[ROOM], zeros[ROOM];
    const uint32_t size = x->offset[s->move.n];
    for (uint32_t c = 0; c < size; c++) scales[c] = scale_at(r, c), zeros[c] = zero_at(r, c);
    args[n++] = op_constant(t, VK_FLOAT32, DIMS(size), scales);
    args[n++] = op_constant(t, VK_INT32, DIMS(size), zeros);
    args[n++] = op_int(t, s->move.n);
  }
  args[n++] = op_int(t, (int64_t)r->low);
  args[n++] = op_int(t, (int64_t)r->high);
  args[n++] = op_null(t);
  if (!forward) args[n++] = op_null(t);
  args[n++] = y;
  snprintf(name, sizeof name, "quantized_decomposed.%squantize_per_%s.default", forward ? "" : "de",
           s->move.n == WHOLE ? "tensor" : "channel");
  op_node(t, name, args, n);
}

static bool pick_quantize(const struct var *const *x, uint64_t *seed, struct step *s,
                          struct var *y) {
  if (!pick_channels(x[0], seed, s) || !is_float(x[0]) || x[0]->error > 0) return false;
  *y = *x[0];
  y->dtype = ranges[s->which].dtype;
  y->most = 255;
  y->grain = 1;
  return true;
}

static void interpret_quantize(const struct step *s, const struct seen *in, double *y) {
  const struct range *r = &ranges[s->which];
  for (uint64_t e = 0; e < numel_of(in->to); e++) {
    const uint32_t c = channel_of(s, in->to, e);
    y[e] = clamped(nearbyint(in->data[0][e] / scale_at(r, c)) + zero_at(r, c), r->low, r->high);
  }
}

static void add_quantize(struct op_test *t, const struct step *s, const struct var *const *x,
                         const uint32_t *ids, uint32_t y) {
  add_node(t, s, x[0], true, ids[0], y);
}

static bool pick_dequantize(const struct var *const *x, uint64_t *seed, struct step *s,
                            struct var *y) {
  if (!pick_channels(x[0], seed, s) || x[0]->dtype != ranges[s->which].dtype) return false;
  *y = *x[0];
  y->dtype = below(seed, 3) ? VK_FLOAT32 : VK_FLOAT16;
  y->grain = ranges[s->which].scale / 4;
  y->most = ranges[s->which].scale * (x[0]->most + 128);
  return true;
}

static void interpret_dequantize(const struct step *s, const struct seen *in, double *y) {
  const struct range *r = &ranges[s->which];
  for (uint64_t e = 0; e < numel_of(in->to); e++) {
    const uint32_t c = channel_of(s, in->to, e);
    y[e] = (in->data[0][e] - zero_at(r, c)) * scale_at(r, c);
  }
}

static void add_dequantize(struct op_test *t, const struct step *s, const struct var *const *x,
                           const uint32_t *ids, uint32_t y) {
  add_node(t, s, x[0], false, ids[0], y);
}

/* ---- ranges that the device finds: of all elements, or of each row ------------------------------
 */

enum { OF_ALL, OF_TOKENS, OF_BLOCKS, FORMS };

/* There and back again: an element is at most a step from where it was. */
static bool pick_found(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  s->which = below(seed, FORMS);
  s->move.n = 0;
  s->n = 1;
  if (!is_float(x[0]) || !is_some(x[0], 2)) return false;
  if (s->which == OF_ALL && (!x[0]->offset[0] || !x[0]->offset[1])) return false;
  *y = *x[0];
  y->dtype = VK_FLOAT32;
  y->grain = 1e-12;
  y->error = 2 * x[0]->error + 2.1 * x[0]->most / 255;
  return true;
}

static void interpret_found(const struct step *s, const struct seen *in, double *y) {
  const uint64_t all = numel_of(in->to), cols = s->which == OF_ALL ? all : in->to[2];
  for (uint64_t first = 0; first < all; first += cols) {
    double low = 0, high = 0;
    for (uint64_t i = first; i < first + cols; i++)
      low = fmin(low, in->data[0][i]), high = fmax(high, in->data[0][i]);
    const double scale = fmax((high - low) / 255, 1.1920928955078125e-07);
    const double zero = clamped(-128 - nearbyint(low / scale), -128, 127);
    for (uint64_t i = first; i < first + cols; i++)
      y[i] = (clamped(nearbyint(in->data[0][i] / scale) + zero, -128, 127) - zero) * scale;
  }
}

static void add_blocks(struct op_test *t, const struct var *x, uint32_t id, uint32_t scale,
                       uint32_t zero, uint32_t bytes, uint32_t y) {
  const uint32_t none = op_null(t), block = op_ints(t, INTS(1, 1, x->offset[2])),
                 low = op_int(t, -128), high = op_int(t, 127);
  op_node(t, "torchao.choose_qparams_affine.default",
          IDS(id, op_text(t, "ASYMMETRIC"), block, none, low, high,
              op_double(t, 1.1920928955078125e-07), none, none, op_bool(t, true),
              op_list(t, IDS(scale, zero))));
  op_node(t, "torchao.quantize_affine.default",
          IDS(id, block, scale, zero, none, low, high, bytes));
  op_node(t, "torchao.dequantize_affine.default",
          IDS(bytes, block, scale, zero, none, low, high, none, y));
}

static void add_found(struct op_test *t, const struct step *s, const struct var *const *x,
                      const uint32_t *ids, uint32_t y) {
  struct var one = *x[0];
  fix(&one, 2, 1);
  const uint32_t bytes = between(t, VK_INT8, x[0]), none = op_null(t), low = op_int(t, -128),
                 high = op_int(t, 127), eps = op_double(t, 1.1920928955078125e-07);
  uint32_t scale, zero;
  if (s->which == OF_ALL)
    scale = op_tensor(t, VK_FLOAT32, DIMS(1)), zero = op_tensor(t, VK_INT32, DIMS(1));
  else
    scale = between(t, VK_FLOAT32, &one), zero = between(t, VK_INT32, &one);
  const uint32_t found = op_list(t, IDS(scale, zero));
  if (s->which == OF_BLOCKS) {
    add_blocks(t, x[0], ids[0], scale, zero, bytes, y);
  } else if (s->which == OF_ALL) {
    op_node(t, "quantized_decomposed.choose_qparams.tensor",
            IDS(ids[0], low, high, eps, none, found));
    op_node(t, "quantized_decomposed.quantize_per_tensor.tensor",
            IDS(ids[0], scale, zero, low, high, none, bytes));
    op_node(t, "quantized_decomposed.dequantize_per_tensor.tensor",
            IDS(bytes, scale, zero, low, high, none, none, y));
  } else {
    op_node(t, "quantized_decomposed.choose_qparams_per_token_asymmetric.default",
            IDS(ids[0], none, found));
    op_node(t, "quantized_decomposed.quantize_per_token.default",
            IDS(ids[0], scale, zero, low, high, none, bytes));
    op_node(t, "quantized_decomposed.dequantize_per_token.default",
            IDS(bytes, scale, zero, low, high, none, none, y));
  }
}

const struct random_kind random_bytes[] = {
    {"quantize", pick_quantize, interpret_quantize, add_quantize},
    {"dequantize", pick_dequantize, interpret_dequantize, add_dequantize},
    {"choose_qparams", pick_found, interpret_found, add_found},
    {0},
};
