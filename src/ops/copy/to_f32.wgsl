// Casts for unary.wgsl: the source's elements as floats of 4 bytes.
alias Result = vec4<u32>;
fn apply(x: Elem4) -> Result { return bitcast<vec4<u32>>(vec4<f32>(x)); }
