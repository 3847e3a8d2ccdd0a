// Remainders of floats for binary_float: fmod has the sign of u, modulo that of v. Each step takes a
// whole number of |v| away without rounding (see binary_quotient); large quotients take several.
fn fmod(u: vec4<f32>, v: vec4<f32>) -> vec4<f32> {
  let size = abs(v);
  let zero = vec4<f32>();
  var rest = abs(u);
  for (var i = 0; i < 6; i++) {
    let more = rest_of(rest, trunc(rest / size), size);
    rest = select(more, more + size, more < zero);
    rest = select(rest, rest - size, rest >= size);
  }
  let y = select(select(rest, -rest, u < zero), u, is_infinite(v) | (abs(u) < size));
  return select(y, not_a_number(), is_infinite(u) | is_nan(u) | is_nan(v) | (v == zero));
}
fn modulo(u: vec4<f32>, v: vec4<f32>) -> vec4<f32> {
  let zero = vec4<f32>();
  let rest = fmod(u, v);
  return select(rest, rest + v, (rest != zero) & ((rest < zero) != (v < zero)) & !is_nan(rest));
}
