// Casts for unary.wgsl: 1 where the source is not 0, and so for NaN, of which `!=` may say nothing.
alias Result = u32;
fn apply(x: Elem4) -> Result {
  let bits = select(vec4<u32>(), vec4<u32>(0x1u, 0x100u, 0x10000u, 0x1000000u), !(x == Elem4()));
  return bits.x | bits.y | bits.z | bits.w;
}
