/* Layouts of weights of bytes as the kernels read them: see q8ta.h. */
#include "ops/q8ta/q8ta.h"

static uint32_t padded(uint32_t n) { return (n + 3) / 4 * 4; }

/* ---- sums ------------------------------------------------------------------------------------ */

/* (channels, …) of a matrix, (down, across, channels) of a depthwise weight. */
static uint32_t channels_of(const struct unpacked *from) {
  return from->rank == 3 ? from->dims[2] : from->rank ? from->dims[0] : 1;
}

static uint64_t numel_of(const struct unpacked *from) {
  uint64_t n = 1;
  for (uint32_t i = 0; i < from->rank; i++) n *= from->dims[i];
  return n;
}

static uint64_t sums_size(const struct unpacked *from) { return 4ull * channels_of(from); }

static void sums_fill(const struct unpacked *from, uint64_t first, uint64_t end, uint8_t *out) {
  const uint32_t channels = channels_of(from);
  const uint64_t deep = channels ? numel_of(from) / channels : 0;
  const uint64_t row = from->rank == 3 ? 1 : deep, step = from->rank == 3 ? channels : 1;
  for (uint64_t channel = first / 4; channel < end / 4; channel++, out += 4) {
    uint32_t sum = 0;
    for (uint64_t i = 0; i < deep; i++) {
      const int32_t byte = (int8_t)from->bytes[channel * row + i * step];
      sum += (uint32_t)byte;
    }
    for (int i = 0; i < 4; i++) out[i] = (uint8_t)(sum >> 8 * i);
  }
}

const struct packing q8_sums = {"sums of channels", sums_size, sums_fill};

/* ---- rows ------------------------------------------------------------------------------------ */

static uint32_t cols_of(const struct unpacked *from) {
  return from->rank ? from->dims[from->rank - 1] : 1;
}

static uint64_t rows_size(const struct unpacked *from) {
  const uint32_t cols = cols_of(from);
  return cols ? numel_of(from) / cols * padded(cols) : 0;
}

static void rows_fill(const struct unpacked *from, uint64_t first, uint64_t end, uint8_t *out) {
  const uint32_t cols = cols_of(from), wide = padded(cols);
  for (uint64_t i = first; i < end; i++) {
    const uint64_t col = i % wide;
    *out++ = col < cols ? from->bytes[i / wide * cols + col] : 0;
  }
}

const struct packing q8_rows = {"rows of words", rows_size, rows_fill};

/* ---- planes ---------------------------------------------------------------------------------- */

static uint64_t planes_size(const struct unpacked *from) {
  return from->rank == 3 ? (uint64_t)from->dims[2] * from->dims[0] * padded(from->dims[1]) : 0;
}

static void planes_fill(const struct unpacked *from, uint64_t first, uint64_t end, uint8_t *out) {
  if (from->rank != 3) return;
  const uint64_t down = from->dims[0], across = from->dims[1], channels = from->dims[2];
  const uint64_t wide = padded(from->dims[1]);
  for (uint64_t i = first; i < end; i++) {
    const uint64_t col = i % wide, row = i / wide % down, channel = i / wide / down;
    *out++ = col < across ? from->bytes[(row * across + col) * channels + channel] : 0;
  }
}

const struct packing q8_planes = {"planes of words", planes_size, planes_fill};
