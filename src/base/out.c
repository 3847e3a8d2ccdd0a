/* Text out: see out.h. */
#include "base/out.h"

#include "base/utf8.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void out_init(struct out *o, void (*write)(void *user, const char *text, size_t size), void *user) {
  o->write = write;
  o->user = user;
  o->n = 0;
}

void out_flush(struct out *o) {
  if (o->n) o->write(o->user, o->buffer, o->n);
  o->n = 0;
}

void out_bytes(struct out *o, const char *text, size_t size) {
  while (size) {
    if (o->n == sizeof o->buffer) out_flush(o);
    size_t part = sizeof o->buffer - o->n < size ? sizeof o->buffer - o->n : size;
    memcpy(o->buffer + o->n, text, part);
    o->n += part;
    text += part;
    size -= part;
  }
}

void out_put(struct out *o, const char *format, ...) {
  char piece[501];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(piece, sizeof piece, format, args);
  va_end(args);
  if (n < 0) return;
  out_bytes(o, piece, (size_t)n < sizeof piece ? (size_t)n : sizeof piece - 1);
}

/* Returns how many columns it takes, as far as a column is a character. */
static size_t put_char(struct out *o, const char *p, struct utf8_char c, bool dot) {
  if (dot && (*p == '"' || *p == '\\')) {
    out_put(o, "\\%c", *p);
    return 1;
  }
  if (c.state == UTF8_OK && utf8_is_plain(c.code)) {
    out_bytes(o, p, c.size);
    return 1;
  }
  for (uint32_t i = 0; i < c.size; i++)
    out_put(o, dot ? "\\\\x%02x" : "\\x%02x", (unsigned)(uint8_t)p[i]);
  return 4 * (size_t)c.size;
}

static size_t put_text(struct out *o, struct text text, size_t most, bool dot) {
  size_t columns = 0;
  for (size_t i = 0; i < text.size;) {
    if (most-- == 0) {
      out_put(o, "…");
      return columns + 1;
    }
    struct utf8_char c = utf8_decode(text.data + i, text.data + text.size);
    columns += put_char(o, text.data + i, c, dot);
    i += c.size;
  }
  return columns;
}

void out_text(struct out *o, struct text text, size_t most) { put_text(o, text, most, false); }

void out_dot(struct out *o, struct text text, size_t most) { put_text(o, text, most, true); }

void out_cell(struct out *o, struct text text, size_t width) {
  size_t columns = put_text(o, text, SIZE_MAX, false);
  for (; columns < width; columns++) out_bytes(o, " ", 1);
}

void out_json(struct out *o, struct text text) {
  out_bytes(o, "\"", 1);
  for (size_t i = 0; i < text.size;) {
    const char *p = text.data + i;
    struct utf8_char c = utf8_decode(p, text.data + text.size);
    if (*p == '"' || *p == '\\')
      out_put(o, "\\%c", *p);
    else if (c.state != UTF8_OK)
      out_put(o, "\\ufffd");
    else if (!utf8_is_plain(c.code))
      out_put(o, "\\u%04x", (unsigned)c.code); /* all below U+10000 */
    else
      out_bytes(o, p, c.size);
    i += c.size;
  }
  out_bytes(o, "\"", 1);
}

/* As few digits as give the same number again. */
void out_double(struct out *o, double value) {
  if (isnan(value) || isinf(value)) {
    out_put(o, isnan(value) ? "\"nan\"" : value > 0 ? "\"inf\"" : "\"-inf\"");
    return;
  }
  char text[40];
  for (int digits = 6; digits <= 17; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, value);
    if (strtod(text, NULL) == value) break;
  }
  for (char *p = text; *p; p++)
    if (*p == ',') *p = '.'; /* of the caller's locale */
  out_put(o, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
}

void out_size(struct out *o, uint64_t bytes, int width) {
  static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  int unit = 0;
  double size = (double)bytes;
  for (; size >= 1024; unit++) size /= 1024;
  char text[40];
  snprintf(text, sizeof text, unit ? "%.1f %s" : "%.0f %s", size, units[unit]);
  out_put(o, "%*s", width, text);
}
