// Up to four results from element `at` on, as bytes: whole words, which nobody else writes.
// See q8_put_shared; `y` and `p` are the shader's.
alias Out = u32;
fn q8_put(at: u32, count: u32, v: vec4<f32>) { y[at / 4u] = requant(v); }
