// Casts for unary.wgsl: the source's elements as integers, cut towards zero.
alias Result = vec4<u32>;
fn apply(x: Elem4) -> Result { return bitcast<vec4<u32>>(vec4<i32>(x)); }
