/* Borrowed bytes and borrowed text: a pointer and a size, never a terminator. */
#ifndef BASE_SPAN_H
#define BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct span {
  const uint8_t *data;
  size_t size; /* bytes */
};

struct text {
  const char *data;
  size_t size; /* bytes, no NUL counted */
};

/* printf("%.*s", TEXT(name)) */
#define TEXT(t) (int)((t).size < 200 ? (t).size : 200), (t).data ? (t).data : ""

/* The part [offset, offset + size) of a span; false if it is not inside. */
static inline bool span_slice(struct span s, uint64_t offset, uint64_t size, struct span *out) {
  if (offset > s.size || size > s.size - offset) return false;
  *out = (struct span){s.data ? s.data + offset : NULL, (size_t)size};
  return true;
}

/* Bytes of a file, of which the first `held` are in memory. */
struct extent {
  const uint8_t *data; /* (held) */
  uint64_t held;
  uint64_t offset, size; /* in the file */
  uint32_t file;         /* 0: the program's, 1 + i: that of data file i, then named data */
};

/* Do both name the same bytes? Parts of files by their place, bytes of our own by their address. */
static inline bool extent_equal(struct extent a, struct extent b) {
  return a.data == b.data && a.offset == b.offset && a.size == b.size && a.file == b.file;
}

/* A whole file in memory. */
static inline struct extent extent_of(struct span s) {
  return (struct extent){.data = s.data, .held = s.size, .size = s.size};
}

/* What is in memory. */
static inline struct span extent_held(struct extent e) {
  return (struct span){e.data, (size_t)e.held};
}

/* The part [offset, offset + size) of an extent; false if it is not inside. */
static inline bool extent_slice(struct extent e, uint64_t offset, uint64_t size,
                                struct extent *out) {
  if (offset > e.size || size > e.size - offset) return false;
  const uint64_t held = offset < e.held ? e.held - offset : 0;
  *out = (struct extent){.data = held ? e.data + offset : NULL,
                         .held = held < size ? held : size,
                         .offset = e.offset + offset,
                         .size = size,
                         .file = e.file};
  return true;
}

static inline struct text text_of(const char *z) { return (struct text){z, z ? strlen(z) : 0}; }

static inline bool text_equal(struct text a, struct text b) {
  return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static inline bool text_is(struct text a, const char *z) { return text_equal(a, text_of(z)); }

/* Files are little-endian and their fields need not be aligned. */
static inline uint16_t load_u16(const uint8_t *p) { return (uint16_t)(p[0] | (uint16_t)p[1] << 8); }
static inline uint32_t load_u32(const uint8_t *p) {
  return (uint32_t)load_u16(p) | (uint32_t)load_u16(p + 2) << 16;
}
static inline uint64_t load_u64(const uint8_t *p) {
  return (uint64_t)load_u32(p) | (uint64_t)load_u32(p + 4) << 32;
}

#endif
