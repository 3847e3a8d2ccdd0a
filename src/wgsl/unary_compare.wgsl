// Comparisons of unary.wgsl with one number: four booleans are one word.
alias Result = u32;
fn apply(x: Elem4) -> Result {
  let a = bitcast<Elem4>(vec4<u32>(p.a));
  var y = x == a;
  switch OP {
    case 1u: { y = !(x == a); } // also where one is no number: `!=` may not say so
    case 2u: { y = x < a; }
    case 3u: { y = x <= a; }
    case 4u: { y = x > a; }
    case 5u: { y = x >= a; }
    default: {}
  }
  let bits = select(vec4<u32>(), vec4<u32>(0x1u, 0x100u, 0x10000u, 0x1000000u), y);
  return bits.x | bits.y | bits.z | bits.w;
}
