/* Saved sessions: any bytes as a file of a model with eight ids and eight positions. The sums are
 * made right in half of the inputs, so that what lies behind them is reached. */
#include "base/hash.h"
#include "llm/session.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 56, N_IDS_AT = 20, STATE_AT = 24, BODY_SUM_AT = 40, HEAD_SUM_AT = 48 };

static void mend(uint8_t *file, size_t size, uint64_t state_size) {
  if (size < HEAD) return;
  const size_t ids = 4 * (size_t)load_u32(file + N_IDS_AT);
  if (ids <= size - HEAD && state_size == size - HEAD - ids) {
    uint64_t sum = hash_bytes(0, file + HEAD, ids);
    sum = hash_bytes(sum, file + HEAD + ids, (size_t)state_size);
    memcpy(file + BODY_SUM_AT, &sum, sizeof sum);
  }
  const uint64_t sum = hash_bytes(0, file, HEAD_SUM_AT);
  memcpy(file + HEAD_SUM_AT, &sum, sizeof sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 1) return 0;
  const struct session_kind kind = {8, 8, data[0] & 0x1e, 1};
  const bool whole = data[0] & 1;
  uint8_t *file = malloc(size); /* of exactly its size, so that the sanitizer sees its end */
  if (!file) return 0;
  memcpy(file, data + 1, size - 1);
  if (whole) mend(file, size - 1, kind.state_size);
  struct session_saved saved = {0};
  sconce_error err;
  if (session_parse(&kind, (struct span){file, size - 1}, &saved, &err) == SCONCE_OK) {
    if (saved.n_ids > kind.context) abort();
    for (uint32_t i = 0; i < saved.n_ids; i++)
      if (load_u32(saved.ids + 4 * (size_t)i) >= kind.n_vocab) abort();
    if (saved.state + kind.state_size != file + size - 1) abort();
  }
  free(file);
  return 0;
}
