/* Lines from standard input: on a terminal with editing and history, through a pipe as they come.
 */
#ifndef CLI_LINE_H
#define CLI_LINE_H

#include <stdbool.h>

struct line_editor;

/* With a terminal at both ends: a prompt, the keys people know, several lines (Alt-Enter, or a
 * backslash at the end), pasted text as one message, and history in the user's state folder. NULL:
 * no memory. */
struct line_editor *line_open(bool terminal);
/* The next message without its newline, valid until the next call; NULL: the end. */
const char *line_read(struct line_editor *editor);
/* Was it Ctrl-C, twice on an empty line, that ended it? */
bool line_interrupted(const struct line_editor *editor);
/* A question on a terminal that "y" answers; false elsewhere. */
bool line_ask(struct line_editor *editor, const char *question);
void line_close(struct line_editor *editor);

#endif
