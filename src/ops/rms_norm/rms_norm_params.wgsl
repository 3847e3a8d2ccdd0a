// What the kernels of the RMS norm are told.
struct Params {
  rows: u32,
  quads: u32, // of a row; rms_norm_any does not look
  cols: f32,
  eps: f32,
}
