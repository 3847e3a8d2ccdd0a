/* The bytes of one file, in ranges that come when they can: from memory, by reading, or in pieces
 * that the caller hands in. Nothing here holds a whole file that was not in memory before.
 *
 * Reading may take long: the device's lock is free meanwhile, and whoever reads has taken the turn
 * of the model (see model_take_turn), or nobody else knows the model yet. */
#ifndef RUN_SOURCE_H
#define RUN_SOURCE_H

#include "base/arena.h"
#include "base/os.h"
#include "base/span.h"

struct source {
  const sconce_allocator *allocator;
  struct sconce_device *device; /* its lock is held by who calls; NULL: no lock */
  uint64_t size;
  struct span whole; /* the file, if it is in memory */
  bool from_path;
  struct os_reader reader; /* of a path; or */
  sconce_status (*read)(void *user, uint64_t offset, void *out, size_t size);
  void *user;
  uint8_t *piece;    /* the range in hand */
  size_t room;       /* bytes that it can have */
  uint64_t at;       /* where it starts */
  size_t asked, got; /* bytes */
  struct ahead {     /* of a path: the range that a thread reads meanwhile */
    struct os_team team;
    uint8_t *piece;
    size_t room, size; /* size 0: none */
    uint64_t at;
    bool good;
  } ahead;
};

/* The descriptor's strings and memory are borrowed until close. */
SCONCE_CHECK sconce_status source_open(struct source *s, const sconce_file *file,
                                       struct sconce_device *device,
                                       const sconce_allocator *allocator, sconce_error *err);
void source_close(struct source *s); /* a zeroed one is fine */

/* So many bytes at offset, at most SCONCE_PIECE_MAX; valid until the next call. out->data is NULL
 * until the caller has handed them in. */
SCONCE_CHECK sconce_status source_get(struct source *s, uint64_t offset, size_t size,
                                      struct span *out, sconce_error *err);
/* The range that source_get will be asked for next, if it is known: where the source is a path and
 * there are threads, it is read while the caller works on the one in hand. It may turn out wrong.
 */
SCONCE_CHECK sconce_status source_expect(struct source *s, uint64_t offset, size_t size,
                                         sconce_error *err);
/* What must be handed in before source_get can answer; false: nothing. */
bool source_wants(const struct source *s, uint64_t *offset, size_t *size);
SCONCE_CHECK sconce_status source_give(struct source *s, uint64_t offset, const void *data,
                                       size_t size, sconce_error *err);

/* A range that stays in memory: in the file's own, or piece by piece in the arena. */
struct held {
  const uint8_t *bytes;
  uint8_t *copy; /* where they go; NULL: the arena gives it */
  uint64_t size, done;
};
/* Goes on until *done; to be called with the same range again and again. */
SCONCE_CHECK sconce_status source_hold(struct source *s, struct arena *arena, uint64_t offset,
                                       uint64_t size, struct held *h, bool *done,
                                       sconce_error *err);

#endif
