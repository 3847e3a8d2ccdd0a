// A power of floats for unary.wgsl.
alias Result = Quad;
fn apply(x: vec4<f32>) -> Result {
  return quad_put(power(x, vec4<f32>(bitcast<f32>(p.a))));
}
