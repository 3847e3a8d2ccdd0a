/* Linear layers of quantised tensors against sums of integers; what follows the sum is done in the
 * steps of float32 that the kernels promise, so bytes and floats are equal to the last bit. */
#include "op.h"

#include "base/half.h"
#include "ops/q8ta/q8ta.h"

struct shape {
  uint32_t m, k, n;
  const char *why;
};
static const struct shape shapes[] = {
    {1, 4, 4, "one word each"},
    {1, 64, 10, "one row, n not a multiple of 4"},
    {3, 20, 7, "rows of words, but not of 16 bytes; 21 bytes of y"},
    {8, 4096, 36, "the last m for vectors, a deep sum"},
    {9, 32, 8, "the first m for tiles"},
    {5, 13, 6, "k not a multiple of 4"},
    {33, 7, 33, "tiles with one row and column more, k not a multiple of 4"},
    {40, 68, 70, "tiles that are not full in any way"},
    {70, 36, 66, "more than one tile each way"},
    {520, 40, 516, "large tiles"},
    {2, 1, 1, "one product"},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

struct kind {
  const char *name;
  enum vk_dtype y, scale;
  bool bias, relu;
};
static const struct kind kinds[] = {
    {"et_vk.q8ta_linear.default", VK_INT8, VK_FLOAT32, true, false},
    {"et_vk.q8ta_linear.default", VK_INT8, VK_FLOAT16, true, true},
    {"et_vk.q8ta_linear_gemv.default", VK_INT8, VK_FLOAT32, false, true},
    {"et_vk.linear_q8ta_q8csw.default", VK_FLOAT32, VK_FLOAT32, true, false},
    {"et_vk.linear_q8ta_q8csw.default", VK_FLOAT16, VK_FLOAT16, false, false},
};
enum { KINDS = sizeof kinds / sizeof *kinds, X_ZERO = -7, Y_ZERO = 3 };
static const double x_scale = 0.0123;

/* What a file would have: bytes, padded scales and bias. */
struct layer {
  int8_t *x, *w;
  double *scales, *bias, *elements, *want;
  uint32_t padded;
  double y_scale;
};

static void make(struct layer *l, const struct shape *s, const struct kind *kind) {
  uint64_t seed = 3 + s->m;
  l->padded = (s->n + 3) / 4 * 4;
  l->x = malloc((size_t)s->m * s->k);
  l->w = malloc((size_t)s->n * s->k);
  l->scales = calloc(l->padded, sizeof *l->scales);
  l->bias = test_values(kind->scale, l->padded, 5);
  l->elements = malloc((size_t)s->m * s->k * sizeof *l->elements);
  l->want = malloc((size_t)s->m * s->n * sizeof *l->want);
  l->y_scale = 0.002 * sqrt(s->k);
  for (uint32_t i = 0; i < s->m * s->k; i++) {
    l->x[i] = (int8_t)(test_random(&seed) >> 9);
    l->elements[i] = l->x[i];
  }
  for (uint32_t n = 0; n < s->n; n++) {
    const float scale = 0.001f + 0.0001f * (float)(n % 17);
    l->scales[n] = kind->scale == VK_FLOAT16 ? half_to_float(half_from_float(scale)) : scale;
    for (uint32_t k = 0; k < s->k; k++) {
      l->w[n * s->k + k] = (int8_t)(test_random(&seed) >> 9);
    }
  }
}

static void drop(struct layer *l) {
  free(l->x), free(l->w), free(l->scales), free(l->bias), free(l->elements);
  free(l->want);
}

static double result(const struct layer *l, const struct kind *kind, int64_t sum, uint32_t n) {
  const volatile float scale = (float)x_scale * (float)l->scales[n];
  volatile float real = (float)sum * scale;
  if (kind->bias) real = real + (float)l->bias[n];
  if (kind->relu) real = fmaxf(real, 0);
  if (kind->y == VK_FLOAT32) return real;
  if (kind->y == VK_FLOAT16) return half_to_float(half_from_float(real));
  const volatile float steps = real * (float)(1 / l->y_scale);
  return fmin(fmax(nearbyintf(steps) + (float)Y_ZERO, -128), 127);
}

static void expect(struct layer *l, const struct shape *s, const struct kind *kind, uint32_t m) {
  for (uint32_t i = 0; i < m; i++)
    for (uint32_t n = 0; n < s->n; n++) {
      int64_t sum = 0;
      for (uint32_t k = 0; k < s->k; k++)
        sum += (int64_t)(l->x[i * s->k + k] - X_ZERO) * l->w[n * s->k + k];
      l->want[i * s->n + n] = result(l, kind, sum, n);
    }
}

static void add_node(struct op_test *t, const struct layer *l, const struct shape *s,
                     const struct kind *kind, uint32_t x, uint32_t y) {
  uint32_t w = op_constant_bytes(t, VK_INT8, DIMS(s->n, s->k), l->w);
  uint32_t sums = op_constant(t, VK_INT32, DIMS(1), &(double){12345}); /* nobody trusts them */
  uint32_t scales = op_constant(t, kind->scale, DIMS(l->padded), l->scales);
  uint32_t bias = kind->bias ? op_constant(t, kind->scale, DIMS(l->padded), l->bias) : op_null(t);
  uint32_t xs = op_double(t, x_scale), xz = op_double(t, X_ZERO);
  if (kind->y == VK_INT8)
    op_node(t, kind->name,
            IDS(x, xs, xz, w, sums, scales, op_double(t, l->y_scale), op_int(t, Y_ZERO), bias,
                op_text(t, kind->relu ? "relu" : "none"), y));
  else
    op_node(t, kind->name, IDS(x, xs, xz, w, sums, scales, bias, y));
}

static void run(const struct shape *s, const struct kind *kind, const char *force) {
  struct layer l;
  struct op_test t;
  sconce_error err = {0};
  make(&l, s, kind);
  op_begin(&t);
  uint32_t x = op_input(&t, VK_INT8, DIMS(s->m, s->k)),
           y = op_output(&t, kind->y, DIMS(s->m, s->n));
  add_node(&t, &l, s, kind, x, y);
  CHECK_OK(op_load(&t, force, &err), err);
  const uint32_t lives[] = {s->m, 0, s->m > 2 ? s->m / 2 : 1, s->m};
  for (int i = force ? 2 : 0; i < 4 && !test_failed(); i++) {
    if (s->m > 100 && i == 1) continue;
    expect(&l, s, kind, lives[i]);
    op_set(&t, x, DIMS(lives[i], s->k), l.elements);
    CHECK_OK(op_run(&t, &err), err);
    uint64_t n;
    const double *got = op_get(&t, y, &n);
    CHECK_EQ(n, lives[i] * s->n);
    if (!test_failed()) test_close(got, l.want, n, 0, 0, s->why);
  }
  op_end(&t);
  drop(&l);
}

static void every_shape(void) {
  for (size_t i = 0; i < SHAPES; i++)
    for (size_t k = 0; k < KINDS && !test_failed(); k++)
      if (shapes[i].m < 100 || k == 0) run(&shapes[i], &kinds[k], NULL);
}

/* Rows whose predicate does not fit a shape leave it to the table. */
static void every_row(void) {
  struct gpu *gpu = test_gpu();
  const struct op *op = op_find(text_of("et_vk.q8ta_linear.default"));
  REQUIRE(gpu && op);
  const struct caps caps = gpu_caps(gpu);
  for (int table = 0; op->tables[table]; table++)
    for (const struct kernel *row = op->tables[table]; row->name && !test_failed(); row++)
      for (size_t i = 0; i < SHAPES - 2 && kernel_runs(row, &caps); i++) {
        run(&shapes[i], &kinds[1], row->name);
        run(&shapes[i], &kinds[3], row->name);
        run(&shapes[i], &kinds[4], row->name);
      }
}

/* Three dims of x, and a weight that is an input: nothing is known of it at load. */
static void weight_as_input(void) {
  struct op_test t;
  sconce_error err = {0};
  const double x[] = {10, -128, 5, 0}, w[] = {1, -2, 3, 4}, sums[] = {6, 0, 0, 0};
  const double scale = 0.01, bias = 0.2;
  op_begin(&t);
  uint32_t ix = op_input(&t, VK_INT8, DIMS(1, 1, 4)), iw = op_input(&t, VK_INT8, DIMS(1, 4));
  uint32_t y = op_output(&t, VK_INT8, DIMS(1, 1, 1));
  op_node(&t, "et_vk.q8ta_linear.default",
          IDS(ix, op_double(&t, 0.05), op_int(&t, -3), iw, op_constant(&t, VK_INT32, DIMS(4), sums),
              op_constant(&t, VK_FLOAT32, DIMS(1), &scale), op_double(&t, 0.04), op_int(&t, 1),
              op_constant(&t, VK_FLOAT32, DIMS(1), &bias), op_text(&t, "none"), y));
  REQUIRE_OK(op_load(&t, NULL, &err), err);
  op_set(&t, ix, DIMS(1, 1, 4), x);
  op_set(&t, iw, DIMS(1, 4), w);
  CHECK_OK(op_run(&t, &err), err);
  uint64_t n;
  CHECK_EQ((int)*op_get(&t, y, &n), 10); /* 299 · 0.05 · 0.01 + 0.2 = 0.3495, 8.74 steps */
  op_end(&t);
}

/* Pieces may be asked for in any size and order. */
static void fill_in_pieces(const struct packing *packing, const struct unpacked *from,
                           const uint8_t *want, uint64_t size) {
  uint8_t got[512];
  CHECK_EQ(packing->size(from), size);
  for (uint64_t piece = 16; piece <= 64; piece += 16) {
    memset(got, 0x55, sizeof got);
    for (uint64_t at = (size - 1) / piece * piece; at < size; at -= piece)
      packing->fill(from, at, at + piece < size ? at + piece : size, got + at);
    if (memcmp(got, want, size) != 0)
      test_fail(__FILE__, __LINE__, "%s in pieces of %u", packing->name, (unsigned)piece);
  }
}

static void packed_in_pieces(void) {
  uint8_t in[210], want[512] = {0};
  for (int i = 0; i < 210; i++) in[i] = (uint8_t)(i * 37 + 11);
  const struct unpacked rows = {VK_INT8, 2, (const uint32_t[]){30, 7}, in};
  for (int i = 0; i < 210; i++) want[i / 7 * 8 + i % 7] = in[i];
  fill_in_pieces(&q8_rows, &rows, want, 240);
  int32_t sums[30] = {0};
  for (int i = 0; i < 210; i++) sums[i / 7] += (int8_t)in[i];
  fill_in_pieces(&q8_sums, &rows, (const uint8_t *)sums, 120);
  const struct unpacked taps = {VK_INT8, 3, (const uint32_t[]){3, 5, 14}, in};
  memset(sums, 0, sizeof sums);
  for (int i = 0; i < 210; i++) sums[i % 14] += (int8_t)in[i];
  fill_in_pieces(&q8_sums, &taps, (const uint8_t *)sums, 56);
  memset(want, 0, sizeof want);
  for (int i = 0; i < 210; i++) want[i % 14 * 24 + i / 70 * 8 + i / 14 % 5] = in[i];
  fill_in_pieces(&q8_planes, &taps, want, 14 * 24);
}

static void refuses(void) {
  static const struct {
    uint32_t k, w_k, scales;
    enum vk_dtype x;
    int zero;
    const char *activation;
    sconce_status status;
    const char *says;
  } cases[] = {
      {8, 4, 4, VK_INT8, 0, "none", SCONCE_BAD_GRAPH, "x is int8 [2, 8], the weight int8 [4, 4]"},
      {8, 8, 3, VK_INT8, 0, "none", SCONCE_BAD_GRAPH, "scales float32 [3] for 4 channels"},
      {8, 8, 4, VK_UINT8, 0, "none", SCONCE_UNSUPPORTED, "x is uint8, expected int8"},
      {8, 8, 4, VK_INT8, 128, "none", SCONCE_UNSUPPORTED, "a zero point of 128"},
      {8, 8, 4, VK_INT8, 0, "gelu", SCONCE_UNSUPPORTED, "neither none nor relu"},
      {65540, 65540, 4, VK_INT8, 0, "none", SCONCE_UNSUPPORTED, "sums of 65540 products"},
  };
  static const double zeros[4];
  static const int8_t w[4 * 65540];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t x = op_input(&t, cases[i].x, DIMS(2, cases[i].k)),
             y = op_output(&t, VK_INT8, DIMS(2, 4));
    uint32_t one = op_double(&t, 1), z = op_int(&t, cases[i].zero);
    op_node(&t, "et_vk.q8ta_linear.default",
            IDS(x, one, z, op_constant_bytes(&t, VK_INT8, DIMS(4, cases[i].w_k), w),
                op_constant(&t, VK_INT32, DIMS(4), zeros),
                op_constant(&t, VK_FLOAT32, DIMS(cases[i].scales), zeros), one, z, op_null(&t),
                op_text(&t, cases[i].activation), y));
    CHECK_FAILS(op_try(&t, &err), cases[i].status, err, cases[i].says);
    op_end(&t);
  }
}

const struct test suite_q8ta_linear[] = {TEST(every_shape),     TEST(every_row),
                                         TEST(weight_as_input), TEST(packed_in_pieces),
                                         TEST(refuses),         {0}};
