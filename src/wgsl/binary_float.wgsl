// Operations of binary.wgsl on floats.
alias Result = Quad;
fn apply(u: vec4<f32>, v: vec4<f32>) -> Result {
  let alpha = bitcast<f32>(p.alpha);
  let nan = is_nan(u) | is_nan(v);
  var y = u * v;
  switch OP {
    case 0u: { y = u + alpha * v; }
    case 1u: { y = u - alpha * v; }
    case 3u: { y = u / v; }
    case 6u: { y = select(min(u, v), not_a_number(), nan); }
    case 7u: { y = select(max(u, v), not_a_number(), nan); }
    default: {}
  }
  return quad_put(y);
}
