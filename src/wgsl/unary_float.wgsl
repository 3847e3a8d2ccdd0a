// Operations of unary.wgsl on floats.
alias Result = Quad;
// exp without overflow decides the tail: e^-|x| is in (0, 1].
fn sigmoid(x: vec4<f32>) -> vec4<f32> {
  let e = exp(-abs(x));
  return select(vec4<f32>(1.0), e, x < vec4<f32>(0.0)) / (1.0 + e);
}
// tanh(x) = x - x^3/3 + … near 0, where the quotient would lose its digits.
fn tangent(x: vec4<f32>) -> vec4<f32> {
  let e = exp(-2.0 * abs(x));
  let far = sign(x) * (1.0 - e) / (1.0 + e);
  let s = x * x;
  let near = x * (1.0 + s * (-0.33333334 + s * (0.13333334 + s * (-0.05396825 + s * 0.02186949))));
  return select(far, near, abs(x) < vec4<f32>(0.25));
}
// Abramowitz and Stegun 7.1.26: |error| < 1.5e-7.
fn erf(x: vec4<f32>) -> vec4<f32> {
  let t = 1.0 / (1.0 + 0.3275911 * abs(x));
  let sum = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  return sign(x) * (1.0 - sum * exp(-x * x));
}
// SwiftShader's log(0) is finite.
fn logarithm(x: vec4<f32>) -> vec4<f32> {
  return select(log(x), -1.0 / abs(x), x == vec4<f32>(0.0));
}
fn clamped(x: vec4<f32>, low: vec4<f32>, high: vec4<f32>) -> vec4<f32> {
  return select(min(max(x, low), high), x, is_nan(x));
}
fn apply(x: vec4<f32>) -> Result {
  let zero = vec4<f32>();
  let a = vec4<f32>(bitcast<f32>(p.a));
  let b = vec4<f32>(bitcast<f32>(p.b));
  var y = x;
  switch OP {
    case 0u: { y = sigmoid(x); }
    case 1u: { y = abs(x); }
    case 2u: { y = exp(x); }
    case 3u: { y = sqrt(x); }
    case 4u: { y = inverseSqrt(x); }
    case 5u: { y = sin(x); }
    case 6u: { y = cos(x); }
    case 7u: { y = tangent(x); }
    case 8u: { y = round(x); } // ties to even
    case 9u: { y = -x; }
    case 10u: { y = x * clamp(x + 3.0, zero, vec4<f32>(6.0)) / 6.0; }
    case 11u: { y = clamped(x, a, b); }
    case 13u: { y = select(max(x, zero), x, is_nan(x)); }
    case 14u: { y = 0.5 * x * (1.0 + erf(x * 0.70710678)); }
    case 15u: { y = x * sigmoid(1.5957691 * (x + 0.044715 * x * x * x)); }
    case 16u: { y = select(a * x, x, x > zero); }
    case 17u: { y = logarithm(x); }
    case 18u: { y = logarithm(x) * 0.4342945; }
    case 19u: { y = select(x, zero, abs(x) <= a); }
    case 20u: { y = clamp(x + 3.0, zero, vec4<f32>(6.0)) / 6.0; }
    case 21u: { y = tan(x); }
    case 22u: { y = floor(x); }
    case 23u: { y = ceil(x); }
    case 24u: { y = trunc(x); }
    case 25u: { y = 1.0 / x; }
    case 26u: { y = x * sigmoid(x); }
    default: {}
  }
  return quad_put(y);
}
