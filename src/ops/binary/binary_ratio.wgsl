// True division of integers for binary.wgsl: the quotient is a float.
alias Result = vec4<u32>;
fn apply(u: vec4<i32>, v: vec4<i32>) -> Result {
  let result = vec4<f32>(u) / vec4<f32>(v);
  return bitcast<vec4<u32>>(result);
}
