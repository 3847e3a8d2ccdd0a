// Operations of binary.wgsl on floats.
alias Result = Quad;
fn quotient(u: vec4<f32>, v: vec4<f32>) -> vec4<f32> {
  // A device's division may be off by an ulp; the remainder says which whole number was meant.
  let size = abs(v);
  var q = floor(abs(u) / size);
  let rest = fma(-q, size, abs(u));
  q = select(q, q + 1.0, rest >= size);
  q = select(q, q - 1.0, rest < vec4<f32>(0.0));
  return select(q, -q, (u < vec4<f32>(0.0)) != (v < vec4<f32>(0.0)));
}
fn apply(u: vec4<f32>, v: vec4<f32>) -> Result {
  let alpha = vec4<f32>(bitcast<f32>(p.alpha));
  let nan = is_nan(u) | is_nan(v);
  var y = u * v;
  switch OP {
    case 0u: { y = u + alpha * v; }
    case 1u: { y = u - alpha * v; }
    case 3u: { y = u / v; }
    case 4u: {
      let q = quotient(u, v);
      y = select(q, q - 1.0, (q * v != u) & ((u < vec4<f32>(0.0)) != (v < vec4<f32>(0.0))));
      y = select(y, u / v, v == vec4<f32>(0.0));
    }
    case 5u: { y = select(quotient(u, v), u / v, v == vec4<f32>(0.0)); }
    case 6u: { y = select(min(u, v), not_a_number(), nan); }
    case 7u: { y = select(max(u, v), not_a_number(), nan); }
    case 8u: { y = power(u, v); }
    default: {}
  }
  return quad_put(y);
}
