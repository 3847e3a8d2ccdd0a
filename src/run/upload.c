/* Constants go from the mapped file to the device in chunks, laid out as their kernels want. */
#include "run/upload.h"

#include "base/checked.h"

#include <string.h>

/* STEP: bytes between two submits. A file of 500 MiB took 20 MiB of staging at its peak, with
 * 16 MiB a step it was 79. */
enum { STEP = 4 << 20, CHUNK = 16 << 20, TILE = 32 };

static bool all_zero(struct span bytes) {
  size_t words = bytes.size / 8;
  for (size_t i = 0; i < words; i++)
    if (load_u64(bytes.data + 8 * i)) return false;
  for (size_t i = 8 * words; i < bytes.size; i++)
    if (bytes.data[i]) return false;
  return true;
}

/* All KV caches of a model are one stretch of zeros in its file: 512 MiB to look through, or 16. */
static bool is_zero(struct upload *u, struct span bytes) {
  if (u->zeros.data == bytes.data && u->zeros.size == bytes.size) return true;
  if (!all_zero(bytes)) return false;
  u->zeros = bytes;
  return true;
}

/* Drivers keep what is written until a submit has copied it: without one now and then a file would
 * be in memory twice. */
static sconce_status flush(struct upload *u, sconce_error *err) {
  u->waiting = 0;
  TRY(gpu_submit(u->gpu, &(struct gpu_batch){0}, err));
  return gpu_finish(u->gpu, err);
}

static sconce_status put(struct upload *u, struct gpu_buffer *to, uint64_t offset,
                         struct span bytes, sconce_error *err) {
  for (size_t at = 0; at < bytes.size; at += STEP) {
    size_t n = bytes.size - at < STEP ? bytes.size - at : STEP;
    TRY(gpu_write(to, offset + at, bytes.data + at, n, err));
    u->waiting += n;
    u->bytes += n;
    if (u->waiting >= STEP) TRY(flush(u, err));
  }
  return SCONCE_OK;
}

/* Writes columns [from, to) of a (rows, cols) matrix as rows; in tiles, or each element would touch
 * a cache line of its own. */
static void transpose(const uint8_t *in, uint64_t rows, uint64_t cols, uint64_t from, uint64_t to,
                      uint32_t size, uint8_t *out) {
  for (uint64_t r0 = 0; r0 < rows; r0 += TILE)
    for (uint64_t c0 = from; c0 < to; c0 += TILE)
      for (uint64_t c = c0; c < c0 + TILE && c < to; c++)
        for (uint64_t r = r0; r < r0 + TILE && r < rows; r++)
          memcpy(out + ((c - from) * rows + r) * size, in + (r * cols + c) * size, size);
}

static sconce_status upload_transposed(struct upload *u, struct gpu_buffer *to,
                                       const struct tensor *t, sconce_error *err) {
  uint64_t rows = t->dim_max[0], cols = rows ? tensor_numel_max(t) / rows : 0;
  uint32_t size = vk_dtype_size(t->dtype);
  uint64_t line = rows * size; /* of the result */
  if (cols == 0) return SCONCE_OK;
  if (line > CHUNK) return fail(err, SCONCE_UNSUPPORTED, "a transposed row of more than 16 MiB");
  uint64_t step = CHUNK / line;
  while (step > 1 && step * line % 4) step--; /* writes start on words */
  uint8_t *chunk = block_resize(u->allocator, NULL, 0, CHUNK);
  if (!chunk) return fail(err, SCONCE_NO_MEMORY, "no memory for %d bytes", CHUNK);
  sconce_status status = SCONCE_OK;
  for (uint64_t c = 0; c < cols && status == SCONCE_OK; c += step) {
    uint64_t end = c + step < cols ? c + step : cols;
    transpose(t->bytes.data, rows, cols, c, end, size, chunk);
    status = put(u, to, t->base + c * line, (struct span){chunk, (size_t)((end - c) * line)}, err);
  }
  block_resize(u->allocator, chunk, CHUNK, 0);
  return status;
}

sconce_status upload_constant(struct upload *u, struct gpu_buffer *to, const struct tensor *t,
                              sconce_error *err) {
  if (u->fresh && is_zero(u, t->bytes)) return SCONCE_OK; /* new buffers are zero */
  if (t->form == PACK_TRANSPOSED) return upload_transposed(u, to, t, err);
  return put(u, to, t->base, t->bytes, err);
}
