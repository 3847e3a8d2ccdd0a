// Four neighbouring elements of 2 bytes, on any device: see quad_f32.
alias Elem4 = vec4<f32>;
alias Quad = vec2<u32>;
fn quad_get(quad: Quad) -> Elem4 {
  return vec4<f32>(unpack2x16float(quad.x), unpack2x16float(quad.y));
}
fn quad_put(values: Elem4) -> Quad {
  return vec2<u32>(pack2x16float(values.xy), pack2x16float(values.zw));
}
