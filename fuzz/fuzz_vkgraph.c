/* Delegate blobs. Named data exists for keys that start with a hex digit below 'f'; a blob with
 * an odd header size is opened without anybody to ask. */
#include "format/schema.h"
#include "mutate.h"
#include "walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

static bool find(void *user, struct text key, struct extent *out) {
  static const uint8_t zeros[512];
  (void)user;
  if (key.size == 0 || key.data[0] >= 'f') return false;
  *out = extent_of((struct span){zeros, sizeof zeros});
  return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  sconce_error err;
  bool asks = size < 9 || data[8] % 2 == 0; /* the header's size, which may be any from 30 */
  (void)!walk_blob((struct span){data, size}, (struct data_lookup){asks ? find : NULL, NULL}, &err);
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  if (size < 64 || mutate_plainly(seed)) return LLVMFuzzerMutate(data, size, max_size);
  uint64_t start = load_u32(data + 10), end = start + load_u32(data + 14);
  if (seed % 8 == 1 || start > size || end > size)
    LLVMFuzzerMutate(data + 8 + seed / 8 % 11 * 2, 2, 2);
  else
    mutate_flatbuffer(data, (size_t)start, (size_t)end, "VK00", &schema_vkgraph, seed / 16);
  return size;
}
