// Compilers may assume that there are no NaNs: they are told apart and made by their bits.
var<private> nan_bits: u32 = 0x7fc00000u;
fn is_nan(x: vec4<f32>) -> vec4<bool> {
  return (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u);
}
fn is_infinite(x: vec4<f32>) -> vec4<bool> {
  return (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) == vec4<u32>(0x7f800000u);
}
fn not_a_number() -> vec4<f32> { return vec4<f32>(bitcast<f32>(nan_bits)); }
