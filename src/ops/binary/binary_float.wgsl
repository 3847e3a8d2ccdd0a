// Operations of binary.wgsl on floats: a row says which, in terms of u, v and alpha.
alias Result = Quad;
fn least(u: vec4<f32>, v: vec4<f32>) -> vec4<f32> {
  return select(min(u, v), not_a_number(), is_nan(u) | is_nan(v));
}
fn largest(u: vec4<f32>, v: vec4<f32>) -> vec4<f32> {
  return select(max(u, v), not_a_number(), is_nan(u) | is_nan(v));
}
fn apply(u: vec4<f32>, v: vec4<f32>) -> Result {
  let alpha = bitcast<f32>(p.alpha);
  let result = u * v; // rows replace it
  return quad_put(result);
}
