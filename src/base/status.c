/* Errors: see status.h. */
#include "base/status.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What a driver or a compiler says has lines. */
static bool has_lines(sconce_status status) {
  return status == SCONCE_GPU_ERROR || status == SCONCE_NO_GPU_MEMORY ||
         status == SCONCE_DEVICE_LOST || status == SCONCE_NO_DEVICE;
}

/* Names in an error may come from a hostile file: none adds a line, hides a part or reaches a
 * terminal as an escape sequence. Byte for byte, so that nothing grows. */
static void mask(char *text, bool lines) {
  const char *end = text + strlen(text);
  while (text < end) {
    const struct utf8_char c = utf8_decode(text, end);
    const bool blank = *text == '\n' || *text == '\t';
    if (blank && !lines)
      *text = ' ';
    else if (!blank && (c.state != UTF8_OK || !utf8_is_plain(c.code)))
      memset(text, '?', c.size);
    text += c.size;
  }
}

sconce_status fail(sconce_error *err, sconce_status status, const char *format, ...) {
  if (!err) return status;
  va_list args;
  va_start(args, format);
  vsnprintf(err->text, sizeof err->text, format, args);
  va_end(args);
  mask(err->text, has_lines(status));
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
  mask(err->text, false);
  if (n < 0 || (size_t)n >= sizeof err->text - 1) return;
  size_t room = sizeof err->text - (size_t)n - 1, size = strlen(rest);
  if (size > room) size = room;
  memcpy(err->text + n, rest, size);
  err->text[(size_t)n + size] = 0;
  mask(err->text, true); /* the end may be cut inside a character */
}
