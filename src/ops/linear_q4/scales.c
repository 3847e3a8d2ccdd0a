/* Scales of 4-bit weights as the kernels read them: (groups, rows) in the file, (rows, groups) on
 * the device, so that a row's scales follow each other. */
#include "ops/linear_q4/linear_q4.h"

#include "base/half.h"

#include <math.h>
#include <string.h>

enum { TILE = 16 }; /* a side: without tiles each element would touch a cache line of its own */

static uint64_t numel_of(const struct unpacked *from) {
  uint64_t n = 1;
  for (uint32_t i = 0; i < from->rank; i++) n *= from->dims[i];
  return n;
}

static uint64_t size(const struct unpacked *from) {
  return numel_of(from) * vk_dtype_size(from->dtype);
}

/* The result's row r, columns [c, to), of elements of so many bytes; a constant makes each a move.
 */
static inline void fill_row(const struct unpacked *from, uint64_t rows, uint64_t r, uint64_t c,
                            uint64_t to, uint32_t bytes, uint8_t *out) {
  const uint8_t *at = from->bytes + (c * rows + r) * bytes;
  for (; c < to; c++, at += rows * bytes, out += bytes) memcpy(out, at, bytes);
}

/* Elements [first, end) of the result, as far as they are in its rows [row, row + TILE). */
static inline void fill_rows(const struct unpacked *from, uint64_t row, uint64_t first,
                             uint64_t end, uint32_t bytes, uint8_t *out) {
  const uint64_t cols = from->rank ? from->dims[0] : 1, rows = numel_of(from) / cols;
  for (uint64_t tile = 0; tile < cols; tile += TILE)
    for (uint64_t r = row; r < row + TILE && r < rows; r++) {
      uint64_t c = tile, to = tile + TILE < cols ? tile + TILE : cols;
      if (r * cols + c < first) c = first - r * cols;
      if (r * cols + to > end) to = end > r * cols ? end - r * cols : 0;
      if (c < to) fill_row(from, rows, r, c, to, bytes, out + (r * cols + c - first) * bytes);
    }
}

static void fill(const struct unpacked *from, uint64_t first, uint64_t end, uint8_t *out) {
  const uint32_t bytes = vk_dtype_size(from->dtype);
  const uint64_t cols = from->rank ? from->dims[0] : 1;
  if (first >= end) return; /* no elements */
  for (uint64_t row = first / bytes / cols; row * cols < end / bytes; row += TILE)
    if (bytes == 4)
      fill_rows(from, row, first / 4, end / 4, 4, out);
    else if (bytes == 2)
      fill_rows(from, row, first / 2, end / 2, 2, out);
    else
      fill_rows(from, row, first / bytes, end / bytes, bytes, out);
}

const struct packing q4_scales = {"scales by row", size, fill};

/* ---- norms ----------------------------------------------------------------------------------- */

static uint64_t rows_in(const struct unpacked *from) {
  return from->rank ? from->dims[from->rank - 1] : 1;
}

static uint64_t norms_size(const struct unpacked *from) { return 4 * rows_in(from); }

static float scale_at(const struct unpacked *from, uint64_t i) {
  float f;
  uint16_t h;
  if (from->dtype == VK_FLOAT32) return memcpy(&f, from->bytes + 4 * i, 4), f;
  return memcpy(&h, from->bytes + 2 * i, 2), half_to_float(h);
}

/* 2^(9 - e) for a number of exponent e; both it and its inverse are normal. */
static float norm_of(float most) {
  uint32_t bits;
  memcpy(&bits, &most, 4);
  const uint32_t e = bits >> 23;
  bits = (263 - (e < 20 ? 20 : e > 250 ? 250 : e)) << 23;
  memcpy(&most, &bits, 4);
  return most;
}

static void norms_fill(const struct unpacked *from, uint64_t first, uint64_t end, uint8_t *out) {
  const uint64_t rows = rows_in(from), groups = rows ? numel_of(from) / rows : 0;
  const bool known = from->dtype == VK_FLOAT32 || from->dtype == VK_FLOAT16;
  for (uint64_t r = first / 4; r < end / 4; r++) {
    float most = 0;
    for (uint64_t g = 0; known && g < groups; g++) {
      const float v = fabsf(scale_at(from, g * rows + r));
      if (v > most) most = v;
    }
    most = norm_of(most);
    memcpy(out + 4 * r - first, &most, 4);
  }
}

const struct packing q4_norms = {"norms of scales", norms_size, norms_fill};
