/* See console.h: Windows 10 and later. */
#include "console.h"

#include "base/path.h"
#include "base/wide_win.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <shellapi.h>

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Escape sequences work where the console knows them; where it does not they were never sent. */
static void use_sequences(DWORD which) {
  HANDLE console = GetStdHandle(which);
  DWORD mode;
  if (GetConsoleMode(console, &mode))
    SetConsoleMode(console, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
}

/* The system's words as UTF-8, in one block that lives as long as the process. */
static char **utf8_words(int *argc) {
  wchar_t **wide = CommandLineToArgvW(GetCommandLineW(), argc);
  if (!wide) return NULL;
  size_t size = (size_t)(*argc + 1) * sizeof(char *);
  const size_t head = size;
  for (int i = 0; i < *argc; i++) size += 3 * wcslen(wide[i]) + 1;
  char **words = malloc(size), *at = (char *)words + head;
  for (int i = 0; words && i < *argc; i++) {
    words[i] = at;
    if (!wide_to_text(at, size - (size_t)(at - (char *)words), wide[i])) *at = 0;
    at += strlen(at) + 1;
  }
  if (words) words[*argc] = NULL;
  LocalFree(wide);
  return words;
}

void console_start(int *argc, char ***argv) {
  int n = 0;
  char **words = utf8_words(&n);
  if (words) {
    *argc = n;
    *argv = words;
  }
  _setmode(_fileno(stdin), _O_BINARY);
  _setmode(_fileno(stdout), _O_BINARY);
  _setmode(_fileno(stderr), _O_BINARY);
  SetConsoleOutputCP(CP_UTF8);
  SetConsoleCP(CP_UTF8);
  use_sequences(STD_OUTPUT_HANDLE);
  use_sequences(STD_ERROR_HANDLE);
}

/* The null device is a character device too: only a console has a mode. */
bool console_is_terminal(FILE *stream) {
  DWORD mode;
  return GetConsoleMode((HANDLE)_get_osfhandle(_fileno(stream)), &mode);
}

int console_width(void) {
  CONSOLE_SCREEN_BUFFER_INFO info;
  if (!GetConsoleScreenBufferInfo(GetStdHandle(STD_ERROR_HANDLE), &info)) return 80;
  return info.srWindow.Right - info.srWindow.Left + 1;
}

FILE *console_open(const char *path, const char *mode) {
  struct wide wide;
  wchar_t how[8];
  size_t n = 0;
  for (; *mode && n < 6; mode++)
    if (*mode != 'b') how[n++] = (wchar_t)*mode;
  how[n++] = L'b';
  how[n] = 0;
  const int bad = wide_path(&wide, path);
  if (!bad) return _wfopen(wide.text, how);
  errno = bad;
  return NULL;
}

FILE *console_open_regular(const char *path, const char **why) {
  FILE *file = console_open(path, "r");
  *why = strerror(errno);
  if (!file || GetFileType((HANDLE)_get_osfhandle(_fileno(file))) == FILE_TYPE_DISK) return file;
  *why = "not a regular file";
  fclose(file);
  return NULL;
}

bool console_can_read(const char *path) {
  struct wide wide;
  const int bad = wide_path(&wide, path);
  if (!bad) return _waccess(wide.text, 4) == 0;
  errno = bad;
  return false;
}

bool console_make_folder(const char *path) {
  struct wide wide;
  errno = wide_path(&wide, path);
  if (!errno && !CreateDirectoryW(wide.text, NULL)) errno = wide_errno(GetLastError());
  return !errno || errno == EEXIST;
}

/* The C library has variables in the code page of the system. */
static bool folder_of(const wchar_t *variable, char *out, size_t size) {
  struct wide folder;
  const DWORD n = GetEnvironmentVariableW(variable, folder.text, WIDE_MAX);
  return n > 0 && n < WIDE_MAX && wide_to_text(out, size, folder.text);
}

bool console_state_file(const char *name, char *out, size_t size) {
  char base[3 * MAX_PATH];
  if (!folder_of(L"LOCALAPPDATA", base, sizeof base)) return false;
  int n = snprintf(out, size, "%s\\sconce", base);
  if (n <= 0 || (size_t)n >= size || !console_make_folder(out)) return false;
  n = snprintf(out, size, "%s\\sconce\\%s", base, name);
  return n > 0 && (size_t)n < size;
}

bool console_expand(const char *path, char *out, size_t size) {
  char home[3 * MAX_PATH];
  const bool tilde = path[0] == '~' && (path[1] == '/' || path[1] == '\\' || !path[1]) &&
                     folder_of(L"USERPROFILE", home, sizeof home);
  const int n = snprintf(out, size, "%s%s", tilde ? home : "", tilde ? path + 1 : path);
  return *path && n > 0 && (size_t)n < size;
}

void console_remove(const char *path) {
  struct wide wide;
  if (wide_path(&wide, path) == 0) DeleteFileW(wide.text);
}

bool console_sync(FILE *file) {
  return fflush(file) == 0 && !ferror(file) && _commit(_fileno(file)) == 0;
}

bool console_replace(const char *from, const char *to) {
  struct wide a, b;
  errno = wide_path(&a, from);
  if (!errno) errno = wide_path(&b, to);
  if (!errno) errno = wide_replace(&a, &b);
  return !errno;
}

const char *console_file_name(const char *path) { return path_name(path); }

static volatile sig_atomic_t interrupted, catching;
static void (*volatile told)(void *user);
static void *volatile told_user;

/* On a thread of the system's. */
static BOOL WINAPI on_control(DWORD event) {
  if (!catching || interrupted || (event != CTRL_C_EVENT && event != CTRL_BREAK_EVENT))
    return FALSE;
  void (*const call)(void *user) = told;
  interrupted = 1;
  if (call) call(told_user);
  return TRUE;
}

void console_tell_interrupt(void (*call)(void *user), void *user) {
  if (call) told_user = user;
  told = call;
}

void console_catch_interrupt(bool on) {
  static bool known;
  if (!known) known = SetConsoleCtrlHandler(on_control, TRUE);
  if (on) interrupted = 0;
  catching = on;
}

bool console_interrupted(void) { return interrupted; }

/* What cmd and PowerShell see of a program that Ctrl-C ended; no destructor runs on the way. */
void console_end_interrupted(void) { ExitProcess((UINT)STATUS_CONTROL_C_EXIT); }

double console_seconds(void) {
  LARGE_INTEGER count, second;
  QueryPerformanceCounter(&count);
  QueryPerformanceFrequency(&second);
  return (double)count.QuadPart / (double)second.QuadPart;
}

void console_nap(void) { Sleep(1); }
