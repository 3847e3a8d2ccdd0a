/* See named.h. */
#include "run/named.h"

#include "base/hash.h"
#include "run/device.h"

struct named_key {
  struct text key; /* ends with a NUL */
  uint64_t offset, size;
};

/* The key whose range begins last before `offset`. */
static const struct named_key *key_at(const struct named *named, uint64_t offset) {
  uint32_t low = 0, high = named->n;
  while (high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    if (named->keys[middle].offset <= offset)
      low = middle;
    else
      high = middle;
  }
  return &named->keys[low];
}

/* A piece is a part of one constant, and so of one key. The table may grow while it is read: a
 * method more is being opened. */
static sconce_status read_piece(void *user, uint64_t offset, void *out, size_t size) {
  const struct named *named = user;
  const struct named_key key = *key_at(named, offset);
  device_leave(named->device);
  const sconce_status status =
      named->from.read(named->from.user, key.key.data, offset - key.offset, out, size);
  device_enter(named->device);
  return status;
}

void named_init(struct named *named, const sconce_named_data *from, struct sconce_device *device,
                struct source *source, uint32_t file, struct arena *arena) {
  *named = (struct named){
      .from = *from, .device = device, .arena = arena, .source = source, .file = file};
  *source = (struct source){.allocator = &arena->allocator, .read = read_piece, .user = named};
}

/* ---- the table ------------------------------------------------------------------------------- */

static uint32_t *slot_of(const struct named *named, struct text key) {
  uint64_t at = hash_key(key.data, key.size);
  for (;; at++) {
    uint32_t *slot = &named->slots[at % (2 * named->room)];
    if (*slot == 0 || text_equal(named->keys[*slot - 1].key, key)) return slot;
  }
}

static bool grow(struct named *named) {
  if (named->n < named->room) return true;
  const uint32_t room = named->room ? 2 * named->room : 64;
  struct named_key *keys = arena_new(named->arena, struct named_key, room);
  uint32_t *slots = arena_new(named->arena, uint32_t, 2 * room);
  if (!keys || !slots) return false;
  for (uint32_t i = 0; i < named->n; i++) keys[i] = named->keys[i];
  named->keys = keys;
  named->slots = slots;
  named->room = room;
  for (uint32_t i = 0; i < named->n; i++) *slot_of(named, keys[i].key) = i + 1;
  return true;
}

/* The caller's answer for a key that was not asked for before. */
static bool add(struct named *named, struct text key) {
  struct named_key added = {.offset = named->source->size};
  if (named->n == DATA_MAX_NAMED || !named->from.find(named->from.user, key.data, &added.size) ||
      added.size > INT64_MAX - added.offset)
    return false;
  const char *copy = arena_copy_text(named->arena, key.data, key.size);
  named->no_memory = !copy || !grow(named);
  if (named->no_memory) return false;
  added.key = (struct text){copy, key.size};
  named->source->size += added.size;
  *slot_of(named, key) = named->n + 1;
  named->keys[named->n++] = added;
  return true;
}

bool named_lookup(void *user, struct text key, struct extent *out) {
  struct named *named = user;
  if (!named->from.find) return false;
  uint32_t *slot = named->room ? slot_of(named, key) : NULL;
  if ((!slot || *slot == 0) && !add(named, key)) return false;
  const struct named_key *found = &named->keys[*slot_of(named, key) - 1];
  *out = (struct extent){.offset = found->offset, .size = found->size, .file = named->file};
  return true;
}
