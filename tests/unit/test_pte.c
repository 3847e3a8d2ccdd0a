/* Programs: what a real one reads as, and what damage to it is refused. */
#define _GNU_SOURCE /* ftruncate */
#include "edit.h"

#include "base/os.h"
#include "format/schema.h"

#include <unistd.h>

#define PLAN "execution_plan/0/"
#define CHAIN PLAN "chains/0/instructions/"

static struct edit_bytes bytes;
static struct pte pte;

static bool open_real(const char *file) {
  sconce_error err = {0};
  free(bytes.data);
  bytes = edit_load(EDIT_PTE, file);
  CHECK_OK(pte_open(&pte, (struct span){bytes.data, bytes.size}, &err), err);
  return !test_failed();
}

/* ---- real files ------------------------------------------------------------------------------ */

static void reads_methods_and_constant_methods(void) {
  REQUIRE(open_real("portable.pte"));
  struct pte_method m;
  CHECK_EQ(pte.n_methods, 5);
  REQUIRE(pte_find_method(&pte, text_of("forward"), &m));
  CHECK(!pte_method_is_constant(&m));
  CHECK_EQ(m.n_inputs, 2);
  CHECK_EQ(m.n_outputs, 3);
  REQUIRE(pte_find_method(&pte, text_of("get_max_seq_len"), &m));
  CHECK(pte_method_is_constant(&m));
  CHECK_EQ(pte_value(&m, fb_u32_at(m.outputs, 0)).i, 128);
  REQUIRE(pte_find_method(&pte, text_of("use_kv_cache"), &m));
  CHECK(pte_value(&m, fb_u32_at(m.outputs, 0)).b);
  REQUIRE(pte_find_method(&pte, text_of("get_eos_ids"), &m));
  CHECK_EQ(m.n_outputs, 2);
  CHECK_EQ(pte_value(&m, fb_u32_at(m.outputs, 1)).i, 7);
  CHECK(!pte_find_method(&pte, text_of("forwar"), &m));
  CHECK(!pte_find_method(&pte, text_of("forward2"), &m));
}

static void reads_values_of_every_kind(void) {
  REQUIRE(open_real("portable.pte"));
  struct pte_method m = pte_method(&pte, 0);
  struct pte_value v = pte_value(&m, 10);
  CHECK_EQ(v.kind, PTE_TENSOR);
  CHECK_EQ(v.tensor.shape.rank, 2);
  CHECK_EQ(v.tensor.shape.sizes[0], 5);
  CHECK_EQ(v.tensor.shape.nbytes, 80);
  CHECK(v.tensor.planned && v.tensor.memory_id == 1);
  v = pte_value(&m, 17);
  CHECK_EQ(v.kind, PTE_INT_LIST); /* of indices: 15 and 16 are the values 2 and 3 */
  CHECK_EQ(pte_list_item(&v, 1), 16);
  CHECK_EQ(pte_value(&m, 16).i, 3);
  v = pte_value(&m, 27);
  CHECK_EQ(v.kind, PTE_OPTIONAL_TENSOR_LIST);
  CHECK_EQ(pte_list_item(&v, 0), -1);
  CHECK_EQ(pte_list_item(&v, 1), 4);
  CHECK_EQ(pte_list_item(&v, 2), -1); /* past the end */
  CHECK_EQ(pte_value(&m, 25).kind, PTE_DOUBLE);
  CHECK_EQ(pte_value(&m, 6).kind, PTE_BOOL);
  CHECK_EQ(pte_value(&m, m.n_values).kind, 0);
}

static void reads_constants_and_initial_values(void) {
  REQUIRE(open_real("portable.pte"));
  struct pte_method m = pte_method(&pte, 0);
  struct pte_value state = pte_value(&m, 0), table = pte_value(&m, 1), input = pte_value(&m, 3);
  struct span data;
  float f;
  CHECK(state.tensor.planned && text_is(state.tensor.fqn, "count"));
  REQUIRE(pte_tensor_bytes(&pte, &state.tensor, &data));
  memcpy(&f, data.data, 4);
  CHECK_NEAR(f, 3, 0);
  REQUIRE(pte_tensor_bytes(&pte, &table.tensor, &data));
  CHECK_EQ(data.size, 48);
  memcpy(&f, data.data + 44, 4);
  CHECK_NEAR(f, 11, 0);
  CHECK(!pte_tensor_bytes(&pte, &input.tensor, &data));
}

static void reads_instructions(void) {
  char name[PTE_OPERATOR_SIZE];
  REQUIRE(open_real("control.pte"));
  struct pte_method m = pte_method(&pte, 0);
  CHECK_EQ(pte_n_instructions(&m, 0), 18);
  struct pte_instruction in = pte_instruction(&m, 0, 13);
  CHECK_EQ(in.kind, PTE_KERNEL_CALL);
  CHECK_TEXT(pte_operator_text(&m, in.index, name), "executorch_prim::et_copy_index.tensor");
  CHECK_EQ(in.args.n, 3);
  in = pte_instruction(&m, 0, 5);
  CHECK_EQ(in.kind, PTE_MOVE_CALL);
  CHECK_EQ(in.value, 12);
  CHECK_EQ(in.to, 7);
  in = pte_instruction(&m, 0, 16);
  CHECK_EQ(in.kind, PTE_JUMP_FALSE_CALL);
  CHECK_EQ(in.value, 28);
  CHECK_EQ(in.destination, 11);
  CHECK_EQ(pte_instruction(&m, 0, 18).kind, 0);
  CHECK_EQ(pte_n_instructions(&m, 1), 0);
}

static void operator_without_overload_has_no_dot(void) {
  char name[PTE_OPERATOR_SIZE];
  REQUIRE(open_real("portable.pte"));
  struct pte_method m = pte_method(&pte, 0);
  CHECK_TEXT(pte_operator_text(&m, 7, name), "aten::copy_");
  CHECK_TEXT(pte_operator_text(&m, 1, name), "aten::add.out");
  CHECK_TEXT(pte_operator_text(&m, 99, name), "");
}

static void reads_delegates_in_segments_and_inline(void) {
  static const char *const files[] = {"delegated.pte", "inline.pte"};
  for (int i = 0; i < 2; i++) {
    REQUIRE(open_real(files[i]));
    struct pte_method m = pte_method(&pte, 0);
    struct pte_delegate d = pte_delegate(&m, 0);
    CHECK(text_is(d.id, "VulkanBackend"));
    CHECK(vkgraph_probe(d.blob));
    CHECK(memcmp(bytes.data + d.offset, d.blob.data, d.blob.size) == 0);
    CHECK_EQ(d.specs.n, i == 0);
    if (i > 0) continue;
    struct pte_spec spec = pte_delegate_spec(&d, 0);
    CHECK(text_is(spec.key, "require_dynamic_shapes"));
    CHECK_EQ(spec.value.size, 1);
  }
}

static void finds_named_data_with_and_without_an_index(void) {
  REQUIRE(open_real("delegated.pte"));
  uint32_t slots[8], at = 0;
  for (int indexed = 0; indexed < 2; indexed++) {
    for (uint32_t i = 0; i < pte.data.named.n; i++) {
      CHECK(data_find(&pte.data, data_key(&pte.data, i), &at));
      CHECK_EQ(at, i);
    }
    CHECK(!data_find(&pte.data, text_of("absent"), &at));
    CHECK(!data_find(&pte.data, (struct text){0}, &at));
    data_index(&pte.data, slots, 8);
  }
}

/* ---- damage ---------------------------------------------------------------------------------- */

static const struct edit_row header_rows[] = {
    {"not a program", "delegated.pte", {{"+4:4", 0x30304b56}}, SCONCE_BAD_FILE, "'VK00'"},
    {"a later format", "delegated.pte", {{"+4:4", 0x33315445}}, SCONCE_UNSUPPORTED, "'ET13'"},
    {"header too short", "delegated.pte", {{"+12:4", 23}}, SCONCE_BAD_FILE, "header has 23 bytes"},
    {"header longer than the file",
     "delegated.pte",
     {{"+12:4", UINT32_MAX}},
     SCONCE_BAD_FILE,
     "header has 4294967295 bytes"},
    {"old header without segment_data_size", "delegated.pte", {{"+12:4", 24}}, SCONCE_OK, NULL},
    {"program_size past the end",
     "delegated.pte",
     {{"+16:8", 1 << 20}},
     SCONCE_BAD_FILE,
     "1048576"},
    {"program_size of 2^64 - 1",
     "delegated.pte",
     {{"+16:8", UINT64_MAX}},
     SCONCE_BAD_FILE,
     "program"},
    {"program_size inside the header", "delegated.pte", {{"+16:8", 8}}, SCONCE_BAD_FILE, "8 bytes"},
    {"segments inside the program",
     "delegated.pte",
     {{"+24:8", 64}},
     SCONCE_BAD_FILE,
     "start at 64"},
    {"segments past the end",
     "delegated.pte",
     {{"+24:8", 1 << 20}},
     SCONCE_BAD_FILE,
     "start at 1048576"},
    {"base + size overflows 64 bits",
     "delegated.pte",
     {{"+32:8", UINT64_MAX}},
     SCONCE_BAD_FILE,
     "18446744073709551615 bytes, the file has 3716"},
    {"segment area past the end",
     "delegated.pte",
     {{"+32:8", 4000}},
     SCONCE_BAD_FILE,
     "4000 bytes"},
    {"segment area of no bytes but segments that have some",
     "delegated.pte",
     {{"+24:8", 0}, {"+32:8", 0}},
     SCONCE_BAD_FILE,
     "the segment area ends at 0"},
    {0},
};

static const struct edit_row segment_rows[] = {
    {"segment past the end",
     "delegated.pte",
     {{"segments/1/size", 88000}},
     SCONCE_BAD_FILE,
     "segment 1 ends at 89"},
    {"offset + size overflows",
     "delegated.pte",
     {{"segments/2/offset", UINT64_MAX - 100}},
     SCONCE_BAD_FILE,
     "overflows"},
    {"size of 2^64 - 1 wraps back into the file",
     "delegated.pte",
     {{"segments/2/size", UINT64_MAX}},
     SCONCE_BAD_FILE,
     "overflows"},
    {"named data in a segment that is none",
     "delegated.pte",
     {{"named_data/1/segment_index", 77}},
     SCONCE_BAD_FILE,
     "is in segment 77, the file has"},
    {"named data without a key",
     "delegated.pte",
     {{"named_data/0/key/!", 0}},
     SCONCE_BAD_FILE,
     "key is missing"},
    {"key that does not end where it says",
     "delegated.pte",
     {{"named_data/0/key/#", 63}},
     SCONCE_BAD_FILE,
     "no NUL after it"},
    {"empty key",
     "delegated.pte",
     {{"named_data/0/key/0", 0}, {"named_data/0/key/#", 0}},
     SCONCE_BAD_FILE,
     "has 0 bytes, allowed are 1 to 1023"},
    {"initial values in a segment that is none",
     "portable.pte",
     {{"mutable_data_segments/0/segment_index", 9}},
     SCONCE_BAD_FILE,
     "mutable_data_segments[0] is in segment 9, the file has 2 segments"},
    {"constants past their segment",
     "portable.pte",
     {{"constant_segment/offsets/1", 60}},
     SCONCE_BAD_FILE,
     "constant 1 needs 48 bytes at 60"},
    {"constant offset of 2^64 - 1",
     "portable.pte",
     {{"constant_segment/offsets/1", UINT64_MAX}},
     SCONCE_BAD_FILE,
     "at 18446744073709551615"},
    {"initial values past their segment",
     "portable.pte",
     {{"mutable_data_segments/0/offsets/1", 4}},
     SCONCE_BAD_FILE,
     "initial value 1 needs 4 bytes at 4"},
    {"fewer offsets than constants",
     "portable.pte",
     {{"constant_segment/offsets/#", 2}},
     SCONCE_BAD_FILE,
     "is constant 2, the program has 2"},
    {"no initial values at all",
     "portable.pte",
     {{"mutable_data_segments/0/offsets/#", 0}},
     SCONCE_BAD_FILE,
     "is initial value 1, the program has 0"},
    {0},
};

static const struct edit_row tensor_rows[] = {
    {"negative size",
     "portable.pte",
     {{PLAN "values/10/val/sizes/0", UINT32_MAX}},
     SCONCE_BAD_FILE,
     "sizes[0] is -1"},
    {"product of sizes overflows",
     "portable.pte",
     {{PLAN "values/10/val/sizes/0", INT32_MAX}, {PLAN "values/10/val/sizes/1", INT32_MAX}},
     SCONCE_BAD_FILE,
     "overflow at sizes[1]"},
    {"larger than its planned buffer",
     "portable.pte",
     {{PLAN "values/10/val/sizes/0", 500}},
     SCONCE_BAD_FILE,
     "of planned buffer 1"},
    {"rank without bound",
     "portable.pte",
     {{PLAN "values/10/val/sizes/#", 17}},
     SCONCE_BAD_FILE,
     "rank 17"},
    {"sizes do not cover their elements",
     "portable.pte",
     {{PLAN "values/10/val/sizes/#", 0x40000000}},
     SCONCE_BAD_FILE,
     "1073741824 elements"},
    {"sizes missing",
     "portable.pte",
     {{PLAN "values/10/val/sizes/!", 0}},
     SCONCE_BAD_FILE,
     "sizes is missing"},
    {"dim_order of another length",
     "portable.pte",
     {{PLAN "values/10/val/dim_order/#", 1}},
     SCONCE_BAD_FILE,
     "2 sizes and 1"},
    {"dim_order out of range",
     "portable.pte",
     {{PLAN "values/10/val/dim_order/1", 200}},
     SCONCE_BAD_FILE,
     "dim_order[1] is 200"},
    {"dim_order with a dim twice",
     "portable.pte",
     {{PLAN "values/10/val/dim_order/1", 0}},
     SCONCE_BAD_FILE,
     "not a permutation"},
    {"unknown scalar type",
     "portable.pte",
     {{PLAN "values/10/val/scalar_type", 30}},
     SCONCE_BAD_FILE,
     "scalar type 30"},
    {"negative scalar type",
     "portable.pte",
     {{PLAN "values/10/val/scalar_type", 0xff}},
     SCONCE_BAD_FILE,
     "type -1"},
    {"memory_id past the list",
     "portable.pte",
     {{PLAN "values/10/val/allocation_info/memory_id", 9}},
     SCONCE_BAD_FILE,
     "memory_id 9, the method has planned buffers 1 to 1"},
    {"memory_id 0 is reserved",
     "portable.pte",
     {{PLAN "values/10/val/allocation_info/memory_id", 0}},
     SCONCE_BAD_FILE,
     "memory_id 0"},
    {"planned offset past the buffer",
     "portable.pte",
     {{PLAN "values/13/val/allocation_info/memory_offset_low", 208}},
     SCONCE_BAD_FILE,
     "at 208 of planned buffer 1, which has 208"},
    {"negative planned buffer",
     "portable.pte",
     {{PLAN "non_const_buffer_sizes/1", UINT64_MAX}},
     SCONCE_BAD_FILE,
     "planned buffer 1 has -1 bytes"},
    {"sum of planned buffers overflows",
     "portable.pte",
     {{PLAN "non_const_buffer_sizes/0", INT64_MAX}, {PLAN "non_const_buffer_sizes/1", 208}},
     SCONCE_BAD_FILE,
     "planned buffer 1"},
    {"constant that is none",
     "portable.pte",
     {{PLAN "values/2/val/data_buffer_idx", 4}},
     SCONCE_BAD_FILE,
     "constant 4"},
    {"constant of 2^32 - 1",
     "portable.pte",
     {{PLAN "values/2/val/data_buffer_idx", UINT32_MAX}},
     SCONCE_BAD_FILE,
     "constant 4294967295"},
    {"input that is a constant",
     "portable.pte",
     {{PLAN "inputs/0", 1}},
     SCONCE_BAD_FILE,
     "input 0 is value 1, a constant"},
    {"external tensor without a name",
     "weights.pte",
     {{PLAN "values/0/val/extra_tensor_info/fully_qualified_name/!", 0}},
     SCONCE_BAD_FILE,
     "no name"},
    {"unknown location",
     "weights.pte",
     {{PLAN "values/0/val/extra_tensor_info/location", 2}},
     SCONCE_BAD_FILE,
     "location 2"},
    {"unknown dynamism",
     "delegated.pte",
     {{PLAN "values/0/val/shape_dynamism", 3}},
     SCONCE_BAD_FILE,
     "shape_dynamism 3"},
    {0},
};

static const struct edit_row value_rows[] = {
    {"unknown kind of value",
     "portable.pte",
     {{PLAN "values/9/val_type", 12}},
     SCONCE_BAD_FILE,
     "kind 12, known are 1 to 11"},
    {"value without a kind",
     "portable.pte",
     {{PLAN "values/9/val_type", 0}},
     SCONCE_BAD_FILE,
     "kind 0"},
    {"value without content",
     "portable.pte",
     {{PLAN "values/9/val/!", 0}},
     SCONCE_BAD_FILE,
     "without content"},
    {"null entry in a vector of tables",
     "portable.pte",
     {{PLAN "values/9", 0}},
     SCONCE_BAD_FILE,
     "EValue at"},
    {"null plan", "portable.pte", {{"execution_plan/1", 0}}, SCONCE_BAD_FILE, "ExecutionPlan at"},
    {"no plans", "portable.pte", {{"execution_plan/#", 0}}, SCONCE_BAD_FILE, "no method"},
    {"item of an IntList out of range",
     "portable.pte",
     {{PLAN "values/17/val/items/0", 33}},
     SCONCE_BAD_FILE,
     "value 17 (IntList): item 0 is value 33, the method has 33 values"},
    {"negative item of an IntList",
     "portable.pte",
     {{PLAN "values/17/val/items/0", UINT64_MAX}},
     SCONCE_BAD_FILE,
     "item 0 is value -1"},
    {"IntList with an item that is no Int",
     "portable.pte",
     {{PLAN "values/17/val/items/0", 10}},
     SCONCE_BAD_FILE,
     "a Tensor instead of a Int"},
    {"IntList that contains itself",
     "portable.pte",
     {{PLAN "values/17/val/items/0", 17}},
     SCONCE_BAD_FILE,
     "a IntList instead"},
    {"item of a TensorList is no tensor",
     "portable.pte",
     {{PLAN "values/11/val/items/1", 9}},
     SCONCE_BAD_FILE,
     "a Int instead of a Tensor"},
    {"-1 only in optional lists",
     "portable.pte",
     {{PLAN "values/11/val/items/1", UINT32_MAX}},
     SCONCE_BAD_FILE,
     "value -1"},
    {"-2 not even there",
     "portable.pte",
     {{PLAN "values/27/val/items/0", UINT32_MAX - 1}},
     SCONCE_BAD_FILE,
     "value -2"},
    {"input out of range",
     "portable.pte",
     {{PLAN "inputs/1", 33}},
     SCONCE_BAD_FILE,
     "input 1 is value 33"},
    {"negative output",
     "portable.pte",
     {{PLAN "outputs/2", UINT32_MAX}},
     SCONCE_BAD_FILE,
     "output 2 is value -1"},
    {"inputs missing",
     "portable.pte",
     {{PLAN "inputs/!", 0}},
     SCONCE_BAD_FILE,
     "inputs is missing"},
    {"name missing", "portable.pte", {{PLAN "name/!", 0}}, SCONCE_BAD_FILE, "name is missing"},
    {0},
};

static const struct edit_row code_rows[] = {
    {"operator out of range",
     "portable.pte",
     {{CHAIN "1/instr_args/op_index", 99}},
     SCONCE_BAD_FILE,
     "method 'forward': chain 0, instruction 1: operator 99, there are 8"},
    {"negative operator",
     "portable.pte",
     {{CHAIN "1/instr_args/op_index", UINT32_MAX}},
     SCONCE_BAD_FILE,
     "operator -1"},
    {"argument out of range",
     "portable.pte",
     {{CHAIN "1/instr_args/args/2", 33}},
     SCONCE_BAD_FILE,
     "argument 2 is value 33"},
    {"negative argument",
     "portable.pte",
     {{CHAIN "1/instr_args/args/0", UINT32_MAX}},
     SCONCE_BAD_FILE,
     "value -1"},
    {"arguments do not cover their elements",
     "portable.pte",
     {{CHAIN "1/instr_args/args/#", 5000}},
     SCONCE_BAD_FILE,
     "args has 5000 elements"},
    {"jump to behind the chain",
     "control.pte",
     {{CHAIN "2/instr_args/destination_instruction", 18}},
     SCONCE_OK,
     NULL},
    {"jump past the chain",
     "control.pte",
     {{CHAIN "2/instr_args/destination_instruction", 19}},
     SCONCE_BAD_FILE,
     "jump to instruction 19 of 18"},
    {"negative jump",
     "control.pte",
     {{CHAIN "2/instr_args/destination_instruction", UINT32_MAX}},
     SCONCE_BAD_FILE,
     "jump to instruction -1"},
    {"condition out of range",
     "control.pte",
     {{CHAIN "2/instr_args/cond_value_index", 5000}},
     SCONCE_BAD_FILE,
     "condition is value 5000"},
    {"condition that is a list",
     "control.pte",
     {{CHAIN "2/instr_args/cond_value_index", 2}},
     SCONCE_BAD_FILE,
     "condition is value 2, a IntList"},
    {"move from nowhere",
     "control.pte",
     {{CHAIN "5/instr_args/move_from", UINT32_MAX}},
     SCONCE_BAD_FILE,
     "from value -1"},
    {"move to nowhere",
     "control.pte",
     {{CHAIN "5/instr_args/move_to", 100}},
     SCONCE_BAD_FILE,
     "to value 100"},
    {"unknown instruction",
     "control.pte",
     {{CHAIN "5/instr_args_type", 6}},
     SCONCE_BAD_FILE,
     "kind 6, known are 1 to 5"},
    {"instructions missing",
     "control.pte",
     {{PLAN "chains/0/instructions/!", 0}},
     SCONCE_BAD_FILE,
     "instructions is missing"},
    {"delegate that is none",
     "delegated.pte",
     {{CHAIN "0/instr_args/args/0", 0}, {PLAN "delegates/#", 0}},
     SCONCE_BAD_FILE,
     "delegate 0, there are 0"},
    {"delegate in a segment that is none",
     "delegated.pte",
     {{PLAN "delegates/0/processed/index", 50}},
     SCONCE_BAD_FILE,
     "delegate 0 is in segment 50"},
    {"inline delegate that is none",
     "delegated.pte",
     {{PLAN "delegates/0/processed/location", 0}},
     SCONCE_BAD_FILE,
     "in inline data 1, there are 0"},
    {"delegate in an unknown place",
     "delegated.pte",
     {{PLAN "delegates/0/processed/location", 2}},
     SCONCE_BAD_FILE,
     "location 2"},
    {"processed missing",
     "delegated.pte",
     {{PLAN "delegates/0/processed/!", 0}},
     SCONCE_BAD_FILE,
     "processed is missing"},
    {"inline data missing",
     "inline.pte",
     {{"backend_delegate_data/0/data/!", 0}},
     SCONCE_BAD_FILE,
     "data is missing"},
    {"compile spec without a key",
     "delegated.pte",
     {{PLAN "delegates/0/compile_specs/0/key/!", 0}},
     SCONCE_BAD_FILE,
     "key is missing"},
    {"compile spec without a value",
     "delegated.pte",
     {{PLAN "delegates/0/compile_specs/0/value/!", 0}},
     SCONCE_OK,
     NULL},
    {"operator without a name",
     "portable.pte",
     {{PLAN "operators/1/name/#", 0}},
     SCONCE_BAD_FILE,
     ""},
    {0},
};

static void refuses_headers(void) { edit_run(EDIT_PTE, header_rows); }
static void refuses_segments(void) { edit_run(EDIT_PTE, segment_rows); }
static void refuses_tensors(void) { edit_run(EDIT_PTE, tensor_rows); }
static void refuses_values(void) { edit_run(EDIT_PTE, value_rows); }
static void refuses_code(void) { edit_run(EDIT_PTE, code_rows); }

static void refuses_a_key_twice(void) {
  REQUIRE(open_real("delegated.pte"));
  sconce_error err = {0};
  struct text first = data_key(&pte.data, 0), second = data_key(&pte.data, 2);
  memcpy((void *)(uintptr_t)second.data, first.data, first.size);
  CHECK_FAILS(pte_open(&pte, (struct span){bytes.data, bytes.size}, &err), SCONCE_BAD_FILE, err,
              "names data 0 and 2");
  CHECK(pte.data.file.data == NULL); /* nothing to use by mistake */
}

static void errors_may_go_unheard(void) {
  REQUIRE(open_real("delegated.pte"));
  bytes.data[5] = 0;
  CHECK_EQ(pte_open(&pte, (struct span){bytes.data, bytes.size}, NULL), SCONCE_BAD_FILE);
  CHECK_EQ(pte_open(&pte, (struct span){0}, NULL), SCONCE_BAD_FILE);
}

/* ---- every flip, every truncation ------------------------------------------------------------ */

/* An error or a valid program: the sanitizers see to "never a crash", the walk to "valid". */
static void flip(enum edit_kind kind, const char *file) {
  struct edit_bytes real = edit_load(kind, file);
  uint32_t accepted = 0;
  for (size_t i = 0; i < real.size; i++) {
    const uint8_t old = real.data[i];
    for (int k = 0; k < 11; k++) {
      static const uint8_t whole[] = {0x00, 0x7f, 0xff};
      real.data[i] = k < 8 ? (uint8_t)(old ^ 1u << k) : whole[k - 8];
      if (edit_open(kind, file, (struct span){real.data, real.size}, NULL) == SCONCE_OK) accepted++;
    }
    real.data[i] = old;
  }
  CHECK(accepted > 0); /* weights and names may change */
  for (size_t size = 0; size < real.size; size++) {
    struct edit_bytes cut = edit_copy((struct span){real.data, size});
    (void)!edit_open(kind, file, (struct span){cut.data, size}, NULL);
    free(cut.data);
  }
  CHECK_OK(edit_open(kind, file, (struct span){real.data, real.size}, NULL), (sconce_error){0});
  free(real.data);
}

static void survives_flips_and_cuts_of_a_delegated_program(void) {
  flip(EDIT_PTE, "delegated.pte");
}
static void survives_flips_and_cuts_of_a_portable_program(void) { flip(EDIT_PTE, "portable.pte"); }
static void survives_flips_and_cuts_of_a_program_with_jumps(void) { flip(EDIT_PTE, "control.pte"); }
static void survives_flips_and_cuts_of_a_graph(void) { flip(EDIT_VKGRAPH, "delegated.pte"); }
static void survives_flips_and_cuts_of_a_data_file(void) { flip(EDIT_PTD, "weights.ptd"); }

/* ---- large files ----------------------------------------------------------------------------- */

/* A real program whose last segment moves beyond 4 GB, as a sparse file. */
static void opens_a_file_of_more_than_4_gigabytes(void) {
  const char *folder = getenv("TMPDIR");
  char path[512];
  const uint64_t far = 5ull << 30;
  REQUIRE(open_real("delegated.pte"));
  uint32_t last = pte.data.segments.n - 1;
  struct span tail = data_segment(&pte.data, last);
  char at[64];
  snprintf(at, sizeof at, "segments/%u/offset", last);
  REQUIRE(edit_apply(EDIT_PTE, bytes, (struct edit_patch){at, far}));
  uint64_t end = pte.data.base + far + tail.size;
  REQUIRE(edit_apply(EDIT_PTE, bytes, (struct edit_patch){"+32:8", far + tail.size}));

  snprintf(path, sizeof path, "%s/sconce_large_XXXXXX", folder ? folder : "/tmp");
  int file = mkstemp(path);
  REQUIRE(file >= 0);
  bool wrote = pwrite(file, bytes.data, bytes.size, 0) == (ssize_t)bytes.size &&
               pwrite(file, tail.data, tail.size, (off_t)(end - tail.size)) == (ssize_t)tail.size &&
               ftruncate(file, (off_t)end) == 0;
  close(file);
  struct os_map map = {0};
  sconce_error err = {0};
  struct pte large;
  if (!wrote || os_map_open(&map, path, &err) != SCONCE_OK) {
    test_skip("no sparse file of %llu bytes in %s", (unsigned long long)end, path);
  } else {
    CHECK_OK(pte_open(&large, map.bytes, &err), err);
    CHECK_EQ(data_segment_offset(&large.data, last), end - tail.size);
    CHECK(memcmp(data_segment(&large.data, last).data, tail.data, tail.size) == 0);
    (void)walk_pte(&large);
    map.bytes.size--; /* one byte short of the end is noticed beyond 4 GB, too */
    CHECK_FAILS(pte_open(&large, map.bytes, &err), SCONCE_BAD_FILE, err, "the file has 53687");
    map.bytes.size++;
  }
  os_map_close(&map);
  unlink(path);
}

const struct test suite_pte[] = {
    TEST(reads_methods_and_constant_methods),
    TEST(reads_values_of_every_kind),
    TEST(reads_constants_and_initial_values),
    TEST(reads_instructions),
    TEST(operator_without_overload_has_no_dot),
    TEST(reads_delegates_in_segments_and_inline),
    TEST(finds_named_data_with_and_without_an_index),
    TEST(refuses_headers),
    TEST(refuses_segments),
    TEST(refuses_tensors),
    TEST(refuses_values),
    TEST(refuses_code),
    TEST(refuses_a_key_twice),
    TEST(errors_may_go_unheard),
    TEST(survives_flips_and_cuts_of_a_delegated_program),
    TEST(survives_flips_and_cuts_of_a_portable_program),
    TEST(survives_flips_and_cuts_of_a_program_with_jumps),
    TEST(survives_flips_and_cuts_of_a_graph),
    TEST(survives_flips_and_cuts_of_a_data_file),
    TEST(opens_a_file_of_more_than_4_gigabytes),
    {0},
};
