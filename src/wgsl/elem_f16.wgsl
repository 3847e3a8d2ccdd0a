// Elements of 2 bytes, two a word, in any device: storage is array<u32>, and a thread owns whole
// words. ELEMS elements a word; elem_get reads lane `lane`, elem_put replaces it.
alias Elem = f32;
const ELEMS = 2u;
fn elem_get(word: u32, lane: u32) -> f32 { return unpack2x16float(word)[lane]; }
fn elem_put(word: u32, lane: u32, value: f32) -> u32 {
  var both = unpack2x16float(word);
  both[lane] = value;
  return pack2x16float(both);
}
