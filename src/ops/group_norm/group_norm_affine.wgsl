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
// A word of the means or factors of the rows that start with a multiple of ELEMS.
fn pair(values: vec2<f32>) -> u32 {
  var packed = elem_put(0u, 0u, values.x);
  if (ELEMS > 1u) {
    packed = elem_put(packed, 1u, values.y);
  }
  return packed;
}
