// What the kernels of a product are told.
struct Params {
  batch: u32,
  m: u32,
  n: u32,      // columns here: p.first of cols and on
  k: u32,
  first: u32,
  cols: u32,   // of y
  w_n: u32,    // steps of w from column to column of y, and along k
  w_k: u32,
  w_half: u32, // w of 2 bytes
  bias: u32,   // 0: none, else 1 + `half`
  bias_m: u32, // steps of the bias
  bias_n: u32,
  alpha: f32,
  beta: f32,
  act: u32,    // 0: none, 1 relu, 2 gelu, 3 gelu by tanh, 4 silu
  rest: u32,   // 1: something like y is added at last
  slices: u32, // of k, each of `span`; 1: all of it
  span: u32,
}
