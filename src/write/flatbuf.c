/* Flatbuffer writer: see flatbuf.h. The one invariant: every position given out is final,
 * since bytes are only ever appended or patched in place. */
#include "write/flatbuf.h"

#include "base/checked.h"

/* Table to vtable is a signed 32-bit distance. */
static const size_t SIZE_LIMIT = INT32_MAX;

static bool grow(struct fbw *w, size_t need) {
  size_t room = w->room ? w->room : 1024;
  while (room < need) room *= 2;
  uint8_t *data = arena_new(w->state->arena, uint8_t, room);
  if (!data) {
    fail(&w->state->err, SCONCE_NO_MEMORY, "no memory for a flatbuffer of %zu bytes", room);
    return false;
  }
  if (w->size) memcpy(data, w->data, w->size);
  w->data = data;
  w->room = room;
  return true;
}

/* Appends zeros so that what comes `skip` bytes after the returned position is aligned. */
static bool append(struct fbw *w, uint64_t size, uint32_t skip, uint32_t align, size_t *at) {
  if (write_failed(w->state)) return false;
  size_t start = (size_t)round_up(w->size + skip, align) - skip;
  if (size > SIZE_LIMIT || start + size > SIZE_LIMIT) {
    fail(&w->state->err, SCONCE_BAD_ARGUMENT, "a flatbuffer holds 2 GiB, %zu + %llu bytes given",
         start, (unsigned long long)size);
    return false;
  }
  size_t end = start + (size_t)size;
  if (end > w->room && !grow(w, end)) return false;
  w->size = end;
  *at = start;
  return true;
}

void fbw_set(struct fbw *w, size_t at, uint64_t bits, uint32_t size) {
  if (write_failed(w->state)) return;
  for (uint32_t i = 0; i < size; i++) w->data[at + i] = (uint8_t)(bits >> (8 * i));
}

static void point(struct fbw *w, uint32_t slot, size_t at) { fbw_set(w, slot, at - slot, 4); }

void fbw_begin(struct fbw *w, struct write_state *state, const char *identifier,
               uint32_t header_room) {
  *w = (struct fbw){.state = state};
  size_t at = 0;
  if (append(w, 8 + (uint64_t)header_room, 0, 1, &at)) memcpy(w->data + 4, identifier, 4);
}

/* ---- tables ---------------------------------------------------------------------------------- */

struct vtable {
  uint16_t slots[2 + FBW_FIELDS_MAX]; /* bytes of the vtable, bytes of the table, fields' offsets */
  uint32_t size, align;               /* bytes of the vtable; alignment of the table */
};

/* Fields lie in the order given, each at a multiple of its own size. */
static struct vtable lay_out(const struct fbw_field *fields, uint32_t n) {
  struct vtable v = {.size = 4, .align = 4};
  uint32_t end = 4; /* after the distance to the vtable */
  for (uint32_t i = 0; i < n; i++) {
    const struct fbw_field *field = &fields[i];
    if (!field->size) continue;
    uint32_t at = (uint32_t)round_up(end, field->size);
    v.slots[2 + field->id] = (uint16_t)at;
    end = at + field->size;
    if (field->size > v.align) v.align = field->size;
    if (v.size < 6u + 2u * field->id) v.size = 6u + 2u * field->id;
  }
  v.slots[0] = (uint16_t)v.size;
  v.slots[1] = (uint16_t)end;
  return v;
}

static bool same_vtable(const struct fbw *w, uint32_t at, const struct vtable *v) {
  for (uint32_t i = 0; i < v->size / 2; i++)
    if (load_u16(w->data + at + 2 * i) != v->slots[i]) return false;
  return true; /* the first slot is the size, so a shorter one differs at once */
}

/* Tables of one shape share a vtable: a graph has thousands of tables and a dozen shapes. */
static bool place_vtable(struct fbw *w, const struct vtable *v, size_t *at) {
  const uint32_t *known = w->vtables.items;
  for (uint32_t i = 0; i < w->vtables.n; i++)
    if (same_vtable(w, known[i], v)) {
      *at = known[i];
      return true;
    }
  uint32_t *row = write_list_add(w->state, &w->vtables, sizeof *row);
  if (!row || !append(w, v->size, 0, 2, at)) return false;
  *row = (uint32_t)*at;
  for (uint32_t i = 0; i < v->size / 2; i++) fbw_set(w, *at + 2 * i, v->slots[i], 2);
  return true;
}

uint32_t fbw_table(struct fbw *w, uint32_t slot, const struct fbw_field *fields, uint32_t n) {
  struct vtable v = lay_out(fields, n);
  size_t vtable = 0, at = 0;
  if (write_failed(w->state) || !place_vtable(w, &v, &vtable)) return 0;
  if (!append(w, v.slots[1], 0, v.align, &at)) return 0;
  point(w, slot, at);
  fbw_set(w, at, at - vtable, 4);
  for (uint32_t i = 0; i < n; i++)
    fbw_set(w, at + v.slots[2 + fields[i].id], fields[i].bits, fields[i].size);
  return (uint32_t)at;
}

uint32_t fbw_slot(const struct fbw *w, uint32_t table, uint16_t id) {
  if (write_failed(w->state)) return 0;
  const uint8_t *vtable = w->data + table - load_u32(w->data + table);
  return table + load_u16(vtable + 4 + 2 * id);
}

uint32_t fbw_union(struct fbw *w, uint32_t slot, uint8_t kind) {
  uint32_t table = FBW_TABLE(w, slot, fbw_ref(1), fbw_u8(0, kind));
  return fbw_slot(w, table, 1);
}

/* ---- vectors --------------------------------------------------------------------------------- */

uint32_t fbw_vector(struct fbw *w, uint32_t slot, size_t n, uint32_t size, uint32_t align) {
  uint64_t bytes = 0;
  if (!mul_u64(n, size, &bytes) || !add_u64(bytes, 4, &bytes)) bytes = UINT64_MAX;
  size_t at = 0;
  if (!append(w, bytes, 4, align < 4 ? 4 : align, &at)) return 0;
  point(w, slot, at);
  fbw_set(w, at, n, 4);
  return (uint32_t)at + 4;
}

void fbw_i32s(struct fbw *w, uint32_t slot, const int32_t *items, size_t n) {
  uint32_t at = fbw_vector(w, slot, n, 4, 4);
  for (size_t i = 0; at && i < n; i++) fbw_set(w, at + 4 * i, (uint32_t)items[i], 4);
}

void fbw_i64s(struct fbw *w, uint32_t slot, const int64_t *items, size_t n) {
  uint32_t at = fbw_vector(w, slot, n, 8, 8);
  for (size_t i = 0; at && i < n; i++) fbw_set(w, at + 8 * i, (uint64_t)items[i], 8);
}

void fbw_u64s(struct fbw *w, uint32_t slot, const uint64_t *items, size_t n) {
  uint32_t at = fbw_vector(w, slot, n, 8, 8);
  for (size_t i = 0; at && i < n; i++) fbw_set(w, at + 8 * i, items[i], 8);
}

void fbw_f64s(struct fbw *w, uint32_t slot, const double *items, size_t n) {
  uint32_t at = fbw_vector(w, slot, n, 8, 8);
  for (size_t i = 0; at && i < n; i++) fbw_set(w, at + 8 * i, fbw_f64(0, items[i]).bits, 8);
}

void fbw_bytes(struct fbw *w, uint32_t slot, const void *items, size_t n) {
  uint32_t at = fbw_vector(w, slot, n, 1, 1);
  if (at && n) memcpy(w->data + at, items, n);
}

void fbw_string(struct fbw *w, uint32_t slot, struct text text) {
  size_t terminator = 0;
  fbw_bytes(w, slot, text.data, text.size);
  (void)append(w, 1, 0, 1, &terminator);
}
