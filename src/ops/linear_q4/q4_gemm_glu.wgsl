// y = silu(x · Gᵀ) · (x · Uᵀ) for many rows m; G and U lie in one buffer. A workgroup computes a tile
// (q4_tile) whose first columns are rows of G and whose others are the same rows of U, so that a
// thread has both of a result.
// Wants what q4_gemm wants; C is 2, n % 4 == 0.
// uses: grid q4_tile
const WG = 256u;
const TX = 16u;
const TY = 16u;
const R = 8u;
const C = 2u;
struct Params {
  m: u32,
  n: u32, // rows of G and of U
  k: u32,
  stride: u32, // bytes of a weight row
  group: u32,
  groups: u32, // scales of a row
  w_at: u32,   // first word of U; G begins at 0
  s_at: u32,   // first scale of U
}
@group(0) @binding(0) var<storage, read>       x: array<Quad>;     // (m, k)
@group(0) @binding(1) var<storage, read>       w: array<u32>;      // two of (n, stride / 4)
@group(0) @binding(2) var<storage, read>       scales: array<u32>; // two of (n, groups)
@group(0) @binding(3) var<storage, read_write> y: array<Quad>;     // (m, n)
@group(0) @binding(4) var<uniform>             p: Params;

fn row_at(n0: u32, col: u32) -> vec2<u32> {
  let row = min(n0 + col % (4u * TX), p.n - 1u);
  return row * vec2<u32>(p.stride / 4u, p.groups) + col / (4u * TX) * vec2<u32>(p.w_at, p.s_at);
}

fn put_row(m: u32, n: u32, sum: Cols) {
  if (m < p.m && n < p.n) {
    y[(m * p.n + n) / 4u] = quad_put(sum.a / (1.0 + exp(-sum.a)) * sum.b);
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let down = (p.m + R * TY - 1u) / (R * TY); // tiles of rows: neighbours share weights
  let index = grid_group(group, groups);
  let n0 = index / down * (4u * TX);
  let m0 = index % down * (R * TY);
  let sums = tile_sums(m0, n0, 0u, p.k, local);
  let m = m0 + local / TX * R;
  let n = n0 + local % TX * 4u;
  put_row(m, n, sums.r0);
  put_row(m + 1u, n, sums.r1);
  put_row(m + 2u, n, sums.r2);
  put_row(m + 3u, n, sums.r3);
  if (R > 4u) {
    put_row(m + 4u, n, sums.r4);
    put_row(m + 5u, n, sums.r5);
    put_row(m + 6u, n, sums.r6);
    put_row(m + 7u, n, sums.r7);
  }
}
