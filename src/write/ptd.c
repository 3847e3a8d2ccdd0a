/* Data files: named segments behind a FlatTensor, whose header is always there. */
#include "base/checked.h"
#include "format/schema.h"
#include "write/parts.h"

enum { HEADER_SIZE = 40, HEADER_ROOM = 48 /* padded to 16 */ };

struct entry {
  struct text key;
  int32_t segment;
  bool has_layout;
  int scalar_type; /* enum scalar_type */
  struct write_shape shape;
};

void write_ptd_init(struct write_ptd *w, struct arena *arena) {
  *w = (struct write_ptd){.state = {.arena = arena}};
}

int32_t write_ptd_segment(struct write_ptd *w, sconce_bytes bytes) {
  struct write_blob blob = {0};
  write_blob_add(&w->state, &blob, bytes, 1);
  return write_segment_add(&w->state, &w->segments, &blob, 0);
}

void write_ptd_named(struct write_ptd *w, const char *key, int32_t segment,
                     const struct write_ptd_layout *layout) {
  struct entry *row = write_list_add(&w->state, &w->named, sizeof *row);
  if (!row) return;
  row->key = write_copy_text(&w->state, key);
  row->segment = segment;
  if (!layout) return;
  row->has_layout = true;
  row->scalar_type = layout->scalar_type;
  row->shape = write_shape_keep(&w->state, layout->sizes, layout->dim_order, layout->rank);
}

static void put_layout(struct fbw *w, uint32_t slot, const struct entry *entry) {
  uint32_t layout = FBW_TABLE(w, slot, fbw_ref(LAYOUT_SIZES), fbw_ref(LAYOUT_DIM_ORDER),
                              fbw_u8(LAYOUT_SCALAR_TYPE, (uint8_t)entry->scalar_type));
  const struct write_shape *shape = &entry->shape;
  fbw_i32s(w, fbw_slot(w, layout, LAYOUT_SIZES), shape->sizes, shape->rank);
  fbw_bytes(w, fbw_slot(w, layout, LAYOUT_DIM_ORDER), shape->dim_order, shape->rank);
}

static void put_named(struct fbw *w, uint32_t slot, const struct write_list *named) {
  const struct entry *rows = named->items;
  uint32_t refs = fbw_refs(w, slot, named->n);
  for (uint32_t i = 0; i < named->n; i++) {
    uint32_t entry = FBW_TABLE(w, refs + 4 * i, fbw_ref(NAMED_DATA_KEY),
                               fbw_i32(NAMED_DATA_SEGMENT_INDEX, rows[i].segment),
                               fbw_ref_if(NAMED_DATA_TENSOR_LAYOUT, rows[i].has_layout));
    fbw_string(w, fbw_slot(w, entry, NAMED_DATA_KEY), rows[i].key);
    if (rows[i].has_layout) put_layout(w, fbw_slot(w, entry, NAMED_DATA_TENSOR_LAYOUT), &rows[i]);
  }
}

/* flatbuffer_size counts the flatbuffer without the header that is inserted into it. */
static void put_header(struct fbw *w, uint64_t segment_data_size) {
  if (write_failed(w->state)) return;
  memcpy(w->data + HEADER_AT, "FH01", 4);
  fbw_set(w, 12, HEADER_SIZE, 4);
  fbw_set(w, 16, HEADER_ROOM, 8);
  fbw_set(w, 24, w->size - HEADER_ROOM, 8);
  fbw_set(w, 32, round_up(w->size, SEGMENT_ALIGN), 8);
  fbw_set(w, 40, segment_data_size, 8);
}

sconce_status write_ptd_finish(struct write_ptd *w, struct write_blob *out, sconce_error *err) {
  struct write_blob data = {0};
  write_segments_lay_out(&w->state, &w->segments, &data);
  struct fbw flat;
  fbw_begin(&flat, &w->state, "FT01", HEADER_ROOM);
  uint32_t root = FBW_TABLE(&flat, FBW_ROOT, fbw_u32(FLAT_TENSOR_VERSION, 0),
                            fbw_ref(FLAT_TENSOR_SEGMENTS), fbw_ref(FLAT_TENSOR_NAMED_DATA));
  write_segments(&flat, fbw_slot(&flat, root, FLAT_TENSOR_SEGMENTS), &w->segments);
  put_named(&flat, fbw_slot(&flat, root, FLAT_TENSOR_NAMED_DATA), &w->named);
  put_header(&flat, data.size);
  return write_finish(&flat, &data, SEGMENT_ALIGN, out, err);
}
