/* Options, errors and numbers for the verbs: see cli.h. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

static const struct cli_option *find(const struct cli_option *options, const char *name) {
  for (; options->name; options++)
    if (!strcmp(options->name, name)) return options;
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

/* Takes the option at argv[*i] and what belongs to it. */
static bool take(const struct cli_option *option, int argc, char **argv, int *i) {
  if (option->flag) {
    *option->flag = true;
    return true;
  }
  if (*option->name && ++*i >= argc) {
    fprintf(stderr, "sconce: '%s' needs a value\n", option->name);
    return false;
  }
  if (option->list) return push(option->list, argv[*i], argc);
  *option->value = argv[*i];
  return true;
}

int cli_parse(int argc, char **argv, const struct cli_option *options, const char *usage,
              bool *help) {
  *help = false;
  for (int i = 0; i < argc; i++) {
    if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
      fputs(usage, stdout);
      *help = true;
      return 0;
    }
    bool plain = argv[i][0] != '-' || !argv[i][1];
    const struct cli_option *option = find(options, plain ? "" : argv[i]);
    if (!option && plain) return i;
    if (!option) {
      fprintf(stderr, "sconce: unknown option '%s'\n%s", argv[i], usage);
      return -1;
    }
    if (!take(option, argc, argv, &i)) return -1;
  }
  return argc;
}

int cli_fail(const sconce_error *err) {
  fprintf(stderr, "sconce: %s: %s\n", sconce_status_name(err->status), err->text);
  return CLI_FAILED;
}

long cli_number(const char *option, const char *text, long low, long high) {
  char *end;
  long n = strtol(text, &end, 10);
  if (*text && !*end && n >= low && n <= high) return n;
  fprintf(stderr, "sconce: %s is '%s', expected %ld to %ld\n", option, text, low, high);
  return -1;
}

void cli_json_text(FILE *out, const char *text) {
  fputc('"', out);
  for (; *text; text++) {
    if (*text == '"' || *text == '\\')
      fprintf(out, "\\%c", *text);
    else if ((unsigned char)*text < 0x20)
      fprintf(out, "\\u%04x", (unsigned)*text);
    else
      fputc(*text, out);
  }
  fputc('"', out);
}

const char *cli_bytes(char out[32], uint64_t n) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  int unit = 0;
  double size = (double)n;
  for (; size >= 1024 && unit < 6; unit++) size /= 1024;
  snprintf(out, 32, size == (double)(uint64_t)size ? "%.0f %s" : "%.1f %s", size, units[unit]);
  return out;
}

static void write_log(void *user, sconce_log_level level, const char *text) {
  (void)user, (void)level;
  fprintf(stderr, "%s\n", text);
}

sconce_status cli_open_device(sconce_device **device, bool verbose, sconce_error *err) {
  sconce_device_desc desc = {.log = {.write = write_log}};
  desc.log.level = verbose ? SCONCE_LOG_DEBUG : SCONCE_LOG_WARNING;
  return sconce_device_open(device, &desc, err);
}
