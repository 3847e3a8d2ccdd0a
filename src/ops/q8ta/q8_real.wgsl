// Sums of products of bytes as real numbers: ((sum − x_zero · Σ w) · (x_scale · w_scale) + bias),
// at least p.least. `sums`, `scales`, `bias` and `p` are the shader's; channels are those of y.
fn q8_scale(channel: u32) -> f32 {
  let at = channel % p.w_scales;
  return p.x_scale * either_get(scales[either_word(at, p.half)], at, p.half);
}
fn q8_bias(channel: u32) -> f32 {
  return either_get(bias[either_word(channel, p.bias - 1u)], channel, p.bias - 1u);
}
fn q8_real(sum: vec4<i32>, channel: vec4<u32>) -> vec4<f32> {
  var scale: vec4<f32>;
  var offset: vec4<f32>;
  for (var i = 0u; i < 4u; i++) {
    scale[i] = q8_scale(channel[i]);
    if (p.bias != 0u) {
      offset[i] = q8_bias(channel[i]);
    }
  }
  let v = vec4<f32>(sum) * scale;
  return max(select(v, apart(v) + offset, vec4<bool>(p.bias != 0u)), vec4<f32>(p.least));
}
