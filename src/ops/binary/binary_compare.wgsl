// Comparisons and logic for binary.wgsl: four booleans are one word.
alias Result = u32;
fn is_true(x: Elem4) -> vec4<bool> { return !(x == Elem4()); }
fn apply(u: Elem4, v: Elem4) -> Result {
  let result = u == v; // rows replace it; `!=` may not say that one is no number
  let bits = select(vec4<u32>(), vec4<u32>(0x1u, 0x100u, 0x10000u, 0x1000000u), result);
  return bits.x | bits.y | bits.z | bits.w;
}
