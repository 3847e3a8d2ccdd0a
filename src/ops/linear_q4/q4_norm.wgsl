// x of q4_rows, normed where p.norm says so: x / sqrt(mean(x²) + eps) · norm. The weight goes into
// what is staged; the squares add up meanwhile, and the factor is for the sums.
var<private> squares: f32 = 0.0;

fn staged(m: u32, at: u32) -> vec4<f32> {
  let v = quad_get(x[m * (p.k / 4u) + at]);
  if (p.norm == 0u) {
    return v;
  }
  squares += dot(v, v);
  return v * quad_get(norm[at]);
}

// After squares_put and a barrier. Uniform control flow only.
fn norm_factor(local: u32) -> f32 { return inverseSqrt(squares_total(local) / f32(p.k) + p.eps); }
