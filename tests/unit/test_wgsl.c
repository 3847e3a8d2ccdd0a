/* Composing kernels: replacements, libraries, directives. */
#include "harness.h"

#include "graph/kernel.h"

#include "chain.wgsl.h"

#include <math.h>

static const char sample[] = "alias T = f32; // storage\n"
                             "const TILE: u32 = 4u;\n"
                             "override WG: u32 = 64u;\n"
                             "override WG_LONG: u32 = 1u;\n"
                             "@compute @workgroup_size(WG, TILE) fn main() { let T2 = 1; }\n";

static const struct wgsl sample_wgsl = {.name = "sample", .path = "", .uses = "", .text = sample};

static const char *composed(struct arena *arena, const char *set, uint32_t needs,
                            enum wgsl_dialect dialect) {
  const char *text = "";
  sconce_error err = {0};
  struct kernel row = {"row", &sample_wgsl, set, .needs = needs};
  CHECK_OK(wgsl_compose(arena, &row, dialect, &text, &err), err);
  return text;
}

static void rows_replace_whole_definitions(void) {
  struct arena arena;
  arena_init(&arena, NULL);
  CHECK_TEXT(composed(&arena, NULL, 0, WGSL_NAGA), sample);
  const char *text = composed(&arena, "T=vec4<f16> WG=128u TILE=8u", NEEDS_F16, WGSL_NAGA);
  CHECK(strstr(text, "enable f16;\nalias T = vec4<f16>; // storage\n") == text);
  CHECK(strstr(text, "const TILE: u32 = 8u;\noverride WG: u32 = 128u;\n") != NULL);
  CHECK(strstr(text, "override WG_LONG: u32 = 1u;") != NULL); /* a longer name is another name */
  arena_free(&arena);
}

/* Where the compiler may refuse them, WGSL's functions for halves are the text's own. */
static void halves_by_hand(void) {
  struct arena arena;
  arena_init(&arena, NULL);
  const char *text = composed(&arena, NULL, 0, WGSL_NAGA_NO_HALVES);
  CHECK(strstr(text, sample) == text);
  CHECK(strstr(text, "fn pack2x16float(") && strstr(text, "fn unpack2x16float("));
  CHECK(!strstr(composed(&arena, NULL, 0, WGSL_TINT), "2x16float"));
  arena_free(&arena);
}

/* What a row computes may be an expression: the line that names it stands alone in a function. */
static void rows_replace_what_is_computed(void) {
  static const char code[] = "fn f(x: f32) -> f32 {\n"
                             "  letter = 1;\n"
                             "  let result = x; // rows replace it\n"
                             "  return result;\n}\n";
  static const struct wgsl shader = {.name = "f", .path = "", .uses = "", .text = code};
  const struct kernel row = {"row", &shader, "result=select(x,0.0,x==1.0)"};
  struct arena arena;
  arena_init(&arena, NULL);
  const char *text;
  sconce_error err = {0};
  REQUIRE_OK(wgsl_compose(&arena, &row, WGSL_NAGA, &text, &err), err);
  CHECK_TEXT(text, "fn f(x: f32) -> f32 {\n"
                   "  letter = 1;\n"
                   "  let result = select(x,0.0,x==1.0); // rows replace it\n"
                   "  return result;\n}\n");
  const struct kernel none = {"row", &shader, "ter=2"};
  CHECK_FAILS(wgsl_compose(&arena, &none, WGSL_NAGA, &text, &err), SCONCE_BAD_ARGUMENT, err,
              "sets 'ter'");
  arena_free(&arena);
}

static void directives_depend_on_the_compiler(void) {
  struct arena arena;
  arena_init(&arena, NULL);
  const char *naga = composed(&arena, NULL, NEEDS_SUBGROUPS, WGSL_NAGA);
  const char *tint = composed(&arena, NULL, NEEDS_SUBGROUPS, WGSL_TINT);
  CHECK(strstr(naga, "enable") == NULL); /* naga rejects the line */
  CHECK(strstr(tint, "enable subgroups;") == tint);
  CHECK(strstr(tint, "matrix") == NULL);
  tint = composed(&arena, NULL, NEEDS_SUBGROUPS | NEEDS_MATRIX, WGSL_TINT);
  CHECK(strstr(tint, "enable chromium_experimental_subgroup_matrix;") != NULL);
  arena_free(&arena);
}

static void libraries_are_appended(void) {
  struct arena arena;
  arena_init(&arena, NULL);
  const char *text = composed(&arena, "use=grid", 0, WGSL_NAGA);
  CHECK(strstr(text, "fn grid_group") != NULL);
  arena_free(&arena);
}

static void rows_that_name_nothing_fail(void) {
  struct arena arena;
  arena_init(&arena, NULL);
  static const struct {
    const char *set, *says;
  } rows[] = {
      {"U=f32", "kernel sample/row: sets 'U', which the shader does not define"},
      {"T2=1", "sets 'T2'"}, /* a let inside a line is none that rows replace */
      {"T", "'T' is not NAME=VALUE"},
      {"use=nothing", "uses 'nothing', which is no shader library"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct kernel row = {"row", &sample_wgsl, rows[i].set, 0};
    const char *text;
    sconce_error err = {0};
    CHECK_FAILS(wgsl_compose(&arena, &row, WGSL_NAGA, &text, &err), SCONCE_BAD_ARGUMENT, err,
                rows[i].says);
  }
  arena_free(&arena);
}

/* Every kind of field, and values that are hard to write down. */
static void fixed_parameters_stand_in_the_text(void) {
  static const struct wgsl every = {.name = "every",
                                    .path = "",
                                    .uses = "",
                                    .params_size = 48,
                                    .fields = "n:u low:i eps:f pad:u at:u4 half:f2 end:u2",
                                    .text = "const A = 1u;\n"
                                            "@group(0) @binding(3) var<uniform>    p: Params;\n"
                                            "fn main() {}\n"};
  struct params {
    uint32_t n;
    int32_t low;
    float eps;
    uint32_t pad, at[4];
    float half[2];
    uint32_t end[2];
  } params = {7, -5, 1e-5f, 0, {1, 2, 3, UINT32_MAX}, {0.5f, -0.0f}, {8, 9}};
  struct arena arena;
  arena_init(&arena, NULL);
  const struct kernel row = {"row", &every, "A=2u", .fixed = &params};
  sconce_error err = {0};
  const char *text = "";
  CHECK(wgsl_can_fix(&every, &params));
  CHECK_OK(wgsl_compose(&arena, &row, WGSL_NAGA, &text, &err), err);
  CHECK_TEXT(text, "const A = 2u;\n"
                   "const p = Params(7u, i32(4294967291u), 9.9999997473787516e-06f, 0u, "
                   "vec4<u32>(1u, 2u, 3u, 4294967295u), vec2<f32>(0.5f, -0f), vec2<u32>(8u, 9u));\n"
                   "fn main() {}\n");
  params.half[1] = INFINITY;
  CHECK(!wgsl_can_fix(&every, &params));
  params.half[1] = NAN;
  CHECK(!wgsl_can_fix(&every, &params));
  const struct wgsl array = {.fields = "dims:u8"};
  CHECK(!wgsl_can_fix(&array, (const uint32_t[8]){0}));
  struct wgsl without = sample_wgsl;
  without.fields = "";
  const struct kernel none = {"row", &without, NULL, .fixed = &params};
  CHECK_FAILS(wgsl_compose(&arena, &none, WGSL_NAGA, &text, &err), SCONCE_BAD_ARGUMENT, err,
              "kernel sample/row: has no parameters to fix");
  arena_free(&arena);
}

static void workgroup_sizes_follow_definitions(void) {
  uint32_t size[3];
  CHECK(wgsl_workgroup_size(sample, size));
  CHECK(size[0] == 64 && size[1] == 4 && size[2] == 1);
  CHECK(wgsl_workgroup_size("@workgroup_size(8u,2, 3)", size));
  CHECK(size[0] == 8 && size[1] == 2 && size[2] == 3);
  CHECK(!wgsl_workgroup_size("fn main() {}", size));
  CHECK(!wgsl_workgroup_size("@workgroup_size(a)", size));
}

/* As the packer does it: no comments, no blanks around lines, no empty lines. */
static void strip(const char *in, char *out) {
  char *line = out;
  for (;; in++) {
    if (in[0] == '/' && in[1] == '/') in += strcspn(in, "\n");
    if (*in == '\n' || !*in) {
      while (out > line && out[-1] == ' ') out--;
      if (out > line) *out++ = '\n';
      line = out;
      if (!*in) break;
    } else if (out > line || *in != ' ') {
      *out++ = *in;
    }
  }
  *out = 0;
}

static void shaders_can_be_read_from_disk(void) {
  struct arena arena;
  arena_init(&arena, NULL);
  struct kernel row = {"u32", &chain_wgsl, NULL, 0};
  const char *embedded, *read, *missing;
  sconce_error err = {0};
  CHECK_OK(wgsl_compose(&arena, &row, WGSL_NAGA, &embedded, &err), err);
  test_set_env("SCONCE_WGSL_DIR", SCONCE_SOURCE_DIR "/src");
  REQUIRE_OK(wgsl_compose(&arena, &row, WGSL_NAGA, &read, &err), err);
  CHECK(strstr(read, "// ") != NULL); /* as it is, so that a compiler's line numbers are right */
  char *stripped = arena_new(&arena, char, strlen(read) + 2);
  strip(read, stripped);
  CHECK_TEXT(stripped, embedded);
  test_set_env("SCONCE_WGSL_DIR", "/nonexistent");
  CHECK_FAILS(wgsl_compose(&arena, &row, WGSL_NAGA, &missing, &err), SCONCE_IO_ERROR, err,
              "/nonexistent/gpu/probe/chain.wgsl");
  test_set_env("SCONCE_WGSL_DIR", NULL);
  arena_free(&arena);
}

/* One rule for planning, compiling and counting: chain.wgsl binds two buffers and its params. */
static void what_runs_on_a_device(void) {
  const struct caps least = {.max_invocations = 64, .max_storage_buffers = 2};
  struct caps f16 = least, both = least, wide = least, bytes = least, one = least;
  f16.f16 = both.f16 = both.subgroups = true;
  wide.max_invocations = 256;
  bytes.max_workgroup_bytes = 1024;
  one.max_storage_buffers = 1;
  struct caps units = both;
  units.matrix = units.fast = true;
  units.matrices[0] = (struct matrix){16, 16, 16};
  units.matrices[1] = (struct matrix){16, 8, 8};
  units.subgroup_min = units.subgroup_max = 32;
  struct caps exact = units, narrow = units;
  exact.fast = false;
  narrow.subgroup_min = 16;
  const struct kernel product = {
      .wgsl = &chain_wgsl, .needs = NEEDS_MATRIX | NEEDS_FAST, .matrix = {16, 8, 8}, .lanes = 32};
  struct kernel other = product, any = product;
  other.matrix.k = 16;
  any.lanes = 0;
  const struct {
    const char *why;
    struct kernel row;
    const struct caps *caps;
    bool runs;
  } rows[] = {
      {"needs nothing", {.wgsl = &chain_wgsl}, &least, true},
      {"f16 is missing", {.wgsl = &chain_wgsl, .needs = NEEDS_F16}, &least, false},
      {"f16 is there", {.wgsl = &chain_wgsl, .needs = NEEDS_F16}, &f16, true},
      {"one of two", {.wgsl = &chain_wgsl, .needs = NEEDS_F16 | NEEDS_SUBGROUPS}, &f16, false},
      {"two of two", {.wgsl = &chain_wgsl, .needs = NEEDS_F16 | NEEDS_SUBGROUPS}, &both, true},
      {"matrices are apart", {.wgsl = &chain_wgsl, .needs = NEEDS_MATRIX}, &both, false},
      {"matrices of its sizes", product, &units, true},
      {"matrices of other sizes", other, &units, false},
      {"f16 products where f32 was asked for", product, &exact, false},
      {"subgroups of another size", product, &narrow, false},
      {"subgroups of any size", any, &narrow, true},
      {"too many threads", {.wgsl = &chain_wgsl, .threads = 256}, &least, false},
      {"as many as allowed", {.wgsl = &chain_wgsl, .threads = 256}, &wide, true},
      {"workgroup memory", {.wgsl = &chain_wgsl, .workgroup_bytes = 1024}, &least, false},
      {"all of it", {.wgsl = &chain_wgsl, .workgroup_bytes = 1024}, &bytes, true},
      {"too few storage buffers", {.wgsl = &chain_wgsl}, &one, false},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    CHECK_SAYS(kernel_runs(&rows[i].row, rows[i].caps) == rows[i].runs, "%s", rows[i].why);
}

static void matrices_are_kept_the_largest_first(void) {
  struct matrix list[MATRICES_MAX] = {{0}};
  const struct matrix all[] = {{8, 8, 8},    {16, 8, 16}, {16, 16, 16},
                               {16, 16, 16}, {16, 8, 8},  {32, 32, 16}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) matrices_add(list, all[i]);
  const uint32_t m[MATRICES_MAX] = {32, 16, 16, 16}, n[MATRICES_MAX] = {32, 16, 8, 8};
  for (int i = 0; i < MATRICES_MAX; i++) CHECK(list[i].m == m[i] && list[i].n == n[i]);
  CHECK_EQ(list[3].k, 8); /* 8 x 8 x 8 had no room */
}

const struct test suite_wgsl[] = {
    TEST(what_runs_on_a_device),
    TEST(matrices_are_kept_the_largest_first),
    TEST(rows_replace_whole_definitions),
    TEST(halves_by_hand),
    TEST(rows_replace_what_is_computed),
    TEST(directives_depend_on_the_compiler),
    TEST(libraries_are_appended),
    TEST(rows_that_name_nothing_fail),
    TEST(fixed_parameters_stand_in_the_text),
    TEST(workgroup_sizes_follow_definitions),
    TEST(shaders_can_be_read_from_disk),
    {0},
};
