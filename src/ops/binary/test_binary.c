/* Binary operators: shapes that broadcast, against plain loops in double. */
#include "op.h"

static const struct {
  uint32_t a[3], b[3], y[3];
  const char *why;
} cases[] = {
    {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, "one element"},
    {{2, 3, 5}, {2, 3, 5}, {2, 3, 5}, "same shape, odd"},
    {{2, 3, 5}, {1, 1, 5}, {2, 3, 5}, "a row for all"},
    {{2, 1, 5}, {1, 3, 1}, {2, 3, 5}, "both sides repeat"},
    {{70, 64, 64}, {1, 1, 1}, {70, 64, 64}, "more than 65,535 words, a scalar"},
};
enum { CASES = sizeof cases / sizeof *cases };

static double apply(const char *name, double a, double b, double alpha) {
  if (strstr(name, "add")) return a + alpha * b;
  if (strstr(name, "sub")) return a - alpha * b;
  return a * b;
}

static double at(const double *x, const uint32_t *dims, const uint32_t *c) {
  size_t index = 0;
  for (int i = 0; i < 3; i++) index = index * dims[i] + (dims[i] == 1 ? 0 : c[i]);
  return x[index];
}

static void run_case(const char *name, size_t i, double alpha) {
  const uint32_t *da = cases[i].a, *db = cases[i].b, *dy = cases[i].y;
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t a = op_input(&t, VK_FLOAT32, da, 3), b = op_input(&t, VK_FLOAT32, db, 3);
  uint32_t y = op_output(&t, VK_FLOAT32, dy, 3);
  if (strstr(name, "mul"))
    op_node(&t, name, IDS(a, b, y));
  else
    op_node(&t, name, IDS(a, b, op_double(&t, alpha), y));
  double *va = test_values(VK_FLOAT32, (uint64_t)da[0] * da[1] * da[2], 1);
  double *vb = test_values(VK_FLOAT32, (uint64_t)db[0] * db[1] * db[2], 2);
  CHECK_OK(op_load(&t, NULL, &err), err);
  if (!test_failed()) {
    op_set(&t, a, da, 3, va);
    op_set(&t, b, db, 3, vb);
    CHECK_OK(op_run(&t, &err), err);
    uint64_t n;
    const double *got = op_get(&t, y, &n);
    double *want = malloc((size_t)n * sizeof *want);
    for (uint32_t c0 = 0, k = 0; c0 < dy[0]; c0++)
      for (uint32_t c1 = 0; c1 < dy[1]; c1++)
        for (uint32_t c2 = 0; c2 < dy[2]; c2++, k++) {
          uint32_t c[3] = {c0, c1, c2};
          want[k] = apply(name, at(va, da, c), at(vb, db, c), alpha);
        }
    test_close(got, want, n, 1e-6, 1e-6, cases[i].why);
    free(want);
  }
  free(va);
  free(vb);
  op_end(&t);
}

static void every_shape(void) {
  for (size_t i = 0; i < CASES; i++) {
    run_case("aten.add.Tensor", i, 1);
    run_case("aten.add.Tensor", i, -2.5);
    run_case("aten.sub.Tensor", i, 3);
    run_case("aten.mul.Tensor", i, 1);
  }
}

const struct test suite_binary[] = {TEST(every_shape), {0}};
