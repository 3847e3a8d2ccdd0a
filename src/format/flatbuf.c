/* The structural verifier: one walk over a buffer, driven by a schema. It keeps a short stack of
 * its own (schemas are acyclic, so its depth is the schema's), and pays for everything it visits
 * from a budget, so that a small file cannot make it work for long. */
#include "format/flatbuf.h"

#include <inttypes.h>

/* A run of tables of one type: a vector of them, or a single one. */
struct run {
  const struct fb_type *type;
  uint64_t offsets; /* position of the vector's first offset */
  uint32_t i, n;
  uint64_t at; /* the table being checked */
  uint32_t field;
};

struct walk {
  struct span bytes;
  uint64_t origin;
  uint64_t budget; /* bytes that may still be visited */
  sconce_error *err;
  struct run stack[FB_MAX_DEPTH];
  uint32_t depth;
};

/* Two arguments for "%s at %" PRIu64: the type's name and the place in the user's file. */
#define WHERE(w, r) (r)->type->name, (w)->origin + (r)->at

static uint32_t u32_at(const struct walk *w, uint64_t at) { return load_u32(w->bytes.data + at); }
static uint16_t u16_at(const struct walk *w, uint64_t at) { return load_u16(w->bytes.data + at); }

static bool inside(const struct walk *w, uint64_t at, uint64_t size) {
  return at <= w->bytes.size && size <= w->bytes.size - at;
}

static sconce_status charge(struct walk *w, uint64_t size) {
  if (size > w->budget)
    return fail(w->err, SCONCE_BAD_FILE,
                "the flatbuffer of %zu bytes refers to its parts more than %d times over",
                w->bytes.size, FB_VISIT_FACTOR);
  w->budget -= size;
  return SCONCE_OK;
}

/* The table's head and its vtable. The vtable's second number, the table's size, is not used: a
 * common writer shares vtables between tables of different sizes. */
static sconce_status check_table(struct walk *w, struct run *r, uint64_t at) {
  r->at = at;
  r->field = 0;
  if (at % 4 != 0 || !inside(w, at, 4))
    return fail(w->err, SCONCE_BAD_FILE, "%s at %" PRIu64 ": not an aligned place inside %zu bytes",
                WHERE(w, r), w->bytes.size);
  int64_t vtable = (int64_t)at - (int32_t)u32_at(w, at);
  if (vtable < 0 || vtable % 2 != 0 || !inside(w, (uint64_t)vtable, 4))
    return fail(w->err, SCONCE_BAD_FILE,
                "%s at %" PRIu64 ": its vtable at %" PRId64 " is not inside %zu bytes", WHERE(w, r),
                (int64_t)w->origin + vtable, w->bytes.size);
  uint64_t v = (uint64_t)vtable;
  uint32_t size = u16_at(w, v);
  if (size < 4 || size % 2 != 0 || !inside(w, v, size))
    return fail(w->err, SCONCE_BAD_FILE,
                "%s at %" PRIu64 ": its vtable at %" PRIu64 " has %u bytes", WHERE(w, r),
                w->origin + v, (unsigned)size);
  return charge(w, 4 + (uint64_t)size * 2); /* the vtable, and a guess for the fields */
}

/* Where a field of `width` bytes lies; 0 if it is absent. */
static sconce_status find_field(const struct walk *w, const struct run *r, uint32_t id,
                                uint32_t width, uint64_t *out) {
  uint64_t vtable = r->at - (uint64_t)(int64_t)(int32_t)u32_at(w, r->at);
  uint32_t slot = 4 + 2 * id;
  *out = 0;
  uint32_t offset = slot + 2 <= u16_at(w, vtable) ? u16_at(w, vtable + slot) : 0;
  if (offset == 0) return SCONCE_OK;
  if (offset < 4 || !inside(w, r->at + offset, width))
    return fail(w->err, SCONCE_BAD_FILE,
                "%s at %" PRIu64 ": %s at +%u, the buffer ends at %" PRIu64, WHERE(w, r),
                r->type->fields[id].name, (unsigned)offset, w->origin + w->bytes.size);
  if ((r->at + offset) % width != 0)
    return fail(w->err, SCONCE_BAD_FILE, "%s at %" PRIu64 ": %s at +%u is not aligned to %u",
                WHERE(w, r), r->type->fields[id].name, (unsigned)offset, (unsigned)width);
  *out = r->at + offset;
  return SCONCE_OK;
}

/* A vector whose elements have `width` bytes, at the target of the offset at `field`. */
static sconce_status check_vector(struct walk *w, const struct run *r, const char *name,
                                  uint64_t field, uint32_t width, uint64_t *items, uint32_t *n) {
  uint64_t at = field + u32_at(w, field);
  if (at == field || at % 4 != 0 || !inside(w, at, 4))
    return fail(w->err, SCONCE_BAD_FILE,
                "%s at %" PRIu64 ": %s points at %" PRIu64 ", the buffer ends at %" PRIu64,
                WHERE(w, r), name, w->origin + at, w->origin + w->bytes.size);
  *n = u32_at(w, at);
  *items = at + 4;
  if (!inside(w, *items, (uint64_t)*n * width))
    return fail(w->err, SCONCE_BAD_FILE,
                "%s at %" PRIu64 ": %s has %u elements at %" PRIu64 ", the buffer ends at %" PRIu64,
                WHERE(w, r), name, (unsigned)*n, w->origin + at, w->origin + w->bytes.size);
  if (*n > 0 && *items % width != 0)
    return fail(w->err, SCONCE_BAD_FILE,
                "%s at %" PRIu64 ": %s has its elements at %" PRIu64 ", not aligned to %u",
                WHERE(w, r), name, w->origin + *items, (unsigned)width);
  return charge(w, 4 + (uint64_t)*n * width);
}

static sconce_status check_string(struct walk *w, const struct run *r, const char *name,
                                  uint64_t field) {
  uint64_t items;
  uint32_t n;
  TRY(check_vector(w, r, name, field, 1, &items, &n));
  if (!inside(w, items + n, 1) || w->bytes.data[items + n] != 0)
    return fail(w->err, SCONCE_BAD_FILE, "%s at %" PRIu64 ": %s of %u bytes has no NUL after it",
                WHERE(w, r), name, (unsigned)n);
  return SCONCE_OK;
}

/* Starts on n tables whose offsets lie at `offsets`. */
static sconce_status push(struct walk *w, const struct fb_type *type, uint64_t offsets,
                          uint32_t n) {
  if (n == 0) return SCONCE_OK;
  if (w->depth == FB_MAX_DEPTH)
    return fail(w->err, SCONCE_BAD_FILE, "%s: nested deeper than %d tables", type->name,
                FB_MAX_DEPTH);
  struct run *r = &w->stack[w->depth++];
  *r = (struct run){.type = type, .offsets = offsets, .n = n};
  return check_table(w, r, offsets + u32_at(w, offsets));
}

/* The field's u8 tag lies in the field before it. Tag 0, a member without value and a value without
 * member are errors, but a member without fields may leave its value out. */
static sconce_status check_union(struct walk *w, struct run *r, uint32_t id, uint64_t field) {
  const struct fb_field *f = &r->type->fields[id];
  uint64_t tag_at;
  TRY(find_field(w, r, id - 1, 1, &tag_at));
  uint32_t tag = tag_at ? w->bytes.data[tag_at] : 0;
  if (tag == 0 || tag > f->n_types)
    return fail(w->err, SCONCE_BAD_FILE, "%s at %" PRIu64 ": %s has the kind %u, known are 1 to %u",
                WHERE(w, r), f->name, (unsigned)tag, (unsigned)f->n_types);
  const struct fb_type *type = f->types[tag - 1];
  if (field) return push(w, type, field, 1);
  if (type->n_fields == 0) return SCONCE_OK;
  return fail(w->err, SCONCE_BAD_FILE, "%s at %" PRIu64 ": %s is a %s without content", WHERE(w, r),
              f->name, type->name);
}

/* May push, so r may no longer be the top of the stack afterwards. */
static sconce_status check_field(struct walk *w, struct run *r, uint32_t id) {
  const struct fb_field *f = &r->type->fields[id];
  if (f->kind == FB_UNUSED) return SCONCE_OK;
  uint64_t at, items;
  uint32_t n;
  TRY(find_field(w, r, id, f->kind == FB_SCALAR ? f->width : 4, &at));
  if (f->kind == FB_UNION) return check_union(w, r, id, at);
  if (at == 0) {
    if (!f->required) return SCONCE_OK;
    return fail(w->err, SCONCE_BAD_FILE, "%s at %" PRIu64 ": %s is missing", WHERE(w, r), f->name);
  }
  switch ((enum fb_kind)f->kind) {
  case FB_STRING:
    return check_string(w, r, f->name, at);
  case FB_VECTOR:
    return check_vector(w, r, f->name, at, f->width, &items, &n);
  case FB_TABLE:
    return push(w, f->types[0], at, 1);
  case FB_TABLES:
    TRY(check_vector(w, r, f->name, at, 4, &items, &n));
    return push(w, f->types[0], items, n);
  default:
    return SCONCE_OK;
  }
}

/* One step: the next field of the table on top, or the next table, or back to the one below. */
static sconce_status step(struct walk *w) {
  struct run *r = &w->stack[w->depth - 1];
  if (r->field < r->type->n_fields) return check_field(w, r, r->field++);
  if (++r->i == r->n) {
    w->depth--;
    return SCONCE_OK;
  }
  uint64_t at = r->offsets + (uint64_t)r->i * 4;
  return check_table(w, r, at + u32_at(w, at));
}

sconce_status fb_verify(struct span bytes, const char id[4], const struct fb_type *type,
                        uint64_t origin, struct fb_table *root, sconce_error *err) {
  *root = (struct fb_table){0};
  if (bytes.size < 8)
    return fail(err, SCONCE_BAD_FILE, "%zu bytes are too few for a flatbuffer", bytes.size);
  if (memcmp(bytes.data + 4, id, 4) != 0)
    return fail(err, SCONCE_BAD_FILE, "the flatbuffer's identifier is '%.4s', expected '%.4s'",
                (const char *)bytes.data + 4, id);
  struct walk w = {.bytes = bytes, .origin = origin, .err = err};
  w.budget = (uint64_t)bytes.size * FB_VISIT_FACTOR;
  TRY(push(&w, type, 0, 1));
  while (w.depth > 0) TRY(step(&w));
  root->at = bytes.data + load_u32(bytes.data);
  return SCONCE_OK;
}
