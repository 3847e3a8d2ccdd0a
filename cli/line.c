/* See line.h. On a terminal it is libedit where the build found it, else the terminal's own line
 * editing. */
#define _DEFAULT_SOURCE
#define _XOPEN_SOURCE 700
#include "line.h"

#include "console.h"

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef SCONCE_LIBEDIT
#include <histedit.h>
#include <langinfo.h>
#include <signal.h>
#include <wchar.h>
#endif

struct line_editor {
  bool terminal, interrupted;
  bool warned;   /* Ctrl-C on an empty line: once more leaves */
  bool goes_on;  /* the line before ended with a backslash */
  bool dropped;  /* …and nobody wants the message any more */
  char *message; /* the last one read */
  size_t size, cap;
  char *raw; /* getline's */
  size_t raw_cap;
  char history[1024]; /* its file, or "" */
#ifdef SCONCE_LIBEDIT
  EditLine *edit;
  History *past;
  int width; /* of the window, as the line was drawn */
#endif
};

/* ---- libedit --------------------------------------------------------------------------------- */

#ifdef SCONCE_LIBEDIT

static char *prompt(EditLine *edit) {
  static char first[] = "\1\033[1m\1> \1\033[0m\1", later[] = "\1\033[1m\1. \1\033[0m\1";
  struct line_editor *e;
  el_get(edit, EL_CLIENTDATA, &e);
  return e->goes_on ? later : first;
}

/* Pasted text is marked while a line is edited. */
static void mark_pastes(bool on) {
  fputs(on ? "\033[?2004h" : "\033[?2004l", stdout);
  fflush(stdout);
}

/* Ctrl-C drops the line, with those before it that belong to the same message; on an empty one it
 * says how to leave, and then leaves. */
static unsigned char interrupt(EditLine *edit, int key) {
  struct line_editor *e;
  const LineInfoW *line = el_wline(edit);
  (void)key;
  el_get(edit, EL_CLIENTDATA, &e);
  const int n = (int)(line->lastchar - line->buffer);
  if (n > 0) {
    el_cursor(edit, (int)(line->lastchar - line->cursor));
    el_deletestr(edit, n);
    e->warned = false;
  }
  e->dropped = e->goes_on;
  if (e->dropped) el_push(edit, "\n");
  if (n > 0 || e->dropped) return CC_REFRESH;
  e->interrupted = e->warned;
  if (e->warned) return CC_EOF;
  e->warned = true;
  fputs("\r\n(Ctrl-C again or Ctrl-D leaves)\r\n", stdout);
  fflush(stdout);
  return CC_REDISPLAY;
}

static unsigned char suspend(EditLine *edit, int key) {
  (void)key;
  mark_pastes(false);
  el_set(edit, EL_PREP_TERM, 0);
  raise(SIGTSTP);
  el_set(edit, EL_PREP_TERM, 1);
  mark_pastes(true);
  return CC_REDISPLAY;
}

static unsigned char new_line(EditLine *edit, int key) {
  (void)key;
  return el_winsertstr(edit, L"\n") == 0 ? CC_REFRESH : CC_ERROR;
}

/* ---- reading keys: a new size of the window redraws, an end from outside ends ---- */

static volatile sig_atomic_t resized, ended;
static void on_signal(int number) {
  if (number == SIGWINCH)
    resized = 1;
  else
    ended = 1;
}

/* Rows from the prompt's down to the cursor's: drawn at one width, shown at another. Terminals
 * break rows anew that are too long now, and join none: see "am" below. */
static int rows_above(EditLine *edit, int drawn, int shown) {
  const LineInfoW *line = el_wline(edit);
  int rows = 0, column = 2;
  for (const wchar_t *c = line->buffer; c < line->cursor; c++) {
    const int wide = wcwidth(*c) > 0 ? wcwidth(*c) : 0;
    if (*c != L'\n' && column + wide <= drawn) {
      column += wide;
      continue;
    }
    rows += 1 + (column - 1) / shown;
    column = *c == L'\n' ? 0 : wide;
  }
  return rows + (column ? (column - 1) / shown : 0);
}

static void redraw(EditLine *edit, struct line_editor *e) {
  const int width = console_width(), up = rows_above(edit, e->width, width);
  resized = 0;
  e->width = width;
  el_resize(edit);
  if (up > 0) fprintf(stdout, "\033[%dA", up);
  /* The first row by itself: tmux keeps what is erased from a screen's first place on. */
  fputs("\r\0337\033[K\033[B\033[J\0338", stdout);
  fflush(stdout);
  el_set(edit, EL_REFRESH);
}

static int read_key(EditLine *edit, wchar_t *out) {
  struct line_editor *e;
  mbstate_t state = {0};
  el_get(edit, EL_CLIENTDATA, &e);
  for (;;) {
    char byte;
    if (resized) redraw(edit, e);
    if (ended) return 0;
    ssize_t n = read(STDIN_FILENO, &byte, 1);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return (int)n;
    const size_t used = mbrtowc(out, &byte, 1, &state);
    if (used == (size_t)-2) continue; /* inside a character */
    if (used == (size_t)-1) *out = L'\ufffd';
    if (used != (size_t)-1 || (byte & 0x80)) return 1;
    state = (mbstate_t){0};
  }
}

static void catch_signals(bool on, struct sigaction before[3]) {
  static const int which[3] = {SIGWINCH, SIGTERM, SIGHUP};
  struct sigaction action = {.sa_handler = on_signal};
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < 3; i++)
    sigaction(which[i], on ? &action : &before[i], on ? &before[i] : NULL);
}

/* What a terminal pastes stands between ESC [ 200 ~ and ESC [ 201 ~: text, whatever it contains.
 * It is read to its end in any case, or the rest would be typed as keys; NULL: dropped. */
enum { PASTE_MOST = 1 << 20 };
static wchar_t *read_paste(EditLine *edit, size_t *size) {
  static const wchar_t end[] = L"\033[201~";
  enum { END = 6 };
  size_t n = 0, cap = 1 << 12;
  wchar_t c, last[END] = {0}, *text = malloc(cap * sizeof *text);
  while (wmemcmp(last, end, END) != 0 && el_wgetc(edit, &c) == 1) {
    wmemmove(last, last + 1, END - 1);
    last[END - 1] = c;
    if (text && n + 1 == cap) {
      wchar_t *more = cap < PASTE_MOST ? realloc(text, (cap *= 2) * sizeof *text) : NULL;
      if (!more) free(text);
      text = more;
    }
    if (text) text[n++] = c == L'\r' ? L'\n' : c;
  }
  if (!text) return NULL;
  if (!wmemcmp(last, end, END)) n -= END;
  while (n && text[n - 1] == L'\n') n--;
  text[n] = 0;
  *size = n;
  return text;
}

static unsigned char paste(EditLine *edit, int key) {
  size_t n = 0;
  wchar_t *text = read_paste(edit, &n);
  (void)key;
  const bool ok = text && (n == 0 || el_winsertstr(edit, text) == 0);
  free(text);
  if (ok) return CC_REFRESH;
  fprintf(stdout, "\r\n(dropped: a paste has at most %d characters)\r\n", PASTE_MOST - 1);
  fflush(stdout);
  return CC_REDISPLAY;
}

static const char *const keys[][2] = {
    {"^R", "em-inc-search-prev"},       {"^W", "ed-delete-prev-word"},
    {"\033[1;5D", "ed-prev-word"},      {"\033[1;5C", "em-next-word"},
    {"\033[1;3D", "ed-prev-word"},      {"\033[1;3C", "em-next-word"},
    {"\033[H", "ed-move-to-beg"},       {"\033[F", "ed-move-to-end"},
    {"\033[1~", "ed-move-to-beg"},      {"\033[4~", "ed-move-to-end"},
    {"\033[3~", "ed-delete-next-char"}, {"^C", "sconce-interrupt"},
    {"^Z", "sconce-suspend"},           {"\033\n", "sconce-new-line"},
    {"\033\r", "sconce-new-line"},      {"\033[200~", "sconce-paste"},
};

/* Text is UTF-8 here whatever the locale says: that is what models write, and what terminals show.
 */
static void use_utf8(void) {
  setlocale(LC_CTYPE, "");
  if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0 && !setlocale(LC_CTYPE, "C.UTF-8"))
    setlocale(LC_CTYPE, "en_US.UTF-8");
}

static bool open_edit(struct line_editor *e) {
  const char *kind = getenv("TERM");
  HistEvent event;
  if (!kind || !strcmp(kind, "dumb")) return false;
  use_utf8();
  if (!(e->edit = el_init("sconce", stdin, stdout, stderr))) return false;
  el_set(e->edit, EL_CLIENTDATA, e);
  el_set(e->edit, EL_EDITOR, "emacs");
  el_set(e->edit, EL_PROMPT_ESC, prompt, '\1');
  /* Each row ends with a move of the cursor: a terminal then joins no rows in a wider window. */
  el_set(e->edit, EL_SETTC, "am", "no", NULL);
  el_set(e->edit, EL_SIGNAL, 0); /* its handlers signal the whole process group */
  el_set(e->edit, EL_GETCFN, read_key);
  el_set(e->edit, EL_SETTY, "-d", "-isig", NULL); /* Ctrl-C and Ctrl-Z are keys */
  el_set(e->edit, EL_ADDFN, "sconce-interrupt", "Drop the line", interrupt);
  el_set(e->edit, EL_ADDFN, "sconce-suspend", "Suspend", suspend);
  el_set(e->edit, EL_ADDFN, "sconce-new-line", "Insert a newline", new_line);
  el_set(e->edit, EL_ADDFN, "sconce-paste", "Insert what is pasted", paste);
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    el_set(e->edit, EL_BIND, keys[i][0], keys[i][1], NULL);
  el_source(e->edit, NULL); /* ~/.editrc: who wants vi's keys says so there */
  if ((e->past = history_init())) {
    history(e->past, &event, H_SETSIZE, 1000);
    history(e->past, &event, H_SETUNIQUE, 1);
    if (*e->history) history(e->past, &event, H_LOAD, e->history);
    el_set(e->edit, EL_HIST, history, e->past);
  }
  return true;
}

/* A line with its newline, or NULL. */
static const char *edit_line(struct line_editor *e) {
  struct sigaction before[3];
  int n = 0;
  e->width = console_width();
  el_resize(e->edit); /* it may have changed since the last line */
  resized = 0;
  catch_signals(true, before);
  mark_pastes(true);
  el_set(e->edit, EL_PREP_TERM, 1); /* else a Ctrl-D right behind the prompt is lost */
  const char *line = el_gets(e->edit, &n);
  mark_pastes(false);
  catch_signals(false, before);
  if (!line || n <= 0) fputs("\n", stdout);
  fflush(stdout);
  return n > 0 ? line : NULL;
}

static void remember(struct line_editor *e) {
  HistEvent event;
  if (!e->past || !e->size) return;
  history(e->past, &event, H_ENTER, e->message);
  if (*e->history) history(e->past, &event, H_SAVE, e->history);
}

static void close_edit(struct line_editor *e) {
  if (e->past) history_end(e->past);
  if (e->edit) el_end(e->edit);
}

#else
static bool open_edit(struct line_editor *e) { return (void)e, false; }
static void remember(struct line_editor *e) { (void)e; }
static void close_edit(struct line_editor *e) { (void)e; }
#endif

/* ---- any reader ------------------------------------------------------------------------------ */

static const char *plain_line(struct line_editor *e) {
  if (e->terminal) fputs(e->goes_on ? ". " : "> ", stdout);
  fflush(stdout);
  ssize_t n = getline(&e->raw, &e->raw_cap, stdin);
  if (n <= 0 && e->terminal) fputs("\n", stdout);
  return n > 0 ? e->raw : NULL;
}

static bool append(struct line_editor *e, const char *text, size_t n) {
  if (e->size + n + 2 > e->cap) {
    size_t cap = 2 * (e->size + n + 2);
    char *more = realloc(e->message, cap);
    if (!more) return false;
    e->message = more;
    e->cap = cap;
  }
  memcpy(e->message + e->size, text, n);
  e->size += n;
  e->message[e->size] = 0;
  return true;
}

const char *line_read(struct line_editor *e) {
  e->size = 0;
  e->goes_on = e->warned = false;
  do {
#ifdef SCONCE_LIBEDIT
    const char *line = e->edit ? edit_line(e) : plain_line(e);
#else
    const char *line = plain_line(e);
#endif
    if (!line) return NULL;
    if (e->dropped) e->size = 0, line = "";
    e->dropped = false;
    size_t n = strlen(line);
    if (n && line[n - 1] == '\n') n--;
    const bool more = e->terminal && n && line[n - 1] == '\\';
    if (!append(e, line, more ? n - 1 : n) || (more && !append(e, "\n", 1))) return NULL;
    e->goes_on = more;
  } while (e->goes_on);
  remember(e);
  return e->message;
}

bool line_interrupted(const struct line_editor *e) { return e->interrupted; }

bool line_ask(struct line_editor *e, const char *question) {
  if (!e->terminal) return false;
  printf("%s [y/N] ", question);
  fflush(stdout);
  ssize_t n = getline(&e->raw, &e->raw_cap, stdin);
  return n > 0 && (e->raw[0] == 'y' || e->raw[0] == 'Y');
}

struct line_editor *line_open(bool terminal) {
  struct line_editor *e = calloc(1, sizeof *e);
  if (!e) return NULL;
  e->terminal = terminal;
  if (terminal) {
    if (!console_state_file("chat_history", e->history, sizeof e->history)) e->history[0] = 0;
    open_edit(e);
  }
  return e;
}

void line_close(struct line_editor *e) {
  if (!e) return;
  close_edit(e);
  free(e->message);
  free(e->raw);
  free(e);
}
