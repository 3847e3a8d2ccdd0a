/* Pieces, lists and sinks: see blob.h. */
#include "write/blob.h"

#include "base/checked.h"
#include "base/os.h"

enum {
  CHUNK = 16 * 1024,     /* of zeros, written at a time */
  HOLE_MIN = 256 * 1024, /* a shorter run of zeros is written: seeking flushes the buffer */
};

struct write_piece {
  struct write_piece *next;
  uint64_t offset; /* in the blob */
  sconce_bytes source;
};

/* ---- building -------------------------------------------------------------------------------- */

void *write_list_add(struct write_state *s, struct write_list *list, size_t size) {
  if (write_failed(s)) return NULL;
  if (list->n == list->room) {
    uint32_t room = list->room ? list->room * 2 : 8;
    void *items = room > list->room ? arena_alloc(s->arena, room, size, 16) : NULL;
    if (!items) {
      fail(&s->err, SCONCE_NO_MEMORY, "no memory for %u rows of %zu bytes", room, size);
      return NULL;
    }
    if (list->n) memcpy(items, list->items, list->n * size);
    list->items = items;
    list->room = room;
  }
  return (char *)list->items + size * list->n++;
}

void *write_copy(struct write_state *s, const void *items, size_t n, size_t size) {
  if (write_failed(s)) return NULL;
  void *copy = arena_alloc(s->arena, n, size, 8);
  if (!copy)
    fail(&s->err, SCONCE_NO_MEMORY, "no memory for %zu elements of %zu bytes", n, size);
  else if (n)
    memcpy(copy, items, n * size);
  return copy;
}

struct text write_copy_text(struct write_state *s, const char *text) {
  size_t size = text ? strlen(text) : 0;
  char *copy = write_copy(s, text, size, 1);
  return (struct text){copy, copy ? size : 0};
}

/* Makes room for `size` bytes at a multiple of align. */
static bool extend(struct write_state *s, struct write_blob *blob, uint64_t size, uint64_t align,
                   uint64_t *at) {
  uint64_t end = 0;
  if (write_failed(s)) return false;
  if (!add_u64(blob->size, align - 1, &end) || !add_u64(round_up(blob->size, align), size, &end)) {
    fail(&s->err, SCONCE_BAD_ARGUMENT, "%llu bytes after %llu pass 2^64", (unsigned long long)size,
         (unsigned long long)blob->size);
    return false;
  }
  *at = end - size;
  blob->size = end;
  return true;
}

static void add_piece(struct write_state *s, struct write_blob *blob, uint64_t offset,
                      sconce_bytes source) {
  struct write_piece *piece = arena_new(s->arena, struct write_piece, 1);
  if (!piece) {
    fail(&s->err, SCONCE_NO_MEMORY, "no memory for a piece of a blob");
    return;
  }
  *piece = (struct write_piece){.offset = offset, .source = source};
  if (blob->last)
    blob->last->next = piece;
  else
    blob->first = piece;
  blob->last = piece;
}

uint64_t write_blob_add(struct write_state *s, struct write_blob *blob, sconce_bytes source,
                        uint64_t align) {
  uint64_t at = 0;
  if (!extend(s, blob, source.size, align, &at)) return 0;
  if (source.size) add_piece(s, blob, at, source);
  return at;
}

uint64_t write_blob_append(struct write_state *s, struct write_blob *blob,
                           const struct write_blob *more, uint64_t align) {
  uint64_t at = 0;
  if (!extend(s, blob, more->size, align, &at)) return 0;
  for (const struct write_piece *p = more->first; p && !write_failed(s); p = p->next)
    add_piece(s, blob, at + p->offset, p->source);
  return at;
}

/* ---- writing --------------------------------------------------------------------------------- */

static sconce_status put_zeros(const struct write_sink *sink, uint64_t size, sconce_error *err) {
  static const uint8_t zeros[CHUNK];
  if (sink->skip && size >= HOLE_MIN) return sink->skip(sink->user, size, err);
  while (size > 0) {
    size_t n = size < CHUNK ? (size_t)size : CHUNK;
    TRY(sink->write(sink->user, zeros, n, err));
    size -= n;
  }
  return SCONCE_OK;
}

struct sconce_sink {
  const struct write_sink *to;
  uint64_t size, left; /* that the source said, and that are still to come */
  sconce_error *err;
};

sconce_status sconce_sink_put(sconce_sink *sink, const void *data, size_t size) {
  if (size > sink->left)
    return fail(sink->err, SCONCE_BAD_ARGUMENT, "more than the %llu bytes that were announced",
                (unsigned long long)sink->size);
  sink->left -= size;
  return sink->to->write(sink->to->user, data, size, sink->err);
}

static sconce_status put_made(const struct write_sink *to, const sconce_bytes *source,
                              sconce_error *err) {
  sconce_error said = {0}, put = {0}; /* the maker's, which counts if it fails, and the sink's */
  sconce_sink sink = {to, source->size, source->size, &put};
  const sconce_status status = source->make(source->user, &sink, &said);
  if (put.status) return fail(err, put.status, "%s", put.text);
  if (status)
    return fail(err, status, "%s", said.text[0] ? said.text : "whoever makes these bytes gave up");
  if (sink.left)
    return fail(err, SCONCE_BAD_ARGUMENT, "%llu of %llu bytes were made",
                (unsigned long long)(source->size - sink.left), (unsigned long long)source->size);
  return SCONCE_OK;
}

static sconce_status put_source(const struct write_sink *sink, const sconce_bytes *source,
                                sconce_error *err) {
  if (source->make) return put_made(sink, source, err);
  if (!source->data) return put_zeros(sink, source->size, err);
  if (source->size > SIZE_MAX)
    return fail(err, SCONCE_BAD_ARGUMENT, "%llu bytes cannot lie in memory",
                (unsigned long long)source->size);
  return sink->write(sink->user, source->data, (size_t)source->size, err);
}

sconce_status write_blob_to(const struct write_blob *blob, const struct write_sink *sink,
                            sconce_error *err) {
  uint64_t at = 0;
  for (const struct write_piece *p = blob->first; p; p = p->next) {
    TRY(put_zeros(sink, p->offset - at, err));
    TRY(put_source(sink, &p->source, err));
    at = p->offset + p->source.size;
  }
  return put_zeros(sink, blob->size - at, err);
}

struct span write_blob_front(const struct write_blob *blob) {
  const struct write_piece *p = blob->first;
  return p && p->source.data ? (struct span){p->source.data, (size_t)p->source.size}
                             : (struct span){0};
}

/* ---- sinks ----------------------------------------------------------------------------------- */

static sconce_status memory_write(void *user, const void *data, size_t size, sconce_error *err) {
  (void)err;
  uint8_t **out = user;
  memcpy(*out, data, size);
  *out += size;
  return SCONCE_OK;
}

static sconce_status memory_skip(void *user, uint64_t size, sconce_error *err) {
  (void)err;
  *(uint8_t **)user += size; /* the block was zeroed */
  return SCONCE_OK;
}

sconce_status write_blob_into(const struct write_blob *blob, uint8_t *out, sconce_error *err) {
  return write_blob_to(blob, &(struct write_sink){memory_write, memory_skip, &out}, err);
}

sconce_status write_blob_to_memory(const struct write_blob *blob, struct arena *arena,
                                   struct span *out, sconce_error *err) {
  *out = (struct span){0};
  uint8_t *data = blob->size > SIZE_MAX ? NULL : arena_alloc(arena, (size_t)blob->size, 1, 64);
  if (!data)
    return fail(err, SCONCE_NO_MEMORY, "no memory for %llu bytes", (unsigned long long)blob->size);
  TRY(write_blob_into(blob, data, err));
  *out = (struct span){data, (size_t)blob->size};
  return SCONCE_OK;
}

static sconce_status file_write(void *user, const void *data, size_t size, sconce_error *err) {
  return os_file_write(user, data, size, err);
}

static sconce_status file_skip(void *user, uint64_t size, sconce_error *err) {
  return os_file_skip(user, size, err);
}

sconce_status write_blob_to_file(const struct write_blob *blob, const char *path,
                                 sconce_error *err) {
  struct os_file file;
  TRY(os_file_create(&file, path, err));
  sconce_status status =
      write_blob_to(blob, &(struct write_sink){file_write, file_skip, &file}, err);
  if (status != SCONCE_OK) {
    os_file_discard(&file);
    return status;
  }
  return os_file_close(&file, err);
}
