/* A program together with a data file: u32 bytes of the program, the program, the .ptd. */
#include "format/schema.h"
#include "mutate.h"
#include "try_plan.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 4) return 0;
  const uint32_t n = load_u32(data);
  if (n > size - 4) return 0;
  try_plan_with(data + 4, n, data + 4 + n, size - 4 - n);
  return 0;
}

/* One of the two; only the last may change its size. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  const uint32_t n = size < 4 ? 0 : load_u32(data);
  if (size < 4 + 64 || n > size - 4 - 64 || n < 64) return LLVMFuzzerMutate(data, size, max_size);
  uint8_t *ptd = data + 4 + n;
  const size_t left = size - 4 - n;
  if (seed % 2 == 0) {
    (void)mutate_program(data + 4, n, n, seed / 2);
    return size;
  }
  if (mutate_plainly(seed / 2)) return 4 + n + LLVMFuzzerMutate(ptd, left, max_size - 4 - n);
  const uint64_t end = load_u64(ptd + 16) + load_u64(ptd + 24);
  mutate_flatbuffer(ptd, 0, (size_t)(end < left ? end : left), "FT01", &schema_flat_tensor,
                    seed / 16);
  return size;
}
