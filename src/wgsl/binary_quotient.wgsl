// Whole quotients of floats for binary.wgsl, rounded down (OP 4) or towards zero (OP 5).
alias Result = Quad;
fn apply(u: vec4<f32>, v: vec4<f32>) -> Result {
  // A device's division may be off by an ulp; the remainder says which whole number was meant.
  let size = abs(v);
  var q = floor(abs(u) / size);
  let rest = fma(-q, size, abs(u));
  q = select(q, q + 1.0, rest >= size);
  q = select(q, q - 1.0, rest < vec4<f32>(0.0));
  let negative = (u < vec4<f32>(0.0)) != (v < vec4<f32>(0.0));
  let down = select(q, -q - select(vec4<f32>(0.0), vec4<f32>(1.0), q * size != abs(u)), negative);
  let cut = select(q, -q, negative);
  let y = select(cut, down, vec4<bool>(OP == 4u));
  return quad_put(select(y, u / v, v == vec4<f32>(0.0)));
}
