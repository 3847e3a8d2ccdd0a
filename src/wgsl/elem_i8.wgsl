// Signed bytes, four a word: see elem_f16. Values are kept modulo 256.
alias Elem = i32;
alias Elem4 = vec4<i32>;
alias Quad = u32;
const ELEMS = 4u;
fn elem_get(word: u32, lane: u32) -> i32 { return extractBits(i32(word), 8u * lane, 8u); }
fn elem_put(word: u32, lane: u32, value: i32) -> u32 {
  return insertBits(word, u32(value), 8u * lane, 8u);
}
fn quad_get(quad: Quad) -> Elem4 {
  return (vec4<i32>(i32(quad)) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u);
}
fn quad_put(values: Elem4) -> Quad {
  let bytes = (vec4<u32>(values) & vec4<u32>(255u)) << vec4<u32>(0u, 8u, 16u, 24u);
  return bytes.x | bytes.y | bytes.z | bytes.w;
}
