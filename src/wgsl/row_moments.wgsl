// Mean and 1 / sqrt(variance + eps) of the one or two rows of x that a workgroup owns: `count`
// elements from word `at` on. The kernel has x, p.cols, p.eps, WG and group_add over vec2.
struct RowMoments { middle: vec2<f32>, factor: vec2<f32> } // by row of the workgroup
fn row_moments(at: u32, count: u32, local: u32) -> RowMoments {
  var sum = vec2<f32>();
  for (var i = local; i * ELEMS < count; i += WG) {
    for (var lane = 0u; lane < ELEMS && i * ELEMS + lane < count; lane++) {
      sum[(i * ELEMS + lane) / p.cols] += elem_get(x[at + i], lane);
    }
  }
  let middle = group_add(sum, local) / f32(p.cols);
  sum = vec2<f32>();
  for (var i = local; i * ELEMS < count; i += WG) {
    for (var lane = 0u; lane < ELEMS && i * ELEMS + lane < count; lane++) {
      let row = (i * ELEMS + lane) / p.cols;
      let off = elem_get(x[at + i], lane) - middle[row];
      sum[row] += off * off; // a second pass: E[x^2] - mean^2 would cancel
    }
  }
  return RowMoments(middle, inverseSqrt(group_add(sum, local) / f32(p.cols) + p.eps));
}
