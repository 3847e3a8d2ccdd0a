/* See file.h. */
#include "base/file.h"

#include "base/os.h"

#include <inttypes.h>

static sconce_status read_all(struct arena *arena, const struct os_reader *reader, const char *path,
                              struct span *out, sconce_error *err) {
  const uint64_t size = os_reader_size(reader);
  if (size == 0) return SCONCE_OK;
  if (size > FILE_READ_MAX)
    return fail(err, SCONCE_UNSUPPORTED, "%s: %" PRIu64 " bytes, at most %d are read at once", path,
                size, FILE_READ_MAX);
  uint8_t *bytes = arena_alloc(arena, (size_t)size, 1, 8);
  if (!bytes) return fail(err, SCONCE_NO_MEMORY, "%s: no memory for %" PRIu64 " bytes", path, size);
  TRY(os_reader_read(reader, 0, bytes, (size_t)size, err));
  *out = (struct span){bytes, (size_t)size};
  return SCONCE_OK;
}

sconce_status file_read(struct arena *arena, const char *path, struct span *out,
                        sconce_error *err) {
  struct os_reader reader;
  *out = (struct span){0};
  TRY(os_reader_open(&reader, path, err));
  sconce_status status = read_all(arena, &reader, path, out, err);
  os_reader_close(&reader);
  return status;
}
