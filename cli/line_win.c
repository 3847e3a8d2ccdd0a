/* Lines from standard input on Windows, whose console edits them and keeps their history itself. */
#include "line.h"

#include "base/wide_win.h"
#include "console.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <stdlib.h>
#include <string.h>

enum { UNITS = LINE_MAX_BYTES / 3 - 2 }; /* what is UTF-8 in three bytes each fits the line */

/* NULL at Ctrl-Z in front; Ctrl-C drops the line, not the program. */
static const char *read_console(struct line_editor *editor, const char *prompt) {
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
  const bool more = ok && wide[0] != end && (n > 0 || dropped) &&
                    wide_to_text(editor->line, LINE_MAX_BYTES, wide);
  free(wide);
  if (dropped) fputc('\n', stdout);
  return more ? editor->line : NULL;
}

const char *line_read(struct line_editor *editor, const char *prompt) {
  if (!editor->line && !(editor->line = malloc(LINE_MAX_BYTES))) return NULL;
  const bool console = console_is_terminal(stdin) && console_is_terminal(stdout);
  const char *line =
      console ? read_console(editor, prompt) : fgets(editor->line, LINE_MAX_BYTES, stdin);
  if (line) editor->line[strcspn(line, "\r\n")] = 0;
  return line;
}

void line_free(struct line_editor *editor) { free(editor->line); }
