// y = x · Wᵀ + rest for few rows m: a projection and the residual around it.
// A workgroup takes one m and p.blocks times WG / L · 4 rows of the weight. As q4_gemv; n % 4 == 0.
// uses: grid q4_rows
const WG = 256u;
const L = 64u;
struct Params {
  m: u32,
  n: u32,
  k: u32,
  groups: u32, // scales of a row
  shift: u32,  // unit >> shift is its group
  blocks: u32,
}
@group(0) @binding(0) var<storage, read>       x: array<Quad>;      // (m, k)
@group(0) @binding(1) var<storage, read>       w: array<vec4<u32>>; // (n, k / 32)
@group(0) @binding(2) var<storage, read>       scales: array<u32>;  // (n, groups)
@group(0) @binding(3) var<storage, read>       rest: array<Quad>;   // (m, n)
@group(0) @binding(4) var<storage, read_write> y: array<Quad>;      // (m, n)
@group(0) @binding(5) var<uniform>             p: Params;

fn staged(m: u32, at: u32) -> vec4<f32> { return quad_get(x[m * (p.k / 4u) + at]); }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let index = grid_group(group, groups);
  let m = min(index % p.m, p.m - 1u);
  let units = p.k / 32u;
  for (var block = 0u; block < p.blocks; block++) {
    let row = ((index / p.m * p.blocks + block) * (WG / L) + local / L) * 4u;
    let own = min(row, p.n - 4u);
    let at = (m * p.n + own) / 4u;
    let before = quad_get(rest[at]); // on its way with the weights
    let rows = vec4<u32>(own) + vec4<u32>(0u, 1u, 2u, 3u);
    let sum = q4_rows(m, rows * units, rows * p.groups, units, p.shift, block == 0u, local);
    if (local % L == 0u && row < p.n) {
      y[at] = quad_put(sum + before);
    }
  }
}
