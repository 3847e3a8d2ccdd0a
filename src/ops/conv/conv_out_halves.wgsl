// y of 2-byte elements, stored one by one, where two threads may each have half of a word: see conv_put.
alias Out = atomic<u32>;
alias Rest = u32;
const OUT = 1u;
fn out_get(at: u32) -> vec2<f32> { return vec2<f32>(unpack2x16float(rest[at / 2u])[at % 2u], 0.0); }
fn out_get4(at: u32) -> vec4<f32> {
  return vec4<f32>(out_get(at).x, out_get(at + 1u).x, out_get(at + 2u).x, out_get(at + 3u).x);
}
fn out_put(at: u32, v: vec2<f32>) {
  let shift = at % 2u * 16u;
  atomicAnd(&y[at / 2u], 0xffff0000u >> shift);
  atomicOr(&y[at / 2u], (pack2x16float(v) & 0xffffu) << shift);
}
fn out_put4(at: u32, v: vec4<f32>) {
  out_put(at, v.xx);
  out_put(at + 1u, v.yy);
  out_put(at + 2u, v.zz);
  out_put(at + 3u, v.ww);
}
