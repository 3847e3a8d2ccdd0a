/* Passes over graphs, without a device: what becomes one node, what may not, and where joined
 * constants lie. */
#include "built.h"
#include "graph/rewrite.h"
#include "sconce.h"

enum { M = 4, K = 64, GROUP = 32, HEAD = 8, TOKENS = 16, HEADS = 8 };

static uint32_t constant(struct built *b, enum vk_dtype dtype, const uint32_t *dims,
                         uint32_t rank) {
  void *zeros;
  return op_constant_of(&b->t, dtype, dims, rank, &zeros);
}

static uint32_t null(struct built *b) { return op_null(&b->t); }

static sconce_status finish(struct built *b, const char *off) {
  b->t.graph.passes_off = off;
  return graph_finish(&b->t.graph, &b->err);
}

static uint32_t count(const struct built *b, const char *name) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < b->t.graph.n_nodes; i++) n += !strcmp(b->t.graph.nodes[i].name, name);
  return n;
}

/* ---- pieces of a model ----------------------------------------------------------------------- */

static uint32_t linear_with(struct built *b, uint32_t x, uint32_t w, uint32_t n) {
  const struct tensor *t = &b->t.graph.values[x].tensor;
  uint32_t scales = constant(b, VK_FLOAT32, DIMS(2 * t->dim_max[t->rank - 1] / K, n));
  uint32_t y = tensor(b, DIMS(M, n));
  return NODE("et_vk.linear_q4gsw.default", x, w, scales, number(b, GROUP), null(b), y);
}

static uint32_t linear(struct built *b, uint32_t x, uint32_t n) {
  return linear_with(b, x, constant(b, VK_UINT8, DIMS(n, K / 2)), n);
}

static uint32_t norm(struct built *b, uint32_t x) {
  uint32_t w = constant(b, VK_FLOAT32, DIMS(K)), eps = null(b), y = tensor(b, DIMS(M, K));
  return NODE("et_vk.rms_norm.default", x, w, eps, y);
}

static uint32_t relu(struct built *b, uint32_t x) {
  const struct tensor *t = &b->t.graph.values[x].tensor;
  uint32_t dims[RANK_MAX];
  memcpy(dims, t->dim_max, sizeof dims);
  uint32_t y = tensor(b, dims, t->rank);
  return NODE("aten.relu.default", x, y);
}

static uint32_t add(struct built *b, uint32_t x, uint32_t y) {
  uint32_t z = tensor(b, DIMS(M, K));
  return NODE("aten.add.Tensor", x, y, number(b, 1), z);
}

static uint32_t mul(struct built *b, uint32_t x, uint32_t y) {
  uint32_t z = tensor(b, DIMS(M, K));
  return NODE("aten.mul.Tensor", x, y, z);
}

static uint32_t view(struct built *b, uint32_t x, const uint32_t *dims, uint32_t rank) {
  uint32_t sizes[RANK_MAX];
  for (uint32_t i = 0; i < rank; i++) sizes[i] = number(b, dims[i]);
  uint32_t size = list(b, sizes, rank), y = tensor(b, dims, rank);
  return NODE("aten.view_copy.default", x, size, y);
}

static uint32_t swiglu(struct built *b, uint32_t x) {
  uint32_t gate = linear(b, x, K), up = linear(b, x, K), s = tensor(b, DIMS(M, K));
  NODE("aten.sigmoid.default", gate, s);
  return mul(b, mul(b, gate, s), up);
}

static uint32_t cache(struct built *b) {
  return constant(b, VK_FLOAT32, DIMS(1, TOKENS, HEADS, HEAD));
}

static uint32_t attention(struct built *b, uint32_t q, uint32_t k, uint32_t v) {
  uint32_t c = input(b, DIMS(M, HEAD / 2)), s = input(b, DIMS(M, HEAD / 2));
  uint32_t start = symint(b);
  uint32_t turned[2] = {tensor(b, DIMS(1, M, HEADS, HEAD)), tensor(b, DIMS(1, M, HEADS, HEAD))};
  uint32_t out = tensor(b, DIMS(1, M, HEADS, HEAD)), results = list(b, turned, 2);
  NODE("et_vk.apply_rotary_emb.default", q, k, c, s, results);
  uint32_t yes = graph_add_value(&b->t.graph, VK_BOOLEAN, &b->err);
  b->t.graph.values[yes].b = true;
  uint32_t caches[2] = {cache(b), cache(b)}, one = number(b, 1), zero = number(b, 0);
  uint32_t none = null(b);
  return NODE("sdpa_with_kv_cache.default", turned[0], turned[1], v, caches[0], caches[1], start,
              one, none, zero, yes, none, out);
}

/* ---- what becomes one node ------------------------------------------------------------------- */

/* A layer as exporters write it. */
static void layer(struct built *b) {
  uint32_t x = input(b, DIMS(M, K)), h = norm(b, x);
  uint32_t q = linear(b, h, K), k = linear(b, h, K), v = linear(b, h, K);
  q = view(b, q, DIMS(1, M, HEADS, HEAD));
  k = view(b, k, DIMS(1, M, HEADS, HEAD));
  v = view(b, v, DIMS(1, M, HEADS, HEAD));
  uint32_t out = view(b, attention(b, q, k, v), DIMS(M, K));
  x = add(b, x, linear(b, out, K));
  make_output(b, add(b, linear(b, swiglu(b, norm(b, x)), K), x));
}

static void a_layer_becomes_a_few_nodes(void) {
  static const struct {
    const char *off;
    uint32_t nodes, linears, attentions, norms, adds;
  } rows[] = {
      {NULL, 9, 4, 1, 0, 0},
      {"", 9, 4, 1, 0, 0},
      {"all", 20, 0, 0, 2, 2},
      {"norm", 11, 4, 1, 2, 0},
      {"residual", 11, 2, 1, 0, 2},
      {"rotary", 10, 4, 0, 0, 0},
      {"norm,rotary", 12, 4, 0, 2, 0},
      {"join,swiglu,residual,norm", 19, 0, 1, 2, 2},
      {"join,swiglu,residual,norm,rotary", 20, 0, 0, 2, 2},
      {"rotary,all", 20, 0, 0, 2, 2},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct built *b = begin(&usual);
    layer(b);
    CHECK_EQ(b->t.graph.n_nodes, 20);
    CHECK_OK(finish(b, rows[i].off), b->err);
    if (b->t.graph.n_nodes != rows[i].nodes || count(b, "sconce.linear_q4") != rows[i].linears ||
        count(b, "sconce.attention_step") != rows[i].attentions ||
        count(b, "et_vk.rms_norm.default") != rows[i].norms ||
        count(b, "aten.add.Tensor") != rows[i].adds)
      test_fail(__FILE__, __LINE__, "without '%s': %u nodes, %u projections, %u attentions",
                rows[i].off ? rows[i].off : "", b->t.graph.n_nodes, count(b, "sconce.linear_q4"),
                count(b, "sconce.attention_step"));
    end(b);
  }
}

/* How far passes look is bounded, or loading a large file would take the square of its nodes. */
static void nodes_far_apart_stay_alone(void) {
  for (uint32_t between = FUSION_REACH - 1; between <= FUSION_REACH; between++) {
    struct built *b = begin(&usual);
    uint32_t x = input(b, DIMS(M, K)), other = input(b, DIMS(4));
    uint32_t first = linear(b, x, K);
    for (uint32_t i = 0; i < between; i++) other = relu(b, other);
    uint32_t second = linear(b, x, K);
    make_output(b, mul(b, first, second));
    make_output(b, other);
    CHECK_OK(finish(b, NULL), b->err);
    CHECK_EQ(count(b, "sconce.linear_q4"), between < FUSION_REACH ? 1 : 0);
    end(b);
  }
}

/* Every node of the file is there once, and parts are in its order. */
static void parts_keep_their_order(void) {
  struct built *b = begin(&usual);
  bool seen[32] = {false};
  layer(b);
  const uint32_t all = b->t.graph.n_nodes;
  CHECK_OK(finish(b, NULL), b->err);
  for (uint32_t i = 0; i < b->t.graph.n_nodes; i++) {
    const struct node *n = &b->t.graph.nodes[i];
    CHECK(n->op != NULL);
    for (uint32_t k = 0; k < (n->n_parts ? n->n_parts : 1); k++) {
      const struct node *part = n->n_parts ? &n->parts[k] : n;
      CHECK(part->order < all && !seen[part->order]);
      seen[part->order] = true;
      if (n->n_parts && k) CHECK(n->parts[k - 1].order < part->order);
      if (n->n_parts) CHECK(part_at(n, part->order) == part);
    }
    CHECK(part_at(n, NO_NODE) == NULL);
  }
  for (uint32_t i = 0; i < all; i++) CHECK(seen[i]);
  end(b);
}

/* ---- what may not ---------------------------------------------------------------------------- */

static void nothing_between(struct built *b) {
  uint32_t h = norm(b, input(b, DIMS(M, K)));
  make_output(b, linear(b, h, 8));
  make_output(b, linear(b, h, 16));
}

static void a_reader_of_x_between(struct built *b) {
  uint32_t x = input(b, DIMS(M, K)), h = norm(b, x);
  make_output(b, linear(b, h, 8));
  make_output(b, relu(b, x));
  make_output(b, linear(b, h, 16));
}

static void a_reader_of_a_result_between(struct built *b) {
  uint32_t h = norm(b, input(b, DIMS(M, K)));
  uint32_t y = linear(b, h, 8);
  make_output(b, relu(b, y));
  make_output(b, linear(b, h, 16));
}

static void a_result_that_the_other_needs(struct built *b) {
  uint32_t x = input(b, DIMS(M, K)), w = linear(b, x, K);
  make_output(b, linear(b, w, 8)); /* not of one x */
}

static void state_that_changes_between(struct built *b) {
  uint32_t state = constant(b, VK_FLOAT32, DIMS(1, M, 1, K)), new = input(b, DIMS(1, 1, 1, K));
  uint32_t w = constant(b, VK_FLOAT32, DIMS(K)), h = tensor(b, DIMS(1, M, 1, K));
  uint32_t dummy = tensor(b, DIMS(1));
  NODE("et_vk.rms_norm.default", state, w, null(b), h);
  NODE("update_cache.default", new, state, number(b, 0), dummy);
  make_output(b, linear(b, h, 8));
  make_output(b, linear(b, h, 16));
}

/* The view is of memory that will be written, so it is a copy: that stays as it was. */
static void a_copy_of_state_that_changes(struct built *b) {
  uint32_t state = constant(b, VK_FLOAT32, DIMS(1, M, 1, K)), new = input(b, DIMS(1, 1, 1, K));
  uint32_t h = norm(b, view(b, state, DIMS(M, K))), dummy = tensor(b, DIMS(1));
  NODE("update_cache.default", new, state, number(b, 0), dummy);
  make_output(b, linear(b, h, 8));
  make_output(b, linear(b, h, 16));
}

static void x_that_changes_between(struct built *b) {
  uint32_t state = constant(b, VK_FLOAT32, DIMS(1, M, 1, K)), new = input(b, DIMS(1, 1, 1, K));
  uint32_t dummy = tensor(b, DIMS(1));
  uint32_t y[2] = {tensor(b, DIMS(M, 8)), tensor(b, DIMS(M, 8))};
  for (int i = 0; i < 2; i++) {
    uint32_t w = constant(b, VK_UINT8, DIMS(8, K / 2)), s = constant(b, VK_FLOAT32, DIMS(2, 8));
    if (i) NODE("update_cache.default", new, state, number(b, 0), dummy);
    NODE("et_vk.linear_q4gsw.default", state, w, s, number(b, GROUP), null(b), y[i]);
    make_output(b, y[i]);
  }
}

static void one_weight_in_two_nodes(struct built *b) {
  uint32_t x = input(b, DIMS(M, K)), w = constant(b, VK_UINT8, DIMS(8, K / 2));
  make_output(b, linear_with(b, x, w, 8));
  make_output(b, linear_with(b, x, w, 8));
}

static void two_weights_of_the_same_bytes(struct built *b) {
  uint32_t x = input(b, DIMS(M, K)), w = constant(b, VK_UINT8, DIMS(8, K / 2));
  uint32_t same = constant(b, VK_UINT8, DIMS(8, K / 2));
  b->t.graph.values[same].tensor.bytes = b->t.graph.values[w].tensor.bytes;
  make_output(b, linear_with(b, x, w, 8));
  make_output(b, linear_with(b, x, same, 8));
}

static void a_weight_that_is_an_output(struct built *b) {
  uint32_t x = input(b, DIMS(M, K)), w = constant(b, VK_UINT8, DIMS(8, K / 2));
  make_output(b, w);
  make_output(b, linear_with(b, x, w, 8));
  make_output(b, linear(b, x, 8));
}

static void a_weight_that_is_an_input(struct built *b) {
  uint32_t x = input(b, DIMS(M, K)), w = op_tensor(&b->t, VK_UINT8, DIMS(8, K / 2));
  b->t.graph.values[w].tensor.input = true;
  b->t.inputs[b->t.graph.n_inputs++] = w;
  make_output(b, linear_with(b, x, w, 8));
  make_output(b, linear(b, x, 8));
}

static void a_residual_with_a_reader_between(struct built *b) {
  uint32_t x = input(b, DIMS(M, K)), y = linear(b, x, K);
  make_output(b, relu(b, y));
  make_output(b, add(b, x, y));
}

static void a_residual_that_is_its_own(struct built *b) {
  uint32_t y = linear(b, input(b, DIMS(M, K)), K);
  make_output(b, add(b, y, y));
}

static void a_product_of_one_projection(struct built *b) {
  uint32_t gate = linear(b, input(b, DIMS(M, K)), K), s = tensor(b, DIMS(M, K));
  NODE("aten.sigmoid.default", gate, s);
  make_output(b, mul(b, mul(b, gate, s), gate));
}

static void four_projections(struct built *b) {
  uint32_t h = norm(b, input(b, DIMS(M, K)));
  for (int i = 0; i < 4; i++) make_output(b, linear(b, h, 8));
}

static void a_turned_query_that_is_seen(struct built *b) {
  uint32_t q = input(b, DIMS(1, M, HEADS, HEAD)), v = input(b, DIMS(1, M, HEADS, HEAD));
  uint32_t out = attention(b, q, input(b, DIMS(1, M, HEADS, HEAD)), v);
  const struct node *rope = &b->t.graph.nodes[0];
  make_output(b, b->t.graph.values[out_id(rope)].list.ids[0]);
  make_output(b, out);
}

static void keys_that_are_values(struct built *b) {
  uint32_t q = input(b, DIMS(1, M, HEADS, HEAD)), k = input(b, DIMS(1, M, HEADS, HEAD));
  make_output(b, attention(b, q, k, k)); /* as they came: the kernel turns its own */
}

static void order_and_hazards(void) {
  static const struct {
    void (*make)(struct built *b);
    uint32_t nodes, fused;
    const char *why;
  } rows[] = {
      {nothing_between, 1, 1, "nothing between"},
      {a_reader_of_x_between, 2, 1, "a reader of x between"},
      {a_reader_of_a_result_between, 4, 0, "a reader of a result between"},
      {a_result_that_the_other_needs, 2, 0, "one needs the other"},
      {state_that_changes_between, 3, 1, "the norm's x changes before the projections"},
      {a_copy_of_state_that_changes, 3, 1, "a copy of state that changes"},
      {x_that_changes_between, 3, 0, "x changes between the projections"},
      {one_weight_in_two_nodes, 2, 0, "one weight in two nodes"},
      {two_weights_of_the_same_bytes, 2, 0, "two weights of the same bytes"},
      {a_weight_that_is_an_output, 2, 0, "a weight that is an output"},
      {a_weight_that_is_an_input, 2, 0, "a weight that is an input"},
      {a_residual_with_a_reader_between, 3, 0, "the residual's projection is read elsewhere"},
      {a_residual_that_is_its_own, 2, 0, "y + y"},
      {a_product_of_one_projection, 4, 0, "gate and up are one"},
      {four_projections, 3, 1, "three of four"},
      {a_turned_query_that_is_seen, 2, 0, "a turned query that is an output"},
      {keys_that_are_values, 1, 1, "keys that are values"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct built *b = begin(&usual);
    rows[i].make(b);
    CHECK_OK(finish(b, NULL), b->err);
    uint32_t fused = count(b, "sconce.linear_q4") + count(b, "sconce.attention_step");
    if (b->t.graph.n_nodes != rows[i].nodes || fused != rows[i].fused)
      test_fail(__FILE__, __LINE__, "%s: %u nodes, %u fused, want %u and %u", rows[i].why,
                b->t.graph.n_nodes, fused, rows[i].nodes, rows[i].fused);
    end(b);
  }
}

/* Each shows the other, which no exporter writes: passes look at them and come back. */
static void values_that_show_each_other(void) {
  struct built *b = begin(&usual);
  uint32_t x = input(b, DIMS(M, K)), one = tensor(b, DIMS(M, K)), two = tensor(b, DIMS(M, K));
  uint32_t y = tensor(b, DIMS(M, K));
  NODE("aten.clone.default", two, null(b), one);
  NODE("aten.clone.default", one, null(b), two);
  NODE("aten.add.Tensor", x, one, number(b, 1), y);
  make_output(b, y);
  (void)!graph_finish(&b->t.graph, &b->err);
  CHECK_EQ(b->t.graph.n_nodes, 3);
  end(b);
}

static void fused_names_are_in_no_file(void) {
  struct built *b = begin(&usual);
  uint32_t x = input(b, DIMS(M, K)), y = tensor(b, DIMS(M, K));
  CHECK_FAILS(
      graph_add_node(&b->t.graph, text_of("sconce.linear_q4"), 0, (uint32_t[]){x, y}, 2, &b->err),
      SCONCE_UNSUPPORTED, b->err, "no such operator");
  CHECK_FAILS(graph_add_node(&b->t.graph, text_of("sconce.attention_step"), 0, (uint32_t[]){x, y},
                             2, &b->err),
              SCONCE_UNSUPPORTED, b->err, "no such operator");
  end(b);
}

/* ---- words ----------------------------------------------------------------------------------- */

static void words_name_passes(void) {
  static const struct {
    const char *list, *unknown;
  } rows[] = {
      {"", ""},
      {"all", ""},
      {"join,swiglu,residual,norm,rotary", ""},
      {"norm,", ""},
      {",,norm", ""},
      {"joined", "joined"},
      {"joi", "joi"},
      {"norm, join", " join"},
      {"all,none,norm", "none"},
      {"Norm", "Norm"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct text word = passes_unknown(rows[i].list);
    char text[40];
    snprintf(text, sizeof text, "%.*s", TEXT(word));
    CHECK_TEXT(text, rows[i].unknown);
  }
}

static void unknown_words_open_no_device(void) {
  sconce_error err = {0};
  sconce_device *device;
  sconce_device_desc desc = {.no_fusion = "norm,warp"};
  char names[256], says[320];
  snprintf(says, sizeof says, "no fusion is called 'warp': they are %s; or all",
           passes_text(names, sizeof names));
  CHECK(strstr(names, "same, still, join, swiglu, ") == names);
  CHECK_FAILS(sconce_device_open(&device, &desc, &err), SCONCE_BAD_ARGUMENT, err, says);
  CHECK(device == NULL);
  char some[8];
  CHECK_TEXT(passes_text(some, sizeof some), "same, s"); /* as much as there is room for */
  char longer[4096];
  for (size_t i = 0; i + 5 < sizeof longer; i += 5) memcpy(longer + i, "norm,", 6);
  desc.no_fusion = longer;
  CHECK_FAILS(sconce_device_open(&device, &desc, &err), SCONCE_BAD_ARGUMENT, err,
              "bytes of fusions not to make");
  CHECK(device == NULL);
}

/* ---- joined constants ------------------------------------------------------------------------ */

static void joined_constants_are_aligned(void) {
  static const uint32_t alignments[] = {256, 32, 64, 0};
  for (size_t i = 0; i < sizeof alignments / sizeof *alignments; i++) {
    struct caps caps = usual;
    caps.storage_alignment = alignments[i];
    const uint64_t unit = alignments[i] ? alignments[i] : 256;
    struct built *b = begin(&caps);
    uint32_t h = norm(b, input(b, DIMS(M, K)));
    static const uint32_t rows[] = {12, 4, 20};
    uint32_t w[3];
    for (int k = 0; k < 3; k++) {
      w[k] = constant(b, VK_UINT8, DIMS(rows[k], K / 2));
      make_output(b, linear_with(b, h, w[k], rows[k]));
    }
    CHECK_OK(finish(b, NULL), b->err);
    CHECK_EQ(count(b, "sconce.linear_q4"), 1);
    uint64_t end_of_last = 0;
    for (int k = 0; k < 3; k++) {
      const struct tensor *t = &b->t.graph.values[w[k]].tensor;
      CHECK_EQ(t->buffer, b->t.graph.values[w[0]].tensor.buffer);
      CHECK_EQ(t->base % unit, 0);
      CHECK(t->base >= end_of_last && t->base < end_of_last + unit);
      CHECK_EQ(t->behind, k > 0);
      CHECK_EQ(t->joined, k < 2 ? w[k + 1] : NO_VALUE);
      end_of_last = t->base + tensor_nbytes_max(t);
    }
    CHECK_EQ(graph_joined_size(&b->t.graph, w[0]), end_of_last);
    const struct buffer *buffer = &b->t.graph.buffers[b->t.graph.values[w[0]].tensor.buffer];
    CHECK_EQ(buffer->kind, BUFFER_CONSTANT);
    CHECK_EQ(buffer->value, w[0]);
    CHECK(buffer->size >= end_of_last && buffer->size % BUFFER_UNIT == 0);
    end(b);
  }
}

static void what_cannot_be_joined(void) {
  struct built *b = begin(&usual);
  uint32_t a = constant(b, VK_FLOAT32, DIMS(8)), c = constant(b, VK_FLOAT32, DIMS(8)),
           d = constant(b, VK_FLOAT32, DIMS(8)), written = constant(b, VK_FLOAT32, DIMS(8)),
           out = constant(b, VK_FLOAT32, DIMS(8)), plain = tensor(b, DIMS(8));
  b->t.graph.values[written].tensor.written = true;
  b->t.graph.values[out].tensor.output = true;
  const uint32_t others[] = {written, out, plain, number(b, 1), a, NO_VALUE, b->t.graph.n_values};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    CHECK(!graph_join(&b->t.graph, (uint32_t[]){a, others[i]}, 2));
    CHECK(!graph_join(&b->t.graph, (uint32_t[]){others[i], a}, 2));
    CHECK(b->t.graph.values[a].tensor.joined == NO_VALUE && !b->t.graph.values[a].tensor.behind);
  }
  CHECK(graph_join(&b->t.graph, (uint32_t[]){a, c}, 2));
  CHECK(!graph_join(&b->t.graph, (uint32_t[]){d, a}, 2));
  CHECK(!graph_join(&b->t.graph, (uint32_t[]){c, d}, 2));
  CHECK_EQ(b->t.graph.values[d].tensor.joined, NO_VALUE);
  end(b);
}

/* Together they are more than a binding may be: the parts run. */
static void joined_constants_larger_than_a_binding(void) {
  struct caps caps = usual;
  caps.max_storage_binding = 6000;
  struct built *b = begin(&caps);
  uint32_t x = input(b, DIMS(M, K));
  for (int i = 0; i < 3; i++) make_output(b, linear(b, x, 80)); /* 2560 bytes each */
  CHECK_OK(finish(b, NULL), b->err);
  CHECK_EQ(b->t.graph.n_nodes, 1);
  if (b->t.graph.n_nodes) CHECK_EQ(b->t.graph.nodes[0].n_records, 3);
  end(b);
}

/* Scales are read in another layout: the one of the file takes no memory of the device. */
static void scales_are_there_once(void) {
  static const char *const off[] = {NULL, "all"};
  for (size_t i = 0; i < sizeof off / sizeof *off; i++) {
    struct built *b = begin(&usual);
    uint32_t x = input(b, DIMS(M, K));
    for (int k = 0; k < 3; k++) make_output(b, linear(b, x, 80));
    CHECK_OK(finish(b, off[i]), b->err);
    uint64_t size = 0;
    for (uint32_t k = 0; k < b->t.graph.n_buffers; k++)
      if (b->t.graph.buffers[k].kind == BUFFER_CONSTANT) size += b->t.graph.buffers[k].size;
    const uint64_t codes = 80 * K / 2, scales = 80 * (K / GROUP) * 4;
    CHECK(size >= 3 * (codes + scales) && size < 3 * (codes + scales) + 6 * 256); /* aligned */
    end(b);
  }
}

/* The fused kernels' workgroups are too large here, those of the parts are not. */
static void devices_for_the_parts_alone(void) {
  struct caps caps = usual;
  caps.max_invocations = 64;
  struct built *b = begin(&caps);
  uint32_t x = input(b, DIMS(M, K));
  for (int i = 0; i < 3; i++) make_output(b, linear(b, x, 80));
  CHECK_OK(finish(b, NULL), b->err);
  CHECK_EQ(b->t.graph.n_nodes, 1);
  if (b->t.graph.n_nodes) CHECK_EQ(b->t.graph.nodes[0].n_records, 3);
  end(b);
}

const struct test suite_rewrite[] = {
    TEST(a_layer_becomes_a_few_nodes),
    TEST(nodes_far_apart_stay_alone),
    TEST(parts_keep_their_order),
    TEST(order_and_hazards),
    TEST(values_that_show_each_other),
    TEST(fused_names_are_in_no_file),
    TEST(words_name_passes),
    TEST(unknown_words_open_no_device),
    TEST(joined_constants_are_aligned),
    TEST(what_cannot_be_joined),
    TEST(joined_constants_larger_than_a_binding),
    TEST(scales_are_there_once),
    TEST(devices_for_the_parts_alone),
    {0},
};
