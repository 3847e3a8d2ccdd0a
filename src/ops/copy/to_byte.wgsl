// Casts for unary.wgsl: the source's elements cut towards zero, modulo 256.
alias Result = u32;
fn apply(x: Elem4) -> Result {
  let bytes = (vec4<u32>(vec4<i32>(x)) & vec4<u32>(255u)) << vec4<u32>(0u, 8u, 16u, 24u);
  return bytes.x | bytes.y | bytes.z | bytes.w;
}
