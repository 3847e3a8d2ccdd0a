/* Graphs by handle: what the caller names becomes values and calls of a write_vk, and what the
 * program around it must know of them is kept beside it. */
#include "write/writer.h"

#include "base/checked.h"

#include <inttypes.h>

sconce_graph *sconce_writer_graph(sconce_writer *writer) {
  if (!writer || write_failed(&writer->pte.state)) return NULL;
  sconce_graph *g = arena_new(&writer->arena, sconce_graph, 1);
  if (!g) {
    fail(&writer->pte.state.err, SCONCE_NO_MEMORY, "no memory for a graph");
    return NULL;
  }
  g->writer = writer;
  write_vk_init(&g->vk, &writer->arena);
  return g;
}

/* Where a failure of the graph is kept: with the writer, so that save tells the first of all. */
static struct write_state *state(sconce_graph *g) { return &g->writer->pte.state; }

/* May more be added? A failure below is the writer's from here on. */
static bool is_open(sconce_graph *g) {
  if (!g || write_failed(state(g))) return false;
  if (write_failed(&g->vk.state)) {
    state(g)->err = g->vk.state.err;
    return false;
  }
  if (g->ended) fail(&state(g)->err, SCONCE_BAD_ARGUMENT, "a graph that is a method already");
  return !g->ended;
}

/* ---- values ---------------------------------------------------------------------------------- */

bool writer_dtype(sconce_dtype dtype, enum vk_dtype *inside) {
  static const struct {
    sconce_dtype outside;
    enum vk_dtype inside;
  } rows[] = {
      {SCONCE_UINT8, VK_UINT8},     {SCONCE_INT8, VK_INT8},       {SCONCE_INT32, VK_INT32},
      {SCONCE_INT64, VK_INT32},     {SCONCE_FLOAT16, VK_FLOAT16}, {SCONCE_FLOAT32, VK_FLOAT32},
      {SCONCE_FLOAT64, VK_FLOAT32}, {SCONCE_BOOL, VK_BOOL},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].outside == dtype) return *inside = rows[i].inside, true;
  return false;
}

static sconce_status check(sconce_dtype dtype, const uint32_t *dims, uint32_t rank,
                           sconce_error *err) {
  enum vk_dtype inside;
  if (!writer_dtype(dtype, &inside))
    return fail(err, SCONCE_BAD_ARGUMENT, "a graph has no tensors of dtype %d", (int)dtype);
  if (rank > SCONCE_MAX_RANK)
    return fail(err, SCONCE_BAD_ARGUMENT, "rank %u, at most %d", rank, SCONCE_MAX_RANK);
  for (uint32_t i = 0; i < rank; i++)
    if (dims[i] > INT32_MAX)
      return fail(err, SCONCE_BAD_ARGUMENT, "dim %u is %u, at most %d", i, dims[i], INT32_MAX);
  return SCONCE_OK;
}

bool writer_tensor(struct write_state *s, sconce_dtype dtype, const uint32_t *dims, uint32_t rank,
                   struct writer_value *out) {
  if (write_failed(s) || check(dtype, dims, rank, &s->err) != SCONCE_OK) return false;
  *out = (struct writer_value){.kind = VK_TENSOR, .dtype = dtype, .rank = rank, .buffer = -1};
  for (uint32_t i = 0; i < rank; i++) out->dims[i] = (int32_t)dims[i];
  return true;
}

/* The next id stands for both: what the value is outside, and what it is inside. */
static bool note(sconce_graph *g, const struct writer_value *value) {
  struct writer_value *row = write_list_add(state(g), &g->values, sizeof *row);
  if (row) *row = *value;
  return row != NULL;
}

static int32_t add_tensor(sconce_graph *g, const struct writer_value *value, int32_t constant) {
  enum vk_dtype inside = VK_FLOAT32;
  (void)writer_dtype(value->dtype, &inside);
  if (!note(g, value)) return -1;
  return write_vk_constant(&g->vk, inside, value->dims, value->rank, constant);
}

int32_t sconce_graph_tensor(sconce_graph *graph, sconce_dtype dtype, const uint32_t *dims,
                            uint32_t rank) {
  struct writer_value value;
  if (!is_open(graph) || !writer_tensor(state(graph), dtype, dims, rank, &value)) return -1;
  return add_tensor(graph, &value, -1);
}

int32_t sconce_graph_constant(sconce_graph *graph, sconce_dtype dtype, const uint32_t *dims,
                              uint32_t rank, const char *key) {
  struct writer_value value;
  if (!is_open(graph) || !writer_tensor(state(graph), dtype, dims, rank, &value)) return -1;
  if (dtype == SCONCE_INT64 || dtype == SCONCE_FLOAT64) {
    fail(&state(graph)->err, SCONCE_BAD_ARGUMENT,
         "the constant '%.*s' has elements of 64 bits, inside a graph they have 32",
         TEXT(text_of(key)));
    return -1;
  }
  return add_tensor(graph, &value, write_vk_named(&graph->vk, key, writer_size(&value)));
}

uint64_t writer_size(const struct writer_value *value) {
  uint64_t size = scalar_size((int)value->dtype);
  for (uint32_t i = 0; i < value->rank; i++)
    if (!mul_u64(size, (uint64_t)value->dims[i], &size)) return UINT64_MAX;
  return size;
}

static int32_t add_literal(sconce_graph *g, struct literal literal) {
  const bool symint = literal.kind == LITERAL_SYMINT;
  if (!is_open(g) || !note(g, &(struct writer_value){.kind = symint ? VK_SYMINT : VK_NULL}))
    return -1;
  return write_vk_value(&g->vk, literal);
}

int32_t sconce_graph_null(sconce_graph *graph) { return add_literal(graph, literal_null()); }
int32_t sconce_graph_int(sconce_graph *graph, int64_t value) {
  return add_literal(graph, literal_int(value));
}
int32_t sconce_graph_double(sconce_graph *graph, double value) {
  return add_literal(graph, literal_double(value));
}
int32_t sconce_graph_bool(sconce_graph *graph, bool value) {
  return add_literal(graph, literal_bool(value));
}
int32_t sconce_graph_string(sconce_graph *graph, const char *text) {
  return add_literal(graph, literal_string(text));
}
int32_t sconce_graph_ints(sconce_graph *graph, const int64_t *items, uint32_t n) {
  return add_literal(graph, literal_ints(items, n));
}
int32_t sconce_graph_doubles(sconce_graph *graph, const double *items, uint32_t n) {
  return add_literal(graph, literal_doubles(items, n));
}
int32_t sconce_graph_bools(sconce_graph *graph, const bool *items, uint32_t n) {
  return add_literal(graph, literal_bools(items, n));
}
int32_t sconce_graph_values(sconce_graph *graph, const int32_t *ids, uint32_t n) {
  return add_literal(graph, literal_values(ids, n));
}
int32_t sconce_graph_symint(sconce_graph *graph) { return add_literal(graph, literal_symint(0)); }

/* ---- calls and the border -------------------------------------------------------------------- */

void sconce_graph_call(sconce_graph *graph, const char *name, const int32_t *args, uint32_t n) {
  if (is_open(graph)) write_vk_call(&graph->vk, name, args, n);
}

/* What the id stands for, if it is a tensor or, as an output may be, a SymInt. */
static const struct writer_value *crossing(sconce_graph *g, int32_t id, bool symint,
                                           const char *what) {
  if (!is_open(g)) return NULL;
  const struct writer_value *rows = g->values.items;
  const bool is_value = id >= 0 && (uint32_t)id < g->values.n;
  if (is_value && rows[id].kind == VK_TENSOR) return &rows[id];
  if (is_value && rows[id].kind == VK_SYMINT && symint) return &rows[id];
  fail(&state(g)->err, SCONCE_BAD_ARGUMENT, "%s is value %" PRId32 ", which is no tensor%s", what,
       id, symint ? " or SymInt" : "");
  return NULL;
}

static void add_border(sconce_graph *g, struct write_list *list, int32_t id, bool dynamic) {
  struct writer_border *row = write_list_add(state(g), list, sizeof *row);
  if (row) *row = (struct writer_border){id, dynamic};
}

void sconce_graph_input(sconce_graph *graph, int32_t id, bool dynamic) {
  if (!crossing(graph, id, false, "an input")) return;
  add_border(graph, &graph->inputs, id, dynamic);
  write_vk_inputs(&graph->vk, &id, 1);
}

void sconce_graph_output(sconce_graph *graph, int32_t id, bool dynamic) {
  if (crossing(graph, id, true, "an output")) add_border(graph, &graph->outputs, id, dynamic);
}

int32_t sconce_graph_buffer(sconce_graph *graph, int32_t buffer) {
  if (!is_open(graph)) return -1;
  const struct writer_buffer *rows = graph->writer->buffers.items;
  if (buffer < 0 || (uint32_t)buffer >= graph->writer->buffers.n) {
    fail(&state(graph)->err, SCONCE_BAD_ARGUMENT, "buffer %" PRId32 ", the writer has %u", buffer,
         graph->writer->buffers.n);
    return -1;
  }
  const struct writer_value *values = graph->values.items;
  for (uint32_t i = 0; i < graph->values.n; i++)
    if (values[i].kind == VK_TENSOR && values[i].buffer == buffer) return (int32_t)i;
  struct writer_value value = rows[buffer].value;
  value.buffer = buffer;
  const int32_t id = add_tensor(graph, &value, -1);
  if (id >= 0) sconce_graph_input(graph, id, false);
  return id;
}

static bool is_same(const struct writer_value *a, const struct writer_value *b) {
  return a->dtype == b->dtype && a->rank == b->rank &&
         memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0;
}

void sconce_graph_update(sconce_graph *graph, int32_t to, int32_t from) {
  const struct writer_value *into = crossing(graph, to, false, "what is updated");
  const struct writer_value *with = crossing(graph, from, false, "what a buffer is updated with");
  if (!into || !with) return;
  if (!is_same(into, with) || into->buffer < 0) {
    fail(&state(graph)->err, SCONCE_BAD_ARGUMENT,
         "value %" PRId32 " is no buffer of the dtype and dims of value %" PRId32, to, from);
    return;
  }
  struct writer_update *row = write_list_add(state(graph), &graph->updates, sizeof *row);
  if (row) *row = (struct writer_update){to, from};
}
