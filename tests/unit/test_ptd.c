/* Data files, and sets of them. */
#include "edit.h"

static struct edit_bytes bytes[2];
static struct ptd files[2];
static struct pte pte;
static struct edit_bytes program;

static bool open_real(int i, const char *file) {
  sconce_error err = {0};
  free(bytes[i].data);
  bytes[i] = edit_load(EDIT_PTD, file);
  CHECK_OK(ptd_open(&files[i], extent_of((struct span){bytes[i].data, bytes[i].size}), &err), err);
  return !test_failed();
}

static bool open_program(const char *file) {
  sconce_error err = {0};
  free(program.data);
  program = edit_load(EDIT_PTE, file);
  CHECK_OK(pte_open(&pte, extent_of((struct span){program.data, program.size}), &err), err);
  return !test_failed();
}

/* ---- real files ------------------------------------------------------------------------------ */

static void reads_tensors_with_layouts(void) {
  REQUIRE(open_real(0, "weights.ptd"));
  struct ptd_set set = {files, 1};
  struct ptd_entry e;
  REQUIRE(ptd_find(&set, text_of("weight"), &e));
  CHECK(e.has_layout);
  CHECK_EQ(e.shape.scalar_type, SCALAR_FLOAT);
  CHECK_EQ(e.shape.rank, 2);
  CHECK_EQ(e.shape.sizes[0], 3);
  CHECK_EQ(e.bytes.size, 48);
  CHECK(!ptd_find(&set, text_of("weigh"), &e));
}

static void reads_opaque_data(void) {
  REQUIRE(open_real(0, "delegated_ext.ptd"));
  CHECK_EQ(files[0].data.named.n, 2);
  for (uint32_t i = 0; i < 2; i++) {
    struct ptd_entry e = ptd_entry(&files[0], i);
    CHECK(!e.has_layout && e.key.size == 64);
  }
}

static void graphs_find_their_constants_in_data_files(void) {
  REQUIRE(open_real(0, "delegated_ext.ptd") && open_program("delegated_ext.pte"));
  struct ptd_set set = {files, 1};
  struct ptd_source with = {&set, &pte}, without = {NULL, &pte};
  struct pte_method m = pte_method(&pte, 0);
  struct span blob = extent_held(pte_delegate(&m, 0).blob);
  sconce_error err = {0};
  CHECK_OK(walk_blob(blob, (struct data_lookup){ptd_lookup, &with}, &err), err);
  CHECK_FAILS(walk_blob(blob, (struct data_lookup){ptd_lookup, &without}, &err), SCONCE_BAD_GRAPH,
              err, "and there is no such data");
}

/* ---- sets ------------------------------------------------------------------------------------ */

static void programs_match_their_data_files(void) {
  REQUIRE(open_real(0, "weights.ptd") && open_program("weights.pte"));
  sconce_error err = {0};
  CHECK_OK(ptd_set_match(&(struct ptd_set){files, 1}, &pte, &err), err);
  CHECK_FAILS(ptd_set_match(&(struct ptd_set){files, 0}, &pte, &err), SCONCE_BAD_FILE, err,
              "is in none of the 0 data files");
}

static void programs_refuse_data_of_another_shape(void) {
  static const struct {
    const char *path, *fragment;
    uint64_t value;
  } rows[] = {
      {"execution_plan/0/values/0/val/sizes/0", "the program's has sizes[0] = 2", 2},
      {"execution_plan/0/values/0/val/scalar_type", "the program's is int32", SCALAR_INT},
      {"execution_plan/0/values/0/val/extra_tensor_info/fully_qualified_name/0", "in none of", 'x'},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    sconce_error err = {0};
    REQUIRE(open_real(0, "weights.ptd") && open_program("weights.pte"));
    REQUIRE(edit_apply(EDIT_PTE, program, (struct edit_patch){rows[i].path, rows[i].value}));
    REQUIRE_OK(pte_open(&pte, extent_of((struct span){program.data, program.size}), &err), err);
    CHECK_FAILS(ptd_set_match(&(struct ptd_set){files, 1}, &pte, &err), SCONCE_BAD_FILE, err,
                rows[i].fragment);
  }
}

static void refuses_a_key_in_two_files(void) {
  sconce_error err = {0};
  REQUIRE(open_real(0, "weights.ptd") && open_real(1, "delegated_ext.ptd"));
  CHECK_OK(ptd_set_verify(&(struct ptd_set){files, 2}, &err), err);
  REQUIRE(open_real(1, "weights.ptd"));
  CHECK_FAILS(ptd_set_verify(&(struct ptd_set){files, 2}, &err), SCONCE_BAD_FILE, err,
              "is in data file 0 and in data file 1");
  CHECK_FAILS(ptd_set_verify(&(struct ptd_set){files, 1000}, &err), SCONCE_BAD_ARGUMENT, err,
              "1000 data files");
}

/* NamedData tables by hand, n of them, with the keys "k0", "k1" …: a vtable, the vector's offsets,
 * then the tables in 24 bytes each (soffset, key, the string's size, text and NUL). */
static struct edit_bytes build_keys(uint32_t n) {
  size_t size = 8 + (size_t)n * 28;
  struct edit_bytes b = {calloc(1, size), size};
  b.data[0] = 6;
  b.data[4] = 4; /* the key at +4 */
  for (uint32_t i = 0; i < n; i++) {
    uint8_t *offset = b.data + 8 + (size_t)i * 4, *table = b.data + 8 + (size_t)n * 4 + i * 24u;
    uint32_t to_vtable = (uint32_t)(table - b.data), to_table = (uint32_t)(table - offset);
    memcpy(table, &to_vtable, 4);
    memcpy(offset, &to_table, 4);
    table[4] = 4;
    table[8] = (uint8_t)snprintf((char *)table + 12, 12, "k%u", i);
  }
  return b;
}

/* More keys than one round of the check takes. */
static void finds_a_key_twice_among_thousands(void) {
  enum { N = 5000 };
  struct edit_bytes b = build_keys(N);
  struct data data = {.named = {b.data + 8, N}};
  const struct data *list[] = {&data};
  sconce_error err = {0};
  CHECK_OK(data_verify_unique(list, 1, &err), err);
  uint8_t *last = b.data + b.size - 24;
  memcpy(last + 12, "k123", 5);
  last[8] = 4;
  CHECK_FAILS(data_verify_unique(list, 1, &err), SCONCE_BAD_FILE, err,
              "the key 'k123' names data 123 and 4999");
  data.named.n = DATA_MAX_NAMED + 1;
  CHECK_FAILS(data_verify_unique(list, 1, &err), SCONCE_BAD_FILE, err, "65537 keys");
  free(b.data);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static const struct edit_row rows[] = {
    {"not a data file", "weights.ptd", {{"+4:4", 0x32315445}}, SCONCE_BAD_FILE, "'ET12'"},
    {"no header", "weights.ptd", {{"+8:4", 0}}, SCONCE_BAD_FILE, "instead of FH01"},
    {"header too short", "weights.ptd", {{"+12:4", 39}}, SCONCE_BAD_FILE, "header has 39 bytes"},
    {"flatbuffer inside the header",
     "weights.ptd",
     {{"+16:8", 40}},
     SCONCE_BAD_FILE,
     "starts at 40"},
    {"offset + size overflows",
     "weights.ptd",
     {{"+16:8", UINT64_MAX}},
     SCONCE_BAD_FILE,
     "flatbuffer"},
    {"flatbuffer past the end", "weights.ptd", {{"+24:8", 4096}}, SCONCE_BAD_FILE, "has 524 bytes"},
    {"base + size overflows", "weights.ptd", {{"+40:8", UINT64_MAX}}, SCONCE_BAD_FILE, "segments"},
    {"segments inside the flatbuffer",
     "weights.ptd",
     {{"+32:8", 64}},
     SCONCE_BAD_FILE,
     "start at 64"},
    {"segments past the end", "weights.ptd", {{"+40:8", 10000}}, SCONCE_BAD_FILE, "10000 bytes"},
    {"segments outside their area",
     "weights.ptd",
     {{"+40:8", 8}},
     SCONCE_BAD_FILE,
     "the segment area"},
    {"segment past the end",
     "weights.ptd",
     {{"segments/0/size", 9999}},
     SCONCE_BAD_FILE,
     "segment 0 ends"},
    {"offset wraps around",
     "weights.ptd",
     {{"segments/1/offset", UINT64_MAX - 8}},
     SCONCE_BAD_FILE,
     "overflows"},
    {"key missing", "weights.ptd", {{"named_data/0/key/!", 0}}, SCONCE_BAD_FILE, "key is missing"},
    {"segment that is none",
     "weights.ptd",
     {{"named_data/1/segment_index", 2}},
     SCONCE_BAD_FILE,
     "segment 2"},
    {"layout larger than its bytes",
     "weights.ptd",
     {{"named_data/1/tensor_layout/sizes/0", 100}},
     SCONCE_BAD_FILE,
     "its layout needs"},
    {"layout with a negative size",
     "weights.ptd",
     {{"named_data/1/tensor_layout/sizes/0", UINT32_MAX}},
     SCONCE_BAD_FILE,
     "sizes[0] is -1"},
    {"layout without sizes",
     "weights.ptd",
     {{"named_data/1/tensor_layout/sizes/!", 0}},
     SCONCE_BAD_FILE,
     "0 sizes and"},
    {"dim_order too short",
     "weights.ptd",
     {{"named_data/1/tensor_layout/dim_order/#", 0}},
     SCONCE_BAD_FILE,
     "0 entries of dim_order"},
    {"layout without a dim_order",
     "weights.ptd",
     {{"named_data/1/tensor_layout/dim_order/!", 0}},
     SCONCE_BAD_FILE,
     "0 entries of dim_order"},
    {"unknown scalar type",
     "weights.ptd",
     {{"named_data/1/tensor_layout/scalar_type", 99}},
     SCONCE_BAD_FILE,
     "scalar type 99"},
    {0},
};

static void refuses_damage(void) { edit_run(EDIT_PTD, rows); }

const struct test suite_ptd[] = {
    TEST(reads_tensors_with_layouts),
    TEST(reads_opaque_data),
    TEST(graphs_find_their_constants_in_data_files),
    TEST(programs_match_their_data_files),
    TEST(programs_refuse_data_of_another_shape),
    TEST(refuses_a_key_in_two_files),
    TEST(finds_a_key_twice_among_thousands),
    TEST(refuses_damage),
    {0},
};
