// a / b to the last bit or nearly: a device may be 2.5 units off, and a quotient that is rounded to
// an integer next must not be. The reciprocal is refined once, the quotient by its remainder.
fn divide(a: f32, b: f32) -> f32 {
  let rough = 1.0 / b;
  let r = fma(fma(-b, rough, 1.0), rough, rough);
  let q = a * r;
  return fma(fma(-b, q, a), r, q);
}
