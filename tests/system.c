/* See system.h. */
#define _GNU_SOURCE
#include "system.h"

#include "base/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include "base/wide_win.h"

#include <windows.h>
#else
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#endif

void test_temporary(char path[TEST_PATH_MAX], const char *ending) {
  static unsigned n;
  const char *folder = getenv("TMPDIR");
#ifdef _WIN32
  if (!folder) folder = getenv("TEMP");
#endif
  snprintf(path, TEST_PATH_MAX, "%s/sconce_test_%llx_%u%s", folder ? folder : "/tmp",
           (unsigned long long)os_clock_ns(), n++, ending);
}

static FILE *open_path(const char *path) {
#ifdef _WIN32
  struct wide wide;
  return wide_path(&wide, path) == 0 ? _wfopen(wide.text, L"wb") : NULL;
#else
  return fopen(path, "wb");
#endif
}

bool test_write_path(const char *path, const void *data, size_t size) {
  FILE *file = open_path(path);
  if (!file) return false;
  const bool ok = fwrite(data, 1, size, file) == size;
  return fclose(file) == 0 && ok;
}

#ifdef _WIN32

bool test_make_folder(const char *path) {
  struct wide wide;
  return wide_path(&wide, path) == 0 && CreateDirectoryW(wide.text, NULL);
}

void test_remove(const char *path) {
  struct wide wide;
  if (wide_path(&wide, path) == 0 && !DeleteFileW(wide.text)) RemoveDirectoryW(wide.text);
}

void *test_hold(const char *path) {
  struct wide wide;
  if (wide_path(&wide, path) != 0) return NULL;
  HANDLE file = CreateFileW(wide.text, GENERIC_READ, FILE_SHARE_READ, NULL, OPEN_EXISTING, 0, NULL);
  return file == INVALID_HANDLE_VALUE ? NULL : file;
}

void test_let_go(void *held) { CloseHandle(held); }

/* In both places: the system's, which os_env reads, and the C library's. */
void test_set_env(const char *name, const char *value) {
  _putenv_s(name, value ? value : "");
  SetEnvironmentVariableA(name, value);
}

uint64_t test_memory(const char *name) { return (void)name, 0; }
void test_forget_peak(void) {}
void test_limit_memory(uint64_t more) { (void)more; }
bool test_limit_files(uint64_t most) { return (void)most, false; }

#else

bool test_make_folder(const char *path) { return mkdir(path, 0777) == 0; }
void test_remove(const char *path) { remove(path); }
void *test_hold(const char *path) { return fopen(path, "rb"); }
void test_let_go(void *held) { fclose(held); }

void test_set_env(const char *name, const char *value) {
  if (value)
    setenv(name, value, 1);
  else
    unsetenv(name);
}

uint64_t test_memory(const char *name) {
  char line[256];
  unsigned long long kb = 0;
  FILE *file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file))
    if (strncmp(line, name, strlen(name)) == 0) sscanf(line + strlen(name), " %llu", &kb);
  if (file) fclose(file);
  return kb << 10;
}

void test_forget_peak(void) {
  FILE *file = fopen("/proc/self/clear_refs", "w");
  if (!file) return;
  fputs("5", file);
  fclose(file);
}

void test_limit_memory(uint64_t more) {
  static struct rlimit before;
  static bool tight;
  if (!tight) getrlimit(RLIMIT_AS, &before);
  struct rlimit now = before;
  tight = more != UINT64_MAX;
  if (tight) now.rlim_cur = test_memory("VmSize:") + more;
  setrlimit(RLIMIT_AS, &now);
}

/* A write beyond the limit is an error, once the signal that comes with it is ignored. */
bool test_limit_files(uint64_t most) {
  static struct rlimit before;
  static bool tight;
  if (!tight && getrlimit(RLIMIT_FSIZE, &before) != 0) return false;
  struct rlimit now = before;
  tight = most != UINT64_MAX;
  if (tight) now.rlim_cur = (rlim_t)most;
  return signal(SIGXFSZ, tight ? SIG_IGN : SIG_DFL) != SIG_ERR &&
         setrlimit(RLIMIT_FSIZE, &now) == 0;
}

#endif
