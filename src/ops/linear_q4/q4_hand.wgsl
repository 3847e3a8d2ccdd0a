// Columns of projections that were computed as one, four at a time: to y0, then y1, then y2. All counts of
// columns are multiples of four. The kernel binds factors, norms and these, and has
// `fn bias_quad(n) -> vec4<f32>`.
fn inverse(power_of_two: f32) -> f32 { return bitcast<f32>(0x7f000000u - bitcast<u32>(power_of_two)); }

fn put4(m: u32, n: u32, sum: vec4<f32>) {
  if (m >= p.m || n >= p.n) {
    return;
  }
  let norm = vec4<f32>(inverse(norms[n]), inverse(norms[n + 1u]), inverse(norms[n + 2u]), inverse(norms[n + 3u]));
  let v = quad_put(sum * factors[m] * norm + bias_quad(n));
  if (n < p.q_cols) {
    y0[(m * p.q_cols + n) / 4u] = v;
  } else if (n < p.q_cols + p.k_cols) {
    y1[(m * p.k_cols + n - p.q_cols) / 4u] = v;
  } else {
    y2[(m * (p.n - p.q_cols - p.k_cols) + n - p.q_cols - p.k_cols) / 4u] = v;
  }
}
