// Integers of 4 bytes: see elem_f16.
alias Elem = i32;
alias Elem4 = vec4<i32>;
alias Quad = vec4<u32>;
const ELEMS = 1u;
fn elem_get(word: u32, lane: u32) -> i32 { return bitcast<i32>(word); }
fn elem_put(word: u32, lane: u32, value: i32) -> u32 { return bitcast<u32>(value); }
fn quad_get(quad: Quad) -> Elem4 { return bitcast<vec4<i32>>(quad); }
fn quad_put(values: Elem4) -> Quad { return bitcast<vec4<u32>>(values); }
