// Four neighbouring signed bytes, a word: see quad_f32. Kept modulo 256.
alias Elem4 = vec4<i32>;
alias Quad = u32;
fn quad_get(quad: Quad) -> Elem4 {
  return (vec4<i32>(i32(quad)) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u);
}
fn quad_put(values: Elem4) -> Quad {
  let bytes = (vec4<u32>(values) & vec4<u32>(255u)) << vec4<u32>(0u, 8u, 16u, 24u);
  return bytes.x | bytes.y | bytes.z | bytes.w;
}
