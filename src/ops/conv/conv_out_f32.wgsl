// y of 4-byte elements in quads, stored one by one or as quads: see conv_put.
alias Out = vec4<f32>;
alias Rest = vec4<f32>;
const OUT = 1u;
fn out_get(at: u32) -> vec2<f32> { return vec2<f32>(rest[at / 4u][at % 4u], 0.0); }
fn out_get4(at: u32) -> vec4<f32> { return rest[at / 4u]; }
fn out_put(at: u32, v: vec2<f32>) { y[at / 4u][at % 4u] = v.x; }
fn out_put4(at: u32, v: vec4<f32>) { y[at / 4u] = v; }
