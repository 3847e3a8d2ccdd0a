// One row of a workgroup of attn_chunk_wide: less to do for each, where keys are few.
const HEADS = 1u;
alias Scores = f32;
fn scores_of(key: vec4<f32>, at: u32) -> Scores { return dot(key, query[at]); }
fn scores_masked(s: Scores, i: u32) -> Scores { return masked(s, 0u, i); }
fn most_of(team: u32, r: u32) -> f32 { return most[team]; }
fn total_of(team: u32, r: u32) -> f32 { return total[team]; }

alias Sums = vec4<f32>;
fn sums_scaled(s: Sums, by: Scores) -> Sums { return s * by; }
fn sums_add(s: Sums, w: Scores, v: vec4<f32>) -> Sums { return s + w * v; }
fn sums_of_halves(s: Sums) -> Sums { return s + subgroupShuffleXor(s, 16u); }
fn sums_put(near: Sums, far: Sums, r: u32, local: u32) { put_sum(0u, near, far, local); }
