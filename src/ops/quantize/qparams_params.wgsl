// What the kernels that choose scales and zero points are told. x is in blocks, of which each has
// a loop nest over the tensor, and so have the elements of a block.
struct Params {
  m: u32,     // blocks
  k: u32,     // elements of a block
  parts: u32, // of a block, if its range was found in parts
  rule: u32,  // how the parameters follow from the range: see qparams
  half: u32,  // scales of 2 bytes
  zeros: u32, // how zero points are stored: see zero_storage
  outer: u32, // loops, outermost first
  inner: u32,
  low: f32,
  high: f32,
  eps: f32,
  zero: f32,  // the zero point of symmetric rules
  outer_size: array<vec4<u32>, 2>,
  outer_step: array<vec4<u32>, 2>,
  inner_size: array<vec4<u32>, 2>,
  inner_step: array<vec4<u32>, 2>,
}
