// Elements of 4 bytes, one a word: see elem_f16.
alias Elem = f32;
const ELEMS = 1u;
fn elem_get(word: u32, lane: u32) -> f32 { return bitcast<f32>(word); }
fn elem_put(word: u32, lane: u32, value: f32) -> u32 { return bitcast<u32>(value); }
