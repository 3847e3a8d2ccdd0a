#include "mutate.h"

#include "format/schema.h"

#include <string.h>

struct random {
  uint64_t state;
};

static uint32_t below(struct random *r, uint32_t n) { /* 0 … n-1; n > 0 */
  r->state = r->state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(r->state >> 33) % n;
}

bool mutate_plainly(unsigned seed) { return seed % 8 == 0; }

/* ---- scalars --------------------------------------------------------------------------------- */

static uint64_t load(const uint8_t *p, uint32_t width) {
  uint64_t value = 0;
  for (uint32_t i = 0; i < width; i++) value |= (uint64_t)p[i] << 8 * i;
  return value;
}

static void store(uint8_t *p, uint32_t width, uint64_t value) {
  for (uint32_t i = 0; i < width; i++) p[i] = (uint8_t)(value >> 8 * i);
}

/* Small numbers are indices and kinds, the others are where sums and products break. */
static void change_scalar(struct random *r, uint8_t *p, uint32_t width) {
  static const uint64_t odd[] = {0,          1,          UINT64_MAX, 0x7f,        0x80,
                                 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, INT64_MAX,
                                 1ull << 63, 1ull << 62, 127,        16,          17};
  uint64_t value = load(p, width);
  switch (below(r, 5)) {
  case 0:
    value = odd[below(r, sizeof odd / sizeof *odd)];
    break;
  case 1:
    value += 1 + below(r, 16);
    break;
  case 2:
    value -= 1 + below(r, 16);
    break;
  case 3:
    value = below(r, 32);
    break;
  case 4:
    value ^= 1ull << below(r, width * 8);
    break;
  }
  store(p, width, value);
}

/* ---- tables ---------------------------------------------------------------------------------- */

struct spot {
  struct fb_table table;
  const struct fb_type *type;
};

/* The verifier's views are const; the input is ours to change. */
static uint8_t *writable(const uint8_t *p) { return (uint8_t *)(uintptr_t)p; }

/* Makes a field absent, or moves it. */
static void change_slot(struct random *r, struct spot s, uint32_t id) {
  const uint8_t *vtable = s.table.at - (int32_t)load_u32(s.table.at);
  if (4 + 2 * id + 2 > load_u16(vtable)) return;
  store(writable(vtable) + 4 + 2 * id, 2, below(r, 2) ? 0 : below(r, 64));
}

/* Two offsets of a vector that now lead to the same table. */
static void share_target(struct random *r, struct fb_vec v) {
  const uint8_t *a = v.items + 4 * (size_t)below(r, v.n), *b = v.items + 4 * (size_t)below(r, v.n);
  store(writable(a), 4, load_u32(b) + (uint64_t)(b - a));
}

static void change_vector(struct random *r, struct fb_vec v, uint32_t width) {
  if (v.n == 0 || below(r, 16) == 0)
    change_scalar(r, writable(v.items) - 4, 4); /* the count */
  else
    change_scalar(r, writable(v.items) + (size_t)width * below(r, v.n), width);
}

/* Changes something at this table, or steps down to a table below: true to go on from there. */
static bool descend(struct random *r, struct spot *s) {
  if (s->type->n_fields == 0) return false;
  uint32_t id = below(r, s->type->n_fields);
  const struct fb_field *f = &s->type->fields[id];
  if (f->kind == FB_UNUSED || !fb_has(s->table, id)) return true;
  if (below(r, 64) == 0) return change_slot(r, *s, id), false;
  if (f->kind == FB_SCALAR)
    return change_scalar(r, writable(fb_field(s->table, id)), f->width), false;
  if (f->kind == FB_STRING || f->kind == FB_VECTOR)
    return change_vector(r, fb_vec(s->table, id), f->width), false;
  if (below(r, 64) == 0) return change_scalar(r, writable(fb_field(s->table, id)), 4), false;
  if (f->kind == FB_TABLES) {
    struct fb_vec v = fb_vec(s->table, id);
    if (v.n == 0 || below(r, 32) == 0) return change_vector(r, v, 4), false;
    if (below(r, 16) == 0) return share_target(r, v), false;
    *s = (struct spot){fb_table_at(v, below(r, v.n)), f->types[0]};
    return true;
  }
  uint32_t tag = f->kind == FB_UNION ? fb_u8(s->table, id - 1, 1) : 1;
  *s = (struct spot){fb_sub(s->table, id), f->types[tag - 1]};
  return true;
}

void mutate_flatbuffer(uint8_t *data, size_t start, size_t end, const char id[4],
                       const struct fb_type *type, unsigned seed) {
  struct random r = {seed};
  struct span bytes = {data + start, end - start};
  for (uint32_t n = 1 + below(&r, 3); n > 0; n--) {
    struct spot s = {.type = type};
    if (fb_verify(bytes, id, type, 0, &s.table, NULL) != SCONCE_OK) {
      if (bytes.size >= 8)
        change_scalar(&r, data + start + (below(&r, (uint32_t)bytes.size - 7) & ~3u), 4);
      return;
    }
    for (int steps = 0; steps < 64 && descend(&r, &s); steps++) continue;
  }
}

/* ---- programs -------------------------------------------------------------------------------- */

/* A delegate's graph inside the program, found by its magic, is as good a place as the program. */
static bool mutate_blob(uint8_t *data, size_t size, unsigned seed) {
  for (size_t at = 16; at + 64 < size; at += 4) {
    if (memcmp(data + at + 4, "VH00", 4) != 0) continue;
    uint64_t start = at + load_u32(data + at + 10), end = start + load_u32(data + at + 14);
    if (start > end || end > size) continue;
    mutate_flatbuffer(data, (size_t)start, (size_t)end, "VK00", &schema_vkgraph, seed / 16);
    return true;
  }
  return false;
}

size_t mutate_program(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  if (size < 64 || mutate_plainly(seed)) return LLVMFuzzerMutate(data, size, max_size);
  if (seed % 8 == 1 && mutate_blob(data, size, seed)) return size;
  uint64_t end = memcmp(data + 8, "eh00", 4) == 0 ? load_u64(data + 16) : size;
  if (seed % 8 == 2) /* the header's numbers, one bit or byte at a time */
    LLVMFuzzerMutate(data + 12 + seed / 8 % 6 * 4, 4, 4);
  else
    mutate_flatbuffer(data, 0, (size_t)(end < size ? end : size), "ET12", &schema_program,
                      seed / 16);
  return size;
}
