/* Examples: see examples.h. tools/export/check_written.py knows each by its name: change both. */
#include "examples.h"

#include "harness.h"

static const int32_t dims_2x3[] = {2, 3};
static const float ramp[] = {1, 2, 3, 4, 5, 6};

/* A float [2, 3] tensor in planned memory. */
static int32_t planned(struct write_pte *w, int32_t memory_id, uint64_t offset) {
  return write_pte_tensor(w, &(struct write_pte_tensor){.scalar_type = SCALAR_FLOAT,
                                                        .sizes = dims_2x3,
                                                        .rank = 2,
                                                        .memory_id = (uint32_t)memory_id,
                                                        .memory_offset = offset});
}

/* out = a + b, as one portable kernel: the out argument comes twice. */
static void add_kernel(struct write_pte *w, int32_t op, int32_t a, int32_t b, int32_t out) {
  int32_t alpha = write_pte_value(w, literal_int(1));
  write_pte_call_kernel(w, op, ID_LIST(a, b, alpha, out, out));
}

/* forward(x) = x + other, where `other` was added by the caller after the method began. */
static void add_to(struct write_pte *w, int32_t other) {
  int32_t memory = write_pte_buffer(w, 64);
  int32_t x = planned(w, memory, 0), out = planned(w, memory, 32);
  write_pte_inputs(w, ID_LIST(x));
  write_pte_outputs(w, ID_LIST(out));
  add_kernel(w, write_pte_operator(w, "aten::add", "out"), x, other, out);
}

/* No segment data, hence no header. */
static sconce_status build_add(struct arena *arena, struct write_blob *out, sconce_error *err) {
  struct write_pte w;
  write_pte_init(&w, arena);
  write_pte_method(&w, "forward");
  int32_t memory = write_pte_buffer(&w, 96);
  int32_t x = planned(&w, memory, 0), y = planned(&w, memory, 32), sum = planned(&w, memory, 64);
  write_pte_inputs(&w, ID_LIST(x, y));
  write_pte_outputs(&w, ID_LIST(sum));
  add_kernel(&w, write_pte_operator(&w, "aten::add", "out"), x, y, sum);
  return write_pte_finish(&w, out, err);
}

static sconce_status build_constants(struct arena *arena, bool constants_inline,
                                     struct write_blob *out, sconce_error *err) {
  static const float unused = -1;
  struct write_pte w;
  write_pte_init(&w, arena);
  w.constants_inline = constants_inline;
  write_pte_constant(&w, write_bytes(&unused, sizeof unused)); /* so that the next is padded */
  int32_t bytes = write_pte_constant(&w, write_bytes(ramp, sizeof ramp));
  write_pte_method(&w, "forward");
  int32_t c = write_pte_tensor(
      &w, &(struct write_pte_tensor){
              .scalar_type = SCALAR_FLOAT, .sizes = dims_2x3, .rank = 2, .data_buffer_idx = bytes});
  add_to(&w, c);
  write_pte_constant_method(&w, "get_max_seq_len", (struct literal[]){literal_int(128)}, 1);
  write_pte_constant_method(&w, "use_kv_cache", (struct literal[]){literal_bool(true)}, 1);
  write_pte_constant_method(&w, "get_eos_ids", (struct literal[]){literal_int(2), literal_int(7)},
                            2);
  write_pte_constant_method(&w, "get_scale", (struct literal[]){literal_double(0.25)}, 1);
  return write_pte_finish(&w, out, err);
}

static sconce_status build_segment(struct arena *arena, struct write_blob *out, sconce_error *err) {
  return build_constants(arena, false, out, err);
}

static sconce_status build_legacy(struct arena *arena, struct write_blob *out, sconce_error *err) {
  return build_constants(arena, true, out, err);
}

/* Planned memory with an initial value. */
static sconce_status build_mutable(struct arena *arena, struct write_blob *out, sconce_error *err) {
  struct write_pte w;
  write_pte_init(&w, arena);
  int32_t bytes = write_pte_mutable(&w, write_bytes(ramp, sizeof ramp));
  write_pte_method(&w, "forward");
  int32_t own = write_pte_buffer(&w, 32);
  int32_t state = write_pte_tensor(&w, &(struct write_pte_tensor){.scalar_type = SCALAR_FLOAT,
                                                                  .sizes = dims_2x3,
                                                                  .rank = 2,
                                                                  .data_buffer_idx = bytes,
                                                                  .memory_id = (uint32_t)own});
  add_to(&w, state);
  return write_pte_finish(&w, out, err);
}

/* forward(x, flag) = flag ? x + x : x + x + x, with both kinds of jump. */
static sconce_status build_branch(struct arena *arena, struct write_blob *out, sconce_error *err) {
  struct write_pte w;
  write_pte_init(&w, arena);
  write_pte_method(&w, "forward");
  int32_t memory = write_pte_buffer(&w, 128);
  int32_t x = planned(&w, memory, 0), two = planned(&w, memory, 32),
          three = planned(&w, memory, 64);
  static const int32_t one[] = {1};
  int32_t flag = write_pte_tensor(&w, &(struct write_pte_tensor){.scalar_type = SCALAR_BOOL,
                                                                 .sizes = one,
                                                                 .rank = 1,
                                                                 .memory_id = (uint32_t)memory,
                                                                 .memory_offset = 96});
  int32_t result = planned(&w, 0, 0), never = write_pte_value(&w, literal_bool(false));
  write_pte_inputs(&w, ID_LIST(x, flag));
  write_pte_outputs(&w, ID_LIST(result));
  int32_t add = write_pte_operator(&w, "aten::add", "out");
  write_pte_jump_false(&w, flag, 4);  /* 0 */
  add_kernel(&w, add, x, x, two);     /* 1 */
  write_pte_move(&w, two, result);    /* 2 */
  write_pte_jump_false(&w, never, 7); /* 3 */
  add_kernel(&w, add, x, x, two);     /* 4 */
  add_kernel(&w, add, two, x, three); /* 5 */
  write_pte_move(&w, three, result);  /* 6 */
  return write_pte_finish(&w, out, err);
}

/* Weights in external.ptd. */
static sconce_status build_external(struct arena *arena, struct write_blob *out,
                                    sconce_error *err) {
  struct write_pte w;
  write_pte_init(&w, arena);
  write_pte_method(&w, "forward");
  int32_t weight = write_pte_tensor(&w, &(struct write_pte_tensor){.scalar_type = SCALAR_FLOAT,
                                                                   .external = true,
                                                                   .sizes = dims_2x3,
                                                                   .rank = 2,
                                                                   .fully_qualified_name = "ramp"});
  add_to(&w, weight);
  return write_pte_finish(&w, out, err);
}

static sconce_status build_ptd(struct arena *arena, struct write_blob *out, sconce_error *err) {
  struct write_ptd w;
  write_ptd_init(&w, arena);
  int32_t first = write_ptd_segment(&w, write_bytes("opaque", 6));
  int32_t second = write_ptd_segment(&w, write_bytes(ramp, sizeof ramp));
  write_ptd_named(&w, "blob", first, NULL);
  struct write_ptd_layout layout = {SCALAR_FLOAT, dims_2x3, 2, NULL};
  write_ptd_named(&w, "ramp", second, &layout);
  write_ptd_named(&w, "ramp again", second, &layout);
  return write_ptd_finish(&w, out, err);
}

/* Every kind of value, unused; instructions that only this writer makes. */
static sconce_status build_values(struct arena *arena, struct write_blob *out, sconce_error *err) {
  struct write_pte w;
  write_pte_init(&w, arena);
  write_pte_method(&w, "forward");
  int32_t size = write_pte_value(&w, literal_int(INT64_MIN));
  int32_t none = write_pte_value(&w, literal_null());
  write_pte_value(&w, literal_bool(true));
  write_pte_value(&w, literal_double(-0.5));
  write_pte_value(&w, literal_string("ω"));
  static const int32_t sizes[] = {2, 3, 4, 5};
  static const uint8_t channels_last[] = {0, 2, 3, 1};
  int32_t tensor = write_pte_tensor(
      &w, &(struct write_pte_tensor){.scalar_type = SCALAR_HALF,
                                     .dynamism = PTE_DYNAMIC_BOUND,
                                     .sizes = sizes,
                                     .rank = 4,
                                     .dim_order = channels_last,
                                     .memory_id = (uint32_t)write_pte_buffer(&w, 5ll << 32),
                                     .memory_offset = (4ull << 32) + 16});
  int32_t scalar = write_pte_tensor(&w, &(struct write_pte_tensor){.scalar_type = SCALAR_LONG});
  write_pte_value(&w, literal_ints((const int64_t[]){size, size}, 2));
  write_pte_value(&w, literal_doubles((const double[]){1.5, -2}, 2));
  write_pte_value(&w, literal_bools((const bool[]){true, false, true}, 3));
  write_pte_value(&w, literal_values(ID_LIST(tensor, scalar)));
  write_pte_value(&w, literal_optional_values(ID_LIST(-1, none, tensor)));
  write_pte_outputs(&w, ID_LIST(size));
  write_pte_free(&w, tensor);
  write_pte_chain(&w);
  return write_pte_finish(&w, out, err);
}

/* ---- delegates ------------------------------------------------------------------------------- */

#define NAMED_KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

sconce_status example_graph(struct arena *arena, struct write_blob *out, sconce_error *err) {
  struct write_vk g;
  write_vk_init(&g, arena);
  int32_t x = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(2, 3));
  int32_t named = write_vk_named(&g, NAMED_KEY, sizeof ramp);
  int32_t weight = write_vk_constant(&g, VK_FLOAT32, DIM_LIST(2, 3), named);
  int32_t packed = write_vk_tensor(&g, VK_FLOAT32, DIM_LIST(2, 3));
  int32_t one = write_vk_value(&g, literal_int(1));
  int32_t sum =
      write_vk_tensor_as(&g, &(struct write_vk_tensor){.datatype = VK_FLOAT32,
                                                       .storage_type = VK_STORAGE_BUFFER,
                                                       .memory_layout = VK_LAYOUT_WIDTH_PACKED,
                                                       .staging_datatype = VK_FLOAT32,
                                                       .constant_id = -1,
                                                       .mem_obj_id = 0,
                                                       .dims = dims_2x3,
                                                       .rank = 2});
  int32_t bytes = write_vk_inline(&g, write_bytes("\1\2\3", 3));
  write_vk_constant(&g, VK_UINT8, DIM_LIST(3), bytes);
  write_vk_constant(&g, VK_FLOAT16, DIM_LIST(0), write_vk_inline(&g, write_zeros(0)));
  write_vk_value(&g, literal_null());
  write_vk_value(&g, literal_double(1e-6));
  write_vk_value(&g, literal_bool(true));
  write_vk_value(&g, literal_string("none"));
  write_vk_value(&g, literal_ints((const int64_t[]){-1, INT64_MAX}, 2));
  write_vk_value(&g, literal_doubles((const double[]){0.1}, 1));
  write_vk_value(&g, literal_bools((const bool[]){false, true}, 2));
  write_vk_value(&g, literal_ints(NULL, 0));
  int32_t live = write_vk_value(&g, literal_symint(0));
  write_vk_value(&g, literal_values(ID_LIST(one, live)));
  write_vk_tensor(&g, VK_INT32, NULL, 0);
  write_vk_call(&g, "et_vk.prepack.default", ID_LIST(weight, packed));
  write_vk_call(&g, "aten.add.Tensor", ID_LIST(x, packed, one, sum));
  write_vk_inputs(&g, ID_LIST(x));
  write_vk_outputs(&g, ID_LIST(sum));
  return write_vk_finish(&g, out, err);
}

static const struct write_pte_tensor delegate_io[] = {
    {.scalar_type = SCALAR_FLOAT, .dynamism = PTE_DYNAMIC_BOUND, .sizes = dims_2x3, .rank = 2},
    {.scalar_type = SCALAR_FLOAT, .dynamism = PTE_DYNAMIC_BOUND, .sizes = dims_2x3, .rank = 2},
};

static sconce_status build_delegate(struct arena *arena, struct write_blob *out,
                                    sconce_error *err) {
  struct write_blob graph;
  TRY(example_graph(arena, &graph, err));
  struct write_pte w;
  write_pte_init(&w, arena);
  write_pte_delegated(&w, "forward", &graph, delegate_io, 1, 1);
  write_pte_compile_spec(&w, "require_dynamic_shapes", "\1", 1);
  write_pte_constant_method(&w, "get_max_seq_len", (struct literal[]){literal_int(2)}, 1);
  int32_t segment = write_pte_named_data(&w, NAMED_KEY, write_bytes(ramp, sizeof ramp));
  write_pte_named(&w, "another name", segment);
  return write_pte_finish(&w, out, err);
}

static sconce_status build_delegate_inline(struct arena *arena, struct write_blob *out,
                                           sconce_error *err) {
  struct write_blob graph;
  TRY(example_graph(arena, &graph, err));
  struct write_pte w;
  write_pte_init(&w, arena);
  write_pte_method(&w, "forward");
  int32_t memory = write_pte_buffer(&w, 64);
  int32_t x = planned(&w, memory, 0), y = planned(&w, memory, 32);
  write_pte_inputs(&w, ID_LIST(x));
  write_pte_outputs(&w, ID_LIST(y));
  int32_t delegate = write_pte_delegate_inline(&w, VK_BACKEND_ID, &graph);
  write_pte_call_delegate(&w, delegate, ID_LIST(x, y));
  write_pte_named_data(&w, NAMED_KEY, write_bytes(ramp, sizeof ramp));
  return write_pte_finish(&w, out, err);
}

/* ---- by handles ------------------------------------------------------------------------------ */

#define CACHE SCONCE_DIMS(1, 4, 1, 2)

/* The rows of x go into the cache in place, from row `at` on. */
static void write_put(sconce_writer *w, int32_t buffer) {
  sconce_graph *g = sconce_writer_graph(w);
  const int32_t x = sconce_graph_tensor(g, SCONCE_FLOAT32, CACHE);
  const int32_t at = sconce_graph_tensor(g, SCONCE_INT64, SCONCE_DIMS(1));
  const int32_t start = sconce_graph_symint(g), cache = sconce_graph_buffer(g, buffer);
  const int32_t zero = sconce_graph_int(g, 0);
  const int32_t nothing = sconce_graph_tensor(g, SCONCE_FLOAT32, SCONCE_DIMS(1));
  const int32_t y = sconce_graph_tensor(g, SCONCE_FLOAT32, CACHE);
  sconce_graph_input(g, x, true);
  sconce_graph_input(g, at, false);
  sconce_graph_call(g, "et_vk.select_as_symint.default", SCONCE_IDS(at, zero, zero, start));
  sconce_graph_call(g, "llama.update_cache.default", SCONCE_IDS(x, cache, start, nothing));
  sconce_graph_call(g, "aten.relu.default", SCONCE_IDS(x, y));
  sconce_graph_output(g, y, true);
  sconce_writer_method(w, "put", g);
}

/* The cache becomes cache + x, in another tensor first. */
static void write_add(sconce_writer *w, int32_t buffer) {
  sconce_graph *g = sconce_writer_graph(w);
  const int32_t x = sconce_graph_tensor(g, SCONCE_FLOAT32, CACHE);
  const int32_t cache = sconce_graph_buffer(g, buffer), one = sconce_graph_int(g, 1);
  const int32_t sum = sconce_graph_tensor(g, SCONCE_FLOAT32, CACHE);
  sconce_graph_input(g, x, false);
  sconce_graph_call(g, "aten.add.Tensor", SCONCE_IDS(cache, x, one, sum));
  sconce_graph_update(g, cache, sum);
  sconce_graph_output(g, sum, false);
  sconce_writer_method(w, "add", g);
}

/* The cache times the weight that is in a data file. */
static void write_read(sconce_writer *w, int32_t buffer) {
  sconce_graph *g = sconce_writer_graph(w);
  const int32_t cache = sconce_graph_buffer(g, buffer);
  const int32_t weight = sconce_graph_constant(g, SCONCE_FLOAT32, SCONCE_DIMS(2), "weight");
  const int32_t y = sconce_graph_tensor(g, SCONCE_FLOAT32, CACHE);
  sconce_graph_call(g, "aten.mul.Tensor", SCONCE_IDS(cache, weight, y));
  sconce_graph_output(g, y, false);
  sconce_writer_method(w, "read", g);
}

/* Columns 0 and 1, the others, and how many rows there are. */
static void write_parts(sconce_writer *w) {
  static const int64_t sizes[] = {2, 4};
  sconce_graph *g = sconce_writer_graph(w);
  const int32_t x = sconce_graph_tensor(g, SCONCE_INT64, SCONCE_DIMS(4, 6));
  const int32_t two = sconce_graph_tensor(g, SCONCE_INT64, SCONCE_DIMS(4, 2));
  const int32_t four = sconce_graph_tensor(g, SCONCE_INT64, SCONCE_DIMS(4, 4));
  const int32_t both = sconce_graph_values(g, SCONCE_IDS(two, four));
  const int32_t rows = sconce_graph_symint(g);
  const int32_t by = sconce_graph_ints(g, sizes, 2);
  const int32_t zero = sconce_graph_int(g, 0), one = sconce_graph_int(g, 1);
  sconce_graph_input(g, x, true);
  sconce_graph_call(g, "aten.split_with_sizes_copy.default", SCONCE_IDS(x, by, one, both));
  sconce_graph_call(g, "sym_size.int", SCONCE_IDS(x, zero, rows));
  sconce_graph_output(g, two, true);
  sconce_graph_output(g, four, true);
  sconce_graph_output(g, rows, false);
  sconce_writer_method(w, "parts", g);
}

static sconce_status make_weight(void *user, sconce_sink *sink, sconce_error *err) {
  (void)user, (void)err;
  TRY(sconce_sink_put(sink, ramp + 1, 4));
  return sconce_sink_put(sink, ramp + 2, 4);
}

sconce_status example_written(const char *pte, const char *ptd, sconce_error *err) {
  static const float begin[8] = {1, 1, 2, 2, 3, 3, 4, 4};
  static const int64_t ends[] = {2, 7};
  static const double scale = 0.25;
  const sconce_bytes initial = {.size = sizeof begin, .data = begin};
  const sconce_bytes weight = {.size = 8, .make = make_weight};
  sconce_writer *w = NULL, *data = NULL;
  sconce_status status = sconce_writer_open(&w, NULL, err);
  if (status == SCONCE_OK) status = sconce_writer_open(&data, NULL, err);
  const int32_t buffer = sconce_writer_buffer(w, SCONCE_FLOAT32, CACHE, &initial);
  write_put(w, buffer);
  write_add(w, buffer);
  write_read(w, buffer);
  write_parts(w);
  sconce_writer_ints(w, "get_eos_ids", ends, 2);
  sconce_writer_doubles(w, "get_scale", &scale, 1);
  sconce_writer_bool(w, "use_kv_cache", true);
  sconce_writer_data(data, "weight", &weight);
  if (status == SCONCE_OK) status = sconce_writer_save(w, pte, err);
  if (status == SCONCE_OK) status = sconce_writer_save_data(data, ptd, err);
  sconce_writer_close(w);
  sconce_writer_close(data);
  return status;
}

const struct example examples[] = {
    {"add.pte", build_add},
    {"segment.pte", build_segment},
    {"legacy.pte", build_legacy},
    {"mutable.pte", build_mutable},
    {"branch.pte", build_branch},
    {"external.pte", build_external},
    {"external.ptd", build_ptd},
    {"values.pte", build_values},
    {"delegate.pte", build_delegate},
    {"delegate_inline.pte", build_delegate_inline},
    {0},
};

struct span example_bytes(struct arena *arena, const char *name) {
  sconce_error err = {0};
  struct write_blob blob;
  struct span bytes = {0};
  const struct example *e = examples;
  while (e->name && strcmp(e->name, name) != 0) e++;
  if (!e->name) {
    test_fail(__FILE__, __LINE__, "no example %s", name);
  } else if (e->build(arena, &blob, &err) != SCONCE_OK ||
             write_blob_to_memory(&blob, arena, &bytes, &err) != SCONCE_OK) {
    test_fail(__FILE__, __LINE__, "%s: %s", name, err.text);
  }
  return bytes;
}
