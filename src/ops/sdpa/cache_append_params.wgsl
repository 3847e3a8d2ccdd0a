// What the kernels that append to a cache are told, in elements of their T.
struct Params {
  n: u32,      // of x, or of k and of v
  batch: u32,  // of x, for one batch
  stride: u32, // of the cache, for one batch
  start: u32,
}
