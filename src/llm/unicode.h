/* Valid UTF-8, the character classes that splitters speak of, and NFC. Everything past utf8_clean
 * works on valid UTF-8 and may rely on it. */
#ifndef LLM_UNICODE_H
#define LLM_UNICODE_H

#include "base/span.h"
#include "base/utf8.h"
#include "llm/list.h"

/* Makes `text` valid: unchanged if it is, else a copy in `scratch` (a list of char) in which each
 * invalid sequence is U+FFFD. False when out of memory. */
bool utf8_clean(struct text *text, struct list *scratch);

bool unicode_is_letter(uint32_t code); /* category L */
bool unicode_is_number(uint32_t code); /* category N */
bool unicode_is_space(uint32_t code);  /* property White_Space */

/* One of n pairs (first, last), ascending? */
bool unicode_in_ranges(const uint32_t *ranges, uint32_t n, uint32_t code);

/* unicode_case.c, as Python's: the characters that a character becomes, at most three. */
uint32_t unicode_upper(uint32_t code, uint32_t out[3]);
uint32_t unicode_lower(uint32_t code, uint32_t out[3]);
bool unicode_is_printable(uint32_t code);

/* Without the white space at one end. */
struct text unicode_trim_start(struct text text);
struct text unicode_trim_end(struct text text);

/* Normalization form C of valid UTF-8: unchanged if every character is below U+0300, else in
 * `out` (char) by way of `codes` (uint32_t). False when out of memory. Linear in the text. */
bool unicode_nfc(struct text *text, struct list *codes, struct list *out);

/* unicode_tables.c */
extern const uint32_t unicode_n_letters, unicode_n_numbers, unicode_n_classes;
extern const uint32_t unicode_n_pairs, unicode_n_composed;
extern const uint32_t unicode_letters[], unicode_numbers[], unicode_classes[], unicode_pairs[];
extern const uint16_t unicode_composed[];

/* unicode_case_tables.c */
extern const uint32_t unicode_n_upper, unicode_n_lower, unicode_n_longer, unicode_n_hidden;
extern const int32_t unicode_upper_runs[], unicode_lower_runs[];
extern const uint32_t unicode_longer[], unicode_hidden[];

#endif
