// 16 bytes of a row of w at a time.
alias Piece = vec4<u32>;
const PIECE = 4u; // words
fn piece_dot(at: u32, w: Piece) -> f32 {
  return dot(quad_get(x[at]), q8w_quad(w.x)) + dot(quad_get(x[at + 1u]), q8w_quad(w.y)) +
         dot(quad_get(x[at + 2u]), q8w_quad(w.z)) + dot(quad_get(x[at + 3u]), q8w_quad(w.w));
}
