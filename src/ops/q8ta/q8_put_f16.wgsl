// Up to four results from element `at` on, as floats of 2 bytes, where rows have an even number of
// them: see q8_put_shared.
alias Out = u32;
fn q8_put(at: u32, count: u32, v: vec4<f32>) {
  for (var i = 0u; i < count; i += 2u) {
    y[(at + i) / 2u] = pack2x16float(vec2<f32>(v[i], v[i + 1u]));
  }
}
