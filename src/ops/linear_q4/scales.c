/* Scales of 4-bit weights as the kernels read them: (groups, rows) in the file, (rows, groups) on
 * the device, so that a row's scales follow each other. */
#include "ops/linear_q4/linear_q4.h"

#include <string.h>

enum { TILE = 32 }; /* a side: without tiles each element would touch a cache line of its own */

static uint64_t numel_of(const struct unpacked *from) {
  uint64_t n = 1;
  for (uint32_t i = 0; i < from->rank; i++) n *= from->dims[i];
  return n;
}

static uint64_t size(const struct unpacked *from) {
  return numel_of(from) * vk_dtype_size(from->dtype);
}

/* Elements [first, end) of the result, as far as they are in its rows [row, row + TILE). */
static void fill_rows(const struct unpacked *from, uint64_t row, uint64_t first, uint64_t end,
                      uint8_t *out) {
  const uint64_t cols = from->rank ? from->dims[0] : 1, rows = numel_of(from) / cols;
  const uint32_t bytes = vk_dtype_size(from->dtype);
  for (uint64_t tile = 0; tile < cols; tile += TILE)
    for (uint64_t r = row; r < row + TILE && r < rows; r++) {
      uint64_t c = tile, to = tile + TILE < cols ? tile + TILE : cols;
      if (r * cols + c < first) c = first - r * cols;
      if (r * cols + to > end) to = end > r * cols ? end - r * cols : 0;
      for (; c < to; c++)
        memcpy(out + (r * cols + c - first) * bytes, from->bytes + (c * rows + r) * bytes, bytes);
    }
}

static void fill(const struct unpacked *from, uint64_t first, uint64_t end, uint8_t *out) {
  const uint32_t bytes = vk_dtype_size(from->dtype);
  const uint64_t cols = from->rank ? from->dims[0] : 1;
  if (first >= end) return; /* no elements */
  for (uint64_t row = first / bytes / cols; row * cols < end / bytes; row += TILE)
    fill_rows(from, row, first / bytes, end / bytes, out);
}

const struct packing q4_scales = {"scales by row", size, fill};
