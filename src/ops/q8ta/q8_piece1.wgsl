// Four bytes at a time.
alias Piece = u32;
const PIECE = 1u; // words
fn piece_dot(a: Piece, b: Piece) -> i32 { return dot4I8Packed(a, b); }
