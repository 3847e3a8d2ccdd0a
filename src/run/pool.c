/* See pool.h. */
#include "run/pool.h"

#include <inttypes.h>

struct pool *pool_open(const sconce_allocator *allocator) {
  struct pool *pool = block_resize(allocator, NULL, 0, sizeof *pool);
  if (pool) *pool = (struct pool){.allocator = *allocator, .users = 1};
  return pool;
}

void pool_begin(struct pool *pool) {
  if (pool) pool->up++;
}

void pool_end(struct pool *pool) {
  if (!pool || --pool->up > 0) return;
  for (struct pool_buffer *b = pool->first; b; b = b->next) {
    gpu_buffer_close(b->buffer);
    b->buffer = NULL;
  }
}

void pool_drop(struct pool *pool) {
  if (!pool || --pool->users > 0) return;
  const sconce_allocator allocator = pool->allocator;
  for (struct pool_buffer *b = pool->first, *next; b; b = next) {
    next = b->next;
    block_resize(&allocator, b, sizeof *b, 0);
  }
  block_resize(&allocator, pool, sizeof *pool, 0);
}

static struct pool_buffer *find(const struct pool *pool, struct place place) {
  struct pool_buffer *b = pool->first;
  while (b && (b->place.memory_id != place.memory_id || b->place.offset != place.offset))
    b = b->next;
  return b;
}

bool pool_has(const struct pool *pool, const struct graph *g, uint32_t buffer) {
  return pool_wants(g, buffer) && find(pool, g->values[g->buffers[buffer].value].tensor.place);
}

static struct pool_buffer *add(struct pool *pool, struct place place, uint64_t size) {
  struct pool_buffer *b = block_resize(&pool->allocator, NULL, 0, sizeof *b);
  if (!b) return NULL;
  *b = (struct pool_buffer){.next = pool->first, .place = place, .size = size};
  pool->first = b;
  return b;
}

sconce_status pool_take(struct pool *pool, struct gpu *gpu, const struct graph *g, uint32_t buffer,
                        struct gpu_buffer **out, bool *fresh, sconce_error *err) {
  const struct place place = g->values[g->buffers[buffer].value].tensor.place;
  const uint64_t size = g->buffers[buffer].size;
  struct pool_buffer *b = find(pool, place);
  if (!b) b = add(pool, place, size);
  if (!b) return fail(err, SCONCE_NO_MEMORY, "no memory for a buffer");
  if (b->size != size)
    return fail(err, SCONCE_BAD_GRAPH,
                "the buffer at %" PRIu64 " of planned memory %u has %" PRIu64
                " bytes in one method and %" PRIu64 " in another",
                place.offset, place.memory_id, b->size, size);
  *fresh = !b->buffer;
  if (*fresh) TRY(gpu_buffer_open(gpu, GPU_STATE, size, "state", &b->buffer, err));
  *out = b->buffer;
  return SCONCE_OK;
}
