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
