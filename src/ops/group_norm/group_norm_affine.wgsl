// Group norm: v normalised, times w and plus b of its channel.
fn scaled(v: f32, c: u32) -> f32 {
  var y = v;
  if ((p.affine & 1u) != 0u) {
    y *= elem_get(w[c / ELEMS], c % ELEMS);
  }
  if ((p.affine & 2u) != 0u) {
    y += elem_get(b[c / ELEMS], c % ELEMS);
  }
  return y;
}
// The same for four elements of one channel.
fn scaled4(v: vec4<f32>, c: u32) -> vec4<f32> {
  var y = v;
  if ((p.affine & 1u) != 0u) {
    y *= elem_get(w[c / ELEMS], c % ELEMS);
  }
  if ((p.affine & 2u) != 0u) {
    y += elem_get(b[c / ELEMS], c % ELEMS);
  }
  return y;
}
