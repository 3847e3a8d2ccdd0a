// Operations of unary.wgsl on integers; they wrap. A row says which, as in unary_float.
alias Result = Quad;
fn relu(x: vec4<i32>) -> vec4<i32> {
  return max(x, vec4<i32>());
}
fn signum(x: vec4<i32>) -> vec4<i32> { return sign(x); }
fn clamped(x: vec4<i32>, low: vec4<i32>, high: vec4<i32>) -> vec4<i32> {
  return min(max(x, low), high);
}
// PyTorch has no negative exponents here.
fn to_the(x: vec4<i32>, exponent: vec4<i32>) -> vec4<i32> {
  var y = vec4<i32>(1);
  var square = x;
  for (var e = exponent.x; e > 0; e >>= 1u) {
    if ((e & 1) != 0) { y *= square; }
    square *= square;
  }
  return y;
}
fn apply(x: vec4<i32>) -> Result {
  let a = vec4<i32>(bitcast<i32>(p.a));
  let b = vec4<i32>(bitcast<i32>(p.b));
  let result = x; // rows replace it
  return quad_put(result);
}
