// What follows a product of many rows: a bias, a residual or a gate, and four columns of y from n on; the
// kernel binds bias and y, and n counts from p.first.
fn put(m: u32, n: u32, sum: vec4<f32>) {
  for (var i = 0u; i < 4u && n + i < p.n && m < p.m; i += ELEMS) {
    var word = 0u;
    for (var lane = 0u; lane < ELEMS; lane++) {
      let at = p.first + min(n + i + lane, p.n - 1u);
      var v = sum[i + lane];
      if (p.bias != 0u) {
        let b = m * p.bias_m + at;
        let other = either_get(bias[either_word(b, p.bias - 1u)], b, p.bias - 1u);
        v = select(v + other, v * other / (1.0 + exp(-other)), p.gated == 1u);
      }
      word = elem_put(word, lane, v);
    }
    y[(m * p.cols + p.first + n + i) / ELEMS] = word;
  }
}
