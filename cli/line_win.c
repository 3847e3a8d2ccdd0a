/* See line.h. Windows' console edits lines and keeps their history itself. */
#include "line.h"

#include "base/wide_win.h"
#include "console.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 65536, UNITS = LINE_BYTES / 3 - 2 }; /* UTF-8 of three bytes each fits */

struct line_editor {
  bool terminal;
  char line[LINE_BYTES];
};

/* Ctrl-C ends the read; its handler runs on a thread of the system's that may begin later, so it is
 * waited for. */
static bool read_units(wchar_t *wide, DWORD *n, bool *dropped) {
  const double patience_s = 1;
  *n = 0;
  SetLastError(ERROR_SUCCESS); /* a read that was not dropped leaves what was there */
  const bool ok = ReadConsoleW(GetStdHandle(STD_INPUT_HANDLE), wide, UNITS, n, NULL);
  *dropped = ok && (*n == 0 || *n > UNITS) && GetLastError() == ERROR_OPERATION_ABORTED;
  if (!ok || *n > UNITS) *n = 0;
  const double end = console_seconds() + patience_s;
  while (*dropped && !console_interrupted() && console_seconds() < end) console_nap();
  return ok;
}

/* NULL at Ctrl-Z in front; Ctrl-C drops the line, not the program. */
static const char *read_console(struct line_editor *e, const char *prompt) {
  static const wchar_t end = 26;
  wchar_t *wide = malloc((UNITS + 1) * sizeof *wide);
  DWORD n;
  bool dropped;
  if (!wide) return NULL;
  console_catch_interrupt(true); /* whoever sees the prompt may press it */
  fputs(prompt, stdout);
  fflush(stdout);
  const bool ok = read_units(wide, &n, &dropped);
  console_catch_interrupt(false);
  wide[n] = 0;
  const bool more =
      ok && wide[0] != end && (n > 0 || dropped) && wide_to_text(e->line, LINE_BYTES, wide);
  free(wide);
  if (dropped) fputc('\n', stdout);
  return more ? e->line : NULL;
}

struct line_editor *line_open(bool terminal) {
  struct line_editor *e = calloc(1, sizeof *e);
  if (e) e->terminal = terminal;
  return e;
}

const char *line_read(struct line_editor *e) {
  const char *line = e->terminal ? read_console(e, "> ") : fgets(e->line, LINE_BYTES, stdin);
  if (line) e->line[strcspn(line, "\r\n")] = 0;
  return line;
}

bool line_interrupted(const struct line_editor *e) { return (void)e, false; }

bool line_ask(struct line_editor *e, const char *question) {
  if (!e->terminal) return false;
  printf("%s [y/N] ", question);
  const char *answer = read_console(e, "");
  return answer && (*answer == 'y' || *answer == 'Y');
}

void line_close(struct line_editor *e) { free(e); }
