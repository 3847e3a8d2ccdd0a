// Activations that operators of their own compute, and products at their end. With not_a_number.
// exp without overflow decides the tail: e^-|x| is in (0, 1].
fn sigmoid(x: vec4<f32>) -> vec4<f32> {
  let e = exp(-abs(x));
  return select(vec4<f32>(1.0), e, x < vec4<f32>(0.0)) / (1.0 + e);
}
// Abramowitz and Stegun 7.1.26: |error| < 1.5e-7.
fn erf(x: vec4<f32>) -> vec4<f32> {
  let t = 1.0 / (1.0 + 0.3275911 * abs(x));
  let sum = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  return sign(x) * (1.0 - sum * exp(-x * x));
}
fn relu(x: vec4<f32>) -> vec4<f32> {
  return select(max(x, vec4<f32>()), x, is_nan(x));
}
fn gelu(x: vec4<f32>) -> vec4<f32> {
  return 0.5 * x * (1.0 + erf(x * 0.70710678));
}
fn gelu_tanh(x: vec4<f32>) -> vec4<f32> {
  return x * sigmoid(1.5957691 * (x + 0.044715 * x * x * x));
}
