/* Dense products, against plain loops in double. */
#include "op.h"

struct shape {
  uint32_t batch, m, k, n;
  const char *why;
};
static const struct shape shapes[] = {
    {1, 1, 1, 1, "the smallest"},
    {1, 3, 5, 7, "everything odd"},
    {1, 2, 8, 6, "quads"},
    {1, 1, 260, 37, "a vector, k above 256, n odd"},
    {1, 8, 64, 66, "the most rows of a vector row"},
    {1, 70, 36, 68, "tiles with edges"},
    {3, 9, 40, 12, "a batch where there is one"},
    {1, 133, 200, 140, "tiles of every size with edges, slices with an end"},
    {1, 40, 1028, 72, "many slices of k"},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

enum kind { LINEAR, MM, BMM, ADDMM };
static const char *const names[] = {"aten.linear.default", "aten.mm.default", "aten.bmm.default",
                                    "aten.addmm.default"};

/* w is (n, k) for linear and (k, n) for the rest. */
static void expect(const struct shape *s, enum kind kind, uint32_t m_live, const double *x,
                   const double *w, const double *bias, double beta, double alpha, double *want) {
  for (uint32_t b = 0; b < s->batch; b++)
    for (uint32_t m = 0; m < m_live; m++)
      for (uint32_t n = 0; n < s->n; n++) {
        double sum = 0;
        for (uint32_t k = 0; k < s->k; k++) {
          uint32_t at = kind == LINEAR ? n * s->k + k : (b * s->k + k) * s->n + n;
          sum += x[(b * m_live + m) * s->k + k] * w[at];
        }
        *want++ = alpha * sum + (kind == LINEAR || kind == ADDMM ? beta * bias[n] : 0);
      }
}

/* Also with w as an input, and with numbers that arrive as Int. */
static void run(const struct shape *s, enum kind kind, enum vk_dtype dtype, enum vk_dtype w_dtype,
                bool input, const char *force) {
  if (s->batch > 1 && kind != BMM) return;
  const double beta = kind == ADDMM ? 2 : 1, alpha = kind == ADDMM ? -3 : 1;
  double *x = test_values(dtype, (uint64_t)s->batch * s->m * s->k, 1);
  double *w = test_values(w_dtype, (uint64_t)s->batch * s->n * s->k, 2);
  double *bias = test_values(dtype, s->n, 3);
  double *want = malloc((size_t)s->batch * s->m * s->n * sizeof *want);
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  const uint32_t skip = kind == BMM ? 0 : 1;
  uint32_t dx[3] = {s->batch, s->m, s->k}, dy[3] = {s->batch, s->m, s->n};
  uint32_t dw[3] = {s->batch, kind == LINEAR ? s->n : s->k, kind == LINEAR ? s->k : s->n};
  uint32_t ix = op_input(&t, dtype, dx + skip, 3 - skip);
  uint32_t iw = input ? op_input(&t, w_dtype, dw + skip, 3 - skip)
                      : op_constant(&t, w_dtype, dw + skip, 3 - skip, w);
  uint32_t ib = op_constant(&t, dtype, DIMS(s->n), bias);
  uint32_t iy = op_output(&t, dtype, dy + skip, 3 - skip);
  if (kind == LINEAR)
    op_node(&t, names[kind], IDS(ix, iw, ib, iy));
  else if (kind == ADDMM)
    op_node(&t, names[kind], IDS(ib, ix, iw, op_int(&t, 2), op_double(&t, -3), iy));
  else
    op_node(&t, names[kind], IDS(ix, iw, iy));
  CHECK_OK(op_load(&t, force, &err), err);
  const uint32_t live[] = {s->m, 1, 0, s->m > 2 ? s->m / 2 : 1, s->m};
  for (int i = force ? 3 : 0; i < 5 && !test_failed(); i++) {
    dx[1] = live[i];
    op_set(&t, ix, dx + skip, 3 - skip, x);
    if (input) op_set(&t, iw, dw + skip, 3 - skip, w);
    CHECK_OK(op_run(&t, &err), err);
    uint64_t n;
    const double *got = op_get(&t, iy, &n);
    CHECK_EQ(n, (uint64_t)s->batch * live[i] * s->n);
    expect(s, kind, live[i], x, w, bias, beta, alpha, want);
    if (!test_failed())
      test_close(got, want, n, 2e-6 * sqrt(s->k), dtype == VK_FLOAT16 ? 6e-4 : 2e-6, s->why);
  }
  op_end(&t);
  free(x);
  free(w);
  free(bias);
  free(want);
}

static void every_shape(void) {
  for (size_t i = 0; i < SHAPES && !test_failed(); i++)
    for (enum kind kind = LINEAR; kind <= ADDMM; kind++) {
      run(&shapes[i], kind, VK_FLOAT32, VK_FLOAT32, i % 2, NULL);
      run(&shapes[i], kind, VK_FLOAT16, VK_FLOAT16, i % 2, NULL);
      if (kind != LINEAR) run(&shapes[i], kind, VK_INT32, VK_INT32, i % 2, NULL);
    }
}

static void mixed_dtypes(void) {
  run(&shapes[2], LINEAR, VK_FLOAT32, VK_FLOAT16, false, NULL);
  run(&shapes[2], MM, VK_FLOAT16, VK_FLOAT32, false, NULL);
}

static void every_row(void) {
  static const char *const rows[] = {
      "matvec64",     "matvec16",    "matvec64_memory", "matvec16_memory",
      "matmul128_nk", "matmul64_nk", "matmul32_nk",     "matmul128_kn",
      "matmul64_kn",  "matmul32_kn", "matmul_teams_nk", "matmul_teams_kn",
      "plain"};
  for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows && !test_failed(); i++) {
    char name[64];
    snprintf(name, sizeof name, "%s_%s", rows[i / 2], i % 2 ? "f16" : "f32");
    enum vk_dtype dtype = i % 2 ? VK_FLOAT16 : VK_FLOAT32;
    for (size_t k = 2; k < SHAPES; k++)
      run(&shapes[k], strstr(name, "kn") ? BMM : LINEAR, dtype, dtype, false, name);
  }
}

/* What is added may be a row, a column, a matrix or a number; a factor of 0 ignores even NaN. */
static void bias_broadcasts(void) {
  static const struct {
    uint32_t dims[2], rank;
    double beta;
    enum kind kind;
  } cases[] = {{{0}, 0, 1, ADDMM},      {{1}, 1, 1, ADDMM},     {{6}, 1, 1, ADDMM},
               {{4, 1}, 2, 0.5, ADDMM}, {{4, 6}, 2, 2, ADDMM},  {{6}, 1, 0, ADDMM},
               {{0}, 0, 1, LINEAR},     {{1}, 1, 1, LINEAR},    {{1, 6}, 2, 1, LINEAR},
               {{4, 1}, 2, 1, LINEAR},  {{4, 6}, 2, 1, LINEAR}, {{1, 1}, 2, 1, LINEAR}};
  double *x = test_values(VK_FLOAT32, 4 * 8, 1), *w = test_values(VK_FLOAT32, 8 * 6, 2), want[24];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct op_test t;
    sconce_error err = {0};
    double *self = test_values(VK_FLOAT32, 24, 3);
    if (cases[i].beta == 0) self[2] = NAN;
    op_begin(&t);
    uint32_t ix = op_input(&t, VK_FLOAT32, DIMS(4, 8)), iy = op_output(&t, VK_FLOAT32, DIMS(4, 6));
    const bool linear = cases[i].kind == LINEAR;
    const uint32_t dw[] = {linear ? 6 : 8, linear ? 8 : 6};
    uint32_t iw = op_constant(&t, VK_FLOAT32, dw, 2, w);
    uint32_t is = op_constant(&t, VK_FLOAT32, cases[i].dims, cases[i].rank, self);
    if (linear)
      op_node(&t, names[LINEAR], IDS(ix, iw, is, iy));
    else
      op_node(&t, names[ADDMM], IDS(is, ix, iw, op_double(&t, cases[i].beta), op_int(&t, 1), iy));
    CHECK_OK(op_load(&t, NULL, &err), err);
    op_set(&t, ix, DIMS(4, 8), x);
    CHECK_OK(op_run(&t, &err), err);
    for (uint32_t m = 0; m < 4; m++)
      for (uint32_t n = 0; n < 6; n++) {
        const uint32_t *d = cases[i].dims, rank = cases[i].rank;
        uint32_t cols = rank ? d[rank - 1] : 1, rows = rank == 2 ? d[0] : 1;
        double added = cases[i].beta != 0
                           ? cases[i].beta * self[(rows == 1 ? 0 : m) * cols + (cols == 1 ? 0 : n)]
                           : 0;
        want[m * 6 + n] = added;
        for (uint32_t k = 0; k < 8; k++)
          want[m * 6 + n] += x[m * 8 + k] * w[linear ? n * 8 + k : k * 6 + n];
      }
    uint64_t n;
    const double *got = op_get(&t, iy, &n);
    if (!test_failed()) test_close(got, want, n, 1e-5, 1e-5, "what is added");
    op_end(&t);
    free(self);
  }
  free(x);
  free(w);
}

/* A weight, or a result, that is larger than a binding may be. */
static void large_operands(void) {
  struct gpu *gpu = test_gpu();
  if (!gpu || gpu_info(gpu)->max_storage_binding > 1 << 20) {
    test_skip("bindings may be larger than 1 MiB");
    return;
  }
  static const struct shape weight = {1, 2, 100, 4001, "a weight in two parts"};
  static const struct shape result = {1, 301, 4, 1000, "a result in two parts"};
  run(&weight, LINEAR, VK_FLOAT32, VK_FLOAT32, false, NULL);
  run(&weight, LINEAR, VK_FLOAT16, VK_FLOAT32, false, NULL);
  run(&result, LINEAR, VK_FLOAT32, VK_FLOAT32, false, NULL);
  run(&result, MM, VK_FLOAT32, VK_FLOAT32, false, NULL);
}

static void errors(void) {
  static const struct {
    enum kind kind;
    uint32_t w[2];
    enum vk_dtype w_dtype, y_dtype;
    sconce_status status;
    const char *fragment;
  } cases[] = {
      {LINEAR, {4, 9}, VK_FLOAT32, VK_FLOAT32, SCONCE_BAD_GRAPH, "the weight float32 [4, 9]"},
      {LINEAR, {4, 8}, VK_INT32, VK_FLOAT32, SCONCE_UNSUPPORTED, "the weight is int32"},
      {LINEAR, {4, 8}, VK_FLOAT32, VK_FLOAT16, SCONCE_BAD_GRAPH, "the result float16"},
      {LINEAR,
       {5, 8},
       VK_FLOAT32,
       VK_FLOAT32,
       SCONCE_BAD_GRAPH,
       "float32 [4] does not broadcast to [2, 5]"},
      {MM, {4, 8}, VK_FLOAT32, VK_FLOAT32, SCONCE_BAD_GRAPH, "float32 [2, 8] times float32 [4, 8]"},
  };
  double zeros[64] = {0};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t x = op_input(&t, VK_FLOAT32, DIMS(2, 8));
    uint32_t y = op_output(&t, cases[i].y_dtype, DIMS(2, 8)); /* room for what must be refused */
    uint32_t w = op_constant(&t, cases[i].w_dtype, cases[i].w, 2, zeros);
    uint32_t bias = op_constant(&t, VK_FLOAT32, DIMS(4), zeros);
    if (cases[i].kind == LINEAR)
      op_node(&t, names[LINEAR], IDS(x, w, bias, y));
    else
      op_node(&t, names[MM], IDS(x, w, y));
    CHECK_FAILS(op_try(&t, &err), cases[i].status, err, cases[i].fragment);
    op_end(&t);
  }
}

const struct test suite_linear[] = {TEST(every_shape),
                                    TEST(mixed_dtypes),
                                    TEST(every_row),
                                    TEST(bias_broadcasts),
                                    TEST(large_operands),
                                    TEST(errors),
                                    {0}};
