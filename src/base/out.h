/* Text to a caller's function, in pieces of a fixed buffer: nothing grows, nothing is printed. What
 * comes from a file goes through out_text, out_json or out_dot, so that no name can break out of
 * its line, its quotes or the terminal. */
#ifndef BASE_OUT_H
#define BASE_OUT_H

#include "base/span.h"
#include "base/status.h"

struct out {
  void (*write)(void *user, const char *text, size_t size);
  void *user;
  size_t n;
  char buffer[4096];
};

void out_init(struct out *o, void (*write)(void *user, const char *text, size_t size), void *user);
void out_flush(struct out *o);

/* Formats of the house only; a piece is cut at 500 bytes. */
void out_put(struct out *o, const char *format, ...) PRINTF_LIKE(2, 3);
void out_bytes(struct out *o, const char *text, size_t size); /* as they are */

/* Printable UTF-8; control and invalid bytes become \xNN. At most `most` characters, then "…". */
void out_text(struct out *o, struct text text, size_t most);
/* The same, then blanks up to `width` columns. */
void out_cell(struct out *o, struct text text, size_t width);
/* A JSON string, quotes included; invalid bytes become U+FFFD. */
void out_json(struct out *o, struct text text);
/* Part of a quoted Graphviz string: like out_text, with quotes and backslashes escaped. */
void out_dot(struct out *o, struct text text, size_t most);

/* A double that JSON and people can read back; infinities and NaN as words. */
void out_double(struct out *o, double value);
/* 1536 -> "1.5 KiB", with blanks in front up to `width` columns. */
void out_size(struct out *o, uint64_t bytes, int width);

#endif
