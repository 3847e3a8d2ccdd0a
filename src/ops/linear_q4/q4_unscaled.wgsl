// Sums that q4_tensor made for joined projections, without its factors: the kernel binds factors and norms,
// and hands out (q4_hand).
fn inverse(power_of_two: f32) -> f32 { return bitcast<f32>(0x7f000000u - bitcast<u32>(power_of_two)); }
fn unscaled(m: u32, n: u32, sum: vec4<f32>) -> vec4<f32> {
  return sum * factors[m] *
         vec4<f32>(inverse(norms[n]), inverse(norms[n + 1u]), inverse(norms[n + 2u]), inverse(norms[n + 3u]));
}
