// Group norm: x (n, groups, depth, inner) in rows, one for each of the n * groups; a row has `cols`
// elements, and depth channels of `inner` elements each.
struct Params {
  rows: u32, // of this dispatch
  cols: u32,
  inner: u32,
  groups: u32,
  depth: u32,
  eps: f32,
  affine: u32, // bit 0: w is there, bit 1: b
  parts: u32,  // of a row, for kernels that split it
  first: u32,  // row of the whole tensor that x and y begin with, a multiple of ELEMS
}
fn channel_of(row: u32, col: u32) -> u32 { return (p.first + row) % p.groups * p.depth + col / p.inner; }
