/* Chosen scales and zero points, to the last bit: the oracle takes PyTorch's steps in float32. */
#include "op.h"

#include "base/half.h"

enum rule { ASYMMETRIC, SYMMETRIC, UNCLIPPED, ROW_SYMMETRIC, ROW_ASYMMETRIC };
static const char *const mappings[] = {"ASYMMETRIC", "SYMMETRIC", "SYMMETRIC_NO_CLIPPING_ERR"};

struct range {
  double low, high, eps, zero;
};

static void chosen(enum rule rule, const struct range *r, float least, float most, bool half,
                   double *scale, double *zero) {
  const float span = (float)(r->high - r->low), low = (float)r->low, high = (float)r->high;
  const float eps = (float)r->eps, widest = fmaxf(-least, most);
  float s = fmaxf((most - least) / span, eps);
  if (rule == SYMMETRIC) s = fmaxf(widest / (span / 2), eps);
  if (rule == UNCLIPPED) s = fmaxf(fmaxf(low < 0 ? least / low : 0, most / high), eps);
  if (rule == ROW_SYMMETRIC) s = fmaxf(widest, eps) / high;
  if (half) s = half_to_float(half_from_float(s));
  *scale = s;
  *zero = r->zero;
  const float at_least = least / s, at_most = most / s;
  if (rule == ASYMMETRIC) *zero = fminf(fmaxf(low - nearbyintf(at_least), low), high);
  if (rule == ROW_ASYMMETRIC) {
    const float from = low + at_least + (high + at_most) > 0 ? low - at_least : high - at_most;
    *zero = nearbyintf(fminf(fmaxf(from, low), high));
  }
}

/* The blocks of a tensor one after another, each element of it in some order. */
struct shape {
  uint32_t dims[4], rank, block[4];
  const char *why;
};
static const struct shape shapes[] = {
    {{7, 5}, 2, {1, 5}, "rows of 5: the last word of zero points is not full"},
    {{2, 3, 70}, 3, {1, 1, 70}, "rows longer than a team"},
    {{6, 8}, 2, {6, 1}, "columns"},
    {{6, 10}, 2, {3, 5}, "blocks that divide both dims"},
    {{5, 12}, 2, {1, 3}, "groups"},
    {{3, 4, 2}, 3, {3, 4, 2}, "the whole tensor"},
    {{3, 9000}, 2, {1, 9000}, "rows in parts"},
    {{2, 3, 4, 2}, 4, {1, 3, 2, 2}, "four dims"},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static uint32_t numel(const uint32_t *dims, uint32_t rank) {
  uint32_t n = 1;
  for (uint32_t i = 0; i < rank; i++) n *= dims[i];
  return n;
}

static uint32_t block_at(const struct shape *s, uint32_t i) {
  uint32_t at = 0, step = 1;
  for (uint32_t d = s->rank; d-- > 0;) {
    at += i % s->dims[d] / s->block[d] * step;
    step *= s->dims[d] / s->block[d];
    i /= s->dims[d];
  }
  return at;
}

enum { MOST = 27000, BLOCKS = 64 };
static double elements[MOST], scales[BLOCKS], zeros[BLOCKS];

/* Blocks of all signs, of zeros, large, tiny. */
static void fill(const struct shape *s, enum vk_dtype dtype) {
  static const double most[] = {1, 0, 2.55, 0, 1e-9, 1000, 127, 0.3};
  static const double least[] = {-1.55, 0, 0, -3, -1e-9, -999, -128, -0.7};
  static uint16_t bytes[2 * MOST];
  const uint32_t n = numel(s->dims, s->rank);
  uint64_t seed = 5;
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t kind = block_at(s, i) % 8;
    const double t = (double)(test_random(&seed) % 1025) / 1024;
    elements[i] = least[kind] + t * (most[kind] - least[kind]);
  }
  test_to_dtype(dtype, elements, n, bytes);
  test_from_dtype(dtype, bytes, n, elements);
}

static void expect(const struct shape *s, enum rule rule, const struct range *r, bool half) {
  float least[BLOCKS] = {0}, most[BLOCKS] = {0};
  const uint32_t n = numel(s->dims, s->rank), blocks = n / numel(s->block, s->rank);
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t b = block_at(s, i);
    least[b] = fminf(least[b], (float)elements[i]);
    most[b] = fmaxf(most[b], (float)elements[i]);
  }
  for (uint32_t b = 0; b < blocks; b++)
    chosen(rule, r, least[b], most[b], half, &scales[b], &zeros[b]);
}

static void compare(struct op_test *t, uint32_t scale, uint32_t zero, uint32_t blocks,
                    const char *why) {
  uint64_t n;
  const double *got = op_get(t, scale, &n);
  CHECK_EQ(n, blocks);
  if (!test_failed()) test_close(got, scales, blocks, 0, 0, why);
  got = op_get(t, zero, &n);
  CHECK_EQ(n, blocks);
  if (!test_failed()) test_close(got, zeros, blocks, 0, 0, why);
}

struct dtypes {
  enum vk_dtype x, scale, zero;
};

/* The dims of the results: one for each block along each dim, or in a row. */
static void affine(const struct shape *s, enum rule rule, const struct dtypes *d, bool keeps) {
  struct range r = {-128, 127, 1.1920928955078125e-07, 0};
  if (d->zero == VK_UINT8) r = (struct range){0, 255, 1e-3, 128};
  if (d->zero == VK_FLOAT16) r = (struct range){-8, 7, 1e-6, 0};
  int64_t block[4];
  uint32_t dims[4], blocks = 1;
  for (uint32_t i = 0; i < s->rank; i++) {
    block[i] = s->block[i];
    dims[i] = s->dims[i] / s->block[i];
    blocks *= dims[i];
  }
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, d->x, s->dims, s->rank);
  uint32_t scale =
      keeps ? op_output(&t, d->scale, dims, s->rank) : op_output(&t, d->scale, DIMS(blocks));
  uint32_t zero =
      keeps ? op_output(&t, d->zero, dims, s->rank) : op_output(&t, d->zero, DIMS(blocks));
  const uint32_t none = op_null(&t), out = op_list(&t, IDS(scale, zero));
  op_node(&t, "torchao.choose_qparams_affine.default",
          IDS(x, op_text(&t, mappings[rule]), op_ints(&t, block, s->rank), none,
              op_int(&t, (int64_t)r.low), op_double(&t, r.high), op_double(&t, r.eps), none, none,
              op_bool(&t, keeps), out));
  CHECK_OK(op_load(&t, NULL, &err), err);
  if (!test_failed()) {
    fill(s, d->x);
    expect(s, rule, &r, d->scale == VK_FLOAT16);
    op_set(&t, x, s->dims, s->rank, elements);
    CHECK_OK(op_run(&t, &err), err);
    compare(&t, scale, zero, blocks, s->why);
  }
  op_end(&t);
}

static void every_block(void) {
  static const struct dtypes dtypes[] = {
      {VK_FLOAT32, VK_FLOAT32, VK_INT8},    {VK_FLOAT32, VK_FLOAT32, VK_INT32},
      {VK_FLOAT32, VK_FLOAT16, VK_UINT8},   {VK_FLOAT16, VK_FLOAT32, VK_FLOAT16},
      {VK_FLOAT16, VK_FLOAT16, VK_FLOAT32},
  };
  for (size_t i = 0; i < SHAPES; i++)
    for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes && !test_failed(); k++)
      for (int rule = 0; rule < 3; rule++)
        affine(&shapes[i], (enum rule)rule, &dtypes[k], (k + i) % 2);
}

/* The operators whose blocks need no telling; rows come and go. */
static void named(const char *name, enum rule rule, bool whole, const struct range *r) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(2, 3, 5)), none = op_null(&t);
  uint32_t scale =
      whole ? op_output(&t, VK_FLOAT32, DIMS(1)) : op_output(&t, VK_FLOAT32, DIMS(2, 3, 1));
  uint32_t zero = whole ? op_output(&t, VK_INT32, DIMS(1)) : op_output(&t, VK_INT32, DIMS(2, 3, 1));
  uint32_t out = op_list(&t, IDS(scale, zero));
  if (whole)
    op_node(&t, name,
            IDS(x, op_int(&t, (int64_t)r->low), op_double(&t, r->high), op_double(&t, r->eps), none,
                out));
  else
    op_node(&t, name, IDS(x, none, out));
  CHECK_OK(op_load(&t, NULL, &err), err);
  static const uint32_t lives[] = {2, 1, 2};
  for (int i = 0; i < 3 && !test_failed(); i++) {
    struct shape s = {{lives[i], 3, 5}, 3, {1, 1, 5}, name};
    if (whole) memcpy(s.block, s.dims, sizeof s.block);
    fill(&s, VK_FLOAT32);
    expect(&s, rule, r, false);
    op_set(&t, x, s.dims, 3, elements);
    CHECK_OK(op_run(&t, &err), err);
    compare(&t, scale, zero, whole ? 1 : 3 * lives[i], name);
  }
  op_end(&t);
}

static void every_name(void) {
  const struct range bytes = {-128, 127, 1e-5, 0}, unsigned_bytes = {0, 255, 1e-3, 128};
  const struct range rows = {-128, 127, 1.1920928955078125e-07, 0};
  named("quantized_decomposed.choose_qparams.tensor", ASYMMETRIC, true, &bytes);
  named("quantized_decomposed.choose_qparams.tensor", ASYMMETRIC, true, &unsigned_bytes);
  named("quantized_decomposed.choose_qparams_symmetric.tensor", SYMMETRIC, true, &bytes);
  named("quantized_decomposed.choose_qparams_symmetric.tensor", SYMMETRIC, true, &unsigned_bytes);
  named("quantized_decomposed.choose_qparams_per_token.default", ROW_SYMMETRIC, false, &bytes);
  named("quantized_decomposed.choose_qparams_per_token_asymmetric.default", ROW_ASYMMETRIC, false,
        &rows);
}

/* Numbers that PyTorch gives. */
static void by_hand(void) {
  static const double x[] = {-1, 0, 0.5, 1.55, 0, 0, 0, 0, 0, 1, 2.55, 0.3};
  static const double s[] = {0.01f, 1.1920928955078125e-07, 0.01f}, z[] = {-28, -128, -128};
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t in = op_input(&t, VK_FLOAT32, DIMS(3, 4)), scale = op_output(&t, VK_FLOAT32, DIMS(3));
  uint32_t zero = op_output(&t, VK_INT8, DIMS(3)), none = op_null(&t);
  op_node(&t, "torchao.choose_qparams_affine.default",
          IDS(in, op_text(&t, "MappingType.ASYMMETRIC"), op_ints(&t, INTS(1, 4)), none, none, none,
              op_double(&t, 1.1920928955078125e-07), none, none, op_list(&t, IDS(scale, zero))));
  REQUIRE_OK(op_load(&t, NULL, &err), err);
  op_set(&t, in, DIMS(3, 4), x);
  CHECK_OK(op_run(&t, &err), err);
  memcpy(scales, s, sizeof s);
  memcpy(zeros, z, sizeof z);
  compare(&t, scale, zero, 3, "by hand");
  op_end(&t);
}

static void refuses(void) {
  static const struct {
    const char *mapping;
    int64_t block;
    enum vk_dtype zero;
    sconce_status status;
    const char *says;
  } cases[] = {
      {"ASYMMETRIC", 3, VK_INT8, SCONCE_BAD_GRAPH, "blocks of 3 along dim 1 of 8"},
      {"LOGARITHMIC", 8, VK_INT8, SCONCE_UNSUPPORTED, "an unknown mapping"},
      {"SYMMETRIC", 8, VK_BOOL, SCONCE_UNSUPPORTED, "zero points of bool"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t x = op_input(&t, VK_FLOAT32, DIMS(2, 8)), s = op_output(&t, VK_FLOAT32, DIMS(2));
    uint32_t z = op_output(&t, cases[i].zero, DIMS(2)), none = op_null(&t);
    op_node(&t, "torchao.choose_qparams_affine.default",
            IDS(x, op_text(&t, cases[i].mapping), op_ints(&t, INTS(1, cases[i].block)), none, none,
                none, none, none, none, op_list(&t, IDS(s, z))));
    CHECK_FAILS(op_try(&t, &err), cases[i].status, err, cases[i].says);
    op_end(&t);
  }
}

const struct test suite_qparams[] = {
    TEST(every_block), TEST(every_name), TEST(by_hand), TEST(refuses), {0}};
