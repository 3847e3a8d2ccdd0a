/* Platform layer for Windows 10 and later. Paths are UTF-8 here and wide in every call. */
#include "base/os.h"
#include "base/os_folder.h"
#include "base/os_library.h"
#include "base/path.h"
#include "base/wide_win.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#include <winioctl.h>

#include <errno.h>
#include <io.h>
#include <process.h>
#include <stdio.h>
#include <string.h>

static sconce_status fail_errno(sconce_error *err, const char *path, int number) {
  return fail(err, SCONCE_IO_ERROR, "%s: %s", path, strerror(number));
}

/* What the last call says; its number too where errno has no word for it. */
static sconce_status fail_last(sconce_error *err, const char *path) {
  const DWORD error = GetLastError();
  const int number = wide_errno(error);
  if (number != EIO) return fail_errno(err, path, number);
  return fail(err, SCONCE_IO_ERROR, "%s: error %lu of Windows", path, error);
}

/* ---- time ------------------------------------------------------------------------------------ */

uint64_t os_clock_ns(void) {
  LARGE_INTEGER count, second;
  QueryPerformanceCounter(&count);
  QueryPerformanceFrequency(&second);
  const uint64_t n = (uint64_t)count.QuadPart, f = (uint64_t)second.QuadPart;
  return n / f * 1000000000u + n % f * 1000000000u / f;
}

int64_t os_local_seconds(void) {
  const int64_t to_1970 = INT64_C(11644473600); /* file times start in 1601 */
  SYSTEMTIME now;
  FILETIME time;
  GetLocalTime(&now);
  if (!SystemTimeToFileTime(&now, &time)) return 0;
  const uint64_t ticks = (uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime;
  return (int64_t)(ticks / 10000000u) - to_1970;
}

/* Sleep() waits for the next tick, up to 16 ms; such a timer does not. */
void os_sleep_ns(uint64_t ns) {
  const DWORD high_resolution = 2;
  HANDLE timer = CreateWaitableTimerExW(NULL, NULL, high_resolution, TIMER_ALL_ACCESS);
  LARGE_INTEGER due = {.QuadPart = -(LONGLONG)(ns / 100)};
  if (timer && SetWaitableTimer(timer, &due, 0, NULL, NULL, FALSE))
    WaitForSingleObject(timer, INFINITE);
  else
    Sleep((DWORD)((ns + 999999) / 1000000));
  if (timer) CloseHandle(timer);
}

/* ---- threads --------------------------------------------------------------------------------- */

_Static_assert(sizeof(SRWLOCK) <= sizeof(struct os_mutex), "a mutex has room");

static SRWLOCK *lock_of(struct os_mutex *mutex) { return (SRWLOCK *)(void *)mutex->room.bytes; }

bool os_mutex_init(struct os_mutex *mutex) {
  InitializeSRWLock(lock_of(mutex));
  return true;
}

void os_mutex_free(struct os_mutex *mutex) { (void)mutex; }
void os_mutex_lock(struct os_mutex *mutex) { AcquireSRWLockExclusive(lock_of(mutex)); }
void os_mutex_unlock(struct os_mutex *mutex) { ReleaseSRWLockExclusive(lock_of(mutex)); }

static unsigned __stdcall run_team(void *given) {
  struct os_team *team = given;
  team->work(team->user);
  return 0;
}

/* Compilers of shaders need more stack than the one megabyte that is usual. */
void os_team_start(struct os_team *team, uint32_t n, void (*work)(void *), void *user) {
  enum { STACK = 8 << 20 };
  *team = (struct os_team){.work = work, .user = user};
  for (; team->n < n && team->n < OS_TEAM_MAX; team->n++) {
    uintptr_t thread =
        _beginthreadex(NULL, STACK, run_team, team, STACK_SIZE_PARAM_IS_A_RESERVATION, NULL);
    if (!thread) break;
    team->threads[team->n] = (void *)thread;
  }
}

void os_team_join(struct os_team *team) {
  while (team->n) {
    HANDLE thread = team->threads[--team->n];
    WaitForSingleObject(thread, INFINITE);
    CloseHandle(thread);
  }
}

uint32_t os_cores(void) {
  DWORD_PTR mine = 0, all = 0;
  uint32_t n = 0;
  if (!GetProcessAffinityMask(GetCurrentProcess(), &mine, &all)) return 1;
  for (; mine; mine &= mine - 1) n++;
  return n ? n : 1; /* 0: the process has threads in several groups of 64 */
}

/* ---- the environment ------------------------------------------------------------------------- */

/* The C library has a copy of its own, in the code page of the system and as old as the process. */
const char *os_env(const char *name, char *room, size_t size) {
  struct wide key, value;
  if (wide_text(&key, name) != 0) return NULL;
  const DWORD n = GetEnvironmentVariableW(key.text, value.text, WIDE_MAX);
  if (n >= WIDE_MAX || (n == 0 && GetLastError() == ERROR_ENVVAR_NOT_FOUND)) return NULL;
  if (n == 0) value.text[0] = 0;
  return wide_to_text(room, size, value.text) ? room : NULL;
}

void os_hush_begin(void) {}
void os_hush_end(void) {}

/* ---- reading --------------------------------------------------------------------------------- */

/* Opens a regular file and says how long it is. Others may write it and remove it meanwhile. */
static sconce_status open_regular(const char *path, HANDLE *out, uint64_t *size,
                                  sconce_error *err) {
  struct wide wide;
  const int bad = wide_path(&wide, path);
  if (bad) return fail_errno(err, path, bad);
  const DWORD kind = GetFileAttributesW(wide.text);
  if (kind != INVALID_FILE_ATTRIBUTES && kind & FILE_ATTRIBUTE_DIRECTORY)
    return fail(err, SCONCE_IO_ERROR, "%s: not a regular file", path);
  const DWORD share = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
  HANDLE file =
      CreateFileW(wide.text, GENERIC_READ, share, NULL, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
  if (file == INVALID_HANDLE_VALUE) return fail_last(err, path);
  LARGE_INTEGER length = {0};
  sconce_status status = SCONCE_OK;
  if (GetFileType(file) != FILE_TYPE_DISK)
    status = fail(err, SCONCE_IO_ERROR, "%s: not a regular file", path);
  else if (!GetFileSizeEx(file, &length))
    status = fail_last(err, path);
  if (status != SCONCE_OK) {
    CloseHandle(file);
    return status;
  }
  *out = file;
  *size = (uint64_t)length.QuadPart;
  return SCONCE_OK;
}

static uint64_t write_time(HANDLE file) {
  FILETIME t = {0};
  if (!GetFileTime(file, NULL, NULL, &t)) return 0;
  return (uint64_t)t.dwHighDateTime << 32 | t.dwLowDateTime;
}

sconce_status os_reader_open(struct os_reader *r, const char *path, sconce_error *err) {
  *r = (struct os_reader){0};
  HANDLE file = NULL;
  TRY(open_regular(path, &file, &r->size, err));
  r->handle = (intptr_t)file;
  r->written = write_time(file);
  const size_t n = strlen(path), room = sizeof r->path - 1;
  memcpy(r->path, n > room ? path + n - room : path, n > room ? room : n);
  return SCONCE_OK;
}

void os_reader_close(struct os_reader *r) {
  if (r->handle) CloseHandle((HANDLE)r->handle);
  *r = (struct os_reader){0};
}

uint64_t os_reader_size(const struct os_reader *r) { return r->size; }

/* A read that names its offset leaves other threads' reads alone. */
sconce_status os_reader_read(const struct os_reader *r, uint64_t offset, void *out, size_t size,
                             sconce_error *err) {
  if (offset > r->size || size > r->size - offset)
    return fail(err, SCONCE_IO_ERROR, "%s: %zu bytes at %llu of a file of %llu", r->path, size,
                (unsigned long long)offset, (unsigned long long)r->size);
  for (size_t at = 0; at < size;) {
    const size_t most = 1 << 30;
    const DWORD step = (DWORD)(size - at < most ? size - at : most);
    OVERLAPPED from = {.Offset = (DWORD)(offset + at), .OffsetHigh = (DWORD)((offset + at) >> 32)};
    DWORD n = 0;
    if (!ReadFile((HANDLE)r->handle, (unsigned char *)out + at, step, &n, &from) &&
        GetLastError() != ERROR_HANDLE_EOF)
      return fail_last(err, r->path);
    if (n == 0)
      return fail(err, SCONCE_IO_ERROR, "%s: ends at %llu, it had %llu bytes when it was opened",
                  r->path, (unsigned long long)(offset + at), (unsigned long long)r->size);
    at += n;
  }
  LARGE_INTEGER now = {0};
  if (!GetFileSizeEx((HANDLE)r->handle, &now)) return fail_last(err, r->path);
  if ((uint64_t)now.QuadPart == r->size && write_time((HANDLE)r->handle) == r->written)
    return SCONCE_OK;
  return fail(err, SCONCE_IO_ERROR, "%s: changed since it was opened", r->path);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* A path that is there and no file is a device or a pipe, or a folder, which fopen refuses. */
static bool is_special(const wchar_t *path) {
  HANDLE file = CreateFileW(path, 0, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL,
                            OPEN_EXISTING, 0, NULL);
  if (file == INVALID_HANDLE_VALUE) {
    const DWORD kind = GetFileAttributesW(path);
    return kind != INVALID_FILE_ATTRIBUTES && kind & FILE_ATTRIBUTE_DIRECTORY;
  }
  const bool special = GetFileType(file) != FILE_TYPE_DISK;
  CloseHandle(file);
  return special;
}

/* Sets errno. A file that may not be written is not replaced either. */
static FILE *open_temporary(struct os_file *file, const wchar_t *path) {
  struct wide wide;
  const DWORD kind = GetFileAttributesW(path);
  errno = EACCES;
  if (kind != INVALID_FILE_ATTRIBUTES && kind & FILE_ATTRIBUTE_READONLY) return NULL;
  errno = ENAMETOOLONG;
  if (strlen(file->path) >= sizeof file->target) return NULL;
  memcpy(file->target, file->path, strlen(file->path) + 1);
  snprintf(file->temporary, sizeof file->temporary, "%s.%lx%llx~", file->target,
           (unsigned long)GetCurrentProcessId(), (unsigned long long)os_clock_ns() & 0xffffff);
  errno = wide_path(&wide, file->temporary);
  return errno ? NULL : _wfopen(wide.text, L"wbN"); /* N: programs we start do not inherit it */
}

sconce_status os_file_create(struct os_file *file, const char *path, sconce_error *err) {
  struct wide wide;
  *file = (struct os_file){.path = path};
  const int bad = wide_path(&wide, path);
  if (bad) return fail_errno(err, path, bad);
  file->stream =
      is_special(wide.text) ? _wfopen(wide.text, L"wbN") : open_temporary(file, wide.text);
  return file->stream ? SCONCE_OK : fail_errno(err, path, errno);
}

sconce_status os_file_write(struct os_file *file, const void *data, size_t size,
                            sconce_error *err) {
  if (fwrite(data, 1, size, file->stream) != size) return fail_errno(err, file->path, errno);
  return SCONCE_OK;
}

static HANDLE handle_of(FILE *stream) { return (HANDLE)_get_osfhandle(_fileno(stream)); }

sconce_status os_file_skip(struct os_file *file, uint64_t size, sconce_error *err) {
  DWORD ignored; /* a file system without holes writes zeros */
  DeviceIoControl(handle_of(file->stream), FSCTL_SET_SPARSE, NULL, 0, NULL, 0, &ignored, NULL);
  if (size > INT64_MAX || _fseeki64(file->stream, (int64_t)size, SEEK_CUR) != 0)
    return fail(err, SCONCE_IO_ERROR, "%s: cannot skip %llu bytes: %s", file->path,
                (unsigned long long)size, size > INT64_MAX ? "too many" : strerror(errno));
  return SCONCE_OK;
}

static void remove_file(const char *path) {
  struct wide wide;
  if (wide_path(&wide, path) == 0) DeleteFileW(wide.text);
}

/* A file that ends in a hole has no byte yet to mark its end. */
static int to_disk(FILE *stream) {
  const int64_t end = _ftelli64(stream);
  if (end < 0 || fflush(stream) != 0) return errno;
  FILE_END_OF_FILE_INFO info = {.EndOfFile.QuadPart = end};
  HANDLE file = handle_of(stream);
  if (SetFileInformationByHandle(file, FileEndOfFileInfo, &info, sizeof info) &&
      FlushFileBuffers(file))
    return 0;
  return wide_errno(GetLastError());
}

static int replace(const struct os_file *file) {
  struct wide from, to;
  int bad = wide_path(&from, file->temporary);
  if (!bad) bad = wide_path(&to, file->target);
  return bad ? bad : wide_replace(&from, &to);
}

sconce_status os_file_close(struct os_file *file, sconce_error *err) {
  const bool replaces = file->target[0];
  int reason = replaces ? to_disk(file->stream) : fflush(file->stream) != 0 ? errno : 0;
  if (fclose(file->stream) != 0 && !reason) reason = errno;
  file->stream = NULL;
  if (!reason && replaces) reason = replace(file);
  if (!reason) return SCONCE_OK;
  if (replaces) remove_file(file->temporary);
  return fail_errno(err, file->path, reason);
}

void os_file_discard(struct os_file *file) {
  if (!file->stream) return;
  fclose(file->stream);
  if (file->target[0]) remove_file(file->temporary);
  *file = (struct os_file){0};
}

/* ---- folders --------------------------------------------------------------------------------- */

static bool is_real_folder(DWORD attributes) {
  return attributes & FILE_ATTRIBUTE_DIRECTORY && !(attributes & FILE_ATTRIBUTE_REPARSE_POINT);
}

sconce_status os_folder_each(const char *path,
                             sconce_status (*each)(void *user, const char *name, bool folder,
                                                   sconce_error *err),
                             void *user, sconce_error *err) {
  char pattern[WIDE_MAX], name[4 * MAX_PATH];
  struct wide wide;
  WIN32_FIND_DATAW found;
  const int n = snprintf(pattern, sizeof pattern, "%s/*", path);
  const int bad = n < 0 || (size_t)n >= sizeof pattern ? ENAMETOOLONG : wide_path(&wide, pattern);
  if (bad) return fail_errno(err, path, bad);
  HANDLE search = FindFirstFileW(wide.text, &found);
  if (search == INVALID_HANDLE_VALUE) return fail_last(err, path);
  sconce_status status = SCONCE_OK;
  do {
    if (!wcscmp(found.cFileName, L".") || !wcscmp(found.cFileName, L"..")) continue;
    if (!wide_to_text(name, sizeof name, found.cFileName)) continue;
    status = each(user, name, is_real_folder(found.dwFileAttributes), err);
  } while (status == SCONCE_OK && FindNextFileW(search, &found));
  if (status == SCONCE_OK && GetLastError() != ERROR_NO_MORE_FILES) status = fail_last(err, path);
  FindClose(search);
  return status;
}

bool os_folder_is(const char *path) {
  struct wide wide;
  if (wide_path(&wide, path) != 0) return false;
  const DWORD kind = GetFileAttributesW(wide.text);
  return kind != INVALID_FILE_ATTRIBUTES && kind & FILE_ATTRIBUTE_DIRECTORY;
}

/* ---- libraries ------------------------------------------------------------------------------- */

static _Thread_local char library_text[512]; /* why the last one was not opened */

static void keep_reason(const char *path, DWORD error) {
  const char *what = error == ERROR_MOD_NOT_FOUND    ? "it, or a library that it needs, is missing"
                     : error == ERROR_BAD_EXE_FORMAT ? "it is no library for this kind of machine"
                                                     : "it cannot be loaded";
  snprintf(library_text, sizeof library_text, "%.400s: %s (error %lu)", path, what, error);
}

/* What a library needs is looked for beside it too, if its path says where it is. */
void *os_library_open(const char *path) {
  struct wide wide;
  const bool bare = path_name(path) == path;
  const int bad = bare ? wide_text(&wide, path) : wide_path(&wide, path);
  HMODULE library =
      bad ? NULL : LoadLibraryExW(wide.text, NULL, bare ? 0 : LOAD_WITH_ALTERED_SEARCH_PATH);
  if (!library) keep_reason(path, bad ? ERROR_INVALID_NAME : GetLastError());
  return (void *)library;
}

const char *os_library_error(void) { return library_text; }

void *os_library_symbol(void *library, const char *name) {
  FARPROC found = GetProcAddress((HMODULE)library, name);
  void *symbol;
  memcpy(&symbol, &found, sizeof symbol);
  return symbol;
}

static bool folder_of(HMODULE module, char *out, size_t size) {
  struct wide wide;
  const DWORD n = GetModuleFileNameW(module, wide.text, WIDE_MAX);
  if (n == 0 || n >= WIDE_MAX || !wide_to_text(out, size, wide.text)) return false;
  out[path_name(out) - out] = 0;
  return true;
}

bool os_program_folder(char *out, size_t size) { return folder_of(NULL, out, size); }

bool os_module_folder(char *out, size_t size) {
  static const char anchor = 0; /* an address inside this module */
  HMODULE module;
  const DWORD how =
      GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
  return GetModuleHandleExW(how, (const wchar_t *)(const void *)&anchor, &module) &&
         folder_of(module, out, size);
}
