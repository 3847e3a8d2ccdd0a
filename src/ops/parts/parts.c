/* Long lines in parts: see parts.h. */
#include "ops/parts/parts.h"

/* So many lines keep a large device busy without parts, if none takes too long. */
enum { LINES_ENOUGH = 512, PARTS_SPARED = 4 };

uint32_t parts_of(uint64_t lines, uint64_t size, uint32_t each) {
  if (size <= each || (lines >= LINES_ENOUGH && size <= (uint64_t)each * PARTS_SPARED)) return 1;
  return (uint32_t)((size + each - 1) / each);
}

uint64_t parts_most(uint64_t lines, uint64_t size, uint32_t each) {
  return lines * ((size + each - 1) / each);
}
