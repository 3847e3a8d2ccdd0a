// Operations of unary.wgsl on integers; they wrap. Numbered as in unary_float.
alias Result = Quad;
fn apply(x: vec4<i32>) -> Result {
  let a = vec4<i32>(bitcast<i32>(p.a));
  let b = vec4<i32>(bitcast<i32>(p.b));
  var y = x;
  switch OP {
    case 1u: { y = abs(x); }
    case 9u: { y = -x; }
    case 11u: { y = min(max(x, a), b); }
    case 12u: { // PyTorch has no negative exponents here
      y = vec4<i32>(1);
      var square = x;
      for (var e = a.x; e > 0; e >>= 1u) {
        if ((e & 1) != 0) { y *= square; }
        square *= square;
      }
    }
    case 13u: { y = max(x, vec4<i32>()); }
    default: {}
  }
  return quad_put(y);
}
