// Elements of 4 bytes, one a word: see elem_f16.
alias Elem = f32;
alias Elem4 = vec4<f32>;
alias Quad = vec4<u32>;
const ELEMS = 1u;
fn elem_get(word: u32, lane: u32) -> f32 { return bitcast<f32>(word); }
fn elem_put(word: u32, lane: u32, value: f32) -> u32 { return bitcast<u32>(value); }
fn quad_get(quad: Quad) -> Elem4 { return bitcast<vec4<f32>>(quad); }
fn quad_put(values: Elem4) -> Quad { return bitcast<vec4<u32>>(values); }
