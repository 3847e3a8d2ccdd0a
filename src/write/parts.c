/* Literals, ids, shapes and segments: see parts.h. */
#include "write/parts.h"

#include "base/checked.h"
#include "format/schema.h"

/* ---- literals -------------------------------------------------------------------------------- */

struct literal literal_null(void) { return (struct literal){.kind = LITERAL_NULL}; }
struct literal literal_int(int64_t v) { return (struct literal){.kind = LITERAL_INT, .i = v}; }
struct literal literal_bool(bool v) { return (struct literal){.kind = LITERAL_BOOL, .i = v}; }
struct literal literal_double(double v) { return (struct literal){.kind = LITERAL_DOUBLE, .d = v}; }
struct literal literal_symint(int32_t v) {
  return (struct literal){.kind = LITERAL_SYMINT, .i = v};
}

static struct literal list_of(enum literal_kind kind, const void *items, size_t n) {
  return (struct literal){.kind = kind, .items = items, .n = (uint32_t)n};
}
struct literal literal_string(const char *v) { return list_of(LITERAL_STRING, v, text_of(v).size); }
struct literal literal_ints(const int64_t *items, uint32_t n) {
  return list_of(LITERAL_INTS, items, n);
}
struct literal literal_doubles(const double *items, uint32_t n) {
  return list_of(LITERAL_DOUBLES, items, n);
}
struct literal literal_bools(const bool *items, uint32_t n) {
  return list_of(LITERAL_BOOLS, items, n);
}
struct literal literal_values(const int32_t *items, uint32_t n) {
  return list_of(LITERAL_VALUES, items, n);
}
struct literal literal_optional_values(const int32_t *items, uint32_t n) {
  return list_of(LITERAL_OPTIONAL_VALUES, items, n);
}

/* Bytes of a list's element; 0 for what is no list. */
static size_t item_size(enum literal_kind kind) {
  switch (kind) {
  case LITERAL_STRING:
    return 1;
  case LITERAL_BOOLS:
    return sizeof(bool);
  case LITERAL_INTS:
  case LITERAL_DOUBLES:
    return 8;
  case LITERAL_VALUES:
  case LITERAL_OPTIONAL_VALUES:
    return 4;
  default:
    return 0;
  }
}

void literal_keep(struct write_state *s, struct literal *v) {
  size_t size = item_size(v->kind);
  if (size) v->items = write_copy(s, v->items, v->n, size);
}

static void write_bools(struct fbw *w, uint32_t slot, const bool *items, uint32_t n) {
  uint32_t at = fbw_vector(w, slot, n, 1, 1);
  for (uint32_t i = 0; at && i < n; i++) fbw_set(w, at + i, items[i], 1);
}

static void write_items(struct fbw *w, uint32_t slot, const struct literal *v) {
  switch (v->kind) {
  case LITERAL_STRING:
    fbw_string(w, slot, (struct text){v->items, v->n});
    break;
  case LITERAL_INTS:
    fbw_i64s(w, slot, v->items, v->n);
    break;
  case LITERAL_DOUBLES:
    fbw_f64s(w, slot, v->items, v->n);
    break;
  case LITERAL_BOOLS:
    write_bools(w, slot, v->items, v->n);
    break;
  default:
    fbw_i32s(w, slot, v->items, v->n);
    break;
  }
}

void literal_write(struct fbw *w, uint32_t slot, const struct literal *v) {
  uint32_t table;
  switch (v->kind) {
  case LITERAL_NULL:
    fbw_table(w, slot, NULL, 0);
    break;
  case LITERAL_INT:
    FBW_TABLE(w, slot, fbw_u64(SCALAR_VAL, (uint64_t)v->i));
    break;
  case LITERAL_BOOL:
    FBW_TABLE(w, slot, fbw_u8(SCALAR_VAL, v->i != 0));
    break;
  case LITERAL_DOUBLE:
    FBW_TABLE(w, slot, fbw_f64(SCALAR_VAL, v->d));
    break;
  case LITERAL_SYMINT:
    FBW_TABLE(w, slot, fbw_i32(SCALAR_VAL, (int32_t)v->i));
    break;
  default:
    table = FBW_TABLE(w, slot, fbw_ref(SCALAR_VAL));
    write_items(w, fbw_slot(w, table, SCALAR_VAL), v);
  }
}

/* ---- ids and shapes -------------------------------------------------------------------------- */

int32_t write_next_id(struct write_state *s, const struct write_list *list) {
  if (write_failed(s)) return -1;
  if (list->n < INT32_MAX) return (int32_t)list->n;
  fail(&s->err, SCONCE_BAD_ARGUMENT, "more than 2^31 rows");
  return -1;
}

void write_add_ids(struct write_state *s, struct write_list *list, const int32_t *ids, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    int32_t *id = write_list_add(s, list, sizeof *id);
    if (!id) return;
    *id = ids[i];
  }
}

struct write_shape write_shape_keep(struct write_state *s, const int32_t *sizes,
                                    const uint8_t *dim_order, uint32_t rank) {
  uint8_t outermost_first[256];
  if (!dim_order) {
    if (rank > sizeof outermost_first && !write_failed(s))
      fail(&s->err, SCONCE_BAD_ARGUMENT, "rank %u without a dim_order, whose entries are bytes",
           rank);
    for (size_t i = 0; i < sizeof outermost_first; i++) outermost_first[i] = (uint8_t)i;
    dim_order = outermost_first;
  }
  return (struct write_shape){write_copy(s, sizes, rank, sizeof *sizes),
                              write_copy(s, dim_order, rank, 1), rank};
}

/* ---- segments -------------------------------------------------------------------------------- */

int32_t write_segment_add(struct write_state *s, struct write_list *segments,
                          const struct write_blob *bytes, uint64_t align) {
  int32_t id = write_next_id(s, segments);
  if (align & (align - 1)) {
    if (id >= 0)
      fail(&s->err, SCONCE_BAD_ARGUMENT, "alignment %llu is no power of two",
           (unsigned long long)align);
    return -1;
  }
  if (align < SEGMENT_ALIGN) align = SEGMENT_ALIGN;
  struct write_segment *segment = write_list_add(s, segments, sizeof *segment);
  if (!segment) return -1;
  segment->align = align;
  write_blob_append(s, &segment->bytes, bytes, 1);
  return id;
}

void write_segments_lay_out(struct write_state *s, struct write_list *segments,
                            struct write_blob *out) {
  struct write_segment *rows = segments->items;
  for (uint32_t i = 0; i < segments->n; i++)
    rows[i].offset = write_blob_append(s, out, &rows[i].bytes, rows[i].align);
}

void write_segments(struct fbw *w, uint32_t slot, const struct write_list *segments) {
  const struct write_segment *rows = segments->items;
  uint32_t refs = fbw_refs(w, slot, segments->n);
  for (uint32_t i = 0; i < segments->n; i++)
    FBW_TABLE(w, refs + 4 * i, fbw_u64(SEGMENT_OFFSET, rows[i].offset),
              fbw_u64(SEGMENT_SIZE, rows[i].bytes.size));
}

sconce_status write_finish(struct fbw *w, const struct write_blob *rest, uint64_t align,
                           struct write_blob *out, sconce_error *err) {
  struct write_state *s = w->state;
  *out = (struct write_blob){0};
  write_blob_add(s, out, write_bytes(w->data, w->size), 1);
  if (rest) write_blob_append(s, out, rest, align);
  if (!write_failed(s)) return SCONCE_OK;
  *out = (struct write_blob){0};
  return fail(err, s->err.status, "%s", s->err.text);
}
