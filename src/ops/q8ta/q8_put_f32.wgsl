// Up to four results from element `at` on, as floats of 4 bytes: see q8_put_shared.
alias Out = f32;
fn q8_put(at: u32, count: u32, v: vec4<f32>) {
  for (var i = 0u; i < count; i++) {
    y[at + i] = v[i];
  }
}
