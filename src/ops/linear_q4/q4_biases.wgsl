// Four columns of the joined projections' biases, which lie behind each other: `bias`, f32 or f16, or none.
fn bias_at(n: u32) -> f32 {
  return either_get(bias[either_word(n, p.bias - 1u)], n, p.bias - 1u);
}
fn bias_quad(n: u32) -> vec4<f32> {
  if (p.bias == 0u) {
    return vec4<f32>();
  }
  return vec4<f32>(bias_at(n), bias_at(n + 1u), bias_at(n + 2u), bias_at(n + 3u));
}
