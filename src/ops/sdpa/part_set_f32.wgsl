// A part of a result in full precision, written where results of f32 are.
fn part_set(at: u32, v: vec4<f32>) { out[at] = v; }
