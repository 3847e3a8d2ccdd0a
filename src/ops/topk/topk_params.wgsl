// The k best elements of lines of x (outer, size, inner). An element's key is better the larger it
// is; of equal keys the lower index is better. A NaN is larger than any number; alone, it is the
// least one too.
struct Params {
  lines: u32, // outer * inner
  size: u32,
  inner: u32,
  k: u32,
  smallest: u32, // 1: the smallest are the best, 2: and a NaN before them
  parts: u32,    // of a line, for kernels that split it,
  each: u32,     // so many elements in one
}
const F32 = 0u;
const F16 = 1u;
const I32 = 2u;
const BYTES = 3u;
const SIGNED_BYTES = 4u;
const FOUND = 5u; // x (lines, size) is keys and indices that were found in parts of lines
const IN = F32; // elements of x

fn float_key(v: f32) -> u32 {
  var bits = bitcast<u32>(v);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return 0xffffffffu;
  }
  bits = select(bits, 0u, bits == 0x80000000u); // -0 is 0
  return select(bits | 0x80000000u, ~bits, (bits & 0x80000000u) != 0u);
}
fn key_at(e: u32) -> u32 {
  if (IN == F32) {
    return float_key(bitcast<f32>(x[e]));
  }
  if (IN == F16) {
    return float_key(unpack2x16float(x[e / 2u])[e % 2u]);
  }
  if (IN == I32) {
    return x[e] ^ 0x80000000u;
  }
  let byte = extractBits(x[e / 4u], e % 4u * 8u, 8u);
  return select(byte, byte ^ 0x80u, IN == SIGNED_BYTES);
}
fn key_of(line: u32, i: u32) -> u32 {
  if (IN == FOUND) {
    return x[(line * p.size + i) * 2u];
  }
  let key = key_at((line / p.inner * p.size + i) * p.inner + line % p.inner);
  if (p.smallest == 0u || (p.smallest == 2u && IN <= F16 && key == 0xffffffffu)) {
    return key;
  }
  return ~key;
}
fn index_of(line: u32, i: u32) -> u32 {
  if (IN == FOUND) {
    return x[(line * p.size + i) * 2u + 1u];
  }
  return i;
}
