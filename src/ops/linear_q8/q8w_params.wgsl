// What the kernels of a product with a weight of bytes are told.
struct Params {
  m: u32,
  n: u32,      // columns here: p.first of cols and on
  k: u32,
  first: u32,
  cols: u32,   // of y
  groups: u32, // scales of a row of w
  group: u32,  // bytes of w that share one
  half: u32,   // scales of 2 bytes
  by_k: u32,   // 1: w is (k, n), and k has the scale
  bias: u32,   // 0: none, else 1 + (elements of 2 bytes)
}
