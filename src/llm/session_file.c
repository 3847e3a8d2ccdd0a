/* A session as a file: a header, the ids, the state. Read back like any other untrusted file. */
#include "llm/session.h"

#include "base/checked.h"
#include "base/os.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* All fields little-endian; then n_ids i32, then the state. */
struct header {
  char magic[8]; /* "sconce" 0 2 */
  uint32_t n_vocab, context, n_ids;
  uint32_t sum; /* FNV-1a of everything behind the header */
  uint64_t state_size;
};
_Static_assert(sizeof(struct header) == 32, "session header");
static const char magic[8] = {'s', 'c', 'o', 'n', 'c', 'e', 0, 2};

static const uint32_t sum_start = 2166136261u, sum_prime = 16777619u;

/* One changed byte always changes it. */
static uint32_t sum_add(uint32_t sum, const void *data, size_t size) {
  const uint8_t *bytes = data;
  for (size_t i = 0; i < size; i++) sum = (sum ^ bytes[i]) * sum_prime;
  return sum;
}

sconce_status sconce_session_save(sconce_session *s, const char *path, sconce_error *err) {
  TRY(session_idle(s, err));
  if (!path) return fail(err, SCONCE_BAD_ARGUMENT, "path is NULL");
  bool done;
  TRY(session_sync(s, true, &done, err));
  size_t size = sconce_state_size(s->state);
  void *state = block_resize(&s->arena.allocator, NULL, 0, size + 1);
  if (!state) return fail(err, SCONCE_NO_MEMORY, "no memory for %zu bytes of state", size);
  struct header h = {.n_vocab = s->info.n_vocab,
                     .context = s->info.context,
                     .n_ids = s->info.position,
                     .state_size = size};
  memcpy(h.magic, magic, sizeof magic);
  struct os_file file;
  size_t ids_size = s->info.position * sizeof *s->ids;
  sconce_status status = sconce_state_save(s->state, state, size, err);
  if (status == SCONCE_OK) h.sum = sum_add(sum_add(sum_start, s->ids, ids_size), state, size);
  if (status == SCONCE_OK) status = os_file_create(&file, path, err);
  if (status == SCONCE_OK) {
    status = os_file_write(&file, &h, sizeof h, err);
    if (status == SCONCE_OK) status = os_file_write(&file, s->ids, ids_size, err);
    if (status == SCONCE_OK) status = os_file_write(&file, state, size, err);
    if (status == SCONCE_OK)
      status = os_file_close(&file, err);
    else
      os_file_discard(&file);
  }
  block_resize(&s->arena.allocator, state, size + 1, 0);
  return status;
}

static sconce_status check(const sconce_session *s, struct span file, const struct header *h,
                           sconce_error *err) {
  if (memcmp(h->magic, magic, sizeof magic) != 0)
    return fail(err, SCONCE_BAD_FILE, "no saved session, or one of another version");
  if (h->n_vocab != s->info.n_vocab || h->context != s->info.context ||
      h->state_size != sconce_state_size(s->state))
    return fail(err, SCONCE_BAD_FILE,
                "saved from another model: %u ids a row, %u positions, %" PRIu64
                " bytes of state; this one has %u, %u, %zu",
                h->n_vocab, h->context, h->state_size, s->info.n_vocab, s->info.context,
                sconce_state_size(s->state));
  if (h->n_ids > h->context)
    return fail(err, SCONCE_BAD_FILE, "%u ids in a context of %u", h->n_ids, h->context);
  uint64_t want = sizeof *h + 4 * (uint64_t)h->n_ids + h->state_size;
  if (file.size != want)
    return fail(err, SCONCE_BAD_FILE, "%zu bytes, expected %" PRIu64, file.size, want);
  if (sum_add(sum_start, file.data + sizeof *h, file.size - sizeof *h) != h->sum)
    return fail(err, SCONCE_BAD_FILE, "the saved session is damaged: its checksum differs");
  for (uint32_t i = 0; i < h->n_ids; i++) {
    uint32_t id = load_u32(file.data + sizeof *h + 4 * (size_t)i);
    if (id >= h->n_vocab)
      return fail(err, SCONCE_BAD_FILE, "id %u is %" PRId32 ", the vocabulary has %u", i,
                  (int32_t)id, h->n_vocab);
  }
  return SCONCE_OK;
}

static sconce_status load(sconce_session *s, struct span file, sconce_error *err) {
  struct header h;
  if (file.size < sizeof h) return fail(err, SCONCE_BAD_FILE, "%zu bytes are too few", file.size);
  memcpy(&h, file.data, sizeof h);
  TRY(check(s, file, &h, err));
  TRY(sconce_session_rewind(s, 0, err));
  TRY(session_reserve(s, h.n_ids, err));
  const uint8_t *ids = file.data + sizeof h, *state = ids + 4 * (size_t)h.n_ids;
  TRY(sconce_state_restore(s->state, state, (size_t)h.state_size, err));
  memcpy(s->ids, ids, 4 * (size_t)h.n_ids);
  s->info.position = s->computed = h.n_ids;
  return SCONCE_OK;
}

sconce_status sconce_session_load(sconce_session *s, const char *path, sconce_error *err) {
  TRY(session_idle(s, err));
  if (!path) return fail(err, SCONCE_BAD_ARGUMENT, "path is NULL");
  struct os_map map;
  TRY(os_map_open(&map, path, err));
  sconce_status status = load(s, map.bytes, err);
  os_map_close(&map);
  if (status == SCONCE_BAD_FILE) error_prefix(err, "%s: ", path);
  return status;
}
