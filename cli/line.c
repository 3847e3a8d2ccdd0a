/* A small line editor: arrows, home and end, history; bytes of a character move together. */
#define _POSIX_C_SOURCE 200809L
#include "line.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

struct edit {
  struct line_editor *editor;
  const char *prompt;
  size_t size, at; /* bytes, and where the cursor is */
  size_t recalled; /* history entry shown; n_history: the line being typed */
};

static bool is_tail(char c) { return (c & 0xc0) == 0x80; }

static void draw(const struct edit *e) {
  const char *line = e->editor->line;
  printf("\r\033[K%s%.*s", e->prompt, (int)e->size, line);
  size_t back = 0;
  for (size_t i = e->at; i < e->size; i++) back += !is_tail(line[i]);
  if (back) printf("\033[%zuD", back);
  fflush(stdout);
}

static void insert(struct edit *e, char c) {
  if (e->size + 1 >= LINE_MAX_BYTES) return;
  char *line = e->editor->line;
  memmove(line + e->at + 1, line + e->at, e->size - e->at);
  line[e->at++] = c;
  e->size++;
}

static size_t step_left(const struct edit *e) {
  size_t at = e->at;
  while (at > 0 && is_tail(e->editor->line[--at])) {
  }
  return at;
}

static size_t step_right(const struct edit *e) {
  size_t at = e->at < e->size ? e->at + 1 : e->size;
  while (at < e->size && is_tail(e->editor->line[at])) at++;
  return at;
}

static void erase(struct edit *e, size_t from, size_t to) {
  memmove(e->editor->line + from, e->editor->line + to, e->size - to);
  e->size -= to - from;
  e->at = from;
}

static void recall(struct edit *e, size_t entry) {
  if (entry > e->editor->n_history) return;
  const char *text = entry < e->editor->n_history ? e->editor->history[entry] : "";
  e->recalled = entry;
  e->size = e->at = strlen(text);
  memcpy(e->editor->line, text, e->size);
}

/* Arrows and their like: ESC [ or ESC O, parameters, a final byte. With a modifier it is ignored.
 */
static void escape(struct edit *e) {
  char c, first = 0, last = 0;
  if (read(STDIN_FILENO, &c, 1) != 1 || (c != '[' && c != 'O')) return;
  do {
    if (read(STDIN_FILENO, &last, 1) != 1) return;
    if (!first) first = last;
  } while (last < 0x40 || last > 0x7e);
  if (last != first && last != '~') return;
  switch (first) {
  case 'A':
    if (e->recalled > 0) recall(e, e->recalled - 1);
    break;
  case 'B':
    recall(e, e->recalled + 1);
    break;
  case 'C':
    e->at = step_right(e);
    break;
  case 'D':
    e->at = step_left(e);
    break;
  case 'H':
  case '1':
    e->at = 0;
    break;
  case 'F':
  case '4':
    e->at = e->size;
    break;
  case '3':
    erase(e, e->at, step_right(e));
    break;
  default:
    break;
  }
}

enum { CTRL_A = 1, CTRL_C = 3, CTRL_D = 4, CTRL_E = 5, CTRL_K = 11, CTRL_U = 21, ESCAPE = 27 };

/* true: the line is whole; *end at the end of input. */
static bool key(struct edit *e, char c, bool *end) {
  switch (c) {
  case '\r':
  case '\n':
    return true;
  case CTRL_D:
    *end = e->size == 0;
    return *end;
  case CTRL_C:
    e->size = e->at = 0;
    break; /* drops the line, not the program */
  case CTRL_A:
    e->at = 0;
    break;
  case CTRL_E:
    e->at = e->size;
    break;
  case CTRL_K:
    e->size = e->at;
    break;
  case CTRL_U:
    erase(e, 0, e->at);
    break;
  case 8:
  case 127:
    if (e->at > 0) erase(e, step_left(e), e->at);
    break;
  case ESCAPE:
    escape(e);
    break;
  default:
    if ((unsigned char)c >= 32 || c == '\t') insert(e, c);
    break;
  }
  return false;
}

static void remember(struct line_editor *editor) {
  size_t n = editor->n_history;
  if (!*editor->line || (n && !strcmp(editor->history[n - 1], editor->line))) return;
  char *copy = strdup(editor->line);
  if (!copy) return;
  if (n == LINE_HISTORY) {
    free(editor->history[0]);
    memmove(editor->history, editor->history + 1, (n - 1) * sizeof *editor->history);
    n--;
  }
  editor->history[n] = copy;
  editor->n_history = n + 1;
}

static const char *read_terminal(struct line_editor *editor, const char *prompt,
                                 const struct termios *saved) {
  struct termios raw = *saved;
  raw.c_lflag &= ~(tcflag_t)(ECHO | ICANON | ISIG | IEXTEN);
  raw.c_iflag &= ~(tcflag_t)(IXON | ICRNL);
  tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
  struct edit e = {.editor = editor, .prompt = prompt, .recalled = editor->n_history};
  bool end = false;
  char c;
  for (draw(&e); read(STDIN_FILENO, &c, 1) == 1 || (end = true, false); draw(&e))
    if (key(&e, c, &end)) break;
  tcsetattr(STDIN_FILENO, TCSADRAIN, saved);
  putchar('\n');
  editor->line[e.size] = 0;
  if (end) return NULL;
  remember(editor);
  return editor->line;
}

const char *line_read(struct line_editor *editor, const char *prompt) {
  if (!editor->line && !(editor->line = malloc(LINE_MAX_BYTES))) return NULL;
  struct termios saved;
  if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && tcgetattr(STDIN_FILENO, &saved) == 0)
    return read_terminal(editor, prompt, &saved);
  if (!fgets(editor->line, LINE_MAX_BYTES, stdin)) return NULL;
  editor->line[strcspn(editor->line, "\r\n")] = 0;
  return editor->line;
}

void line_free(struct line_editor *editor) {
  for (size_t i = 0; i < editor->n_history; i++) free(editor->history[i]);
  free(editor->line);
}
