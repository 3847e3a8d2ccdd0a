// Four floats of 4 bytes: see into_byte.
alias Into = vec4<f32>;
fn into(v: vec4<f32>) -> Into { return v; }
