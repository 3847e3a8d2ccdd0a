// Comparisons of unary.wgsl with one number: four booleans are one word.
alias Result = u32;
fn apply(x: Elem4) -> Result {
  let a = bitcast<Elem4>(vec4<u32>(p.a));
  let result = x == a; // rows replace it; `!=` may not say that something is no number
  let bits = select(vec4<u32>(), vec4<u32>(0x1u, 0x100u, 0x10000u, 0x1000000u), result);
  return bits.x | bits.y | bits.z | bits.w;
}
