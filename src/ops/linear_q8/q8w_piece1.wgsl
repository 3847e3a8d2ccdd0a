// Four bytes of a row of w at a time.
alias Piece = u32;
const PIECE = 1u; // words
fn piece_dot(at: u32, w: Piece) -> f32 { return dot(quad_get(x[at]), q8w_quad(w)); }
