/* Platform layer for WebAssembly in a browser: one thread, no files, nothing to wait with.
 *
 * The two clocks are imports that the glue serves (web/src/glue.js). Bytes of files are handed in
 * (sconce_model_give), so everything that takes a path fails with a sentence. */
#include "base/os.h"

#define HOST(name) __attribute__((import_module("sconce"), import_name(name)))

HOST("clock_ms") double host_clock_ms(void);           /* monotonic */
HOST("local_seconds") double host_local_seconds(void); /* since 1970, by the clock on the wall */

uint64_t os_clock_ns(void) { return (uint64_t)(host_clock_ms() * 1e6); }
int64_t os_local_seconds(void) { return (int64_t)host_local_seconds(); }
void os_sleep_ns(uint64_t ns) { (void)ns; } /* nobody waits: see flavour.never_blocks */

/* A page has no environment. */
const char *os_env(const char *name, char *room, size_t size) {
  (void)name, (void)room, (void)size;
  return NULL;
}

void os_hush_begin(void) {}
void os_hush_end(void) {}

/* ---- threads --------------------------------------------------------------------------------- */

bool os_mutex_init(struct os_mutex *mutex) {
  (void)mutex;
  return true;
}

void os_mutex_free(struct os_mutex *mutex) { (void)mutex; }
void os_mutex_lock(struct os_mutex *mutex) { (void)mutex; }
void os_mutex_unlock(struct os_mutex *mutex) { (void)mutex; }

void os_team_start(struct os_team *team, uint32_t n, void (*work)(void *user), void *user) {
  (void)n;
  *team = (struct os_team){.work = work, .user = user};
}

void os_team_join(struct os_team *team) { (void)team; }
uint32_t os_cores(void) { return 1; }

/* ---- files ----------------------------------------------------------------------------------- */

static sconce_status no_files(const char *path, sconce_error *err) {
  return fail(err, SCONCE_IO_ERROR, "%s: a browser opens no path; hand in its bytes", path);
}

sconce_status os_reader_open(struct os_reader *reader, const char *path, sconce_error *err) {
  *reader = (struct os_reader){0};
  return no_files(path, err);
}

void os_reader_close(struct os_reader *reader) { *reader = (struct os_reader){0}; }
uint64_t os_reader_size(const struct os_reader *reader) { return reader->size; }

sconce_status os_reader_read(const struct os_reader *reader, uint64_t offset, void *out,
                             size_t size, sconce_error *err) {
  (void)offset, (void)out, (void)size;
  return no_files(reader->path, err);
}

sconce_status os_file_create(struct os_file *file, const char *path, sconce_error *err) {
  *file = (struct os_file){0};
  return no_files(path, err);
}

sconce_status os_file_write(struct os_file *file, const void *data, size_t size,
                            sconce_error *err) {
  (void)data, (void)size;
  return no_files(file->path, err);
}

sconce_status os_file_skip(struct os_file *file, uint64_t size, sconce_error *err) {
  (void)size;
  return no_files(file->path, err);
}

sconce_status os_file_close(struct os_file *file, sconce_error *err) {
  return no_files(file->path, err);
}

void os_file_discard(struct os_file *file) { *file = (struct os_file){0}; }
