/* Attention that a graph spells out, as exporters write it: fused and as the nodes came, against
 * plain loops in double; and what the pass must leave. */
#include "op.h"

struct form {
  uint32_t heads, seq, dim;
  bool packed;    /* q, k and v are thirds of one tensor (1, seq, 3, heads · dim) */
  bool masked;    /* something is added to the scores */
  bool guarded;   /* queries that may look nowhere give 0, as PyTorch writes it out */
  bool by_tokens; /* heads change places with tokens, in front and behind */
  bool late;      /* the factor stands behind the first product, not on both sides of it */
  enum vk_dtype dtype;
  const char *why;
};
static const struct form forms[] = {
    {2, 5, 8, false, true, true, true, false, VK_FLOAT32, "an encoder with a mask"},
    {3, 7, 4, true, false, true, true, false, VK_FLOAT32, "a vision model's packed heads"},
    {2, 37, 16, false, false, false, true, true, VK_FLOAT32, "no guard, the factor behind"},
    {2, 6, 8, false, true, true, false, true, VK_FLOAT32, "heads first"},
    {2, 6, 8, false, true, false, false, true, VK_FLOAT32, "a mask and no guard: NaN"},
    {1, 9, 6, false, false, true, true, false, VK_FLOAT32, "one head, of no whole quads"},
    {4, 33, 32, false, true, true, true, false, VK_FLOAT16, "16-bit floats"},
};
enum { FORMS = sizeof forms / sizeof *forms };

/* Only their order in memory differs. */
enum miss { HIT, READER, OTHER_DIM };

struct ids {
  uint32_t x[3], mask, y;
};

#define TENSOR(...) op_tensor(t, f->dtype, DIMS(__VA_ARGS__))

/* Thirds of (1, seq, 3, heads · dim), by way of (3, seq, 1, heads · dim). */
static void unpack(struct op_test *t, const struct form *f, uint32_t packed, uint32_t part[3]) {
  const uint32_t wide = f->heads * f->dim, turned = TENSOR(3, f->seq, 1, wide);
  op_node(t, "aten.permute_copy.default", IDS(packed, op_ints(t, INTS(2, 1, 0, 3)), turned));
  for (int i = 0; i < 3; i++) {
    part[i] = TENSOR(f->seq, 1, wide);
    op_node(t, "aten.select_copy.int", IDS(turned, op_int(t, 0), op_int(t, i), part[i]));
  }
}

/* (1, heads, seq, dim) of what may lie by tokens; `turned`: (1, heads, dim, seq). */
static uint32_t by_head(struct op_test *t, const struct form *f, uint32_t x, bool turned) {
  uint32_t heads = x;
  if (f->by_tokens) {
    const uint32_t four = TENSOR(1, f->seq, f->heads, f->dim);
    heads = TENSOR(1, f->heads, f->seq, f->dim);
    op_node(t, "aten.view_copy.default", IDS(x, op_ints(t, INTS(1, -1, f->heads, f->dim)), four));
    op_node(t, "aten.permute_copy.default", IDS(four, op_ints(t, INTS(0, 2, 1, 3)), heads));
  }
  if (!turned) return heads;
  const uint32_t y = TENSOR(1, f->heads, f->dim, f->seq);
  op_node(t, "aten.transpose_copy.int", IDS(heads, op_int(t, -1), op_int(t, -2), y));
  return y;
}

static double factor_of(const struct form *f) { return f->late ? 0.25 : 0.5 * 0.5; }

static uint32_t scaled(struct op_test *t, const struct form *f, uint32_t x, uint32_t y, bool now) {
  if (!now) return x;
  op_node(t, "aten.mul.Scalar", IDS(x, op_double(t, f->late ? 0.25 : 0.5), y));
  return y;
}

/* Zeros where a query has no score above -inf. */
static uint32_t guard(struct op_test *t, const struct form *f, uint32_t scores, uint32_t weights) {
  const uint32_t h = f->heads, s = f->seq, none = op_null(t);
  const uint32_t never = op_tensor(t, VK_BOOL, DIMS(1, h, s, s));
  const uint32_t seen = op_tensor(t, VK_BOOL, DIMS(1, h, s, s));
  const uint32_t any = op_tensor(t, VK_BOOL, DIMS(1, h, s, 1));
  const uint32_t nowhere = op_tensor(t, VK_BOOL, DIMS(1, h, s, 1));
  const uint32_t zeros = TENSOR(1, h, s, s), y = TENSOR(1, h, s, s);
  op_node(t, "aten.eq.Scalar", IDS(scores, op_double(t, -INFINITY), never));
  op_node(t, "aten.logical_not.default", IDS(never, seen));
  op_node(t, "aten.any.dim", IDS(seen, op_int(t, -1), op_bool(t, true), any));
  op_node(t, "aten.logical_not.default", IDS(any, nowhere));
  op_node(t, "aten::full_like.out", IDS(weights, op_double(t, 0), none, zeros));
  op_node(t, "aten.where.self", IDS(nowhere, zeros, weights, y));
  return y;
}

static uint32_t flat(struct op_test *t, const struct form *f, uint32_t x, uint32_t a, uint32_t b) {
  const uint32_t y = TENSOR(f->heads, a, b);
  op_node(t, "aten.squeeze_copy.dims", IDS(x, op_ints(t, INTS(0)), y));
  return y;
}

static struct ids build(struct op_test *t, const struct form *f, enum miss miss) {
  const uint32_t h = f->heads, s = f->seq, d = f->dim;
  struct ids i = {.mask = NO_VALUE};
  uint32_t part[3];
  if (f->packed) {
    i.x[0] = op_input(t, f->dtype, DIMS(1, s, 3, h * d));
    unpack(t, f, i.x[0], part);
  } else {
    for (int k = 0; k < 3; k++)
      part[k] = i.x[k] = f->by_tokens ? op_input(t, f->dtype, DIMS(1, s, h * d))
                                      : op_input(t, f->dtype, DIMS(1, h, s, d));
  }
  if (f->masked) i.mask = op_input(t, f->dtype, DIMS(1, 1, s, s));
  const uint32_t q = scaled(t, f, by_head(t, f, part[0], false), TENSOR(1, h, s, d), !f->late);
  const uint32_t k = scaled(t, f, by_head(t, f, part[1], true), TENSOR(1, h, d, s), !f->late);
  const uint32_t products = TENSOR(h, s, s), whole = TENSOR(1, h, s, s);
  op_node(t, "aten.bmm.default", IDS(flat(t, f, q, s, d), flat(t, f, k, d, s), products));
  op_node(t, "aten.view_copy.default", IDS(products, op_ints(t, INTS(1, h, s, s)), whole));
  uint32_t scores = scaled(t, f, whole, TENSOR(1, h, s, s), f->late);
  if (f->masked) {
    const uint32_t sum = TENSOR(1, h, s, s);
    op_node(t, "aten.add.Tensor", IDS(scores, i.mask, op_int(t, 1), sum));
    scores = sum;
  }
  uint32_t weights = miss == READER ? op_output(t, f->dtype, DIMS(1, h, s, s)) : TENSOR(1, h, s, s);
  op_node(t, "aten._softmax.default",
          IDS(scores, op_int(t, miss == OTHER_DIM ? 2 : -1), op_bool(t, false), weights));
  if (f->guarded) weights = guard(t, f, scores, weights);
  const uint32_t v = flat(t, f, by_head(t, f, part[2], false), s, d);
  const uint32_t y = TENSOR(h, s, d);
  op_node(t, "aten.bmm.default", IDS(flat(t, f, weights, s, s), v, y));
  if (!f->by_tokens) {
    i.y = op_output(t, f->dtype, DIMS(1, h, s, d));
    op_node(t, "aten.unsqueeze_copy.default", IDS(y, op_int(t, 0), i.y));
    return i;
  }
  const uint32_t four = TENSOR(1, h, s, d), turned = TENSOR(1, s, h, d);
  i.y = op_output(t, f->dtype, DIMS(1, s, h * d));
  op_node(t, "aten.unsqueeze_copy.default", IDS(y, op_int(t, 0), four));
  op_node(t, "aten.permute_copy.default", IDS(four, op_ints(t, INTS(0, 2, 1, 3)), turned));
  op_node(t, "aten.view_copy.default", IDS(turned, op_ints(t, INTS(1, -1, h * d)), i.y));
  return i;
}

/* Element (token, head, column) of operand k. */
static double at(const struct form *f, const double *const x[3], int k, uint32_t s, uint32_t h,
                 uint32_t d) {
  if (f->packed) return x[0][((s * 3 + (uint32_t)k) * f->heads + h) * f->dim + d];
  return x[k][((f->by_tokens ? s * f->heads + h : h * f->seq + s)) * f->dim + d];
}

static void expect(const struct form *f, const double *const x[3], const double *mask,
                   double *want) {
  const uint32_t n = f->seq;
  double *scores = malloc(n * sizeof *scores);
  for (uint32_t h = 0; h < f->heads; h++)
    for (uint32_t i = 0; i < n; i++) {
      double most = -INFINITY, sum = 0;
      for (uint32_t j = 0; j < n; j++) {
        scores[j] = 0;
        for (uint32_t d = 0; d < f->dim; d++)
          scores[j] += at(f, x, 0, i, h, d) * at(f, x, 1, j, h, d);
        scores[j] = scores[j] * factor_of(f) + (mask ? mask[i * n + j] : 0);
        most = fmax(most, scores[j]);
      }
      for (uint32_t j = 0; j < n; j++) {
        scores[j] = most == -INFINITY ? 0 : exp(scores[j] - most);
        sum += scores[j];
      }
      for (uint32_t d = 0; d < f->dim; d++) {
        double y = 0;
        for (uint32_t j = 0; j < n; j++) y += scores[j] * at(f, x, 2, j, h, d);
        if (sum == 0) y = f->guarded ? 0 : NAN;
        want[((f->by_tokens ? i * f->heads + h : h * n + i)) * f->dim + d] = sum == 0 ? y : y / sum;
      }
    }
  free(scores);
}

/* Query 1 may look nowhere, the others at themselves and what is in front. */
static double *mask_values(const struct form *f) {
  double *mask = malloc((size_t)f->seq * f->seq * sizeof *mask);
  for (uint32_t i = 0; i < f->seq; i++)
    for (uint32_t j = 0; j < f->seq; j++)
      mask[i * f->seq + j] = i == 1 || j > i ? -INFINITY : j % 2 ? 0.5 : 0;
  return mask;
}

static uint32_t nodes_called(const struct op_test *t, const char *name) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < t->graph.n_nodes; i++)
    n += strcmp(t->graph.nodes[i].op->name, name) == 0;
  return n;
}

static void run(const struct form *f, const char *passes_off) {
  const uint64_t numel = (uint64_t)f->heads * f->seq * f->dim;
  double *values[3], *mask = mask_values(f), *want = malloc(numel * sizeof *want);
  for (uint64_t k = 0; k < 3; k++) values[k] = test_values(f->dtype, (k ? 1 : 3) * numel, k + 1);
  const double *const x[3] = {values[0], values[1], values[2]};
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  t.graph.passes_off = passes_off;
  const struct ids i = build(&t, f, HIT);
  CHECK_OK(op_load(&t, NULL, &err), err);
  CHECK_EQ(nodes_called(&t, "sconce.attention"), passes_off ? 0 : 1);
  CHECK_EQ(nodes_called(&t, "aten.bmm.default"), passes_off ? 2 : 0);
  if (f->packed) op_set(&t, i.x[0], DIMS(1, f->seq, 3, f->heads * f->dim), x[0]);
  for (int k = 0; k < 3 && !f->packed; k++) {
    if (f->by_tokens) op_set(&t, i.x[k], DIMS(1, f->seq, f->heads * f->dim), x[k]);
    if (!f->by_tokens) op_set(&t, i.x[k], DIMS(1, f->heads, f->seq, f->dim), x[k]);
  }
  if (f->masked) op_set(&t, i.mask, DIMS(1, 1, f->seq, f->seq), mask);
  CHECK_OK(op_run(&t, &err), err);
  expect(f, x, f->masked ? mask : NULL, want);
  uint64_t n;
  const double *got = op_get(&t, i.y, &n);
  CHECK_EQ(n, numel);
  if (!test_failed()) test_close(got, want, n, f->dtype == VK_FLOAT16 ? 4e-3 : 5e-6, 1e-5, f->why);
  op_end(&t);
  for (int k = 0; k < 3; k++) free(values[k]);
  free(mask);
  free(want);
}

static void every_form(void) {
  for (size_t i = 0; i < FORMS && !test_failed(); i++) {
    run(&forms[i], NULL);
    run(&forms[i], "attention");
  }
}

/* Weights that are seen from outside, a softmax over queries. */
static void near_misses(void) {
  for (enum miss miss = READER; miss <= OTHER_DIM && !test_failed(); miss++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    build(&t, &forms[0], miss);
    CHECK_OK(op_load(&t, NULL, &err), err);
    CHECK_EQ(nodes_called(&t, "sconce.attention"), 0);
    op_end(&t);
  }
}

const struct test suite_chain[] = {TEST(every_form), TEST(near_misses), {0}};
