/* Training: gradients of linear and of cross entropy, steps of AdamW, codes of a new weight. */
#include "random.h"

/* d (…, N) and x (…, K) of the same rows: Σ over rows, (N, K) as (N, K, 1). */
static bool pick_weight(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  (void)seed;
  s->n = 2;
  if (!is_float(x[0]) || x[0]->dtype != x[1]->dtype) return false;
  if (!same_dim(x[0], x[1], 0) || !same_dim(x[0], x[1], 1)) return false;
  if (!is_some(x[0], 2) || !is_some(x[1], 2)) return false;
  *y = *x[0];
  fix(y, 0, x[0]->offset[2]);
  fix(y, 1, x[1]->offset[2]);
  fix(y, 2, 1);
  add_up(y, dim_most(x[0], 0) * dim_most(x[0], 1), x[1]->most, x[1]->grain, x[1]->error);
  return true;
}

static void interpret_weight(const struct step *s, const struct seen *in, double *y) {
  const uint32_t rows = in->dims[0][0] * in->dims[0][1], n = in->to[0], k = in->to[1];
  (void)s;
  for (uint32_t e = 0; e < n * k; e++) {
    y[e] = 0;
    for (uint32_t r = 0; r < rows; r++)
      y[e] += in->data[0][r * n + e / k] * in->data[1][r * k + e % k];
  }
}

static void add_weight(struct op_test *t, const struct step *s, const struct var *const *x,
                       const uint32_t *ids, uint32_t y) {
  const uint32_t n = x[0]->offset[2], k = x[1]->offset[2];
  (void)s;
  const uint32_t flat = op_tensor(t, x[0]->dtype, DIMS(n, k));
  op_node(t, "et_vk.linear_dW.default", IDS(ids[0], ids[1], flat));
  op_node(t, "aten.view_copy.default", IDS(flat, op_ints(t, INTS(n, k, 1)), y));
}

/* d (…, N) by a packed weight (N, 8) of two groups: (…, 8). */
enum { DEPTH = 8, GROUP = 4 };

static int code4(uint64_t i) { return (int)(i * 11 % 16) - 8; }
static double scale_of(uint64_t i) { return 1.0 / (double)(4 << i % 3); }

static bool pick_input(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  (void)seed;
  s->n = 1;
  if (!is_float(x[0]) || !is_some(x[0], 2) || x[0]->offset[2] > 40) return false;
  *y = *x[0];
  fix(y, 2, DEPTH);
  add_up(y, x[0]->offset[2], 2, 1.0 / 16, 0);
  return true;
}

static void interpret_input(const struct step *s, const struct seen *in, double *y) {
  const uint32_t cols = in->dims[0][2];
  (void)s;
  for (uint64_t e = 0; e < numel_of(in->to); e++) {
    y[e] = 0;
    for (uint32_t n = 0; n < cols; n++)
      y[e] += in->data[0][e / DEPTH * cols + n] * code4(n * DEPTH + e % DEPTH) *
              scale_of(e % DEPTH / GROUP * 5 + n);
  }
}

static void add_input(struct op_test *t, const struct step *s, const struct var *const *x,
                      const uint32_t *ids, uint32_t y) {
  const uint32_t n = x[0]->offset[2], padded = (n + 3) / 4 * 4;
  uint8_t codes[ROOM];
  double scales[ROOM] = {0};
  (void)s;
  for (uint32_t i = 0; i < n * DEPTH / 2; i++)
    codes[i] = (uint8_t)((code4(2 * i + 1) + 8) << 4 | (code4(2 * i) + 8));
  for (uint32_t i = 0; i < 2 * n; i++) scales[i / n * padded + i % n] = scale_of(i / n * 5 + i % n);
  op_node(t, "et_vk.linear_q4gsw_backward.default",
          IDS(ids[0], op_constant_bytes(t, VK_UINT8, DIMS(n, DEPTH / 2), codes),
              op_constant(t, x[0]->dtype, DIMS(2, padded), scales), op_int(t, GROUP), y));
}

/* Codes of a matrix (N, K) by a scale of its own for each row: bytes (N, ceil(K / 2), 1). */
static double row_scale(uint64_t n) { return 1.0 / (double)(1 << n % 3); }

static bool pick_codes(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  (void)seed;
  s->n = 1;
  if (!is_float(x[0]) || x[0]->error > 0) return false;
  if (!is_some(x[0], 0) || !is_some(x[0], 1) || !is_some(x[0], 2)) return false;
  *y = *x[0];
  y->dtype = VK_UINT8;
  fix(y, 0, x[0]->offset[0] * x[0]->offset[1]);
  fix(y, 1, (x[0]->offset[2] + 1) / 2);
  fix(y, 2, 1);
  y->most = 255;
  y->grain = 1;
  return true;
}

static void interpret_codes(const struct step *s, const struct seen *in, double *y) {
  const uint32_t cols = in->dims[0][2], stride = in->to[1];
  (void)s;
  memset(y, 0, (size_t)numel_of(in->to) * sizeof *y);
  for (uint64_t e = 0; e < numel_of(in->dims[0]); e++) {
    const uint64_t n = e / cols, k = e % cols;
    const double code = fmin(fmax(nearbyint(in->data[0][e] / row_scale(n)), -8), 7) + 8;
    y[n * stride + k / 2] += k % 2 ? 16 * code : code;
  }
}

static void add_codes(struct op_test *t, const struct step *s, const struct var *const *x,
                      const uint32_t *ids, uint32_t y) {
  const enum vk_dtype dtype = x[0]->dtype;
  const uint32_t n = x[0]->offset[0] * x[0]->offset[1], k = x[0]->offset[2], bytes = (k + 1) / 2;
  double scales[ROOM];
  (void)s;
  for (uint32_t i = 0; i < n; i++) scales[i] = row_scale(i);
  const uint32_t flat = op_tensor(t, dtype, DIMS(n, k)),
                 codes = op_tensor(t, VK_UINT8, DIMS(n, bytes));
  op_node(t, "aten.view_copy.default", IDS(ids[0], op_ints(t, INTS(n, k)), flat));
  op_node(t, "et_vk.q4gsw_requant.default",
          IDS(flat, op_constant(t, dtype, DIMS(1, n), scales), op_int(t, k), codes));
  op_node(t, "aten.view_copy.default", IDS(codes, op_ints(t, INTS(n, bytes, 1)), y));
}

/* ---- the gradient of cross entropy: x (a b, c), a class for each row, some without --------------
 */

static double label_of(uint64_t row, uint32_t classes) {
  return row % 3 == 1 ? -100 : (double)(row * 5 % classes);
}

static bool pick_loss(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  (void)seed;
  s->n = 1;
  if (!is_float(x[0]) || !is_some(x[0], 1) || !is_some(x[0], 2) || x[0]->most > 100) return false;
  if ((POSITIONS + dim_most(x[0], 0)) * x[0]->offset[1] > ROOM) return false;
  *y = *x[0];
  y->most = 0.25;
  y->grain = 1e-12;
  y->error = x[0]->error + 1e-5 * (1 + 0.1 * x[0]->most);
  return true;
}

static void interpret_loss(const struct step *s, const struct seen *in, double *y) {
  const uint32_t cols = in->to[2];
  (void)s;
  for (uint64_t e = 0; e < numel_of(in->to); e++) {
    const double *row = in->data[0] + e / cols * cols;
    const double label = label_of(e / cols + (uint64_t)in->position * in->to[1], cols);
    double most = -INFINITY, sum = 0;
    for (uint32_t c = 0; c < cols; c++) most = fmax(most, row[c]);
    for (uint32_t c = 0; c < cols; c++) sum += exp(row[c] - most);
    y[e] = label < 0 ? 0 : (exp(in->data[0][e] - most) / sum - (e % cols == label)) / 4;
  }
}

static void add_loss(struct op_test *t, const struct step *s, const struct var *const *x,
                     const uint32_t *ids, uint32_t y) {
  const enum vk_dtype dtype = x[0]->dtype;
  const uint32_t a = dim_most(x[0], 0), b = x[0]->offset[1], c = x[0]->offset[2];
  double values[ROOM];
  (void)s;
  for (uint32_t i = 0; i < (POSITIONS + a) * b; i++) values[i] = label_of(i, c);
  const uint32_t table = op_constant(t, VK_INT32, DIMS(POSITIONS + a, b), values),
                 rows = table_rows(t, x[0], ids[0], 0, table, ids[POSITION]),
                 labels = op_tensor(t, VK_INT32, DIMS(a * b)),
                 flat = op_tensor(t, dtype, DIMS(a * b, c)),
                 back = op_tensor(t, dtype, DIMS(a * b, c)), loss = op_tensor(t, dtype, NULL, 0);
  op_node(t, "aten.view_copy.default", IDS(rows, op_ints(t, INTS(-1)), labels));
  op_node(t, "aten.view_copy.default", IDS(ids[0], op_ints(t, INTS(-1, c)), flat));
  op_node(t, "et_vk.fused_ce.default",
          IDS(flat, labels, op_double(t, 4), op_list(t, IDS(loss, back))));
  op_node(t, "aten.view_copy.default", IDS(back, op_ints(t, INTS(-1, b, c)), y));
}

/* ---- steps of AdamW: the weight after a gradient, from zeros on ---------------------------------
 */

static const double numbers[] = {0.0625, 0.5, 0.75, 0.25, 0.125, 0.5, 0.25};
enum { RATE, BETA1, BETA2, EPS, DECAY, BIAS1, BIAS2, NUMBERS_OF_STEP };

static bool pick_step(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  (void)seed;
  s->n = 1;
  if (x[0]->dtype != VK_FLOAT32 || x[0]->error > 0 || x[0]->most > 1000) return false;
  if (!is_some(x[0], 0) || !is_some(x[0], 1) || !is_some(x[0], 2)) return false;
  if (x[0]->offset[0] * x[0]->offset[1] * x[0]->offset[2] > ROOM / 3) return false;
  *y = *x[0];
  y->most = 4;
  y->grain = 1e-12;
  y->error = 2e-5;
  return true;
}

static void interpret_step(const struct step *s, const struct seen *in, double *y) {
  double *p = in->kept, *m = p + ROOM / 3, *v = m + ROOM / 3;
  const double *a = numbers;
  (void)s;
  for (uint64_t e = 0; e < numel_of(in->to); e++) {
    const double g = in->data[0][e];
    m[e] = a[BETA1] * m[e] + (1 - a[BETA1]) * g;
    v[e] = a[BETA2] * v[e] + (1 - a[BETA2]) * g * g;
    p[e] -= a[RATE] * a[DECAY] * p[e];
    p[e] -= a[RATE] * (m[e] / a[BIAS1]) / (sqrt(v[e] / a[BIAS2]) + a[EPS]);
    y[e] = p[e];
  }
}

static void add_step(struct op_test *t, const struct step *s, const struct var *const *x,
                     const uint32_t *ids, uint32_t y) {
  uint32_t dims[4], args[12], n = 0;
  const double zeros[ROOM] = {0};
  (void)s;
  dims_at(x[0], LARGEST, dims);
  while (n < 3) args[n++] = op_constant(t, VK_FLOAT32, dims, 3, zeros);
  args[n++] = ids[0];
  for (int i = 0; i < NUMBERS_OF_STEP; i++) args[n++] = op_double(t, numbers[i]);
  const uint32_t m = between(t, VK_FLOAT32, x[0]), v = between(t, VK_FLOAT32, x[0]);
  args[n++] = op_list(t, IDS(y, m, v));
  op_node(t, "et_vk.adamw_step.default", args, n);
}

const struct random_kind random_training[] = {
    {"gradient of a weight", pick_weight, interpret_weight, add_weight},
    {"gradient of an input", pick_input, interpret_input, add_input},
    {"requantize", pick_codes, interpret_codes, add_codes},
    {"cross entropy", pick_loss, interpret_loss, add_loss},
    {"adamw", pick_step, interpret_step, add_step},
    {0},
};
