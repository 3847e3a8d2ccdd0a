/* Products with packed weights of 8 and 4 bits, and rows of packed tables. Codes are of all sizes
 * and scales powers of two, so sums are exact. */
#include "random.h"

/* Codes of -8 to 7. */
static int code4(uint64_t i) { return (int)(i * 11 % 16) - 8; }
static double code8(uint64_t i) { return (double)(i * 37 % 255) - 127; }
static double scale_of(uint64_t i) { return 1.0 / (double)(4 << i % 3); }

/* Rows of nibbles, `stride` bytes each, with 8 added; the first of a byte is its low half, or not.
 * What pads a row is the code 0. */
static uint32_t nibbles(struct op_test *t, uint32_t rows, uint32_t cols, uint32_t stride,
                        bool low_first) {
  uint8_t bytes[ROOM];
  for (uint32_t i = 0; i < rows * stride; i++) {
    const uint32_t row = i / stride, col = i % stride * 2;
    const int a = col < cols ? code4(row * cols + col) : 0,
              b = col + 1 < cols ? code4(row * cols + col + 1) : 0;
    bytes[i] = (uint8_t)(low_first ? (b + 8) << 4 | (a + 8) : (a + 8) << 4 | (b + 8));
  }
  return op_constant_bytes(t, VK_UINT8, DIMS(rows, stride), bytes);
}

/* ---- x (…, K) by a weight (which, K) ------------------------------------------------------------
 */

enum { GROUPS, BY_ROW, DYNAMIC, BYTES_BIAS, BYTES, FORMS };
static const char *const names[] = {
    "et_vk.linear_q4gsw.default", "et_vk.linear_qcs4w.default", "et_vk.linear_dq8ca_q4gsw.default",
    "et_vk.linear_q8csw.default", "quantized_decomposed.mixed_linear.default"};

static bool has_bias(uint32_t form) {
  return form == GROUPS || form == DYNAMIC || form == BYTES_BIAS;
}

static uint32_t group_of(const struct step *s, uint32_t k) {
  return s->which == BY_ROW || s->which >= BYTES_BIAS || k % 8 ? k : 4;
}

/* The step's own numbers: columns of the result, and its dtype. */
static bool pick_linear(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  const uint32_t k = x[0]->offset[2];
  s->which = below(seed, FORMS);
  s->name = names[s->which];
  s->move.x[0] = 1 + below(seed, 7);
  s->move.n = 0;
  s->n = 1;
  if (!is_float(x[0]) || !is_some(x[0], 2) || k > 40) return false;
  if (s->which == DYNAMIC && (!is_some(x[0], 1) || x[0]->error > 0)) return false;
  if (s->which == DYNAMIC && dim_most(x[0], 0) + POSITIONS > ROOM / x[0]->offset[1]) return false;
  *y = *x[0];
  fix(y, 2, s->move.x[0]);
  const double most = s->which >= BYTES_BIAS ? 127 / 4.0 : 2;
  add_up(y, k, most, 1.0 / 16, 0);
  y->most += 1;
  if (s->which == DYNAMIC) y->most = 2 * k * (x[0]->most + 1) + 1, y->grain = 1.0 / 64;
  y->grain = fmin(y->grain, 0.25);
  return true;
}

/* Scale and zero point of a row's bytes. */
static double row_scale(uint64_t row) { return row % 2 ? 0.25 : 0.5; }
static double row_zero(uint64_t row) { return (double)(row * 9 % 23) - 11; }

static double through_bytes(double x, uint64_t row) {
  const double q = nearbyint(x / row_scale(row)) + row_zero(row);
  return (fmin(fmax(q, -128), 127) - row_zero(row)) * row_scale(row);
}

static void interpret_linear(const struct step *s, const struct seen *in, double *y) {
  const uint32_t depth = in->dims[0][2], cols = in->to[2], group = group_of(s, depth);
  for (uint64_t e = 0; e < numel_of(in->to); e++) {
    const uint64_t m = e / cols, n = e % cols, row = m + (uint64_t)in->position * in->to[1];
    y[e] = has_bias(s->which) ? weight(n) : 0;
    for (uint32_t k = 0; k < depth; k++) {
      const double x = in->data[0][m * depth + k];
      const double w = s->which >= BYTES_BIAS ? code8(n * depth + k) : code4(n * depth + k);
      y[e] += (s->which == DYNAMIC ? through_bytes(x, row) : x) * w * scale_of(k / group * 5 + n);
    }
  }
}

/* Scales (groups, columns), as many columns as the format pads them to. */
static uint32_t group_scales(struct op_test *t, enum vk_dtype dtype, uint32_t groups, uint32_t n) {
  double values[ROOM] = {0};
  const uint32_t padded = (n + 3) / 4 * 4;
  for (uint32_t i = 0; i < groups * n; i++)
    values[i / n * padded + i % n] = scale_of(i / n * 5 + i % n);
  return op_constant(t, dtype, DIMS(groups, padded), values);
}

/* Scales and zero points of the rows of this call: as many as x has, from the position on. */
static void add_dynamic(struct op_test *t, const struct step *s, const struct var *x,
                        const uint32_t *ids, uint32_t w, uint32_t scales, uint32_t bias,
                        uint32_t y) {
  const uint32_t rows = POSITIONS + dim_most(x, 0), b = x->offset[1];
  double values[2][ROOM];
  for (uint32_t i = 0; i < rows * b; i++) values[0][i] = row_scale(i), values[1][i] = row_zero(i);
  uint32_t of[2];
  for (int i = 0; i < 2; i++) {
    of[i] = op_constant(t, i ? VK_INT8 : x->dtype, DIMS(rows, b), values[i]);
    of[i] = table_rows(t, x, ids[0], 0, of[i], ids[POSITION]);
  }
  const uint32_t groups = x->offset[2] / group_of(s, x->offset[2]);
  const double none[ROOM] = {0};
  const uint32_t sums = op_constant(t, VK_INT32, DIMS(groups, (s->move.x[0] + 7) / 8 * 8), none);
  op_node(
      t, names[DYNAMIC],
      IDS(ids[0], of[0], of[1], w, sums, scales, op_int(t, group_of(s, x->offset[2])), bias, y));
}

static void add_bytes(struct op_test *t, const struct step *s, const struct var *x,
                      const uint32_t *ids, uint32_t bias, uint32_t y) {
  const uint32_t depth = x->offset[2], n = s->move.x[0];
  double values[ROOM], scales[ROOM];
  for (uint32_t i = 0; i < n * depth && i < ROOM; i++) values[i] = code8(i);
  for (uint32_t i = 0; i < n; i++) scales[i] = scale_of(i);
  const uint32_t w = op_constant(t, VK_INT8, DIMS(n, depth), values),
                 of = op_constant(t, x->dtype, DIMS(n), scales), none = op_null(t);
  if (s->which == BYTES)
    op_node(t, names[BYTES], IDS(ids[0], w, of, none, none, y));
  else
    op_node(t, names[s->which], IDS(ids[0], w, of, bias, y));
}

static void add_linear(struct op_test *t, const struct step *s, const struct var *const *x,
                       const uint32_t *ids, uint32_t y) {
  const uint32_t depth = x[0]->offset[2], n = s->move.x[0], group = group_of(s, depth);
  const enum vk_dtype dtype = x[0]->dtype;
  const uint32_t bias = has_bias(s->which) ? weights(t, dtype, DIMS(n)) : op_null(t);
  if (s->which >= BYTES_BIAS) {
    add_bytes(t, s, x[0], ids, bias, y);
    return;
  }
  if (s->which == BY_ROW) {
    double scales[ROOM];
    for (uint32_t i = 0; i < n; i++) scales[i] = scale_of(i);
    op_node(t, names[BY_ROW],
            IDS(ids[0], nibbles(t, n, depth, (depth + 1) / 2, false),
                op_constant(t, dtype, DIMS(n), scales), y));
    return;
  }
  const uint32_t w = nibbles(t, n, depth, (depth + 7) / 8 * 4, true),
                 scales = group_scales(t, dtype, depth / group, n);
  if (s->which == DYNAMIC)
    add_dynamic(t, s, x[0], ids, w, scales, bias, y);
  else
    op_node(t, names[GROUPS], IDS(ids[0], w, scales, op_int(t, group), bias, y));
}

/* ---- rows of a table by integers or truth: (a, b, c) becomes (a, b, c WIDTH) --------------------
 */

enum { WIDTH = 4, VOCAB = 7 };
enum { PLAIN, LOW_FIRST, HIGH_FIRST, TABLE4, TABLE8, TABLES_ };
static const char *const tables[] = {
    "aten.embedding.default", "et_vk.embedding_q4gsw.default", "et_vk.embedding_q4gsw.default",
    "quantized_decomposed.embedding_4bit.default", "quantized_decomposed.embedding_byte.default"};

static bool pick_table(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  s->which = below(seed, TABLES_);
  s->name = tables[s->which];
  s->move.n = 0;
  s->n = 1;
  if (x[0]->dtype != VK_BOOL && x[0]->dtype != VK_INT32) return false;
  if (!is_some(x[0], 1) || !is_some(x[0], 2)) return false;
  *y = *x[0];
  y->dtype = below(seed, 2) ? VK_FLOAT32 : VK_FLOAT16;
  fix(y, 2, x[0]->offset[2] * WIDTH);
  y->most = s->which == TABLE8 ? 64 : 2;
  y->grain = 1.0 / 16;
  return true;
}

static void interpret_table(const struct step *s, const struct seen *in, double *y) {
  for (uint64_t e = 0; e < numel_of(in->to); e++) {
    const double token = in->data[0][e / WIDTH], size = VOCAB;
    const uint64_t row = (uint64_t)(token - floor(token / size) * size),
                   i = row * WIDTH + e % WIDTH;
    y[e] = s->which == PLAIN    ? weight(i)
           : s->which == TABLE8 ? (code8(i) - weight(row)) * scale_of(row)
                                : code4(i) * scale_of(row);
  }
}

/* Indices within the table: the integer's remainder. */
static uint32_t tokens_of(struct op_test *t, const struct var *x, uint32_t id) {
  const uint32_t whole = between(t, VK_INT32, x), rest = between(t, VK_INT32, x);
  if (x->dtype == VK_BOOL) op_node(t, "aten::_to_copy.out", IDS(id, op_null(t), op_null(t), whole));
  op_node(t, "aten.remainder.Scalar",
          IDS(x->dtype == VK_BOOL ? whole : id, op_int(t, VOCAB), rest));
  return rest;
}

static void add_rows(struct op_test *t, const struct step *s, enum vk_dtype dtype, uint32_t tokens,
                     uint32_t rows) {
  double scales[VOCAB], zeros[VOCAB], codes[VOCAB * WIDTH];
  for (uint32_t i = 0; i < VOCAB; i++) scales[i] = scale_of(i), zeros[i] = weight(i);
  for (uint32_t i = 0; i < VOCAB * WIDTH; i++) codes[i] = code8(i);
  if (s->which == PLAIN) {
    op_node(t, s->name,
            IDS(weights(t, dtype, DIMS(VOCAB, WIDTH)), tokens, op_int(t, -1), op_bool(t, false),
                op_bool(t, false), rows));
    return;
  }
  const uint32_t of = op_constant(t, dtype, DIMS(VOCAB), scales);
  if (s->which == LOW_FIRST || s->which == HIGH_FIRST) {
    const bool low = s->which == LOW_FIRST;
    op_node(t, s->name,
            IDS(nibbles(t, VOCAB, WIDTH, WIDTH / 2, low), of, op_int(t, WIDTH), tokens,
                op_bool(t, low), rows));
    return;
  }
  const uint32_t w = s->which == TABLE8 ? op_constant(t, VK_INT8, DIMS(VOCAB, WIDTH), codes)
                                        : nibbles(t, VOCAB, WIDTH, WIDTH / 2, false);
  const uint32_t zero = s->which == TABLE8 ? op_constant(t, dtype, DIMS(VOCAB), zeros) : op_null(t);
  op_node(t, s->name, IDS(w, of, zero, op_int(t, -128), op_int(t, 127), tokens, rows));
}

static void add_table(struct op_test *t, const struct step *s, const struct var *const *x,
                      const uint32_t *ids, uint32_t y) {
  const enum vk_dtype dtype = y == NO_VALUE ? VK_FLOAT32 : t->graph.values[y].tensor.dtype;
  uint32_t dims[4];
  dims_at(x[0], LARGEST, dims);
  dims[3] = WIDTH;
  const uint32_t rows = op_tensor(t, dtype, dims, 4);
  add_rows(t, s, dtype, tokens_of(t, x[0], ids[0]), rows);
  op_node(t, "aten.view_copy.default",
          IDS(rows, op_ints(t, INTS(-1, dims[1], dims[2] * WIDTH)), y));
}

const struct random_kind random_packed[] = {
    {"linear with packed weights", pick_linear, interpret_linear, add_linear},
    {"embedding", pick_table, interpret_table, add_table},
    {0},
};
