// dx[m, k] = Σ_n d[m, n] · (code[n, k] - 8) · scale[k / group, n]: what the kernels are told.
struct Params {
  m: u32,
  n: u32,
  k: u32,
  stride: u32, // bytes of a weight row
  group: u32,
  scales: u32, // of a group
  half: u32,   // the scales have 2 bytes
}
fn scale_of(k: u32, n: u32) -> f32 {
  let i = k / p.group * p.scales + n;
  return either_get(scales[either_word(i, p.half)], i, p.half);
}
