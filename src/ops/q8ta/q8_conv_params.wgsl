// What the kernels of convolutions of bytes are told. Pairs are (down, across).
struct Params {
  batch: u32,
  groups: u32,
  in_channels: u32,  // of a group
  out_channels: u32, // of a group
  in_size: vec2<u32>,
  out_size: vec2<u32>,
  kernel: vec2<u32>,
  stride: vec2<u32>,
  padding: vec2<u32>,
  dilation: vec2<u32>,
  transposed: u32,
  words: u32,   // of a row of w that belong to taps, where it is read in words
  w_out: u32,   // bytes of w from channel to channel of y, from tap to tap, and along channels of x
  w_tap: u32,
  w_in: u32,
  bias: u32,    // 0: none, else 1 + (elements of 2 bytes)
  half: u32,    // scales of 2 bytes
  nothing: u32,
  x_zero: i32,
  x_scale: f32,
  inverse: f32,
  zero: f32,
  low: f32,
  high: f32,
  least: f32,   // of a result, before it becomes a byte
  w_scales: u32, // a channel's scale is that of channel % w_scales
}
