// Casts for unary.wgsl: the source's elements as floats of 2 bytes.
alias Result = vec2<u32>;
fn apply(x: Elem4) -> Result {
  let y = vec4<f32>(x);
  return vec2<u32>(pack2x16float(y.xy), pack2x16float(y.zw));
}
