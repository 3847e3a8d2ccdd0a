// Columns of projections that were computed as one, four at a time: to y0, then y1, then y2, which the
// kernel binds. All counts of columns are multiples of four.
fn hand(m: u32, n: u32, sum: vec4<f32>) {
  let v = quad_put(sum);
  if (n < p.q_cols) {
    y0[(m * p.q_cols + n) / 4u] = v;
  } else if (n < p.q_cols + p.k_cols) {
    y1[(m * p.k_cols + n - p.q_cols) / 4u] = v;
  } else {
    y2[(m * (p.n - p.q_cols - p.k_cols) + n - p.q_cols - p.k_cols) / 4u] = v;
  }
}
