// y = x · Wᵀ + bias as in q4_gemv, for many rows m: a workgroup computes a tile (q4_tile), over all
// of k or over one of p.slices.
// Wants k % 4 == 0; group % 8 == 0 or all of k; weight rows of whole words; rows of y that start on
// words.
// uses: grid either q4_params q4_tile q4_put
const WG = 256u;
const TX = 16u;
const TY = 16u;
const R = 8u;
const C = 2u;
@group(0) @binding(0) var<storage, read>       x: array<Quad>;     // (m, k)
@group(0) @binding(1) var<storage, read>       w: array<u32>;      // (n, stride / 4)
@group(0) @binding(2) var<storage, read>       scales: array<u32>; // (n, groups)
@group(0) @binding(3) var<storage, read>       bias: array<u32>;   // (cols) or (m, cols)
@group(0) @binding(4) var<storage, read_write> y: array<u32>;      // (m, cols) or (slices, m, n)
@group(0) @binding(5) var<uniform>             p: Params;

fn row_at(n0: u32, col: u32) -> vec2<u32> { return min(n0 + col, p.n - 1u) * vec2<u32>(p.stride / 4u, p.groups); }

fn put_slice(slice: u32, m: u32, n: u32, sum: vec4<f32>) {
  for (var i = 0u; i < 4u && n + i < p.n && m < p.m; i++) {
    y[(slice * p.m + m) * p.n + n + i] = bitcast<u32>(sum[i]);
  }
}

fn put_row(slice: u32, m: u32, n: u32, sum: Cols) {
  if (p.slices > 1u) {
    put_slice(slice, m, n, sum.a);
    if (C > 1u) {
      put_slice(slice, m, n + 4u * TX, sum.b);
    }
  } else {
    put(m, n, sum.a);
    if (C > 1u) {
      put(m, n + 4u * TX, sum.b);
    }
  }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let down = (p.m + R * TY - 1u) / (R * TY); // tiles of rows: neighbours share weights
  let across = (p.n + COLS - 1u) / COLS;
  let index = grid_group(group, groups);
  let slice = index / (down * across);
  if (slice >= max(p.slices, 1u)) { // a folded grid has more workgroups
    return;
  }
  let n0 = index / down % across * COLS;
  let m0 = index % down * (R * TY);
  let from_k = slice * p.span;
  let sums = tile_sums(m0, n0, from_k, min(from_k + p.span, p.k), local);
  let m = m0 + local / TX * R;
  let n = n0 + local % TX * 4u;
  put_row(slice, m, n, sums.r0);
  put_row(slice, m + 1u, n, sums.r1);
  put_row(slice, m + 2u, n, sums.r2);
  put_row(slice, m + 3u, n, sums.r3);
  if (R > 4u) {
    put_row(slice, m + 4u, n, sums.r4);
    put_row(slice, m + 5u, n, sums.r5);
    put_row(slice, m + 6u, n, sums.r6);
    put_row(slice, m + 7u, n, sums.r7);
  }
}
