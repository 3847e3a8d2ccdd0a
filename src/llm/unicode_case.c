/* Upper and lower case, and what is printable, as Python has them: see unicode.h. */
#include "llm/unicode.h"

/* Runs may lie inside each other (every second code), so the one that fits is looked for behind the
 * first that starts too late. */
static uint32_t map_by_runs(const int32_t *runs, uint32_t n, uint32_t code) {
  uint32_t low = 0, high = n;
  while (low < high) {
    uint32_t mid = low + (high - low) / 2;
    if ((int32_t)code < runs[4 * mid])
      high = mid;
    else
      low = mid + 1;
  }
  for (uint32_t back = 0; back < 3 && back < low; back++) {
    const int32_t *run = &runs[4 * (low - 1 - back)];
    int32_t in = (int32_t)code - run[0];
    if ((int32_t)code <= run[1] && in % run[2] == 0) return (uint32_t)((int32_t)code + run[3]);
  }
  return code;
}

uint32_t unicode_upper(uint32_t code, uint32_t out[3]) {
  out[0] = code;
  if (code < 0x80) {
    if (code - 'a' < 26) out[0] = code - 32;
    return 1;
  }
  for (uint32_t i = 0; i < unicode_n_longer; i++) {
    const uint32_t *row = &unicode_longer[4 * i];
    if (row[0] != code) continue;
    for (uint32_t k = 0; k < 3; k++) out[k] = row[1 + k];
    return row[3] ? 3 : 2;
  }
  out[0] = map_by_runs(unicode_upper_runs, unicode_n_upper, code);
  return 1;
}

uint32_t unicode_lower(uint32_t code, uint32_t out[3]) {
  out[0] = code;
  if (code < 0x80) {
    if (code - 'A' < 26) out[0] = code + 32;
    return 1;
  }
  if (code == 0x130) { /* the only one that grows: i and a dot above */
    out[0] = 'i', out[1] = 0x307;
    return 2;
  }
  out[0] = map_by_runs(unicode_lower_runs, unicode_n_lower, code);
  return 1;
}

bool unicode_is_printable(uint32_t code) {
  if (code < 0x7f) return code >= 0x20;
  return !unicode_in_ranges(unicode_hidden, unicode_n_hidden, code);
}
