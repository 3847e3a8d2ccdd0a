// What the kernels of a product with a 4-bit weight are told.
struct Params {
  m: u32,
  n: u32,      // rows of the weight here: p.first of cols and on
  k: u32,
  stride: u32, // bytes of a weight row
  group: u32,
  groups: u32, // scales of a row
  first: u32,
  cols: u32,   // of y
  bias: u32,   // 0: none, else 1 + `half`
  half: u32,   // of the scales
  blocks: u32,
  shift: u32,  // unit >> shift is its group
  slices: u32, // of k; if more than one, y is (slices, m, n) in f32 and q4_sums adds them up
  span: u32,   // of a slice, a multiple of 32
  bias_m: u32, // from one row of the bias to the next: 0, or cols for a residual
  gated: u32,  // 1: y is silu(bias) times the product, not their sum
  rows: u32,   // of q4_matrix's results: m and n to whole tiles
  width: u32,
  w_at: u32,   // a second weight in the same buffer begins at so many units of codes,
  s_at: u32,   // so many scales
  n_at: u32,   // and so many norms
  eps: f32,    // of a norm in front
  q_cols: u32, // of joined projections: the first one's columns, and the second one's
  k_cols: u32,
}
