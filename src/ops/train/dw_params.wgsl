// The gradient of a weight (n, k) from m rows.
struct Params {
  m: u32,
  n: u32,
  k: u32,
}
