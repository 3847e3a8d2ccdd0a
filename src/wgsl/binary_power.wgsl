// Powers of floats for binary.wgsl.
alias Result = Quad;
fn apply(u: vec4<f32>, v: vec4<f32>) -> Result { return quad_put(power(u, v)); }
