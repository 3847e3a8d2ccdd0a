// Some rows of a dim: tensors are (outer, size, inner), the source (outer, count, inner).
struct Params {
  n: u32, // elements of y
  size: u32, // of the dim
  inner: u32,
  start: u32,
  step: u32,
  count: u32, // elements that are replaced
}
