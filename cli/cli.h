/* The command's own small helpers. A verb is `int verb(int argc, char **argv)` that gets what
 * follows its name and returns 0 (done), 1 (the job failed) or 2 (wrong usage). */
#ifndef CLI_H
#define CLI_H

#include "console.h"
#include "sconce.h"

enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_INTERRUPTED = 130 };

int cli_devices(int argc, char **argv);
int cli_bench(int argc, char **argv);
int cli_generate(int argc, char **argv);
int cli_chat(int argc, char **argv);
int cli_check(int argc, char **argv);
int cli_run(int argc, char **argv);
int cli_tokenize(int argc, char **argv);
int cli_inspect(int argc, char **argv);

/* Words in the order of the command line; zero-initialise, and free(items) at the end. */
struct cli_list {
  const char **items;
  int n;
};

/* A verb's options are one table: the parser, --help, and through it the manual pages and the
 * shells' completions come from it. A row has one of the three targets; a row with a help text
 * alone is a heading. */
struct cli_option {
  const char *names;     /* "-m, --model", "--json"; "" takes the words that are no options */
  const char *arg;       /* what --help calls its value, or all that it can be: "md|csv|json"; NULL:
                            it is a flag */
  const char *help;      /* one paragraph */
  const char **value;    /* takes a value; the last one counts */
  bool *flag;            /* is set */
  struct cli_list *list; /* collects a value, each time the option is given */
};
struct cli_verb {
  const char *name;
  const char *usage; /* one line for each form: what follows "sconce NAME" */
  const char *text;  /* paragraphs */
  const struct cli_option *options;
};

/* Parses argv: "-n 2", "-n2", "--temp 0", "--temp=0"; what follows "--" are plain words. Returns
 * true if there is a job to do, else *result is the verb's result: --help was printed, or
 * something was wrong and has been named. */
bool cli_parse(int argc, char **argv, const struct cli_verb *verb, int *result);

/* A page of docs/, for a message. */
#define CLI_PAGE(name) "docs/" name " (installed in share/doc/sconce)"

/* "sconce: …" on stderr, with where to read more; returns CLI_USAGE. */
#ifdef __GNUC__
__attribute__((format(printf, 2, 3)))
#endif
int cli_usage(const struct cli_verb *verb, const char *format, ...);

/* "sconce: …" on stderr, with the status's name; returns CLI_FAILED. */
int cli_fail(const sconce_error *err);

/* A number of an option, or -1 with a complaint. */
long cli_number(const char *option, const char *text, long low, long high);
#define CLI_MAX_STEPS_HELP                                                                         \
  "how many nodes a call may go through, in loops again and again (default: 10,000,000)"
enum { CLI_MAX_STEPS = 2000000000 };

/* A whole file, or standard input for "-", with a NUL behind it; the caller frees. NULL after a
 * complaint that has the system's reason, or says that there are more than `most` bytes: a pipe or
 * a device may never end. */
enum { CLI_TEXT_MAX = 64 << 20, CLI_PICTURE_MAX = 256 << 20 };
char *cli_read_file(const char *path, size_t most, size_t *size);

/* A string as JSON, quotes included. */
void cli_json_text(FILE *out, const char *text);

/* 1536 -> "1.5 KiB"; returns out. */
const char *cli_bytes(char out[32], uint64_t n);
/* "1 token", "2 tokens": the ending. */
#define CLI_S(n) ((n) == 1 ? "" : "s")

/* A line on the terminal that says how far something is, cut to its width; the next one takes its
 * place, and "" takes it away. */
void cli_status(const char *text);

const char *cli_precision(const sconce_device_info *device); /* "fast" or "exact" */

/* Which device a verb opens. */
struct cli_device {
  const char *name, *precision;
  bool verbose;
  bool every_kernel; /* also those that are kept as wrong on it: see kept.h */
};
#define CLI_DEVICE_OPTIONS(d)                                                                      \
  {"--device", "NAME", "part of an adapter's name, or its index in `sconce devices`",              \
   .value = &(d).name},                                                                            \
      {"--precision", "exact|fast",                                                                \
       "exact: f32 throughout; fast: f16 products, f32 sums, where rows are many, as in prompts; " \
       "by default fast where there are matrix units",                                             \
       .value = &(d).precision},                                                                   \
  {                                                                                                \
    "-v, --verbose", NULL, "more about the device and the model", .flag = &(d).verbose             \
  }
/* Opens the device that is named here or in the environment; its log goes to stderr with -v. */
sconce_status cli_open_device(sconce_device **device, const struct cli_device *which,
                              sconce_error *err);

#endif
