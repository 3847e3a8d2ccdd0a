/* The parser of options and the text of --help, both from a verb's table: see cli.h. */
#include "cli.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- help ------------------------------------------------------------------------------------ */

enum { WIDTH = 80, COLUMN = 24 };

/* How wide n bytes of UTF-8 are: what continues a character has no width. */
static int columns_of(const char *text, size_t n) {
  int columns = 0;
  for (size_t i = 0; i < n; i++) columns += (text[i] & 0xc0) != 0x80;
  return columns;
}

/* What stays in one line: a word, or a whole "[-o md|csv|json]". */
static size_t piece_of(const char *text) {
  const size_t n = strcspn(text, " \n"), whole = *text == '[' ? strcspn(text, "]\n") : 0;
  if (whole < n || whole > 40 || text[whole] != ']') return n;
  return whole + strcspn(text + whole, " \n");
}

/* Writes words from column `at` on, broken at WIDTH; later lines begin at `indent`. */
static void print_wrapped(FILE *out, const char *text, int at, int indent) {
  int blanks = 0; /* before the next word, if it does not begin a line */
  for (; *text; text++) {
    const size_t n = piece_of(text);
    const int columns = columns_of(text, n);
    if (n && blanks && at + blanks + columns > WIDTH) {
      fprintf(out, "\n%*s", indent, "");
      at = indent;
    } else if (n) {
      fprintf(out, "%*s", blanks, "");
      at += blanks;
    }
    fwrite(text, 1, n, out);
    at += columns;
    text += n;
    if (!*text) break;
    blanks = *text == ' ' ? (n ? 1 : blanks + 1) : 0;
    if (*text == '\n') {
      fprintf(out, "\n%*s", text[1] == '\n' ? 0 : indent, "");
      at = indent;
    }
  }
  fputc('\n', out);
}

static void print_usage(FILE *out, const struct cli_verb *verb) {
  const char *head = "usage:";
  for (const char *form = verb->usage; form; head = "      ") {
    const char *end = strchr(form, '\n');
    int n = end ? (int)(end - form) : (int)strlen(form);
    char line[512];
    snprintf(line, sizeof line, "%s sconce %s %.*s", head, verb->name, n, form);
    print_wrapped(out, line, 0, 7 + 8 + (int)strlen(verb->name));
    form = end ? end + 1 : NULL;
  }
}

static void print_option(FILE *out, const struct cli_option *o) {
  if (!o->names) {
    fprintf(out, "\n%s:\n", o->help);
    return;
  }
  int at = fprintf(out, o->arg ? "  %s %s" : "  %s", o->names, o->arg);
  if (at + 2 > COLUMN) at = fprintf(out, "\n") - 1;
  fprintf(out, "%*s", COLUMN - at, "");
  print_wrapped(out, o->help, COLUMN, COLUMN);
}

static void print_help(FILE *out, const struct cli_verb *verb) {
  print_usage(out, verb);
  fputc('\n', out);
  print_wrapped(out, verb->text, 0, 0);
  const struct cli_option *o = verb->options;
  if (o->names && !*o->names) o++;
  if (o->names) fputs("\noptions:\n", out);
  for (; o->names || o->help; o++)
    if (o->help) print_option(out, o);
  print_option(out, &(struct cli_option){"-h, --help", NULL, "this text"});
}

/* ---- parsing --------------------------------------------------------------------------------- */

int cli_usage(const struct cli_verb *verb, const char *format, ...) {
  va_list args;
  va_start(args, format);
  fputs("sconce: ", stderr);
  vfprintf(stderr, format, args);
  va_end(args);
  fprintf(stderr, "; see `sconce %s --help`\n", verb->name);
  return CLI_USAGE;
}

/* Is `name` (n bytes) one of "-m, --model"? */
static bool has_name(const char *names, const char *name, size_t n) {
  while (*names) {
    const size_t size = strcspn(names, ",");
    if (size == n && !memcmp(names, name, n)) return true;
    names += size;
    names += strspn(names, ", ");
  }
  return n == 0;
}

static const struct cli_option *find(const struct cli_option *o, const char *name, size_t n) {
  for (; o->names || o->help; o++)
    if (o->names && !*o->names == !n && has_name(o->names, name, n)) return o;
  return NULL;
}

/* `room`: of the whole command line, so that a list never grows twice. */
static bool push(struct cli_list *list, const char *word, int room) {
  if (!list->items) list->items = calloc((size_t)room, sizeof *list->items);
  if (!list->items) {
    fputs("sconce: out of memory\n", stderr);
    return false;
  }
  list->items[list->n++] = word;
  return true;
}

static bool store(const struct cli_option *o, const char *word, int room) {
  if (o->list) return push(o->list, word, room);
  *o->value = word;
  return true;
}

/* Is the word one of "md|csv|json"? Anything is where there is no such list. */
static bool is_choice(const char *choices, const char *word) {
  if (!choices || !strchr(choices, '|')) return true;
  if (strchr(word, '|')) return false;
  for (const size_t n = strlen(word); choices; choices = strchr(choices, '|')) {
    choices += *choices == '|';
    if (!strncmp(choices, word, n) && (!choices[n] || choices[n] == '|')) return n > 0;
  }
  return false;
}

/* "md, csv or json" */
static const char *choices_text(const char *choices, char out[128]) {
  size_t n = 0;
  for (; *choices && n < 120; choices++) {
    if (*choices != '|')
      out[n++] = *choices;
    else
      n += (size_t)snprintf(out + n, 128 - n, "%s", strchr(choices + 1, '|') ? ", " : " or ");
  }
  out[n] = 0;
  return out;
}

static int take_plain(const struct cli_verb *verb, const char *word, int room) {
  const struct cli_option *o = find(verb->options, "", 0);
  if (o) return store(o, word, room) ? CLI_DONE : CLI_FAILED;
  const char *hint = find(verb->options, "-m", 2) ? ": the model comes after -m" : "";
  return cli_usage(verb, "unexpected '%s'%s", word, hint);
}

/* The option at argv[*i], and its value wherever it is. */
static int take_option(const struct cli_verb *verb, int argc, char **argv, int *i) {
  const char *word = argv[*i], *value = NULL;
  const bool is_long = word[1] == '-';
  size_t n = is_long ? strcspn(word, "=") : 2;
  if (word[n]) value = word + n + is_long;
  const struct cli_option *o = find(verb->options, word, n);
  if (!o || (o->flag && value && !is_long)) return cli_usage(verb, "unknown option '%s'", word);
  if (o->flag && value) return cli_usage(verb, "'%.*s' takes no value", (int)n, word);
  if (o->flag) {
    *o->flag = true;
    return CLI_DONE;
  }
  if (!value && ++*i >= argc) return cli_usage(verb, "'%.*s' needs a value", (int)n, word);
  if (!value) value = argv[*i];
  char text[128];
  if (!is_choice(o->arg, value))
    return cli_usage(verb, "%.*s is '%s', expected %s", (int)n, word, value,
                     choices_text(o->arg, text));
  return store(o, value, argc) ? CLI_DONE : CLI_FAILED;
}

bool cli_parse(int argc, char **argv, const struct cli_verb *verb, int *result) {
  bool plain_only = false;
  *result = CLI_DONE;
  for (int i = 0; i < argc && *result == CLI_DONE; i++) {
    const char *word = argv[i];
    if (plain_only || *word != '-' || !word[1]) {
      *result = take_plain(verb, word, argc);
    } else if (!strcmp(word, "--")) {
      plain_only = true;
    } else if (!strcmp(word, "--help") || !strcmp(word, "-h")) {
      print_help(stdout, verb);
      return false;
    } else {
      *result = take_option(verb, argc, argv, &i);
    }
  }
  return *result == CLI_DONE;
}
