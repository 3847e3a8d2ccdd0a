/* Data files, alone and as a set with themselves. */
#include "format/schema.h"
#include "mutate.h"
#include "walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sconce_error err;
  struct ptd files[2];
  if (ptd_open(&files[0], extent_of((struct span){data, size}), &err) != SCONCE_OK) return 0;
  (void)walk_ptd(&files[0]);
  files[1] = files[0];
  bool has_keys = files[0].data.named.n > 0;
  bool refused = ptd_set_verify(&(struct ptd_set){files, 2}, &err) != SCONCE_OK;
  if (refused != has_keys) __builtin_trap(); /* every key is in both files */
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  if (size < 64 || mutate_plainly(seed)) return LLVMFuzzerMutate(data, size, max_size);
  uint64_t end = load_u64(data + 16) + load_u64(data + 24);
  if (seed % 8 == 1)
    LLVMFuzzerMutate(data + 12 + seed / 8 % 9 * 4, 4, 4);
  else
    mutate_flatbuffer(data, 0, (size_t)(end < size ? end : size), "FT01", &schema_flat_tensor,
                      seed / 16);
  return size;
}
