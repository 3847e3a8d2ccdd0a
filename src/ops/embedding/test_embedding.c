/* Embeddings: rows by index, from elements and from codes. */
#include "op.h"

enum { VOCAB = 13, TOKENS = 6 };
static const double tokens[TOKENS] = {3, 0, 12, 3, 7, 1};
static const uint32_t lives[] = {TOKENS, 1, 0, 3, TOKENS};
enum { LIVES = sizeof lives / sizeof *lives };

/* Runs all live counts of tokens; want has a row for every token. */
static void run_tokens(struct op_test *t, uint32_t indices, uint32_t y, uint32_t d,
                       const double *want, double rel, const char *why) {
  sconce_error err = {0};
  CHECK_OK(op_load(t, NULL, &err), err);
  for (int i = 0; i < LIVES && !test_failed(); i++) {
    op_set(t, indices, DIMS(1, lives[i]), tokens);
    CHECK_OK(op_run(t, &err), err);
    uint64_t n;
    const double *got = op_get(t, y, &n);
    CHECK_EQ(n, lives[i] * d);
    if (!test_failed()) test_close(got, want, n, 0, rel, why);
  }
}

static void elements_of(enum vk_dtype dtype, uint32_t d) {
  double *table = test_values(dtype, VOCAB * d, 1), *want = malloc(TOKENS * d * sizeof *want);
  const bool floats = dtype == VK_FLOAT32 || dtype == VK_FLOAT16;
  for (uint32_t i = 0; i < VOCAB * d && !floats; i++)
    table[i] = dtype == VK_BOOL ? i * 5 % 7 % 2 : dtype == VK_UINT8 ? i * 37 % 256 : i * 37 % 100;
  for (uint32_t i = 0; i < TOKENS * d; i++) want[i] = table[(uint32_t)tokens[i / d] * d + i % d];
  struct op_test t;
  op_begin(&t);
  uint32_t w = op_constant(&t, dtype, DIMS(VOCAB, d), table);
  uint32_t indices = op_input(&t, VK_INT32, DIMS(1, TOKENS));
  uint32_t y = op_output(&t, dtype, DIMS(1, TOKENS, d));
  op_node(&t, "aten.embedding.default",
          IDS(w, indices, op_double(&t, -1), op_bool(&t, false), op_bool(&t, false), y));
  run_tokens(&t, indices, y, d, want, 0, vk_dtype_name(dtype));
  op_end(&t);
  free(table);
  free(want);
}

static void elements(void) {
  static const uint32_t sizes[] = {1, 5, 8, 64};
  static const enum vk_dtype dtypes[] = {VK_FLOAT32, VK_FLOAT16, VK_INT32,
                                         VK_BOOL,    VK_UINT8,   VK_INT8};
  for (int i = 0; i < 4; i++)
    for (int k = 0; k < 6; k++) elements_of(dtypes[k], sizes[i]);
}

/* ---- codes -------------------------------------------------------------------------------------
 */

struct codes {
  const char *name;
  enum vk_dtype w, scales, y;
  bool low_first, zeros;
  uint32_t d, groups;
  const char *why;
};
static const struct codes codes[] = {
    {"et_vk.embedding_q4gsw.default", VK_UINT8, VK_FLOAT32, VK_FLOAT32, true, 0, 64, 2,
     "low first"},
    {"et_vk.embedding_q4gsw.default", VK_UINT8, VK_FLOAT32, VK_FLOAT32, false, 0, 64, 2,
     "high first"},
    {"et_vk.embedding_q4gsw.default", VK_UINT8, VK_FLOAT16, VK_FLOAT16, true, 0, 6, 1, "one group"},
    {"et_vk.embedding_q4gsw.default", VK_UINT8, VK_FLOAT16, VK_FLOAT16, false, 0, 10, 5, "halves"},
    {"et_vk.embedding_q4gsw.default", VK_UINT8, VK_FLOAT16, VK_FLOAT32, true, 0, 32, 4, "mixed"},
    {"quantized_decomposed::embedding_4bit.dtype_out", VK_UINT8, VK_FLOAT32, VK_FLOAT32, false,
     true, 12, 3, "zero points"},
    {"quantized_decomposed::embedding_byte.dtype_out", VK_INT8, VK_FLOAT32, VK_FLOAT32, false, true,
     9, 1, "signed bytes, odd"},
    {"quantized_decomposed::embedding_byte.out", VK_INT8, VK_FLOAT16, VK_FLOAT16, false, false, 7,
     1, "signed bytes, halves that two tokens share"},
    {"quantized_decomposed::embedding_byte.out", VK_UINT8, VK_FLOAT32, VK_FLOAT32, false, true, 8,
     2, "bytes"},
    {"quantized_decomposed::embedding_byte.out", VK_UINT8, VK_FLOAT16, VK_FLOAT16, false, true, 8,
     2, "bytes to halves"},
    {"quantized_decomposed::embedding_2bit.out", VK_UINT8, VK_FLOAT32, VK_FLOAT32, false, true, 24,
     3, "two bits"},
    {"quantized_decomposed::embedding_2bit.dtype_out", VK_UINT8, VK_FLOAT16, VK_FLOAT16, false,
     false, 20, 1, "two bits to halves"},
};

static double code_of(const struct codes *c, const uint8_t *row, uint32_t d) {
  if (strstr(c->name, "byte")) return c->w == VK_INT8 ? (int8_t)row[d] : row[d];
  if (strstr(c->name, "2bit")) return (row[d / 4] >> d % 4 * 2 & 3) - 2.0;
  bool high = c->low_first ? d & 1 : !(d & 1);
  return (high ? row[d / 2] >> 4 : row[d / 2] & 15) - 8.0;
}

static void run_codes(const struct codes *c, bool swapped) {
  const bool bytes = strstr(c->name, "byte"), two_bits = strstr(c->name, "2bit");
  const uint32_t stride = bytes ? c->d : c->d / (two_bits ? 4 : 2), group = c->d / c->groups;
  uint8_t w[VOCAB * 64];
  uint64_t seed = 4;
  for (size_t i = 0; i < sizeof w; i++) w[i] = (uint8_t)(test_random(&seed) >> 9);
  double *scales = test_values(c->scales, VOCAB * c->groups, 1);
  double *zeros = test_values(c->scales, VOCAB * c->groups, 2), want[TOKENS * 64];
  for (uint32_t i = 0; i < TOKENS * c->d; i++) {
    uint32_t row = (uint32_t)tokens[i / c->d], d = i % c->d, at = row * c->groups + d / group;
    want[i] = (code_of(c, w + row * stride, d) - (c->zeros ? zeros[at] : 0)) * scales[at];
  }
  struct op_test t;
  op_begin(&t);
  uint32_t iw = op_constant_bytes(&t, c->w, DIMS(VOCAB, stride), w);
  const uint32_t dims[] = {VOCAB, c->groups};
  uint32_t is = op_constant(&t, c->scales, dims, c->groups == 1 ? 1 : 2, scales);
  uint32_t indices = op_input(&t, VK_INT32, DIMS(1, TOKENS));
  uint32_t y = op_output(&t, c->y, DIMS(1, TOKENS, c->d));
  uint32_t iz =
      c->zeros ? op_constant(&t, c->scales, dims, c->groups == 1 ? 1 : 2, zeros) : op_null(&t);
  uint32_t low = op_int(&t, -128), high = op_int(&t, 127);
  if (strstr(c->name, "q4gsw"))
    op_node(&t, c->name,
            IDS(iw, is, swapped ? op_double(&t, group) : op_int(&t, group), indices,
                swapped ? op_int(&t, c->low_first) : op_bool(&t, c->low_first), y));
  else if (strstr(c->name, "dtype"))
    op_node(&t, c->name, IDS(iw, is, iz, low, high, indices, op_null(&t), y));
  else
    op_node(&t, c->name, IDS(iw, is, iz, low, high, indices, y));
  run_tokens(&t, indices, y, c->d, want, c->y == VK_FLOAT16 ? 1e-3 : 1e-6, c->why);
  op_end(&t);
  free(scales);
  free(zeros);
}

static void every_code(void) {
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) run_codes(&codes[i], i % 2);
}

/* ---- limits ------------------------------------------------------------------------------------
 */

/* Indices that the host knows are checked; the call fails and the graph stays usable. */
static void host_indices(void) {
  double table[VOCAB * 4];
  for (int i = 0; i < VOCAB * 4; i++) table[i] = i;
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t w = op_constant(&t, VK_FLOAT32, DIMS(VOCAB, 4), table);
  uint32_t indices = op_input(&t, VK_INT32, DIMS(3)), y = op_output(&t, VK_FLOAT32, DIMS(3, 4));
  op_node(&t, "aten.embedding.default",
          IDS(w, indices, op_int(&t, -1), op_bool(&t, false), op_bool(&t, false), y));
  REQUIRE_OK(op_load(&t, NULL, &err), err);
  const double high[] = {VOCAB}, low[] = {0, -1}, good[] = {2, 0, 1};
  op_set(&t, indices, DIMS(1), high);
  CHECK_FAILS(op_run(&t, &err), SCONCE_BAD_ARGUMENT, err, "token 13 of a vocabulary of 13");
  op_set(&t, indices, DIMS(2), low);
  CHECK_FAILS(op_run(&t, &err), SCONCE_BAD_ARGUMENT, err, "token -1 of");
  op_set(&t, indices, DIMS(3), good);
  CHECK_OK(op_run(&t, &err), err);
  uint64_t n;
  CHECK_NEAR(op_get(&t, y, &n)[0], 8, 0);
  op_end(&t);
}

/* Indices that only the GPU knows read as zeros where they are outside. */
static void gpu_indices(void) {
  double table[VOCAB * 4];
  for (int i = 0; i < VOCAB * 4; i++) table[i] = 1 + i;
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t w = op_constant(&t, VK_FLOAT32, DIMS(VOCAB, 4), table);
  uint32_t indices = op_input(&t, VK_INT32, DIMS(3)), y = op_output(&t, VK_FLOAT32, DIMS(3, 4));
  op_node(&t, "aten.embedding.default",
          IDS(w, indices, op_int(&t, -1), op_bool(&t, false), op_bool(&t, false), y));
  REQUIRE_OK(op_load(&t, NULL, &err), err);
  const double good[] = {1, 1, 1};
  op_set(&t, indices, DIMS(3), good);
  CHECK_OK(op_run(&t, &err), err);
  const int32_t bad[] = {-1, VOCAB, 2};
  sconce_status status = exec_write(&t.exec, indices, bad, sizeof bad, &err);
  CHECK_OK(status, err);
  CHECK_OK(graph_plan(&t.graph, &err), err);
  CHECK_OK(exec_begin(&t.exec, &(struct take){.token = NO_VALUE}, &err), err);
  bool done;
  CHECK_OK(exec_poll(&t.exec, true, &done, &err), err);
  uint64_t n;
  const double *got = op_get(&t, y, &n);
  CHECK_NEAR(got[0], 0, 0);
  CHECK_NEAR(got[7], 0, 0);
  CHECK_NEAR(got[8], 9, 0);
  op_end(&t);
}

/* A table larger than a binding may be: every dispatch writes its own tokens. */
static void large_table(void) {
  struct gpu *gpu = test_gpu();
  if (!gpu || gpu_info(gpu)->max_storage_binding > 1 << 20) {
    test_skip("bindings may be larger than 1 MiB");
    return;
  }
  enum { ROWS = 80001, D = 5 };
  double *table = test_values(VK_FLOAT32, ROWS * D, 1);
  for (int half = 0; half < 2; half++) {
    enum vk_dtype dtype = half ? VK_FLOAT16 : VK_FLOAT32;
    struct op_test t;
    sconce_error err = {0};
    double at[] = {80000, 0, 51199, 51200, 52428}, want[5 * D];
    op_begin(&t);
    uint32_t w = op_constant(&t, dtype, DIMS(half ? ROWS : ROWS, D), table);
    uint32_t indices = op_input(&t, VK_INT32, DIMS(5)), y = op_output(&t, dtype, DIMS(5, D));
    op_node(&t, "aten.embedding.default",
            IDS(w, indices, op_int(&t, -1), op_bool(&t, false), op_bool(&t, false), y));
    CHECK_OK(op_load(&t, NULL, &err), err);
    op_set(&t, indices, DIMS(5), at);
    CHECK_OK(op_run(&t, &err), err);
    for (int i = 0; i < 5 * D; i++) want[i] = table[(uint32_t)at[i / D] * D + (uint32_t)i % D];
    uint64_t n;
    const double *got = op_get(&t, y, &n);
    if (!test_failed()) test_close(got, want, 5 * D, 0, half ? 1e-3 : 0, "a table in parts");
    op_end(&t);
  }
  free(table);
}

static void errors(void) {
  static const struct {
    uint32_t scales[2];
    int64_t group;
    enum vk_dtype index;
    sconce_status status;
    const char *fragment;
  } cases[] = {
      {{4, 2}, 0, VK_INT32, SCONCE_BAD_GRAPH, "groups of 0"},
      {{4, 2}, 3, VK_INT32, SCONCE_BAD_GRAPH, "in groups of 3 for 8 columns"},
      {{3, 2}, 4, VK_INT32, SCONCE_BAD_GRAPH, "scales float32 [3, 2]"},
      {{4, 2}, 4, VK_FLOAT32, SCONCE_UNSUPPORTED, "indices of float32"},
  };
  double zeros[16] = {0};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct op_test t;
    sconce_error err = {0};
    op_begin(&t);
    uint32_t w = op_constant(&t, VK_UINT8, DIMS(4, 4), zeros);
    uint32_t s = op_constant(&t, VK_FLOAT32, cases[i].scales, 2, zeros);
    uint32_t indices = op_input(&t, cases[i].index, DIMS(2));
    uint32_t y = op_output(&t, VK_FLOAT32, DIMS(2, 8));
    op_node(&t, "et_vk.embedding_q4gsw.default",
            IDS(w, s, op_int(&t, cases[i].group), indices, op_bool(&t, true), y));
    CHECK_FAILS(op_try(&t, &err), cases[i].status, err, cases[i].fragment);
    op_end(&t);
  }
}

const struct test suite_embedding[] = {TEST(elements),
                                       TEST(every_code),
                                       TEST(host_indices),
                                       TEST(gpu_indices),
                                       TEST(large_table),
                                       TEST(errors),
                                       {0}};
