/* Many parts: a sequence that a graph takes apart step by step. */
#include "op.h"

enum { STEPS = 100 };

/* Columns of (2, 100) one by one, and side by side again the other way round. */
static void one_by_one(void) {
  static const char *const names[] = {"aten.split_with_sizes_copy.default",
                                      "aten.split_copy.Tensor"};
  int64_t ones[STEPS];
  double values[2 * STEPS], want[2 * STEPS];
  for (int i = 0; i < STEPS; i++) ones[i] = 1;
  for (int i = 0; i < 2 * STEPS; i++) values[i] = i;
  for (int i = 0; i < 2 * STEPS; i++) want[i] = i / STEPS * STEPS + STEPS - 1 - i % STEPS;
  for (int k = 0; k < 2; k++) {
    struct op_test t;
    sconce_error err = {0};
    uint32_t parts[STEPS], back[STEPS];
    op_begin(&t);
    const uint32_t x = op_input(&t, VK_FLOAT32, DIMS(2, STEPS)),
                   y = op_output(&t, VK_FLOAT32, DIMS(2, STEPS));
    for (int i = 0; i < STEPS; i++)
      parts[i] = back[STEPS - 1 - i] = op_tensor(&t, VK_FLOAT32, DIMS(2, 1));
    const uint32_t sizes = k == 0 ? op_ints(&t, ones, STEPS) : op_int(&t, 1);
    op_node(&t, names[k], IDS(x, sizes, op_int(&t, 1), op_list(&t, parts, STEPS)));
    op_node(&t, "aten.cat.default", IDS(op_list(&t, back, STEPS), op_int(&t, 1), y));
    CHECK_OK(op_load(&t, NULL, &err), err);
    op_set(&t, x, DIMS(2, STEPS), values);
    CHECK_OK(op_run(&t, &err), err);
    uint64_t n;
    const double *got = op_get(&t, y, &n);
    if (!test_failed()) test_close(got, want, 2 * STEPS, 0, 0, names[k]);
    op_end(&t);
  }
}

const struct test suite_split[] = {TEST(one_by_one), {0}};
