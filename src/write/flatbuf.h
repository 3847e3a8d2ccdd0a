/* A flatbuffer written front to back. Offsets in a flatbuffer point forward, so a parent comes
 * first and its fields are filled in as the children follow:
 *
 *   uint32_t call = FBW_TABLE(w, slot, fbw_u32(NODE_ID, 7), fbw_ref(NAME));
 *   fbw_string(w, fbw_slot(w, call, NAME), text_of("aten.add.Tensor"));
 *
 * A slot is the position of the 4 bytes that will point at the child; the root's is FBW_ROOT. Every
 * scalar is written, also where it equals the schema's default, so that nothing hangs on defaults.
 *
 * After a failure (see struct write_state) every call does nothing and returns 0. */
#ifndef WRITE_FLATBUF_H
#define WRITE_FLATBUF_H

#include "base/span.h"
#include "write/write.h"

#include <string.h>

enum { FBW_ROOT = 0, FBW_FIELDS_MAX = 16 };

struct fbw {
  struct write_state *state;
  uint8_t *data; /* in the arena; positions are offsets from here, pointers do not last */
  size_t size, room;
  struct write_list vtables; /* uint32_t: where the distinct vtables are */
};

/* A field of a table; size 0 means absent. */
struct fbw_field {
  uint16_t id, size;
  uint64_t bits;
};

static inline struct fbw_field fbw_u8(uint16_t id, uint8_t v) {
  return (struct fbw_field){id, 1, v};
}
static inline struct fbw_field fbw_u32(uint16_t id, uint32_t v) {
  return (struct fbw_field){id, 4, v};
}
static inline struct fbw_field fbw_i32(uint16_t id, int32_t v) { return fbw_u32(id, (uint32_t)v); }
static inline struct fbw_field fbw_u64(uint16_t id, uint64_t v) {
  return (struct fbw_field){id, 8, v};
}
static inline struct fbw_field fbw_f64(uint16_t id, double v) {
  struct fbw_field field = {id, 8, 0};
  memcpy(&field.bits, &v, 8);
  return field;
}
/* A string, vector, table or union member that follows. */
static inline struct fbw_field fbw_ref(uint16_t id) { return fbw_u32(id, 0); }
static inline struct fbw_field fbw_ref_if(uint16_t id, bool present) {
  return present ? fbw_ref(id) : (struct fbw_field){id, 0, 0};
}

/* Starts with the identifier and zeros for a header that is inserted after it. */
void fbw_begin(struct fbw *w, struct write_state *state, const char *identifier,
               uint32_t header_room);

/* Returns the table's position. At most FBW_FIELDS_MAX fields. */
uint32_t fbw_table(struct fbw *w, uint32_t slot, const struct fbw_field *fields, uint32_t n);
#define FBW_TABLE(w, slot, ...)                                                                    \
  fbw_table(                                                                                       \
      (w), (slot), (const struct fbw_field[]){__VA_ARGS__},                                        \
      (uint32_t)(sizeof((const struct fbw_field[]){__VA_ARGS__}) / sizeof(struct fbw_field)))
/* Where field `id` of a table lies; it was given as present. */
uint32_t fbw_slot(const struct fbw *w, uint32_t table, uint16_t id);

/* The table around a union; returns the slot of its member. */
uint32_t fbw_union(struct fbw *w, uint32_t slot, uint8_t kind);

/* n zeroed elements, the first at a multiple of align; returns the position of the first. */
uint32_t fbw_vector(struct fbw *w, uint32_t slot, size_t n, uint32_t size, uint32_t align);
/* Elements are slots. */
static inline uint32_t fbw_refs(struct fbw *w, uint32_t slot, size_t n) {
  return fbw_vector(w, slot, n, 4, 4);
}
void fbw_i32s(struct fbw *w, uint32_t slot, const int32_t *items, size_t n);
void fbw_i64s(struct fbw *w, uint32_t slot, const int64_t *items, size_t n);
void fbw_u64s(struct fbw *w, uint32_t slot, const uint64_t *items, size_t n);
void fbw_f64s(struct fbw *w, uint32_t slot, const double *items, size_t n);
void fbw_bytes(struct fbw *w, uint32_t slot, const void *items, size_t n);
void fbw_string(struct fbw *w, uint32_t slot, struct text text);

/* Overwrites size bytes, little-endian: for headers. */
void fbw_set(struct fbw *w, size_t at, uint64_t bits, uint32_t size);

#endif
