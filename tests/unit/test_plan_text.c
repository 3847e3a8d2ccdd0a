/* Plans as text: what a call is given, and what is refused. The texts of whole plans are compared
 * in tests/tool/test_plans.py. */
#include "examples.h"
#include "report.h"

/* relu over (rows, 8), its rows then cut to the first `count`: a tensor and an integer as inputs.
 */
static struct span sliced_graph(struct arena *arena) {
  struct write_vk g;
  struct write_blob blob;
  struct span bytes = {0};
  sconce_error err = {0};
  write_vk_init(&g, arena);
  int32_t x = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(6, 8));
  int32_t count = write_vk_value(&g, literal_symint(6));
  int32_t zero = write_vk_value(&g, literal_int(0)), one = write_vk_value(&g, literal_int(1));
  int32_t y = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(6, 8));
  int32_t z = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(6, 8));
  write_vk_call(&g, "aten.relu.default", ID_LIST(x, y));
  write_vk_call(&g, "aten.slice_copy.Tensor", ID_LIST(y, zero, zero, count, one, z));
  write_vk_inputs(&g, ID_LIST(x, count));
  write_vk_outputs(&g, ID_LIST(z));
  CHECK_OK(write_vk_finish(&g, &blob, &err), err);
  CHECK_OK(write_blob_to_memory(&blob, arena, &bytes, &err), err);
  return bytes;
}

static const int64_t numbers[] = {4, 7};

static const struct {
  const char *why;
  uint32_t n_inputs;
  sconce_tensor inputs[3];
  const char *device;
  bool no_params;
  sconce_status status;
  const char *says;
} rows[] = {
    {"nothing given: the largest dims", .says = "input 0  float32 [6, 8]"},
    {"the first inputs are enough", 1, {{.rank = 2, .dims = {3, 8}}}, .says = "float32 [3, 8]"},
    {"parameters have names", 1, {{.rank = 2, .dims = {3, 8}}}, .says = "1x1x1         n=24 a=0"},
    {"or are left out", .no_params = true, .says = "unary/relu_f32                    1x1x1\n"},
    {"ones in front may be left out", 1, {{.rank = 1, .dims = {8}}}, .says = "float32 [1, 8]"},
    {"or be too many", 1, {{.rank = 3, .dims = {1, 2, 8}}}, .says = "float32 [2, 8]"},
    {"an integer",
     2,
     {{.rank = 2, .dims = {6, 8}}, {SCONCE_INT64, 1, {1}, numbers, 8}},
     .says = "input 1  4\n"},
    {"the totals", .says = "2 nodes, 1 dispatches, GPU memory 0 bytes persistent, 576 transient\n"},
    {"the device", .device = "full", .says = "plan, device full\n"},
    {"no such device", .device = "fast", .status = SCONCE_BAD_ARGUMENT,
     .says = "device 'fast' is unknown: default or full"},
    {"too large",
     1,
     {{.rank = 2, .dims = {7, 8}}},
     .status = SCONCE_BAD_ARGUMENT,
     .says = "input 0: dim 0 is 7, at most 6"},
    {"too many dims",
     1,
     {{.rank = 3, .dims = {2, 2, 8}}},
     .status = SCONCE_BAD_ARGUMENT,
     .says = "input 0: rank 2, given 3"},
    {"too many inputs", 3, {{0}}, .status = SCONCE_BAD_ARGUMENT, .says = "the method has 2"},
    {"an integer without a value",
     2,
     {{.rank = 2, .dims = {6, 8}}, {SCONCE_INT64, 1, {1}, NULL, 0}},
     .status = SCONCE_BAD_ARGUMENT,
     .says = "input 1: it is one integer"},
    {"two integers",
     2,
     {{.rank = 2, .dims = {6, 8}}, {SCONCE_INT64, 1, {2}, numbers, 16}},
     .status = SCONCE_BAD_ARGUMENT,
     .says = "input 1: it is one integer"},
};

static void what_a_call_is_given(void) {
  struct arena arena;
  arena_init(&arena, NULL);
  struct span file = sliced_graph(&arena);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct report r;
    sconce_inspect_desc desc = {.file = {.data = file.data, .size = file.size},
                                .format = SCONCE_INSPECT_PLAN,
                                .inputs = rows[i].inputs,
                                .n_inputs = rows[i].n_inputs,
                                .device = rows[i].device,
                                .no_params = rows[i].no_params};
    sconce_status status = report_make(&r, &desc);
    const char *text = status == SCONCE_OK ? r.text : r.err.text;
    if (status != rows[i].status || !text || !strstr(text, rows[i].says))
      test_fail(__FILE__, __LINE__, "%s: no \"%s\" in\n%s", rows[i].why, rows[i].says, text);
    report_free(&r);
  }
  arena_free(&arena);
}

/* Of a program the plan is forward's, as a run is; what is no program has none. */
static void of_one_method(void) {
  struct arena arena;
  arena_init(&arena, NULL);
  struct span file = example_bytes(&arena, "delegate.pte");
  struct report r;
  sconce_inspect_desc desc = {.file = {.data = file.data, .size = file.size},
                              .format = SCONCE_INSPECT_PLAN};
  CHECK_OK(report_make(&r, &desc), r.err);
  CHECK(r.text && strstr(r.text, "plan of forward, device default\n"));
  CHECK(r.text && strstr(r.text, "    1  aten.add.Tensor  "));
  CHECK(r.text && !strstr(r.text, "prepack"));
  report_free(&r);
  desc.method = "backward";
  CHECK_FAILS(report_make(&r, &desc), SCONCE_BAD_ARGUMENT, r.err, "no method 'backward'");
  report_free(&r);
  file = example_bytes(&arena, "external.ptd");
  desc = (sconce_inspect_desc){.file = {.data = file.data, .size = file.size},
                               .format = SCONCE_INSPECT_PLAN};
  CHECK_FAILS(report_make(&r, &desc), SCONCE_BAD_ARGUMENT, r.err, "a data file has no plan");
  report_free(&r);
  file = example_bytes(&arena, "branch.pte");
  desc = (sconce_inspect_desc){.file = {.data = file.data, .size = file.size},
                               .format = SCONCE_INSPECT_PLAN};
  CHECK_OK(report_make(&r, &desc), r.err);
  CHECK(r.text && strstr(r.text, "jump_false\n"));
  report_free(&r);
  arena_free(&arena);
}

const struct test suite_plan_text[] = {TEST(what_a_call_is_given), TEST(of_one_method), {0}};
