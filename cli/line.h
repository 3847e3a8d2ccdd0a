/* Lines from standard input; on a terminal with editing and history. */
#ifndef CLI_LINE_H
#define CLI_LINE_H

#include <stddef.h>

enum { LINE_MAX_BYTES = 65536, LINE_HISTORY = 200 };

struct line_editor {
  char *line;                  /* the last line read */
  char *history[LINE_HISTORY]; /* oldest first */
  size_t n_history;
};

/* The next line without its newline, valid until the next call; NULL at the end of input. */
const char *line_read(struct line_editor *editor, const char *prompt);
void line_free(struct line_editor *editor);

#endif
