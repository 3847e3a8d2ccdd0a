/* Norms and softmax. */
#include "random.h"

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

static void interpret_norm(const struct step *s, const struct seen *in, double *y) {
  (void)s;
  const uint32_t cols = in->dims[0][2], rows = in->dims[0][0] * in->dims[0][1];
  for (uint32_t r = 0; r < rows; r++) {
    const double *x = in->data[0] + (size_t)r * cols;
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

static void interpret_softmax(const struct step *s, const struct seen *in, double *y) {
  const uint32_t *d = in->dims[0], size = d[s->which];
  uint64_t inner = 1;
  for (uint32_t i = s->which + 1; i < 3; i++) inner *= d[i];
  for (uint64_t e = 0; e < (uint64_t)in->to[0] * in->to[1] * in->to[2]; e++) {
    const double *first = in->data[0] + (e - e / inner % size * inner);
    double largest = -INFINITY, sum = 0;
    for (uint32_t i = 0; i < size; i++) largest = fmax(largest, first[i * inner]);
    for (uint32_t i = 0; i < size; i++) sum += exp(first[i * inner] - largest);
    y[e] = exp(in->data[0][e] - largest) / sum;
  }
}

static void add_softmax(struct op_test *t, const struct step *s, const struct var *const *x,
                        const uint32_t *ids, uint32_t y) {
  (void)x;
  op_node(t, "aten._softmax.default",
          IDS(ids[0], op_int(t, (int64_t)s->which - 3), op_bool(t, false), y));
}

static bool pick_groups(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  const uint32_t channels = x[0]->offset[1];
  s->which = below(seed, 2) ? channels : 1; /* groups */
  s->n = 1;
  if (!is_float(x[0]) || !is_fixed(x[0], 1) || !is_fixed(x[0], 2)) return false;
  if (channels == 0 || x[0]->offset[2] == 0) return false;
  *y = *x[0];
  y->most = 1 + sqrt((double)channels * x[0]->offset[2]);
  y->grain = 1e-12;
  y->error = 2 * x[0]->error + 1e-5 * (1 + y->most + 1e-2 * x[0]->most);
  return true;
}

static void interpret_groups(const struct step *s, const struct seen *in, double *y) {
  const uint32_t cols = in->dims[0][1] / s->which * in->dims[0][2], inner = in->dims[0][2];
  for (uint64_t e = 0; e < (uint64_t)in->to[0] * in->to[1] * in->to[2]; e++) {
    const double *x = in->data[0] + e / cols * cols;
    double mean = 0, square = 0;
    for (uint32_t i = 0; i < cols; i++) mean += x[i] / cols;
    for (uint32_t i = 0; i < cols; i++) square += (x[i] - mean) * (x[i] - mean) / cols;
    y[e] = (in->data[0][e] - mean) / sqrt(square + 1) + weight(e / inner % in->dims[0][1]);
  }
}

static void add_groups(struct op_test *t, const struct step *s, const struct var *const *x,
                       const uint32_t *ids, uint32_t y) {
  const uint32_t channels = x[0]->offset[1], inner = x[0]->offset[2];
  uint32_t dims[4];
  dims_at(x[0], LARGEST, dims);
  dims[1] = s->which;
  const uint32_t mean = op_tensor(t, x[0]->dtype, dims, 2),
                 rstd = op_tensor(t, x[0]->dtype, dims, 2);
  op_node(t, "aten.native_group_norm.default",
          IDS(ids[0], op_null(t), weights(t, x[0]->dtype, DIMS(channels)), op_int(t, dims[0]),
              op_int(t, channels), op_int(t, inner), op_int(t, s->which), op_double(t, 1),
              op_list(t, IDS(y, mean, rstd))));
}

/* Positive ones. */
static uint32_t variances(struct op_test *t, enum vk_dtype dtype, uint32_t n) {
  double values[ROOM];
  for (uint32_t i = 0; i < n && i < ROOM; i++) values[i] = 1 + fabs(weight(i));
  return op_constant(t, dtype, DIMS(n), values);
}

static bool pick_batch(const struct var *const *x, uint64_t *seed, struct step *s, struct var *y) {
  (void)seed;
  s->n = 1;
  if (!is_float(x[0]) || !is_fixed(x[0], 1) || x[0]->offset[1] == 0) return false;
  *y = *x[0];
  y->most += 2;
  y->grain = 1e-12;
  y->error += 1e-5 * (1 + y->most);
  return true;
}

static void interpret_batch(const struct step *s, const struct seen *in, double *y) {
  (void)s;
  for (uint64_t e = 0; e < (uint64_t)in->to[0] * in->to[1] * in->to[2]; e++) {
    const uint64_t c = e / in->dims[0][2] % in->dims[0][1];
    y[e] = (in->data[0][e] - weight(c)) / sqrt(1 + fabs(weight(c)) + 1) * weight(c) + weight(c);
  }
}

static void add_batch(struct op_test *t, const struct step *s, const struct var *const *x,
                      const uint32_t *ids, uint32_t y) {
  const uint32_t n = x[0]->offset[1];
  const enum vk_dtype dtype = x[0]->dtype;
  const uint32_t w = weights(t, dtype, DIMS(n)), none[] = {0};
  (void)s;
  op_node(t, "aten._native_batch_norm_legit_no_training.default",
          IDS(ids[0], w, w, w, variances(t, dtype, n), op_double(t, 0.1), op_double(t, 1),
              op_list(t, IDS(y, op_tensor(t, dtype, none, 1), op_tensor(t, dtype, none, 1)))));
}

static void interpret_root(const struct step *s, const struct seen *in, double *y) {
  (void)s;
  const uint32_t cols = in->dims[0][2];
  for (uint64_t e = 0; e < (uint64_t)in->to[0] * in->to[1] * in->to[2]; e++) {
    double square = 0;
    for (uint32_t i = 0; i < cols; i++) square += pow(in->data[0][e / cols * cols + i], 2) / cols;
    y[e] = in->data[0][e] / sqrt(square + 1) * weight(e % cols);
  }
}

static void add_root(struct op_test *t, const struct step *s, const struct var *const *x,
                     const uint32_t *ids, uint32_t y) {
  (void)s;
  op_node(t, "et_vk.rms_norm.default",
          IDS(ids[0], weights(t, x[0]->dtype, DIMS(x[0]->offset[2])), op_double(t, 1), y));
}

const struct random_kind random_norm[] = {
    {"layer_norm", pick_norm, interpret_norm, add_norm},
    {"softmax", pick_softmax, interpret_softmax, add_softmax},
    {"group_norm", pick_groups, interpret_groups, add_groups},
    {"batch_norm", pick_batch, interpret_batch, add_batch},
    {"rms_norm", pick_norm, interpret_root, add_root},
    {0},
};
