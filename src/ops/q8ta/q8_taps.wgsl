// Where a tap of the kernel is in x, for a place of y: (row, column), and whether it is inside.
struct Tap {
  at: vec2<u32>,
  inside: bool,
}
fn q8_tap(place: vec2<u32>, tap: vec2<u32>) -> Tap {
  if (p.transposed == 0u) {
    let at = place * p.stride + tap * p.dilation - p.padding; // wraps below 0, and is outside then
    return Tap(at, all(at < p.in_size));
  }
  let up = place + p.padding - tap * p.dilation;
  let at = up / p.stride;
  return Tap(at, all(up % p.stride == vec2<u32>()) && all(at < p.in_size) &&
                 all(place + p.padding >= tap * p.dilation));
}
