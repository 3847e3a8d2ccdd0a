// Resampling of planes: where elements of y lie in x.
struct Params {
  n: u32,     // elements of y
  align: u32, // 1: the corners of both planes coincide, else their edges
  ratio_h: f32, // rows of x for a row of y
  ratio_w: f32,
  x_size: vec2<u32>, // height, width
  y_size: vec2<u32>,
}

struct Place {
  row: u32,
  col: u32,
  first: u32, // element of x that its plane begins with
}
fn place_of(e: u32) -> Place {
  let line = e / p.y_size.y;
  return Place(line % p.y_size.x, e % p.y_size.y, line / p.y_size.x * (p.x_size.x * p.x_size.y));
}
