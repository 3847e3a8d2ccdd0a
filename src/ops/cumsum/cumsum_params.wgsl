// Running sums along lines of x (outer, size, inner).
struct Params {
  lines: u32, // outer * inner
  size: u32,
  inner: u32,
  parts: u32, // of a line, each with a workgroup of its own,
  each: u32,  // so many elements in one, a multiple of WG * EACH
}
const F32 = 0u;
const F16 = 1u;
const I32 = 2u;
const BYTES = 3u;
const SIGNED_BYTES = 4u;
const IN = F32; // elements of x
fn load(e: u32) -> Sum {
  if (IN == F32) {
    return Sum(bitcast<f32>(x[e]));
  }
  if (IN == F16) {
    return Sum(unpack2x16float(x[e / 2u])[e % 2u]);
  }
  if (IN == I32) {
    return Sum(bitcast<i32>(x[e]));
  }
  if (IN == BYTES) {
    return Sum(extractBits(x[e / 4u], e % 4u * 8u, 8u));
  }
  return Sum(extractBits(bitcast<i32>(x[e / 4u]), e % 4u * 8u, 8u));
}
fn element(line: u32, i: u32) -> u32 {
  return (line / p.inner * p.size + i) * p.inner + line % p.inner;
}
