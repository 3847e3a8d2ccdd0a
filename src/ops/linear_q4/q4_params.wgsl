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
}
