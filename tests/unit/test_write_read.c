/* Writer and readers against each other: what was written reads back as what was said. */
#include "harness.h"

#include "examples.h"
#include "format/ptd.h"
#include "walk.h"

static void every_example_is_accepted(void) {
  for (const struct example *e = examples; e->name; e++) {
    struct arena arena;
    arena_init(&arena, NULL);
    sconce_error err = {0};
    CHECK_SAYS(walk_file(example_bytes(&arena, e->name), &err) == SCONCE_OK, "%s: %s", e->name,
               err.text);
    arena_free(&arena);
  }
}

static void values_read_back(void) {
  struct arena arena;
  arena_init(&arena, NULL);
  sconce_error err = {0};
  struct pte pte;
  struct pte_method m;
  REQUIRE_OK(pte_open(&pte, extent_of(example_bytes(&arena, "values.pte")), &err), err);
  REQUIRE(pte_find_method(&pte, text_of("forward"), &m));
  static const enum pte_kind kinds[] = {
      PTE_INT,         PTE_NULL,      PTE_BOOL,        PTE_DOUBLE,
      PTE_STRING,      PTE_TENSOR,    PTE_TENSOR,      PTE_INT_LIST,
      PTE_DOUBLE_LIST, PTE_BOOL_LIST, PTE_TENSOR_LIST, PTE_OPTIONAL_TENSOR_LIST,
  };
  REQUIRE(m.n_values == sizeof kinds / sizeof *kinds);
  for (uint32_t i = 0; i < m.n_values; i++) CHECK_EQ(pte_value_kind(&m, i), kinds[i]);
  CHECK(pte_value(&m, 0).i == INT64_MIN);
  CHECK(pte_value(&m, 2).b);
  CHECK_NEAR(pte_value(&m, 3).d, -0.5, 0);
  CHECK(text_is(pte_value(&m, 4).text, "ω"));
  struct pte_tensor t = pte_value(&m, 5).tensor;
  CHECK_EQ(t.shape.rank, 4);
  CHECK_EQ(t.shape.sizes[3], 5);
  CHECK_EQ(t.shape.dim_order[1], 2);
  CHECK_EQ(t.dynamism, PTE_DYNAMIC_BOUND);
  CHECK_EQ(t.memory_offset, (4ll << 32) + 16);
  CHECK_EQ(pte_value(&m, 6).tensor.shape.rank, 0);
  struct pte_value optional = pte_value(&m, 11);
  CHECK_EQ(pte_list_item(&optional, 0), -1);
  CHECK_EQ(pte_list_item(&optional, 2), 5);
  CHECK_EQ(m.n_chains, 2);
  CHECK_EQ(pte_instruction(&m, 0, 0).kind, PTE_FREE_CALL);
  arena_free(&arena);
}

static void instructions_read_back(void) {
  struct arena arena;
  arena_init(&arena, NULL);
  sconce_error err = {0};
  struct pte pte;
  REQUIRE_OK(pte_open(&pte, extent_of(example_bytes(&arena, "branch.pte")), &err), err);
  struct pte_method m = pte_method(&pte, 0);
  REQUIRE(pte_n_instructions(&m, 0) == 7);
  struct pte_instruction jump = pte_instruction(&m, 0, 3), move = pte_instruction(&m, 0, 6);
  CHECK_EQ(jump.kind, PTE_JUMP_FALSE_CALL);
  CHECK_EQ(jump.destination, 7);
  CHECK_EQ(move.kind, PTE_MOVE_CALL);
  CHECK_EQ(move.value, 2);
  CHECK_EQ(move.to, 4);
  char name[PTE_OPERATOR_SIZE];
  CHECK_TEXT(pte_operator_text(&m, pte_instruction(&m, 0, 1).index, name), "aten::add.out");
  arena_free(&arena);
}

/* Constants in a segment, inline, and as the start of mutable memory; each is value 0. */
static void constants_read_back(void) {
  static const char *const files[] = {"segment.pte", "legacy.pte", "mutable.pte"};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    struct arena arena;
    arena_init(&arena, NULL);
    sconce_error err = {0};
    struct pte pte;
    struct extent bytes = {0};
    REQUIRE_OK(pte_open(&pte, extent_of(example_bytes(&arena, files[i])), &err), err);
    struct pte_method m = pte_method(&pte, 0);
    struct pte_tensor t = pte_value(&m, 0).tensor;
    CHECK(pte_tensor_bytes(&pte, &t, &bytes));
    CHECK_EQ(bytes.size, 24);
    float last = 0;
    if (bytes.size == 24) memcpy(&last, bytes.data + 20, 4);
    CHECK_NEAR(last, 6, 0);
    arena_free(&arena);
  }
}

static void data_files_read_back(void) {
  struct arena arena;
  arena_init(&arena, NULL);
  sconce_error err = {0};
  struct pte pte;
  struct ptd ptd;
  REQUIRE_OK(pte_open(&pte, extent_of(example_bytes(&arena, "external.pte")), &err), err);
  REQUIRE_OK(ptd_open(&ptd, extent_of(example_bytes(&arena, "external.ptd")), &err), err);
  CHECK_OK(ptd_set_match(&(struct ptd_set){&ptd, 1}, &pte, &err), err);
  struct ptd_entry entry;
  REQUIRE(ptd_find(&(struct ptd_set){&ptd, 1}, text_of("blob"), &entry));
  CHECK(!entry.has_layout && entry.bytes.size == 6);
  arena_free(&arena);
}

static void check_graph(const struct vkgraph *g) {
  static const enum vk_kind kinds[] = {
      VK_TENSOR,      VK_TENSOR,    VK_TENSOR,   VK_INT,     VK_TENSOR,     VK_TENSOR,
      VK_TENSOR,      VK_NULL,      VK_DOUBLE,   VK_BOOLEAN, VK_STRING,     VK_INT_LIST,
      VK_DOUBLE_LIST, VK_BOOL_LIST, VK_INT_LIST, VK_SYMINT,  VK_VALUE_LIST, VK_TENSOR,
  };
  REQUIRE(g->n_values == sizeof kinds / sizeof *kinds);
  for (uint32_t i = 0; i < g->n_values; i++) CHECK_EQ(vkgraph_kind(g, i), kinds[i]);
  struct extent bytes = {0};
  struct vk_tensor weight = vkgraph_value(g, 1).tensor, tail = vkgraph_value(g, 5).tensor;
  CHECK(vkgraph_tensor_bytes(g, &weight, &bytes) && bytes.size == 24);
  CHECK(vkgraph_tensor_bytes(g, &tail, &bytes) && bytes.size == 3 && bytes.data[2] == 3);
  struct vk_tensor sum = vkgraph_value(g, 4).tensor;
  CHECK_EQ(sum.mem_obj_id, 0);
  CHECK_EQ(sum.staging, VK_FLOAT32);
  CHECK_EQ(sum.dims[1], 3);
  REQUIRE(g->n_calls == 2);
  CHECK(text_is(vkgraph_call(g, 1).name, "aten.add.Tensor"));
  CHECK_EQ(vkgraph_call(g, 1).args.n, 4);
}

static void graphs_read_back(void) {
  static const char *const files[] = {"delegate.pte", "delegate_inline.pte"};
  for (size_t i = 0; i < 2; i++) {
    struct arena arena;
    arena_init(&arena, NULL);
    sconce_error err = {0};
    struct pte pte;
    struct vkgraph g;
    REQUIRE_OK(pte_open(&pte, extent_of(example_bytes(&arena, files[i])), &err), err);
    struct pte_method m = pte_method(&pte, 0);
    struct pte_delegate d = pte_delegate(&m, 0);
    CHECK(text_is(d.id, VK_BACKEND_ID));
    CHECK_EQ(d.blob.offset % 16, 0);
    REQUIRE_OK(vkgraph_open(&g, d.blob, (struct data_lookup){pte_lookup, &pte}, &err), err);
    check_graph(&g);
    if (i == 0) CHECK(text_is(pte_delegate_spec(&d, 0).key, "require_dynamic_shapes"));
    arena_free(&arena);
  }
}

const struct test suite_write_read[] = {
    TEST(every_example_is_accepted),
    TEST(values_read_back),
    TEST(instructions_read_back),
    TEST(constants_read_back),
    TEST(data_files_read_back),
    TEST(graphs_read_back),
    {0},
};
