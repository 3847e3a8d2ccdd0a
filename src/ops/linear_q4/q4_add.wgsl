// y = x · Wᵀ + rest for few rows m: a projection and the residual around it.
// A workgroup takes one m and p.blocks times SETS · R rows of the weight. As q4_gemv; n % 4 == 0.
// uses: grid q4_sets
const WG = 256u;
const T = 64u;
const U = 1u;
const WORDS = 1u; // of y, that a thread writes
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
@group(0) @binding(3) var<storage, read>       rest: array<u32>;    // (m, n)
@group(0) @binding(4) var<storage, read_write> y: array<u32>;       // (m, n)
@group(0) @binding(5) var<uniform>             p: Params;

fn staged(m: u32, at: u32) -> vec4<f32> { return quad_get(x[m * (p.k / 4u) + at]); }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
  let index = grid_group(group, groups);
  let m = min(index % p.m, p.m - 1u);
  let units = p.k / 32u;
  for (var block = 0u; block < p.blocks; block++) {
    let base = (index / p.m * p.blocks + block) * SETS * R; // rows past the last are not written
    let at = local * WORDS * ELEMS;
    let to = (m * p.n + base + at) / ELEMS;
    let before = rest[min(to, (p.m * p.n - 1u) / ELEMS)]; // on its way with the weights
    let row = base + local / T * R;
    let half = row + R / 2u;
    let rows = Rows(row * units, half * units, row * p.groups, half * p.groups, units, p.groups, p.shift);
    sums_put(q4_rows(m, rows, units, block == 0u, local), local);
    sums_barrier();
    if (at < SETS * R && base + at < p.n) {
      for (var i = 0u; i < WORDS; i++) {
        var other = before;
        if (i != 0u) {
          other = rest[to + i];
        }
        var word = 0u;
        for (var lane = 0u; lane < ELEMS; lane++) {
          word = elem_put(word, lane, sums_total(at + i * ELEMS + lane) + elem_get(other, lane));
        }
        y[to + i] = word;
      }
    }
    sums_barrier();
  }
}
