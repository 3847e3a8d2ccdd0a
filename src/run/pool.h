/* Buffers that states of several methods have in common, found by their place in the program's
 * planned memory. Those who use a pool are counted; the last one frees it. */
#ifndef RUN_POOL_H
#define RUN_POOL_H

#include "gpu/gpu.h"
#include "graph/graph.h"

struct pool_buffer {
  struct pool_buffer *next;
  struct place place;
  uint64_t size;
  struct gpu_buffer *buffer; /* NULL: nobody is up */
};

struct pool {
  sconce_allocator allocator;
  uint32_t users; /* states */
  uint32_t up;    /* …that are on a device: the last one to go takes the buffers along */
  struct pool_buffer *first;
};

/* One user; NULL: no memory. */
struct pool *pool_open(const sconce_allocator *allocator);
void pool_drop(struct pool *pool); /* a user less; NULL is fine */
/* Does it have a graph's buffer? */
bool pool_has(const struct pool *pool, const struct graph *g, uint32_t buffer);
/* A graph's buffer of state; *fresh: nobody had it before, and it is zero. */
SCONCE_CHECK sconce_status pool_take(struct pool *pool, struct gpu *gpu, const struct graph *g,
                                     uint32_t buffer, struct gpu_buffer **out, bool *fresh,
                                     sconce_error *err);
/* Around what a user does with its buffers; a pool of NULL is fine. */
void pool_begin(struct pool *pool);
void pool_end(struct pool *pool);

/* May other methods' states have this buffer too? */
static inline bool pool_wants(const struct graph *g, uint32_t buffer) {
  const struct buffer *b = &g->buffers[buffer];
  return b->kind == BUFFER_STATE && g->values[b->value].tensor.place.memory_id != 0;
}

#endif
