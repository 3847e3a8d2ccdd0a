// Four rows of a workgroup of attn_chunk_wide: heads of q that share a head of k and v.
const HEADS = 4u;
alias Scores = vec4<f32>; // by row
fn scores_of(key: vec4<f32>, at: u32) -> Scores {
  return Scores(dot(key, query[at]), dot(key, query[dim() + at]), dot(key, query[2u * dim() + at]),
                dot(key, query[3u * dim() + at]));
}
fn scores_masked(s: Scores, i: u32) -> Scores {
  return Scores(masked(s.x, 0u, i), masked(s.y, 1u, i), masked(s.z, 2u, i), masked(s.w, 3u, i));
}
fn most_of(team: u32, r: u32) -> f32 { return most[team][r]; }
fn total_of(team: u32, r: u32) -> f32 { return total[team][r]; }

struct Sums { a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32> } // a quad of each row
fn sums_scaled(s: Sums, by: Scores) -> Sums { return Sums(s.a * by.x, s.b * by.y, s.c * by.z, s.d * by.w); }
fn sums_add(s: Sums, w: Scores, v: vec4<f32>) -> Sums {
  return Sums(s.a + w.x * v, s.b + w.y * v, s.c + w.z * v, s.d + w.w * v);
}
fn sums_of_halves(s: Sums) -> Sums {
  return Sums(s.a + subgroupShuffleXor(s.a, 16u), s.b + subgroupShuffleXor(s.b, 16u),
              s.c + subgroupShuffleXor(s.c, 16u), s.d + subgroupShuffleXor(s.d, 16u));
}
// Those of the round that begins with row r.
fn sums_put(near: Sums, far: Sums, r: u32, local: u32) {
  if (r == 0u) {
    put_sum(0u, near.a, far.a, local);
  }
  if (r == 1u / ROUND * ROUND) {
    put_sum(1u % ROUND, near.b, far.b, local);
  }
  if (r == 2u / ROUND * ROUND) {
    put_sum(2u % ROUND, near.c, far.c, local);
  }
  if (r == 3u / ROUND * ROUND) {
    put_sum(3u % ROUND, near.d, far.d, local);
  }
}
