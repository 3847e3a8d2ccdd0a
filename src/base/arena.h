/* One arena per model, per graph, per step: chunked, zeroed, freed as a whole. The only code that
 * calls the caller's allocator, and the only place where host memory is counted. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/status.h"

struct arena {
  sconce_allocator allocator;
  struct arena_chunk *head;
  size_t held;   /* bytes taken from the allocator */
  uint64_t most; /* that it may take; 0: any number */
  uint64_t over; /* what it would have held, had `most` let it */
};

/* Where an arena stood; rewinding frees what came after. */
struct arena_mark {
  struct arena_chunk *chunk;
  size_t used;
};

/* An allocator without a function means the C library's. */
void arena_init(struct arena *arena, const sconce_allocator *allocator);
void arena_free(struct arena *arena);

/* Zeroed memory for count elements, aligned as asked (a power of two up to 64); NULL when the
 * allocator or `most` refuses or the product overflows. A count of 0 gives a valid pointer. */
void *arena_alloc(struct arena *arena, size_t count, size_t size, size_t align);
#define arena_new(arena, type, count)                                                              \
  ((type *)arena_alloc((arena), (count), sizeof(type), _Alignof(type)))

/* What a call fails with: memory that `most` refused is another error than memory that is not
 * there, and its sentence names both numbers. Other errors stay as they are. */
SCONCE_CHECK sconce_status arena_tell(const struct arena *arena, sconce_status status,
                                      sconce_error *err);

/* A NUL-terminated copy. */
char *arena_copy_text(struct arena *arena, const char *text, size_t size);

struct arena_mark arena_mark(const struct arena *arena);
void arena_rewind(struct arena *arena, struct arena_mark mark);

/* Single blocks for what outlives no arena or grows: old_size 0 allocates, size 0 frees. */
void *block_resize(const sconce_allocator *allocator, void *block, size_t old_size, size_t size);

#endif
