// Comparisons and logic for binary.wgsl: four booleans are one word.
alias Result = u32;
fn apply(u: Elem4, v: Elem4) -> Result {
  let zero = Elem4();
  var y = u == v;
  switch OP {
    case 1u: { y = !(u == v); } // also where one is no number: `!=` may not say so
    case 2u: { y = u < v; }
    case 3u: { y = u <= v; }
    case 4u: { y = u > v; }
    case 5u: { y = u >= v; }
    case 6u: { y = !(u == zero) & !(v == zero); }
    case 7u: { y = !(u == zero) | !(v == zero); }
    case 8u: { y = (u == zero) != (v == zero); }
    default: {}
  }
  let bits = select(vec4<u32>(), vec4<u32>(0x1u, 0x100u, 0x10000u, 0x1000000u), y);
  return bits.x | bits.y | bits.z | bits.w;
}
