/* What differs between operating systems: one .c file each, chosen by the build. A platform has
 * what stands here; os_library.h (libraries opened while running) and os_folder.h (for tools) it
 * has where somebody needs them. */
#ifndef BASE_OS_H
#define BASE_OS_H

#include "base/span.h"
#include "base/status.h"

#include <stddef.h>

/* ---- time ------------------------------------------------------------------------------------ */

uint64_t os_clock_ns(void); /* monotonic */
void os_sleep_ns(uint64_t ns);
int64_t os_local_seconds(void); /* since 1970, by the clock on the wall */

/* ---- threads --------------------------------------------------------------------------------- */

/* Where a platform has no threads a mutex does nothing and a team has nobody. */

/* Not recursive. It stays where it was initialised. */
struct os_mutex {
  union {
    max_align_t align;
    unsigned char bytes[64]; /* the largest we know: macOS */
  } room;
};
SCONCE_CHECK bool os_mutex_init(struct os_mutex *mutex); /* false: the system has none left */
void os_mutex_free(struct os_mutex *mutex);
void os_mutex_lock(struct os_mutex *mutex);
void os_mutex_unlock(struct os_mutex *mutex);

/* Threads that all run one function. The team stays where it is until it was joined. */
enum { OS_TEAM_MAX = 8 };
struct os_team {
  void (*work)(void *user);
  void *user;
  void *threads[OS_TEAM_MAX];
  uint32_t n;
};
/* As many of n as the system gives, which may be none. */
void os_team_start(struct os_team *team, uint32_t n, void (*work)(void *user), void *user);
void os_team_join(struct os_team *team);
uint32_t os_cores(void); /* that this process may use; at least 1 */

/* ---- the environment ------------------------------------------------------------------------- */

enum { OS_ENV_MAX = 1024 };
/* A variable as UTF-8, NULL: not set, or longer than size. It may lie in room, which is the
 * caller's, or be the system's own until the next change. */
const char *os_env(const char *name, char *room, size_t size);

/* Between the two a driver that is opened does not complain that there is no desktop session. On
 * Linux without XDG_RUNTIME_DIR Mesa's device-selection layer lets libwayland write that to
 * standard error; the layer stays out while NODEVICE_SELECT is in the environment, which is the one
 * way to keep it out, so it is lent for that time. Nothing is changed where somebody chose:
 * NODEVICE_SELECT, MESA_VK_DEVICE_SELECT or DRI_PRIME. Pairs may overlap on several threads. */
void os_hush_begin(void);
void os_hush_end(void);

/* ---- files ----------------------------------------------------------------------------------- */

/* A file of which ranges are read, by several threads at once if need be. */
struct os_reader {
  intptr_t handle;        /* 0: closed */
  uint64_t size, written; /* when it was opened: bytes, and the time of the last write */
  char path[256];         /* its end, for errors */
};
SCONCE_CHECK sconce_status os_reader_open(struct os_reader *reader, const char *path,
                                          sconce_error *err);
void os_reader_close(struct os_reader *reader); /* a zeroed reader is fine */
uint64_t os_reader_size(const struct os_reader *reader);
/* All of the range, or an error: also when somebody has written to the file since it was opened, as
 * its time and size tell. Whoever replaces the file by another or removes it changes nothing. */
SCONCE_CHECK sconce_status os_reader_read(const struct os_reader *reader, uint64_t offset,
                                          void *out, size_t size, sconce_error *err);

/* A file written front to back under a temporary name beside it, which replaces what was there when
 * it is closed, and not before: whoever fails or dies on the way leaves the old file. A path may
 * also name a device or a pipe, which is written as it is. The path is borrowed until close. */
struct os_file {
  void *stream;
  const char *path;
  char target[1024]; /* the file behind links; empty: written as it is */
  char temporary[1056];
};
SCONCE_CHECK sconce_status os_file_create(struct os_file *file, const char *path,
                                          sconce_error *err);
SCONCE_CHECK sconce_status os_file_write(struct os_file *file, const void *data, size_t size,
                                         sconce_error *err);
/* Goes on `size` bytes later; what lies between reads as zeros and takes no room on the disk. */
SCONCE_CHECK sconce_status os_file_skip(struct os_file *file, uint64_t size, sconce_error *err);
/* One of the two ends it: close brings it to the disk and puts it in its place, or reports why that
 * could not be; discard forgets it. */
SCONCE_CHECK sconce_status os_file_close(struct os_file *file, sconce_error *err);
void os_file_discard(struct os_file *file);

#endif
