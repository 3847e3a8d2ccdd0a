// Floats of a tensor whose dtype is only known at run time (a bias): storage is array<u32>, `half`
// is 1 for elements of 2 bytes and 0 for 4. Element i is in word either_word(i).
fn either_word(i: u32, half: u32) -> u32 { return i >> half; }
fn either_get(word: u32, i: u32, half: u32) -> f32 {
  return select(bitcast<f32>(word), unpack2x16float(word)[i & 1u], half == 1u);
}
