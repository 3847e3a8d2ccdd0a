// Eight codes of 4 bits times eight numbers, in f32.
// A nibble in place, under the exponent of 2^23, is the number 2^23 + 16^i · code: subtracting
// leaves 16^i · (code − 8) exactly, and x carries the factor 16^-i.
const MASK = vec4<u32>(0xfu, 0xf0u, 0xf00u, 0xf000u);
const EXPONENT = vec4<u32>(0x4b000000u);
const OFFSET = vec4<f32>(8388616.0, 8388736.0, 8390656.0, 8421376.0);
const FACTOR = vec4<f32>(1.0, 0.0625, 0.00390625, 0.000244140625);

fn add_word(sum: vec4<f32>, q: u32, low: vec4<f32>, high: vec4<f32>) -> vec4<f32> {
  let a = bitcast<vec4<f32>>((vec4<u32>(q) & MASK) | EXPONENT) - OFFSET;
  let b = bitcast<vec4<f32>>((vec4<u32>(q >> 16u) & MASK) | EXPONENT) - OFFSET;
  return fma(b, high, fma(a, low, sum));
}
