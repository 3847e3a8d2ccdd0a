// What q4_glu writes: y, as its dtype says.
fn glu_put(m: u32, row: u32, at: u32, factor: f32) {
  var word = 0u;
  for (var lane = 0u; lane < ELEMS; lane++) {
    word = elem_put(word, lane, glu_value(at + lane, factor));
  }
  y[(m * p.n + row) / ELEMS] = word;
}
fn glu_end(index: u32, local: u32) {}
