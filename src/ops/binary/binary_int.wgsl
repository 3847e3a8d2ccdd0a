// Operations of binary.wgsl on integers; they wrap. A row says which, as in binary_float.
alias Result = Quad;
fn whole_power(base: i32, exponent: i32) -> i32 {
  var y = select(1, 0, exponent < 0 && abs(base) != 1); // PyTorch: 1 / base^n rounds to 0
  var square = base;
  for (var e = abs(exponent); e > 0 && y != 0; e >>= 1u) {
    if ((e & 1) != 0) { y *= square; }
    square *= square;
  }
  return y;
}
fn power(u: vec4<i32>, v: vec4<i32>) -> vec4<i32> {
  return vec4<i32>(whole_power(u.x, v.x), whole_power(u.y, v.y), whole_power(u.z, v.z), whole_power(u.w, v.w));
}
fn floor_div(u: vec4<i32>, v: vec4<i32>) -> vec4<i32> {
  let q = u / v;
  return select(q, q - 1, (q * v != u) & ((u < vec4<i32>(0)) != (v < vec4<i32>(0))));
}
fn trunc_div(u: vec4<i32>, v: vec4<i32>) -> vec4<i32> { return u / v; }
// A remainder by 0 is 0; PyTorch refuses it.
fn fmod(u: vec4<i32>, v: vec4<i32>) -> vec4<i32> {
  return select(u - u / v * v, vec4<i32>(), v == vec4<i32>());
}
fn modulo(u: vec4<i32>, v: vec4<i32>) -> vec4<i32> {
  return select(u - floor_div(u, v) * v, vec4<i32>(), v == vec4<i32>());
}
fn left_shift(u: vec4<i32>, v: vec4<i32>) -> vec4<i32> {
  return select(u << bitcast<vec4<u32>>(v), vec4<i32>(), bitcast<vec4<u32>>(v) > vec4<u32>(31u));
}
fn right_shift(u: vec4<i32>, v: vec4<i32>) -> vec4<i32> {
  return u >> min(bitcast<vec4<u32>>(v), vec4<u32>(31u));
}
fn least(u: vec4<i32>, v: vec4<i32>) -> vec4<i32> { return min(u, v); }
fn largest(u: vec4<i32>, v: vec4<i32>) -> vec4<i32> { return max(u, v); }
fn apply(u: vec4<i32>, v: vec4<i32>) -> Result {
  let alpha = vec4<i32>(bitcast<i32>(p.alpha));
  let result = u * v; // rows replace it
  return quad_put(result);
}
