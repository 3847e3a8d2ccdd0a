// What a workgroup of attention writes: a part, in full precision.
alias Part = vec4<f32>;
fn part_put(v: vec4<f32>) -> Part { return v; }
