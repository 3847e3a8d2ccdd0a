/* UTF-8, one character at a time. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum utf8_state {
  UTF8_OK,
  UTF8_BAD, /* no character starts like this: size bytes are one invalid sequence */
  UTF8_CUT, /* the text ends inside a character; more bytes may complete it */
};

struct utf8_char {
  uint32_t code; /* U+FFFD unless UTF8_OK */
  uint32_t size; /* bytes, at least 1 */
  enum utf8_state state;
};

/* The character at p < end. An invalid sequence is the longest prefix of some valid one, or one
 * byte: the rule by which Python and the web replace errors. */
struct utf8_char utf8_decode(const char *p, const char *end);
size_t utf8_encode(uint32_t code, char out[4]);

/* Leaves a terminal's cursor, and the characters beside it, where they are. */
bool utf8_is_plain(uint32_t code);

#endif
