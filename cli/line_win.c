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

/* NULL at Ctrl-Z in front; Ctrl-C drops the line, not the program. */
static const char *read_console(struct line_editor *e, const char *prompt) {
  static const wchar_t end = 26;
  wchar_t *wide = malloc((UNITS + 1) * sizeof *wide);
  DWORD n = 0;
  if (!wide) return NULL;
  fputs(prompt, stdout);
  fflush(stdout);
  console_catch_interrupt(true);
  const bool ok = ReadConsoleW(GetStdHandle(STD_INPUT_HANDLE), wide, UNITS, &n, NULL);
  const bool dropped = ok && n == 0 && GetLastError() == ERROR_OPERATION_ABORTED;
  console_catch_interrupt(false);
  wide[ok ? n : 0] = 0;
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
