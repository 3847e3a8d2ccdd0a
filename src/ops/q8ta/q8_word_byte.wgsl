// A word of results: four bytes.
const ELEMS = 4u;
fn word_of(v: vec4<f32>) -> u32 { return requant(v); }
