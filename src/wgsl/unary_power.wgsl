// A power of floats for unary.wgsl. With ±0.5 it is a root: −∞ has none, and −0 keeps its sign.
alias Result = Quad;
fn apply(x: vec4<f32>) -> Result {
  let zero = vec4<f32>();
  let exponent = bitcast<f32>(p.a);
  var y = power(x, vec4<f32>(exponent));
  y = select(y, not_a_number(), vec4<bool>(abs(exponent) == 0.5) & (x < zero));
  return quad_put(select(y, 1.0 / x, vec4<bool>(exponent == -0.5) & (x == zero)));
}
