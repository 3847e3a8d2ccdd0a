// What the kernels of a product of bytes are told.
struct Params {
  m: u32,
  n: u32,
  k: u32,     // bytes of a row of x
  words: u32, // of a row of w
  bias: u32,  // 0: none, else 1 + (elements of 2 bytes)
  half: u32,  // scales of 2 bytes
  nothing: u32,
  x_zero: i32,
  x_scale: f32,
  inverse: f32,
  zero: f32,
  low: f32,
  high: f32,
  least: f32, // of a result, before it becomes a byte
  w_scales: u32, // a channel's scale is that of channel % w_scales
}
