/* Arena: see arena.h. */
#include "base/arena.h"

#include "base/checked.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_MIN = 16 * 1024, ALIGN_MAX = 64 };

struct arena_chunk {
  struct arena_chunk *next; /* older */
  size_t size;              /* whole block, this header included */
  size_t used;
};

static void *libc_resize(void *user, void *block, size_t old_size, size_t size) {
  (void)user, (void)old_size;
  if (size == 0) {
    free(block);
    return NULL;
  }
  return realloc(block, size);
}

void *block_resize(const sconce_allocator *allocator, void *block, size_t old_size, size_t size) {
  if (!block && size == 0) return NULL;
  if (!allocator || !allocator->resize) return libc_resize(NULL, block, old_size, size);
  return allocator->resize(allocator->user, block, old_size, size);
}

void arena_init(struct arena *arena, const sconce_allocator *allocator) {
  *arena = (struct arena){0};
  if (allocator) arena->allocator = *allocator;
}

static void drop_head(struct arena *arena) {
  struct arena_chunk *chunk = arena->head;
  arena->head = chunk->next;
  arena->held -= chunk->size;
  block_resize(&arena->allocator, chunk, chunk->size, 0);
}

void arena_free(struct arena *arena) {
  while (arena->head) drop_head(arena);
}

static bool may_hold(struct arena *arena, size_t more) {
  return !arena->most || (arena->held <= arena->most && more <= arena->most - arena->held);
}

static bool add_chunk(struct arena *arena, size_t payload) {
  size_t size = CHUNK_MIN;
  if (arena->head && arena->head->size < ((size_t)1 << 20)) size = arena->head->size * 2;
  size_t need;
  if (!add_size(payload, sizeof(struct arena_chunk) + ALIGN_MAX, &need)) return false;
  if (size < need || !may_hold(arena, size)) size = need;
  if (!may_hold(arena, size)) {
    arena->over = (uint64_t)arena->held + size;
    return false;
  }
  struct arena_chunk *chunk = block_resize(&arena->allocator, NULL, 0, size);
  if (!chunk) return false;
  *chunk = (struct arena_chunk){arena->head, size, sizeof *chunk};
  arena->head = chunk;
  arena->held += size;
  return true;
}

/* Where the next block would start in a chunk; chunks themselves are only malloc-aligned. */
static size_t next_start(const struct arena_chunk *chunk, size_t align) {
  uintptr_t base = (uintptr_t)chunk;
  return (size_t)(round_up(base + chunk->used, align) - base);
}

void *arena_alloc(struct arena *arena, size_t count, size_t size, size_t align) {
  size_t bytes;
  if (!mul_size(count, size, &bytes)) return NULL;
  for (int attempt = 0; attempt < 2; attempt++) {
    struct arena_chunk *chunk = arena->head;
    if (chunk) {
      size_t start = next_start(chunk, align);
      if (start <= chunk->size && bytes <= chunk->size - start) {
        chunk->used = start + bytes;
        return memset((char *)chunk + start, 0, bytes);
      }
    }
    if (attempt || !add_chunk(arena, bytes)) return NULL;
  }
  return NULL;
}

sconce_status arena_tell(const struct arena *arena, sconce_status status, sconce_error *err) {
  if (status != SCONCE_NO_MEMORY || !arena->over) return status;
  return fail(err, SCONCE_UNSUPPORTED,
              "it needs %" PRIu64 " bytes of the host's memory, max_host_bytes is %" PRIu64,
              arena->over, arena->most);
}

char *arena_copy_text(struct arena *arena, const char *text, size_t size) {
  char *copy = size == SIZE_MAX ? NULL : arena_new(arena, char, size + 1);
  if (copy && size) memcpy(copy, text, size);
  return copy;
}

struct arena_mark arena_mark(const struct arena *arena) {
  return (struct arena_mark){arena->head, arena->head ? arena->head->used : 0};
}

void arena_rewind(struct arena *arena, struct arena_mark mark) {
  while (arena->head != mark.chunk) drop_head(arena);
  if (arena->head) arena->head->used = mark.used;
}
