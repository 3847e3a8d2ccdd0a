/* The delegate's graph: header, flatbuffer, accessors. vkgraph_verify.c checks what it means. */
#include "format/vkgraph.h"

#include "base/checked.h"
#include "format/schema.h"
#include "format/vkgraph_read.h"

#include <inttypes.h>

/* ---- open ------------------------------------------------------------------------------------ */

/* Positions in the blob; the fields are not aligned. */
enum {
  MAGIC_AT = 4,
  HEADER_SIZE_AT = 8,
  FLATBUFFER_OFFSET_AT = 10,
  FLATBUFFER_SIZE_AT = 14,
  BYTES_OFFSET_AT = 18,
  BYTES_SIZE_AT = 22,
  HEADER_MIN = VKGRAPH_HEAD_SIZE,
};

bool vkgraph_probe(struct span blob) {
  return blob.size >= HEADER_MIN && memcmp(blob.data + MAGIC_AT, "VH00", 4) == 0;
}

static sconce_status check_magic(struct extent blob, sconce_error *err) {
  if (blob.held < HEADER_MIN)
    return fail(err, SCONCE_BAD_FILE, "%" PRIu64 " bytes are too few for a delegate's header",
                blob.held);
  if (!vkgraph_probe(extent_held(blob)))
    return fail(err, SCONCE_BAD_FILE, "the delegate's header starts with '%.4s' instead of VH00",
                (const char *)blob.data + MAGIC_AT);
  return SCONCE_OK;
}

/* When bytes_size is 0 and bytes follow, they are the constant area: writers that never fill the
 * field exist. */
static sconce_status place_constants(struct vkgraph *out, uint64_t flatbuffer_end,
                                     sconce_error *err) {
  const uint8_t *header = out->blob.data;
  uint64_t offset = load_u32(header + BYTES_OFFSET_AT), size = load_u64(header + BYTES_SIZE_AT);
  if (offset < flatbuffer_end)
    return fail(err, SCONCE_BAD_FILE,
                "the constants start at %" PRIu64 ", the flatbuffer ends at %" PRIu64, offset,
                flatbuffer_end);
  if (size == 0 && offset >= out->blob.size) return SCONCE_OK;
  if (size == 0) size = out->blob.size - offset;
  if (!extent_slice(out->blob, offset, size, &out->constant_area))
    return fail(err, SCONCE_BAD_FILE,
                "the constants start at %" PRIu64 " and have %" PRIu64
                " bytes, the delegate has %" PRIu64 " bytes",
                offset, size, out->blob.size);
  return SCONCE_OK;
}

static sconce_status read_header(struct vkgraph *out, struct extent *flatbuffer,
                                 sconce_error *err) {
  TRY(check_magic(out->blob, err));
  const uint8_t *header = out->blob.data;
  uint32_t header_size = load_u16(header + HEADER_SIZE_AT);
  uint64_t offset = load_u32(header + FLATBUFFER_OFFSET_AT);
  uint64_t size = load_u32(header + FLATBUFFER_SIZE_AT);
  if (header_size < HEADER_MIN || offset < header_size)
    return fail(err, SCONCE_BAD_FILE,
                "the delegate's header has %u bytes and its flatbuffer starts at %" PRIu64,
                (unsigned)header_size, offset);
  if (!extent_slice(out->blob, offset, size, flatbuffer))
    return fail(err, SCONCE_BAD_FILE,
                "the flatbuffer starts at %" PRIu64 " and has %" PRIu64
                " bytes, the delegate has %" PRIu64 " bytes",
                offset, size, out->blob.size);
  return place_constants(out, offset + size, err);
}

sconce_status vkgraph_front(struct extent blob, uint64_t *size, sconce_error *err) {
  struct vkgraph g = {.blob = blob};
  struct extent flatbuffer;
  TRY(read_header(&g, &flatbuffer, err));
  *size = flatbuffer.offset - blob.offset + flatbuffer.size;
  return SCONCE_OK;
}

static sconce_status open_graph(struct vkgraph *out, sconce_error *err) {
  struct extent bytes;
  TRY(read_header(out, &bytes, err));
  if (bytes.held < bytes.size)
    return fail(err, SCONCE_BAD_ARGUMENT, "%" PRIu64 " bytes of a flatbuffer of %" PRIu64,
                bytes.held, bytes.size);
  uint64_t origin = bytes.offset - out->blob.offset;
  TRY(fb_verify(extent_held(bytes), "VK00", &schema_vkgraph, origin, &out->root, err));
  out->values = fb_vec(out->root, VKGRAPH_VALUES);
  out->chain = fb_vec(out->root, VKGRAPH_CHAIN);
  out->constants = fb_vec(out->root, VKGRAPH_CONSTANTS);
  out->inputs = fb_vec(out->root, VKGRAPH_INPUT_IDS);
  out->outputs = fb_vec(out->root, VKGRAPH_OUTPUT_IDS);
  out->n_values = out->values.n;
  out->n_calls = out->chain.n;
  out->n_constants = out->constants.n;
  out->n_inputs = out->inputs.n;
  out->n_outputs = out->outputs.n;
  return vkgraph_verify(out, err);
}

sconce_status vkgraph_open(struct vkgraph *out, struct extent blob, struct data_lookup named,
                           sconce_error *err) {
  *out = (struct vkgraph){.blob = blob, .named = named};
  sconce_status status = open_graph(out, err);
  if (status != SCONCE_OK) *out = (struct vkgraph){0};
  return status;
}

/* ---- values ---------------------------------------------------------------------------------- */

enum vk_kind vkgraph_kind(const struct vkgraph *g, uint32_t i) {
  return (enum vk_kind)fb_u8(fb_table_at(g->values, i), UNION_TYPE, 0);
}

struct fb_table vkgraph_value_table(const struct vkgraph *g, uint32_t i) {
  return fb_sub(fb_table_at(g->values, i), UNION_VALUE);
}

struct vk_value vkgraph_value(const struct vkgraph *g, uint32_t i) {
  struct vk_value v = {.kind = vkgraph_kind(g, i)};
  struct fb_table t = vkgraph_value_table(g, i);
  switch (v.kind) {
  case VK_NULL:
    break;
  case VK_INT:
    v.i = fb_i64(t, SCALAR_VAL, 0);
    break;
  case VK_DOUBLE:
    v.d = fb_f64(t, SCALAR_VAL, 0);
    break;
  case VK_BOOLEAN:
    v.b = fb_bool(t, SCALAR_VAL);
    break;
  case VK_TENSOR:
    (void)vkgraph_read_tensor(t, &v.tensor, NULL);
    break;
  case VK_INT_LIST:
  case VK_DOUBLE_LIST:
  case VK_BOOL_LIST:
  case VK_VALUE_LIST:
    v.items = fb_vec(t, LIST_ITEMS);
    break;
  case VK_STRING:
    v.text = fb_text(t, SCALAR_VAL);
    break;
  case VK_SYMINT:
    v.i = fb_i32(t, SCALAR_VAL, 0);
    break;
  }
  return v;
}

struct vk_call vkgraph_call(const struct vkgraph *g, uint32_t i) {
  struct fb_table t = fb_table_at(g->chain, i);
  return (struct vk_call){fb_u32(t, CALL_NODE_ID, 0), fb_text(t, CALL_NAME), fb_vec(t, CALL_ARGS)};
}

/* ---- constants ------------------------------------------------------------------------------- */

struct vk_constant vkgraph_constant(const struct vkgraph *g, uint32_t i) {
  struct fb_table t = fb_table_at(g->constants, i);
  struct vk_constant c = {
      .offset = fb_u64(t, VKBYTES_OFFSET, 0),
      .length = fb_u64(t, VKBYTES_LENGTH, 0),
  };
  c.named = c.offset == UINT64_MAX;
  if (c.named) c.key = fb_text(t, VKBYTES_NAMED_KEY);
  return c;
}

bool vkgraph_tensor_bytes(const struct vkgraph *g, const struct vk_tensor *t, struct extent *out) {
  if (t->constant_id < 0) return false;
  if (!g->named.find && vkgraph_constant(g, (uint32_t)t->constant_id).named) return false;
  return vkgraph_read_bytes(g, t, out, NULL) == SCONCE_OK;
}

/* ---- names ----------------------------------------------------------------------------------- */

uint32_t vk_dtype_size(enum vk_dtype type) {
  static const uint8_t sizes[] = {1, 1, 1, 4, 2, 4, 8, 8};
  return (size_t)type < sizeof sizes ? sizes[type] : 0;
}

const char *vk_dtype_name(enum vk_dtype type) {
  static const char *const names[] = {"bool",    "uint8",   "int8",    "int32",
                                      "float16", "float32", "float64", "int64"};
  return (size_t)type < sizeof names / sizeof *names ? names[type] : "unknown";
}

const char *vk_kind_name(enum vk_kind kind) {
  static const char *const names[] = {
      "none",    "Null",       "Int",      "Double",    "Bool",   "Tensor",
      "IntList", "DoubleList", "BoolList", "ValueList", "String", "SymInt",
  };
  return (size_t)kind < sizeof names / sizeof *names ? names[kind] : "unknown";
}
