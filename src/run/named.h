/* Named data from a caller's function, as if it lay in one file more: each key gets a range of that
 * file when it is first asked for, and is read piece by piece like all other constants. */
#ifndef RUN_NAMED_H
#define RUN_NAMED_H

#include "format/data.h"
#include "run/source.h"

struct named {
  sconce_named_data from;
  struct sconce_device *device; /* as a source has it; free while the caller's read runs */
  struct arena *arena;
  struct source *source;  /* grows with each key */
  uint32_t file;          /* of extents */
  struct named_key *keys; /* in the order of their ranges */
  uint32_t n, room;
  uint32_t *slots; /* (2 * room) by hash: index + 1, 0: free */
  bool no_memory;  /* a lookup failed for want of it */
};

/* source: to be filled; both stay where they are. */
void named_init(struct named *named, const sconce_named_data *from, struct sconce_device *device,
                struct source *source, uint32_t file, struct arena *arena);
/* A struct data_lookup's find, with the struct named as its user. */
bool named_lookup(void *named, struct text key, struct extent *out);

#endif
