// A word of results: one float of 4 bytes.
const ELEMS = 1u;
fn word_of(v: vec4<f32>) -> u32 { return bitcast<u32>(v.x); }
