// 16 bytes at a time.
alias Piece = vec4<u32>;
const PIECE = 4u; // words
fn piece_dot(a: Piece, b: Piece) -> i32 {
  return dot4I8Packed(a.x, b.x) + dot4I8Packed(a.y, b.y) + dot4I8Packed(a.z, b.z) +
         dot4I8Packed(a.w, b.w);
}
