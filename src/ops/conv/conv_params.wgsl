// What the kernels of a convolution are told: pixels that one phase computes, each at
// q · step + first + tap · (its number) in x. Sizes count elements, of w quads.
struct Params {
  pixels: u32,   // of all images
  grid: u32,     // of an image
  grid_yx: u32,  // of a slice of it
  grid_x: u32,
  groups: u32,
  ic: u32,       // channels of a group
  oc: u32,       // … of those of y that are computed here
  taps: u32,
  taps_y: u32,
  taps_x: u32,
  in_z: u32,     // pixels of x
  in_y: u32,
  in_x: u32,
  in_plane: u32,
  in_image: u32,
  step_z: u32,
  step_y: u32,
  step_x: u32,
  first_z: i32,
  first_y: i32,
  first_x: i32,
  tap_z: i32,
  tap_y: i32,
  tap_x: i32,
  out_first: u32, // where a pixel goes in a channel of y
  out_z: u32,
  out_y: u32,
  out_x: u32,
  out_plane: u32,
  out_image: u32,
  w_first: u32,   // of this phase
  w_group: u32,   // steps: from group to group, from one input channel to the next, from tap to tap
  w_row: u32,
  w_z: u32,
  w_y: u32,
  w_x: u32,
  channel: u32,   // the first one of y here, in the bias
  bias: u32,      // 0: none, else 1 + `half`
  rest: u32,      // something of y's shape is added
  dense: u32,     // 0: a phase; 1: the grid is y's own, taps follow each other in w; 2: quads of
                  // pixels are quads of y, too
  end: u32,       // see conv_end
  low: f32,
  high: f32,
}
