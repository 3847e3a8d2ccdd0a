// A power of floats for unary_float. With ±0.5 it is a root: −∞ has none, and −0 keeps its sign.
fn to_the(x: vec4<f32>, exponent: vec4<f32>) -> vec4<f32> {
  let zero = vec4<f32>();
  var y = power(x, exponent);
  y = select(y, not_a_number(), (abs(exponent) == vec4<f32>(0.5)) & (x < zero));
  return select(y, 1.0 / x, (exponent == vec4<f32>(-0.5)) & (x == zero));
}
