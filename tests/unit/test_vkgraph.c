/* Delegate graphs: what a real one reads as, and what damage to it is refused. */
#include "edit.h"

static struct edit_bytes bytes, program;
static struct pte pte;
static struct vkgraph graph;

static bool open_real(const char *file, bool with_data) {
  sconce_error err = {0};
  struct data_lookup lookup = {with_data ? pte_lookup : NULL, &pte};
  free(program.data);
  free(bytes.data);
  program = edit_load(EDIT_PTE, file);
  CHECK_OK(pte_open(&pte, extent_of((struct span){program.data, program.size}), &err), err);
  bytes = edit_load(EDIT_VKGRAPH, file);
  CHECK_OK(vkgraph_open(&graph, extent_of((struct span){bytes.data, bytes.size}), lookup, &err),
           err);
  return !test_failed();
}

/* ---- a real graph ---------------------------------------------------------------------------- */

static void reads_values_and_chain(void) {
  REQUIRE(open_real("delegated.pte", true));
  CHECK_EQ(graph.n_values, 20);
  CHECK_EQ(graph.n_calls, 9);
  struct vk_value v = vkgraph_value(&graph, 4);
  CHECK_EQ(v.kind, VK_TENSOR);
  CHECK_EQ(v.tensor.dtype, VK_FLOAT32);
  CHECK_EQ(v.tensor.rank, 2);
  CHECK_EQ(v.tensor.nbytes, 256);
  CHECK_EQ(v.tensor.constant_id, -1);
  CHECK_EQ(v.tensor.mem_obj_id, 0);
  CHECK_EQ(fb_u32_at(graph.inputs, 0), 4);
  CHECK_EQ(fb_u32_at(graph.outputs, 0), 19);
  CHECK_EQ(vkgraph_kind(&graph, 6), VK_SYMINT);
  v = vkgraph_value(&graph, 12);
  CHECK_EQ(v.kind, VK_VALUE_LIST);
  CHECK_EQ(fb_i32_at(v.items, 0), 10);
  struct vk_call call = vkgraph_call(&graph, 2);
  CHECK(text_is(call.name, "aten.linear.default"));
  CHECK_EQ(call.args.n, 4);
  CHECK_EQ(fb_i32_at(call.args, 3), 7);
  CHECK_EQ(vkgraph_kind(&graph, 20), 0);
}

static void reads_every_kind_of_value(void) {
  REQUIRE(open_real("every_kind.pte", false));
  CHECK_EQ(vkgraph_value(&graph, 7).kind, VK_NULL);
  CHECK_EQ(vkgraph_value(&graph, 8).i, -7);
  CHECK(isinf(vkgraph_value(&graph, 9).d));
  CHECK(vkgraph_value(&graph, 10).b);
  CHECK_EQ(fb_i64_at(vkgraph_value(&graph, 11).items, 2), 1ll << 40);
  CHECK_NEAR(fb_f64_at(vkgraph_value(&graph, 12).items, 1), -0.25, 0);
  CHECK_EQ(vkgraph_value(&graph, 13).items.n, 3);
  CHECK(text_is(vkgraph_value(&graph, 14).text, "none"));
  CHECK_EQ(vkgraph_value(&graph, 15).i, 3);
  struct vk_tensor half = vkgraph_value(&graph, 4).tensor;
  CHECK_EQ(half.dtype, VK_FLOAT16);
  CHECK_EQ(half.staging, VK_FLOAT32);
  CHECK_EQ(half.mem_obj_id, 0); /* absent in the file */
}

static void an_absent_number_is_zero_not_none(void) {
  REQUIRE(open_real("delegated.pte", true));
  struct vk_tensor weight = vkgraph_value(&graph, 0).tensor;
  CHECK_EQ(weight.constant_id, 0);
  CHECK_EQ(weight.mem_obj_id, -1);
  CHECK_EQ(vkgraph_value(&graph, 2).tensor.rank, 0);
  CHECK_EQ(vkgraph_value(&graph, 2).tensor.numel, 1);
}

static void constants_are_exactly_their_tensors_bytes(void) {
  struct extent data;
  REQUIRE(open_real("delegated.pte", true));
  struct vk_tensor weight = vkgraph_value(&graph, 0).tensor, x = vkgraph_value(&graph, 4).tensor;
  CHECK(vkgraph_tensor_bytes(&graph, &weight, &data) && data.size == 192);
  CHECK(!vkgraph_tensor_bytes(&graph, &x, &data));
  CHECK(vkgraph_constant(&graph, 0).named);
  CHECK_EQ(vkgraph_constant(&graph, 0).length, 192);
  REQUIRE(open_real("delegated.pte", false)); /* nobody to ask: opens, but has no bytes */
  CHECK(!vkgraph_tensor_bytes(&graph, &weight, &data));
}

static void reads_inline_constants(void) {
  struct extent data;
  sconce_error err = {0};
  REQUIRE(open_real("inline.pte", true));
  /* 64 bytes behind the graph, and both constants placed there. */
  struct edit_bytes grown = edit_copy((struct span){bytes.data, bytes.size});
  grown.data = realloc(grown.data, bytes.size + 80);
  memset(grown.data + bytes.size, 7, 80);
  grown.size += 80;
  REQUIRE(edit_apply(EDIT_VKGRAPH, grown, (struct edit_patch){"constants/0/offset", 0}));
  REQUIRE(edit_apply(EDIT_VKGRAPH, grown, (struct edit_patch){"constants/1/offset", 64}));
  struct span blob = {grown.data, grown.size};
  REQUIRE_OK(vkgraph_open(&graph, extent_of(blob), (struct data_lookup){0}, &err), err);
  CHECK_EQ(graph.constant_area.size, 80); /* bytes_size is 0: the rest of the blob */
  struct vk_tensor bias = vkgraph_value(&graph, 1).tensor;
  CHECK(vkgraph_tensor_bytes(&graph, &bias, &data));
  CHECK(data.data == grown.data + bytes.size + 64);
  REQUIRE(edit_apply(EDIT_VKGRAPH, grown, (struct edit_patch){"constants/1/offset", 65}));
  CHECK_FAILS(vkgraph_open(&graph, extent_of(blob), (struct data_lookup){0}, &err),
              SCONCE_BAD_GRAPH, err,
              "constant 1 needs 16 bytes at 65 of the constants, which have 80");
  free(grown.data);
}

static void reads_constants_behind_the_graph(void) {
  static const size_t sizes[] = {24, 0, 2, 12};
  struct extent data;
  REQUIRE(open_real("every_kind.pte", false));
  for (uint32_t i = 0; i < 4; i++) {
    struct vk_tensor t = vkgraph_value(&graph, i).tensor;
    CHECK_EQ(t.constant_id, i);
    CHECK(vkgraph_tensor_bytes(&graph, &t, &data));
    CHECK_EQ(data.size, sizes[i]);
  }
  CHECK_EQ(load_u32(data.data + 8), 2); /* the last of arange(3) */
}

/* ---- damage ---------------------------------------------------------------------------------- */

#define GRAPH "delegated.pte"

static const struct edit_row header_rows[] = {
    {"no magic", GRAPH, {{"+4:4", 0}}, SCONCE_BAD_FILE, "instead of VH00"},
    {"header too short", GRAPH, {{"+8:2", 29}}, SCONCE_BAD_FILE, "header has 29 bytes"},
    {"flatbuffer inside the header", GRAPH, {{"+10:4", 16}}, SCONCE_BAD_FILE, "starts at 16"},
    {"flatbuffer past the end",
     GRAPH,
     {{"+14:4", 4000}},
     SCONCE_BAD_FILE,
     "4000 bytes, the delegate has"},
    {"flatbuffer of no bytes", GRAPH, {{"+14:4", 0}}, SCONCE_BAD_FILE, "too few for a flatbuffer"},
    {"offset + size overflows 32 bits",
     GRAPH,
     {{"+10:4", 4096}, {"+14:4", UINT32_MAX - 4000}},
     SCONCE_BAD_FILE,
     "flatbuffer starts at 4096"},
    {"constants inside the flatbuffer",
     GRAPH,
     {{"+18:4", 64}},
     SCONCE_BAD_FILE,
     "constants start at 64"},
    {"constants past the end", GRAPH, {{"+22:8", 1000}}, SCONCE_BAD_FILE, "have 1000 bytes"},
    {"constants of 2^64 - 1 bytes",
     GRAPH,
     {{"+22:8", UINT64_MAX}},
     SCONCE_BAD_FILE,
     "constants start"},
    {"constants start past the end, none there", GRAPH, {{"+18:4", 1 << 20}}, SCONCE_OK, NULL},
    {"other identifier",
     GRAPH,
     {{"+36:4", 0x39394b56}},
     SCONCE_BAD_FILE,
     "'VK99', expected 'VK00'"},
    {0},
};

static const struct edit_row value_rows[] = {
    {"unknown kind",
     GRAPH,
     {{"values/5/value_type", 12}},
     SCONCE_BAD_FILE,
     "kind 12, known are 1 to 11"},
    {"unknown datatype",
     GRAPH,
     {{"values/4/value/datatype", 8}},
     SCONCE_BAD_GRAPH,
     "datatype 8 is unknown"},
    {"datatype UNSET", GRAPH, {{"values/4/value/datatype", 127}}, SCONCE_BAD_GRAPH, "datatype 127"},
    {"negative datatype",
     GRAPH,
     {{"values/4/value/datatype", 0xff}},
     SCONCE_BAD_GRAPH,
     "datatype -1"},
    {"unknown staging",
     GRAPH,
     {{"values/4/value/staging_datatype", 9}},
     SCONCE_BAD_GRAPH,
     "staging datatype 9"},
    {"product of dims overflows",
     GRAPH,
     {{"values/4/value/dims/0", UINT32_MAX}, {"values/4/value/dims/1", UINT32_MAX}},
     SCONCE_BAD_GRAPH,
     "value 4 (Tensor): the bytes of a tensor of rank 2 overflow"},
    {"rank without bound",
     GRAPH,
     {{"values/4/value/dims/#", 9}},
     SCONCE_UNSUPPORTED,
     "rank 9, at most 8"},
    {"constant that is none",
     GRAPH,
     {{"values/1/value/constant_id", 3}},
     SCONCE_BAD_GRAPH,
     "constant_id is 3, the graph has 3"},
    {"constant_id below -1",
     GRAPH,
     {{"values/1/value/constant_id", UINT32_MAX - 1}},
     SCONCE_BAD_GRAPH,
     "constant_id is -2"},
    {"no constants at all",
     GRAPH,
     {{"constants/!", 0}},
     SCONCE_BAD_GRAPH,
     "the graph has 0 constants"},
    {"undersized named data",
     GRAPH,
     {{"values/1/value/dims/0", 7}},
     SCONCE_BAD_GRAPH,
     "value 1 (Tensor): constant 1 needs 28 bytes, the data named 'f02434340c2ab8f49667563b2f0dc1"},
    {"named data that is nowhere",
     GRAPH,
     {{"constants/1/named_key/0", 'x'}},
     SCONCE_BAD_GRAPH,
     "there is no such data"},
    {"named without a key",
     GRAPH,
     {{"constants/1/named_key/!", 0}},
     SCONCE_BAD_GRAPH,
     "named with 0 bytes"},
    {"inline, past an empty area",
     GRAPH,
     {{"constants/1/offset", 0}},
     SCONCE_BAD_GRAPH,
     "needs 24 bytes at 0"},
    {"inline, at 2^64 - 2",
     GRAPH,
     {{"constants/1/offset", UINT64_MAX - 1}},
     SCONCE_BAD_GRAPH,
     "18446744073709551614"},
    {"mem_obj_id beyond the values",
     GRAPH,
     {{"values/7/value/mem_obj_id", INT32_MAX}},
     SCONCE_OK,
     NULL},
    {"mem_obj_id below -1",
     GRAPH,
     {{"values/7/value/mem_obj_id", 0x80000000}},
     SCONCE_BAD_GRAPH,
     "is -2147483648"},
    {"list item out of range",
     GRAPH,
     {{"values/12/value/items/0", 20}},
     SCONCE_BAD_GRAPH,
     "item 0 is value 20"},
    {"negative list item",
     GRAPH,
     {{"values/12/value/items/0", UINT32_MAX}},
     SCONCE_BAD_GRAPH,
     "item 0 is value -1"},
    {"list in a list",
     GRAPH,
     {{"values/12/value/items/0", 14}},
     SCONCE_BAD_GRAPH,
     "a list in a list"},
    {"list in itself",
     GRAPH,
     {{"values/12/value/items/0", 12}},
     SCONCE_BAD_GRAPH,
     "a list in a list"},
    {"input out of range",
     GRAPH,
     {{"input_ids/0", 20}},
     SCONCE_BAD_GRAPH,
     "input 0 is value 20, the graph has 20"},
    {"input that is a number",
     GRAPH,
     {{"input_ids/0", 5}},
     SCONCE_BAD_GRAPH,
     "input 0 is value 5, a Int"},
    {"input that is a constant",
     GRAPH,
     {{"input_ids/0", 1}},
     SCONCE_BAD_GRAPH,
     "input 0 is value 1, a constant"},
    {"output out of range",
     GRAPH,
     {{"output_ids/0", UINT32_MAX}},
     SCONCE_BAD_GRAPH,
     "output 0 is value 4294967295"},
    {"output that is a list", GRAPH, {{"output_ids/0", 12}}, SCONCE_BAD_GRAPH, "a ValueList"},
    {"output that is a constant", GRAPH, {{"output_ids/0", 0}}, SCONCE_OK, NULL},
    {"output that is the input", GRAPH, {{"output_ids/0", 4}}, SCONCE_OK, NULL},
    {0},
};

static const struct edit_row chain_rows[] = {
    {"argument out of range",
     GRAPH,
     {{"chain/2/args/0", 20}},
     SCONCE_BAD_GRAPH,
     "node 2 (aten.linear.default): argument 0 is value 20"},
    {"negative argument",
     GRAPH,
     {{"chain/2/args/1", UINT32_MAX}},
     SCONCE_BAD_GRAPH,
     "argument 1 is value -1"},
    {"tensor used before it is defined",
     GRAPH,
     {{"chain/2/args/0", 8}},
     SCONCE_BAD_GRAPH,
     "argument 0 is value 8, used before it is defined"},
    {"its own output as argument",
     GRAPH,
     {{"chain/2/args/0", 7}},
     SCONCE_BAD_GRAPH,
     "value 7, used before"},
    {"SymInt used before it is defined",
     GRAPH,
     {{"chain/1/args/1", 10}},
     SCONCE_BAD_GRAPH,
     "value 10, used before"},
    {"list with an item not yet defined",
     GRAPH,
     {{"values/12/value/items/1", 15}},
     SCONCE_BAD_GRAPH,
     "node 5 (aten.view_copy.default): argument 1 is value 15, used before it is defined"},
    {"no inputs", GRAPH, {{"input_ids/#", 0}}, SCONCE_BAD_GRAPH, "value 4, used before"},
    {"output that nobody makes",
     GRAPH,
     {{"chain/8/args/3", 18}},
     SCONCE_BAD_GRAPH,
     "output 0 is value 19, which nothing defines"},
    {"number as output",
     GRAPH,
     {{"chain/3/args/1", 5}},
     SCONCE_BAD_GRAPH,
     "its output is value 5, a Int"},
    {"list with a number as output",
     GRAPH,
     {{"chain/3/args/1", 12}},
     SCONCE_BAD_GRAPH,
     "its output is value 11, a Int"},
    {"in place: output is an input",
     GRAPH,
     {{"chain/8/args/3", 4}, {"output_ids/0", 4}},
     SCONCE_OK,
     NULL},
    {"no arguments", GRAPH, {{"chain/3/args/#", 0}}, SCONCE_BAD_GRAPH, "not even an output"},
    {"arguments missing", GRAPH, {{"chain/3/args/!", 0}}, SCONCE_BAD_FILE, "args is missing"},
    {"name missing", GRAPH, {{"chain/3/name/!", 0}}, SCONCE_BAD_FILE, "name is missing"},
    {"a list that stands for too many items",
     "expansion.pte",
     {{0}},
     SCONCE_BAD_GRAPH,
     "value lists are expanded to too many"},
    {"arguments do not cover their elements",
     GRAPH,
     {{"chain/3/args/#", 1 << 30}},
     SCONCE_BAD_FILE,
     "1073741824 elements"},
    {0},
};

static void refuses_headers(void) { edit_run(EDIT_VKGRAPH, header_rows); }
static void refuses_values(void) { edit_run(EDIT_VKGRAPH, value_rows); }
static void refuses_chains(void) { edit_run(EDIT_VKGRAPH, chain_rows); }

/* ---- many values ----------------------------------------------------------------------------- */

static void put(uint8_t *p, uint32_t value) { memcpy(p, &value, 4); }

/* A blob by hand: n SymInts that share one table, and one call f(args[0]) -> args[1]. Vectors of
 * offsets come first, since offsets go forward; `e` is where the tables start. */
static struct edit_bytes build_symints(uint32_t n, const uint32_t args[2], uint32_t input,
                                       uint32_t output) {
  static const uint8_t slots[] = {14, 0, 20, 0, 0, 0, 4, 0, 8, 0, 12, 0, 16, 0};
  static const uint8_t tables[] = {
      8,  0, 12, 0, 8,   0, 4,  0, /* +0: VkValue's vtable */
      8,  0, 0,  0, 12,  0, 0,  0, VK_SYMINT, 0, 0, 0,
      4,  0, 4,  0, /* +8: VkValue; +20: SymInt's vtable */
      4,  0, 0,  0, 10,  0, 12, 0, 0,         0, 4, 0,
      8,  0, 0,  0,                                    /* +24: SymInt; +28: call's vtable */
      12, 0, 0,  0, 8,   0, 0,  0, 12,        0, 0, 0, /* +40: call: name, args */
      1,  0, 0,  0, 'f', 0, 0,  0, 2,         0, 0, 0, /* +52: name; +60: args */
  };
  uint32_t e = 72 + 4 * n, size = e + (uint32_t)sizeof tables + 8;
  struct edit_bytes b = {calloc(1, 32 + (size_t)size), 32 + (size_t)size};
  uint8_t *f = b.data + 32;
  memcpy(b.data + 4, "VH00", 4);
  b.data[8] = 30;
  put(b.data + 10, 32);
  put(b.data + 14, size);
  put(b.data + 18, 32 + size);
  put(f, 24);
  memcpy(f + 4, "VK00", 4);
  memcpy(f + 8, slots, sizeof slots);
  const uint32_t root[] = {16, 44 - 28, 68 - 32, 52 - 36, 60 - 40};
  memcpy(f + 24, root, sizeof root);
  const uint32_t vectors[] = {1, e + 40 - 48, 1, input, 1, output, n};
  memcpy(f + 44, vectors, sizeof vectors);
  for (uint32_t i = 0; i < n; i++) put(f + 72 + 4 * i, e + 8 - (72 + 4 * i));
  memcpy(f + e, tables, sizeof tables);
  memcpy(f + e + sizeof tables, args, 8);
  return b;
}

static sconce_status open_symints(uint32_t n, uint32_t from, uint32_t to, uint32_t input,
                                  uint32_t output, sconce_error *err) {
  struct edit_bytes b = build_symints(n, (uint32_t[]){from, to}, input, output);
  sconce_status status = walk_blob((struct span){b.data, b.size}, (struct data_lookup){0}, err);
  free(b.data);
  return status;
}

/* Definitions are tracked for 65536 values at a time; both ends of both windows. */
static void tracks_definitions_of_many_values(void) {
  static const uint32_t ids[] = {0, 1, 65535, 65536, 69998, 69999};
  sconce_error err = {0};
  for (size_t i = 0; i < 6; i++)
    for (size_t k = 0; k < 6; k++) {
      if (i == k) continue;
      uint32_t a = ids[i], b = ids[k];
      CHECK_OK(open_symints(70000, a, b, a, b, &err), err);
      CHECK_FAILS(open_symints(70000, a, a, b, b, &err), SCONCE_BAD_GRAPH, err, "used before");
      CHECK_FAILS(open_symints(70000, a, a, a, b, &err), SCONCE_BAD_GRAPH, err, "nothing defines");
    }
}

static void refuses_more_values_than_it_tracks(void) {
  sconce_error err = {0};
  CHECK_FAILS(open_symints(VK_MAX_VALUES + 1, 0, 1, 0, 1, &err), SCONCE_BAD_GRAPH, err,
              "4194305 values, at most 4194304");
}

static void names_and_sizes_of_types(void) {
  CHECK_EQ(vk_dtype_size(VK_FLOAT16), 2);
  CHECK_EQ(vk_dtype_size(VK_INT64), 8);
  CHECK_EQ(vk_dtype_size(VK_UNSET), 0);
  CHECK_TEXT(vk_dtype_name((enum vk_dtype)8), "unknown");
  CHECK_TEXT(vk_kind_name(VK_SYMINT), "SymInt");
  CHECK_TEXT(vk_kind_name((enum vk_kind)12), "unknown");
  CHECK_EQ(scalar_size(10), 16);
  CHECK_EQ(scalar_size(30), 0);
  CHECK_EQ(scalar_size(-1), 0);
}

const struct test suite_vkgraph[] = {
    TEST(reads_values_and_chain),
    TEST(reads_every_kind_of_value),
    TEST(an_absent_number_is_zero_not_none),
    TEST(constants_are_exactly_their_tensors_bytes),
    TEST(reads_inline_constants),
    TEST(reads_constants_behind_the_graph),
    TEST(refuses_headers),
    TEST(refuses_values),
    TEST(refuses_chains),
    TEST(tracks_definitions_of_many_values),
    TEST(refuses_more_values_than_it_tracks),
    TEST(names_and_sizes_of_types),
    {0},
};
