/* A session as a file: a header, the ids, the state. Read back like any other untrusted file; one
 * that stands there already is replaced only when the new one is whole, and only if it is a saved
 * session too. */
#include "llm/session.h"

#include "base/checked.h"
#include "base/hash.h"
#include "base/os.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Little-endian; behind it n_ids i32, then the state. */
struct header {
  char magic[8];  /* "sconce" 0 3 */
  uint32_t order; /* ORDER as the machine writes it */
  uint32_t n_vocab, context, n_ids;
  uint64_t state_size, model; /* the model's fingerprint */
  uint64_t body_sum;          /* of all that follows the header */
  uint64_t head_sum;          /* of the header up to here */
};
_Static_assert(sizeof(struct header) == 56, "session header");
static const char magic[8] = {'s', 'c', 'o', 'n', 'c', 'e', 0, 3};
enum { OURS = 7 }; /* bytes of the magic that any version has */
enum { ORDER = 0x01020304, OTHER_ORDER = 0x04030201 };

static uint64_t head_sum(const struct header *h) {
  return hash_bytes(0, h, offsetof(struct header, head_sum));
}

/* ---- saving ---------------------------------------------------------------------------------- */

/* What is no session, and not empty, is somebody's. */
static sconce_status check_old(const char *path, sconce_error *err) {
  struct os_reader old;
  char start[OURS];
  sconce_error ignored;
  if (os_reader_open(&old, path, &ignored) != SCONCE_OK) return SCONCE_OK; /* create will tell */
  const uint64_t size = os_reader_size(&old);
  const bool ours =
      size == 0 || (size >= OURS && os_reader_read(&old, 0, start, OURS, &ignored) == SCONCE_OK &&
                    memcmp(start, magic, OURS) == 0);
  os_reader_close(&old);
  if (ours) return SCONCE_OK;
  return fail(err, SCONCE_BAD_ARGUMENT,
              "%s is there and is no saved session: remove it or take another name", path);
}

static sconce_status write_all(const char *path, const struct header *h, const sconce_session *s,
                               const void *state, sconce_error *err) {
  struct os_file file;
  TRY(os_file_create(&file, path, err));
  sconce_status status = os_file_write(&file, h, sizeof *h, err);
  if (status == SCONCE_OK) status = os_file_write(&file, s->ids, h->n_ids * sizeof *s->ids, err);
  if (status == SCONCE_OK) status = os_file_write(&file, state, (size_t)h->state_size, err);
  if (status == SCONCE_OK) return os_file_close(&file, err);
  os_file_discard(&file);
  return status;
}

static sconce_status kind_of(const sconce_session *s, struct session_kind *out, sconce_error *err) {
  *out = (struct session_kind){.n_vocab = s->info.n_vocab,
                               .context = s->info.context,
                               .state_size = sconce_state_size(s->state)};
  return sconce_model_fingerprint(s->model, &out->model, err);
}

static sconce_status save(sconce_session *s, const char *path, void *state, sconce_error *err) {
  struct session_kind kind;
  TRY(kind_of(s, &kind, err));
  TRY(sconce_state_save(s->state, state, (size_t)kind.state_size, err));
  struct header h = {.order = ORDER,
                     .n_vocab = kind.n_vocab,
                     .context = kind.context,
                     .n_ids = s->info.position,
                     .state_size = kind.state_size,
                     .model = kind.model};
  memcpy(h.magic, magic, sizeof magic);
  h.body_sum = hash_bytes(0, s->ids, h.n_ids * sizeof *s->ids);
  h.body_sum = hash_bytes(h.body_sum, state, (size_t)kind.state_size);
  h.head_sum = head_sum(&h);
  return write_all(path, &h, s, state, err);
}

sconce_status sconce_session_save(sconce_session *s, const char *path, sconce_error *err) {
  ALONE(s ? &s->alone : NULL, "session");
  TRY(session_idle(s, err));
  if (!path) return fail(err, SCONCE_BAD_ARGUMENT, "path is NULL");
  bool done;
  sconce_error local;
  if (!err) err = &local;
  TRY(check_old(path, err));
  TRY(session_sync(s, true, &done, err));
  const size_t size = sconce_state_size(s->state);
  void *state = block_resize(&s->arena.allocator, NULL, 0, size + 1);
  if (!state) return fail(err, SCONCE_NO_MEMORY, "no memory for %zu bytes of state", size);
  sconce_status status = save(s, path, state, err);
  if (status != SCONCE_OK && session_recovered(s, status, err)) {
    status = session_sync(s, true, &done, err);
    if (status == SCONCE_OK) status = save(s, path, state, err);
  }
  block_resize(&s->arena.allocator, state, size + 1, 0);
  return status;
}

/* ---- loading --------------------------------------------------------------------------------- */

static sconce_status check_head(const struct header *h, sconce_error *err) {
  if (memcmp(h->magic, magic, OURS) != 0)
    return fail(err, SCONCE_BAD_FILE, "no saved session: it begins otherwise");
  if (h->magic[OURS] != magic[OURS])
    return fail(err, SCONCE_BAD_FILE, "a saved session of version %d, this build reads %d",
                h->magic[OURS], magic[OURS]);
  if (h->order == OTHER_ORDER)
    return fail(err, SCONCE_BAD_FILE, "byte 8: saved on a machine with the other byte order");
  if (h->order != ORDER || h->head_sum != head_sum(h))
    return fail(err, SCONCE_BAD_FILE, "bytes 0 to %zu, the header, are damaged: their sum differs",
                sizeof *h - 1);
  return SCONCE_OK;
}

static sconce_status check_kind(const struct session_kind *kind, const struct header *h,
                                sconce_error *err) {
  if (h->n_vocab != kind->n_vocab || h->context != kind->context ||
      h->state_size != kind->state_size)
    return fail(err, SCONCE_BAD_FILE,
                "saved from another model: %u ids a row, %u positions, %" PRIu64
                " bytes of state; this one has %u, %u, %" PRIu64,
                h->n_vocab, h->context, h->state_size, kind->n_vocab, kind->context,
                kind->state_size);
  if (h->model != kind->model)
    return fail(err, SCONCE_BAD_FILE,
                "saved from another model: its fingerprint is %016" PRIx64
                ", this one's is %016" PRIx64,
                h->model, kind->model);
  if (h->n_ids > h->context)
    return fail(err, SCONCE_BAD_FILE, "%u ids in a context of %u", h->n_ids, h->context);
  return SCONCE_OK;
}

static sconce_status check_body(const struct header *h, const struct session_saved *saved,
                                sconce_error *err) {
  const size_t ids_size = 4 * (size_t)h->n_ids;
  uint64_t sum = hash_bytes(0, saved->ids, ids_size);
  sum = hash_bytes(sum, saved->state, (size_t)h->state_size);
  if (sum != h->body_sum)
    return fail(err, SCONCE_BAD_FILE,
                "bytes %zu to %" PRIu64 ", ids and state, are damaged: their sum differs",
                sizeof *h, sizeof *h + ids_size + h->state_size - 1);
  for (uint32_t i = 0; i < h->n_ids; i++) {
    const uint32_t id = load_u32(saved->ids + 4 * (size_t)i);
    if (id >= h->n_vocab)
      return fail(err, SCONCE_BAD_FILE, "byte %zu: id %u is %" PRId32 ", the vocabulary has %u",
                  sizeof *h + 4 * (size_t)i, i, (int32_t)id, h->n_vocab);
  }
  return SCONCE_OK;
}

sconce_status session_parse(const struct session_kind *kind, struct span file,
                            struct session_saved *out, sconce_error *err) {
  struct header h;
  if (file.size < sizeof h)
    return fail(err, SCONCE_BAD_FILE, "it ends at byte %zu, inside its header", file.size);
  memcpy(&h, file.data, sizeof h);
  TRY(check_head(&h, err));
  TRY(check_kind(kind, &h, err));
  const uint64_t want = sizeof h + 4 * (uint64_t)h.n_ids + h.state_size;
  if (file.size < want)
    return fail(err, SCONCE_BAD_FILE, "it ends at byte %zu, expected %" PRIu64, file.size, want);
  if (file.size > want)
    return fail(err, SCONCE_BAD_FILE, "it goes on behind byte %" PRIu64 ", its end", want);
  *out = (struct session_saved){.n_ids = h.n_ids, .ids = file.data + sizeof h};
  out->state = out->ids + 4 * (size_t)h.n_ids;
  return check_body(&h, out, err);
}

static sconce_status restore(sconce_session *s, const struct session_saved *saved,
                             const struct session_kind *kind, sconce_error *err) {
  return sconce_state_restore(s->state, saved->state, (size_t)kind->state_size, err);
}

static sconce_status take(sconce_session *s, const struct session_kind *kind, struct span file,
                          sconce_error *err) {
  struct session_saved saved;
  TRY(session_parse(kind, file, &saved, err));
  TRY(sconce_session_rewind(s, 0, err));
  TRY(session_reserve(s, saved.n_ids, err));
  sconce_status status = restore(s, &saved, kind, err);
  if (status != SCONCE_OK && session_recovered(s, status, err))
    status = restore(s, &saved, kind, err);
  TRY(status);
  if (saved.n_ids) memcpy(s->ids, saved.ids, 4 * (size_t)saved.n_ids);
  memset(s->starts, 0, saved.n_ids);
  s->info.position = s->computed = saved.n_ids;
  return SCONCE_OK;
}

/* As much of the file as a session may have, and a byte: a file that becomes shorter meanwhile is
 * an error. */
static sconce_status load(sconce_session *s, const struct os_reader *file, sconce_error *err) {
  struct session_kind kind;
  TRY(kind_of(s, &kind, err));
  const uint64_t most = sizeof(struct header) + 4 * (uint64_t)kind.context + kind.state_size + 1;
  const uint64_t size = os_reader_size(file) < most ? os_reader_size(file) : most;
  uint8_t *bytes = block_resize(&s->arena.allocator, NULL, 0, (size_t)size + 1);
  if (!bytes) return fail(err, SCONCE_NO_MEMORY, "no memory for %" PRIu64 " bytes", size);
  sconce_status status = os_reader_read(file, 0, bytes, (size_t)size, err);
  if (status == SCONCE_OK) status = take(s, &kind, (struct span){bytes, (size_t)size}, err);
  block_resize(&s->arena.allocator, bytes, (size_t)size + 1, 0);
  return status;
}

sconce_status sconce_session_load(sconce_session *s, const char *path, sconce_error *err) {
  ALONE(s ? &s->alone : NULL, "session");
  TRY(session_idle(s, err));
  if (!path) return fail(err, SCONCE_BAD_ARGUMENT, "path is NULL");
  struct os_reader file;
  sconce_error local;
  if (!err) err = &local;
  TRY(os_reader_open(&file, path, err));
  sconce_status status = load(s, &file, err);
  os_reader_close(&file);
  if (status == SCONCE_BAD_FILE) error_prefix(err, "%s: ", path);
  return status;
}
