// Four whole numbers as bytes, a word: what signed and unsigned ones have in common.
alias Into = u32;
fn into(v: vec4<f32>) -> Into {
  let bytes = (vec4<u32>(vec4<i32>(v)) & vec4<u32>(255u)) << vec4<u32>(0u, 8u, 16u, 24u);
  return bytes.x | bytes.y | bytes.z | bytes.w;
}
