/* Errors: see status.h. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
