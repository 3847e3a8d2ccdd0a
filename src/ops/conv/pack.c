/* Weights as products read them: a line of output channels, in whole quads, for each input channel
 * of each tap; (taps, input channels, output channels). What lies where depends on dims alone, so
 * phases find their taps in it, and groups their channels. */
#include "ops/conv/pack.h"

#include <string.h>

enum { TILE = 32 }; /* output channels at a time: each is a stream through the file's bytes */

/* Sizes of the result, and steps through the file's elements; a tap's neighbour is the next one. */
struct layout {
  uint64_t taps, rows, cols; /* cols: output channels without what fills the last quad */
  uint64_t row_step, col_step;
};

static uint64_t line_of(const struct layout *l) { return (l->cols + 3) / 4 * 4; }

static struct layout layout_of(const struct unpacked *from, bool transposed) {
  struct layout l = {.taps = 1};
  for (uint32_t i = 2; i < from->rank; i++) l.taps *= from->dims[i];
  l.rows = from->dims[!transposed];
  l.cols = from->dims[transposed];
  l.row_step = transposed ? l.cols * l.taps : l.taps;
  l.col_step = transposed ? l.taps : l.rows * l.taps;
  return l;
}

static void copy(uint8_t *to, const uint8_t *from, uint32_t size) {
  if (size == 4)
    memcpy(to, from, 4);
  else
    memcpy(to, from, 2);
}

/* Elements [first, end) of the result, as far as they are in columns [col, col + TILE) of a row. */
static void fill_row(const struct layout *l, const uint8_t *in, uint32_t size, uint64_t row,
                     uint64_t col, uint64_t first, uint64_t end, uint8_t *out) {
  const uint64_t line = line_of(l), at = row * line;
  const uint64_t tap = row / l->rows, channel = row % l->rows;
  uint64_t c = col, to = col + TILE < line ? col + TILE : line;
  if (at + c < first) c = first > at ? first - at : 0;
  if (at + to > end) to = end > at ? end - at : 0;
  for (; c < to; c++) {
    uint8_t *o = out + (at + c - first) * size;
    if (c < l->cols)
      copy(o, in + (c * l->col_step + channel * l->row_step + tap) * size, size);
    else
      memset(o, 0, size);
  }
}

static void fill(const struct unpacked *from, bool transposed, uint64_t first, uint64_t end,
                 uint8_t *out) {
  const struct layout l = layout_of(from, transposed);
  const uint32_t size = vk_dtype_size(from->dtype);
  for (uint64_t col = 0; col < line_of(&l); col += TILE)
    for (uint64_t channel = 0; channel < l.rows; channel++)
      for (uint64_t tap = 0; tap < l.taps; tap++)
        fill_row(&l, from->bytes, size, tap * l.rows + channel, col, first / size, end / size, out);
}

static uint64_t size_of(const struct unpacked *from, bool transposed) {
  const struct layout l = layout_of(from, transposed);
  return l.taps * l.rows * line_of(&l) * vk_dtype_size(from->dtype);
}

static uint64_t forward_size(const struct unpacked *from) { return size_of(from, false); }
static uint64_t transposed_size(const struct unpacked *from) { return size_of(from, true); }
static void forward_fill(const struct unpacked *from, uint64_t first, uint64_t end, uint8_t *out) {
  fill(from, false, first, end, out);
}
static void transposed_fill(const struct unpacked *from, uint64_t first, uint64_t end,
                            uint8_t *out) {
  fill(from, true, first, end, out);
}

const struct packing conv_forward = {"a convolution's weight", forward_size, forward_fill};
const struct packing conv_transposed = {"a transposed convolution's weight", transposed_size,
                                        transposed_fill};
