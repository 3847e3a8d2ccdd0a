/* Errors, numbers, files and the device for the verbs: see cli.h. */
#include "cli.h"

#include "kept.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* At most `most` bytes and one more, which tells that there are too many. */
static char *read_stream(FILE *file, size_t most, size_t *size) {
  size_t cap = 1 << 16, n = 0;
  char *data = malloc(cap);
  while (data) {
    const size_t room = cap - 1 <= most ? cap - 1 : most + 1;
    n += fread(data + n, 1, room - n, file);
    if (n < room || n > most) break;
    char *grown = realloc(data, cap *= 2);
    if (!grown) free(data);
    data = grown;
  }
  *size = n;
  return data;
}

char *cli_read_file(const char *path, size_t most, size_t *size) {
  const bool input = !strcmp(path, "-");
  const char *name = input ? "standard input" : path;
  FILE *file = input ? stdin : console_open(path, "rb");
  char *data = file ? read_stream(file, most, size) : NULL;
  bool good = data && !ferror(file);
  if (!good) {
    fprintf(stderr, "sconce: cannot read %s: %s\n", name, strerror(errno));
  } else if (*size > most) {
    fprintf(stderr, "sconce: %s: more than %zu bytes\n", name, most);
    good = false;
  }
  if (file && !input) fclose(file);
  if (good) {
    data[*size] = 0;
    return data;
  }
  free(data);
  return NULL;
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

void cli_status(const char *text) {
  fprintf(stderr, "\r%.*s\033[K", console_width() - 1, text);
  fflush(stderr);
}

static void write_log(void *user, sconce_log_level level, const char *text) {
  (void)user, (void)level;
  fprintf(stderr, "%s\n", text);
}

const char *cli_precision(const sconce_device_info *device) {
  return device->fast ? "fast" : "exact";
}

sconce_status cli_open_device(sconce_device **device, const struct cli_device *which,
                              sconce_error *err) {
  sconce_device_desc desc = {
      .adapter = which->name, .precision = which->precision, .log = {.write = write_log}};
  desc.log.level = which->verbose ? SCONCE_LOG_DEBUG : SCONCE_LOG_WARNING;
  sconce_status status = sconce_device_open(device, &desc, err);
  if (status != SCONCE_OK || which->every_kernel) return status;
  char *wrong = kept_find(sconce_device_describe(*device));
  if (!wrong) return status;
  desc.avoid = wrong;
  sconce_device *careful;
  sconce_error why;
  if (sconce_device_open(&careful, &desc, &why) == SCONCE_OK) {
    sconce_device_close(*device);
    *device = careful;
  } else {
    fprintf(stderr, "sconce: the kernels kept as wrong are not avoided: %s\n", why.text);
  }
  free(wrong);
  return status;
}
