/* Quantising and dequantising, to the last bit: the oracle takes PyTorch's steps in float32. */
#include "op.h"

#include "base/half.h"

/* One form of the operators: how x is divided, and what follows it among the arguments. */
enum form { NUMBERS, TENSORS, CHANNELS, TOKENS, GROUPS, BLOCKS };

struct shape {
  uint32_t dims[4], rank;
  uint32_t block[4]; /* elements along each dim that share a scale */
  enum form form;
  const char *name; /* quantized_decomposed.quantize_NAME */
  const char *why;
};
static const struct shape shapes[] = {
    {{7, 5}, 2, {7, 5}, NUMBERS, "per_tensor.default", "35 elements: the last word is not full"},
    {{3, 5, 7}, 3, {3, 5, 7}, TENSORS, "per_tensor.tensor", "one scale, from a tensor"},
    {{6, 5, 3}, 3, {6, 1, 3}, CHANNELS, "per_channel.default", "an axis in the middle"},
    {{6, 9}, 2, {1, 9}, CHANNELS, "per_channel.default", "the first axis, words across rows"},
    {{5, 6}, 2, {5, 1}, CHANNELS, "per_channel.default", "the last axis"},
    {{2, 3, 9}, 3, {1, 1, 9}, TOKENS, "per_token.default", "rows of three dims"},
    {{6, 12}, 2, {1, 3}, GROUPS, "per_channel_group.default", "four groups in a row"},
    {{6, 10}, 2, {3, 5}, BLOCKS, NULL, "blocks that divide both dims"},
    {{4, 1, 6, 2}, 4, {4, 1, 3, 1}, BLOCKS, NULL, "four dims, two of them divided"},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static uint32_t numel(const uint32_t *dims, uint32_t rank) {
  uint32_t n = 1;
  for (uint32_t i = 0; i < rank; i++) n *= dims[i];
  return n;
}

static uint32_t n_blocks(const struct shape *s) {
  return numel(s->dims, s->rank) / numel(s->block, s->rank);
}

/* The block of element i. */
static uint32_t block_at(const struct shape *s, uint32_t i) {
  uint32_t at = 0, step = 1;
  for (uint32_t d = s->rank; d-- > 0;) {
    at += i % s->dims[d] / s->block[d] * step;
    step *= s->dims[d] / s->block[d];
    i /= s->dims[d];
  }
  return at;
}

static double quantized(float x, double scale, double zero, double low, double high, bool late) {
  const float inverse = (float)(1 / scale), z = (float)zero;
  const volatile float product = x * inverse;
  const float sum = late ? nearbyintf(product + z) : nearbyintf(product) + z;
  return isnan(x) ? 0 : fmin(fmax(sum, low), high);
}

/* Scales of float32 (or what float16 keeps of them) and zero points of both signs. */
static void parameters(const struct shape *s, enum vk_dtype scale_dtype, bool positive,
                       double *scales, double *zeros) {
  for (uint32_t b = 0; b < n_blocks(s); b++) {
    const float scale = 0.013f + 0.0171f * (float)b;
    scales[b] = scale_dtype == VK_FLOAT16 ? half_to_float(half_from_float(scale)) : scale;
    zeros[b] = positive ? 100 + b : (b * 37 + 3) % 41 - 20.0;
  }
}

struct dtypes {
  enum vk_dtype x, scale, zero, y;
};

static uint32_t partition(struct op_test *t, const struct shape *s) {
  if (s->form == GROUPS) return op_double(t, s->block[1]);
  if (s->form == BLOCKS) {
    int64_t block[4];
    for (uint32_t i = 0; i < s->rank; i++) block[i] = s->block[i];
    return op_ints(t, block, s->rank);
  }
  int64_t axis = 0;
  while (s->block[axis] != 1) axis++;
  return op_int(t, axis - (s->rank > 2 ? s->rank : 0));
}

/* A node of either direction; scale and zero are tensors or numbers. */
static void add_node(struct op_test *t, const struct shape *s, bool forward, uint32_t x,
                     uint32_t scale, uint32_t zero, double low, double high, uint32_t y) {
  char name[96];
  uint32_t args[10] = {x}, n = 1;
  const uint32_t none = op_null(t);
  if (s->form == BLOCKS) args[n++] = partition(t, s);
  args[n++] = scale;
  args[n++] = zero;
  if (s->form == CHANNELS) args[n++] = partition(t, s);
  if (s->form == BLOCKS) args[n++] = none;
  args[n++] = op_int(t, (int64_t)low);
  args[n++] = op_double(t, high);
  if (s->form != BLOCKS) args[n++] = none;
  if (s->form == GROUPS) args[n++] = partition(t, s);
  if (!forward) args[n++] = none;
  args[n++] = y;
  snprintf(name, sizeof name, "%s.%squantize_%s", s->name ? "quantized_decomposed" : "torchao",
           forward ? "" : "de", s->name ? s->name : "affine.default");
  op_node(t, name, args, n);
}

static double elements[512], scales[64], zeros[64], want[512];

static void fill(const struct shape *s, const struct dtypes *d, bool forward, uint32_t n) {
  static const double ends[] = {0, 1e30, -1e30, INFINITY, -INFINITY, NAN, 0.5, -0.0};
  uint64_t seed = 11;
  for (uint32_t i = 0; i < n; i++) {
    double *x = &elements[i];
    const double scale = scales[block_at(s, i)];
    if (!forward) {
      *x = (double)(test_random(&seed) % 256) - (d->x == VK_UINT8 ? 0 : 128);
      if (d->x == VK_INT32 && d->y == VK_FLOAT32) *x *= 70001; /* float16 ends at 65504 */
      continue;
    }
    /* half of them at ties, or as near as the dtype has numbers */
    *x = i % 2 ? ((int)(test_random(&seed) % 300) - 150 + 0.5) * scale
               : ((double)(test_random(&seed) % 4096) / 2048 - 1) * 130 * scale;
    if (i % 16 == 3) *x = ends[i / 16 % 8];
    if (d->x == VK_FLOAT16 && fabs(*x) == 1e30) *x = *x > 0 ? 65504 : -65504;
  }
  char rounded[4 * 512];
  test_to_dtype(d->x, elements, n, rounded);
  test_from_dtype(d->x, rounded, n, elements);
}

static void expect(const struct shape *s, const struct dtypes *d, bool forward, uint32_t n,
                   double low, double high) {
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t b = block_at(s, i);
    const bool late = s->form == TOKENS || s->form == GROUPS;
    if (forward)
      want[i] = quantized((float)elements[i], scales[b], zeros[b], low, high, late);
    else
      want[i] = ((float)elements[i] - (float)zeros[b]) * (float)scales[b];
  }
  if (!forward && d->y == VK_FLOAT16)
    for (uint32_t i = 0; i < n; i++) want[i] = half_to_float(half_from_float((float)want[i]));
}

/* The first dim is live: all of it, less, nothing, all again; not where it is divided or part of
 * what has one scale for each index. */
static void run(const struct shape *s, const struct dtypes *d, bool forward) {
  const double low = d->y == VK_UINT8 ? 0 : -128, high = d->y == VK_UINT8 ? 255 : 127;
  const uint32_t blocks = n_blocks(s);
  struct op_test t;
  sconce_error err = {0};
  parameters(s, d->scale, d->x == VK_UINT8 || d->y == VK_UINT8, scales, zeros);
  op_begin(&t);
  uint32_t x = op_input(&t, d->x, s->dims, s->rank), y = op_output(&t, d->y, s->dims, s->rank);
  uint32_t scale = op_double(&t, scales[0]), zero = op_double(&t, zeros[0]);
  if (s->form != NUMBERS) {
    scale = op_constant(&t, d->scale, DIMS(blocks), scales);
    zero = op_constant(&t, d->zero, DIMS(blocks), zeros);
  }
  add_node(&t, s, forward, x, scale, zero, low, high, y);
  CHECK_OK(op_load(&t, NULL, &err), err);
  const bool whole = s->form == NUMBERS || s->form == TENSORS;
  const uint32_t lives[] = {s->dims[0], 1, 0, s->dims[0]};
  for (int i = 0; i < 4 && !test_failed(); i++) {
    struct shape live = *s;
    if (!whole && i > 0) break;
    live.dims[0] = live.block[0] = lives[i];
    if (!whole) live = *s;
    const uint32_t n = numel(live.dims, live.rank);
    if (n) fill(&live, d, forward, n);
    if (n) expect(&live, d, forward, n, low, high);
    op_set(&t, x, live.dims, live.rank, elements);
    CHECK_OK(op_run(&t, &err), err);
    uint64_t got;
    const double *values = op_get(&t, y, &got);
    CHECK_EQ(got, n);
    if (!test_failed()) test_close(values, want, n, 0, 0, s->why);
  }
  op_end(&t);
}

static void every_form(void) {
  static const struct dtypes there[] = {
      {VK_FLOAT32, VK_FLOAT32, VK_INT32, VK_INT8},    {VK_FLOAT32, VK_FLOAT16, VK_INT8, VK_UINT8},
      {VK_FLOAT32, VK_FLOAT32, VK_FLOAT32, VK_INT32}, {VK_FLOAT16, VK_FLOAT32, VK_FLOAT16, VK_INT8},
      {VK_FLOAT16, VK_FLOAT16, VK_UINT8, VK_UINT8},   {VK_FLOAT16, VK_FLOAT32, VK_INT32, VK_INT32},
  };
  static const struct dtypes back[] = {
      {VK_INT8, VK_FLOAT32, VK_INT32, VK_FLOAT32},  {VK_INT8, VK_FLOAT16, VK_INT8, VK_FLOAT16},
      {VK_UINT8, VK_FLOAT32, VK_UINT8, VK_FLOAT32}, {VK_UINT8, VK_FLOAT32, VK_INT32, VK_FLOAT16},
      {VK_INT32, VK_FLOAT32, VK_INT32, VK_FLOAT32}, {VK_INT32, VK_FLOAT16, VK_INT32, VK_FLOAT16},
  };
  for (size_t i = 0; i < SHAPES; i++)
    for (int k = 0; k < 6 && !test_failed(); k++) {
      const bool negative = there[k].zero == VK_UINT8 && there[k].y != VK_UINT8;
      if (!negative) run(&shapes[i], &there[k], true);
      run(&shapes[i], &back[k], false);
    }
}

/* Rows come and go with the dims: scales are made anew by the caller, one for each row. */
static void live_tokens(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(5, 3)), s = op_input(&t, VK_FLOAT32, DIMS(5, 1));
  uint32_t z = op_input(&t, VK_INT32, DIMS(5, 1)), q = op_tensor(&t, VK_INT8, DIMS(5, 3));
  uint32_t y = op_output(&t, VK_FLOAT32, DIMS(5, 3));
  const struct shape tokens = {{5, 3}, 2, {1, 3}, TOKENS, "per_token.default", "live rows"};
  add_node(&t, &tokens, true, x, s, z, -128, 127, q);
  add_node(&t, &tokens, false, q, s, z, -128, 127, y);
  REQUIRE_OK(op_load(&t, NULL, &err), err);
  static const uint32_t lives[] = {5, 1, 0, 3};
  parameters(&tokens, VK_FLOAT32, false, scales, zeros);
  for (int i = 0; i < 4 && !test_failed(); i++) {
    const uint32_t m = lives[i];
    for (uint32_t k = 0; k < m * 3; k++) {
      elements[k] = (float)((k * 7 % 11 - 5.0) * 0.4 * scales[k / 3]);
      want[k] = quantized((float)elements[k], scales[k / 3], zeros[k / 3], -128, 127, true);
      want[k] = (float)(want[k] - zeros[k / 3]) * (float)scales[k / 3];
    }
    op_set(&t, x, DIMS(m, 3), elements);
    op_set(&t, s, DIMS(m, 1), scales);
    op_set(&t, z, DIMS(m, 1), zeros);
    CHECK_OK(op_run(&t, &err), err);
    uint64_t n;
    const double *got = op_get(&t, y, &n);
    CHECK_EQ(n, m * 3);
    if (!test_failed()) test_close(got, want, n, 0, 0, "there and back");
  }
  op_end(&t);
}

/* Symmetric weights: no zero points at all. */
static void without_zeros(void) {
  struct op_test t;
  sconce_error err = {0};
  const double q[] = {-128, 127, 3, 0, 5, -7}, s[] = {0.5, 0.25, 2};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_INT8, DIMS(3, 2)), y = op_output(&t, VK_FLOAT32, DIMS(3, 2));
  const struct shape rows = {{3, 2}, 2, {1, 2}, CHANNELS, "per_channel.default", ""};
  add_node(&t, &rows, false, x, op_constant(&t, VK_FLOAT32, DIMS(3), s), op_null(&t), -128, 127, y);
  REQUIRE_OK(op_load(&t, NULL, &err), err);
  op_set(&t, x, DIMS(3, 2), q);
  CHECK_OK(op_run(&t, &err), err);
  uint64_t n;
  const double by_hand[] = {-64, 63.5, 0.75, 0, 10, -14};
  test_close(op_get(&t, y, &n), by_hand, 6, 0, 0, "no zero points");
  op_end(&t);
}

/* More workgroups than one dimension takes: 65,535 of 256 elements and a few. */
static void folded(void) {
  enum { N = 65536 * 256 + 77 };
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(N)), q = op_tensor(&t, VK_INT8, DIMS(N));
  uint32_t y = op_output(&t, VK_FLOAT32, DIMS(N));
  const struct shape whole = {{N}, 1, {N}, NUMBERS, "per_tensor.default", "folded"};
  uint32_t scale = op_double(&t, 0.125), zero = op_int(&t, -5);
  add_node(&t, &whole, true, x, scale, zero, -128, 127, q);
  add_node(&t, &whole, false, q, scale, zero, -128, 127, y);
  double *values = malloc(N * sizeof *values);
  for (uint32_t i = 0; i < N; i++) values[i] = (int)(i % 200) - 100;
  for (uint32_t i = 0; i < N; i++) values[i] *= 0.125;
  CHECK_OK(op_load(&t, NULL, &err), err);
  if (!test_failed()) {
    op_set(&t, x, DIMS(N), values);
    CHECK_OK(op_run(&t, &err), err);
    uint64_t n;
    const double *got = op_get(&t, y, &n);
    if (!test_failed()) test_close(got, values, n, 0, 0, "folded");
  }
  free(values);
  op_end(&t);
}

static void refuses(void) {
  static const struct {
    enum vk_dtype x, y;
    double high;
    uint32_t scales;
    sconce_status status;
    const char *says;
  } cases[] = {
      {VK_INT32, VK_INT8, 127, 4, SCONCE_UNSUPPORTED, "int32 to int8"},
      {VK_FLOAT32, VK_INT8, 255, 4, SCONCE_BAD_GRAPH, "from -128 to 255 in a tensor of int8"},
      {VK_FLOAT32, VK_INT8, 127, 3, SCONCE_BAD_GRAPH, "scales float32 [3] for 4 blocks"},
  };
  const struct shape rows = {{4, 2}, 2, {1, 2}, CHANNELS, "per_channel.default", ""};
  const double ones[] = {1, 1, 1, 1};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t x = op_input(&t, cases[i].x, DIMS(4, 2)), y = op_output(&t, cases[i].y, DIMS(4, 2));
    uint32_t s = op_constant(&t, VK_FLOAT32, DIMS(cases[i].scales), ones);
    add_node(&t, &rows, true, x, s, op_null(&t), -128, cases[i].high, y);
    CHECK_FAILS(op_try(&t, &err), cases[i].status, err, cases[i].says);
    op_end(&t);
  }
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  const struct shape uneven = {{4, 3}, 2, {1, 2}, BLOCKS, NULL, ""};
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(4, 3)), y = op_output(&t, VK_INT8, DIMS(4, 3));
  add_node(&t, &uneven, true, x, op_constant(&t, VK_FLOAT32, DIMS(4), ones), op_null(&t), -128, 127,
           y);
  CHECK_FAILS(op_try(&t, &err), SCONCE_BAD_GRAPH, err, "blocks of 2 along dim 1 of 3");
  op_end(&t);
}

const struct test suite_quantize[] = {TEST(every_form), TEST(live_tokens), TEST(without_zeros),
                                      TEST(folded),     TEST(refuses),     {0}};
