/* Delegate graphs: a VH00 header, the VK00 flatbuffer, and the bytes of inline constants. */
#include "base/checked.h"
#include "format/schema.h"
#include "write/parts.h"

enum { HEADER_SIZE = 30, HEADER_ROOM = 32 /* padded to 16 */ };

struct value {
  bool is_tensor;
  struct literal literal;
  struct write_vk_tensor tensor;
};

struct call {
  struct text name;
  const int32_t *args;
  uint32_t n;
};

struct constant { /* VkBytes */
  uint64_t offset, length;
  struct text key;
};

void write_vk_init(struct write_vk *g, struct arena *arena) {
  *g = (struct write_vk){.state = {.arena = arena}};
}

/* ---- values ---------------------------------------------------------------------------------- */

static uint8_t union_kind(enum literal_kind kind) {
  static const uint8_t kinds[] = {
      [LITERAL_NULL] = VK_NULL,           [LITERAL_INT] = VK_INT,
      [LITERAL_BOOL] = VK_BOOLEAN,        [LITERAL_DOUBLE] = VK_DOUBLE,
      [LITERAL_STRING] = VK_STRING,       [LITERAL_INTS] = VK_INT_LIST,
      [LITERAL_DOUBLES] = VK_DOUBLE_LIST, [LITERAL_BOOLS] = VK_BOOL_LIST,
      [LITERAL_VALUES] = VK_VALUE_LIST,   [LITERAL_SYMINT] = VK_SYMINT,
  };
  return (size_t)kind < sizeof kinds ? kinds[kind] : 0;
}

static int32_t add_value(struct write_vk *g, const struct value *value) {
  int32_t id = write_next_id(&g->state, &g->values);
  struct value *row = write_list_add(&g->state, &g->values, sizeof *row);
  if (!row) return -1;
  *row = *value;
  return id;
}

int32_t write_vk_value(struct write_vk *g, struct literal value) {
  if (!write_failed(&g->state) && !union_kind(value.kind))
    fail(&g->state.err, SCONCE_BAD_ARGUMENT, "a graph has no values of literal kind %d",
         (int)value.kind);
  literal_keep(&g->state, &value);
  return add_value(g, &(struct value){.literal = value});
}

int32_t write_vk_tensor_as(struct write_vk *g, const struct write_vk_tensor *tensor) {
  struct value value = {.is_tensor = true, .tensor = *tensor};
  value.tensor.dims = write_copy(&g->state, tensor->dims, tensor->rank, sizeof *tensor->dims);
  return add_value(g, &value);
}

int32_t write_vk_constant(struct write_vk *g, enum vk_dtype datatype, const int32_t *dims,
                          uint32_t rank, int32_t constant_id) {
  return write_vk_tensor_as(g, &(struct write_vk_tensor){
                                   .datatype = datatype,
                                   .storage_type = VK_STORAGE_DEFAULT,
                                   .memory_layout = VK_LAYOUT_DEFAULT,
                                   .staging_datatype = VK_UNSET,
                                   .constant_id = constant_id,
                                   .mem_obj_id = -1,
                                   .dims = dims,
                                   .rank = rank,
                               });
}

int32_t write_vk_tensor(struct write_vk *g, enum vk_dtype datatype, const int32_t *dims,
                        uint32_t rank) {
  return write_vk_constant(g, datatype, dims, rank, -1);
}

/* ---- constants, calls, inputs and outputs ---------------------------------------------------- */

int32_t write_vk_bytes_as(struct write_vk *g, uint64_t offset, uint64_t length, const char *key) {
  int32_t id = write_next_id(&g->state, &g->constants);
  struct constant *row = write_list_add(&g->state, &g->constants, sizeof *row);
  if (!row) return -1;
  *row = (struct constant){offset, length, write_copy_text(&g->state, key)};
  return id;
}

int32_t write_vk_inline(struct write_vk *g, sconce_bytes bytes) {
  uint64_t at = write_blob_add(&g->state, &g->inline_constants, bytes, DATA_ALIGN);
  return write_vk_bytes_as(g, at, bytes.size, "");
}

int32_t write_vk_named(struct write_vk *g, const char *key, uint64_t length) {
  return write_vk_bytes_as(g, UINT64_MAX, length, key);
}

void write_vk_call(struct write_vk *g, const char *name, const int32_t *args, uint32_t n) {
  struct call *row = write_list_add(&g->state, &g->calls, sizeof *row);
  if (!row) return;
  row->name = write_copy_text(&g->state, name);
  row->args = write_copy(&g->state, args, n, sizeof *args);
  row->n = n;
}

void write_vk_inputs(struct write_vk *g, const int32_t *ids, uint32_t n) {
  write_add_ids(&g->state, &g->inputs, ids, n);
}

void write_vk_outputs(struct write_vk *g, const int32_t *ids, uint32_t n) {
  write_add_ids(&g->state, &g->outputs, ids, n);
}

/* ---- the blob -------------------------------------------------------------------------------- */

static void put_tensor(struct fbw *w, uint32_t slot, const struct write_vk_tensor *t) {
  uint32_t table = FBW_TABLE(
      w, slot, fbw_ref(VKTENSOR_DIMS), fbw_i32(VKTENSOR_CONSTANT_ID, t->constant_id),
      fbw_i32(VKTENSOR_MEM_OBJ_ID, t->mem_obj_id), fbw_u8(VKTENSOR_DATATYPE, (uint8_t)t->datatype),
      fbw_u8(VKTENSOR_STORAGE_TYPE, t->storage_type),
      fbw_u8(VKTENSOR_MEMORY_LAYOUT, t->memory_layout),
      fbw_u8(VKTENSOR_STAGING_DATATYPE, (uint8_t)t->staging_datatype));
  fbw_i32s(w, fbw_slot(w, table, VKTENSOR_DIMS), t->dims, t->rank);
}

static void put_values(struct fbw *w, uint32_t slot, const struct write_list *values) {
  const struct value *rows = values->items;
  uint32_t refs = fbw_refs(w, slot, values->n);
  for (uint32_t i = 0; i < values->n; i++) {
    const struct value *v = &rows[i];
    uint8_t kind = v->is_tensor ? VK_TENSOR : union_kind(v->literal.kind);
    uint32_t member = fbw_union(w, refs + 4 * i, kind);
    if (v->is_tensor)
      put_tensor(w, member, &v->tensor);
    else
      literal_write(w, member, &v->literal);
  }
}

static void put_chain(struct fbw *w, uint32_t slot, const struct write_list *calls) {
  const struct call *rows = calls->items;
  uint32_t refs = fbw_refs(w, slot, calls->n);
  for (uint32_t i = 0; i < calls->n; i++) {
    uint32_t call = FBW_TABLE(w, refs + 4 * i, fbw_u32(CALL_NODE_ID, i), fbw_ref(CALL_NAME),
                              fbw_ref(CALL_ARGS));
    fbw_string(w, fbw_slot(w, call, CALL_NAME), rows[i].name);
    fbw_i32s(w, fbw_slot(w, call, CALL_ARGS), rows[i].args, rows[i].n);
  }
}

static void put_constants(struct fbw *w, uint32_t slot, const struct write_list *constants) {
  const struct constant *rows = constants->items;
  uint32_t refs = fbw_refs(w, slot, constants->n);
  for (uint32_t i = 0; i < constants->n; i++) {
    uint32_t bytes =
        FBW_TABLE(w, refs + 4 * i, fbw_ref(VKBYTES_NAMED_KEY),
                  fbw_u64(VKBYTES_OFFSET, rows[i].offset), fbw_u64(VKBYTES_LENGTH, rows[i].length));
    fbw_string(w, fbw_slot(w, bytes, VKBYTES_NAMED_KEY), rows[i].key);
  }
}

static void put_graph(struct fbw *w, const struct write_vk *g) {
  uint32_t root =
      FBW_TABLE(w, FBW_ROOT, fbw_ref(VKGRAPH_VERSION), fbw_ref(VKGRAPH_CHAIN),
                fbw_ref(VKGRAPH_VALUES), fbw_ref(VKGRAPH_INPUT_IDS), fbw_ref(VKGRAPH_OUTPUT_IDS),
                fbw_ref(VKGRAPH_CONSTANTS), fbw_ref(VKGRAPH_SHADERS));
  fbw_string(w, fbw_slot(w, root, VKGRAPH_VERSION), text_of("0"));
  put_chain(w, fbw_slot(w, root, VKGRAPH_CHAIN), &g->calls);
  put_values(w, fbw_slot(w, root, VKGRAPH_VALUES), &g->values);
  fbw_i32s(w, fbw_slot(w, root, VKGRAPH_INPUT_IDS), g->inputs.items, g->inputs.n);
  fbw_i32s(w, fbw_slot(w, root, VKGRAPH_OUTPUT_IDS), g->outputs.items, g->outputs.n);
  put_constants(w, fbw_slot(w, root, VKGRAPH_CONSTANTS), &g->constants);
  fbw_refs(w, fbw_slot(w, root, VKGRAPH_SHADERS), 0);
}

/* The header's fields are not aligned. */
static void put_header(struct fbw *header, const struct fbw *graph, uint64_t bytes_size) {
  fbw_set(header, 8, HEADER_SIZE, 2);
  fbw_set(header, 10, HEADER_ROOM, 4);
  fbw_set(header, 14, graph->size, 4);
  fbw_set(header, 18, round_up(HEADER_ROOM + graph->size, DATA_ALIGN), 4);
  fbw_set(header, 22, bytes_size, 8);
}

sconce_status write_vk_finish(struct write_vk *g, struct write_blob *out, sconce_error *err) {
  struct fbw header, graph;
  /* The magic lies where a flatbuffer's identifier would, so a bare header is begun as one. */
  fbw_begin(&header, &g->state, "VH00", HEADER_ROOM - 8);
  fbw_begin(&graph, &g->state, "VK00", 0);
  put_graph(&graph, g);
  put_header(&header, &graph, g->inline_constants.size);

  struct write_blob rest = {0};
  write_blob_add(&g->state, &rest, write_bytes(graph.data, graph.size), 1);
  write_blob_append(&g->state, &rest, &g->inline_constants, DATA_ALIGN);
  write_blob_add(&g->state, &rest, write_zeros(0), DATA_ALIGN);
  return write_finish(&header, &rest, 1, out, err);
}
