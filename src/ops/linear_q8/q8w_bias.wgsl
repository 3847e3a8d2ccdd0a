// What is added to column n here; `bias` and `p` (q8w_params) are the shader's.
fn bias_at(n: u32) -> f32 {
  if (p.bias == 0u) {
    return 0.0;
  }
  let at = p.first + min(n, p.n - 1u);
  return either_get(bias[either_word(at, p.bias - 1u)], at, p.bias - 1u);
}
