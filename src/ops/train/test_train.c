/* Operators of training, against their definitions in double. */
#include "op.h"

static const enum vk_dtype dtypes[] = {VK_FLOAT32, VK_FLOAT16};

/* ---- loss ------------------------------------------------------------------------------------ */

struct loss {
  struct op_test t;
  enum vk_dtype dtype;
  uint32_t x, labels, loss, dx;
  double n_valid;
};

static void loss_load(struct loss *l, uint32_t rows, uint32_t cols, uint64_t binding) {
  sconce_error err = {0};
  op_begin(&l->t);
  if (binding) l->t.graph.caps.max_storage_binding = binding;
  l->x = op_input(&l->t, l->dtype, DIMS(rows, cols));
  l->labels = op_input(&l->t, VK_INT32, DIMS(rows));
  l->loss = op_output(&l->t, l->dtype, NULL, 0);
  l->dx = op_output(&l->t, l->dtype, DIMS(rows, cols));
  op_node(&l->t, "et_vk.fused_ce.default",
          IDS(l->x, l->labels, op_double(&l->t, l->n_valid), op_list(&l->t, IDS(l->loss, l->dx))));
  CHECK_OK(op_load(&l->t, NULL, &err), err);
}

static void loss_call(struct loss *l, uint32_t rows, uint32_t cols) {
  if (test_failed()) return;
  sconce_error err = {0};
  uint64_t n = (uint64_t)rows * cols, got;
  double *x = test_values(l->dtype, n, rows + 1), *want = calloc((size_t)n + 1, sizeof *want);
  double *labels = calloc(rows + 1, sizeof *labels), all = 0;
  for (uint64_t i = 0; i < n; i++) x[i] *= i % 7 ? 4 : 32;
  for (uint32_t r = 0; r < rows; r++) {
    const double *row = x + (uint64_t)r * cols;
    double most = -INFINITY, sum = 0;
    labels[r] = r % 3 == 1 ? -100.0 : (double)(r * 5 % cols);
    for (uint32_t c = 0; c < cols; c++) most = fmax(most, row[c]);
    for (uint32_t c = 0; c < cols; c++) sum += exp(row[c] - most);
    if (labels[r] < 0) continue;
    all += (most + log(sum) - row[(uint32_t)labels[r]]) / l->n_valid;
    for (uint32_t c = 0; c < cols; c++)
      want[(uint64_t)r * cols + c] =
          (exp(row[c] - most) / sum - (c == (uint32_t)labels[r])) / l->n_valid;
  }
  op_set(&l->t, l->x, DIMS(rows, cols), x);
  op_set(&l->t, l->labels, DIMS(rows), labels);
  CHECK_OK(op_run(&l->t, &err), err);
  const double tolerance = l->dtype == VK_FLOAT16 ? 1e-3 : 1e-5;
  test_close(op_get(&l->t, l->dx, &got), want, n, tolerance, 0, "gradient");
  CHECK_EQ(got, n);
  test_close(op_get(&l->t, l->loss, &got), &all, 1, tolerance / 10, tolerance, "loss");
  CHECK_EQ(got, 1);
  free(x);
  free(want);
  free(labels);
}

static void losses(void) {
  static const uint32_t cols[] = {32, 7, 700};
  for (int k = 0; k < 6; k++) {
    struct loss l = {.dtype = dtypes[k % 2], .n_valid = 4};
    loss_load(&l, 9, cols[k / 2], 0);
    const uint32_t lives[] = {9, 2, 0, 1, 9};
    for (int i = 0; i < 5; i++) loss_call(&l, lives[i], cols[k / 2]);
    op_end(&l.t);
  }
}

static void losses_in_parts(void) {
  for (int k = 0; k < 2; k++) {
    struct loss l = {.dtype = dtypes[k], .n_valid = 200};
    loss_load(&l, 301, 45, 24000);
    loss_call(&l, 301, 45);
    loss_call(&l, 3, 45);
    op_end(&l.t);
  }
}

static void labels_are_checked(void) {
  struct loss l = {.dtype = VK_FLOAT32, .n_valid = 1};
  sconce_error err = {0};
  loss_load(&l, 2, 3, 0);
  op_set(&l.t, l.x, DIMS(2, 3), (const double[]){1, 2, 3, 4, 5, 6});
  op_set(&l.t, l.labels, DIMS(2), (const double[]){2, 3});
  CHECK_EQ(op_run(&l.t, &err), SCONCE_BAD_ARGUMENT);
  CHECK(strstr(err.text, "label 3 of 3 classes") != NULL);
  op_end(&l.t);
}

/* ---- adamw ----------------------------------------------------------------------------------- */

static const double numbers[] = {0.01, 0.9, 0.99, 1e-8, 0.1, 0.271, 0.0297};

/* Two steps in one graph's state: the results are the arguments themselves, or others. */
static void adamw(enum vk_dtype dtype, bool others, const char *name) {
  enum { N = 37, LR = 4 };
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  double *state[3], *g = test_values(dtype, N, 9);
  uint32_t args[12], out[3];
  for (uint64_t i = 0; i < 3; i++) {
    state[i] = test_values(dtype, N, i + 1);
    for (int e = 0; e < N && i == 2; e++) state[i][e] = fabs(state[i][e]);
    args[i] = op_constant(&t, dtype, DIMS(N), state[i]);
    out[i] = others ? op_output(&t, dtype, DIMS(N)) : args[i];
    if (!others) {
      t.graph.values[args[i]].tensor.output = true;
      t.outputs[t.graph.n_outputs++] = args[i];
    }
  }
  args[3] = op_input(&t, dtype, DIMS(N));
  for (int i = 0; i < 7; i++) args[LR + i] = op_double(&t, numbers[i]);
  args[11] = op_list(&t, out, 3);
  op_node(&t, name, args, 12);
  CHECK_OK(op_load(&t, NULL, &err), err);
  const double lr = numbers[0], b1 = numbers[1], b2 = numbers[2];
  for (int step = 0; step < 2 && !test_failed(); step++) {
    op_set(&t, args[3], DIMS(N), g);
    CHECK_OK(op_run(&t, &err), err);
    for (int e = 0; e < N; e++) {
      state[1][e] = b1 * state[1][e] + (1 - b1) * g[e];
      state[2][e] = b2 * state[2][e] + (1 - b2) * g[e] * g[e];
      state[0][e] = state[0][e] * (1 - lr * numbers[4]) -
                    lr * (state[1][e] / numbers[5]) / (sqrt(state[2][e] / numbers[6]) + numbers[3]);
    }
    uint64_t n;
    const double tolerance = dtype == VK_FLOAT16 ? 2e-3 : 2e-6;
    for (int i = 0; i < 3; i++)
      test_close(op_get(&t, out[i], &n), state[i], N, tolerance, tolerance, "a step");
  }
  for (int i = 0; i < 3; i++) free(state[i]);
  free(g);
  op_end(&t);
}

static void steps(void) {
  for (int k = 0; k < 4; k++)
    adamw(dtypes[k % 2], k / 2, k % 2 ? "et_vk.adamw_step.default" : "adamw_step.default");
}

/* ---- gradients ------------------------------------------------------------------------------- */

static void dw(enum vk_dtype dtype, uint32_t n, uint32_t k, const char *force) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t d = op_input(&t, dtype, DIMS(2, 40, n)), x = op_input(&t, dtype, DIMS(2, 40, k));
  uint32_t y = op_output(&t, dtype, DIMS(n, k));
  op_node(&t, "et_vk.linear_dW.default", IDS(d, x, y));
  CHECK_OK(op_load(&t, force, &err), err);
  const uint32_t lives[] = {40, 1, 0, 7};
  for (int i = 0; i < 4 && !test_failed(); i++) {
    uint32_t m = 2 * lives[i];
    double *a = test_values(dtype, (uint64_t)m * n, 1), *b = test_values(dtype, (uint64_t)m * k, 2);
    double *want = calloc((size_t)n * k, sizeof *want);
    for (uint32_t r = 0; r < m; r++)
      for (uint32_t e = 0; e < n * k; e++) want[e] += a[r * n + e / k] * b[r * k + e % k];
    op_set(&t, d, DIMS(2, lives[i], n), a);
    op_set(&t, x, DIMS(2, lives[i], k), b);
    CHECK_OK(op_run(&t, &err), err);
    uint64_t got;
    const double tolerance = dtype == VK_FLOAT16 ? 8e-3 : 1e-5;
    test_close(op_get(&t, y, &got), want, (uint64_t)n * k, tolerance, 0,
               "the gradient of a weight");
    CHECK_EQ(got, n * k);
    free(a);
    free(b);
    free(want);
  }
  op_end(&t);
}

static void weight_gradients(void) {
  for (int k = 0; k < 2; k++) {
    dw(dtypes[k], 68, 132, NULL);
    dw(dtypes[k], 8, 12, k ? "plain_f16" : "plain_f32");
    dw(dtypes[k], 5, 7, NULL);
  }
}

struct q4 {
  uint32_t n, k, group, stride, padded; /* padded: scales of a group */
  uint8_t *w;
  double *scales; /* (groups, padded) */
};

static void q4_make(struct q4 *q, enum vk_dtype scale_dtype) {
  uint32_t groups = (q->k + q->group - 1) / q->group;
  uint64_t seed = 7;
  q->w = calloc((size_t)q->n * q->stride + 4, 1);
  q->scales = test_values(scale_dtype, (uint64_t)groups * q->padded, 3);
  for (uint32_t i = 0; i < q->n * q->stride; i++)
    q->w[i] = (uint8_t)(int)((test_random_float(&seed) + 1) * 127);
}

static double q4_weight(const struct q4 *q, uint32_t n, uint32_t k) {
  uint8_t byte = q->w[n * q->stride + k / 2];
  return ((k % 2 ? byte >> 4 : byte & 15) - 8) * q->scales[k / q->group * q->padded + n];
}

static void back(enum vk_dtype dtype, enum vk_dtype scale_dtype, struct q4 q, const char *force) {
  struct op_test t;
  sconce_error err = {0};
  uint32_t groups = (q.k + q.group - 1) / q.group;
  op_begin(&t);
  q4_make(&q, scale_dtype);
  uint32_t d = op_input(&t, dtype, DIMS(70, q.n)), y = op_output(&t, dtype, DIMS(70, q.k));
  uint32_t w = op_constant_bytes(&t, VK_UINT8, DIMS(q.n, q.stride), q.w);
  uint32_t scales = op_constant(&t, scale_dtype, DIMS(groups, q.padded), q.scales);
  op_node(&t, "et_vk.linear_q4gsw_backward.default", IDS(d, w, scales, op_int(&t, q.group), y));
  CHECK_OK(op_load(&t, force, &err), err);
  const uint32_t lives[] = {70, 1, 0, 9};
  for (int i = 0; i < 4 && !test_failed(); i++) {
    uint32_t m = lives[i];
    double *a = test_values(dtype, (uint64_t)m * q.n, 1), *want = calloc(m * q.k + 1, sizeof *want);
    for (uint32_t e = 0; e < m * q.k; e++)
      for (uint32_t n = 0; n < q.n; n++)
        want[e] += a[e / q.k * q.n + n] * q4_weight(&q, n, e % q.k);
    op_set(&t, d, DIMS(m, q.n), a);
    CHECK_OK(op_run(&t, &err), err);
    uint64_t got;
    const double tolerance = dtype == VK_FLOAT16 ? 3e-2 : 4e-5;
    test_close(op_get(&t, y, &got), want, m * q.k, tolerance, 0, "the gradient of x");
    CHECK_EQ(got, m * q.k);
    free(a);
    free(want);
  }
  free(q.w);
  free(q.scales);
  op_end(&t);
}

static void x_gradients(void) {
  for (int k = 0; k < 2; k++) {
    back(dtypes[k], dtypes[k], (struct q4){36, 72, 32, 36, 40}, NULL);
    back(dtypes[k], VK_FLOAT32, (struct q4){20, 64, 64, 32, 20}, k ? "plain_f16" : "plain_f32");
    back(dtypes[k], dtypes[k], (struct q4){13, 37, 10, 20, 16}, NULL);
  }
}

/* ---- requant --------------------------------------------------------------------------------- */

static void requant(enum vk_dtype dtype, uint32_t n, uint32_t k, uint32_t group) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t groups = (k + group - 1) / group, stride = (k + 1) / 2, padded = n + 3;
  double *scales = test_values(dtype, (uint64_t)groups * padded, 3);
  double *w = test_values(dtype, (uint64_t)n * k, 4),
         *want = calloc((size_t)n * stride, sizeof *want);
  for (uint32_t i = 0; i < groups * padded; i++)
    scales[i] = i % 11 == 5 ? 0 : (1 + floor(fabs(scales[i]) * 7)) / 32; /* ties happen */
  for (uint32_t i = 0; i < n * k; i++) w[i] = round(w[i] * 128) / 64;
  for (uint32_t i = 0; i < n * k; i++) {
    double scale = scales[i % k / group * padded + i / k];
    double code =
        scale == 0 ? 8 : fmin(7, fmax(-8, nearbyint((double)((float)w[i] / (float)scale)))) + 8;
    want[i / k * stride + i % k / 2] += i % k % 2 ? 16 * code : code;
  }
  uint32_t x = op_input(&t, dtype, DIMS(n, k)), y = op_output(&t, VK_UINT8, DIMS(n, stride));
  uint32_t s = op_constant(&t, dtype, DIMS(groups, padded), scales);
  op_node(&t, "et_vk.q4gsw_requant.default", IDS(x, s, op_int(&t, group), y));
  CHECK_OK(op_load(&t, NULL, &err), err);
  op_set(&t, x, DIMS(n, k), w);
  CHECK_OK(op_run(&t, &err), err);
  uint64_t got;
  test_close(op_get(&t, y, &got), want, n * stride, 0, 0, "codes");
  CHECK_EQ(got, n * stride);
  free(scales);
  free(w);
  free(want);
  op_end(&t);
}

static void codes(void) {
  for (int k = 0; k < 2; k++) {
    requant(dtypes[k], 6, 64, 32);
    requant(dtypes[k], 5, 37, 10);
  }
}

static void refuses(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t d = op_input(&t, VK_FLOAT32, DIMS(3, 4)), x = op_input(&t, VK_FLOAT32, DIMS(2, 4));
  uint32_t y = op_output(&t, VK_FLOAT32, DIMS(4, 4));
  op_node(&t, "et_vk.linear_dW.default", IDS(d, x, y));
  CHECK_FAILS(op_try(&t, &err), SCONCE_BAD_ARGUMENT, err,
              "the gradient of float32 [3, 4] times float32 [2, 4]");
  op_end(&t);
}

const struct test suite_train[] = {
    TEST(losses), TEST(losses_in_parts),  TEST(labels_are_checked),
    TEST(steps),  TEST(weight_gradients), TEST(x_gradients),
    TEST(codes),  TEST(refuses),          {0},
};
