// What a workgroup of attention writes: the result itself.
alias Part = Quad;
fn part_put(v: vec4<f32>) -> Part { return quad_put(v); }
