/* FlatBuffers, read in place. fb_verify walks a whole buffer once against a schema that is plain
 * data; after that every accessor below is a few loads and cannot fail: an absent field gives the
 * default, an index past the end gives zero. Nothing is copied or allocated.
 *
 * The one invariant: a view comes from a buffer that fb_verify accepted with the schema that the
 * accessor assumes. Views point into the buffer and live as long as its bytes. */
#ifndef FORMAT_FLATBUF_H
#define FORMAT_FLATBUF_H

#include "base/span.h"
#include "base/status.h"

/* ---- schemas --------------------------------------------------------------------------------- */

enum fb_kind {
  FB_UNUSED = 0, /* an id that this reader never looks at: not verified, must not be read */
  FB_SCALAR,     /* `width` bytes */
  FB_STRING,
  FB_VECTOR, /* of scalars of `width` bytes */
  FB_TABLE,  /* `types[0]` */
  FB_TABLES, /* vector of `types[0]` */
  FB_UNION,  /* one of `types`, numbered from 1 by the u8 field before this one */
};

struct fb_field {
  const char *name;
  uint8_t kind;  /* enum fb_kind */
  uint8_t width; /* 1, 2, 4 or 8 */
  uint8_t n_types;
  bool required;                      /* absent is an error */
  const struct fb_type *const *types; /* acyclic: a type never contains itself */
};

struct fb_type {
  const char *name;
  const struct fb_field *fields; /* by field id */
  uint32_t n_fields;
};

/* Checks identifier and root, then every offset, vtable, vector, string and union that the schema
 * reaches. Linear: what is visited, shared parts each time they are visited, may be at most
 * FB_VISIT_FACTOR times the buffer, so tables that point at each other's children cannot explode.
 * `origin` is where the buffer starts in the file that the user knows; sentences add it. */
#define FB_VISIT_FACTOR 16
#define FB_MAX_DEPTH 8
struct fb_table;
SCONCE_CHECK sconce_status fb_verify(struct span bytes, const char id[4],
                                     const struct fb_type *type, uint64_t origin,
                                     struct fb_table *root, sconce_error *err);

/* ---- views ----------------------------------------------------------------------------------- */

struct fb_table {
  const uint8_t *at; /* NULL: absent, every field has its default */
};

struct fb_vec {
  const uint8_t *items; /* NULL: absent; an empty vector has items */
  uint32_t n;
};

/* Where a field lies, NULL if absent. */
static inline const uint8_t *fb_field(struct fb_table t, unsigned id) {
  if (!t.at) return NULL;
  const uint8_t *vtable = t.at - (int32_t)load_u32(t.at);
  unsigned slot = 4 + 2 * id;
  if (slot + 2 > load_u16(vtable)) return NULL;
  uint16_t offset = load_u16(vtable + slot);
  return offset ? t.at + offset : NULL;
}

static inline bool fb_has(struct fb_table t, unsigned id) { return fb_field(t, id) != NULL; }

static inline double load_f64(const uint8_t *p) {
  uint64_t bits = load_u64(p);
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static inline bool fb_bool(struct fb_table t, unsigned id) {
  const uint8_t *p = fb_field(t, id);
  return p && *p;
}
static inline uint8_t fb_u8(struct fb_table t, unsigned id, uint8_t absent) {
  const uint8_t *p = fb_field(t, id);
  return p ? *p : absent;
}
static inline int8_t fb_i8(struct fb_table t, unsigned id, int8_t absent) {
  const uint8_t *p = fb_field(t, id);
  return p ? (int8_t)*p : absent;
}
static inline uint32_t fb_u32(struct fb_table t, unsigned id, uint32_t absent) {
  const uint8_t *p = fb_field(t, id);
  return p ? load_u32(p) : absent;
}
static inline int32_t fb_i32(struct fb_table t, unsigned id, int32_t absent) {
  return (int32_t)fb_u32(t, id, (uint32_t)absent);
}
static inline uint64_t fb_u64(struct fb_table t, unsigned id, uint64_t absent) {
  const uint8_t *p = fb_field(t, id);
  return p ? load_u64(p) : absent;
}
static inline int64_t fb_i64(struct fb_table t, unsigned id, int64_t absent) {
  return (int64_t)fb_u64(t, id, (uint64_t)absent);
}
static inline double fb_f64(struct fb_table t, unsigned id, double absent) {
  const uint8_t *p = fb_field(t, id);
  return p ? load_f64(p) : absent;
}

/* What an offset field points at. */
static inline const uint8_t *fb_target(struct fb_table t, unsigned id) {
  const uint8_t *p = fb_field(t, id);
  return p ? p + load_u32(p) : NULL;
}
static inline struct fb_table fb_sub(struct fb_table t, unsigned id) {
  return (struct fb_table){fb_target(t, id)};
}
static inline struct fb_vec fb_vec(struct fb_table t, unsigned id) {
  const uint8_t *p = fb_target(t, id);
  return p ? (struct fb_vec){p + 4, load_u32(p)} : (struct fb_vec){0};
}
static inline struct span fb_bytes(struct fb_table t, unsigned id) {
  struct fb_vec v = fb_vec(t, id);
  return (struct span){v.items, v.n};
}
static inline struct text fb_text(struct fb_table t, unsigned id) {
  struct fb_vec v = fb_vec(t, id);
  return (struct text){(const char *)v.items, v.n};
}

/* Elements. */
static inline struct fb_table fb_table_at(struct fb_vec v, uint32_t i) {
  if (i >= v.n) return (struct fb_table){0};
  const uint8_t *p = v.items + (size_t)i * 4;
  return (struct fb_table){p + load_u32(p)};
}
static inline uint8_t fb_u8_at(struct fb_vec v, uint32_t i) { return i < v.n ? v.items[i] : 0; }
static inline bool fb_bool_at(struct fb_vec v, uint32_t i) { return fb_u8_at(v, i) != 0; }
static inline uint32_t fb_u32_at(struct fb_vec v, uint32_t i) {
  return i < v.n ? load_u32(v.items + (size_t)i * 4) : 0;
}
static inline int32_t fb_i32_at(struct fb_vec v, uint32_t i) { return (int32_t)fb_u32_at(v, i); }
static inline uint64_t fb_u64_at(struct fb_vec v, uint32_t i) {
  return i < v.n ? load_u64(v.items + (size_t)i * 8) : 0;
}
static inline int64_t fb_i64_at(struct fb_vec v, uint32_t i) { return (int64_t)fb_u64_at(v, i); }
static inline double fb_f64_at(struct fb_vec v, uint32_t i) {
  return i < v.n ? load_f64(v.items + (size_t)i * 8) : 0;
}

#endif
