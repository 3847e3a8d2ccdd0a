// A word of results: two floats of 2 bytes.
const ELEMS = 2u;
fn word_of(v: vec4<f32>) -> u32 { return pack2x16float(v.xy); }
