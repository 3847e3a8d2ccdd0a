/* sconce_inspect on small files: what it says, and that no file makes it misbehave. */
#include "examples.h"
#include "report.h"

#include "base/json.h"

static struct report inspect_bytes(struct span file, sconce_inspect_format format) {
  struct report r;
  sconce_inspect_desc desc = {.file = {.data = file.data, .size = file.size}, .format = format};
  CHECK_OK(report_make(&r, &desc), r.err);
  return r;
}

/* ---- what it says ---------------------------------------------------------------------------- */

static const struct {
  const char *file; /* of examples.c */
  sconce_inspect_format format;
  const char *says;
} rows[] = {
    {"delegate.pte", SCONCE_INSPECT_TEXT, "an ExecuTorch program"},
    {"delegate.pte", SCONCE_INSPECT_TEXT, "inputs      0: float32 up to [2, 3]"},
    {"delegate.pte", SCONCE_INSPECT_TEXT, "delegates   0: VulkanBackend"},
    {"delegate.pte", SCONCE_INSPECT_TEXT, "options: require_dynamic_shapes 1"},
    {"delegate.pte", SCONCE_INSPECT_TEXT, "runs        yes, 1 dispatch at"},
    {"delegate.pte", SCONCE_INSPECT_TEXT, "32 bytes persistent (constants 32 bytes"},
    {"delegate.pte", SCONCE_INSPECT_TEXT, "64 bytes transient"},
    {"delegate.pte", SCONCE_INSPECT_TEXT, "    1  et_vk.prepack.default"},
    {"delegate.pte", SCONCE_INSPECT_TEXT, "get_max_seq_len                  2\n"},
    {"delegate.pte", SCONCE_INSPECT_TEXT, "uint8     plain"},
    {"delegate.pte", SCONCE_INSPECT_GRAPH, "1  %4 float32 [2, 3] = aten.add.Tensor(%0, %2, 1)"},
    {"delegate.pte", SCONCE_INSPECT_GRAPH, "= et_vk.prepack.default(c1 float32 [2, 3])"},
    {"delegate.pte", SCONCE_INSPECT_DOT, "label=\"aten.add.Tensor\""},
    {"delegate.pte", SCONCE_INSPECT_DOT, "subgraph cluster_"},
    {"delegate.pte", SCONCE_INSPECT_JSON, "\"value\": [-1, 9223372036854775807]"},
    {"delegate.pte", SCONCE_INSPECT_JSON, "\"key\": \"another name\""},
    {"segment.pte", SCONCE_INSPECT_TEXT, "get_eos_ids                      2, 7\n"},
    {"segment.pte", SCONCE_INSPECT_TEXT, "get_scale                        0.25\n"},
    {"segment.pte", SCONCE_INSPECT_TEXT, "use_kv_cache                     true\n"},
    {"segment.pte", SCONCE_INSPECT_TEXT, "weights: 24 bytes, 6 parameters"},
    {"legacy.pte", SCONCE_INSPECT_TEXT, "weights: 24 bytes, 6 parameters"},
    {"mutable.pte", SCONCE_INSPECT_TEXT, "float32   state"},
    {"branch.pte", SCONCE_INSPECT_GRAPH, "unless v3 go to 4"},
    {"branch.pte", SCONCE_INSPECT_JSON, "\"move\": "},
    {"external.pte", SCONCE_INSPECT_TEXT, "\n  1 constant in none of the given files"},
    {"external.pte", SCONCE_INSPECT_JSON, "\"stored\": \"external\", \"name\": \"ramp\""},
    {"external.ptd", SCONCE_INSPECT_TEXT, "3 keys"},
    {"external.ptd", SCONCE_INSPECT_TEXT, "float32 [2, 3], 24 bytes"},
    {"external.ptd", SCONCE_INSPECT_JSON, "{\"key\": \"blob\", \"bytes\": 6}"},
    {"values.pte", SCONCE_INSPECT_JSON, "\"value\": -9223372036854775808"},
    {"add.pte", SCONCE_INSPECT_TEXT, "portable        1  aten::add.out"},
    {"add.pte", SCONCE_INSPECT_TEXT, "1 method\n"},
};

static void says_what_is_in_a_file(void) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct arena arena;
    arena_init(&arena, NULL);
    struct report r = inspect_bytes(example_bytes(&arena, rows[i].file), rows[i].format);
    if (!r.text || !strstr(r.text, rows[i].says))
      test_fail(__FILE__, __LINE__, "%s: no \"%s\" in\n%s", rows[i].file, rows[i].says, r.text);
    report_free(&r);
    arena_free(&arena);
  }
}

static void every_example_in_every_form(void) {
  for (const struct example *e = examples; e->name; e++) {
    struct arena arena;
    arena_init(&arena, NULL);
    struct span file = example_bytes(&arena, e->name);
    for (int f = 0; f < 4; f++) {
      struct report r = inspect_bytes(file, report_formats[f]);
      struct json root;
      if (report_formats[f] == SCONCE_INSPECT_JSON)
        CHECK_OK(json_check((struct text){r.text, r.size}, &root, &r.err), r.err);
      report_free(&r);
    }
    arena_free(&arena);
  }
}

static void a_bare_graph(void) {
  struct arena arena;
  arena_init(&arena, NULL);
  struct write_blob blob;
  struct span bytes;
  sconce_error err = {0};
  CHECK_OK(example_graph(&arena, &blob, &err), err);
  CHECK_OK(write_blob_to_memory(&blob, &arena, &bytes, &err), err);
  struct report r = inspect_bytes(bytes, SCONCE_INSPECT_TEXT);
  CHECK(r.text && strstr(r.text, "a VulkanBackend delegate"));
  CHECK(r.text && strstr(r.text, "1 constant is in other files: name the .ptd files too"));
  report_free(&r);
  r = inspect_bytes(bytes, SCONCE_INSPECT_GRAPH);
  CHECK(r.text && strstr(r.text, "out  %4 float32 [2, 3]"));
  report_free(&r);
  arena_free(&arena);
}

/* What a call writes is state, also through a prepacked value; what is dequantised is a weight. */
static void what_constants_are(void) {
  struct arena arena;
  arena_init(&arena, NULL);
  sconce_error err = {0};
  struct write_blob graph;
  struct span bytes = {0};
  struct write_vk g;
  write_vk_init(&g, &arena);
  const int64_t block[] = {1, 32};
  int32_t x = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(2, 64));
  int32_t best = write_vk_constant(&g, VK_FLOAT32, DIM_LIST(2, 64), write_vk_named(&g, "m", 512));
  int32_t kept = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(2, 64));
  write_vk_call(&g, "et_vk.prepack.default", ID_LIST(best, kept));
  write_vk_call(&g, "aten.minimum.default", ID_LIST(kept, x, kept));
  int32_t w = write_vk_constant(&g, VK_INT8, DIM_LIST(8, 64), write_vk_named(&g, "w", 512));
  int32_t s = write_vk_constant(&g, VK_FLOAT32, DIM_LIST(8, 2), write_vk_named(&g, "s", 64));
  int32_t y = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(8, 64));
  int32_t none = write_vk_value(&g, literal_null());
  write_vk_call(
      &g, "torchao.dequantize_affine.default",
      ID_LIST(w, write_vk_value(&g, literal_ints(block, 2)), s, none, none, none, none, none, y));
  write_vk_inputs(&g, ID_LIST(x));
  write_vk_outputs(&g, ID_LIST(kept, y));
  CHECK_OK(write_vk_finish(&g, &graph, &err), err);
  CHECK_OK(write_blob_to_memory(&graph, &arena, &bytes, &err), err);
  struct report r = inspect_bytes(bytes, SCONCE_INSPECT_TEXT);
  static const char *const says[] = {
      "  float32   state                           1 tensor   512 bytes",
      "  int8      8-bit, groups of 32             1 tensor   512 bytes",
      "  float32   scales                          1 tensor    64 bytes",
  };
  for (size_t i = 0; i < sizeof says / sizeof *says; i++) CHECK(r.text && strstr(r.text, says[i]));
  report_free(&r);
  arena_free(&arena);
}

/* ---- methods --------------------------------------------------------------------------------- */

static void one_method_only(void) {
  struct arena arena;
  arena_init(&arena, NULL);
  struct span file = example_bytes(&arena, "segment.pte");
  sconce_inspect_desc desc = {.file = {.data = file.data, .size = file.size},
                              .method = "get_scale"};
  struct report r;
  CHECK_OK(report_make(&r, &desc), r.err);
  CHECK(r.text && strstr(r.text, "get_scale") && !strstr(r.text, "forward"));
  report_free(&r);
  desc.method = "backward";
  CHECK_FAILS(report_make(&r, &desc), SCONCE_BAD_ARGUMENT, r.err, "no method 'backward' among 5");
  report_free(&r);
  arena_free(&arena);
}

/* ---- hostile files --------------------------------------------------------------------------- */

#define EVIL "\x1b]0;x\a\"]; \\ \xff\n"

static struct span evil_file(struct arena *arena) {
  sconce_error err = {0};
  struct write_vk g;
  struct write_blob graph, file;
  struct span bytes = {0};
  write_vk_init(&g, arena);
  int32_t key = write_vk_named(&g, EVIL, 24);
  int32_t x = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(2, 3));
  int32_t c = write_vk_constant(&g, VK_FLOAT32, DIM_LIST(2, 3), key);
  int32_t text = write_vk_value(&g, literal_string(EVIL));
  int32_t y = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(2, 3));
  write_vk_call(&g, EVIL, ID_LIST(x, c, text, y));
  write_vk_inputs(&g, ID_LIST(x));
  write_vk_outputs(&g, ID_LIST(y));
  CHECK_OK(write_vk_finish(&g, &graph, &err), err);
  static const int32_t dims[] = {2, 3};
  const struct write_pte_tensor io[] = {{.scalar_type = SCALAR_FLOAT, .sizes = dims, .rank = 2},
                                        {.scalar_type = SCALAR_FLOAT, .sizes = dims, .rank = 2}};
  struct write_pte w;
  write_pte_init(&w, arena);
  write_pte_delegated(&w, EVIL, &graph, io, 1, 1);
  write_pte_compile_spec(&w, EVIL, "\1", 1);
  write_pte_constant_method(&w, "get" EVIL, (struct literal[]){literal_string(EVIL)}, 1);
  CHECK_OK(write_pte_finish(&w, &file, &err), err);
  CHECK_OK(write_blob_to_memory(&file, arena, &bytes, &err), err);
  return bytes;
}

static void names_cannot_break_out(void) {
  struct arena arena;
  arena_init(&arena, NULL);
  struct span file = evil_file(&arena);
  for (int f = 0; f < 4; f++) {
    struct report r = inspect_bytes(file, report_formats[f]);
    for (size_t i = 0; i < r.size; i++)
      if ((unsigned char)r.text[i] < 0x20 && r.text[i] != '\n') {
        test_fail(__FILE__, __LINE__, "form %d has byte %d at %zu", f, r.text[i], i);
        break;
      }
    if (report_formats[f] == SCONCE_INSPECT_JSON) {
      struct json root;
      CHECK_OK(json_check((struct text){r.text, r.size}, &root, &r.err), r.err);
    } else {
      CHECK(r.text && strstr(r.text, "x1b"));
    }
    report_free(&r);
  }
  arena_free(&arena);
}

/* An error or a report, never a crash: under the sanitizers. */
static void damaged_files(void) {
  static const char *const names[] = {"format/delegated.pte", "format/control.pte",
                                      "format/weights.ptd"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    size_t size;
    unsigned char *bytes = test_read(names[i], &size);
    REQUIRE(bytes);
    for (size_t at = 0; at < size; at++) {
      struct report r;
      sconce_inspect_desc desc = {.file = {.data = bytes, .size = size},
                                  .format = report_formats[at % REPORT_FORMATS]};
      bytes[at] ^= (unsigned char)(1u << at / 4 % 8);
      sconce_status status = report_make(&r, &desc);
      CHECK((status == SCONCE_OK) == (r.text != NULL));
      bytes[at] ^= (unsigned char)(1u << at / 4 % 8);
      report_free(&r);
      desc.file.size = at;
      CHECK(report_make(&r, &desc) != SCONCE_OK || r.text);
      report_free(&r);
    }
    free(bytes);
  }
}

/* A few bytes per delegate must not buy a whole graph's work each. */
static void many_delegates_of_one_blob(void) {
  struct arena arena;
  arena_init(&arena, NULL);
  sconce_error err = {0};
  struct write_blob graph, file;
  struct span bytes = {0};
  struct write_vk g;
  write_vk_init(&g, &arena);
  int32_t x = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(2)), y = x;
  int32_t one = write_vk_value(&g, literal_int(1));
  for (int i = 0; i < 2000; i++) {
    int32_t next = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(2));
    write_vk_call(&g, "aten.add.Tensor", ID_LIST(y, x, one, next));
    y = next;
  }
  write_vk_inputs(&g, ID_LIST(x));
  write_vk_outputs(&g, ID_LIST(y));
  CHECK_OK(write_vk_finish(&g, &graph, &err), err);
  struct write_pte w;
  write_pte_init(&w, &arena);
  int32_t segment = write_pte_segment(&w, &graph, 16);
  write_pte_method(&w, "forward");
  for (int i = 0; i < 1000; i++) write_pte_delegate(&w, VK_BACKEND_ID, segment);
  CHECK_OK(write_pte_finish(&w, &file, &err), err);
  CHECK_OK(write_blob_to_memory(&file, &arena, &bytes, &err), err);
  struct report r;
  sconce_inspect_desc desc = {.file = {.data = bytes.data, .size = bytes.size}};
  CHECK_FAILS(report_make(&r, &desc), SCONCE_BAD_FILE, r.err, "more than 256 times over");
  report_free(&r);
  arena_free(&arena);
}

static void errors_are_sentences(void) {
  struct report r;
  sconce_inspect_desc desc = {.file = {.path = "/nonexistent/model.pte"}};
  CHECK_FAILS(report_make(&r, &desc), SCONCE_IO_ERROR, r.err, "/nonexistent/model.pte");
  desc = (sconce_inspect_desc){.file = {.data = "no program at all", .size = 17}};
  CHECK_FAILS(report_make(&r, &desc), SCONCE_BAD_FILE, r.err, "neither a program (ET12)");
  CHECK_FAILS(report_make(&r, &(sconce_inspect_desc){0}), SCONCE_BAD_ARGUMENT, r.err,
              "no path and no data");
  CHECK(r.text == NULL);
}

static void out_of_memory_at_every_allocation(void) {
  struct arena arena;
  arena_init(&arena, NULL);
  struct span file = example_bytes(&arena, "delegate.pte");
  for (int f = 0; f < REPORT_FORMATS; f++) {
    bool done = false;
    for (uint64_t n = 1; n < 1000 && !done; n++) {
      struct test_allocator counting;
      struct report r;
      test_allocator_init(&counting, n);
      sconce_inspect_desc desc = {.file = {.data = file.data, .size = file.size},
                                  .format = report_formats[f],
                                  .allocator = counting.hook};
      sconce_status status = report_make(&r, &desc);
      done = counting.calls < n;
      CHECK(done ? status == SCONCE_OK : status == SCONCE_NO_MEMORY);
      CHECK_EQ(counting.live, 0);
      report_free(&r);
    }
    CHECK(done);
  }
  arena_free(&arena);
}

const struct test suite_inspect[] = {
    TEST(says_what_is_in_a_file),
    TEST(every_example_in_every_form),
    TEST(a_bare_graph),
    TEST(what_constants_are),
    TEST(one_method_only),
    TEST(names_cannot_break_out),
    TEST(damaged_files),
    TEST(many_delegates_of_one_blob),
    TEST(errors_are_sentences),
    TEST(out_of_memory_at_every_allocation),
    {0},
};
