/* Bytes to be written: where they come from, how they lie, where they go. A segment, a delegate's
 * blob and a whole file are each a list of pieces at rising offsets with zeros between, so that
 * gigabytes pass from source to sink without ever being in memory. */
#ifndef WRITE_BLOB_H
#define WRITE_BLOB_H

#include "base/arena.h"
#include "base/span.h"
#include "base/status.h"
#include "sconce_write.h"

static inline sconce_bytes write_bytes(const void *data, size_t size) {
  return (sconce_bytes){.size = size, .data = data};
}
static inline sconce_bytes write_zeros(uint64_t size) { return (sconce_bytes){.size = size}; }

/* Sources one after the other with zeros between: a segment, a delegate's blob, a whole file. A
 * zeroed one is empty. */
struct write_blob {
  struct write_piece *first, *last;
  uint64_t size;
};

/* Where bytes go, in order. `skip` (may be NULL) stands for writing zeros. */
struct write_sink {
  sconce_status (*write)(void *user, const void *data, size_t size, sconce_error *err);
  sconce_status (*skip)(void *user, uint64_t size, sconce_error *err);
  void *user;
};
SCONCE_CHECK sconce_status write_blob_to(const struct write_blob *blob,
                                         const struct write_sink *sink, sconce_error *err);
/* The first source, if it is in memory: of a finished file its flatbuffer. */
struct span write_blob_front(const struct write_blob *blob);
/* Into one block of the arena. */
SCONCE_CHECK sconce_status write_blob_to_memory(const struct write_blob *blob, struct arena *arena,
                                                struct span *out, sconce_error *err);
/* Into blob->size bytes that are zero. */
SCONCE_CHECK sconce_status write_blob_into(const struct write_blob *blob, uint8_t *out,
                                           sconce_error *err);
/* Replaces the file; long runs of zeros become holes. A failure leaves no file. */
SCONCE_CHECK sconce_status write_blob_to_file(const struct write_blob *blob, const char *path,
                                              sconce_error *err);

/* ---- what all writers share ------------------------------------------------------------------ */

struct write_state {
  struct arena *arena;
  sconce_error err; /* the first failure */
};
static inline bool write_failed(const struct write_state *s) { return s->err.status != SCONCE_OK; }

/* A growing array in the arena. Returns a zeroed new element, valid until the next one is added;
 * NULL after a failure. */
struct write_list {
  void *items;
  uint32_t n, room;
};
void *write_list_add(struct write_state *s, struct write_list *list, size_t size);

/* Copies into the arena; NULL after a failure. A NULL text is an empty one. */
void *write_copy(struct write_state *s, const void *items, size_t n, size_t size);
struct text write_copy_text(struct write_state *s, const char *text);

/* Appends at a multiple of align (a power of two); returns the offset. */
uint64_t write_blob_add(struct write_state *s, struct write_blob *blob, sconce_bytes source,
                        uint64_t align);
uint64_t write_blob_append(struct write_state *s, struct write_blob *blob,
                           const struct write_blob *more, uint64_t align);

#endif
