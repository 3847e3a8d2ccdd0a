// Keeps a product from being fused with the sum around it: PyTorch rounds both, and the result is
// rounded to an integer next. p.nothing is 0, which no compiler knows.
fn apart(v: vec4<f32>) -> vec4<f32> {
  return bitcast<vec4<f32>>(bitcast<vec4<u32>>(v) ^ vec4<u32>(p.nothing));
}
