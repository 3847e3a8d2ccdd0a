/* The last rows in front of a head, in place and apart. */
#include "op.h"

enum { ROWS = 9 };

struct bench {
  struct op_test t;
  uint32_t x, rows, y;
  uint32_t cols;
};

/* y = last rows of 2 x; `kept`: x is an output too, so that y needs memory of its own. */
static bool bench_open(struct bench *b, enum vk_dtype dtype, uint32_t cols, int64_t usual,
                       uint32_t most, bool kept, const char *force) {
  sconce_error err = {0};
  *b = (struct bench){.cols = cols};
  op_begin(&b->t);
  struct op_test *t = &b->t;
  b->x = op_input(t, dtype, DIMS(1, ROWS, cols));
  b->rows = op_symint(t);
  const uint32_t twice =
      kept ? op_output(t, dtype, DIMS(1, ROWS, cols)) : op_tensor(t, dtype, DIMS(1, ROWS, cols));
  const uint32_t last = op_tensor(t, dtype, DIMS(most, cols));
  b->y = op_output(t, dtype, DIMS(most, cols));
  op_node(t, "aten.add.Tensor", IDS(b->x, b->x, op_int(t, 1), twice));
  op_node(t, "sconce.last_rows.default", IDS(twice, b->rows, op_int(t, usual), last));
  op_node(t, "aten.add.Tensor", IDS(last, last, op_int(t, 1), b->y));
  const sconce_status status = op_load(t, force, &err);
  CHECK_OK(status, err);
  return status == SCONCE_OK;
}

static void run(struct bench *b, uint32_t live, uint32_t rows, uint32_t want,
                const double *values) {
  sconce_error err = {0};
  uint64_t n;
  op_set(&b->t, b->x, DIMS(1, live, b->cols), values);
  op_set_symint(&b->t, b->rows, rows);
  CHECK_OK(op_run(&b->t, &err), err);
  const double *got = op_get(&b->t, b->y, &n);
  CHECK_EQ(n, (uint64_t)want * b->cols);
  for (uint64_t i = 0; i < n && !test_failed(); i++) {
    const double x = values[(uint64_t)(live - want) * b->cols + i];
    if (got[i] != 4 * x)
      test_fail(__FILE__, __LINE__, "%u of %u rows: element %llu is %g, want %g", rows, live,
                (unsigned long long)i, got[i], 4 * x);
  }
}

static const struct {
  enum vk_dtype dtype;
  uint32_t cols;
  bool kept;
  const char *force, *why;
} kinds[] = {
    {VK_FLOAT32, 8, false, NULL, "quads in place"},
    {VK_FLOAT32, 300, false, "words", "words in place, more than a workgroup"},
    {VK_FLOAT32, 7, false, NULL, "rows of no quads"},
    {VK_FLOAT16, 10, false, NULL, "halves in words"},
    {VK_FLOAT32, 8, true, NULL, "x is seen from outside: a copy"},
};

/* Live rows, rows asked for, rows expected where the usual is all, and where it is one of 4. */
static const uint32_t calls[][4] = {{9, 0, 9, 1}, {9, 1, 1, 1}, {9, 4, 4, 4}, {9, 8, 8, 4},
                                    {5, 3, 3, 3}, {5, 5, 5, 4}, {1, 0, 1, 1}, {1, 6, 1, 1},
                                    {2, 1, 1, 1}, {9, 9, 9, 4}, {4, 4, 4, 4}};

static void rows_come_and_go(void) {
  for (size_t k = 0; k < 2 * sizeof kinds / sizeof *kinds && !test_failed(); k++) {
    struct bench b;
    const size_t kind = k / 2;
    double *values = test_values(kinds[kind].dtype, (uint64_t)ROWS * kinds[kind].cols, k);
    if (bench_open(&b, kinds[kind].dtype, kinds[kind].cols, k % 2, k % 2 ? 4 : ROWS,
                   kinds[kind].kept, kinds[kind].force))
      for (size_t i = 0; i < sizeof calls / sizeof *calls && !test_failed(); i++)
        run(&b, calls[i][0], calls[i][1], calls[i][2 + k % 2], values);
    free(values);
    op_end(&b.t);
  }
}

/* All rows in place are no dispatch, fewer are one. */
static void all_rows_cost_nothing(void) {
  struct bench b;
  double *values = test_values(VK_FLOAT32, ROWS * 8, 1);
  if (bench_open(&b, VK_FLOAT32, 8, 0, ROWS, false, NULL)) {
    run(&b, 3, 3, 3, values);
    CHECK_EQ(b.t.graph.nodes[1].n_records, 0);
    run(&b, 3, 2, 2, values);
    CHECK_EQ(b.t.graph.nodes[1].n_records, 1);
  }
  free(values);
  op_end(&b.t);
}

const struct test suite_last_rows[] = {TEST(rows_come_and_go), TEST(all_rows_cost_nothing), {0}};
