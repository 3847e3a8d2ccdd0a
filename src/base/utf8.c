/* UTF-8: see utf8.h. */
#include "base/utf8.h"

enum { REPLACEMENT = 0xfffd };

/* What the second byte may be is the only irregular part of UTF-8: it excludes overlong forms,
 * surrogates and codes past U+10FFFF. Size 0: no character starts with this byte. */
struct lead {
  uint32_t size;
  uint8_t low, high; /* of the second byte */
};

static struct lead lead_of(uint8_t byte) {
  if (byte < 0x80) return (struct lead){1, 0, 0};
  if (byte < 0xc2) return (struct lead){0, 0, 0};
  if (byte < 0xe0) return (struct lead){2, 0x80, 0xbf};
  if (byte == 0xe0) return (struct lead){3, 0xa0, 0xbf};
  if (byte == 0xed) return (struct lead){3, 0x80, 0x9f};
  if (byte < 0xf0) return (struct lead){3, 0x80, 0xbf};
  if (byte == 0xf0) return (struct lead){4, 0x90, 0xbf};
  if (byte < 0xf4) return (struct lead){4, 0x80, 0xbf};
  if (byte == 0xf4) return (struct lead){4, 0x80, 0x8f};
  return (struct lead){0, 0, 0};
}

struct utf8_char utf8_decode(const char *p, const char *end) {
  const uint8_t *u = (const uint8_t *)p;
  size_t room = (size_t)(end - p);
  struct lead lead = lead_of(u[0]);
  if (lead.size == 1) return (struct utf8_char){u[0], 1, UTF8_OK};
  if (lead.size == 0) return (struct utf8_char){REPLACEMENT, 1, UTF8_BAD};
  uint32_t code = u[0] & (0x7fu >> lead.size);
  for (uint32_t i = 1; i < lead.size; i++) {
    if (i == room) return (struct utf8_char){REPLACEMENT, i, UTF8_CUT};
    uint8_t low = i == 1 ? lead.low : 0x80, high = i == 1 ? lead.high : 0xbf;
    if (u[i] < low || u[i] > high) return (struct utf8_char){REPLACEMENT, i, UTF8_BAD};
    code = code << 6 | (u[i] & 0x3fu);
  }
  return (struct utf8_char){code, lead.size, UTF8_OK};
}

size_t utf8_encode(uint32_t code, char out[4]) {
  if (code < 0x80) {
    out[0] = (char)code;
    return 1;
  }
  size_t size = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (size_t i = size - 1; i > 0; i--, code >>= 6) out[i] = (char)(0x80 | (code & 0x3f));
  out[0] = (char)(0xf00 >> size | code);
  return size;
}

/* C0, DEL and C1 move a cursor; the others reorder or hide what stands beside them. */
bool utf8_is_plain(uint32_t code) {
  return code >= 0x20 && !(code >= 0x7f && code < 0xa0) && !(code >= 0x200b && code <= 0x200f) &&
         !(code >= 0x2028 && code <= 0x202e) && !(code >= 0x2060 && code <= 0x206f) &&
         code != 0xfeff;
}
