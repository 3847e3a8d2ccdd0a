/* What differs between operating systems: one .c file each, chosen by the build. */
#ifndef BASE_OS_H
#define BASE_OS_H

#include "base/span.h"
#include "base/status.h"

/* A file mapped read-only; pages come in as they are touched. */
struct os_map {
  struct span bytes;
};
SCONCE_CHECK sconce_status os_map_open(struct os_map *map, const char *path, sconce_error *err);
void os_map_close(struct os_map *map); /* a zeroed map is fine */

/* A file written front to back, replacing what was there. The path is borrowed until close. */
struct os_file {
  void *stream;
  const char *path;
};
SCONCE_CHECK sconce_status os_file_create(struct os_file *file, const char *path,
                                          sconce_error *err);
SCONCE_CHECK sconce_status os_file_write(struct os_file *file, const void *data, size_t size,
                                         sconce_error *err);
/* Goes on `size` bytes later; what lies between reads as zeros and takes no room on the disk. */
SCONCE_CHECK sconce_status os_file_skip(struct os_file *file, uint64_t size, sconce_error *err);
/* One of the two ends it: close reports what could not be written, discard removes the file. A
 * close that fails has removed it as well. */
SCONCE_CHECK sconce_status os_file_close(struct os_file *file, sconce_error *err);
void os_file_discard(struct os_file *file);

/* Calls each with every name in a folder but "." and "..", in no order, until it fails. A link to a
 * folder is no folder: a walk that follows what `folder` says comes to an end. */
SCONCE_CHECK sconce_status os_folder_each(const char *path,
                                          sconce_status (*each)(void *user, const char *name,
                                                                bool folder, sconce_error *err),
                                          void *user, sconce_error *err);
bool os_folder_is(const char *path); /* through links */

/* Shared libraries. */
void *os_library_open(const char *path); /* NULL: os_library_error says why */
const char *os_library_error(void);
void *os_library_symbol(void *library, const char *name);
void os_library_close(void *library);

/* The folder of the running program, or of the shared library that holds this function, with a
 * trailing slash; false if unknown or longer than size. */
bool os_program_folder(char *out, size_t size);
bool os_module_folder(char *out, size_t size);

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

uint64_t os_clock_ns(void); /* monotonic */
void os_sleep_ns(uint64_t ns);

#endif
