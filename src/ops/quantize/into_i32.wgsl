// Four whole numbers as integers of 4 bytes: see into_byte.
alias Into = vec4<i32>;
fn into(v: vec4<f32>) -> Into { return vec4<i32>(v); }
