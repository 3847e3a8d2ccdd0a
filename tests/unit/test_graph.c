/* The graph engine without a device: views and lifetimes, constants, the plan checker, calls that
 * fail and are taken back, live scalars, grids. */
#include "built.h"

#include "ops/linear_q4/linear_q4.h"

#include "chain.wgsl.h"

#include <math.h>

static uint32_t constant(struct built *b, const void *bytes, const uint32_t *dims, uint32_t rank) {
  uint32_t id = tensor(b, dims, rank);
  struct tensor *t = &b->t.graph.values[id].tensor;
  t->constant = true;
  t->bytes = extent_of((struct span){bytes, (size_t)tensor_nbytes_max(t)});
  return id;
}

static void relu(struct built *b, uint32_t x, uint32_t y) { NODE("aten.relu.default", x, y); }

static void add(struct built *b, uint32_t x, uint32_t y, uint32_t z) {
  NODE("aten.add.Tensor", x, y, number(b, 1), z);
}

static void view(struct built *b, uint32_t x, uint32_t y) { NODE("aten.alias_copy.default", x, y); }

static uint32_t buffer_of(const struct built *b, uint32_t id) {
  return b->t.graph.values[id].tensor.buffer;
}

static enum buffer_kind kind_of(const struct built *b, uint32_t id) {
  return b->t.graph.buffers[buffer_of(b, id)].kind;
}

static sconce_status call(struct built *b, uint32_t rows) {
  graph_begin(&b->t.graph);
  struct tensor *t = &b->t.graph.values[b->t.inputs[0]].tensor;
  uint32_t dims[RANK_MAX];
  memcpy(dims, t->dim_live, sizeof dims);
  dims[0] = rows;
  sconce_status status = graph_set_dims(&b->t.graph, b->t.inputs[0], dims, t->rank, &b->err);
  if (status == SCONCE_OK) status = graph_plan(&b->t.graph, &b->err);
  if (status != SCONCE_OK) graph_rollback(&b->t.graph);
  return status;
}

/* ---- views and lifetimes --------------------------------------------------------------------- */

static void a_view_costs_no_dispatch(void) {
  struct built *b = begin(&usual);
  uint32_t x = input(b, DIMS(4, 6)), t = tensor(b, DIMS(4, 6)), v = tensor(b, DIMS(24)),
           y = output(b, DIMS(24));
  relu(b, x, t);
  NODE("aten.view_copy.default", t, list(b, DIMS(number(b, -1))), v);
  relu(b, v, y);
  CHECK_OK(graph_finish(&b->t.graph, &b->err), b->err);
  CHECK_EQ(buffer_of(b, t), buffer_of(b, v));
  CHECK_EQ(b->t.graph.nodes[1].n_records, 0);
  CHECK_OK(call(b, 3), b->err);
  CHECK_EQ(b->t.graph.nodes[1].n_records, 0);
  CHECK_EQ(b->t.graph.values[y].tensor.dim_live[0], 18);
  end(b);
}

static void an_output_takes_in_what_it_views(void) {
  struct built *b = begin(&usual);
  uint32_t x = input(b, DIMS(4)), t = tensor(b, DIMS(4)), u = tensor(b, DIMS(4)),
           y = output(b, DIMS(4));
  relu(b, x, t);
  view(b, t, u);
  view(b, u, y);
  CHECK_OK(graph_finish(&b->t.graph, &b->err), b->err);
  CHECK(buffer_of(b, t) == buffer_of(b, y) && buffer_of(b, u) == buffer_of(b, y));
  CHECK_EQ(kind_of(b, t), BUFFER_OUTPUT);
  CHECK_EQ(b->t.graph.nodes[1].n_records + b->t.graph.nodes[2].n_records, 0);
  end(b);
}

static void two_owned_values_never_share(void) {
  static const float bytes[4];
  struct built *b = begin(&usual);
  uint32_t x = input(b, DIMS(4)), c = constant(b, bytes, DIMS(4)), y = output(b, DIMS(4)),
           z = output(b, DIMS(4)), w = output(b, DIMS(4));
  view(b, x, y); /* an input and an output */
  view(b, y, z); /* two outputs */
  view(b, c, w); /* a constant and an output */
  CHECK_OK(graph_finish(&b->t.graph, &b->err), b->err);
  CHECK(buffer_of(b, x) != buffer_of(b, y) && buffer_of(b, y) != buffer_of(b, z) &&
        buffer_of(b, c) != buffer_of(b, w));
  for (uint32_t i = 0; i < 3; i++) CHECK_EQ(b->t.graph.nodes[i].n_records, 1);
  end(b);
}

/* The upper bounds of a view may be more than those of what it views. */
static void a_buffer_holds_the_largest_of_its_views(void) {
  struct built *b = begin(&usual);
  uint32_t x = input(b, DIMS(2, 64)), t = tensor(b, DIMS(2, 64)), v = tensor(b, DIMS(4, 64)),
           u = tensor(b, DIMS(4, 64)), y = output(b, DIMS(2, 64));
  relu(b, x, t);
  view(b, t, v);
  relu(b, v, u);
  view(b, u, y);
  CHECK_OK(graph_finish(&b->t.graph, &b->err), b->err);
  CHECK(buffer_of(b, t) == buffer_of(b, v) && buffer_of(b, u) == buffer_of(b, y));
  CHECK_EQ(b->t.graph.buffers[buffer_of(b, t)].size, 1024);
  CHECK_EQ(b->t.graph.buffers[buffer_of(b, y)].size, 1024);
  end(b);
}

static void lifetimes_decide_who_shares(void) {
  struct built *b = begin(&usual);
  uint32_t x = input(b, DIMS(4)), y = output(b, DIMS(4)), t[5];
  for (int i = 0; i < 5; i++) t[i] = tensor(b, DIMS(4));
  relu(b, x, t[0]);
  relu(b, t[0], t[1]);
  relu(b, t[1], t[2]);
  relu(b, t[2], t[3]);
  add(b, t[3], t[1], t[4]); /* t[1] lives until here */
  relu(b, t[4], y);
  CHECK_OK(graph_finish(&b->t.graph, &b->err), b->err);
  CHECK_EQ(buffer_of(b, t[2]), buffer_of(b, t[0]));
  CHECK(buffer_of(b, t[1]) != buffer_of(b, t[0]) && buffer_of(b, t[1]) != buffer_of(b, t[3]));
  CHECK_EQ(b->t.graph.n_buffers, 2 + 3); /* in, out and three transients */
  end(b);
}

/* ---- constants and state --------------------------------------------------------------------- */

static void equal_constants_share_until_one_is_written(void) {
  static const float zeros[16];
  struct built *b = begin(&usual);
  uint32_t x = input(b, DIMS(1, 1, 2, 4)), c = constant(b, zeros, DIMS(4, 4)),
           d = constant(b, zeros, DIMS(16)), y = output(b, DIMS(4, 4)), z = output(b, DIMS(16)),
           k1 = constant(b, zeros, DIMS(1, 2, 2, 4)), k2 = constant(b, zeros, DIMS(1, 2, 2, 4)),
           o1 = tensor(b, DIMS(1)), o2 = tensor(b, DIMS(1)), o3 = output(b, DIMS(1, 2, 2, 4)),
           v = tensor(b, DIMS(1, 2, 2, 4)), w = tensor(b, DIMS(1, 2, 2, 4));
  relu(b, c, y);
  relu(b, d, z);
  view(b, k2, w);
  NODE("update_cache.default", x, k1, number(b, 0), o1);
  NODE("update_cache.default", x, k2, number(b, 0), o2);
  view(b, k1, v);
  add(b, v, w, o3);
  CHECK_OK(graph_finish(&b->t.graph, &b->err), b->err);
  CHECK_EQ(buffer_of(b, c), buffer_of(b, d));
  CHECK(buffer_of(b, k1) != buffer_of(b, k2) && buffer_of(b, k1) != buffer_of(b, c));
  CHECK(kind_of(b, c) == BUFFER_CONSTANT && kind_of(b, k1) == BUFFER_STATE);
  /* what is written later is nobody's view; behind the last write it may be one */
  CHECK(buffer_of(b, w) != buffer_of(b, k2) && b->t.graph.nodes[2].n_records == 1);
  CHECK(buffer_of(b, v) == buffer_of(b, k1) && b->t.graph.nodes[5].n_records == 0);
  end(b);
}

static void a_layout_is_made_once_for_equal_constants(void) {
  static const float bytes[64];
  struct built *b = begin(&usual);
  uint32_t c = constant(b, bytes, DIMS(4, 16)), d = constant(b, bytes, DIMS(4, 16)),
           e = constant(b, bytes, DIMS(8, 8)), f = constant(b, bytes, DIMS(4, 32)), p[5];
  b->t.graph.values[f].tensor.dtype = VK_FLOAT16; /* as many bytes and rows, other elements */
  b->t.graph.values[f].tensor.bytes.size = 256;
  const uint32_t from[] = {c, d, e, f, c};
  for (int i = 0; i < 5; i++)
    CHECK_OK(graph_packed(&b->t.graph, from[i], i < 4 ? &q4_scales : NULL, &p[i], &b->err), b->err);
  CHECK_EQ(p[0], p[1]);
  CHECK(p[0] != c && p[2] != p[0] && p[3] != p[0] && p[4] == c);
  uint32_t x = input(b, DIMS(4)), out;
  CHECK_FAILS(graph_packed(&b->t.graph, x, &q4_scales, &out, &b->err), SCONCE_UNSUPPORTED, b->err,
              "a weight that is no constant");
  CHECK_FAILS(graph_packed(&b->t.graph, NO_VALUE, &q4_scales, &out, &b->err), SCONCE_BAD_GRAPH,
              b->err, "a weight is missing");
  end(b);
}

static uint64_t twice(const struct unpacked *from) {
  return 2ull * from->dims[0] * vk_dtype_size(from->dtype);
}

/* A layout says itself what room it takes. */
static void a_layout_may_be_larger_than_its_source(void) {
  static const struct packing padded = {"padded", twice, NULL};
  static const float bytes[100];
  struct built *b = begin(&usual);
  uint32_t c = constant(b, bytes, DIMS(100)), packed;
  CHECK_OK(graph_packed(&b->t.graph, c, &padded, &packed, &b->err), b->err);
  CHECK_EQ(tensor_nbytes_max(&b->t.graph.values[c].tensor), 400);
  CHECK_EQ(tensor_nbytes_max(&b->t.graph.values[packed].tensor), 800);
  relu(b, packed, output(b, DIMS(100)));
  CHECK_OK(graph_finish(&b->t.graph, &b->err), b->err);
  CHECK_EQ(b->t.graph.buffers[buffer_of(b, packed)].size, 800);
  end(b);
}

/* Thousands of constants, each used twice: the tables grow and still find all. */
static void many_constants_are_found_again(void) {
  enum { N = 3000 };
  static const float bytes[N];
  static uint32_t ids[2 * N], packed[2 * N];
  struct built *b = begin(&usual);
  for (uint32_t i = 0; i < 2 * N; i++) ids[i] = constant(b, &bytes[i % N], DIMS(1, 1));
  for (uint32_t i = 0; i < 2 * N; i++)
    CHECK_OK(graph_packed(&b->t.graph, ids[i], &q4_scales, &packed[i], &b->err), b->err);
  for (uint32_t i = 0; i < N; i++) CHECK_EQ(packed[i], packed[i + N]);
  for (uint32_t i = 0; i < 2 * N; i += 2) add(b, ids[i], ids[i + 1], tensor(b, DIMS(1, 1)));
  CHECK_OK(graph_finish(&b->t.graph, &b->err), b->err);
  uint32_t constants = 0;
  for (uint32_t i = 0; i < b->t.graph.n_buffers; i++)
    constants += b->t.graph.buffers[i].kind == BUFFER_CONSTANT;
  CHECK_EQ(constants, N);
  for (uint32_t i = 0; i < N; i++) CHECK_EQ(buffer_of(b, ids[i]), buffer_of(b, ids[i + N]));
  end(b);
}

static void prepack_needs_a_constant_of_the_same_shape(void) {
  static const float bytes[8];
  struct built *b = begin(&usual);
  uint32_t c = constant(b, bytes, DIMS(8)), x = input(b, DIMS(8)), small = tensor(b, DIMS(4)),
           same = tensor(b, DIMS(8));
  const struct text prepack = text_of("et_vk.prepack.default");
  CHECK_FAILS(graph_add_node(&b->t.graph, prepack, 0, (uint32_t[]){x, same}, 2, &b->err),
              SCONCE_BAD_GRAPH, b->err, "the source is no constant tensor");
  CHECK_FAILS(graph_add_node(&b->t.graph, prepack, 0, (uint32_t[]){c, small}, 2, &b->err),
              SCONCE_BAD_GRAPH, b->err, "the source is float32 [8], the result float32 [4]");
  CHECK_FAILS(graph_add_node(&b->t.graph, prepack, 0, (uint32_t[]){c}, 1, &b->err),
              SCONCE_BAD_GRAPH, b->err, "1 arguments, expected 2");
  CHECK_FAILS(graph_add_node(&b->t.graph, prepack, 0, (uint32_t[]){NO_VALUE, same}, 2, &b->err),
              SCONCE_BAD_GRAPH, b->err, "the source is no constant tensor");
  CHECK_OK(graph_add_node(&b->t.graph, prepack, 0, (uint32_t[]){c, same}, 2, &b->err), b->err);
  CHECK(b->t.graph.values[same].tensor.constant && b->t.graph.n_nodes == 0);
  end(b);
}

/* ---- the checker ----------------------------------------------------------------------------- */

static void the_checker_sees_broken_plans(void) {
  static const float bytes[4];
  struct built *b = begin(&usual);
  uint32_t x = input(b, DIMS(4)), c = constant(b, bytes, DIMS(4)), t = tensor(b, DIMS(4)),
           y = output(b, DIMS(4));
  add(b, x, c, t);
  relu(b, t, y);
  CHECK_OK(graph_finish(&b->t.graph, &b->err), b->err);
  struct graph *g = &b->t.graph;
  struct tensor *tt = &g->values[t].tensor, *ty = &g->values[y].tensor;
  const uint32_t right = tt->buffer;
  char want[120];

  tt->buffer = buffer_of(b, c);
  snprintf(want, sizeof want,
           "node 0 (aten.add.Tensor): value %u and value %u share a buffer, but only one of them "
           "persists",
           t, c);
  CHECK_FAILS(graph_check(g, &b->err), SCONCE_BAD_GRAPH, b->err, want);

  tt->buffer = ty->buffer;
  CHECK_FAILS(graph_check(g, &b->err), SCONCE_BAD_GRAPH, b->err,
              "node 1 (aten.relu.default): bindings 1 and 0 of 'unary' are one buffer, and 1 is "
              "written");
  tt->buffer = UINT32_MAX;
  CHECK_FAILS(graph_check(g, &b->err), SCONCE_BAD_GRAPH, b->err, "has no memory");
  tt->buffer = right;

  ty->buffer = buffer_of(b, c);
  ty->constant = true;
  CHECK_FAILS(graph_check(g, &b->err), SCONCE_BAD_GRAPH, b->err,
              "node 1 (aten.relu.default): binding 1 of 'unary' writes a constant");
  end(b);
}

/* A buffer's new contents under the buffer's own id: it is state, and shares its zeros with none.
 */
static void a_constant_that_is_written_is_state(void) {
  static const float bytes[4];
  struct built *b = begin(&usual);
  uint32_t x = input(b, DIMS(4)), c = constant(b, bytes, DIMS(4)), t = tensor(b, DIMS(4));
  uint32_t d = constant(b, bytes, DIMS(4)), y = output(b, DIMS(4));
  add(b, x, c, t);
  add(b, t, d, y);
  relu(b, t, c);
  CHECK_OK(graph_finish(&b->t.graph, &b->err), b->err);
  CHECK(kind_of(b, c) == BUFFER_STATE && kind_of(b, d) == BUFFER_CONSTANT);
  CHECK(buffer_of(b, c) != buffer_of(b, d) && buffer_of(b, c) != buffer_of(b, t));
  end(b);
}

static void an_input_is_no_constant(void) {
  static const float bytes[4];
  struct built *b = begin(&usual);
  uint32_t c = constant(b, bytes, DIMS(4)), y = output(b, DIMS(4));
  b->t.graph.values[c].tensor.input = true;
  relu(b, c, y);
  CHECK_FAILS(graph_finish(&b->t.graph, &b->err), SCONCE_BAD_GRAPH, b->err,
              "value 0 is an input and a constant");
  end(b);
}

/* No record is made before a shape has looked at the arguments, at load as at every call. */
static void a_file_that_contradicts_itself_is_seen_at_load(void) {
  static const float bytes[1];
  struct built *b = begin(&usual);
  uint32_t x = input(b, DIMS(2, 0)), w = constant(b, bytes, DIMS(0)), y = output(b, DIMS(4));
  NODE("et_vk.rms_norm.default", x, w, number(b, 1), y);
  CHECK_FAILS(graph_finish(&b->t.graph, &b->err), SCONCE_BAD_GRAPH, b->err,
              "rank 2, the graph says 1");
  end(b);
}

static void more_nodes_than_allowed_are_refused(void) {
  struct built *b = begin(&usual);
  b->t.graph.max_nodes = 3;
  uint32_t x = input(b, DIMS(4)), args[] = {x, NO_VALUE};
  for (int i = 0; i < 4; i++) {
    args[1] = tensor(b, DIMS(4));
    const struct text name = text_of("aten.relu.default");
    sconce_status status = graph_add_node(&b->t.graph, name, (uint32_t)i, args, 2, &b->err);
    if (i < 3) CHECK_OK(status, b->err);
    if (i == 3) CHECK_FAILS(status, SCONCE_UNSUPPORTED, b->err, "more than 3 nodes");
  }
  end(b);
}

static void buffers_beyond_the_device_are_refused(void) {
  struct caps caps = usual;
  caps.max_buffer = 1 << 20;
  struct built *b = begin(&caps);
  uint32_t x = input(b, DIMS(1 << 20)), y = output(b, DIMS(1 << 20));
  relu(b, x, y);
  CHECK_FAILS(graph_finish(&b->t.graph, &b->err), SCONCE_NO_GPU_MEMORY, b->err,
              "a tensor needs 4194304 bytes, the device's buffers have at most 1048576");
  end(b);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void nothing_changed_plans_nothing(void) {
  struct built *b = begin(&usual);
  uint32_t x = input(b, DIMS(8, 4)), t = tensor(b, DIMS(8, 4)), y = output(b, DIMS(8, 4));
  relu(b, x, t);
  relu(b, t, y);
  CHECK_OK(graph_finish(&b->t.graph, &b->err), b->err);
  static const struct {
    uint32_t rows, planned;
    const char *why;
  } rows[] = {
      {8, 2, "the first call plans all, though the dims are the maximum already"},
      {8, 0, "the same again"},
      {3, 2, "fewer rows"},
      {3, 0, "the same again"},
      {0, 2, "none"},
      {8, 2, "back to the maximum"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    CHECK_OK(call(b, rows[i].rows), b->err);
    if (b->t.graph.nodes_planned != rows[i].planned)
      test_fail(__FILE__, __LINE__, "%s: %u nodes planned, want %u", rows[i].why,
                b->t.graph.nodes_planned, rows[i].planned);
    CHECK_EQ(b->t.graph.values[y].tensor.dim_live[0], rows[i].rows);
    CHECK_EQ(b->t.graph.nodes[1].n_records, rows[i].rows ? 1 : 0);
  }
  CHECK_FAILS(call(b, 9), SCONCE_BAD_ARGUMENT, b->err, "dim 0 is 9, at most 8");
  end(b);
}

/* x [n, 4] -> relu -> view [4 / (n - 3), -1]; fails for n = 3 (0) and n = 8 (0 rows of 32). */
static bool same_record(const struct record *a, const struct record *b) {
  bool same = a->row == b->row && a->n_operands == b->n_operands &&
              memcmp(a->grid, b->grid, sizeof a->grid) == 0 && a->params_size == b->params_size &&
              memcmp(a->params, b->params, a->params_size) == 0;
  for (uint32_t i = 0; same && i < a->n_operands; i++)
    same = a->operands[i].value == b->operands[i].value &&
           a->operands[i].offset == b->operands[i].offset &&
           a->operands[i].size == b->operands[i].size;
  return same;
}

static void a_failing_shape_is_taken_back(void) {
  struct built *b = begin(&usual);
  uint32_t x = input(b, DIMS(8, 4)), t = tensor(b, DIMS(8, 4)), n = symint(b), d = symint(b),
           q = symint(b), y = output(b, DIMS(32)), z = output(b, DIMS(4, 16));
  relu(b, x, t);
  NODE("sym_size.int", t, number(b, 0), n);
  relu(b, t, y);
  NODE("sub", n, number(b, 3), d);
  NODE("floordiv", number(b, 4), d, q);
  NODE("aten.view_copy.default", t, list(b, DIMS(q, number(b, -1))), z);
  b->t.graph.values[y].tensor.rank = 2; /* as t */
  memcpy(b->t.graph.values[y].tensor.dim_max, (uint32_t[]){8, 4}, 8);
  memcpy(b->t.graph.values[y].tensor.dim_live, (uint32_t[]){8, 4}, 8);
  CHECK_OK(graph_finish(&b->t.graph, &b->err), b->err);
  CHECK_OK(call(b, 4), b->err);
  struct record before = b->t.graph.nodes[0].records[0];
  CHECK(b->t.graph.values[n].i == 4 && b->t.graph.values[q].i == 4);

  CHECK_FAILS(call(b, 3), SCONCE_BAD_ARGUMENT, b->err, "node 4 (floordiv): 4 divided by 0");
  CHECK_EQ(b->t.graph.values[x].tensor.dim_live[0], 4);
  CHECK_EQ(b->t.graph.values[t].tensor.dim_live[0], 4);
  CHECK(b->t.graph.values[n].i == 4 && b->t.graph.values[d].i == 1 && b->t.graph.values[q].i == 4);
  CHECK(same_record(&before, &b->t.graph.nodes[0].records[0]));
  CHECK_FAILS(call(b, 8), SCONCE_BAD_ARGUMENT, b->err, "32 elements do not fill");

  CHECK_OK(call(b, 4), b->err);
  CHECK_EQ(b->t.graph.nodes_planned, 0); /* a shape that fails leaves all records as they were */
  CHECK(same_record(&before, &b->t.graph.nodes[0].records[0]));
  CHECK(b->t.graph.values[z].tensor.dim_live[0] == 4 &&
        b->t.graph.values[z].tensor.dim_live[1] == 4);
  CHECK_OK(call(b, 4), b->err);
  CHECK_EQ(b->t.graph.nodes_planned, 0);
  CHECK_OK(call(b, 5), b->err);
  CHECK(b->t.graph.values[q].i == 2 && b->t.graph.values[z].tensor.dim_live[1] == 10);
  end(b);
}

/* ---- live scalars ---------------------------------------------------------------------------- */

static void scalars_follow_python(void) {
  static const struct {
    const char *op;
    int64_t a, b, want;
    const char *error; /* or NULL */
  } rows[] = {
      {"add", 2, 3, 5, NULL},
      {"sub", 2, 3, -1, NULL},
      {"mul", -2, 3, -6, NULL},
      {"floordiv", 7, 2, 3, NULL},
      {"floordiv", -7, 2, -4, NULL}, /* rounds down, not to zero */
      {"floordiv", 7, -2, -4, NULL},
      {"floordiv", -7, -2, 3, NULL},
      {"floordiv", -8, 2, -4, NULL},
      {"mod", 7, 3, 1, NULL},
      {"mod", -7, 3, 2, NULL}, /* the divisor's sign */
      {"mod", 7, -3, -2, NULL},
      {"mod", -6, 3, 0, NULL},
      {"lt", 1, 2, 1, NULL},
      {"lt", 2, 2, 0, NULL},
      {"le", 2, 2, 1, NULL},
      {"le", 3, 2, 0, NULL},
      {"eq", 2, 2, 1, NULL},
      {"eq", -2, 2, 0, NULL},
      {"ne", -2, 2, 1, NULL},
      {"ne", 2, 2, 0, NULL},
      {"ge", 2, 2, 1, NULL},
      {"ge", 1, 2, 0, NULL},
      {"gt", 3, 2, 1, NULL},
      {"gt", 2, 2, 0, NULL},
      {"sym_max", -1, 4, 4, NULL},
      {"sym_min", -1, 4, -1, NULL},
      {"floordiv", 7, 0, 0, "7 divided by 0"},
      {"mod", 7, 0, 0, "7 divided by 0"},
      {"add", INT32_MAX, 1, 0, "2147483648 does not fit 32 bits"},
      {"sub", INT32_MIN, 1, 0, "-2147483649 does not fit 32 bits"},
      {"mul", 65536, 32768, 0, "2147483648 does not fit 32 bits"},
      {"floordiv", INT32_MIN, -1, 0, "2147483648 does not fit 32 bits"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct built *b = begin(&usual);
    uint32_t a = symint(b), c = symint(b), r = symint(b);
    NODE(rows[i].op, a, c, r);
    CHECK_OK(graph_finish(&b->t.graph, &b->err), b->err);
    for (int again = 0; again < 2; again++) { /* an error leaves the graph usable */
      bool good = !rows[i].error || again;
      graph_begin(&b->t.graph);
      CHECK_OK(graph_set_symint(&b->t.graph, a, good && rows[i].error ? 6 : rows[i].a, &b->err),
               b->err);
      CHECK_OK(graph_set_symint(&b->t.graph, c, good && rows[i].error ? 1 : rows[i].b, &b->err),
               b->err);
      sconce_status status = graph_plan(&b->t.graph, &b->err);
      if (good) {
        CHECK_OK(status, b->err);
        if (!rows[i].error) CHECK_EQ(b->t.graph.values[r].i, rows[i].want);
      } else {
        CHECK_FAILS(status, SCONCE_BAD_ARGUMENT, b->err, rows[i].error);
        graph_rollback(&b->t.graph);
        CHECK(b->t.graph.values[a].i == 0 && b->t.graph.values[r].i == 0);
      }
    }
    end(b);
  }
}

static void a_negated_scalar(void) {
  struct built *b = begin(&usual);
  uint32_t a = symint(b), r = symint(b), fixed = symint(b);
  NODE("neg", a, r);
  NODE("neg", number(b, 5), fixed);
  CHECK_OK(graph_finish(&b->t.graph, &b->err), b->err);
  static const int64_t rows[] = {3, -7, 0, INT32_MAX};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    graph_begin(&b->t.graph);
    CHECK_OK(graph_set_symint(&b->t.graph, a, rows[i], &b->err), b->err);
    CHECK_OK(graph_plan(&b->t.graph, &b->err), b->err);
    CHECK(b->t.graph.values[r].i == -rows[i] && b->t.graph.values[fixed].i == -5);
  }
  graph_begin(&b->t.graph);
  CHECK_OK(graph_set_symint(&b->t.graph, a, INT32_MIN, &b->err), b->err);
  CHECK_FAILS(graph_plan(&b->t.graph, &b->err), SCONCE_BAD_ARGUMENT, b->err,
              "2147483648 does not fit 32 bits");
  graph_rollback(&b->t.graph);
  end(b);
}

static void a_64_bit_overflow_is_an_error(void) {
  struct built *b = begin(&usual);
  uint32_t r = symint(b);
  NODE("mul", number(b, INT64_MAX), number(b, 2), r);
  CHECK_OK(graph_finish(&b->t.graph, &b->err), b->err);
  graph_begin(&b->t.graph);
  CHECK_FAILS(graph_plan(&b->t.graph, &b->err), SCONCE_BAD_ARGUMENT, b->err,
              "9223372036854775807 * 2 overflows");
  graph_rollback(&b->t.graph);
  end(b);
}

static void sizes_of_intermediates_are_exact_at_once(void) {
  struct built *b = begin(&usual);
  uint32_t x = input(b, DIMS(8, 4)), t = tensor(b, DIMS(8, 4)), s = symint(b), last = symint(b),
           y = output(b, DIMS(8, 4));
  NODE("aten.slice_copy.Tensor", x, number(b, 0), number(b, 1), number(b, 100), number(b, 2), t);
  NODE("sym_size.int", t, number(b, 0), s);
  NODE("sym_size.int", t, number(b, -1), last);
  NODE("aten.slice_copy.Tensor", x, number(b, 0), number(b, 0), s, number(b, 1), y);
  CHECK_OK(graph_finish(&b->t.graph, &b->err), b->err);
  static const uint32_t rows[] = {6, 8, 1, 0, 7};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    CHECK_OK(call(b, rows[i]), b->err);
    CHECK_EQ(b->t.graph.values[s].i, rows[i] / 2);
    CHECK_EQ(b->t.graph.values[last].i, 4);
    CHECK_EQ(b->t.graph.values[y].tensor.dim_live[0], rows[i] / 2);
  }
  end(b);
}

/* The plan stops where only the device knows a number, and goes on when it is told. */
static void a_number_of_the_device_stops_the_plan(void) {
  struct built *b = begin(&usual);
  uint32_t x = input(b, DIMS(4)), t = tensor(b, DIMS(4)), s = symint(b), y = output(b, DIMS(4));
  b->t.graph.values[x].tensor.dtype = b->t.graph.values[t].tensor.dtype = VK_INT32;
  b->t.graph.values[y].tensor.dtype = VK_INT32;
  add(b, x, x, t);
  NODE("et_vk.select_as_symint.default", t, number(b, 0), number(b, -1), s);
  NODE("aten.slice_copy.Tensor", x, number(b, 0), number(b, 0), s, number(b, 1), y);
  CHECK_OK(graph_finish(&b->t.graph, &b->err), b->err);
  for (int32_t k = 0; k < 3; k++) {
    CHECK_OK(call(b, 4), b->err);
    CHECK(b->t.graph.wanted == t && b->t.graph.planned == 1);
    const int32_t elements[4] = {9, 9, 9, 1 + k};
    b->t.graph.values[t].tensor.host = elements;
    CHECK_OK(graph_plan(&b->t.graph, &b->err), b->err);
    CHECK(b->t.graph.wanted == NO_VALUE && b->t.graph.planned == 3);
    CHECK_EQ(b->t.graph.values[y].tensor.dim_live[0], 1 + k);
  }
  end(b);
}

/* With a dim of 0 beside the one that is selected from there is nothing to read. */
static void an_empty_tensor_has_no_number(void) {
  struct built *b = begin(&usual);
  uint32_t x = input(b, DIMS(2, 5)), s = symint(b), y = output(b, DIMS(2, 5));
  b->t.graph.values[x].tensor.dtype = b->t.graph.values[y].tensor.dtype = VK_INT32;
  NODE("et_vk.select_as_symint.default", x, number(b, 1), number(b, 3), s);
  NODE("aten.slice_copy.Tensor", x, number(b, 0), number(b, 0), s, number(b, 1), y);
  CHECK_OK(graph_finish(&b->t.graph, &b->err), b->err);
  int32_t *elements = calloc(10, sizeof *elements);
  elements[3] = 1;
  b->t.graph.values[x].tensor.host = elements;
  CHECK_OK(call(b, 2), b->err);
  CHECK_EQ(b->t.graph.values[s].i, 1);
  elements = realloc(elements, 1);
  b->t.graph.values[x].tensor.host = elements;
  CHECK_FAILS(call(b, 0), SCONCE_BAD_ARGUMENT, b->err, "a scalar from a tensor without elements");
  free(elements);
  end(b);
}

/* ---- grids and bindings ---------------------------------------------------------------------- */

static void large_grids_are_folded(void) {
  static const uint32_t sizes[] = {1, 256, 1024, 1025, 2300, 4096, 4097, 9000, 16384};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    struct caps caps = usual;
    caps.max_workgroups = 4;
    struct built *b = begin(&caps);
    uint32_t x = input(b, DIMS(sizes[i])), y = output(b, DIMS(sizes[i]));
    relu(b, x, y);
    sconce_status status = graph_finish(&b->t.graph, &b->err);
    CHECK_OK(status, b->err);
    const struct record *r = status == SCONCE_OK ? b->t.graph.nodes[0].records : NULL;
    uint64_t groups = (sizes[i] + 255) / 256, got = 0;
    if (r) got = (uint64_t)r->grid[0] * r->grid[1] * r->grid[2];
    CHECK(got >= groups);
    CHECK(r && r->grid[0] <= 4 && r->grid[1] <= 4 && r->grid[2] <= 4);
    if (groups <= 4) CHECK_EQ(got, groups);
    end(b);
  }
  struct caps caps = usual;
  caps.max_workgroups = 4;
  struct built *b = begin(&caps);
  uint32_t x = input(b, DIMS(1 << 20)), y = output(b, DIMS(1 << 20));
  relu(b, x, y);
  CHECK_FAILS(graph_finish(&b->t.graph, &b->err), SCONCE_UNSUPPORTED, b->err, "4096 workgroups");
  end(b);
}

static void rows_fill_a_binding(void) {
  static const struct {
    uint64_t row, rows, want;
    const char *why;
  } rows[] = {
      {4096, 256, 256, "all fit exactly"},
      {4096, 257, 256, "one too many"},
      {4096, 0, 0, "no rows"},
      {100, 100000, 10432, "64 rows are the least multiple of 256 bytes"},
      {1 << 20, 2, 1, "one row fills it"},
      {(1 << 20) + 4, 2, 0, "not even one step fits"},
  };
  struct caps caps = usual;
  caps.max_storage_binding = 1 << 20;
  struct graph g = {.caps = caps};
  struct plan p = {.g = &g};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    uint64_t got = rows_per_binding(&p, rows[i].row, rows[i].rows);
    if (got != rows[i].want)
      test_fail(__FILE__, __LINE__, "%s: %llu rows, want %llu", rows[i].why,
                (unsigned long long)got, (unsigned long long)rows[i].want);
    CHECK(got == rows[i].rows || got * rows[i].row % 256 == 0);
  }
}

/* The same values are the same row; a graph has so many of them and no more. */
static void fixed_parameters_are_rows_of_the_graph(void) {
  enum { MOST = 32, TRIES = 40 };
  static const struct kernel table = {"u32", &chain_wgsl};
  struct built *b = begin(&usual);
  uint32_t x = input(b, DIMS(4)), y = output(b, DIMS(4));
  relu(b, x, y);
  struct node *n = &b->t.graph.nodes[0];
  struct plan p = {.g = &b->t.graph, .node = n, .err = &b->err};
  for (uint32_t i = 0; i < 2 * TRIES; i++) {
    struct chain_params params = {.n = 4, .add = i % TRIES};
    CHECK_OK(dispatch_fixed(&p, &table, &params, 1, OPERANDS({x}, {y})), b->err);
    const struct kernel *row = n->records[i].row;
    CHECK(memcmp(n->records[i].params, &params, sizeof params) == 0);
    CHECK((row == &table) == (i % TRIES >= MOST));
    if (row != &table) CHECK(memcmp(row->fixed, &params, sizeof params) == 0);
    if (i >= TRIES) CHECK(row == n->records[i - TRIES].row);
  }
  end(b);
}

static bool is_large(const void *n) { return *(const uint32_t *)n > 10; }

static const struct kernel listed[] = {
    {"large_f16", &chain_wgsl, NULL, OF_F16, .fits = is_large},
    {"f32_or_i32", &chain_wgsl, NULL, OF_F32 | OF_I32},
    {"too_wide_f16", &chain_wgsl, NULL, OF_F16, .threads = 1 << 20},
    {"bytes", &chain_wgsl, NULL, OF_U8},
    {"any", &chain_wgsl},
    {0},
};
static const struct kernel unlisted[] = {{"other", &chain_wgsl}, {0}};
static const struct op listed_op = {"test.op", .tables = TABLES(listed)};
static const struct kernel too_wide[] = {{"wide", &chain_wgsl, .threads = 1 << 20}, {0}};
static const struct op wide_op = {"test.wide", .tables = TABLES(listed, too_wide)};

/* What decides, in this order: the operator's list, the dtype, the device, the predicate. */
static void a_row_is_chosen_from_the_operators_tables(void) {
  static const struct {
    enum vk_dtype dtype;
    uint32_t n;
    const char *want;
  } cases[] = {
      {VK_FLOAT16, 11, "large_f16"}, {VK_FLOAT16, 10, "any"}, {VK_FLOAT32, 11, "f32_or_i32"},
      {VK_INT32, 1, "f32_or_i32"},   {VK_UINT8, 1, "bytes"},  {VK_BOOL, 1, "any"},
      {VK_UNSET, 1, "any"}};
  struct built *b = begin(&usual);
  const struct node n = {.op = &listed_op};
  struct plan p = {.g = &b->t.graph, .err = &b->err};
  const struct kernel *row;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    CHECK_OK(choose(&p, &n, listed, cases[i].dtype, &cases[i].n, &row), b->err);
    CHECK_TEXT(row->name, cases[i].want);
  }
  CHECK_FAILS(choose(&p, &n, unlisted, VK_FLOAT32, NULL, &row), SCONCE_UNSUPPORTED, b->err,
              "operator 'test.op' does not list the table of kernel 'chain'");
  CHECK(row_for(&p, &n, unlisted, VK_FLOAT32, NULL) == NULL);
  CHECK(kernel_tables_run(&listed_op, VK_FLOAT16, &usual)); /* one row that runs is enough */
  CHECK(!kernel_tables_run(&wide_op, VK_FLOAT16, &usual));
  CHECK_FAILS(choose(&p, &(struct node){.op = &wide_op}, too_wide, VK_FLOAT16, NULL, &row),
              SCONCE_UNSUPPORTED, b->err,
              "no row of kernel 'chain' fits this device and a problem of float16");
  end(b);
}

/* Rows that are wrong on a device serve what nothing else fits, and never a node that has parts. */
static void rows_to_avoid_come_last(void) {
  struct caps careful = usual;
  careful.avoid = "chain/large_f16,other/any,chain/f32_or_i32";
  struct built *b = begin(&careful);
  const struct node n = {.op = &listed_op}, fused = {.op = &listed_op, .n_parts = 2};
  struct plan p = {.g = &b->t.graph, .err = &b->err};
  const uint32_t large = 11;
  CHECK_TEXT(row_for(&p, &n, listed, VK_FLOAT16, &large)->name, "any");
  CHECK_TEXT(row_for(&p, &n, listed, VK_FLOAT32, &large)->name, "any");
  b->t.graph.force = "large_f16";
  CHECK_TEXT(row_for(&p, &n, listed, VK_FLOAT16, &large)->name, "any");
  CHECK(!kernel_runs(&listed[0], &careful) && kernel_runs(&listed[4], &careful));
  b->t.graph.caps.avoid = "chain/any,chain/large_f16";
  CHECK_TEXT(row_for(&p, &n, listed, VK_FLOAT16, &large)->name, "large_f16");
  CHECK(row_for(&p, &fused, listed, VK_FLOAT16, &large) == NULL);
  CHECK_TEXT(row_for(&p, &fused, listed, VK_FLOAT32, &large)->name, "f32_or_i32");
  end(b);
}

/* A portable call repeats its results: the node of it is that of a delegate's call. */
static void results_are_counted_once(void) {
  struct built *b = begin(&usual);
  uint32_t x = input(b, DIMS(5, 8)), w = input(b, DIMS(8)), sizes[] = {number(b, 2), number(b, 3)};
  uint32_t parts[] = {tensor(b, DIMS(2, 8)), tensor(b, DIMS(3, 8))};
  uint32_t norm[] = {tensor(b, DIMS(5, 8)), tensor(b, DIMS(5, 1)), tensor(b, DIMS(5, 1))};
  uint32_t eight = number(b, 8), dims = list(b, &eight, 1), eps = number(b, 1);
  NODE("aten::split_with_sizes_copy.out", x, list(b, sizes, 2), number(b, 0), list(b, parts, 2),
       list(b, parts, 2));
  NODE("aten::native_layer_norm.out", x, dims, w, w, eps, norm[0], norm[1], norm[2],
       list(b, norm, 3));
  CHECK_OK(b->err.status, b->err);
  CHECK_EQ(b->t.graph.nodes[0].n_args, 4);
  CHECK_EQ(b->t.graph.nodes[1].n_args, 6);
  CHECK(b->t.graph.values[out_id(&b->t.graph.nodes[1])].list.ids[2] == norm[2]);
  CHECK_OK(graph_finish(&b->t.graph, &b->err), b->err);
  const uint32_t other[] = {x, dims, w, w, eps, norm[0], norm[1], x, list(b, norm, 3)};
  CHECK_FAILS(
      graph_add_node(&b->t.graph, text_of("aten::native_layer_norm.out"), 2, other, 9, &b->err),
      SCONCE_BAD_GRAPH, b->err, "9 arguments, expected 6");
  end(b);
}

static void numbers_become_bits(void) {
  CHECK_EQ(number_bits(VK_FLOAT32, 1), 0x3f800000);
  CHECK_EQ(number_bits(VK_FLOAT16, 1), 0x3f800000); /* kernels compute in 32 bits */
  CHECK_EQ(number_bits(VK_INT32, -2), 0xfffffffe);
  CHECK_EQ(number_bits(VK_BOOL, 0.25), 1);
  CHECK_EQ(number_bits(VK_INT8, 1e300), 0);
  CHECK_EQ(number_bits(VK_INT32, NAN), 0);
}

/* A file may use any of an operator's names; none of them belongs to two. */
static void every_name_finds_its_operator(void) {
  struct built *b = begin(&usual);
  for (const struct op *const *family = op_families; *family; family++)
    for (const struct op *op = *family; op->name; op++) {
      CHECK(op_find(text_of(op->name)) == op);
      for (const char *at = op->also; at && *at;) {
        const struct text name = {at, strcspn(at, " ")};
        if (op_find(name) != op)
          test_fail(__FILE__, __LINE__, "%.*s is not only %s", TEXT(name), op->name);
        at += name.size + (at[name.size] == ' ');
      }
    }
  CHECK(!op_find(text_of("aten::add")) && !op_find(text_of("aten::add.out aten")));
  CHECK(!op_find(text_of("")));
  end(b);
}

const struct test suite_graph[] = {
    TEST(fixed_parameters_are_rows_of_the_graph),
    TEST(a_row_is_chosen_from_the_operators_tables),
    TEST(rows_to_avoid_come_last),
    TEST(every_name_finds_its_operator),
    TEST(results_are_counted_once),
    TEST(numbers_become_bits),
    TEST(a_view_costs_no_dispatch),
    TEST(an_output_takes_in_what_it_views),
    TEST(two_owned_values_never_share),
    TEST(a_buffer_holds_the_largest_of_its_views),
    TEST(lifetimes_decide_who_shares),
    TEST(equal_constants_share_until_one_is_written),
    TEST(a_layout_is_made_once_for_equal_constants),
    TEST(a_layout_may_be_larger_than_its_source),
    TEST(many_constants_are_found_again),
    TEST(prepack_needs_a_constant_of_the_same_shape),
    TEST(the_checker_sees_broken_plans),
    TEST(a_constant_that_is_written_is_state),
    TEST(an_input_is_no_constant),
    TEST(a_file_that_contradicts_itself_is_seen_at_load),
    TEST(more_nodes_than_allowed_are_refused),
    TEST(buffers_beyond_the_device_are_refused),
    TEST(nothing_changed_plans_nothing),
    TEST(a_failing_shape_is_taken_back),
    TEST(scalars_follow_python),
    TEST(a_negated_scalar),
    TEST(a_64_bit_overflow_is_an_error),
    TEST(sizes_of_intermediates_are_exact_at_once),
    TEST(a_number_of_the_device_stops_the_plan),
    TEST(an_empty_tensor_has_no_number),
    TEST(large_grids_are_folded),
    TEST(rows_fill_a_binding),
    {0},
};
