/* What a graph means: ids, kinds, dims, constants, and the order of definitions. The structure is
 * verified before. */
#include "format/vkgraph_read.h"

#include "base/checked.h"
#include "format/schema.h"

#include <inttypes.h>

/* ---- tensors --------------------------------------------------------------------------------- */

static sconce_status read_dims(struct fb_vec dims, struct vk_tensor *out, sconce_error *err) {
  if (dims.n > VK_MAX_RANK)
    return fail(err, SCONCE_UNSUPPORTED, "rank %u, at most %d", (unsigned)dims.n, VK_MAX_RANK);
  uint64_t product = vk_dtype_size(out->dtype); /* of the nonzero dims, so that strides fit too */
  bool empty = false;
  out->rank = dims.n;
  for (uint32_t i = 0; i < dims.n; i++) {
    out->dims[i] = fb_u32_at(dims, i);
    empty |= out->dims[i] == 0;
    if (out->dims[i] > 0 && (!mul_u64(product, out->dims[i], &product) || product > INT64_MAX))
      return fail(err, SCONCE_BAD_GRAPH,
                  "the bytes of a tensor of rank %u overflow at dims[%u] = %u", (unsigned)dims.n,
                  (unsigned)i, (unsigned)out->dims[i]);
  }
  out->nbytes = empty ? 0 : product;
  out->numel = out->nbytes / vk_dtype_size(out->dtype);
  return SCONCE_OK;
}

/* The schema's defaults: an absent datatype is BOOL, and an absent constant_id or mem_obj_id is
 * number 0, not "none". */
sconce_status vkgraph_read_tensor(struct fb_table t, struct vk_tensor *out, sconce_error *err) {
  int8_t dtype = fb_i8(t, VKTENSOR_DATATYPE, VK_BOOL);
  int8_t staging = fb_i8(t, VKTENSOR_STAGING_DATATYPE, VK_UNSET);
  *out = (struct vk_tensor){
      .dtype = (enum vk_dtype)dtype,
      .constant_id = fb_i32(t, VKTENSOR_CONSTANT_ID, 0),
      .mem_obj_id = fb_i32(t, VKTENSOR_MEM_OBJ_ID, 0),
      .storage_type = fb_u8(t, VKTENSOR_STORAGE_TYPE, 255),
      .memory_layout = fb_u8(t, VKTENSOR_MEMORY_LAYOUT, 255),
      .staging = (enum vk_dtype)staging,
  };
  if (dtype < 0 || vk_dtype_size(out->dtype) == 0)
    return fail(err, SCONCE_BAD_GRAPH, "datatype %d is unknown", dtype);
  if (staging != VK_UNSET && (staging < 0 || vk_dtype_size(out->staging) == 0))
    return fail(err, SCONCE_BAD_GRAPH, "staging datatype %d is unknown", staging);
  return read_dims(fb_vec(t, VKTENSOR_DIMS), out, err);
}

static sconce_status find_named(const struct vkgraph *g, const struct vk_tensor *t, struct text key,
                                struct extent *out, sconce_error *err) {
  if (!g->named.find) return SCONCE_OK;
  struct extent found = {0};
  if (!g->named.find(g->named.user, key, &found))
    return fail(err, SCONCE_BAD_GRAPH,
                "constant %d is named '%.*s', and there is no such data; is a .ptd file missing?",
                (int)t->constant_id, TEXT(key));
  if (found.size < t->nbytes)
    return fail(err, SCONCE_BAD_GRAPH,
                "constant %d needs %" PRIu64 " bytes, the data named '%.*s' has %" PRIu64,
                (int)t->constant_id, t->nbytes, TEXT(key), found.size);
  (void)extent_slice(found, 0, t->nbytes, out);
  return SCONCE_OK;
}

sconce_status vkgraph_read_bytes(const struct vkgraph *g, const struct vk_tensor *t,
                                 struct extent *out, sconce_error *err) {
  *out = (struct extent){0};
  if (t->constant_id < 0 || (uint32_t)t->constant_id >= g->n_constants)
    return fail(err, SCONCE_BAD_GRAPH, "constant_id is %d, the graph has %u constants",
                (int)t->constant_id, (unsigned)g->n_constants);
  struct vk_constant c = vkgraph_constant(g, (uint32_t)t->constant_id);
  if (c.named) return find_named(g, t, c.key, out, err);
  if (t->nbytes == 0 || extent_slice(g->constant_area, c.offset, t->nbytes, out)) return SCONCE_OK;
  return fail(err, SCONCE_BAD_GRAPH,
              "constant %d needs %" PRIu64 " bytes at %" PRIu64
              " of the constants, which have %" PRIu64,
              (int)t->constant_id, t->nbytes, c.offset, g->constant_area.size);
}

/* mem_obj_id only groups tensors and sizes no table here: a delegate of one value may have place
 * number 1. */
static sconce_status check_tensor(const struct vkgraph *g, uint32_t i, uint32_t *n_lookups,
                                  sconce_error *err) {
  struct vk_tensor t;
  struct extent bytes;
  TRY(vkgraph_read_tensor(vkgraph_value_table(g, i), &t, err));
  if (t.mem_obj_id < -1) return fail(err, SCONCE_BAD_GRAPH, "mem_obj_id is %d", (int)t.mem_obj_id);
  if (t.constant_id < -1)
    return fail(err, SCONCE_BAD_GRAPH, "constant_id is %d", (int)t.constant_id);
  if (t.constant_id == -1) return SCONCE_OK;
  if (++*n_lookups > VK_MAX_CONSTANTS)
    return fail(err, SCONCE_BAD_GRAPH, "more than %u tensors are constants", VK_MAX_CONSTANTS);
  return vkgraph_read_bytes(g, &t, &bytes, err);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* No list in a list: expansion is one level, and there are no cycles. */
static sconce_status check_value_list(const struct vkgraph *g, uint32_t i, sconce_error *err) {
  struct fb_vec items = vkgraph_value(g, i).items;
  for (uint32_t k = 0; k < items.n; k++) {
    int32_t id = fb_i32_at(items, k);
    if (id < 0 || (uint32_t)id >= g->n_values)
      return fail(err, SCONCE_BAD_GRAPH, "item %u is value %d, the graph has %u values",
                  (unsigned)k, (int)id, (unsigned)g->n_values);
    if (vkgraph_kind(g, (uint32_t)id) == VK_VALUE_LIST)
      return fail(err, SCONCE_BAD_GRAPH, "item %u is value %d, a list in a list", (unsigned)k,
                  (int)id);
  }
  return SCONCE_OK;
}

/* A lookup may be a search, so how many are made has a limit of its own. */
static sconce_status check_values(const struct vkgraph *g, sconce_error *err) {
  uint32_t n_lookups = 0;
  for (uint32_t i = 0; i < g->n_values; i++) {
    enum vk_kind kind = vkgraph_kind(g, i);
    sconce_status status = SCONCE_OK;
    if (kind == VK_TENSOR) status = check_tensor(g, i, &n_lookups, err);
    if (kind == VK_VALUE_LIST) status = check_value_list(g, i, err);
    if (status == SCONCE_OK) continue;
    error_prefix(err, "value %u (%s): ", (unsigned)i, vk_kind_name(kind));
    return status;
  }
  return SCONCE_OK;
}

static sconce_status check_constants(const struct vkgraph *g, sconce_error *err) {
  if (g->n_constants > VK_MAX_CONSTANTS)
    return fail(err, SCONCE_BAD_GRAPH, "%u constants, at most %u", (unsigned)g->n_constants,
                VK_MAX_CONSTANTS);
  for (uint32_t i = 0; i < g->n_constants; i++) {
    struct vk_constant c = vkgraph_constant(g, i);
    if (c.named && (c.key.size == 0 || c.key.size > DATA_MAX_KEY))
      return fail(err, SCONCE_BAD_GRAPH, "constant %u is named with %zu bytes, allowed are 1 to %u",
                  (unsigned)i, c.key.size, DATA_MAX_KEY);
  }
  return SCONCE_OK;
}

static bool is_constant(const struct vkgraph *g, uint32_t id) {
  return vkgraph_kind(g, id) == VK_TENSOR &&
         fb_i32(vkgraph_value_table(g, id), VKTENSOR_CONSTANT_ID, 0) >= 0;
}

static sconce_status check_border(const struct vkgraph *g, struct fb_vec ids, const char *name,
                                  sconce_error *err) {
  for (uint32_t i = 0; i < ids.n; i++) {
    uint32_t id = fb_u32_at(ids, i);
    if (id >= g->n_values)
      return fail(err, SCONCE_BAD_GRAPH, "%s %u is value %u, the graph has %u values", name,
                  (unsigned)i, (unsigned)id, (unsigned)g->n_values);
    enum vk_kind kind = vkgraph_kind(g, id);
    if (kind != VK_TENSOR && kind != VK_SYMINT)
      return fail(err, SCONCE_BAD_GRAPH, "%s %u is value %u, a %s", name, (unsigned)i, (unsigned)id,
                  vk_kind_name(kind));
  }
  return SCONCE_OK;
}

/* A caller's bytes are copied into an input, so it must not be a constant too. */
static sconce_status check_inputs(const struct vkgraph *g, sconce_error *err) {
  TRY(check_border(g, g->inputs, "input", err));
  for (uint32_t i = 0; i < g->n_inputs; i++) {
    uint32_t id = fb_u32_at(g->inputs, i);
    if (is_constant(g, id))
      return fail(err, SCONCE_BAD_GRAPH, "input %u is value %u, a constant", (unsigned)i,
                  (unsigned)id);
  }
  return SCONCE_OK;
}

/* ---- defined before use ---------------------------------------------------------------------- */

/* Which values exist at a point of the chain takes a bit each. Bits are kept for a window of values
 * at a time, and the chain is walked once per window: once for every real graph, at most
 * VK_MAX_VALUES / WINDOW times. */
#define WINDOW 65536u

struct scope {
  const struct vkgraph *g;
  uint32_t first;  /* of the window */
  uint64_t budget; /* list items that may still be looked at */
  uint8_t bits[WINDOW / 8];
};

static void define(struct scope *s, uint32_t id) {
  uint32_t at = id - s->first;
  if (at < WINDOW) s->bits[at / 8] |= (uint8_t)(1u << at % 8);
}

/* Values that need a definition, and have none yet. What lies outside the window passes: it has
 * another turn. */
static bool undefined(const struct scope *s, uint32_t id) {
  uint32_t at = id - s->first;
  if (at >= WINDOW || (s->bits[at / 8] >> at % 8 & 1)) return false;
  enum vk_kind kind = vkgraph_kind(s->g, id);
  return kind == VK_SYMINT || (kind == VK_TENSOR && !is_constant(s->g, id));
}

/* Argument or output `id` as the values it stands for: itself, or a list's items. */
static struct fb_vec expand(const struct vkgraph *g, uint32_t id, uint32_t *n) {
  if (vkgraph_kind(g, id) != VK_VALUE_LIST) {
    *n = 1;
    return (struct fb_vec){0};
  }
  struct fb_vec items = vkgraph_value(g, id).items;
  *n = items.n;
  return items;
}

static sconce_status pay(struct scope *s, uint32_t n, sconce_error *err) {
  if (n > s->budget)
    return fail(err, SCONCE_BAD_GRAPH, "value lists are expanded to too many items");
  s->budget -= n;
  return SCONCE_OK;
}

static sconce_status use(struct scope *s, uint32_t arg, uint32_t id, sconce_error *err) {
  uint32_t n;
  struct fb_vec items = expand(s->g, id, &n);
  TRY(pay(s, n, err));
  for (uint32_t i = 0; i < n; i++) {
    uint32_t at = items.items ? fb_u32_at(items, i) : id;
    if (undefined(s, at))
      return fail(err, SCONCE_BAD_GRAPH, "argument %u is value %u, used before it is defined",
                  (unsigned)arg, (unsigned)at);
  }
  return SCONCE_OK;
}

static sconce_status produce(struct scope *s, uint32_t id, sconce_error *err) {
  uint32_t n;
  struct fb_vec items = expand(s->g, id, &n);
  TRY(pay(s, n, err));
  for (uint32_t i = 0; i < n; i++) {
    uint32_t at = items.items ? fb_u32_at(items, i) : id;
    enum vk_kind kind = vkgraph_kind(s->g, at);
    if (kind != VK_TENSOR && kind != VK_SYMINT)
      return fail(err, SCONCE_BAD_GRAPH, "its output is value %u, a %s", (unsigned)at,
                  vk_kind_name(kind));
    define(s, at);
  }
  return SCONCE_OK;
}

static sconce_status check_call(struct scope *s, uint32_t i, sconce_error *err) {
  struct fb_vec args = vkgraph_call(s->g, i).args;
  if (args.n == 0) return fail(err, SCONCE_BAD_GRAPH, "no arguments, not even an output");
  for (uint32_t a = 0; a < args.n; a++) {
    int32_t id = fb_i32_at(args, a);
    if (id < 0 || (uint32_t)id >= s->g->n_values)
      return fail(err, SCONCE_BAD_GRAPH, "argument %u is value %d, the graph has %u values",
                  (unsigned)a, (int)id, (unsigned)s->g->n_values);
    TRY(a + 1 < args.n ? use(s, a, (uint32_t)id, err) : produce(s, (uint32_t)id, err));
  }
  return SCONCE_OK;
}

static sconce_status check_window(struct scope *s, sconce_error *err) {
  const struct vkgraph *g = s->g;
  memset(s->bits, 0, sizeof s->bits);
  for (uint32_t i = 0; i < g->n_inputs; i++) define(s, fb_u32_at(g->inputs, i));
  for (uint32_t i = 0; i < g->n_calls; i++) {
    sconce_status status = check_call(s, i, err);
    if (status == SCONCE_OK) continue;
    error_prefix(err, "node %u (%.*s): ", (unsigned)i, TEXT(vkgraph_call(g, i).name));
    return status;
  }
  for (uint32_t i = 0; i < g->n_outputs; i++)
    if (undefined(s, fb_u32_at(g->outputs, i)))
      return fail(err, SCONCE_BAD_GRAPH, "output %u is value %u, which nothing defines",
                  (unsigned)i, (unsigned)fb_u32_at(g->outputs, i));
  return SCONCE_OK;
}

static sconce_status check_chain(const struct vkgraph *g, sconce_error *err) {
  struct scope s;
  s.g = g;
  for (uint64_t first = 0; first < g->n_values || first == 0; first += WINDOW) {
    s.first = (uint32_t)first;
    s.budget = FB_VISIT_FACTOR * (uint64_t)g->blob.size;
    TRY(check_window(&s, err));
  }
  return SCONCE_OK;
}

sconce_status vkgraph_verify(const struct vkgraph *g, sconce_error *err) {
  if (g->n_values > VK_MAX_VALUES)
    return fail(err, SCONCE_BAD_GRAPH, "%u values, at most %u", (unsigned)g->n_values,
                VK_MAX_VALUES);
  TRY(check_constants(g, err));
  TRY(check_values(g, err));
  TRY(check_inputs(g, err));
  TRY(check_border(g, g->outputs, "output", err));
  return check_chain(g, err);
}
