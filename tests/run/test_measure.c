/* Kernel benches: every row that fits is timed and checked, and a wrong one is told. */
#include "gpu.h"

#include "bench/kernels.h"
#include "run/device.h"

enum { SEEN_MAX = 64 };

struct seen {
  uint32_t cases, rows, wrong, chosen;
  char labels[SEEN_MAX][64];
  uint64_t rotation, bytes;
  sconce_error why;
};

static void see(void *user, const sconce_kernel_case *c) {
  struct seen *s = user;
  s->cases++;
  s->rotation = c->rotation;
  s->bytes = c->bytes;
  s->why = c->why;
  CHECK(c->bytes > 0 && c->flops > 0 && c->n_rows > 0);
  for (uint32_t i = 0; i < c->n_rows && s->rows < SEEN_MAX; i++, s->rows++) {
    const sconce_kernel_row *r = &c->rows[i];
    if (!(r->us > 0 && r->dispatches > 0 && r->runs > 0))
      test_fail(__FILE__, __LINE__, "%s, %s: %g us, %u dispatches, %u runs", c->name, r->label,
                r->us, r->dispatches, r->runs);
    if (r->wrong != !(r->error <= c->tolerance))
      test_fail(__FILE__, __LINE__, "%s, %s: an error of %g", c->name, r->label, r->error);
    s->wrong += r->wrong;
    s->chosen += r->chosen;
    snprintf(s->labels[s->rows], sizeof s->labels[0], "%s", r->label);
  }
}

/* "matvec/": any row of that shader. */
static bool saw(const struct seen *s, const char *label) {
  const size_t size = strlen(label);
  const bool any = size && label[size - 1] == '/';
  for (uint32_t i = 0; i < s->rows; i++)
    if (any ? !strncmp(s->labels[i], label, size) : !strcmp(s->labels[i], label)) return true;
  return false;
}

static sconce_device *open_device(void) {
  sconce_device *device = NULL;
  sconce_error err = {0};
  CHECK_OK(sconce_device_open(&device, NULL, &err), err);
  return device;
}

static void close_device(sconce_device *device) {
  if (!device) return;
  CHECK_EQ(gpu_stats(device->gpu)->buffers, 0);
  CHECK_EQ(gpu_stats(device->gpu)->groups, 0);
  test_note_kernels(device->gpu);
  sconce_device_close(device);
}

static const struct {
  const char *filter;
  uint32_t cases;
  bool whole;          /* of the full list */
  const char *rows[6]; /* with a leading ~: where the device has subgroups */
} grid[] = {
    {"linear_q4gsw 288x288 m=1",
     1,
     false,
     {"q4_gemv/", "q4_gemm/narrow16_f32", "q4_plain/plain_f32"}},
    {"dq8ca 288x288 m=64", 1, false, {"q4_gemm/narrow64_f32", "q4_plain/plain_f32"}},
    {"aten.linear 288x288 m=1",
     1,
     false,
     {"~matvec/matvec64_f32", "~matvec/matvec16_f32", "matvec/matvec64_memory_f32",
      "matvec/matvec16_memory_f32", "matmul/matmul32_nk_f32", "matmul_plain/plain_f32"}},
    {"sdpa 6/6x48 m=1 depth=16", /* alone, and with the rotation */
     2,
     false,
     {"attn_split/split_f32", "attn_tile/tile64_32_f32", "attn_tile/tile128_32_f32",
      "attn_tile/tile256_f32", "attn_plain/plain_f32"}},
    {"sdpa 6/6x48 m=1 depth=16 f16",
     2,
     true,
     {"attn_split/split_f16", "attn_tile/tile64_32_f16", "attn_plain/plain_f16"}},
    {"q4gsw 768x288 m=1", 2, false, {"q4_gemv/"}}, /* all words, wherever they stand */
    {"norm+qkv 288 m=1", 1, false, {"q4_join/t16_f32"}},
    {"norm+swiglu 288 m=1", 1, false, {"q4_glu/t16_f32"}},
    {"linear+residual 288x288 m=1", 1, false, {"q4_add/t16_f32"}},
    {"m=51", 0, false, {NULL}}, /* a number is a whole one */
};

static void every_row_that_fits_is_timed_and_right(void) {
  sconce_device *device = open_device();
  if (!device) return;
  const bool subgroups = sconce_device_describe(device)->subgroups;
  const bool software = gpu_caps(device->gpu).software;
  for (size_t i = 0; i < sizeof grid / sizeof *grid && !test_failed(); i++) {
    struct seen seen = {0};
    sconce_error err = {0};
    sconce_kernels_desc desc = {.filter = grid[i].filter,
                                .quick = !grid[i].whole,
                                .repeats = 1,
                                .each = see,
                                .user = &seen};
    CHECK_OK(sconce_measure_kernels(device, &desc, &err), err);
    CHECK_OK(seen.why.status, seen.why);
    CHECK_EQ(seen.cases, grid[i].cases);
    /* A software device turns and attends in two kernels; the one for both is tried all the same.
     */
    CHECK_EQ(seen.chosen, grid[i].cases - (software && !strncmp(grid[i].filter, "sdpa", 4)));
    CHECK_EQ(seen.wrong, 0);
    if (!grid[i].whole) CHECK_EQ(seen.rotation, seen.bytes);
    CHECK(!saw(&seen, grid[i].whole ? "attn_plain/plain_f32" : "attn_plain/plain_f16"));
    for (size_t k = 0; k < 6 && grid[i].rows[k]; k++) {
      bool optional = grid[i].rows[k][0] == '~';
      const char *label = grid[i].rows[k] + optional;
      if (saw(&seen, label) != (subgroups || !optional))
        test_fail(__FILE__, __LINE__, "%s: %s", grid[i].filter, label);
    }
  }
  close_device(device);
}

/* Two nodes: what is between them is no border. */
static void build_two(struct case_builder *b) {
  uint32_t x = case_input(b, VK_FLOAT32, DIMS(1, 64));
  uint32_t w = case_weight(b, VK_FLOAT32, DIMS(64, 64));
  uint32_t v = case_weight(b, VK_FLOAT32, DIMS(32, 64));
  uint32_t t = op_tensor(&b->t, VK_FLOAT32, DIMS(1, 64));
  uint32_t y = op_output(&b->t, VK_FLOAT32, DIMS(1, 32));
  op_node(&b->t, "aten.linear.default", DIMS(x, w, op_null(&b->t), t));
  op_node(&b->t, "aten.linear.default", DIMS(t, v, op_null(&b->t), y));
  b->bytes += 4 * 64 * (64 + 32);
  b->flops += 2 * 64 * (64 + 32);
}

static struct kernel_case two_nodes(double tolerance) {
  return (struct kernel_case){.name = "two",
                              .build = build_two,
                              .op = "aten.linear.default",
                              .n_tables = 1,
                              .dtype = VK_FLOAT32,
                              .tolerance = tolerance};
}

static void copies_of_the_weights_take_turns(void) {
  sconce_device *device = open_device();
  if (!device) return;
  struct seen seen = {0};
  sconce_error err = {0};
  sconce_kernels_desc desc = {.repeats = 1, .each = see, .user = &seen};
  struct kernel_case c = two_nodes(1e-5);
  CHECK_OK(measure_case(device, &c, &desc, &err), err);
  CHECK_OK(seen.why.status, seen.why);
  CHECK_EQ(seen.rotation, 256 * seen.bytes);
  CHECK(seen.rows >= 3);
  CHECK_EQ(seen.wrong, 0);
  close_device(device);
}

/* With a tolerance that nothing meets, every row is wrong. */
static void a_result_outside_the_tolerance_is_wrong(void) {
  sconce_device *device = open_device();
  if (!device) return;
  struct seen seen = {0};
  sconce_error err = {0};
  sconce_kernels_desc desc = {.quick = true, .repeats = 1, .each = see, .user = &seen};
  struct kernel_case c = two_nodes(-1);
  CHECK_OK(measure_case(device, &c, &desc, &err), err);
  CHECK(seen.rows >= 3);
  CHECK_EQ(seen.wrong, seen.rows);
  close_device(device);
}

static void build_nothing_known(struct case_builder *b) {
  uint32_t x = case_input(b, VK_FLOAT32, DIMS(4)), y = op_output(&b->t, VK_FLOAT32, DIMS(4));
  op_node(&b->t, "aten.fly.default", DIMS(x, y));
  op_node(&b->t, "aten.relu.default", DIMS(op_int(&b->t, 1), y)); /* the first error stays */
}

static void see_why(void *user, const sconce_kernel_case *c) {
  *(sconce_error *)user = c->why;
  CHECK_EQ(c->n_rows, 0);
}

static void what_cannot_run_is_told(void) {
  sconce_device *device = open_device();
  if (!device) return;
  sconce_error err = {0}, why = {0};
  sconce_kernels_desc desc = {.quick = true, .each = see_why, .user = &why};
  struct kernel_case c = two_nodes(1);
  c.build = build_nothing_known;
  CHECK_OK(measure_case(device, &c, &desc, &err), err);
  CHECK_FAILS(why.status, SCONCE_UNSUPPORTED, why, "this build has no such operator");
  desc.repeats = 102;
  CHECK_FAILS(sconce_measure_kernels(device, &desc, &err), SCONCE_BAD_ARGUMENT, err,
              "102 repeats, at most 101");
  CHECK_FAILS(sconce_measure_kernels(device, NULL, &err), SCONCE_BAD_ARGUMENT, err, "is NULL");
  close_device(device);
}

static void errors_are_relative_to_the_largest(void) {
  const float want[] = {1, -4, 0}, zeros[3] = {0}, nan[] = {1, NAN, 0};
  const float same[] = {1, -4, 0}, off[] = {1, -4, 0.5f}, inf[] = {1, -4, INFINITY};
  CHECK_NEAR(measure_error(VK_FLOAT32, same, want, 3), 0, 0);
  CHECK_NEAR(measure_error(VK_FLOAT32, off, want, 3), 0.125, 0);
  CHECK(isinf(measure_error(VK_FLOAT32, nan, want, 3)));
  CHECK(isinf(measure_error(VK_FLOAT32, want, nan, 3)));
  CHECK(isinf(measure_error(VK_FLOAT32, inf, want, 3)));
  CHECK(isinf(measure_error(VK_FLOAT32, zeros, zeros, 3)));
  const uint16_t one[] = {0x3c00, 0xc000}, other[] = {0x3c00, 0xbc00}; /* 1, -2; 1, -1 */
  CHECK_NEAR(measure_error(VK_FLOAT16, other, one, 2), 0.5, 0);
}

const struct test suite_measure[] = {
    TEST(every_row_that_fits_is_timed_and_right),  TEST(copies_of_the_weights_take_turns),
    TEST(a_result_outside_the_tolerance_is_wrong), TEST(what_cannot_run_is_told),
    TEST(errors_are_relative_to_the_largest),      {0}};
