/* Wrong kernels, kept from run to run: see kept.h. */
#include "kept.h"

#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_MAX = 600, PATH_SIZE = 1024, FILE_MAX = 1 << 20 };

/* Names come from drivers: no tab and no line end may be among them. */
static void make_key(char out[KEY_MAX], const sconce_device_info *d) {
  snprintf(out, KEY_MAX, "%s; %s; %s; %s %s; sconce %s", d->name, d->driver, d->api, d->library,
           d->library_version, sconce_version());
  for (; *out; out++)
    if ((unsigned char)*out < ' ') *out = ' ';
}

/* The whole file with a NUL behind it; NULL if there is none, or one that is none of ours. */
static char *read_all(const char *path) {
  FILE *file = console_open(path, "r");
  if (!file) return NULL;
  char *text = malloc(FILE_MAX);
  size_t n = text ? fread(text, 1, FILE_MAX - 1, file) : 0;
  const bool whole = text && feof(file) && !memchr(text, 0, n);
  fclose(file);
  if (text) text[n] = 0;
  if (whole) return text;
  free(text);
  return NULL;
}

/* Is this the key's line? Then *labels is where they begin. */
static bool is_line_of(const char *line, const char *key, const char **labels) {
  const size_t n = strlen(key);
  if (strncmp(line, key, n) != 0 || line[n] != '\t') return false;
  *labels = line + n + 1;
  return true;
}

static const char *next_line(const char *line) {
  line += strcspn(line, "\n");
  return *line ? line + 1 : line;
}

char *kept_find(const sconce_device_info *device) {
  char path[PATH_SIZE], key[KEY_MAX];
  char *text = console_state_file("wrong_kernels", path, sizeof path) ? read_all(path) : NULL;
  make_key(key, device);
  const char *labels;
  for (const char *line = text; line && *line; line = next_line(line)) {
    if (!is_line_of(line, key, &labels)) continue;
    const size_t n = strcspn(labels, "\n");
    memmove(text, labels, n);
    text[n] = 0;
    if (n) return text;
  }
  free(text);
  return NULL;
}

static bool write_lines(FILE *out, const char *old, const char *key, const char *labels) {
  const char *ignored;
  for (const char *line = old; line && *line; line = next_line(line))
    if (!is_line_of(line, key, &ignored)) fprintf(out, "%.*s\n", (int)strcspn(line, "\n"), line);
  if (*labels) fprintf(out, "%s\t%s\n", key, labels);
  return fflush(out) == 0 && !ferror(out);
}

bool kept_write(const sconce_device_info *device, const char *labels) {
  char path[PATH_SIZE], beside[PATH_SIZE + 8], key[KEY_MAX];
  if (!console_state_file("wrong_kernels", path, sizeof path)) {
    if (*labels) fputs("sconce: there is no folder to keep wrong kernels in\n", stderr);
    return !*labels;
  }
  make_key(key, device);
  char *old = read_all(path);
  if (!old && !*labels) return true;
  snprintf(beside, sizeof beside, "%s.new", path);
  FILE *out = console_open(beside, "w");
  bool good = out && write_lines(out, old, key, labels);
  if (out && fclose(out) != 0) good = false;
  if (good) good = console_replace(beside, path);
  if (!good) fprintf(stderr, "sconce: cannot write %s: %s\n", path, strerror(errno));
  free(old);
  return good;
}
