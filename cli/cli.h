/* The command's own small helpers. A verb is `int verb(int argc, char **argv)` that gets what
 * follows its name and returns 0 (done), 1 (the job failed) or 2 (wrong usage). */
#ifndef CLI_H
#define CLI_H

#include "sconce.h"

#include <stdio.h>

enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

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

/* Options: a table, one row each, with one of the three targets. */
struct cli_option {
  const char *name;      /* "--json", "-m"; "" takes the words that are no options */
  const char **value;    /* takes the next word; the last one counts */
  bool *flag;            /* is set */
  struct cli_list *list; /* collects the next word, each time the option is given */
};
/* Parses argv. Plain words go to the row "", wherever they stand; without that row parsing stops at
 * the first one. Prints help for --help (then *help is set) and complains on stderr. Returns the
 * index of the first word that is left (argc: none), or -1. */
int cli_parse(int argc, char **argv, const struct cli_option *options, const char *usage,
              bool *help);

/* "sconce: …" on stderr, with the status's name; returns CLI_FAILED. */
int cli_fail(const sconce_error *err);

/* A number of an option, or -1 with a complaint. */
long cli_number(const char *option, const char *text, long low, long high);

/* A string as JSON, quotes included. */
void cli_json_text(FILE *out, const char *text);

/* 1536 -> "1.5 KiB"; returns out. */
const char *cli_bytes(char out[32], uint64_t n);

/* Opens the device that the environment asks for; its log goes to stderr with -v. */
sconce_status cli_open_device(sconce_device **device, bool verbose, sconce_error *err);

#endif
