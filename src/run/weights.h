/* Constants on the device, each once: whoever asks for the same bytes in the same layout gets the
 * same buffer, and the last who gives it back frees it.
 *
 * A buffer's bytes come from the model's files, or lie in memory. Loading brings them over in
 * pieces; it never waits, neither for the file nor for the device. */
#ifndef RUN_WEIGHTS_H
#define RUN_WEIGHTS_H

#include "gpu/gpu.h"
#include "graph/graph.h"
#include "run/source.h"

struct weights {
  struct gpu *gpu;
  const sconce_allocator *allocator;
  struct source *sources; /* by extent.file; NULL: all bytes are in memory */
  struct weight **slots;
  uint32_t n_slots, n; /* n_slots: 0 or a power of two */
  uint64_t loads;
};

struct weight {
  struct weight *next; /* in its slot */
  struct gpu_buffer *buffer;
  uint64_t hash, size;
  uint32_t users;
  bool initial;  /* contents that states start with: no buffer where they are all zero */
  bool there;    /* its bytes are on the device */
  uint64_t load; /* the last one that has it to do */
  uint32_t n_parts;
  struct weight_part *parts;
};

void weights_init(struct weights *w, struct gpu *gpu, struct source *sources,
                  const sconce_allocator *allocator);
void weights_free(struct weights *w); /* when all were given back */

/* The contents of a graph's buffer of constants or, as `initial`, of state. */
SCONCE_CHECK sconce_status weights_take(struct weights *w, const struct graph *g, uint32_t buffer,
                                        struct weight **out, sconce_error *err);
void weights_give_back(struct weights *w, struct weight *weight); /* NULL is fine */

/* Brings weights to the device, in this order. */
struct load {
  struct weights *weights;
  struct weight **todo;
  uint32_t n, at, part;
  uint64_t part_done; /* bytes of the part at hand */
  uint64_t bytes_done, bytes_all;
  struct held held; /* source of a part that is laid out anew */
  struct room {     /* grows to the largest part's */
    uint8_t *bytes;
    size_t size;
  } source, laid_out;          /* a part's bytes, and PACK_MOST of them in its layout */
  struct gpu_fence *fences[4]; /* submits whose writes the driver may still hold, oldest first */
  uint32_t n_fences;
  uint64_t unsent; /* bytes written since the last submit */
};

void load_init(struct load *l, struct weights *w, struct weight **todo, uint32_t n);
void load_free(struct load *l);
/* Goes on for some milliseconds, or until a source wants bytes. */
SCONCE_CHECK sconce_status load_poll(struct load *l, bool *done, sconce_error *err);

#endif
