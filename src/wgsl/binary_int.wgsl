// Operations of binary.wgsl on integers; they wrap.
alias Result = Quad;
fn whole_power(base: i32, exponent: i32) -> i32 {
  var y = select(1, 0, exponent < 0 && abs(base) != 1); // PyTorch: 1 / base^n rounds to 0
  var square = base;
  for (var e = abs(exponent); e > 0 && y != 0; e >>= 1u) {
    if ((e & 1) != 0) { y *= square; }
    square *= square;
  }
  return y;
}
fn apply(u: vec4<i32>, v: vec4<i32>) -> Result {
  let alpha = vec4<i32>(bitcast<i32>(p.alpha));
  var y = u * v;
  switch OP {
    case 0u: { y = u + alpha * v; }
    case 1u: { y = u - alpha * v; }
    case 4u: {
      let q = u / v;
      y = select(q, q - 1, (q * v != u) & ((u < vec4<i32>(0)) != (v < vec4<i32>(0))));
    }
    case 5u: { y = u / v; }
    case 6u: { y = min(u, v); }
    case 7u: { y = max(u, v); }
    case 8u: {
      y = vec4<i32>(whole_power(u.x, v.x), whole_power(u.y, v.y), whole_power(u.z, v.z),
                    whole_power(u.w, v.w));
    }
    default: {}
  }
  return quad_put(y);
}
