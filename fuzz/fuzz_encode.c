/* Any text through a small byte-level vocabulary: what decoding gives back is the text with invalid
 * sequences replaced, and encoding that again gives the same ids. */
#include "sconce_llm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* tiktoken lines: the 256 bytes, then pieces of two bytes ("aa", "  ", …) and of four. */
static sconce_tokenizer *open_small(void) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  static const char seeds[] = "a e\n1th.\xc3\xe2\xf0";
  static char file[8000];
  size_t at = 0, rank = 0;
  for (unsigned b = 0; b < 256; b++)
    at += (size_t)snprintf(file + at, 16, "%c%c== %zu\n", digits[b >> 2], digits[(b & 3) << 4],
                           rank++);
  for (size_t i = 0; i < sizeof seeds - 1; i++) {
    unsigned b = (unsigned char)seeds[i], bits = b << 10 | b << 2;
    at += (size_t)snprintf(file + at, 16, "%c%c%c= %zu\n", digits[bits >> 12],
                           digits[bits >> 6 & 63], digits[bits & 63], rank++);
  }
  sconce_tokenizer *t;
  if (sconce_tokenizer_open(&t, &(sconce_tokenizer_desc){.data = file, .size = at}, NULL)) abort();
  return t;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static sconce_tokenizer *t;
  if (!t) t = open_small();
  const int32_t *ids;
  const char *text;
  size_t n, text_size;
  if (sconce_tokenizer_encode(t, (const char *)data, size, 0, &ids, &n, NULL)) abort();
  int32_t *first = malloc(n * sizeof *ids + 1);
  if (n) memcpy(first, ids, n * sizeof *ids);
  if (sconce_tokenizer_decode(t, first, n, 0, &text, &text_size, NULL)) abort();
  if (text_size < size && text_size * 3 < size) abort(); /* three bytes at most become one U+FFFD */
  size_t n_first = n;
  if (sconce_tokenizer_encode(t, text, text_size, 0, &ids, &n, NULL)) abort();
  if (n != n_first || (n && memcmp(ids, first, n * sizeof *ids) != 0)) abort();
  free(first);
  return 0;
}
