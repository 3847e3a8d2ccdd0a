// What a convolution does with its sums at last, by the bits of p.end: 1 a lower bound, 2 an upper one,
// 4 hardswish, 8 silu. NaN stays what it is.
fn conv_end(sum: vec4<f32>) -> vec4<f32> {
  var v = sum;
  if ((p.end & 1u) != 0u) {
    v = max(v, vec4<f32>(p.low));
  }
  if ((p.end & 2u) != 0u) {
    v = min(v, vec4<f32>(p.high));
  }
  if ((p.end & 4u) != 0u) {
    v *= clamp(v + 3.0, vec4<f32>(0.0), vec4<f32>(6.0)) / 6.0;
  }
  if ((p.end & 8u) != 0u) {
    let e = exp(-abs(v)); // without overflow
    v *= select(vec4<f32>(1.0), e, v < vec4<f32>(0.0)) / (1.0 + e);
  }
  return select(v, sum, is_nan(sum));
}
