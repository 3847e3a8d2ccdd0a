// Four real numbers as bytes, a word: clamp(round(v · inverse) + zero, low, high) with what p says.
fn requant(v: vec4<f32>) -> u32 {
  let q = min(max(round(v * p.inverse) + p.zero, vec4<f32>(p.low)), vec4<f32>(p.high));
  let bytes = (vec4<u32>(vec4<i32>(q)) & vec4<u32>(255u)) << vec4<u32>(0u, 8u, 16u, 24u);
  return bytes.x | bytes.y | bytes.z | bytes.w;
}
