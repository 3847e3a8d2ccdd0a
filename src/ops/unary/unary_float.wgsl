// Operations of unary.wgsl on floats: a row says which, in terms of x, of its numbers a, b and c, and of what is here.
alias Result = Quad;
// tanh(x) = x - x^3/3 + … near 0, where the quotient would lose its digits.
fn tangent(x: vec4<f32>) -> vec4<f32> {
  let e = exp(-2.0 * abs(x));
  let far = sign(x) * (1.0 - e) / (1.0 + e);
  let s = x * x;
  let near = x * (1.0 + s * (-0.33333334 + s * (0.13333334 + s * (-0.05396825 + s * 0.02186949))));
  return select(far, near, abs(x) < vec4<f32>(0.25));
}
// SwiftShader's log(0) is finite.
fn logarithm(x: vec4<f32>) -> vec4<f32> {
  return select(select(log(x), -1.0 / abs(x), x == vec4<f32>(0.0)), not_a_number(), x < vec4<f32>());
}
fn clamped(x: vec4<f32>, low: vec4<f32>, high: vec4<f32>) -> vec4<f32> {
  return select(min(max(x, low), high), x, is_nan(x));
}
// exp(x) - 1, by its series near 0, where the difference would lose its digits.
fn exp_less_one(x: vec4<f32>) -> vec4<f32> {
  let near = x * (1.0 + x * (0.5 + x * (0.16666667 + x * (0.041666668 + x * (0.008333334 + x * 0.0013888889)))));
  return select(exp(x) - 1.0, near, abs(x) < vec4<f32>(0.25));
}
fn signum(x: vec4<f32>) -> vec4<f32> {
  return select(sign(x), vec4<f32>(), is_nan(x));
}
// log(1 + x): what the sum 1 + x loses of x, the quotient puts back.
fn log_of_one_more(x: vec4<f32>) -> vec4<f32> {
  let one = vec4<f32>(1.0);
  let sum = 1.0 + x;
  let y = logarithm(sum) * (x / select(sum - 1.0, one, sum == one));
  return select(select(y, x, sum == one), logarithm(sum), abs(x) > vec4<f32>(1e7));
}
fn hyperbolic_sine(x: vec4<f32>) -> vec4<f32> {
  let e = exp_less_one(abs(x));
  let y = select(0.5 * (e + e / (e + 1.0)), exp(abs(x) - 0.6931472), abs(x) > vec4<f32>(40.0));
  return sign(x) * y;
}
fn arc_sine(x: vec4<f32>) -> vec4<f32> {
  let inside = clamp(x, vec4<f32>(-1.0), vec4<f32>(1.0));
  let y = atan2(inside, sqrt((1.0 - inside) * (1.0 + inside)));
  return select(y, not_a_number(), (abs(x) > vec4<f32>(1.0)) | is_nan(x));
}
fn arc_cosine(x: vec4<f32>) -> vec4<f32> {
  let inside = clamp(x, vec4<f32>(-1.0), vec4<f32>(1.0));
  let y = 2.0 * atan2(sqrt(1.0 - inside), sqrt(1.0 + inside));
  return select(y, not_a_number(), (abs(x) > vec4<f32>(1.0)) | is_nan(x));
}
// To decimals: ten to their number, which may be counted before the point.
fn rounded(x: vec4<f32>, ten: vec4<f32>, before: vec4<bool>) -> vec4<f32> {
  let y = select(round(x * ten) / ten, round(x / ten) * ten, before);
  return select(y, x, is_infinite(x) | is_nan(x));
}
fn arc_tangent(x: vec4<f32>) -> vec4<f32> {
  return select(atan(x), x, is_nan(x));
}
fn area_sine(x: vec4<f32>) -> vec4<f32> {
  let size = abs(x);
  let far = logarithm(size) + 0.6931472;
  let near = log_of_one_more(size + size * size / (1.0 + sqrt(size * size + 1.0)));
  return sign(x) * select(near, far, size > vec4<f32>(1e6));
}
fn area_cosine(x: vec4<f32>) -> vec4<f32> {
  let more = max(x - 1.0, vec4<f32>());
  let far = logarithm(max(x, vec4<f32>(1.0))) + 0.6931472;
  let near = log_of_one_more(more + sqrt(more * (more + 2.0)));
  let y = select(near, far, x > vec4<f32>(1e6));
  return select(y, not_a_number(), !(x >= vec4<f32>(1.0)));
}
fn area_tangent(x: vec4<f32>) -> vec4<f32> {
  let y = 0.5 * log_of_one_more(2.0 * x / (1.0 - x));
  return select(y, not_a_number(), !(abs(x) <= vec4<f32>(1.0)));
}
// log(x / (1 - x)), with x kept away from 0 and 1 by a margin where there is one.
fn logit(x: vec4<f32>, margin: vec4<f32>) -> vec4<f32> {
  let inside = select(x, clamped(x, margin, 1.0 - margin), margin >= vec4<f32>());
  let y = logarithm(inside) - logarithm(1.0 - inside);
  let outside = (inside < vec4<f32>()) | (inside > vec4<f32>(1.0)) | is_nan(x);
  return select(y, not_a_number(), outside);
}
fn hardsigmoid(x: vec4<f32>) -> vec4<f32> {
  return clamped(x + 3.0, vec4<f32>(), vec4<f32>(6.0)) / 6.0;
}
fn hardswish(x: vec4<f32>) -> vec4<f32> {
  return x * clamp(x + 3.0, vec4<f32>(), vec4<f32>(6.0)) / 6.0;
}
fn apply(x: vec4<f32>) -> Result {
  let zero = vec4<f32>();
  let a = vec4<f32>(bitcast<f32>(p.a));
  let b = vec4<f32>(bitcast<f32>(p.b));
  let c = vec4<f32>(bitcast<f32>(p.c));
  let result = x; // rows replace it
  return quad_put(result);
}
