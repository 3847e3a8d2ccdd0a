/* Sliding windows over every dim, apart and overlapping, and copies: element by element. */
#include "op.h"

enum { LIVE = 9 };
static const struct row {
  uint32_t x[3];
  int64_t dim;
  uint32_t size, step;
  const char *why;
} rows[] = {
    {{LIVE, 3, 7}, 2, 3, 2, "overlapping windows of the last dim"},
    {{2, LIVE, 4}, 1, 1, 3, "single elements of a live middle dim"},
    {{8, 3, LIVE}, -3, 4, 4, "windows side by side of the first dim"},
    {{LIVE, 2, 5}, 2, 5, 1, "one window"},
    {{LIVE, 2, 5}, 2, 0, 5, "windows without elements"},
};

static void run(const struct row *r, enum vk_dtype dtype) {
  static const uint32_t lives[] = {LIVE, 1, 4, LIVE};
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  const uint32_t d = (uint32_t)(r->dim < 0 ? r->dim + 3 : r->dim);
  uint32_t most = (r->x[d] - r->size) / r->step + 1;
  uint32_t out[] = {d == 0 ? most : r->x[0], d == 1 ? most : r->x[1], d == 2 ? most : r->x[2],
                    r->size};
  uint32_t x = op_input(&t, dtype, r->x, 3), y = op_output(&t, dtype, out, 4);
  op_node(&t, "aten.unfold_copy.default",
          IDS(x, op_int(&t, r->dim), op_int(&t, r->size), op_int(&t, r->step), y));
  CHECK_OK(op_load(&t, NULL, &err), err);
  for (int i = 0; i < 4 && !test_failed(); i++) {
    uint32_t dims[3], c[4];
    for (int k = 0; k < 3; k++) dims[k] = r->x[k] == LIVE ? lives[i] : r->x[k];
    if (dims[d] < r->size) continue;
    uint64_t n = (uint64_t)dims[0] * dims[1] * dims[2], got, e = 0;
    double values[600], want[2000];
    for (uint64_t k = 0; k < n; k++) values[k] = (double)(k % 120);
    uint32_t to[] = {dims[0], dims[1], dims[2]};
    to[d] = 0;
    while (to[d] * r->step + r->size <= dims[d]) to[d]++;
    for (c[0] = 0; c[0] < to[0]; c[0]++)
      for (c[1] = 0; c[1] < to[1]; c[1]++)
        for (c[2] = 0; c[2] < to[2]; c[2]++)
          for (c[3] = 0; c[3] < r->size; c[3]++) {
            uint32_t at[] = {c[0], c[1], c[2]};
            at[d] = c[d] * r->step + c[3];
            want[e++] = values[(at[0] * dims[1] + at[1]) * dims[2] + at[2]];
          }
    op_set(&t, x, dims, 3, values);
    CHECK_OK(op_run(&t, &err), err);
    const double *result = op_get(&t, y, &got);
    CHECK_EQ(got, e);
    if (got == e) test_close(result, want, e, 0, 0, r->why);
  }
  op_end(&t);
}

static void every_dim(void) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    run(&rows[i], VK_FLOAT32);
    run(&rows[i], VK_FLOAT16);
    run(&rows[i], VK_INT8);
  }
}

/* The source broadcast to the target's dims; what the target had does not matter. */
static void copies(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t self = op_input(&t, VK_FLOAT16, DIMS(3, 5)), source = op_input(&t, VK_FLOAT16, DIMS(5));
  uint32_t y = op_output(&t, VK_FLOAT16, DIMS(3, 5));
  op_node(&t, "aten.copy.default", IDS(self, source, op_bool(&t, false), y));
  CHECK_OK(op_load(&t, NULL, &err), err);
  double zeros[15] = {0}, values[] = {1, 2, 3, 4, 5}, want[15];
  for (int i = 0; i < 15; i++) want[i] = values[i % 5];
  for (uint32_t rows_live = 3; rows_live < 4; rows_live--) {
    op_set(&t, self, DIMS(rows_live, 5), zeros);
    op_set(&t, source, DIMS(5), values);
    CHECK_OK(op_run(&t, &err), err);
    uint64_t n;
    const double *got = op_get(&t, y, &n);
    CHECK_EQ(n, rows_live * 5);
    test_close(got, want, n, 0, 0, "copies");
  }
  op_set(&t, source, DIMS(4), values);
  CHECK_EQ(op_run(&t, &err), SCONCE_BAD_ARGUMENT);
  CHECK(strstr(err.text, "float16 [4] does not broadcast to float16 [0, 5]") != NULL);
  op_end(&t);
}

static void refuses(void) {
  struct op_test t;
  sconce_error err = {0};
  op_begin(&t);
  uint32_t x = op_input(&t, VK_FLOAT32, DIMS(4)), y = op_output(&t, VK_FLOAT32, DIMS(1, 5));
  op_node(&t, "aten.unfold_copy.default", IDS(x, op_int(&t, 0), op_int(&t, 5), op_int(&t, 1), y));
  CHECK_FAILS(op_try(&t, &err), SCONCE_BAD_ARGUMENT, err,
              "windows of 5 in steps of 1 in dim 0 of 1, which has 4");
  op_end(&t);
}

const struct test suite_unfold[] = {TEST(every_dim), TEST(copies), TEST(refuses), {0}};
