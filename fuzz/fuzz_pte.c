/* Programs, their delegates included. */
#include "format/schema.h"
#include "mutate.h"
#include "walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sconce_error err;
  struct pte pte;
  if (pte_open(&pte, (struct span){data, size}, &err) == SCONCE_OK) (void)walk_pte(&pte);
  return 0;
}

/* A delegate's graph inside the program, found by its magic, is as good a place as the program. */
static bool mutate_blob(uint8_t *data, size_t size, unsigned seed) {
  for (size_t at = 16; at + 64 < size; at += 4) {
    if (memcmp(data + at + 4, "VH00", 4) != 0) continue;
    uint64_t start = at + load_u32(data + at + 10), end = start + load_u32(data + at + 14);
    if (start > end || end > size) continue;
    mutate_flatbuffer(data, (size_t)start, (size_t)end, "VK00", &schema_vkgraph, seed / 16);
    return true;
  }
  return false;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  if (size < 64 || mutate_plainly(seed)) return LLVMFuzzerMutate(data, size, max_size);
  if (seed % 8 == 1 && mutate_blob(data, size, seed)) return size;
  uint64_t end = memcmp(data + 8, "eh00", 4) == 0 ? load_u64(data + 16) : size;
  if (seed % 8 == 2) /* the header's numbers, one bit or byte at a time */
    LLVMFuzzerMutate(data + 12 + seed / 8 % 6 * 4, 4, 4);
  else
    mutate_flatbuffer(data, 0, (size_t)(end < size ? end : size), "ET12", &schema_program,
                      seed / 16);
  return size;
}
