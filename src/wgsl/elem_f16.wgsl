// Elements of 2 bytes, two a word, in any device: storage is array<u32>, and a thread owns whole
// words. ELEMS elements a word; elem_get reads lane `lane`, elem_put replaces it.
// A Quad is how four elements are stored, Elem4 their values: a kernel over array<Quad> needs no
// case for the end, since buffers are a multiple of 16 bytes.
alias Elem = f32;
alias Elem4 = vec4<f32>;
alias Quad = vec2<u32>;
const ELEMS = 2u;
fn elem_get(word: u32, lane: u32) -> f32 { return unpack2x16float(word)[lane]; }
fn elem_put(word: u32, lane: u32, value: f32) -> u32 {
  var both = unpack2x16float(word);
  both[lane] = value;
  return pack2x16float(both);
}
fn quad_get(quad: Quad) -> Elem4 {
  return vec4<f32>(unpack2x16float(quad.x), unpack2x16float(quad.y));
}
fn quad_put(values: Elem4) -> Quad {
  return vec2<u32>(pack2x16float(values.xy), pack2x16float(values.zw));
}
