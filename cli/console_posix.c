/* See console.h: Linux, macOS and other POSIX systems. */
#define _DEFAULT_SOURCE /* TIOCGWINSZ */
#include "console.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

void console_start(int *argc, char ***argv) { (void)argc, (void)argv; }

bool console_is_terminal(FILE *stream) { return isatty(fileno(stream)); }

int console_width(void) {
  struct winsize size = {0};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

FILE *console_open(const char *path, const char *mode) { return fopen(path, mode); }

FILE *console_open_regular(const char *path, const char **why) {
  struct stat info;
  const int handle = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe's open would wait */
  const bool known = handle >= 0 && fstat(handle, &info) == 0;
  FILE *file = known && S_ISREG(info.st_mode) ? fdopen(handle, "rb") : NULL;
  if (known && S_ISDIR(info.st_mode)) errno = EISDIR;
  *why = file || !known || S_ISDIR(info.st_mode) ? strerror(errno) : "not a regular file";
  if (handle >= 0 && !file) close(handle);
  return file;
}

bool console_can_read(const char *path) { return access(path, R_OK) == 0; }

bool console_make_folder(const char *path) { return mkdir(path, 0777) == 0 || errno == EEXIST; }

bool console_state_file(const char *name, char *out, size_t size) {
  const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
  int n = -1;
  if (state && *state == '/')
    n = snprintf(out, size, "%s/sconce/%s", state, name);
  else if (home && *home == '/')
    n = snprintf(out, size, "%s/.local/state/sconce/%s", home, name);
  if (n <= 0 || (size_t)n >= size) return false;
  for (char *slash = out; (slash = strchr(slash + 1, '/'));) {
    *slash = 0;
    const bool there = mkdir(out, 0700) == 0 || errno == EEXIST;
    *slash = '/';
    if (!there) return false;
  }
  return true;
}

bool console_expand(const char *path, char *out, size_t size) {
  const char *home = getenv("HOME");
  const bool tilde = path[0] == '~' && (path[1] == '/' || !path[1]) && home;
  const int n = snprintf(out, size, "%s%s", tilde ? home : "", tilde ? path + 1 : path);
  return *path && n > 0 && (size_t)n < size;
}

void console_remove(const char *path) { remove(path); }

bool console_sync(FILE *file) {
  return fflush(file) == 0 && !ferror(file) && fsync(fileno(file)) == 0;
}

bool console_replace(const char *from, const char *to) { return rename(from, to) == 0; }

const char *console_file_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static volatile sig_atomic_t interrupted;
static void (*volatile told)(void *user);
static void *volatile told_user;

void console_end_interrupted(void) {
  if (signal(SIGINT, SIG_DFL) != SIG_ERR) raise(SIGINT);
}

static void on_interrupt(int number) {
  (void)number;
  if (interrupted) console_end_interrupted();
  void (*const call)(void *user) = told;
  interrupted = 1;
  if (call) call(told_user);
}

void console_tell_interrupt(void (*call)(void *user), void *user) {
  if (call) told_user = user;
  told = call;
}

void console_catch_interrupt(bool on) {
  struct sigaction action = {.sa_handler = on ? on_interrupt : SIG_DFL};
  sigemptyset(&action.sa_mask);
  if (on) interrupted = 0;
  sigaction(SIGINT, &action, NULL);
}

bool console_interrupted(void) { return interrupted; }

double console_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void console_nap(void) { nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL); }
