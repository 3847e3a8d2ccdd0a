/* Linear with 4-bit weights, against the formula in double. */
#include "op.h"
#include "ops/linear_q4/linear_q4.h"

struct shape {
  uint32_t m, k, n, group;
  const char *why;
};
static const struct shape shapes[] = {
    {1, 8, 2, 4, "the smallest"},
    {9, 4, 3, 4, "k below a word, n odd"},
    {5, 12, 5, 12, "k not a multiple of 8, per channel"},
    {3, 24, 7, 8, "groups of 8"},
    {3, 15, 6, 5, "k and groups odd"},
    {2, 60, 6, 20, "groups that are no multiple of 8"},
    {8, 64, 65, 32, "the most rows of a vector row, n odd"},
    {1, 96, 258, 32, "k not a multiple of 64"},
    {4, 288, 20, 32, "a small model's k"},
    {2, 384, 12, 192, "groups of 32 times 6"},
    {1, 1088, 34, 64, "k above 1024, uneven over the lanes"},
    {3, 1024, 18, 1024, "per channel, a large k"},
    {2, 4224, 10, 128, "k above 4096, uneven over the lanes"},
    {70, 64, 130, 32, "tiles with edges"},
    {65, 44, 66, 4, "groups of 4, a k that ends inside a word"},
    {20, 80, 70, 40, "tiles, groups of 40, a k that ends inside a step"},
    {12, 44, 10, 44, "a small tile, per channel, a k that ends inside a word"},
    {66, 160, 64, 160, "tiles, per channel"},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static uint32_t up(uint32_t n, uint32_t to) { return (n + to - 1) / to * to; }

/* A random problem and its answer for every row of x. */
struct problem {
  uint32_t stride, n_scales, groups;
  uint8_t *w;
  double *x, *scales, *bias, *want;
};

static double code(const struct problem *d, uint32_t n, uint32_t k) {
  uint8_t byte = d->w[n * d->stride + k / 2];
  return (k & 1 ? byte >> 4 : byte & 15) - 8.0;
}

static struct problem make(const struct shape *s, enum vk_dtype x, enum vk_dtype scales) {
  struct problem d = {.stride = up(s->k, 8) / 2,
                      .n_scales = up(s->n, 4),
                      .groups = (s->k + s->group - 1) / s->group};
  uint64_t seed = 7 + s->k;
  d.w = malloc((size_t)s->n * d.stride);
  for (uint32_t i = 0; i < s->n * d.stride; i++) d.w[i] = (uint8_t)(test_random(&seed) >> 7);
  d.x = test_values(x, (uint64_t)s->m * s->k, 1);
  d.scales = test_values(scales, (uint64_t)d.groups * d.n_scales, 2);
  d.bias = test_values(x, d.n_scales, 3);
  d.want = malloc((size_t)s->m * s->n * sizeof *d.want);
  for (uint32_t m = 0; m < s->m; m++)
    for (uint32_t n = 0; n < s->n; n++) {
      double sum = d.bias[n];
      for (uint32_t k = 0; k < s->k; k++)
        sum += d.x[m * s->k + k] * code(&d, n, k) * d.scales[k / s->group * d.n_scales + n];
      d.want[m * s->n + n] = sum;
    }
  return d;
}

static void drop(struct problem *d) {
  free(d->w);
  free(d->x);
  free(d->scales);
  free(d->bias);
  free(d->want);
}

/* Graph values of a problem; group arrives as Int or as Double. `wide`: the result is float32. */
static uint32_t build_wide(struct op_test *t, const struct shape *s, const struct problem *d,
                           enum vk_dtype dtype, enum vk_dtype scales, bool as_double, bool fast,
                           bool wide, uint32_t *x) {
  op_begin(t);
  t->graph.caps.fast = fast;
  *x = op_input(t, dtype, DIMS(s->m, s->k));
  uint32_t y = op_output(t, wide ? VK_FLOAT32 : dtype, DIMS(s->m, s->n));
  uint32_t group = as_double ? op_double(t, s->group) : op_int(t, s->group);
  uint32_t w = op_constant_bytes(t, VK_UINT8, DIMS(s->n, d->stride), d->w);
  uint32_t sc = op_constant(t, scales, DIMS(d->groups, d->n_scales), d->scales);
  uint32_t bias = op_constant(t, dtype, DIMS(d->n_scales), d->bias);
  op_node(t, "et_vk.linear_q4gsw.default", IDS(*x, w, sc, group, bias, y));
  return y;
}

static uint32_t build(struct op_test *t, const struct shape *s, const struct problem *d,
                      enum vk_dtype dtype, enum vk_dtype scales, bool as_double, bool fast,
                      uint32_t *x) {
  return build_wide(t, s, d, dtype, scales, as_double, fast, false, x);
}

/* Values of about k products: float32 rounding of the sum, float16 rounding of the result. Sums
 * reach 100, half of whose last bit is 4e-6: among 17,000 results of 544 products one of the plain
 * row is 4.5e-5 off, so MANY have more room than a few. */
static const double FEW = 2e-6, MANY = 5e-6;
/* Both factors rounded to f16: 3.2e-4 of products that are 1.5 in the mean, six deviations. */
static const double FAST = 3.2e-3;
static bool check(struct op_test *t, uint32_t y, const double *want, uint32_t k,
                  enum vk_dtype dtype, double room, const char *why) {
  uint64_t n;
  const double *got = op_get(t, y, &n);
  double abs = room * sqrt(k) + 2e-6, rel = dtype == VK_FLOAT16 ? 6e-4 : 2e-6;
  return test_close(got, want, n, abs, rel, why);
}

static void run(const struct shape *s, enum vk_dtype dtype, enum vk_dtype scales, const char *force,
                bool fast) {
  struct problem d = make(s, dtype, scales);
  struct op_test t;
  sconce_error err = {0};
  uint32_t x, y = build(&t, s, &d, dtype, scales, force == NULL, fast, &x);
  CHECK_OK(op_load(&t, force, &err), err);
  const uint32_t live[] = {s->m, 1, 0, s->m > 2 ? s->m / 2 : 1, s->m};
  for (int i = force ? 3 : 0; i < 5 && !test_failed();
       i++) { /* the rows of x that are live come first */
    op_set(&t, x, DIMS(live[i], s->k), d.x);
    CHECK_OK(op_run(&t, &err), err);
    if (!test_failed())
      check(&t, y, d.want, s->k, dtype, fast ? FAST : s->m * s->n > 10000 ? MANY : FEW, s->why);
  }
  op_end(&t);
  drop(&d);
}

static void all_shapes(enum vk_dtype dtype, enum vk_dtype scales, const char *force, bool fast) {
  for (size_t i = 0; i < SHAPES && !test_failed(); i++) run(&shapes[i], dtype, scales, force, fast);
}

static void every_shape(void) {
  all_shapes(VK_FLOAT32, VK_FLOAT32, NULL, false);
  all_shapes(VK_FLOAT16, VK_FLOAT16, NULL, false);
}

/* Every way to cut rows of x into tiles, with edges in each direction, and k in slices: one graph
 * and one problem for all of them. */
static void counts_of_rows(enum vk_dtype dtype, const char *force, bool fast) {
  static const struct shape s = {290, 544, 134, 32, "counts of rows"};
  static const uint32_t live[] = {129, 1, 290, 9, 2, 16, 100, 17, 4, 33, 8, 64, 128, 65, 256};
  struct problem d = make(&s, dtype, dtype);
  struct op_test t;
  sconce_error err = {0};
  uint32_t x, y = build(&t, &s, &d, dtype, dtype, false, fast, &x);
  CHECK_OK(op_load(&t, force, &err), err);
  for (size_t i = 0; i < sizeof live / sizeof *live && !test_failed(); i++) {
    char what[100];
    snprintf(what, sizeof what, "%s rows %u", force ? force : "chosen", live[i]);
    if (test_gpu_is_slow() && force && live[i] > 129) continue;
    op_set(&t, x, DIMS(live[i], s.k), d.x);
    CHECK_OK(op_run(&t, &err), err);
    if (!test_failed()) check(&t, y, d.want, s.k, dtype, fast ? FAST : MANY, what);
  }
  op_end(&t);
  drop(&d);
}

static void any_count_of_rows(void) {
  counts_of_rows(VK_FLOAT32, NULL, false);
  counts_of_rows(VK_FLOAT16, NULL, false);
  struct gpu *gpu = test_gpu();
  REQUIRE(gpu);
  if (!gpu_caps(gpu).matrix) return; /* the same rows as before */
  counts_of_rows(VK_FLOAT32, NULL, true);
  counts_of_rows(VK_FLOAT16, NULL, true);
}

/* In f16 neither rows of x beyond 65,504 nor scales that it would lose may spoil a result: errors
 * stay in proportion to what is added up. */
static void spread(const char *force) {
  static const struct shape s = {40, 96, 36, 32, "far from one"};
  struct problem d = make(&s, VK_FLOAT32, VK_FLOAT32);
  for (uint32_t i = 0; i < s.m * s.k; i++) d.x[i] = (float)(d.x[i] * pow(10, i / s.k % 17 - 8.0));
  for (uint32_t i = 0; i < d.groups * d.n_scales; i++)
    d.scales[i] = (float)(d.scales[i] * pow(10, i % d.n_scales % 15 - 9.0));
  memset(d.bias, 0, d.n_scales * sizeof *d.bias);
  struct op_test t;
  sconce_error err = {0};
  uint32_t x, y = build(&t, &s, &d, VK_FLOAT32, VK_FLOAT32, false, true, &x);
  CHECK_OK(op_load(&t, force, &err), err);
  op_set(&t, x, DIMS(s.m, s.k), d.x);
  CHECK_OK(op_run(&t, &err), err);
  uint64_t n = 0;
  const double *got = test_failed() ? NULL : op_get(&t, y, &n);
  for (uint32_t i = 0; i < n && !test_failed(); i++) {
    double want = 0, sizes = 0;
    for (uint32_t k = 0; k < s.k; k++) {
      const double v = d.x[i / s.n * s.k + k] * code(&d, i % s.n, k) *
                       d.scales[k / s.group * d.n_scales + i % s.n];
      want += v;
      sizes += fabs(v);
    }
    test_close(&got[i], &want, 1, 5e-4 * sizes, 0, s.why);
  }
  CHECK_EQ(n, s.m * s.n);
  op_end(&t);
  drop(&d);
}

static void far_from_one(void) {
  struct gpu *gpu = test_gpu();
  REQUIRE(gpu);
  const struct caps caps = gpu_caps(gpu);
  spread(NULL);
  for (const struct kernel *row = q4_kernels; row->name && !test_failed(); row++)
    if (row->needs & NEEDS_FAST && row->dtypes == OF_F32 && kernel_runs(row, &caps))
      spread(row->name);
}

/* What the exporter makes of a 4-bit product in a model of halves. */
static void halves_in_floats_out(const struct shape *s) {
  struct problem d = make(s, VK_FLOAT16, VK_FLOAT16);
  struct op_test t;
  sconce_error err = {0};
  uint32_t x, y = build_wide(&t, s, &d, VK_FLOAT16, VK_FLOAT16, false, false, true, &x);
  CHECK_OK(op_load(&t, NULL, &err), err);
  op_set(&t, x, DIMS(s->m, s->k), d.x);
  CHECK_OK(op_run(&t, &err), err);
  if (!test_failed()) check(&t, y, d.want, s->k, VK_FLOAT32, MANY, s->why);
  op_end(&t);
  drop(&d);
}

static void mixed_dtypes(void) {
  for (size_t i = 0; i < 6; i++) {
    run(&shapes[i], VK_FLOAT32, VK_FLOAT16, NULL, false);
    run(&shapes[i], VK_FLOAT16, VK_FLOAT32, NULL, false);
    halves_in_floats_out(&shapes[i]);
  }
}

/* A forced row serves what it fits, the table's choice the rest. The second table is for another
 * operator's x. */
static void every_row(void) {
  struct gpu *gpu = test_gpu();
  const struct op *op = op_find(text_of("et_vk.linear_q4gsw.default"));
  REQUIRE(gpu && op);
  const struct caps caps = gpu_caps(gpu);
  for (const struct kernel *row = op->tables[0]; row->name && !test_failed(); row++) {
    const enum vk_dtype dtype = row->dtypes & OF_F16 ? VK_FLOAT16 : VK_FLOAT32;
    if (!kernel_runs(row, &caps)) continue;
    const bool fast = row->needs & NEEDS_FAST;
    all_shapes(dtype, dtype, row->name, fast);
    if (!strcmp(row->wgsl->name, "q4_gemm") || fast) counts_of_rows(dtype, row->name, fast);
  }
}

/* The weight, or the result, is larger than a binding may be. */
static void large_operands(void) {
  struct gpu *gpu = test_gpu();
  if (!gpu || gpu_info(gpu)->max_storage_binding > 1 << 20) {
    test_skip("bindings may be larger than 1 MiB");
    return;
  }
  static const struct shape large[] = {
      {1, 320, 7000, 32, "a weight in two parts"},
      {1, 12, 140001, 12, "a weight in parts, n odd"},
      {133, 8, 2048, 8, "a result in parts"},
      {20, 640, 4000, 32, "a weight in parts, k in slices"},
  };
  for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
    run(&large[i], VK_FLOAT32, VK_FLOAT32, NULL, false);
    run(&large[i], VK_FLOAT16, VK_FLOAT16, NULL, false);
  }
}

/* Pieces may be asked for in any size and order. */
static void scales_are_packed_in_pieces(void) {
  static const uint32_t dims[][2] = {{1, 1}, {3, 70}, {70, 3}, {33, 65}, {64, 32}, {5, 1}, {1, 5}};
  uint16_t in[70 * 70], want[70 * 70], got[70 * 70];
  for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
    const uint32_t groups = dims[i][0], rows = dims[i][1], n = groups * rows;
    const struct unpacked from = {VK_FLOAT16, 2, dims[i], (const uint8_t *)in};
    for (uint32_t k = 0; k < n; k++) in[k] = (uint16_t)(k * 31 + 7);
    for (uint32_t k = 0; k < n; k++) want[k] = in[k % groups * rows + k / groups];
    CHECK_EQ(q4_scales.size(&from), 2 * n);
    for (uint32_t piece = 16; piece < 2 * n + 32; piece += 16 * (1 + piece / 64)) {
      memset(got, 0, sizeof got);
      for (uint32_t at = (2 * n - 1) / piece * piece; at < 2 * n; at -= piece)
        q4_scales.fill(&from, at, at + piece < 2 * n ? at + piece : 2 * n, (uint8_t *)got + at);
      if (memcmp(got, want, 2 * n) != 0)
        test_fail(__FILE__, __LINE__, "(%u, %u) in pieces of %u", groups, rows, piece);
    }
  }
  const struct unpacked none = {VK_FLOAT32, 2, (const uint32_t[]){0, 4}, (const uint8_t *)in};
  CHECK_EQ(q4_scales.size(&none), 0);
}

/* x may have a rank that the result has not. */
static void ranks(void) {
  static const struct shape s = {6, 64, 10, 32, "ranks"};
  static const struct {
    uint32_t x[3], x_rank, y[4], y_rank;
  } cases[] = {
      {{2, 3, 64}, 3, {2, 3, 10}, 3}, {{2, 3, 64}, 3, {6, 10}, 2}, {{6, 64}, 2, {1, 1, 6, 10}, 4}};
  struct problem d = make(&s, VK_FLOAT32, VK_FLOAT32);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t x = op_input(&t, VK_FLOAT32, cases[i].x, cases[i].x_rank);
    uint32_t y = op_output(&t, VK_FLOAT32, cases[i].y, cases[i].y_rank);
    uint32_t w = op_constant_bytes(&t, VK_UINT8, DIMS(s.n, d.stride), d.w);
    uint32_t scales = op_constant(&t, VK_FLOAT32, DIMS(d.groups, d.n_scales), d.scales);
    uint32_t bias = op_constant(&t, VK_FLOAT32, DIMS(d.n_scales), d.bias);
    op_node(&t, "et_vk.linear_q4gsw.default", IDS(x, w, scales, op_int(&t, s.group), bias, y));
    CHECK_OK(op_load(&t, NULL, &err), err);
    op_set(&t, x, cases[i].x, cases[i].x_rank, d.x);
    CHECK_OK(op_run(&t, &err), err);
    if (!test_failed()) check(&t, y, d.want, s.k, VK_FLOAT32, FEW, s.why);
    op_end(&t);
  }
  drop(&d);
}

static void errors(void) {
  static const struct {
    uint32_t w[2], scales[2], bias;
    double group;
    enum vk_dtype w_dtype, y_dtype;
    sconce_status status;
    const char *fragment;
  } cases[] = {
      {{4, 8}, {1, 4}, 4, 16, VK_UINT8, VK_FLOAT32, SCONCE_BAD_GRAPH, "x has 32 columns"},
      {{4, 16}, {1, 4}, 4, 16, VK_UINT8, VK_FLOAT32, SCONCE_BAD_GRAPH, "in groups of 16"},
      {{4, 16}, {2, 2}, 4, 16, VK_UINT8, VK_FLOAT32, SCONCE_BAD_GRAPH, "scales float32 [2, 2]"},
      {{4, 16}, {2, 4}, 3, 16, VK_UINT8, VK_FLOAT32, SCONCE_BAD_GRAPH, "a bias of 3"},
      {{4, 16}, {2, 4}, 4, 0, VK_UINT8, VK_FLOAT32, SCONCE_BAD_GRAPH, "groups of 0"},
      {{4, 16}, {2, 4}, 4, 0.5, VK_UINT8, VK_FLOAT32, SCONCE_BAD_GRAPH, "expected an integer"},
      {{4, 16}, {2, 4}, 4, 16, VK_INT8, VK_FLOAT32, SCONCE_BAD_GRAPH, "expected uint8"},
      {{4, 16}, {2, 4}, 4, 16, VK_UINT8, VK_FLOAT16, SCONCE_BAD_GRAPH, "the result float16"},
  };
  double zeros[64] = {0};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t x = op_input(&t, VK_FLOAT32, DIMS(1, 32)),
             y = op_output(&t, cases[i].y_dtype, DIMS(1, 4));
    uint32_t w = op_constant(&t, cases[i].w_dtype, cases[i].w, 2, zeros);
    uint32_t scales = op_constant(&t, VK_FLOAT32, cases[i].scales, 2, zeros);
    uint32_t bias = op_constant(&t, VK_FLOAT32, DIMS(cases[i].bias), zeros);
    op_node(&t, "et_vk.linear_q4gsw.default",
            IDS(x, w, scales, op_double(&t, cases[i].group), bias, y));
    CHECK_FAILS(op_try(&t, &err), cases[i].status, err, cases[i].fragment);
    op_end(&t);
  }
}

const struct test suite_linear_q4[] = {TEST(scales_are_packed_in_pieces),
                                       TEST(every_shape),
                                       TEST(any_count_of_rows),
                                       TEST(far_from_one),
                                       TEST(mixed_dtypes),
                                       TEST(every_row),
                                       TEST(large_operands),
                                       TEST(ranks),
                                       TEST(errors),
                                       {0}};
