/* Platform layer for Linux, macOS and other POSIX systems. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "base/os.h"
#include "base/os_folder.h"
#include "base/os_library.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

/* ---- time ------------------------------------------------------------------------------------ */

uint64_t os_clock_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int64_t os_local_seconds(void) {
  time_t now = time(NULL);
  struct tm local;
  return (int64_t)now + (localtime_r(&now, &local) ? (int64_t)local.tm_gmtoff : 0);
}

void os_sleep_ns(uint64_t ns) {
  struct timespec wait = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
  nanosleep(&wait, NULL);
}

/* ---- threads --------------------------------------------------------------------------------- */

_Static_assert(sizeof(pthread_mutex_t) <= sizeof(struct os_mutex), "a mutex has room");
_Static_assert(_Alignof(pthread_mutex_t) <= _Alignof(struct os_mutex), "and lies as it must");

static pthread_mutex_t *mutex_of(struct os_mutex *mutex) {
  return (pthread_mutex_t *)(void *)mutex->room.bytes;
}

bool os_mutex_init(struct os_mutex *mutex) {
  return pthread_mutex_init(mutex_of(mutex), NULL) == 0;
}

void os_mutex_free(struct os_mutex *mutex) { pthread_mutex_destroy(mutex_of(mutex)); }
void os_mutex_lock(struct os_mutex *mutex) { pthread_mutex_lock(mutex_of(mutex)); }
void os_mutex_unlock(struct os_mutex *mutex) { pthread_mutex_unlock(mutex_of(mutex)); }

_Static_assert(sizeof(pthread_t) <= sizeof(void *), "a thread's handle fits a pointer");

static void *run_team(void *given) {
  struct os_team *team = given;
  team->work(team->user);
  return NULL;
}

/* Signals stay with the program's threads; compilers of shaders need more stack than some systems
 * give. */
void os_team_start(struct os_team *team, uint32_t n, void (*work)(void *), void *user) {
  enum { STACK = 8 << 20 };
  *team = (struct os_team){.work = work, .user = user};
  sigset_t all, before;
  pthread_attr_t attr;
  if (pthread_attr_init(&attr) != 0) return;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  if (pthread_attr_setstacksize(&attr, STACK) != 0) n = 0;
  for (pthread_t thread; team->n < n && team->n < OS_TEAM_MAX; team->n++) {
    if (pthread_create(&thread, &attr, run_team, team) != 0) break;
    memcpy(&team->threads[team->n], &thread, sizeof thread);
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attr);
}

void os_team_join(struct os_team *team) {
  while (team->n) {
    pthread_t thread;
    memcpy(&thread, &team->threads[--team->n], sizeof thread);
    pthread_join(thread, NULL);
  }
}

uint32_t os_cores(void) {
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return (uint32_t)CPU_COUNT(&set);
#endif
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n < 1 ? 1 : (uint32_t)n;
}

/* ---- the environment ------------------------------------------------------------------------- */

const char *os_env(const char *name, char *room, size_t size) {
  (void)room, (void)size;
  return getenv(name);
}

#ifdef __linux__
static pthread_mutex_t hush_mutex = PTHREAD_MUTEX_INITIALIZER;
static uint32_t n_hushes; /* begun and not ended */
static bool hush_lent;

void os_hush_begin(void) {
  pthread_mutex_lock(&hush_mutex);
  if (n_hushes++ == 0 && !getenv("XDG_RUNTIME_DIR") && !getenv("NODEVICE_SELECT") &&
      !getenv("MESA_VK_DEVICE_SELECT") && !getenv("DRI_PRIME"))
    hush_lent = setenv("NODEVICE_SELECT", "1", 0) == 0;
  pthread_mutex_unlock(&hush_mutex);
}

/* It was added last, so taking it away moves no other variable that somebody may be reading. */
void os_hush_end(void) {
  pthread_mutex_lock(&hush_mutex);
  if (--n_hushes == 0 && hush_lent) {
    unsetenv("NODEVICE_SELECT");
    hush_lent = false;
  }
  pthread_mutex_unlock(&hush_mutex);
}
#else
void os_hush_begin(void) {}
void os_hush_end(void) {}
#endif

/* ---- reading --------------------------------------------------------------------------------- */

/* Opens a regular file and says what it is. */
static sconce_status open_regular(const char *path, int *out, struct stat *info,
                                  sconce_error *err) {
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe's open would wait */
  if (file < 0) return fail(err, SCONCE_IO_ERROR, "%s: %s", path, strerror(errno));
  sconce_status status = SCONCE_OK;
  if (fstat(file, info) != 0)
    status = fail(err, SCONCE_IO_ERROR, "%s: %s", path, strerror(errno));
  else if (!S_ISREG(info->st_mode))
    status = fail(err, SCONCE_IO_ERROR, "%s: not a regular file", path);
  if (status != SCONCE_OK) {
    close(file);
    return status;
  }
  *out = file;
  return SCONCE_OK;
}

/* Nanoseconds. Not the time of its last change, which a new name or the loss of one counts as. */
static uint64_t write_time(const struct stat *info) {
#ifdef __APPLE__
  const struct timespec t = info->st_mtimespec;
#else
  const struct timespec t = info->st_mtim;
#endif
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

sconce_status os_reader_open(struct os_reader *r, const char *path, sconce_error *err) {
  *r = (struct os_reader){0};
  int file = -1;
  struct stat info;
  TRY(open_regular(path, &file, &info, err));
  r->size = (uint64_t)info.st_size;
  r->written = write_time(&info);
  r->handle = (intptr_t)file + 1;
  const size_t n = strlen(path), room = sizeof r->path - 1;
  memcpy(r->path, n > room ? path + n - room : path, n > room ? room : n);
  return SCONCE_OK;
}

void os_reader_close(struct os_reader *r) {
  if (r->handle) close((int)(r->handle - 1));
  *r = (struct os_reader){0};
}

uint64_t os_reader_size(const struct os_reader *r) { return r->size; }

sconce_status os_reader_read(const struct os_reader *r, uint64_t offset, void *out, size_t size,
                             sconce_error *err) {
  if (offset > r->size || size > r->size - offset)
    return fail(err, SCONCE_IO_ERROR, "%s: %zu bytes at %llu of a file of %llu", r->path, size,
                (unsigned long long)offset, (unsigned long long)r->size);
  for (size_t at = 0; at < size;) {
    const size_t most = 1 << 30; /* macOS refuses 2 GiB at once, Linux cuts them */
    const size_t step = size - at < most ? size - at : most;
    ssize_t n = pread((int)(r->handle - 1), (unsigned char *)out + at, step, (off_t)(offset + at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(err, SCONCE_IO_ERROR, "%s: %s", r->path, strerror(errno));
    if (n == 0)
      return fail(err, SCONCE_IO_ERROR, "%s: ends at %llu, it had %llu bytes when it was opened",
                  r->path, (unsigned long long)(offset + at), (unsigned long long)r->size);
    at += (size_t)n;
  }
  struct stat now;
  if (fstat((int)(r->handle - 1), &now) != 0)
    return fail(err, SCONCE_IO_ERROR, "%s: %s", r->path, strerror(errno));
  if ((uint64_t)now.st_size == r->size && write_time(&now) == r->written) return SCONCE_OK;
  return fail(err, SCONCE_IO_ERROR, "%s: changed since it was opened", r->path);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Where the bytes go at last: behind links, so that a link stays one. */
static sconce_status find_target(struct os_file *file, bool exists, sconce_error *err) {
  char real[PATH_MAX];
  const char *found = exists ? realpath(file->path, real) : file->path;
  if (!found) return fail(err, SCONCE_IO_ERROR, "%s: %s", file->path, strerror(errno));
  if (strlen(found) >= sizeof file->target)
    return fail(err, SCONCE_IO_ERROR, "%s: %s", file->path, strerror(ENAMETOOLONG));
  memcpy(file->target, found, strlen(found) + 1);
  return SCONCE_OK;
}

static int open_temporary(struct os_file *file) {
  int handle = -1;
  for (int tries = 0; handle < 0 && tries < 8; tries++) {
    snprintf(file->temporary, sizeof file->temporary, "%s.%lx%llx~", file->target, (long)getpid(),
             (unsigned long long)os_clock_ns() & 0xffffff);
    handle = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (handle < 0 && errno != EEXIST) break;
  }
  return handle;
}

sconce_status os_file_create(struct os_file *file, const char *path, sconce_error *err) {
  *file = (struct os_file){.path = path};
  struct stat info;
  const bool exists = stat(path, &info) == 0;
  if (exists && access(path, W_OK) != 0)
    return fail(err, SCONCE_IO_ERROR, "%s: %s", path, strerror(errno));
  if (exists && !S_ISREG(info.st_mode)) {
    file->stream = fopen(path, "wbe");
  } else {
    TRY(find_target(file, exists, err));
    int handle = open_temporary(file);
    if (handle >= 0 && exists && fchmod(handle, info.st_mode & 07777) != 0)
      errno = 0; /* no matter */
    if (handle >= 0) file->stream = fdopen(handle, "wb");
    if (handle >= 0 && !file->stream) close(handle), unlink(file->temporary);
  }
  if (!file->stream) return fail(err, SCONCE_IO_ERROR, "%s: %s", path, strerror(errno));
  return SCONCE_OK;
}

sconce_status os_file_write(struct os_file *file, const void *data, size_t size,
                            sconce_error *err) {
  if (fwrite(data, 1, size, file->stream) != size)
    return fail(err, SCONCE_IO_ERROR, "%s: %s", file->path, strerror(errno));
  return SCONCE_OK;
}

sconce_status os_file_skip(struct os_file *file, uint64_t size, sconce_error *err) {
  if (size > INT64_MAX || fseeko(file->stream, (off_t)size, SEEK_CUR) != 0)
    return fail(err, SCONCE_IO_ERROR, "%s: cannot skip %llu bytes: %s", file->path,
                (unsigned long long)size, size > INT64_MAX ? "too many" : strerror(errno));
  return SCONCE_OK;
}

static bool to_disk(FILE *stream) {
  off_t end = ftello(stream);
  /* A file that ends in a hole has no byte yet to mark its end. */
  return fflush(stream) == 0 && end >= 0 && ftruncate(fileno(stream), end) == 0 &&
         fsync(fileno(stream)) == 0;
}

/* The new name is on the disk when its folder is. */
static void sync_folder(const char *path) {
  char folder[1024] = ".";
  const char *slash = strrchr(path, '/');
  if (slash) snprintf(folder, sizeof folder, "%.*s", (int)(slash - path + 1), path);
  int handle = open(folder, O_RDONLY | O_CLOEXEC);
  if (handle < 0) return;
  (void)!fsync(handle);
  close(handle);
}

sconce_status os_file_close(struct os_file *file, sconce_error *err) {
  const bool replaces = file->target[0];
  bool ok = replaces ? to_disk(file->stream) : fflush(file->stream) == 0;
  int reason = errno;
  if (fclose(file->stream) != 0 && ok) {
    ok = false;
    reason = errno;
  }
  file->stream = NULL;
  if (ok && replaces && rename(file->temporary, file->target) != 0) {
    ok = false;
    reason = errno;
  }
  if (ok && replaces) sync_folder(file->target);
  if (ok) return SCONCE_OK;
  if (replaces) unlink(file->temporary);
  return fail(err, SCONCE_IO_ERROR, "%s: %s", file->path, strerror(reason));
}

void os_file_discard(struct os_file *file) {
  if (!file->stream) return;
  fclose(file->stream);
  if (file->target[0]) unlink(file->temporary);
  *file = (struct os_file){0};
}

/* ---- folders --------------------------------------------------------------------------------- */

sconce_status os_folder_each(const char *path,
                             sconce_status (*each)(void *user, const char *name, bool folder,
                                                   sconce_error *err),
                             void *user, sconce_error *err) {
  DIR *stream = opendir(path);
  if (!stream) return fail(err, SCONCE_IO_ERROR, "%s: %s", path, strerror(errno));
  sconce_status status = SCONCE_OK;
  const struct dirent *entry;
  while (status == SCONCE_OK && (errno = 0, entry = readdir(stream))) {
    if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
    struct stat info; /* d_type is not there on every file system */
    bool folder = fstatat(dirfd(stream), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
                  S_ISDIR(info.st_mode);
    status = each(user, entry->d_name, folder, err);
  }
  if (status == SCONCE_OK && errno)
    status = fail(err, SCONCE_IO_ERROR, "%s: %s", path, strerror(errno));
  closedir(stream);
  return status;
}

bool os_folder_is(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* ---- libraries ------------------------------------------------------------------------------- */

void *os_library_open(const char *path) { return dlopen(path, RTLD_NOW | RTLD_LOCAL); }

const char *os_library_error(void) {
  const char *text = dlerror();
  return text ? text : "no error";
}

void *os_library_symbol(void *library, const char *name) { return dlsym(library, name); }

/* Cuts a path after its last slash. */
static bool keep_folder(char *path) {
  char *slash = strrchr(path, '/');
  if (!slash) return false;
  slash[1] = 0;
  return true;
}

bool os_program_folder(char *out, size_t size) {
#ifdef __APPLE__
  uint32_t room = (uint32_t)size;
  if (_NSGetExecutablePath(out, &room) != 0) return false;
#else
  ssize_t n = readlink("/proc/self/exe", out, size);
  if (n <= 0 || (size_t)n >= size) return false;
  out[n] = 0;
#endif
  return keep_folder(out);
}

bool os_module_folder(char *out, size_t size) {
  Dl_info info;
  static const char anchor = 0; /* an address inside this module */
  if (!dladdr(&anchor, &info) || !info.dli_fname) return false;
  int n = snprintf(out, size, "%s", info.dli_fname);
  return n > 0 && (size_t)n < size && keep_folder(out);
}
