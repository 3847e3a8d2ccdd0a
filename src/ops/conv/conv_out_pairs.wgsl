// y of 2-byte elements, stored by words: a pair of pixels must be one. See conv_put.
alias Out = vec2<u32>;
alias Rest = vec2<u32>;
const OUT = 2u;
fn out_get(at: u32) -> vec2<f32> { return unpack2x16float(rest[at / 4u][at / 2u % 2u]); }
fn out_get4(at: u32) -> vec4<f32> {
  let quad = rest[at / 4u];
  return vec4<f32>(unpack2x16float(quad.x), unpack2x16float(quad.y));
}
fn out_put(at: u32, v: vec2<f32>) { y[at / 4u][at / 2u % 2u] = pack2x16float(v); }
fn out_put4(at: u32, v: vec4<f32>) {
  y[at / 4u] = vec2<u32>(pack2x16float(v.xy), pack2x16float(v.zw));
}
