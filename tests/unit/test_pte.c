/* Programs: what real ones read as; test_pte_damage.c has what is refused. */
#include "edit.h"

#include "format/pte_read.h"

static struct edit_bytes bytes;
static struct pte pte;

static bool open_real(const char *file) {
  sconce_error err = {0};
  free(bytes.data);
  bytes = edit_load(EDIT_PTE, file);
  CHECK_OK(pte_open(&pte, extent_of((struct span){bytes.data, bytes.size}), &err), err);
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

static void reads_what_no_exporter_writes(void) {
  REQUIRE(open_real("every_kind.pte"));
  struct pte_method m = pte_method(&pte, 0);
  uint32_t first = m.n_values - 5, n = pte_n_instructions(&m, 0);
  CHECK(!pte.has_header);
  CHECK_EQ(pte_value(&m, first).kind, PTE_NULL);
  CHECK(text_is(pte_value(&m, first + 1).text, "mode"));
  CHECK_NEAR(fb_f64_at(pte_value(&m, first + 2).items, 1), -2.0, 0);
  CHECK(fb_bool_at(pte_value(&m, first + 3).items, 0));
  CHECK(!fb_bool_at(pte_value(&m, first + 3).items, 1));
  CHECK_EQ(pte_instruction(&m, 0, n - 1).kind, PTE_FREE_CALL);
  CHECK_EQ(pte_instruction(&m, 0, n - 1).value, 10);
  CHECK_EQ(pte_instruction(&m, 0, n - 3).destination, n);
  CHECK_EQ(pte_instruction(&m, 0, n - 4).kind, PTE_DELEGATE_CALL);
}

static void reads_legacy_inline_constants(void) {
  REQUIRE(open_real("every_kind.pte"));
  struct pte_method m = pte_method(&pte, 0);
  struct pte_value table = pte_value(&m, 1);
  struct extent data;
  float f;
  CHECK(pte.constant_buffer.n > 0 && pte.constant_offsets.n == 0);
  REQUIRE(pte_tensor_bytes(&pte, &table.tensor, &data));
  CHECK_EQ(data.size, 48);
  memcpy(&f, data.data + 44, 4);
  CHECK_NEAR(f, 11, 0);
}

static void reads_constants_and_initial_values(void) {
  REQUIRE(open_real("portable.pte"));
  struct pte_method m = pte_method(&pte, 0);
  struct pte_value state = pte_value(&m, 0), table = pte_value(&m, 1), input = pte_value(&m, 3);
  struct extent data;
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
    CHECK(vkgraph_probe(extent_held(d.blob)));
    CHECK(memcmp(bytes.data + d.blob.offset, d.blob.data, d.blob.size) == 0);
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

/* ---- refusals ----------------------------------------------------------------------------------
 */

static void refuses_a_key_twice(void) {
  REQUIRE(open_real("delegated.pte"));
  sconce_error err = {0};
  struct text first = data_key(&pte.data, 0), second = data_key(&pte.data, 2);
  memcpy((void *)(uintptr_t)second.data, first.data, first.size);
  CHECK_FAILS(pte_open(&pte, extent_of((struct span){bytes.data, bytes.size}), &err),
              SCONCE_BAD_FILE, err, "names data 0 and 2");
  CHECK(pte.data.file.data == NULL); /* nothing to use by mistake */
}

/* Thousands of methods whose delegates share one blob: verifying each would take hours for a large
 * one. The list of methods is put in front of a real file, all its offsets lead to one plan. */
static void refuses_delegates_that_share_too_much(void) {
  enum { N = 2000 };
  REQUIRE(open_real("every_kind.pte"));
  struct edit_bytes b = {malloc(4 * N + bytes.size), 4 * N + bytes.size};
  memcpy(b.data + 4 * N, bytes.data, bytes.size);
  sconce_error err = {0};
  REQUIRE_OK(pte_open(&pte, extent_of((struct span){b.data + 4 * N, bytes.size}), &err), err);
  const uint8_t *plan = pte_method(&pte, 0).plan.at;
  for (uint32_t i = 0; i < N; i++) {
    uint32_t offset = (uint32_t)(plan - (b.data + 4 * i));
    memcpy(b.data + 4 * i, &offset, 4);
  }
  pte.plans = (struct fb_vec){b.data, N};
  pte.n_methods = N;
  CHECK_FAILS(pte_verify(&pte, &err), SCONCE_BAD_FILE, err, "more than 256 times over");
  free(b.data);
}

static void errors_may_go_unheard(void) {
  REQUIRE(open_real("delegated.pte"));
  bytes.data[5] = 0;
  CHECK_EQ(pte_open(&pte, extent_of((struct span){bytes.data, bytes.size}), NULL), SCONCE_BAD_FILE);
  CHECK_EQ(pte_open(&pte, extent_of((struct span){0}), NULL), SCONCE_BAD_FILE);
}

const struct test suite_pte[] = {
    TEST(reads_methods_and_constant_methods),
    TEST(reads_values_of_every_kind),
    TEST(reads_what_no_exporter_writes),
    TEST(reads_legacy_inline_constants),
    TEST(reads_constants_and_initial_values),
    TEST(reads_instructions),
    TEST(operator_without_overload_has_no_dot),
    TEST(reads_delegates_in_segments_and_inline),
    TEST(finds_named_data_with_and_without_an_index),
    TEST(refuses_a_key_twice),
    TEST(refuses_delegates_that_share_too_much),
    TEST(errors_may_go_unheard),
    {0},
};
