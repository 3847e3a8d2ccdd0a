// A word of what belongs to the rows that start with a multiple of ELEMS.
fn pair(values: vec2<f32>) -> u32 {
  var packed = elem_put(0u, 0u, values.x);
  if (ELEMS > 1u) {
    packed = elem_put(packed, 1u, values.y);
  }
  return packed;
}
