/* Choices: three operands that broadcast, for every element size. */
#include "op.h"

enum { LIVE = 5 };
static const struct {
  uint32_t c[3], a[3], b[3];
  const char *why;
} shapes[] = {
    {{LIVE, 3, 7}, {LIVE, 3, 7}, {LIVE, 3, 7}, "same"},
    {{1, 1, 7}, {LIVE, 3, 7}, {1, 1, 1}, "a mask for all rows, a scalar"},
    {{LIVE, 1, 1}, {1, 3, 1}, {1, 1, 6}, "all three repeat"},
};

static double at(const double *x, const uint32_t *dims, const uint32_t *c) {
  size_t index = 0;
  for (int i = 0; i < 3; i++) index = index * dims[i] + (dims[i] == 1 ? 0 : c[i]);
  return x[index];
}

static void run(size_t s, enum vk_dtype dtype) {
  static const uint32_t lives[] = {LIVE, 2, 0, 1, LIVE};
  const uint32_t *given[3] = {shapes[s].c, shapes[s].a, shapes[s].b};
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t ids[3], dims[3][3], y[3];
  for (int i = 0; i < 3; i++) {
    y[i] = 1;
    for (int k = 0; k < 3; k++) y[i] = given[k][i] > y[i] ? given[k][i] : y[i];
    ids[i] = op_input(&t, i ? dtype : VK_BOOL, given[i], 3);
  }
  uint32_t out = op_output(&t, dtype, y, 3);
  op_node(&t, "aten.where.self", IDS(ids[0], ids[1], ids[2], out));
  CHECK_OK(op_load(&t, NULL, &err), err);
  for (size_t l = 0; l < 5 && !test_failed(); l++) {
    double values[3][LIVE * 3 * 7], want[LIVE * 3 * 7];
    for (int k = 0; k < 3; k++) {
      for (int i = 0; i < 3; i++) dims[k][i] = given[k][i] == LIVE ? lives[l] : given[k][i];
      for (int i = 0; i < LIVE * 3 * 7; i++)
        values[k][i] = k == 0 ? i * 5 % 7 > 2 : i % 60 + 60 * (k - 1);
      op_set(&t, ids[k], dims[k], 3, values[k]);
    }
    CHECK_OK(op_run(&t, &err), err);
    uint32_t n = 0, c[3];
    for (c[0] = 0; c[0] < lives[l]; c[0]++)
      for (c[1] = 0; c[1] < y[1]; c[1]++)
        for (c[2] = 0; c[2] < y[2]; c[2]++)
          want[n++] = at(values[0], dims[0], c) != 0 ? at(values[1], dims[1], c)
                                                     : at(values[2], dims[2], c);
    uint64_t n_got;
    const double *got = op_get(&t, out, &n_got);
    CHECK_EQ(n_got, n);
    test_close(got, want, n, 0, 0, shapes[s].why);
  }
  op_end(&t);
}

static void every_shape(void) {
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
    run(s, VK_FLOAT32);
    run(s, VK_FLOAT16);
    run(s, VK_INT8);
  }
}

static void refuses(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t c = op_input(&t, VK_FLOAT32, DIMS(4)), a = op_input(&t, VK_FLOAT32, DIMS(4));
  op_node(&t, "aten.where.self", IDS(c, a, a, op_output(&t, VK_FLOAT32, DIMS(4))));
  CHECK_EQ(op_load(&t, NULL, &err), SCONCE_UNSUPPORTED);
  CHECK(strstr(err.text, "a condition of") != NULL);
  op_end(&t);
}

const struct test suite_where[] = {TEST(every_shape), TEST(refuses), {0}};
