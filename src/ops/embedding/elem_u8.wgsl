// Elements of a byte, whatever they mean: see elem_f16.
alias Elem = u32;
const ELEMS = 4u;
fn elem_get(word: u32, lane: u32) -> u32 { return extractBits(word, 8u * lane, 8u); }
fn elem_put(word: u32, lane: u32, value: u32) -> u32 { return insertBits(word, value, 8u * lane, 8u); }
