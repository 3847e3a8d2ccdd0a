/* What the pass `same` makes a view, and what it must leave. */
#include "op.h"

enum { N = 8 };
enum how { EQUAL, OTHER_NUMBER, OTHER_INPUT, BOTH_SEEN, HOWS };

/* y = (x + a) · (x + b), the second sum written as a node of its own. */
static void run(enum how how, const char *passes_off) {
  double *x = test_values(VK_FLOAT32, N, 1), *z = test_values(VK_FLOAT32, N, 2), want[N];
  const double b = how == OTHER_NUMBER ? 3 : 2;
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  t.graph.passes_off = passes_off;
  const uint32_t ix = op_input(&t, VK_FLOAT32, DIMS(N)), iz = op_input(&t, VK_FLOAT32, DIMS(N));
  const bool seen = how == BOTH_SEEN;
  const uint32_t first = (seen ? op_output : op_tensor)(&t, VK_FLOAT32, DIMS(N));
  const uint32_t second = (seen ? op_output : op_tensor)(&t, VK_FLOAT32, DIMS(N));
  const uint32_t iy = op_output(&t, VK_FLOAT32, DIMS(N));
  op_node(&t, "aten.leaky_relu.default", IDS(ix, op_double(&t, 2), first));
  op_node(&t, "aten.leaky_relu.default",
          IDS(how == OTHER_INPUT ? iz : ix, op_double(&t, b), second));
  op_node(&t, "aten.mul.Tensor", IDS(first, second, iy));
  REQUIRE_OK(op_load(&t, NULL, &err), err);
  op_set(&t, ix, DIMS(N), x);
  op_set(&t, iz, DIMS(N), z);
  CHECK_OK(op_run(&t, &err), err);
  CHECK_EQ(t.graph.n_nodes, 3);
  CHECK_EQ(t.graph.nodes[1].n_records, how == EQUAL && !passes_off ? 0 : 1);
  for (int i = 0; i < N; i++) {
    const double v = how == OTHER_INPUT ? z[i] : x[i];
    want[i] = (x[i] < 0 ? 2 * x[i] : x[i]) * (v < 0 ? b * v : v);
  }
  uint64_t n;
  const double *got = op_get(&t, iy, &n);
  if (!test_failed()) test_close(got, want, n, 1e-6, 1e-6, "a product");
  op_end(&t);
  free(x);
  free(z);
}

static void computed_once(void) {
  for (enum how how = EQUAL; how < HOWS && !test_failed(); how++) {
    run(how, NULL);
    run(how, "same");
  }
}

const struct test suite_same[] = {TEST(computed_once), {0}};
