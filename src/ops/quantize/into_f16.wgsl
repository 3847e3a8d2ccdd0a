// Four floats of 2 bytes: see into_byte.
alias Into = vec2<u32>;
fn into(v: vec4<f32>) -> Into { return vec2<u32>(pack2x16float(v.xy), pack2x16float(v.zw)); }
