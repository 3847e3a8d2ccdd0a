// WGSL's two functions for pairs of 2-byte floats, where the compiler refuses its own. To the nearest, ties to even;
// too large becomes infinite; subnormal halves are kept.
fn unpack2x16float(word: u32) -> vec2<f32> {
  let both = vec2<u32>(word & 0xffffu, word >> 16u);
  let size = both & vec2<u32>(0x7fffu);
  let rebias = select(vec2<u32>(112u << 23u), vec2<u32>(224u << 23u), size >= vec2<u32>(0x7c00u));
  let normal = (size << vec2<u32>(13u)) + rebias;
  let subnormal = bitcast<vec2<u32>>(vec2<f32>(size) * 5.9604644775390625e-8);  // 2^-24
  let found = select(normal, subnormal, size < vec2<u32>(0x400u));
  return bitcast<vec2<f32>>(found | ((both & vec2<u32>(0x8000u)) << vec2<u32>(16u)));
}
fn pack2x16float(v: vec2<f32>) -> u32 {
  let bits = bitcast<vec2<u32>>(v);
  let size = bits & vec2<u32>(0x7fffffffu);
  let odd = (size >> vec2<u32>(13u)) & vec2<u32>(1u);
  let rounded = (size + vec2<u32>(0xfffu) + odd - vec2<u32>(112u << 23u)) >> vec2<u32>(13u);
  // Half of 1 has steps of 2^-24 above it, as subnormal halves have: the sum's last bits are those.
  let small = bitcast<vec2<u32>>(bitcast<vec2<f32>>(size) + vec2<f32>(0.5)) - vec2<u32>(0x3f000000u);
  var half = select(rounded, small, size < vec2<u32>(0x38800000u));
  half = select(half, vec2<u32>(0x7c00u), size >= vec2<u32>(0x477ff000u));
  half = select(half, vec2<u32>(0x7e00u), size > vec2<u32>(0x7f800000u));
  half |= (bits >> vec2<u32>(16u)) & vec2<u32>(0x8000u);
  return half.x | (half.y << 16u);
}
