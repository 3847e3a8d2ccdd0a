// Whole quotients of floats for binary_float, rounded down or towards zero. A device's
// division may be some units off and its fma two roundings, so remainders are formed from halves of
// 12 bits, whose products are exact.
fn upper(x: vec4<f32>) -> vec4<f32> {
  return bitcast<vec4<f32>>(bitcast<vec4<u32>>(x) & vec4<u32>(0xfffff000u));
}
// u − q · v
fn rest_of(u: vec4<f32>, q: vec4<f32>, v: vec4<f32>) -> vec4<f32> {
  let q1 = upper(q);
  let q2 = q - q1;
  let v1 = upper(v);
  let v2 = v - v1;
  return u - q1 * v1 - q1 * v2 - q2 * v1 - q2 * v2;
}
// The whole number below the true quotient, as from a remainder: 1 // 0.1 is 9.
fn down(u: vec4<f32>, v: vec4<f32>) -> vec4<f32> {
  let zero = vec4<f32>();
  let size = abs(v);
  var q = floor(abs(u) / size);
  let rest = rest_of(abs(u), q, size);
  q = select(q, q + 1.0, rest >= size);
  q = select(q, q - 1.0, rest < zero);
  let exact = select((rest == zero) | (rest == size), u == zero, is_infinite(v));
  let negative = (u < zero) != (v < zero);
  let y = select(q, -q - select(vec4<f32>(1.0), zero, exact), negative);
  return select(y, not_a_number(), is_infinite(u));
}
// The rounded quotient without its fraction: 1 / 0.1 is 10.
fn cut(u: vec4<f32>, v: vec4<f32>) -> vec4<f32> {
  let q = u / v;
  let better = q + rest_of(u, q, v) / v;
  return trunc(select(better, q, is_infinite(u) | is_infinite(v) | is_infinite(q)));
}
fn floor_div(u: vec4<f32>, v: vec4<f32>) -> vec4<f32> {
  return select(down(u, v), u / v, v == vec4<f32>());
}
fn trunc_div(u: vec4<f32>, v: vec4<f32>) -> vec4<f32> {
  return select(cut(u, v), u / v, v == vec4<f32>());
}
