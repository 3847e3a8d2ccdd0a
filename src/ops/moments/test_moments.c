/* Variances over every set of dims, against two plain loops in double. */
#include "op.h"

enum { RANK = 3, LIVE = 13 };

static const struct {
  uint32_t x[RANK];
  unsigned dims; /* bits; 0: no list, all */
  bool keep;
  const char *why;
} shapes[] = {
    {{LIVE, 3, 70}, 4, false, "the last dim, more than a workgroup"},
    {{LIVE, 3, 7}, 4, true, "the last dim, kept, odd halves"},
    {{LIVE, 30, 7}, 2, false, "a middle dim"},
    {{30, LIVE, 9}, 5, true, "dims that are not neighbours"},
    {{LIVE, 4, 6}, 0, false, "all of them"},
    {{3, 18, 4096}, 2, false, "many results side by side"},
    {{1, 2, 40000}, 4, false, "lines in parts"},
    {{2, 9000, 35}, 2, true, "lines in parts, side by side"},
    {{2, 5000, 5}, 2, true, "a few of those"},
    {{1, 1000, 1000}, 6, true, "a million"},
    {{1, 5000, 1000}, 6, false, "five million"},
};
enum { SHAPES = sizeof shapes / sizeof *shapes, MILLIONS = SHAPES - 2, SIDE_BY_SIDE = 5 };

static const struct {
  const char *name;
  bool portable, both;
  double correction;
} operators[] = {
    {"aten.var.dim", false, false, 1},
    {"aten::var.out", true, false, 0},
    {"aten.var.correction", false, false, 0.5},
    {"aten::var.correction_out", true, false, 1},
    {"aten.var_mean.correction", false, true, 1},
    {"aten::var_mean.correction_out", true, true, 0},
};

struct case_ {
  struct op_test t;
  uint32_t x, y, mean;
  unsigned reduced;
  double correction;
  double *want, *want_mean;
};

/* Variance and mean by result. */
static uint64_t oracle(struct case_ *c, const double *x, const uint32_t *dims) {
  uint64_t n = 1, numel = (uint64_t)dims[0] * dims[1] * dims[2];
  for (int i = 0; i < RANK; i++)
    if (!(c->reduced >> i & 1)) n *= dims[i];
  double count = n ? (double)numel / (double)n : 0;
  c->want = calloc((size_t)n + 1, sizeof *c->want);
  c->want_mean = calloc((size_t)n + 1, sizeof *c->want_mean);
  for (int pass = 0; pass < 2; pass++) {
    for (uint64_t e = 0; e < numel; e++) {
      const uint32_t at[RANK] = {(uint32_t)(e / dims[2] / dims[1]),
                                 (uint32_t)(e / dims[2] % dims[1]), (uint32_t)(e % dims[2])};
      uint64_t result = 0;
      for (int i = 0; i < RANK; i++)
        if (!(c->reduced >> i & 1)) result = result * dims[i] + at[i];
      if (pass == 0)
        c->want_mean[result] += x[e] / count;
      else
        c->want[result] += pow(x[e] - c->want_mean[result], 2);
    }
  }
  for (uint64_t i = 0; i < n; i++) {
    if (count == 0) c->want_mean[i] = NAN;
    c->want[i] /= count > c->correction ? count - c->correction : 0;
  }
  return n;
}

static void call(struct case_ *c, size_t s, enum vk_dtype dtype, uint32_t live) {
  sconce_error err = {0};
  uint32_t dims[RANK];
  for (int i = 0; i < RANK; i++) dims[i] = shapes[s].x[i] == LIVE ? live : shapes[s].x[i];
  uint64_t numel = (uint64_t)dims[0] * dims[1] * dims[2], got;
  double *x = test_values(dtype, numel, live + 1);
  for (uint64_t i = 0; i < numel; i++) x[i] = 3 + round(x[i] * 64) / 64;
  uint64_t n = oracle(c, x, dims);
  op_set(&c->t, c->x, dims, RANK, x);
  CHECK_OK(op_run(&c->t, &err), err);
  const double rel = dtype == VK_FLOAT16 ? 1e-3 : 2e-6;
  test_close(op_get(&c->t, c->y, &got), c->want, n, 0, rel, shapes[s].why);
  CHECK_EQ(got, n);
  if (c->mean) test_close(op_get(&c->t, c->mean, &got), c->want_mean, n, 0, rel, "mean");
  free(x);
  free(c->want);
  free(c->want_mean);
}

static void run(size_t o, size_t s, enum vk_dtype dtype, const char *force) {
  struct case_ c = {.reduced = shapes[s].dims ? shapes[s].dims : 7,
                    .correction = operators[o].correction};
  struct op_test *t = &c.t;
  sconce_error err = {0};
  uint32_t out[RANK], rank = 0, n = 0, args[8];
  int64_t list[RANK];
  op_begin(t);
  for (int i = 0; i < RANK; i++) {
    bool gone = c.reduced >> i & 1;
    if (gone) list[n++] = i % 2 ? i : i - RANK;
    if (!gone || shapes[s].keep) out[rank++] = gone ? 1 : shapes[s].x[i];
  }
  uint32_t dims = shapes[s].dims ? op_ints(t, list, n) : op_null(t);
  args[0] = c.x = op_input(t, dtype, shapes[s].x, RANK);
  c.y = op_output(t, dtype, out, rank);
  if (operators[o].both) c.mean = op_output(t, dtype, out, rank);
  args[1] = dims;
  args[2] = c.correction == 1 ? op_null(t) : op_double(t, c.correction);
  args[3] = op_bool(t, shapes[s].keep);
  n = 4;
  if (operators[o].portable && c.mean) args[n++] = c.y, args[n++] = c.mean;
  args[n++] = c.mean ? op_list(t, IDS(c.y, c.mean)) : c.y;
  op_node(t, operators[o].name, args, n);
  const uint64_t numel = (uint64_t)shapes[s].x[0] * shapes[s].x[1] * shapes[s].x[2];
  if (numel * vk_dtype_size(dtype) > t->graph.caps.max_storage_binding) { /* it is not split */
    CHECK_FAILS(op_try(t, &err), SCONCE_UNSUPPORTED, err, "the device binds at most");
    op_end(t);
    return;
  }
  CHECK_OK(op_load(t, force, &err), err);
  const uint32_t lives[] = {LIVE, 2, 1, 0, LIVE};
  const bool large = shapes[s].x[2] >= 4096 || shapes[s].x[1] >= 5000; /* once is enough */
  for (int i = 0; i < (large ? 1 : 5) && !test_failed(); i++) call(&c, s, dtype, lives[i]);
  op_end(t);
}

static void every_set(void) {
  for (size_t o = 0; o < sizeof operators / sizeof *operators; o++)
    for (size_t s = 0; s < MILLIONS; s++) run(o, s, (o + s) % 2 ? VK_FLOAT16 : VK_FLOAT32, NULL);
}

static void every_row(void) {
  for (size_t s = 0; s < MILLIONS; s++) {
    if (s < SIDE_BY_SIDE) run(4, s, VK_FLOAT32, "group_f32");
    if (s < SIDE_BY_SIDE) run(4, s, VK_FLOAT16, "group_f16");
    run(5, s, VK_FLOAT16, NULL);
    run(5, s, VK_FLOAT32, NULL);
  }
}

static void millions(void) {
  for (size_t s = MILLIONS; s < (test_gpu_is_slow() ? MILLIONS + 1 : SHAPES); s++)
    run(4, s, VK_FLOAT32, NULL);
}

const struct test suite_moments[] = {TEST(every_set), TEST(every_row), TEST(millions), {0}};
