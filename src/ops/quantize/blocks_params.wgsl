// What the kernels of quantisation by blocks are told: which scale an element has.
struct Params {
  n: u32,     // elements here, from p.first on
  first: u32,
  rank: u32,  // loops, outermost first; innermost last
  half: u32,  // scales of 2 bytes
  zeros: u32, // how zero points are stored: see zero_storage
  late: u32,  // 1: the zero point is added before rounding
  low: f32,
  high: f32,
  size: array<vec4<u32>, 4>,
  step: array<vec4<u32>, 4>, // of the scale, for one step of a loop: 0 where a block goes on
}
