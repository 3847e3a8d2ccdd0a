/* Errors: see status.h. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *sconce_version(void) { return SCONCE_VERSION; }
uint32_t sconce_version_number(void) {
  return 10000 * SCONCE_VERSION_MAJOR + 100 * SCONCE_VERSION_MINOR + SCONCE_VERSION_PATCH;
}

const char *sconce_status_name(sconce_status status) {
  static const char *const names[] = {
      [SCONCE_OK] = "ok",
      [SCONCE_BAD_ARGUMENT] = "bad argument",
      [SCONCE_BAD_FILE] = "bad file",
      [SCONCE_BAD_GRAPH] = "bad graph",
      [SCONCE_UNSUPPORTED] = "unsupported",
      [SCONCE_NO_MEMORY] = "out of memory",
      [SCONCE_NO_GPU_MEMORY] = "out of GPU memory",
      [SCONCE_NO_DEVICE] = "no device",
      [SCONCE_GPU_ERROR] = "GPU error",
      [SCONCE_DEVICE_LOST] = "device lost",
      [SCONCE_IO_ERROR] = "I/O error",
      [SCONCE_CANCELLED] = "cancelled",
      [SCONCE_WRONG_RESULT] = "wrong result",
  };
  size_t at = (size_t)status;
  return at < sizeof names / sizeof *names ? names[at] : "unknown status";
}

/* Names in an error may come from a hostile file: no escape sequence reaches a terminal. Newlines
 * stay, drivers use them in their messages. */
static void mask_control(char *text) {
  for (; *text; text++)
    if (((unsigned char)*text < 0x20 && *text != '\n' && *text != '\t') || *text == 0x7f)
      *text = '?';
}

sconce_status fail(sconce_error *err, sconce_status status, const char *format, ...) {
  if (!err) return status;
  va_list args;
  va_start(args, format);
  vsnprintf(err->text, sizeof err->text, format, args);
  va_end(args);
  mask_control(err->text);
  err->status = status;
  return status;
}

void error_prefix(sconce_error *err, const char *format, ...) {
  if (!err) return;
  char rest[sizeof err->text];
  memcpy(rest, err->text, sizeof rest);
  va_list args;
  va_start(args, format);
  int n = vsnprintf(err->text, sizeof err->text, format, args);
  va_end(args);
  mask_control(err->text);
  if (n < 0 || (size_t)n >= sizeof err->text - 1) return;
  size_t room = sizeof err->text - (size_t)n - 1, size = strlen(rest);
  if (size > room) size = room;
  memcpy(err->text + n, rest, size);
  err->text[(size_t)n + size] = 0;
}
