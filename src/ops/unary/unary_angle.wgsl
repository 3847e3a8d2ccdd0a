// Angles of any size for unary_float. The device's sine knows small ones; of others only the part of
// a turn counts, and to find that takes the bits of 1 / 2π that the exponent does not shift away.
fn bits_of_turn(offset: i32) -> u32 { // 32 bits of 1 / 2π from this place behind the point
  var words = array<u32, 6>(0x28be60dbu, 0x9391054au, 0x7f09d5f4u, 0x7d4d3770u, 0x36d8a566u, 0x4f10e410u);
  let at = offset >> 5u;
  let shift = u32(offset & 31);
  var high = 0u;
  var low = 0u;
  if (at >= 0 && at < 6) { high = words[at]; }
  if (at >= -1 && at < 5) { low = words[at + 1]; }
  return select((high << shift) | (low >> (32u - max(shift, 1u))), high, shift == 0u);
}
fn upper_product(a: u32, b: u32) -> u32 { // the upper 32 bits of a · b
  let a0 = a & 0xffffu;
  let a1 = a >> 16u;
  let b0 = b & 0xffffu;
  let b1 = b >> 16u;
  let middle = a1 * b0 + ((a0 * b0) >> 16u);
  return a1 * b1 + (middle >> 16u) + ((a0 * b1 + (middle & 0xffffu)) >> 16u);
}
fn small_angle(x: f32) -> f32 {
  let bits = bitcast<u32>(x) & 0x7fffffffu;
  if (bits < 0x41800000u) { // 16
    return x;
  }
  if (bits >= 0x7f800000u) {
    return not_a_number().x;
  }
  let mantissa = (bits & 0x7fffffu) | 0x800000u;
  let offset = i32(bits >> 23u) - 150;
  let turns = mantissa * bits_of_turn(offset) + upper_product(mantissa, bits_of_turn(offset + 32));
  let angle = f32(bitcast<i32>(turns)) * 1.4629180792671596e-9; // 2π / 2^32
  return select(angle, -angle, (bitcast<u32>(x) & 0x80000000u) != 0u);
}
fn small(x: vec4<f32>) -> vec4<f32> {
  return vec4<f32>(small_angle(x.x), small_angle(x.y), small_angle(x.z), small_angle(x.w));
}
