/* See source.h. */
#include "run/source.h"

#include "run/device.h"

#include <inttypes.h>

static sconce_status open_reader(struct source *s, const char *path, sconce_error *err) {
  TRY(os_reader_open(&s->reader, path, err));
  s->from_path = true;
  s->size = os_reader_size(&s->reader);
  return SCONCE_OK;
}

sconce_status source_open(struct source *s, const sconce_file *file, struct sconce_device *device,
                          const sconce_allocator *allocator, sconce_error *err) {
  *s = (struct source){.allocator = allocator, .device = device, .size = file->size};
  if (file->path) return open_reader(s, file->path, err);
  if (file->data) {
    if (file->size > SIZE_MAX)
      return fail(err, SCONCE_BAD_ARGUMENT, "memory of %" PRIu64 " bytes", file->size);
    s->whole = (struct span){file->data, (size_t)file->size};
    return SCONCE_OK;
  }
  s->read = file->read;
  s->user = file->user;
  if (file->size == 0)
    return fail(err, SCONCE_BAD_ARGUMENT, "a file without a path, without data and without a size");
  return SCONCE_OK;
}

void source_close(struct source *s) {
  os_team_join(&s->ahead.team);
  if (s->from_path) os_reader_close(&s->reader);
  if (s->piece) block_resize(s->allocator, s->piece, s->room, 0);
  if (s->ahead.piece) block_resize(s->allocator, s->ahead.piece, s->ahead.room, 0);
  *s = (struct source){0};
}

/* Room for a range; what it held is gone. */
static bool make_room(struct source *s, uint8_t **piece, size_t *room, size_t size) {
  if (*room >= size) return true;
  if (*piece) block_resize(s->allocator, *piece, *room, 0);
  *piece = block_resize(s->allocator, NULL, 0, size);
  *room = *piece ? size : 0;
  return *piece != NULL;
}

static void read_ahead(void *user) {
  struct source *s = user;
  struct ahead *a = &s->ahead;
  a->good = os_reader_read(&s->reader, a->at, a->piece, a->size, NULL) == SCONCE_OK;
}

sconce_status source_expect(struct source *s, uint64_t offset, size_t size, sconce_error *err) {
  struct ahead *a = &s->ahead;
  if (!s->from_path || !size || a->size || (s->device && s->device->no_threads)) return SCONCE_OK;
  if (!make_room(s, &a->piece, &a->room, size))
    return fail(err, SCONCE_NO_MEMORY, "no memory for %zu bytes", size);
  a->at = offset;
  a->size = size;
  a->good = false;
  os_team_start(&a->team, 1, read_ahead, s);
  return SCONCE_OK;
}

/* Waits for what is read ahead; true: it is that range, and the piece in hand now. What could not
 * be read is read again by who asks, and fails there. */
static bool take_ahead(struct source *s, uint64_t offset, size_t size) {
  struct ahead *a = &s->ahead;
  os_team_join(&a->team);
  const bool right = a->good && a->at == offset && a->size == size;
  a->size = 0;
  if (!right) return false;
  uint8_t *piece = s->piece;
  const size_t room = s->room;
  s->piece = a->piece;
  s->room = a->room;
  a->piece = piece;
  a->room = room;
  return true;
}

/* From a path or by the caller's function. */
static sconce_status read_range(struct source *s, uint64_t offset, uint8_t *out, size_t size,
                                sconce_error *err) {
  device_leave(s->device);
  sconce_status status = s->from_path ? os_reader_read(&s->reader, offset, out, size, err)
                                      : s->read(s->user, offset, out, size);
  device_enter(s->device);
  if (status == SCONCE_OK || s->from_path) return status;
  return fail(err, status, "reading %zu bytes at %" PRIu64 " failed: %s", size, offset,
              sconce_status_name(status));
}

static bool reads(const struct source *s) { return s->from_path || s->read; }

/* Fills the piece, or leaves that to the caller. Until it is filled nothing is asked for. */
static sconce_status fetch(struct source *s, uint64_t offset, size_t size, sconce_error *err) {
  s->at = offset;
  s->got = s->asked = 0;
  bool there = false;
  if (s->ahead.size) {
    device_leave(s->device);
    there = take_ahead(s, offset, size);
    device_enter(s->device);
  }
  if (!there && !make_room(s, &s->piece, &s->room, size))
    return fail(err, SCONCE_NO_MEMORY, "no memory for %zu bytes", size);
  if (!there && reads(s)) TRY(read_range(s, offset, s->piece, size, err));
  s->asked = size;
  if (reads(s)) s->got = size;
  return SCONCE_OK;
}

sconce_status source_get(struct source *s, uint64_t offset, size_t size, struct span *out,
                         sconce_error *err) {
  *out = (struct span){0};
  if (size > SCONCE_PIECE_MAX || offset > s->size || size > s->size - offset)
    return fail(err, SCONCE_BAD_FILE, "%zu bytes at %" PRIu64 ", the file has %" PRIu64, size,
                offset, s->size);
  if (s->whole.data) return span_slice(s->whole, offset, size, out) ? SCONCE_OK : SCONCE_BAD_FILE;
  if (s->at != offset || s->asked != size) TRY(fetch(s, offset, size, err));
  if (s->got == size) *out = (struct span){s->piece, size};
  return SCONCE_OK;
}

bool source_wants(const struct source *s, uint64_t *offset, size_t *size) {
  *offset = s->at + s->got;
  *size = s->asked - s->got;
  return *size > 0;
}

sconce_status source_give(struct source *s, uint64_t offset, const void *data, size_t size,
                          sconce_error *err) {
  if (offset != s->at + s->got || size > s->asked - s->got)
    return fail(err, SCONCE_BAD_ARGUMENT,
                "%zu bytes at %" PRIu64 " were handed in, %zu at %" PRIu64 " are wanted", size,
                offset, s->asked - s->got, s->at + s->got);
  if (size) memcpy(s->piece + s->got, data, size);
  s->got += size;
  return SCONCE_OK;
}

sconce_status source_hold(struct source *s, struct arena *arena, uint64_t offset, uint64_t size,
                          struct held *h, bool *done, sconce_error *err) {
  *done = h->bytes != NULL;
  if (*done) return SCONCE_OK;
  if (size > SIZE_MAX || offset > s->size || size > s->size - offset)
    return fail(err, SCONCE_BAD_FILE, "%" PRIu64 " bytes at %" PRIu64 ", the file has %" PRIu64,
                size, offset, s->size);
  if (s->whole.data) {
    *h = (struct held){.bytes = s->whole.data + offset, .size = size, .done = size};
    *done = true;
    return SCONCE_OK;
  }
  if (!h->copy) h->copy = arena_alloc(arena, (size_t)size, 1, 16);
  if (!h->copy) return fail(err, SCONCE_NO_MEMORY, "no memory for %" PRIu64 " bytes", size);
  h->size = size;
  while (h->done < size) {
    const uint64_t left = size - h->done;
    const size_t n = left < SCONCE_PIECE_MAX ? (size_t)left : SCONCE_PIECE_MAX;
    if (reads(s)) {
      TRY(read_range(s, offset + h->done, h->copy + h->done, n, err));
      h->done += n;
      continue;
    }
    struct span piece;
    TRY(source_get(s, offset + h->done, n, &piece, err));
    if (!piece.data) return SCONCE_OK;
    memcpy(h->copy + h->done, piece.data, n);
    h->done += n;
  }
  h->bytes = h->copy;
  *done = true;
  return SCONCE_OK;
}
